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
from shared_files import shared_path

from ik_node import Arm, Goal, IkSolver
from ik_node.cli.reach import main
from ik_node.solver.reachable_directions import fibonacci_sphere, reachable_directions

pytestmark = pytest.mark.slow

URDF = Path(__file__).resolve().parents[2] / 'urdf'
WITHIN = math.radians(5.0)
ARMS = ['seed_arm', 'so101_like', 'ball_joint_arm']


def arm_of(name: str) -> Arm:
    return Arm.from_file(URDF / f'{name}.urdf.xacro')


def answers(arm: Arm, places, directions, within=WITHIN):
    """(places reached (N,), directions reached there (N, K))."""
    parts = list(reachable_directions(arm, places, directions, within))
    return np.concatenate([part[1] for part in parts]), np.concatenate([part[2] for part in parts])


@pytest.mark.parametrize('count', [1, 2, 500])
def test_directions_are_unit_and_even(count: int) -> None:
    directions = fibonacci_sphere(count)
    np.testing.assert_allclose(np.linalg.norm(directions, axis=1), 1.0, atol=1e-12)
    if count > 100:  # the covariance of the even sphere
        np.testing.assert_allclose(directions.T @ directions / count, np.eye(3) / 3, atol=1e-3)


@pytest.mark.parametrize('name', ARMS)
def test_where_the_arm_was_seen_is_reachable(name: str) -> None:
    """Places of random configurations, each with a direction that the tool axis has there."""
    arm = arm_of(name)
    poses = [arm.fk(q) for q in arm.sample(np.random.default_rng(1), 150)]
    missed = 0
    for position, direction in poses:
        there, reached = answers(arm, position[None], np.vstack([direction, fibonacci_sphere(100)]))
        assert there[0]
        missed += not reached[0, 0]
    assert missed <= 1


@pytest.mark.parametrize('name', ['seed_arm', 'prismatic_arm'])
def test_the_directions_are_those_that_the_solver_finds(name: str) -> None:
    """A direction met exactly counts; one that counts is met within the angle."""
    arm = arm_of(name)
    solver = IkSolver(arm, restarts=20)
    places = np.array([arm.fk(q)[0] for q in arm.sample(np.random.default_rng(2), 15)])
    directions = fibonacci_sphere(200)
    _, reached = answers(arm, places, directions)
    directions, reached = directions[::8], reached[:, ::8]
    solved = solver.solve_batch(np.repeat(places, 25, axis=0), np.tile(directions, (15, 1))).solved
    solved = solved.reshape(15, 25)
    assert 50 < solved.sum() < 350
    assert (solved & ~reached).sum() <= 1
    rng = np.random.default_rng(3)
    near = 0
    merely_near = np.argwhere(reached & ~solved)[:10]
    for row, column in merely_near:
        tilted = directions[column] + math.tan(WITHIN) * rng.uniform(-1, 1, (200, 3))
        tilted /= np.linalg.norm(tilted, axis=1)[:, None]
        tilted = tilted[tilted @ directions[column] >= math.cos(WITHIN)]
        near += any(solver.solve(Goal(places[row], direction)).solved for direction in tilted)
    assert near >= 0.7 * len(merely_near)  # of the cone a sliver may be all, too thin for so few directions


def test_beyond_reach_nothing_counts_and_all_counts_within_a_half_turn() -> None:
    arm = arm_of('so101_like')
    position, _ = arm.fk(arm.middle)
    places = np.array([position, [0.0, 0.0, 5.0], [0.0, 0.0, 0.62]])
    there, reached = answers(arm, places, fibonacci_sphere(50), math.pi)
    np.testing.assert_array_equal(there, [True, False, False])
    np.testing.assert_array_equal(reached.all(axis=1), there)
    np.testing.assert_array_equal(reached.any(axis=1), there)


def test_the_same_answers_each_time_and_place_by_place() -> None:
    arm = arm_of('seed_arm')
    places = np.array([arm.fk(q)[0] for q in arm.sample(np.random.default_rng(4), 40)])
    directions = fibonacci_sphere(60)
    first, again = answers(arm, places, directions), answers(arm, places, directions)
    for one, other in zip(first, again, strict=True):
        assert one.tobytes() == other.tobytes()


# --- the program ---------------------------------------------------------------------------------------


def run(*arguments: object) -> int:
    return main([str(argument) for argument in arguments])


def test_files_hold_what_was_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arm = arm_of('moveo_like')
    out = tmp_path / 'moveo'
    code = run(URDF / 'moveo_like.urdf.xacro', '--resolution', 0.1, '--directions', 80, '--output', out)
    assert code == 0
    said, progress = capsys.readouterr()
    assert arm.describe() in said
    assert sorted(path.name for path in tmp_path.iterdir()) == ['moveo.npz', 'moveo.png']
    data = np.load(f'{out}.npz')
    places, shares, reached = data['positions'], data['fractions'], data['reached']
    assert progress.splitlines()[-1].startswith(f'100 % of {len(places)} positions, ')  # no terminal here
    assert shares.shape == (len(places),)
    assert reached.shape == (len(places), 80)
    assert data['directions'].shape == (80, 3)
    assert data['joint_names'].tolist() == list(arm.joint_names)
    there = ~np.isnan(shares)
    np.testing.assert_allclose(shares[there], reached[there].mean(axis=1))
    assert not reached[~there].any()
    # Each plane has one level, and its places are as far apart as was asked.
    for plane in set(data['plane'].tolist()):
        assert plane in said
        level, across = ('y', 0) if plane.startswith('xz') else ('z', 0)
        values = places[data['plane'] == plane]
        assert np.ptp(values[:, 'xyz'.index(level)]) == 0.0
        np.testing.assert_allclose(np.diff(np.unique(values[:, across])), 0.1, atol=1e-9)
    # A place is reached if and only if the solver reaches it.
    solver = IkSolver(arm, restarts=300)
    solved = solver.solve_batch(places).solved
    assert (solved != there).sum() == 0
    # The grid covers all that the arm reaches.
    points = np.array([arm.fk(q)[0] for q in arm.sample(np.random.default_rng(5), 2000)])
    assert (points >= places.min(axis=0) - 0.05)[:, 0].all()
    assert (points <= places.max(axis=0) + 0.05).all()


def test_the_picture_is_one_and_shows_colours(tmp_path: Path) -> None:
    image_module = pytest.importorskip('PIL.Image')
    out = tmp_path / 'arm.png'
    assert run(URDF / 'seed_arm.urdf.xacro', '--resolution', 0.15, '--directions', 40, '--output', out) == 0
    image = np.asarray(image_module.open(out).convert('RGB')).astype(int)
    assert image.shape[0] > 500
    assert image.shape[1] > 1000
    red = (image[:, :, 0] - image[:, :, 1:].max(axis=2) > 100).sum()  # the arm
    yellow = ((image[:, :, 0] > 220) & (image[:, :, 1] > 200) & (image[:, :, 2] < 80)).sum()  # all directions
    assert red > 500
    assert yellow > 10_000


def test_a_plane_that_the_arm_does_not_reach_is_empty(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ['--resolution', 0.2, '--directions', 5, '--height', 3, '--output', tmp_path / 'high']
    assert run(URDF / 'seed_arm.urdf.xacro', *arguments) == 0
    assert 'xy plane at z = 3 m: no position reached' in capsys.readouterr().out


def test_real_arms_with_slashes_and_another_forward(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    few = ['--resolution', 0.2, '--directions', 10]
    wx250 = shared_path('arms', 'wx250.urdf')
    assert run(wx250, '--tip-link', 'wx250/ee_gripper_link', '--tool-axis', 'x', *few) == 0
    assert Path('wx250_reach.png').exists()
    assert run(shared_path('arms', 'moveo.urdf'), '--tip-link', 'Link_5', *few, '--output', 'moveo') == 0
    assert any(plane.startswith('yz') for plane in np.load('moveo.npz')['plane'])


def test_a_terminal_shows_progress_and_ctrl_c_leaves_nothing(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack('HHHH', 24, 100, 0, 0))
    environment = {**os.environ, 'PYTHONPATH': os.pathsep.join([str(URDF.parent), *sys.path])}
    process = subprocess.Popen(
        [
            sys.executable,
            '-m',
            'ik_node.start',
            'ik_reach',
            URDF / 'so101_like.urdf.xacro',
            '--resolution',
            '0.004',
        ],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    said = b''
    end = time.monotonic() + 100
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
