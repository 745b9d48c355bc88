# SPDX-License-Identifier: Apache-2.0
"""solve_table: the results of solve_batch, row by row, and a reason for every row that holds no goal."""

from __future__ import annotations

import itertools
import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from cases import arm_of
from scipy.spatial.transform import Rotation

from ik_node import Arm, Goal, IkSolver, InputError
from ik_node.model.urdf.reader import rotation
from ik_node.steady import steady
from ik_node.tools.goal_columns import GoalColumns, doubt_of_angles
from ik_node.tools.solve_table import solve_table

COUNT = 40
XYZ = {'x': [1.0], 'y': [1.0], 'z': [1.0]}


def solver_of(name: str, **options) -> IkSolver:
    return IkSolver(arm_of(name), compile='wait', **options)


def goals_of(arm: Arm, count: int = COUNT):
    """Half of the directions at random, mostly out of reach."""
    rng = np.random.default_rng(2)
    positions, directions = map(np.array, zip(*(arm.fk(q) for q in arm.sample(rng, count)), strict=True))
    turned = rng.normal(size=(count, 3))
    directions[::2] = (turned / np.linalg.norm(turned, axis=1)[:, None])[::2]
    return positions, directions


def table_of(positions, directions=None, **more) -> pa.Table:
    columns = dict(zip('xyz', positions.T, strict=True))
    if directions is not None:
        columns |= dict(zip(('dx', 'dy', 'dz'), directions.T, strict=True))
    return pa.table(columns | more)


def joints_of(arm: Arm, table: pa.Table):
    return np.column_stack([table[name].to_numpy() for name in arm.joint_names])


@pytest.mark.slow
@pytest.mark.parametrize('name', ['seed_arm', 'so101_like', 'prismatic_arm'])
def test_rows_are_those_of_solve_batch(name):
    solver = solver_of(name)
    positions, directions = goals_of(solver.arm)
    for axes in (directions, None):
        found = solver.solve_batch(positions, axes)
        table = solve_table(solver, table_of(positions, axes))
        np.testing.assert_array_equal(joints_of(solver.arm, table), found.q)
        np.testing.assert_array_equal(table['position_error'].to_numpy(), found.position_error)
        if axes is None:  # not zero: no direction was asked for
            assert table['direction_error'].null_count == len(table)
        else:
            np.testing.assert_array_equal(table['direction_error'].to_numpy(), found.direction_error)
        assert table['status'].to_pylist() == [status.value for status in found.status]
        for k, row in enumerate(table.select(['reason', 'reason_text']).to_pylist()):
            reason = solver.solve(Goal(positions[k], None if axes is None else axes[k])).reason
            assert row['reason'] == (reason and reason.cause.name.lower())
            assert row['reason_text'] == (reason and str(reason))


def test_lists_other_names_seeds_and_directions_of_any_length():
    solver = solver_of('seed_arm')
    positions, directions = goals_of(solver.arm)
    seeds = solver.arm.sample(np.random.default_rng(3), COUNT)
    table = pa.table({'p': positions.tolist(), 'd': directions.tolist(), 's': seeds.tolist()})
    found = solve_table(solver, table, position=['p'], direction=['d'], seed=['s'])
    expected = solver.solve_batch(positions, directions, seeds)
    np.testing.assert_array_equal(joints_of(solver.arm, found), expected.q)
    lengths = np.resize([1e-300, 1e-3, 7.0, 1e300], COUNT)
    found = solve_table(solver, table_of(positions, directions * lengths[:, None]))
    expected = solver.solve_batch(positions, directions)
    np.testing.assert_allclose(joints_of(solver.arm, found), expected.q, atol=1e-6)
    assert solve_table(solver, table_of(np.empty((0, 3)))).num_rows == 0


@pytest.mark.parametrize(
    ('names', 'unused'),
    [
        ('x y z qx qy qz qw', [['qx', 'qy', 'qz', 'qw']]),
        ('x y z roll pitch yaw gripper', [['roll', 'pitch', 'yaw']]),
        ('ee.x,ee.y,ee.z,ee.Roll [deg],ee.Pitch [deg]', [['ee.Roll [deg]', 'ee.Pitch [deg]']]),
        ('x y z rx_deg ry_deg rz_deg wx wy wz', [['rx_deg', 'ry_deg', 'rz_deg'], ['wx', 'wy', 'wz']]),
        ('x y z A B C', [['C', 'B', 'A']]),
        ('x y z pose_q_w pose_q_x pose_q_y pose_q_z', [['pose_q_x', 'pose_q_y', 'pose_q_z', 'pose_q_w']]),
        ('position rot6d_0 rot6d_1', [['rot6d_0', 'rot6d_1']]),
        ('position dx dy dz quaternion', [['quaternion']]),
        ('x y z nx ny nz', [['nx', 'ny', 'nz']]),
        ('x y z I J K feed', [['I', 'J', 'K']]),
        ('x y z surface_normal_x surface_normal_y', [['surface_normal_x', 'surface_normal_y']]),
        ('position tool_axis', [['tool_axis']]),
        ('x y z wrist_roll.pos a b w speed row', []),
    ],
)
def test_columns_that_look_like_an_orientation_and_are_not_used_are_named(names, unused):
    columns = names.split(',' if ',' in names else ' ')
    given = {'position': columns[:3]} if columns[0].startswith('ee') else {}
    found = GoalColumns.found(columns, given)
    said = list(found.unused_orientations(columns, ['wrist_roll.pos']))
    assert [re.findall('"([^"]*)"', sentence) for sentence in said] == unused


def test_orientations_of_every_kind_are_poses_of_the_tip_link():
    """Rotation vectors, quaternions in both orders, and angles in degrees with positions in millimetres."""
    arm = arm_of('so101_like')
    arm = Arm(arm.robot, arm.tip_link, tool_axis=(0.0, 0.6, 0.8), tool_point=(0.01, 0.02, 0.03))
    solver = IkSolver(arm, compile='wait')
    points = arm.sample(np.random.default_rng(4), 20)
    poses = [arm.robot.link_pose(arm.tip_link, dict(zip(arm.joint_names, q, strict=True))) for q in points]
    place, R = np.array([T[:3, 3] for T in poses]), Rotation.from_matrix([T[:3, :3] for T in poses])
    found = solve_table(solver, table_of(place, r=R.as_rotvec().tolist()), rotvec=['r'])
    assert set(found['status'].to_pylist()) == {'solved'}
    for T, q in zip(poses, joints_of(arm, found), strict=True):
        position, direction = arm.fk(q)
        np.testing.assert_allclose(position, T[:3, :3] @ arm.tool_point + T[:3, 3], atol=1e-5)
        np.testing.assert_allclose(direction, T[:3, :3] @ arm.tool_axis, atol=1e-4)
    xyzw = R.as_quat()
    for order, values in (('xyzw', xyzw), ('wxyz', np.roll(xyzw, 1, axis=1))):
        table = table_of(place, **dict(zip('abcd', values.T, strict=True)))
        again = solve_table(solver, table, quaternion=list('abcd'), order=order)
        np.testing.assert_allclose(joints_of(arm, again), joints_of(arm, found), atol=1e-5)
    rpy = R.as_euler('xyz')
    np.testing.assert_allclose([rotation(*row) for row in rpy], R.as_matrix(), atol=1e-9)
    degrees = dict(zip(('R [deg]', 'P [deg]', 'Y [deg]'), np.degrees(rpy).T, strict=True))
    lengths = dict(zip(('X [mm]', 'Y_mm', 'z (cm)'), (place * [1e3, 1e3, 1e2]).T, strict=True))
    again = solve_table(solver, pa.table(lengths | degrees), rpy=list(degrees))
    np.testing.assert_allclose(joints_of(arm, again), joints_of(arm, found), atol=1e-5)


def test_angles_in_the_other_unit_and_orders_that_contradict_are_questioned():
    batch = pa.RecordBatch.from_pydict({'r': [0.0, 1.0], 'p': [90.0, 0.0], 'y': [0.0, 0.0]})
    columns = GoalColumns(('x',), rpy=('r', 'p', 'y'))
    with pytest.raises(InputError, match='--degrees'):
        doubt_of_angles(batch, columns)
    assert not doubt_of_angles(batch, replace(columns, degrees=True))
    assert doubt_of_angles(batch.slice(1), replace(columns, degrees=True))
    names = [*'xyz', 'qw', 'qx', 'qy', 'qz', 'roll', 'pitch', 'yaw']
    assert GoalColumns.found(names, {'quaternion': names[3:7]}).order == 'wxyz'
    for given in ({'quaternion': names[3:7], 'order': 'xyzw'}, {'rotvec': names[7:]}):
        with pytest.raises(InputError, match='--'):
            GoalColumns.found(names, given)


@pytest.mark.slow
def test_the_lateral_axis_turns_a_spare_roll():
    """Of rows that are not solved, too: as solve does."""
    solver = solver_of('so101_like')
    positions, directions = goals_of(solver.arm)
    positions[::3] *= 5.0  # out of reach
    lateral = np.cross(directions, np.roll(directions, 1, axis=1))
    found = solve_table(solver, table_of(positions, directions, lateral=lateral.tolist()))
    assert len(set(found['status'].to_pylist())) > 1
    for k, q in enumerate(joints_of(solver.arm, found)):
        goal = Goal(positions[k], directions[k], lateral[k] / np.linalg.norm(lateral[k]))
        np.testing.assert_allclose(q, solver.solve(goal).q, atol=1e-12)


@pytest.mark.slow
def test_a_count_of_the_solutions_on_a_busy_computer_too(monkeypatch):
    solver = solver_of('seed_arm')
    positions, directions = goals_of(solver.arm)
    found = solve_table(solver, table_of(positions, directions), count=True)
    counts = zip(found['solutions'].to_pylist(), found['complete'].to_pylist(), strict=True)
    for k, (count, complete) in enumerate(counts):
        every = solver.solve_all(Goal(positions[k], directions[k]))
        assert (count, complete) == (len(every), every.complete)
    solver = solver_of('ball_joint_arm', time_budget=math.inf)
    table = table_of(*goals_of(solver.arm, 2))
    expected = solve_table(solver, table, count=True)
    clock = itertools.count(0.0, 10.0)  # [s] between two looks
    monkeypatch.setattr(steady, 'read', lambda: next(clock))
    assert solve_table(solver, table, count=True) == expected
    assert max(expected['solutions'].to_pylist()) > 1


ROW = {'x': [0.3] * 2, 'y': [0.0] * 2, 'z': [0.2] * 2, 'dx': [0.0] * 2, 'dy': [0.0] * 2, 'dz': [-1.0] * 2}


@pytest.mark.slow
@pytest.mark.parametrize(
    ('change', 'given', 'named'),
    [
        ({'x': ['0.3', 'abc']}, {}, "x is 'abc'"),
        ({'x': ['0.3', '1,5']}, {}, "x is '1,5'"),
        ({'y': [0.0, None]}, {}, 'y is missing'),
        ({'z': [0.2, np.nan]}, {}, 'z is nan'),
        ({'z': [0.2, np.inf]}, {}, 'z is inf'),
        ({'x': [0.3, 1e12]}, {}, 'the position is beyond'),
        ({'dz': [1.0, 0.0]}, {}, 'the direction is zero'),
        ({'frame': ['base_link', 'odom']}, {}, '"odom" is not base_link "base_link"'),
        ({'p': [[0.3, 0.0, 0.2], [1.0]]}, {'position': ['p']}, 'p is [1.0]'),
        ({'p': [[0.3, 0.0, 0.2], None]}, {'position': ['p']}, 'p is missing'),
        ({'w': [[0.0] * 3, [1e200, 0, 1e200]]}, {'rotvec': ['w']}, 'the rotation vector is beyond'),
        ({'s': [[0.1] * 5, [1e300] * 5]}, {'seed': ['s']}, 'the seed is beyond'),
    ],
)
def test_a_row_without_a_goal_is_a_row_with_its_reason(change, given, named):
    table = {name: values for name, values in ROW.items() if 'rotvec' not in given or name in 'xyz'}
    first, second = solve_table(solver_of('seed_arm'), pa.table(table | change), **given).to_pylist()
    assert first['status'] != 'invalid'
    assert (second['status'], second['reason']) == ('invalid', 'invalid')
    assert named in second['reason_text']
    assert (second['joint1'], second['position_error']) == (None, None)


@pytest.mark.parametrize(
    ('columns', 'given', 'named'),
    [
        ({'a': [1.0]}, {}, 'the columns are "a"'),
        ({'x': [1.0], 'y': [1.0]}, {}, 'x, y and z'),
        (XYZ, {'direction': ['n']}, 'no column "n"'),
        (XYZ, {'quaternion': list('xyzx')}, '--order xyzw or wxyz'),
        (XYZ, {'direction': ['x', 'y']}, 'takes 3 columns, or one with lists of 3'),
        (XYZ | {'x': [[1.0]]}, {}, '"x" must hold numbers, got list'),
        (XYZ | {'z': pa.nulls(1, pa.date32())}, {}, '"z" .*date32'),
        ({'position': [1.0]}, {}, '"position" must hold lists of 3 numbers, got double'),
    ],
)
def test_columns_that_cannot_be_goals_are_rejected(columns, given, named):
    with pytest.raises(InputError, match=named):
        solve_table(solver_of('seed_arm'), pa.table(columns), **given)


def test_two_columns_of_one_name_are_no_goals():
    table = pa.Table.from_arrays([pa.array([1.0])] * 4, ['x', 'x', 'y', 'z'])
    with pytest.raises(InputError, match='2 columns have the name "x"'):
        solve_table(solver_of('seed_arm'), table)


def test_the_example_of_the_page_does_what_its_comment_says(capsys, monkeypatch):
    root = Path(__file__).resolve().parents[2]
    monkeypatch.chdir(root)
    (code,) = re.findall(r'```python\n(.*?)```', (root / 'docs/how_to/batch.md').read_text(), re.DOTALL)
    exec(code, {})
    assert capsys.readouterr().out == "['solved', 'unreachable']\n"
