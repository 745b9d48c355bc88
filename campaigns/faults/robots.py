# SPDX-License-Identifier: Apache-2.0
"""The robots of the campaign, read from the URDF without ik_node: limits to judge by, poses to ask for."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import xacro
from oracles.chain import Array, Chain
from small_arm import arm_urdf

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
SHARING = ('torso_arms',)
BASE = 'base_link'


@dataclass(frozen=True)
class Bounds:
    """The limits of a joint in the URDF; velocity is not scaled."""

    lower: float
    upper: float
    velocity: float
    prismatic: bool


@dataclass(frozen=True, eq=False)
class Robot:
    """A robot as one tool sees it. names: the joints that move this tool."""

    name: str
    tool: str
    text: str
    chain: Chain
    lower: Array
    upper: Array

    @property
    def names(self) -> list[str]:
        return self.chain.names

    @property
    def parameters(self) -> dict[str, Any]:
        """What the node needs to know of it."""
        tips = TIPS[self.name]
        if not self.tool:
            return {'base_link': BASE, 'tip_link': tips['']}
        return {'tools': list(tips), **{f'{tool}.tip_link': tip for tool, tip in tips.items()}}

    def joints(self, rng: np.random.Generator) -> dict[str, float]:
        """Return random positions of the arm, well within its limits."""
        low, high = np.maximum(self.lower, -math.pi), np.minimum(self.upper, math.pi)
        return dict(zip(self.names, low + (high - low) * rng.uniform(0.1, 0.9, low.size), strict=True))

    def tip(self, values: dict[str, float]) -> tuple[Array, Array]:
        """Return rotation (3, 3) and place (3,) of the tip in BASE."""
        turn, place, *_ = self.chain.frames(np.array([values[name] for name in self.names]))
        return turn[0], place[0]


@cache
def text_of(name: str) -> str:
    """Return the URDF of a robot."""
    return arm_urdf() if name == 'little' else xacro.process_file(str(URDF / f'{name}.urdf.xacro')).toxml()


@cache
def bounds(text: str) -> dict[str, Bounds]:
    """Return the limits of the moving joints of a URDF by name."""
    found = {}
    for joint in ElementTree.fromstring(text).findall('joint'):
        kind, limit = joint.get('type'), joint.find('limit')
        if kind in ('revolute', 'continuous', 'prismatic') and limit is not None:
            ends = (-math.inf, math.inf) if kind == 'continuous' else (limit.get('lower', 0), limit.get('upper', 0))
            velocity = float(limit.get('velocity', 0))
            found[joint.get('name')] = Bounds(*map(float, ends), velocity, kind == 'prismatic')
    return found


@cache
def robot(name: str, tool: str) -> Robot:
    """Return a robot by its name with one of its tools."""
    text = text_of(name)
    chain = Chain(text, BASE, TIPS[name][tool], np.array([0.0, 0.0, 1.0]), np.zeros(3))
    every = bounds(text)
    lower, upper = (np.array([getattr(every[joint], end) for joint in chain.names]) for end in ('lower', 'upper'))
    return Robot(name, tool, text, chain, lower, upper)
