# SPDX-License-Identifier: Apache-2.0
"""The clock of the time budgets of solvers."""

from __future__ import annotations

import itertools

import pytest

from ik_node.steady import steady

LOOK = 1e-4  # [s] that a look at the clock takes


@pytest.fixture(autouse=True)
def counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time budgets end after a number of looks at the clock, however busy the computer is."""
    looks = itertools.count(1)
    monkeypatch.setattr(steady, 'read', lambda: LOOK * next(looks))
