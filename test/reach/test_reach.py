# SPDX-License-Identifier: Apache-2.0
"""ik_reach: positions and directions that an arm can take are counted, and none that it cannot."""

from __future__ import annotations

import fcntl
import math
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import numpy as np
import pytest
from cases import arm_of
from programs import ran
from shared_files import shared_path

from ik_node import Goal, IkSolver
from ik_node.solver.reachable_directions import fibonacci_sphere, reachable_directions
from ik_node.startup.arguments import URDF
from ik_node.tools import reach

pytestmark = pytest.mark.slow

WITHIN = math.radians(5.0)


def answers(arm, places, directions, within=WITHIN):
    """(places reached (N,), directions reached there (N, K))."""
    parts = list(reachable_directions(arm, places, directions, within))
    return np.concatenate([part[1] for part in parts]), np.concatenate([part[2] for part in parts])


@pytest.mark.parametrize('count', [1, 2, 500])
def test_directions_are_unit_and_even(count):
    directions = fibonacci_sphere(count)
    np.testing.assert_allclose(np.linalg.norm(directions, axis=1), 1.0, atol=1e-12)
    if count > 100:  # the covariance of the even sphere
        np.testing.assert_allclose(directions.T @ directions / count, np.eye(3) / 3, atol=1e-3)


@pytest.mark.parametrize('name', ['so101_like', 'ball_joint_arm'])
def test_where_the_arm_was_seen_is_reachable(name):
    """Places of random configurations, each with a direction that the tool axis has there; twice the same."""
    arm = arm_of(name)
    missed = 0
    for q in arm.sample(np.random.default_rng(1), 60):
        position, direction = arm.fk(q)
        given = position[None], np.vstack([direction, fibonacci_sphere(40)])
        there, reached = answers(arm, *given)
        assert there[0]
        missed += not reached[0, 0]
        assert answers(arm, *given)[1].tobytes() == reached.tobytes()
    assert missed <= 1


@pytest.mark.parametrize('name', ['seed_arm', 'prismatic_arm'])
def test_the_directions_are_those_that_the_solver_finds(name):
    """A direction met exactly counts; one that counts is met within the angle."""
    arm = arm_of(name)
    solver, directions = IkSolver(arm, restarts=20), fibonacci_sphere(200)
    places = np.array([arm.fk(q)[0] for q in arm.sample(np.random.default_rng(2), 10)])
    _, reached = answers(arm, places, directions)
    directions, reached = directions[::8], reached[:, ::8]
    solved = solver.solve_batch(np.repeat(places, 25, axis=0), np.tile(directions, (10, 1))).solved
    solved = solved.reshape(10, 25)
    assert 30 < solved.sum() < 230
    assert (solved & ~reached).sum() <= 1
    rng = np.random.default_rng(3)
    near, merely_near = 0, np.argwhere(reached & ~solved)[:6]
    for row, column in merely_near:
        tilted = directions[column] + math.tan(WITHIN) * rng.uniform(-1, 1, (200, 3))
        tilted /= np.linalg.norm(tilted, axis=1)[:, None]
        tilted = tilted[tilted @ directions[column] >= math.cos(WITHIN)]
        near += any(solver.solve(Goal(places[row], direction)).solved for direction in tilted)
    assert near >= 0.6 * len(merely_near)  # of the cone a sliver may be all, too thin for so few directions


def test_beyond_reach_nothing_counts_and_all_counts_within_a_half_turn():
    arm = arm_of('so101_like')
    places = np.array([arm.fk(arm.middle)[0], [0.0, 0.0, 5.0], [0.0, 0.0, 0.62]])
    there, reached = answers(arm, places, fibonacci_sphere(50), math.pi)
    np.testing.assert_array_equal(there, [True, False, False])
    np.testing.assert_array_equal(reached.all(axis=1), there)
    np.testing.assert_array_equal(reached.any(axis=1), there)


# --- the program ---------------------------------------------------------------------------------------


def test_files_hold_what_was_found(tmp_path):
    image_module = pytest.importorskip('PIL.Image')
    arm = arm_of('moveo_like')
    path, out = URDF / 'moveo_like.urdf.xacro', tmp_path / 'moveo'
    ended = ran(reach, path, '--resolution', 0.12, '--directions', 40, '--output', out)
    assert ended.code == 0
    assert arm.describe() in ended.out
    assert sorted(path.name for path in tmp_path.iterdir()) == ['moveo.npz', 'moveo.png']
    data = np.load(f'{out}.npz')
    places, shares, reached = data['positions'], data['fractions'], data['reached']
    assert ended.err.splitlines()[-1].startswith(f'100 % of {len(places)} positions, ')  # no terminal here
    assert (shares.shape, reached.shape) == ((len(places),), (len(places), 40))
    assert data['directions'].shape == (40, 3)
    assert data['joint_names'].tolist() == list(arm.joint_names)
    there = ~np.isnan(shares)
    np.testing.assert_allclose(shares[there], reached[there].mean(axis=1))
    assert not reached[~there].any()
    # Each plane has one level, and its places are as far apart as was asked.
    for plane in set(data['plane'].tolist()):
        assert plane in ended.out
        values = places[data['plane'] == plane]
        assert np.ptp(values[:, 1 if plane.startswith('xz') else 2]) == 0.0
        np.testing.assert_allclose(np.diff(np.unique(values[:, 0])), 0.12, atol=1e-9)
    # A place is reached if and only if the solver reaches it, and the grid covers all that the arm reaches.
    np.testing.assert_array_equal(IkSolver(arm, restarts=300).solve_batch(places).solved, there)
    points = np.array([arm.fk(q)[0] for q in arm.sample(np.random.default_rng(5), 2000)])[:, 0]
    assert places[:, 0].min() - 0.06 <= points.min() <= points.max() <= places[:, 0].max() + 0.06
    image = np.asarray(image_module.open(f'{out}.png').convert('RGB')).astype(int)
    red = (image[:, :, 0] - image[:, :, 1:].max(axis=2) > 100).sum()  # the arm
    assert red > 500


def test_real_arms_with_slashes_another_forward_and_a_plane_out_of_reach(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    few = ['--resolution', 0.3, '--directions', 5]
    wx250, moveo = (shared_path('arms', f'{name}.urdf') for name in ('wx250', 'moveo'))
    tip = ['--tip-link', 'wx250/ee_gripper_link', '--tool-axis', 'x', '--height', 3]
    ended = ran(reach, wx250, *tip, *few)
    assert 'xy plane at z = 3 m: no position reached' in ended.out
    assert Path('wx250_reach.png').exists()
    assert ran(reach, moveo, '--tip-link', 'Link_5', *few, '--output', 'moveo').code == 0
    assert any(plane.startswith('yz') for plane in np.load('moveo.npz')['plane'])


def test_a_terminal_shows_progress_and_ctrl_c_leaves_nothing(tmp_path):
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack('HHHH', 24, 100, 0, 0))
    command = [sys.executable, '-m', 'ik_node.start', 'ik_reach', URDF / 'so101_like.urdf.xacro']
    process = subprocess.Popen(
        [*command, '--resolution', '0.004'],
        cwd=tmp_path,
        env={**os.environ, 'PYTHONPATH': os.pathsep.join([str(URDF.parent), *sys.path])},
        stdout=subprocess.DEVNULL,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    said, end = b'', time.monotonic() + 100
    try:
        while b' positions/s' not in said and time.monotonic() < end:
            if select.select([ours], [], [], 1.0)[0]:
                said += os.read(ours, 10_000)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 130
        assert b'%|' in said
        assert list(tmp_path.iterdir()) == []
    finally:
        process.kill()
        process.wait()
        os.close(ours)
