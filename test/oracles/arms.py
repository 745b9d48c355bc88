# SPDX-License-Identifier: Apache-2.0
"""The arms in urdf/ and the real ones in ../shared/arms, each with an independent twin."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ik_node import Arm, Goal, IkSolver
from ik_node.model.urdf.reader import load_description
from ik_node.startup.arguments import ARMS, SUFFIX, URDF
from oracles.chain import Array, Chain, angle_between, into_limits, within

ROOT = Path(__file__).resolve().parents[2]
SHARED = Path(os.environ.get('IK_NODE_SHARED') or ROOT.parent / 'shared')
Z, ORIGIN = (0.0, 0.0, 1.0), (0.0, 0.0, 0.0)
TOLERANCE = 1e-6  # of position [m] and direction [rad], the same for every solver


@dataclass(frozen=True)
class Task:
    """An arm with its tool, ours and its independent twin; position_only: goals without a direction."""

    name: str
    path: Path
    base: str
    tip: str
    axis: tuple[float, float, float]
    point: tuple[float, float, float]
    shipped: bool
    position_only: bool = False

    @cached_property
    def xml(self) -> str:
        """The URDF text, without limits of ball joints: peers and references know none, see balls.py."""
        return re.sub('<ik_node>.*?</ik_node>', '', load_description(self.path), flags=re.DOTALL)

    @cached_property
    def arm(self) -> Arm:
        """ik_node's arm."""
        return Arm.from_urdf(self.xml, self.tip, tool_axis=self.axis, tool_point=self.point, base_link=self.base)

    @cached_property
    def chain(self) -> Chain:
        """The independent FK, its joints in the arm's order."""
        chain = Chain(self.xml, self.base, self.tip, self.arm.tool_axis, self.arm.tool_point)
        if tuple(chain.names) != self.arm.joint_names:
            raise ValueError(f'{self.name}: joints {chain.names}, but ik_node reads {self.arm.joint_names}')
        return chain

    def goals(self, count: int, seed: int = 0) -> tuple[Array, Array, Array]:
        """Return positions, directions (count, 3) and the joints q (count, n) at which FK gives them."""
        q = self.arm.sample(np.random.default_rng(seed), count)
        return *self.chain.fk(q), q

    def goal(self, position: Array, direction: Array) -> Goal:
        """Return ik_node's goal."""
        return Goal(position, None if self.position_only else direction)

    def errors(self, q: Array, positions: Array, directions: Array) -> tuple[Array, Array, Array]:
        """Judge answers q (N, n): position errors [m] and direction errors [rad], inf outside the limits; q.

        Answers are turned into the limits by whole turns first; NaN rows (no answer) stay NaN.
        """
        q, inside = into_limits(q, np.array([self.arm.lower, self.arm.upper]), self.arm.prismatic)
        point, axis = self.chain.fk(q)
        position = np.where(inside, np.linalg.norm(point - positions, axis=-1), np.inf)
        return position, np.where(inside, angle_between(axis, directions), np.inf), q

    def good(self, q: Array, positions: Array, directions: Array) -> Array:
        """Whether answers q (N, n) meet their goals at TOLERANCE within the limits."""
        position, direction, _ = self.errors(q, positions, directions)
        return within(position, TOLERANCE) & (within(direction, TOLERANCE) | self.position_only)


def solver_for(arm: Arm, **options: Any) -> IkSolver:
    """Return ik_node's solver at TOLERANCE, its kernels compiled."""
    tolerances = {'position_tolerance': TOLERANCE, 'direction_tolerance': TOLERANCE}
    return IkSolver(arm, compile='wait', **tolerances, **options)


def shipped_arms() -> list[Task]:
    """The arms in urdf/ with one tool: base_link to tool0, tool axis z."""
    return [Task(name, URDF / f'{name}{SUFFIX}', 'base_link', 'tool0', Z, ORIGIN, True) for name in ARMS]


def real_arms() -> list[Task]:
    """The arms in ../shared/arms, one for each tip of its index; none where that is absent."""
    index = SHARED / 'arms' / 'index.json'
    if not index.exists():
        return []
    tasks = []
    for name, entry in json.loads(index.read_text()).items():
        for i, tip in enumerate(entry['tips']):
            suffix = f'#{i + 1}' if len(entry['tips']) > 1 else ''
            tasks.append(
                Task(
                    name + suffix,
                    index.parent / f'{name}.urdf',
                    entry['base_link'],
                    tip['tip_link'],
                    axis_of(tip['approach_axis']),
                    tuple(tip['tool_point_in_tip']),
                    False,
                )
            )
    return tasks


def made_up_arms() -> list[Task]:
    """An arm of the oracles' own: five skew hinges, no two parallel or crossing, so no closed form."""
    return [Task('skew', Path(__file__).with_name('skew.urdf'), 'base_link', 'tool0', Z, ORIGIN, False)]


def chosen(names: str | None) -> list[Task]:
    """Return the arms named, separated by commas, or all. Raises KeyError for a name that there is not."""
    known = {task.name: task for task in shipped_arms() + made_up_arms() + real_arms()}
    if names is None:
        return list(known.values())
    for name in names.split(','):
        if name not in known:
            raise KeyError(f'there is no arm {name!r}, only {", ".join(known)}')
    return [known[name] for name in names.split(',')]


def axis_of(value: str | list[float]) -> tuple[float, ...]:
    """Return the unit vector that 'x', '-z' or a list of three numbers says."""
    if isinstance(value, str):
        return tuple(np.eye(3)['xyz'.index(value[-1])] * (-1 if value.startswith('-') else 1))
    return tuple(np.array(value) / np.linalg.norm(value))
