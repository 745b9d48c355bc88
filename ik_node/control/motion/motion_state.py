# SPDX-License-Identifier: Apache-2.0
"""MotionState: where joints are and how they move."""

from __future__ import annotations

from typing import NamedTuple

from ik_node.checks import Array


class MotionState(NamedTuple):
    """Position, velocity and acceleration of joints, each (n,) [rad or m, and per second]."""

    position: Array
    velocity: Array
    acceleration: Array
