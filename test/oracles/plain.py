# SPDX-License-Identifier: Apache-2.0
"""The chain of chain.py with joint values by name, for one configuration at a time."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from lxml import etree

from ik_node import Goal
from ik_node.model.robot import Robot
from oracles.chain import Array, Chain, angle_between


class PlainArm(Chain):
    """The chain from base (default: the root) to tip with a tool at its end."""

    def __init__(self, text: str, tip: str, axis=(0, 0, 1), point=(0, 0, 0), base: str | None = None) -> None:
        tidied = etree.tostring(etree.fromstring(text.encode(), etree.XMLParser(recover=True)))
        super().__init__(tidied, base, tip, np.asarray(axis, float) / np.linalg.norm(axis), point)

    def pose(self, values: Mapping[str, float]) -> Array:
        """Pose (4, 4) of the tip link in the base link at the joint values by name [rad or m]."""
        turn, place, *_ = self.frames(np.array([values[name] for name in self.names]))
        return np.vstack([np.column_stack([turn[0], place[0]]), [0.0, 0.0, 0.0, 1.0]])

    def fk(self, values: Mapping[str, float]) -> tuple[Array, Array]:
        """Tool point (3,) [m] and tool axis (3,) in the base link."""
        pose = self.pose(values)
        return pose[:3, :3] @ self.tool_point + pose[:3, 3], pose[:3, :3] @ self.tool_axis

    def errors(self, values: Mapping[str, float], goal: Goal) -> tuple[float, float]:
        """Position error [m] and direction error [rad]; 0 for a direction that is not asked for."""
        position, axis = self.fk(values)
        turned = 0.0 if goal.direction is None else float(angle_between(axis, goal.direction))
        return float(np.linalg.norm(position - goal.position)), turned


def random_values(robot: Robot, rng: np.random.Generator) -> dict[str, float]:
    """Values for all joints that follow no other, within the limits."""
    free = [joint for joint in robot.movable if joint.mimic is None]
    return {j.name: rng.uniform(max(j.lower, -math.pi), min(j.upper, math.pi)) for j in free}
