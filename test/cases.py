# SPDX-License-Identifier: Apache-2.0
"""The arms that tests run on: those shipped in urdf/ and those of ../shared/arms, each with its tools."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache

import pytest
from oracles.plain import PlainArm
from shared_files import SHARED

from ik_node import Arm, IkSolver
from ik_node.model.urdf.reader import load_description
from ik_node.startup.arguments import ARMS, SUFFIX, URDF

AXES = {'x': (1, 0, 0), 'y': (0, 1, 0), 'z': (0, 0, 1), '-x': (-1, 0, 0), '-y': (0, -1, 0), '-z': (0, 0, -1)}


@dataclass(frozen=True)
class Case:
    """One arm with one tool; path '' stands for ../shared being absent."""

    label: str
    path: str
    tip_link: str
    tool_axis: tuple[float, float, float]
    tool_point: tuple[float, float, float]
    rank: int  # generic rank of the task's Jacobian, 0 if not known beforehand
    mimics: int = 0  # mimic joints in the chain

    def arm(self) -> Arm:
        """The arm as ik_node reads it; skips the test where the file is absent."""
        return _arm(self)

    def plain(self) -> PlainArm:
        """The same arm read by test/oracles/plain.py."""
        return _plain(self)


def _text(case: Case) -> str:
    if not case.path:
        pytest.skip(f'{SHARED / "arms"} is absent: set IK_NODE_SHARED to the directory with arms/')
    return load_description(case.path)


@cache
def _arm(case: Case) -> Arm:
    return Arm.from_urdf(_text(case), case.tip_link, tool_axis=case.tool_axis, tool_point=case.tool_point)


@cache
def _plain(case: Case) -> PlainArm:
    return PlainArm(_text(case), case.tip_link, case.tool_axis, case.tool_point)


def _unit(axis):
    length = sum(value * value for value in axis) ** 0.5
    return tuple(value / length for value in axis)


def shipped_cases() -> list[Case]:
    """One case per arm in urdf/."""
    return [Case(name, str(URDF / f'{name}{SUFFIX}'), 'tool0', (0, 0, 1), (0, 0, 0), 0) for name in ARMS]


def shared_cases() -> list[Case]:
    """One case per tip in ../shared/arms/index.json."""
    index = SHARED / 'arms' / 'index.json'
    if not index.exists():
        return [Case('shared_absent', '', '', (0, 0, 1), (0, 0, 0), 0)]
    cases = []
    for name, entry in json.loads(index.read_text()).items():
        for number, tip in enumerate(entry['tips']):
            axis = tip['approach_axis']
            cases.append(
                Case(
                    name if number == 0 else f'{name}_{number + 1}',
                    str(SHARED / 'arms' / f'{name}.urdf'),
                    tip['tip_link'],
                    AXES[axis] if isinstance(axis, str) else _unit(axis),
                    tuple(tip['tool_point_in_tip']),
                    tip['task5_generic_rank'],
                    len(tip['mimic_in_chain']),
                )
            )
    return cases


BY_NAME = {case.label: case for case in [*shipped_cases(), *shared_cases()]}
TOLERANCE = 1e-6  # m and rad, of new_solver


def arm_of(name: str) -> Arm:
    """The arm of the case with this label; skips the test where ../shared, which has it, is absent."""
    return BY_NAME.get(name, Case(name, '', '', AXES['z'], (0, 0, 0), 0)).arm()


FEW = ('seed_arm', 'so101_like', 'prismatic_arm', 'ball_joint_arm', 'magician_rail', 'ur5e')


def few_cases() -> list[Case]:
    """Arms that differ in structure: all arms are in test_conformance, which takes long."""
    return [BY_NAME[name] for name in FEW if name in BY_NAME]


def new_solver(arm: Arm, **options) -> IkSolver:
    """A solver with the same tolerance for both errors."""
    return IkSolver(arm, position_tolerance=TOLERANCE, direction_tolerance=TOLERANCE, **options)
