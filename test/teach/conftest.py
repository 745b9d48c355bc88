# SPDX-License-Identifier: Apache-2.0
"""A small arm, for checks of programs."""

from __future__ import annotations

import pytest
from control_harness import SETTINGS, arm_model
from small_arm import arm_urdf

from ik_node.control.models import ArmModel


@pytest.fixture(scope='session')
def model() -> ArmModel:
    return arm_model(arm_urdf(), SETTINGS)
