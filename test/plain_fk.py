"""Forward kinematics written a second time, from the URDF text alone."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import transforms3d
from lxml import etree

from ik_node.model.robot import Robot


def random_values(robot: Robot, rng: np.random.Generator) -> dict[str, float]:
    """Values for all joints that follow no other, within the limits."""
    free = [joint for joint in robot.movable if joint.mimic is None]
    return {j.name: rng.uniform(max(j.lower, -math.pi), min(j.upper, math.pi)) for j in free}


def plain_fk(text: str, link: str, values: dict[str, float]) -> np.ndarray:
    """Forward kinematics from the text alone, by lxml and transforms3d; mimics of driving joints only."""
    root = etree.fromstring(text.encode(), etree.XMLParser(recover=True))
    joints = {j.find('child').get('link'): j for j in root.iterchildren('joint')}
    pose = np.eye(4)
    while link in joints:
        joint = joints[link]

        def three(tag: str, attribute: str, default: str, joint: Any = joint) -> np.ndarray:
            element = joint.find(tag)
            given = default if element is None else element.get(attribute, default)
            return np.array([float(word) for word in given.split()])

        step = np.eye(4)
        step[:3, :3] = transforms3d.euler.euler2mat(*three('origin', 'rpy', '0 0 0'), 'sxyz')
        step[:3, 3] = three('origin', 'xyz', '0 0 0')
        mimic, name, scale, offset = joint.find('mimic'), joint.get('name'), 1.0, 0.0
        if mimic is not None:
            name = mimic.get('joint')
            scale, offset = float(mimic.get('multiplier', 1)), float(mimic.get('offset', 0))
        axis, kind = three('axis', 'xyz', '1 0 0'), joint.get('type')
        motion = np.eye(4)
        if kind in ('revolute', 'continuous'):
            motion[:3, :3] = transforms3d.axangles.axangle2mat(axis, scale * values[name] + offset)
        elif kind == 'prismatic':
            motion[:3, 3] = axis / np.linalg.norm(axis) * (scale * values[name] + offset)
        pose = step @ motion @ pose
        link = joint.find('parent').get('link')
    return pose
