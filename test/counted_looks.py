# SPDX-License-Identifier: Apache-2.0
"""A clock of time budgets that does not depend on how busy the computer is; folders' conftest.py use it."""

from __future__ import annotations

import itertools

import pytest

from ik_node.steady import steady

LOOK = 1e-4  # [s] that a look at the clock takes


@pytest.fixture(autouse=True)
def counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time budgets end after a number of looks at the clock."""
    looks = itertools.count(1)
    monkeypatch.setattr(steady, 'read', lambda: LOOK * next(looks))
