# SPDX-License-Identifier: Apache-2.0
"""Which limits, lengths and values are questioned, and that no real arm is."""

from __future__ import annotations

import math

import numpy as np
import pytest
from small_arm import arm_urdf

from ik_node import Arm, Goal, IkSolver
from ik_node.errors import UrdfError
from ik_node.model import plausibility
from ik_node.model.plausibility import Span, doubtful_lengths, doubtful_limits
from ik_node.tools import inspect, solve


def span(lower, upper, velocity=2.0, prismatic=False) -> Span:
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
def test_limits_are_questioned(limits, asked):
    found = doubtful_limits([span(*limits), span(-1.0, 1.0)])
    assert len(found) == bool(asked)
    assert all(asked in sentence for sentence in found)


HINGE, RAIL, WHEEL = span(-1.57, 1.57), span(0.0, 0.4, 0.1, True), span(-math.inf, math.inf)


@pytest.mark.parametrize(
    ('joint', 'value', 'asked'),
    [
        (HINGE, 1.62, ''),
        (HINGE, -2.0, ''),
        (HINGE, 40.1, 'degrees'),
        (HINGE, -57.3, 'degrees'),
        (HINGE, 300.0, 'degrees'),
        (HINGE, 2048.0, 'ticks'),
        (HINGE, 1.0 + 2.0 * math.pi, 'whole turn'),
        (HINGE, 1.5 - 2.0 * math.pi, 'whole turn'),
        (HINGE, 2.9, 'degrees'),
        (RAIL, 250.0, 'millimetres'),
        (RAIL, 0.45, ''),
    ],
)
def test_a_measurement_far_outside_is_questioned(joint, value, asked):
    said = plausibility.measured_outside(joint, value)
    assert bool(said) == bool(asked)
    assert asked in said


def test_a_leap_is_questioned_but_not_a_whole_turn_of_a_wheel():
    assert not plausibility.measured_leap(WHEEL, 3.1, 3.1 - 2.0 * math.pi, 0.01)
    assert plausibility.measured_leap(WHEEL, 0.0, 1.0, 0.01)
    assert not plausibility.measured_leap(WHEEL, 0.0, 1.0, 0.5)


@pytest.mark.slow
def test_no_real_arm_is_questioned(shared):
    for folder in ('arms', 'broken_urdf', 'synthetic'):
        for path in sorted((shared / folder).glob('*.[uU]*')):
            try:
                arm = Arm.from_file(path)
            except UrdfError:  # no arm, or several
                continue
            assert not [sentence for sentence in arm.warnings if sentence.endswith('?')], path


def test_lengths_and_goals_in_millimetres_are_questioned():
    metres, millimetres = Arm.from_urdf(arm_urdf()), Arm.from_urdf(arm_urdf().replace('0.15 0 0', '150 0 0'))
    assert not metres.warnings
    assert 'millimetres' in millimetres.warnings[-1]
    assert not doubtful_lengths({'boom': 12.0})
    solver = IkSolver(metres)
    assert 'millimetres' in str(solver.solve(Goal((300.0, 0.0, 200.0))).reason)
    assert 'millimetres' not in str(solver.solve(Goal((3.0, 0.0, 2.0))).reason)


def test_seeds_up_to_a_turn_may_be_meant():
    arm = Arm.from_urdf(arm_urdf())
    assert not arm.doubt(np.full(5, 6.2))
    assert arm.doubt([0.0, 0.0, -45.0, 0.0, 0.0])


def test_changes_of_poses_are_not_poses():
    steps = np.random.default_rng(0).normal(0.0, 0.01, (50, 3))
    assert 'delta actions' in plausibility.doubtful_positions(steps, 0.5)
    assert not plausibility.doubtful_positions(steps + np.array([0.2, 0.0, 0.1]), 0.5)


@pytest.mark.slow
def test_programs_ask(capsys, tmp_path):
    path, asked = tmp_path / 'arm.urdf', 'are these degrees?'
    path.write_text(arm_urdf(lower=-90.0, upper=90.0))
    inspect.main([str(path)])
    assert asked in capsys.readouterr().out
    solve.main([str(path), '0.3', '0', '0.2', '--json'])
    assert asked in capsys.readouterr().err
    path.write_text(arm_urdf())
    assert solve.main([str(path), '0.3', '0', '0.2', '--seed', '90', '0', '0', '0', '0']) == 2
    assert asked in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize(('scale', 'asked'), [('', True), ('scale="0.001 0.001 0.001"', False)])
def test_a_mesh_in_millimetres_is_questioned(capsys, tmp_path, scale, asked):
    trimesh = pytest.importorskip('trimesh')
    trimesh.creation.box((120.0, 40.0, 40.0)).export(tmp_path / 'arm.stl')
    shape = f'<visual><geometry><mesh filename="arm.stl" {scale}/></geometry></visual>'
    path = tmp_path / 'arm.urdf'
    path.write_text(arm_urdf().replace('<link name="l3"/>', f'<link name="l3">{shape}</link>'))
    inspect.main([str(path)])
    assert ('millimetres' in capsys.readouterr().out) == asked
