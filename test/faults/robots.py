# SPDX-License-Identifier: Apache-2.0
"""The robots of the campaign, read from the URDF without ik_node: limits to judge by, poses to ask for."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import xacro
from small_arm import PARAMETERS, arm_urdf
from transforms3d.axangles import axangle2mat
from transforms3d.euler import euler2mat

URDF = Path(__file__).resolve().parents[2] / 'urdf'
# By robot, the tip of each tool; one tool has no name. Tools of torso_arms share a joint.
TIPS: dict[str, dict[str, str]] = {
    'little': {'': 'tool0'},
    'seed_arm': {'': 'tool0'},
    'so101_like': {'': 'tool0'},
    'prismatic_arm': {'': 'tool0'},
    'two_arms': {'left': 'left_tool0', 'right': 'right_tool0'},
    'torso_arms': {'left': 'left_tool0', 'right': 'right_tool0'},
}
ROBOTS = tuple(TIPS)
SHARING = frozenset({'torso_arms'})
BASE = 'base_link'


@dataclass(frozen=True)
class JointBounds:
    """The limits of a joint in the URDF; velocity is that of the URDF, not scaled."""

    lower: float
    upper: float
    velocity: float
    prismatic: bool


class Arm:
    """The joints from BASE to a tip, without mimic joints."""

    def __init__(self, text: str, tip: str) -> None:
        joints = {joint.find('child').get('link'): joint for joint in _joints(text)}
        self._chain, link = [], tip
        while link != BASE:
            self._chain.insert(0, joints[link])
            link = joints[link].find('parent').get('link')
        every = bounds(text)
        self.joint_names = tuple(n for n in (str(joint.get('name')) for joint in self._chain) if n in every)
        self.lower = np.array([every[name].lower for name in self.joint_names])
        self.upper = np.array([every[name].upper for name in self.joint_names])

    def tip(self, values: Mapping[str, float]) -> np.ndarray:
        """Return T_base_tip (4, 4) for joints by name."""
        T = np.eye(4)
        for joint in self._chain:
            T = T @ _transform(_numbers(joint, 'origin', 'xyz'), euler2mat(*_numbers(joint, 'origin', 'rpy')))
            axis, value = _numbers(joint, 'axis', 'xyz', '1 0 0'), values.get(str(joint.get('name')), 0.0)
            if joint.get('type') == 'prismatic':
                T = T @ _transform(axis / np.linalg.norm(axis) * value, np.eye(3))
            elif joint.get('type') != 'fixed':
                T = T @ _transform(np.zeros(3), axangle2mat(axis, value))
        return T


@dataclass(frozen=True, eq=False)
class Robot:
    """A robot of the campaign: its description, the node's parameters for it, and the arm of one tool."""

    name: str
    tool: str
    text: str
    parameters: dict[str, Any]
    arm: Arm

    def joints(self, rng: np.random.Generator) -> dict[str, float]:
        """Return random positions of the arm, well within its limits."""
        low, high = np.maximum(self.arm.lower, -math.pi), np.minimum(self.arm.upper, math.pi)
        values = low + (high - low) * rng.uniform(0.1, 0.9, low.size)
        return dict(zip(self.arm.joint_names, values.tolist(), strict=True))


def bounds(text: str) -> dict[str, JointBounds]:
    """Return the limits of the moving joints of a URDF by name."""
    found = {}
    for joint in _joints(text):
        kind, limit = joint.get('type'), joint.find('limit')
        if kind not in ('revolute', 'continuous', 'prismatic') or limit is None:
            continue
        endless = kind == 'continuous'
        found[str(joint.get('name'))] = JointBounds(
            -math.inf if endless else float(limit.get('lower', 0.0)),
            math.inf if endless else float(limit.get('upper', 0.0)),
            float(limit.get('velocity', 0.0)),
            kind == 'prismatic',
        )
    return found


def _joints(text: str) -> list[Any]:
    return ElementTree.fromstring(text).findall('joint')


def _numbers(joint: Any, tag: str, attribute: str, default: str = '0 0 0') -> np.ndarray:
    element = joint.find(tag)
    given = default if element is None else element.get(attribute, default)
    return np.array([float(word) for word in given.split()])


def _transform(place: np.ndarray, rotation: np.ndarray) -> np.ndarray:
    T = np.eye(4)
    T[:3, 3], T[:3, :3] = place, rotation
    return T


@cache
def text_of(name: str) -> str:
    """Return the URDF of a robot by its name: one of ROBOTS."""
    if name == 'little':
        return arm_urdf()
    return str(xacro.process_file(str(URDF / f'{name}.urdf.xacro')).toxml())


@cache
def robot(name: str, tool: str | None = None) -> Robot:
    """Return a robot by its name, one of ROBOTS, with one of its tools, None: the first."""
    tips, text = TIPS[name], text_of(name)
    tool = next(iter(tips)) if tool is None else tool
    if tool:
        parameters: dict[str, Any] = {'tools': list(tips)}
        parameters.update({f'{each}.tip_link': tip for each, tip in tips.items()})
    else:
        parameters = dict(PARAMETERS) if name == 'little' else {}
    return Robot(name, tool, text, parameters, Arm(text, tips[tool]))
