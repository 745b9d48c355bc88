# SPDX-License-Identifier: Apache-2.0
"""A second opinion: URDF text to tool point and tool axis in plain numpy, sharing no code with ik_node's."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from lxml import etree
from scipy.spatial.transform import Rotation

from ik_node.model.robot import Robot


def _vector(element, tag, attribute, default):
    found = element.find(tag)
    text = default if found is None else found.get(attribute, default)
    return np.array([float(word) for word in text.split()])


class PlainArm:
    """The chain from base (default: the root) to tip with a tool at its end."""

    def __init__(self, text: str, tip: str, axis=(0, 0, 1), point=(0, 0, 0), base: str | None = None):
        root = etree.fromstring(text.encode(), etree.XMLParser(recover=True))
        joints = {j.get('name'): j for j in root.findall('joint')}
        above = {j.find('child').get('link'): j for j in joints.values()}
        self.mimics = {}
        for name, joint in joints.items():
            mimic = joint.find('mimic')
            if mimic is not None:
                ratio, shift = float(mimic.get('multiplier', 1)), float(mimic.get('offset', 0))
                self.mimics[name] = (mimic.get('joint'), ratio, shift)
        self.steps = []
        link = tip
        while link in above and link != base:
            joint = above[link]
            link = joint.find('parent').get('link')
            pose = np.eye(4)
            pose[:3, 3] = _vector(joint, 'origin', 'xyz', '0 0 0')
            pose[:3, :3] = Rotation.from_euler('xyz', _vector(joint, 'origin', 'rpy', '0 0 0')).as_matrix()
            direction = _vector(joint, 'axis', 'xyz', '1 0 0')
            direction = direction / np.linalg.norm(direction) if direction.any() else direction
            self.steps.insert(0, (joint.get('name'), joint.get('type'), pose, direction))
        self.base = link
        self.axis = np.asarray(axis, float) / np.linalg.norm(axis)
        self.point = np.asarray(point, float)

    def _value(self, name: str, values: Mapping[str, float]) -> float:
        if name in self.mimics:
            master, ratio, shift = self.mimics[name]
            return ratio * self._value(master, values) + shift
        return values[name]

    def pose(self, values: Mapping[str, float]) -> np.ndarray:
        """Pose (4, 4) of the tip link in the base link at the joint values by name [rad or m]."""
        pose = np.eye(4)
        for name, kind, origin, axis in self.steps:
            pose = pose @ origin
            move = np.eye(4)
            if kind == 'prismatic':
                move[:3, 3] = axis * self._value(name, values)
            elif kind in ('revolute', 'continuous'):
                move[:3, :3] = Rotation.from_rotvec(axis * self._value(name, values)).as_matrix()
            pose = pose @ move
        return pose

    def fk(self, values: Mapping[str, float]) -> tuple[np.ndarray, np.ndarray]:
        """Tool point (3,) [m] and tool axis (3,) in the base link."""
        pose = self.pose(values)
        return pose[:3, :3] @ self.point + pose[:3, 3], pose[:3, :3] @ self.axis

    def errors(self, values: Mapping[str, float], goal) -> tuple[float, float]:
        """Position error [m] and direction error [rad] of a Goal; 0 for a direction not asked for."""
        position, axis = self.fk(values)
        distance = float(np.linalg.norm(position - goal.position))
        if goal.direction is None:
            return distance, 0.0
        cross = float(np.linalg.norm(np.cross(axis, goal.direction)))
        return distance, float(np.arctan2(cross, axis @ goal.direction))


def random_values(robot: Robot, rng: np.random.Generator) -> dict[str, float]:
    """Values for all joints that follow no other, within the limits."""
    free = [joint for joint in robot.movable if joint.mimic is None]
    return {j.name: rng.uniform(max(j.lower, -math.pi), min(j.upper, math.pi)) for j in free}
