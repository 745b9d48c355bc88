# SPDX-License-Identifier: Apache-2.0
"""Which limits, lengths and values are questioned, and that no real arm is."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from small_arm import arm_urdf

from ik_node import Arm, Goal, IkSolver
from ik_node.cli import inspect, solve
from ik_node.errors import UrdfError
from ik_node.model import plausibility
from ik_node.model.plausibility import Span, doubtful_lengths, doubtful_limits


def span(lower: float, upper: float, velocity: float = 2.0, prismatic: bool = False) -> Span:
    return Span('a', lower, upper, velocity, prismatic)


@pytest.mark.parametrize(
    ('limits', 'asked'),
    [
        ((-90.0, 90.0, 60.0), 'degrees'),
        ((0.0, 270.0), 'degrees'),
        ((-180.0, 180.0), 'degrees'),
        ((-1.57, 1.57, 180.0), 'degrees'),
        ((0.0, 300.0, 0.2, True), 'millimetres'),
        ((-math.inf, math.inf, 3.0), ''),
        ((-2.0 * math.pi, 2.0 * math.pi, 13.0), ''),
        ((-12.57, 12.57), ''),
        ((-100.0, 100.0), ''),  # a placeholder
        ((-1.57, 1.57, 100.0), ''),
        ((0.0, 12.0, 2.0, True), ''),  # a rail
    ],
)
def test_limits_are_questioned(limits: tuple[Any, ...], asked: str) -> None:
    found = doubtful_limits([span(*limits), span(-1.0, 1.0)])
    assert len(found) == bool(asked)
    assert all(asked in sentence for sentence in found)


@pytest.mark.parametrize(
    ('value', 'asked'),
    [
        (1.62, ''),
        (-2.0, ''),
        (40.1, 'degrees'),
        (-57.3, 'degrees'),
        (300.0, 'degrees'),
        (2048.0, 'ticks'),
        (1.0 + 2.0 * math.pi, 'whole turn'),
        (1.5 - 2.0 * math.pi, 'whole turn'),
        (2.9, 'degrees'),
    ],
)
def test_a_measurement_far_outside_is_questioned(value: float, asked: str) -> None:
    said = plausibility.measured_outside(span(-1.57, 1.57), value)
    assert bool(said) == bool(asked)
    assert asked in said


def test_a_measurement_in_millimetres_is_questioned() -> None:
    rail = span(0.0, 0.4, 0.1, True)
    assert 'millimetres' in plausibility.measured_outside(rail, 250.0)
    assert not plausibility.measured_outside(rail, 0.45)


def test_a_leap_is_questioned_but_not_a_whole_turn_of_a_wheel() -> None:
    wheel = span(-math.inf, math.inf)
    assert not plausibility.measured_leap(wheel, 3.1, 3.1 - 2.0 * math.pi, 0.01)
    assert plausibility.measured_leap(wheel, 0.0, 1.0, 0.01)
    assert not plausibility.measured_leap(wheel, 0.0, 1.0, 0.5)


def test_no_real_arm_is_questioned(shared: Any) -> None:
    for folder in ('arms', 'broken_urdf', 'synthetic'):
        for path in sorted((shared / folder).glob('*.[uU]*')):
            try:
                arm = Arm.from_file(path)
            except UrdfError:  # no arm, or several
                continue
            assert not [sentence for sentence in arm.warnings if sentence.endswith('?')], path


def test_links_in_millimetres_are_questioned() -> None:
    metres, millimetres = Arm.from_urdf(arm_urdf()), Arm.from_urdf(arm_urdf().replace('0.15 0 0', '150 0 0'))
    assert not metres.warnings
    assert 'millimetres' in millimetres.warnings[-1]
    assert not doubtful_lengths({'boom': 12.0})


def test_a_goal_in_millimetres_is_questioned() -> None:
    solver = IkSolver(Arm.from_urdf(arm_urdf()))
    assert 'millimetres' in str(solver.solve(Goal((300.0, 0.0, 200.0))).reason)
    assert 'millimetres' not in str(solver.solve(Goal((3.0, 0.0, 2.0))).reason)


def test_programs_ask(capsys: pytest.CaptureFixture[str], tmp_path: Any) -> None:
    path = tmp_path / 'arm.urdf'
    path.write_text(arm_urdf(lower=-90.0, upper=90.0))
    inspect.main([str(path)])
    assert 'are these degrees?' in capsys.readouterr().out
    solve.main([str(path), '0.3', '0', '0.2', '--json'])
    assert 'are these degrees?' in capsys.readouterr().err
    path.write_text(arm_urdf())
    assert solve.main([str(path), '0.3', '0', '0.2', '--seed', '90', '0', '0', '0', '0']) == 2
    assert 'are these degrees?' in capsys.readouterr().err


def test_seeds_up_to_a_turn_may_be_meant() -> None:
    arm = Arm.from_urdf(arm_urdf())
    assert not arm.doubt(np.full(5, 6.2))
    assert arm.doubt([0.0, 0.0, -45.0, 0.0, 0.0])


def test_changes_of_poses_are_not_poses() -> None:
    steps = np.random.default_rng(0).normal(0.0, 0.01, (50, 3))
    assert 'delta actions' in plausibility.doubtful_positions(steps, 0.5)
    assert not plausibility.doubtful_positions(steps + np.array([0.2, 0.0, 0.1]), 0.5)


@pytest.mark.parametrize(('scale', 'asked'), [('', True), ('scale="0.001 0.001 0.001"', False)])
def test_a_mesh_in_millimetres_is_questioned(
    capsys: pytest.CaptureFixture[str], tmp_path: Any, scale: str, asked: bool
) -> None:
    trimesh = pytest.importorskip('trimesh')
    trimesh.creation.box((120.0, 40.0, 40.0)).export(tmp_path / 'arm.stl')
    shape = f'<geometry><mesh filename="arm.stl" {scale}/></geometry>'
    text = arm_urdf().replace('<link name="l3"/>', f'<link name="l3"><visual>{shape}</visual></link>')
    path = tmp_path / 'arm.urdf'
    path.write_text(text)
    inspect.main([str(path)])
    assert ('is this one in millimetres' in capsys.readouterr().out) == asked
