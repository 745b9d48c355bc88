# SPDX-License-Identifier: Apache-2.0
"""The arm as solvers of a whole pose want it: with a virtual roll joint on the tool axis."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from oracles.chain import Array, Chain, rotations


class UnsupportedError(Exception):
    """This solver cannot be given this arm; the text says why."""


class RolledArm:
    """Joint axes and points at the zero pose, the roll joint last; every frame is parallel to the base there.

    axes, points (n + 1, 3), slides (n + 1,) bool, lower, upper (n + 1,): finite, one turn for endless joints.
    """

    def __init__(self, arm: dict[str, Any]) -> None:
        self.chain = Chain(arm['xml'], arm['base'], arm['tip'], arm['axis'], arm['point'])
        if len(self.chain.axes) != self.chain.n:
            raise UnsupportedError('mimic joint in the arm')
        zero = np.zeros((1, self.chain.n))
        turn, _, axes, points = self.chain.frames(zero)
        place, axis = self.chain.fk(zero)
        self.at_zero = turn[0].T
        self.axes, self.points = np.vstack([axes[0], axis]), np.vstack([points[0], place])
        self.slides = np.append(self.chain.slides, False)
        self.lower = np.nan_to_num(np.append(arm['lower'], -math.pi), neginf=-math.pi)
        self.upper = np.nan_to_num(np.append(arm['upper'], math.pi), posinf=math.pi)

    @property
    def offsets(self) -> Array:
        """From each joint to the next at the zero pose (n + 1, 3)."""
        return np.diff(self.points, axis=0, prepend=np.zeros((1, 3)))

    def target(self, position: Array, direction: Array, seed: Array) -> Array:
        """Return the pose (4, 4) for the last frame: the seed's, turned as little as the direction asks.

        The seed of the roll joint that fits it is 0.
        """
        turn = self.chain.frames(seed)[0][0] @ self.at_zero
        pose = np.eye(4)
        pose[:3, :3] = least_rotation(turn @ self.axes[-1], direction) @ turn
        pose[:3, 3] = position
        return pose

    def urdf(self, roll: str) -> str:
        """Return the URDF of base_link to tool with a roll joint of the type asked for."""
        lines = ['<robot name="arm">', '<link name="base_link"/>']
        parent = 'base_link'
        for i, (axis, offset) in enumerate(zip(self.axes, self.offsets, strict=True)):
            last = i == len(self.axes) - 1
            kind, child = 'prismatic' if self.slides[i] else 'revolute', 'tool' if last else f'link_{i + 1}'
            limits = f'lower="{self.lower[i]:.17g}" upper="{self.upper[i]:.17g}"'
            if last and roll == 'continuous':
                kind, limits = roll, ''
            lines += [
                f'<link name="{child}"/>',
                f'<joint name="joint_{i + 1}" type="{kind}">',
                f'<parent link="{parent}"/><child link="{child}"/>',
                f'<origin xyz="{text(offset)}" rpy="0 0 0"/><axis xyz="{text(axis)}"/>',
                f'<limit {limits} effort="1" velocity="1"/></joint>',
            ]
            parent = child
        return '\n'.join([*lines, '</robot>'])


def text(values: Array) -> str:
    """Return numbers as a URDF attribute, to the last bit."""
    return ' '.join(f'{value:.17g}' for value in values)


def least_rotation(a: Array, b: Array) -> Array:
    """Return the smallest rotation (3, 3) from unit vector a to b; some half turn if they are opposite."""
    normal = np.cross(a, b)
    length = np.linalg.norm(normal)
    if length < 1e-9:
        normal = np.cross(a, np.eye(3)[np.abs(a).argmin()])
    angle = math.atan2(length, a @ b)
    return rotations(normal / np.linalg.norm(normal), np.array([angle]))[0]
