# SPDX-License-Identifier: Apache-2.0
"""ToolMotion: position and speed of the tool of an arm, for many configurations at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ik_node.checks import Array
from ik_node.kernels.arrays import layout
from ik_node.model.arm import Arm
from ik_node.model.rotations import rotations


@dataclass(frozen=True, eq=False)
class ToolMotion:
    """Tool point (k, 3) [m] in the base frame, its speed (k,) [m/s], and turn rate of the tip (k,) [rad/s].

    most_speed, most_turn_rate (k,): upper bounds, as if the contributions of the joints never cancelled,
    which happens when some joints stop before others.
    """

    point: Array
    speed: Array
    turn_rate: Array
    most_speed: Array
    most_turn_rate: Array


def tool_motion(arm: Arm, positions: Array, velocities: Array) -> ToolMotion:
    """Return the motion of the tool at positions and velocities (k, n) of the joints."""
    count = len(positions)
    turn = np.broadcast_to(np.eye(3), (count, 3, 3))
    place = np.zeros((count, 3))
    axes, origins, rates, sliding = [], [], [], []
    for row in arm.joints:
        variable, ratio = int(row[layout.VARIABLE]), row[layout.RATIO]
        value = ratio * positions[:, variable] + row[layout.SHIFT]
        place = place + turn @ row[layout.OFFSET]
        axis = turn @ row[layout.AXIS]
        axes.append(axis)
        origins.append(place)
        rates.append(ratio * velocities[:, variable])
        sliding.append(row[layout.PRISMATIC] != 0)
        if sliding[-1]:
            place = place + value[:, None] * axis
        else:
            turn = turn @ rotations(row[layout.AXIS], value)
    point = place + turn @ arm.tool[:3]
    linear, angular = np.zeros((count, 3)), np.zeros((count, 3))
    most_linear, most_angular = np.zeros(count), np.zeros(count)
    for axis, origin, rate, slides in zip(axes, origins, rates, sliding, strict=True):
        turned = rate[:, None] * axis
        moved = turned if slides else np.cross(turned, point - origin)
        linear += moved
        most_linear += np.linalg.norm(moved, axis=1)
        if not slides:
            angular += turned
            most_angular += np.abs(rate)
    speed, turn_rate = np.linalg.norm(linear, axis=1), np.linalg.norm(angular, axis=1)
    return ToolMotion(point, speed, turn_rate, most_linear, most_angular)
