# SPDX-License-Identifier: Apache-2.0
"""Arms with a ball joint, made from random numbers, and a judge of its limits that reads the URDF itself."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass

import numpy as np

from benchmarks.chain import Array, rotations

PLACES = ('shoulder', 'wrist')
ORDERS = ('xyz', 'zyx', 'zyz')  # universal pair first, twist first, proper Euler angles
AXES = {'x': '1 0 0', 'y': '0 1 0', 'z': '0 0 1'}


@dataclass(frozen=True)
class BallArm:
    """A URDF with one declared ball; tool_axis and tool_point as for Arm. name: place, order, seed."""

    name: str
    text: str
    tool_axis: tuple[float, float, float]
    tool_point: tuple[float, float, float]


def ball_arm(place: str, order: str, seed: int, cone: bool = True) -> BallArm:
    """Return the arm of this seed with the ball at the shoulder or at the wrist.

    Shoulder: the ball, elbow and wrist. Wrist: yaw, pitch and the ball. Axes have random signs. cone: with
    limits of the ball, else the joints alone limit it, and the middle one can pass where they lock.
    """
    rng = np.random.default_rng((seed, PLACES.index(place), ORDERS.index(order)))
    upper, fore, tool = rng.uniform(0.15, 0.4), rng.uniform(0.15, 0.4), rng.uniform(0.08, 0.2)
    base = ' '.join(f'{value:.4f}' for value in rng.uniform(-1.0, 1.0, 3))
    swing, twist = rng.uniform(0.4, 1.4), rng.uniform(0.8, 2.5)
    most = (2.9, 2.6, 2.9) if order == 'zyz' or not cone else (2.0, 2.0, 2.9)
    ball = [(f'ball{k}', axis, most[k]) for k, axis in enumerate(order)]
    if place == 'shoulder':
        chain = [(*ball[0], 0.1), *((*joint, 0.0) for joint in ball[1:])]
        chain += [('elbow', 'y', 2.4, upper), ('wrist', 'y', 2.0, fore)]
    else:
        chain = [('yaw', 'z', 2.9, 0.1), ('pitch', 'y', 1.9, upper)]
        chain += [(*ball[0], fore), *((*joint, 0.0) for joint in ball[1:])]
    links, parent = ['<link name="base"/>'], 'base'
    for k, (name, axis, end, length) in enumerate(chain):
        sign = '-' if rng.random() < 0.5 else ''
        links.append(
            f'<link name="{name}_link"/><joint name="{name}" type="revolute"><parent link="{parent}"/>'
            f'<child link="{name}_link"/><origin xyz="0 0 {length:.6f}" rpy="{"0 0 0" if k else base}"/>'
            f'<axis xyz="{AXES[axis].replace("1", sign + "1")}"/>'
            f'<limit lower="{-end}" upper="{end}" velocity="2" effort="1"/></joint>'
        )
        parent = f'{name}_link'
    twisting = '' if order == 'zyz' else f' twist_joint="ball{0 if order == "zyx" else 2}"'
    limits = f' swing="{swing:.4f}"' if cone else ''
    if cone and seed % 2:
        limits += f' twist_lower="{-twist:.4f}" twist_upper="{twist:.4f}"'
    element = f'<ball joints="ball0 ball1 ball2"{twisting}{limits}/>'
    text = f'<robot name="ball_arm">{"".join(links)}<ik_node>{element}</ik_node></robot>'
    name = f'{place} {order} {seed}'
    return BallArm(name, text, (0.6, 0.0, 0.8), (float(tool), 0.03, 0.05))


class Judge:
    """Swing and twist of the declared ball of a URDF, by rotation matrices."""

    def __init__(self, text: str, names: tuple[str, ...]) -> None:
        """names: of the arm's joints, in the order of q."""
        root = ElementTree.fromstring(text)
        element = root.find('ik_node/ball')
        assert element is not None
        joints = {joint.get('name'): joint for joint in root.findall('joint')}
        self._joints = (element.get('joints') or '').split()
        self._columns = [names.index(name) for name in self._joints]
        self._axes = np.array(
            [[float(part) for part in joints[name].find('axis').get('xyz').split()] for name in self._joints]  # type: ignore[union-attr]
        )
        self.swing = float(element.get('swing') or math.inf)
        self._twist = [
            float(element.get(f'twist_{end}') or default)
            for end, default in (('lower', -math.inf), ('upper', math.inf))
        ]
        self._twist_joint = element.get('twist_joint')

    def excess(self, q: Array) -> float:
        """Return by how much [rad] q (n,) is outside the cone or the twist limits; negative: inside."""
        angles = q[self._columns]
        turns = [rotations(axis, np.array([angle])) for axis, angle in zip(self._axes, angles, strict=True)]
        whole = (turns[0] @ turns[1] @ turns[2])[0]
        if self._twist_joint is None:
            rest, twist = self._axes[0], angles[0] + (self._axes[0] @ self._axes[2]) * angles[2]
        else:
            at = self._joints.index(self._twist_joint)
            rest, twist = self._axes[at], angles[at]
        moved = whole @ rest
        swing = math.atan2(float(np.linalg.norm(np.cross(moved, rest))), float(moved @ rest))
        return max(swing - self.swing, float(twist) - self._twist[1], self._twist[0] - float(twist))
