# SPDX-License-Identifier: Apache-2.0
"""History: what one tool did in the last seconds, in rows at a constant rate."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from sensor_msgs.msg import JointState

from ik_node.checks import Array
from ik_node.model.arm import Arm, tool_at
from ik_node.model.degrees_of_freedom import least_singular_values

LENGTH = 30.0  # [s]
PERIOD = 0.1  # [s] from row to row
COMMANDS = 200  # that are kept to compare measurements with
SECOND = 1_000_000_000  # [ns]


class Row(NamedTuple):
    """One moment. NaN where a value is not known.

    time [s] (steady). q, dq, following (n,): joint positions, velocities and what they are behind their
    commands [rad or m]. errors: of position [m] and direction [rad]. singular: least singular value of the
    Jacobian that the arm has in general, with lengths in reaches of the arm.
    """

    time: float
    q: Array
    dq: Array
    following: Array
    errors: tuple[float, float]
    singular: float


class History:
    """The rows of the last LENGTH seconds of one arm."""

    def __init__(self, arm: Arm) -> None:
        self._arm = arm
        self._rows: deque[Row] = deque(maxlen=round(LENGTH / PERIOD))

    def due(self, time: float) -> bool:
        """Whether it is time for another row."""
        return not self._rows or time >= self._rows[-1].time + PERIOD

    def add(
        self,
        time: float,
        q: Array,
        dq: Array,
        following: Array,
        T_base_goal: Array | None,
        directed: bool,
    ) -> None:
        """Add a row; T_base_goal (4, 4) of the tip, None without."""
        if self._rows and np.isnan(dq).any():
            last = self._rows[-1]
            dq = np.where(np.isnan(dq), (q - last.q) / (time - last.time), dq)
        arm = self._arm
        (singular,) = least_singular_values(arm.jacobian(q)[None], arm.reach, arm.effective_dof).tolist()
        errors = (math.nan, math.nan)
        if T_base_goal is not None:
            errors = self._errors(q, T_base_goal, directed)
        self._rows.append(Row(time, q, dq, following, errors, singular))

    def _errors(self, q: Array, T_base_goal: Array, directed: bool) -> tuple[float, float]:
        arm = self._arm
        position, direction = arm.fk(q)
        goal, axis = tool_at(arm, T_base_goal)
        angle = math.atan2(float(np.linalg.norm(np.cross(direction, axis))), float(direction @ axis))
        return float(np.linalg.norm(position - goal)), angle if directed else math.nan

    def rows(self) -> list[Row]:
        """Return the rows, the oldest first."""
        return list(self._rows)


class Commands:
    """Joint commands, to be compared with measurements at the time of these."""

    def __init__(self) -> None:
        self._newest: deque[JointState] = deque(maxlen=COMMANDS)

    def add(self, message: JointState) -> None:
        """Add a command."""
        self._newest.append(message)

    def behind(self, measured: JointState, names: Sequence[str]) -> Array:
        """Return how far joints (n,) are behind their commands at the stamp of a message; NaN if unknown."""
        unknown = np.full(len(names), math.nan)
        time = _nanoseconds(measured)
        pairs = pairwise(list(self._newest))
        around = next(((a, b) for a, b in pairs if _nanoseconds(a) <= time <= _nanoseconds(b)), None)
        if around is None:
            return unknown
        before, after = (positions(message, names) for message in around)
        first, last = map(_nanoseconds, around)
        share = (time - first) / (last - first) if last > first else 1.0
        return before + share * (after - before) - positions(measured, names)


def positions(message: JointState, names: Sequence[str]) -> Array:
    """Return the positions (n,) of joints in a message, NaN where it has none."""
    return _by_name(names, dict(zip(message.name, message.position, strict=False)))


def velocities(message: JointState, names: Sequence[str]) -> Array:
    """Return the velocities (n,) of joints in a message, NaN where it has none."""
    return _by_name(names, dict(zip(message.name, message.velocity, strict=False)))


def _by_name(names: Sequence[str], values: Mapping[str, float]) -> Array:
    return np.array([values.get(name, math.nan) for name in names], dtype=np.float64)


def _nanoseconds(message: JointState) -> int:
    stamp = message.header.stamp
    return int(stamp.sec) * SECOND + int(stamp.nanosec)
