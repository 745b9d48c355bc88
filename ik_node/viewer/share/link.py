# SPDX-License-Identifier: Apache-2.0
"""Link: an arm, its joints and its goal as text in an address."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urlencode

import numpy as np
from viser.transforms import SE3, SO3

from ik_node.checks import Array
from ik_node.errors import InputError

VERSION = '1'
LONGEST = 4000  # characters
LARGEST = 1e3  # m or rad


@dataclass(frozen=True, eq=False)
class Link:
    """robot, tool: their names; the only tool has none. joints: positions by name [rad or m].

    T_base_goal (4, 4): of the tip of the tool, None without a goal. directed: the goal has a direction.
    """

    robot: str
    tool: str
    joints: Mapping[str, float] = field(default_factory=dict)
    T_base_goal: Array | None = None
    directed: bool = True

    def text(self) -> str:
        """Return it as the part of an address behind #."""
        said = {'v': VERSION, 'robot': self.robot, 'tool': self.tool}
        if self.T_base_goal is not None:
            said['goal' if self.directed else 'point'] = _listed(SE3.from_matrix(self.T_base_goal).wxyz_xyz)
        said |= {f'joint.{name}': f'{value:.5f}' for name, value in self.joints.items()}
        return urlencode(said)

    @classmethod
    def read(cls, text: str) -> Link:
        """Read what text returns. Raises InputError."""
        if len(text) > LONGEST:
            raise InputError(f'a link has at most {LONGEST} characters, this one has {len(text)}')
        said = dict(parse_qsl(text, keep_blank_values=True))
        if said.get('v') != VERSION:
            raise InputError(f'a link begins with v={VERSION}; this one was made by another version')
        joints = {
            name.removeprefix('joint.'): _number(value)
            for name, value in said.items()
            if name.startswith('joint.')
        }
        pose = None
        for name in ('goal', 'point'):
            if name in said:
                pose = _pose(said[name])
        return cls(said.get('robot', ''), said.get('tool', ''), joints, pose, 'point' not in said)


def _listed(values: Iterable[float]) -> str:
    return ','.join(f'{value:.5f}' for value in values)


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not abs(value) <= LARGEST:
        raise InputError(f'a number of the link must be at most {LARGEST:g}, got {text[:20]}')
    return value


def _pose(text: str) -> Array:
    """Return the pose (4, 4) of w, x, y, z and a position."""
    values = np.array([_number(part) for part in text.split(',')])
    if len(values) != 7 or not np.linalg.norm(values[:4]) > 0.1:
        raise InputError('the goal of the link must be a quaternion and a position')
    turn = SO3(values[:4] / np.linalg.norm(values[:4]))
    return SE3.from_rotation_and_translation(turn, values[4:]).as_matrix().astype(np.float64)
