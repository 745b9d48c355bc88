# SPDX-License-Identifier: Apache-2.0
"""Controllers of a small arm."""

from __future__ import annotations

import itertools

import pytest
from control_harness import SETTINGS, Driven, Rig, arm_model
from small_arm import arm_urdf

from ik_node.control.models import ArmModel
from ik_node.steady import steady

LOOK = 1e-6  # [s] that a look at the clock takes


@pytest.fixture(autouse=True)
def counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time budgets end after a number of looks at the clock, however busy the computer is."""
    looks = itertools.count(1)
    monkeypatch.setattr(steady, 'read', lambda: LOOK * next(looks))


@pytest.fixture(scope='session')
def model() -> ArmModel:
    return arm_model(arm_urdf(), SETTINGS)


@pytest.fixture
def picture(model) -> Rig:
    """An arm that nobody measures."""
    return Rig(model)


@pytest.fixture
def real(model) -> Rig:
    """An arm that is measured, at rest at zero."""
    rig = Rig(model, measured=True)
    rig.measure_all()
    rig.tick(5)
    return rig


@pytest.fixture
def rig(model: ArmModel) -> Driven:
    """An arm that is measured, behind a controller that carries out trajectories."""
    rig = Driven(model)
    rig.measure_all(yaw=0.2)
    rig.tick(2)
    return rig
