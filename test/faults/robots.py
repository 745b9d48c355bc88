"""The arms of the campaign, and their limits, read from the URDF without ik_node."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from small_arm import PARAMETERS, arm_urdf

from ik_node.model.arm import Arm
from ik_node.model.description import load_description
from ik_node.ros.share import share_path


@dataclass(frozen=True)
class JointBounds:
    """The limits of a joint in the URDF; velocity is that of the URDF, not scaled."""

    lower: float
    upper: float
    velocity: float
    prismatic: bool


@dataclass(frozen=True, eq=False)
class Robot:
    """A robot of the campaign: its description, the node's parameters for it, and its arm to make goals."""

    name: str
    text: str
    parameters: dict[str, Any]
    arm: Arm

    def joints(self, rng: np.random.Generator) -> dict[str, float]:
        """Return random positions of the arm, well within its limits."""
        low, high = np.maximum(self.arm.lower, -math.pi), np.minimum(self.arm.upper, math.pi)
        values = low + (high - low) * rng.uniform(0.1, 0.9, self.arm.n)
        return dict(zip(self.arm.joint_names, values.tolist(), strict=True))


def bounds(text: str) -> dict[str, JointBounds]:
    """Return the limits of the moving joints of a URDF by name."""
    found = {}
    for joint in ElementTree.fromstring(text).findall('joint'):
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


@cache
def robot(name: str) -> Robot:
    """Return a robot by its name: one of ROBOTS."""
    if name == 'little':
        text, parameters = arm_urdf(), dict(PARAMETERS)
    else:
        text, parameters = load_description(share_path('urdf', f'{name}.urdf.xacro')), {}
    arm = Arm.from_urdf(text, base_link=parameters.get('base_link'), tip_link=parameters.get('tip_link'))
    return Robot(name, text, parameters, arm)


ROBOTS = ('little', 'seed_arm', 'so101_like', 'prismatic_arm')
