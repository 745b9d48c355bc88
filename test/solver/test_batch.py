# SPDX-License-Identifier: Apache-2.0
"""solve_batch: many goals at once, each answered as by solve."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from cases import arm_of, new_solver

from ik_node import Arm, Goal, IkSolver, InputError, Status
from ik_node.solver.batch import BATCH_PART

NAMES = ['seed_arm', 'so101_like', 'moveo_like', 'prismatic_arm', 'hebi_a2085_05', 'moveo', 'magician_rail']


def goals_of(arm: Arm, count: int, seed: int = 1):
    """Positions (count, 3) and directions (count, 3) that the arm can reach."""
    pairs = [arm.fk(q) for q in arm.sample(np.random.default_rng(seed), count)]
    return np.array([position for position, _ in pairs]), np.array([direction for _, direction in pairs])


def assert_same_as_solve(solver: IkSolver, batch, positions, directions, seeds) -> int:
    """Row by row what solve gives, bit for bit; returns how many are solved."""
    for k, position in enumerate(positions):
        goal = Goal(position, None if directions is None else directions[k])
        one = solver.solve(goal, seeds[k])
        assert batch.status[k] is one.status
        assert batch.solved[k] == one.solved
        assert batch.q[k].tobytes() == one.q.tobytes()
        assert (batch.position_error[k], batch.direction_error[k]) == (
            one.position_error,
            one.direction_error,
        )
        assert (one.position_error, one.direction_error) == solver.errors(goal, batch.q[k])
    return int(batch.solved.sum())


@pytest.mark.parametrize('name', NAMES)
def test_batch_equals_solve_bit_for_bit(name):
    arm = arm_of(name)
    solver = new_solver(arm)
    positions, directions = goals_of(arm, 60)
    middle = np.repeat(arm.middle[None], 60, axis=0)
    batch = solver.solve_batch(positions, directions)
    assert assert_same_as_solve(solver, batch, positions, directions, middle) == 60
    batch = solver.solve_batch(positions)
    assert assert_same_as_solve(solver, batch, positions, None, middle) == 60
    seeds = arm.sample(np.random.default_rng(2), 60)
    seeds[::3] = np.where(arm.continuous, 4.0, arm.upper + 0.5)
    batch = solver.solve_batch(positions, directions, seeds)
    assert assert_same_as_solve(solver, batch, positions, directions, seeds) == 60


@pytest.mark.parametrize('name', ['seed_arm', 'so101_like', 'prismatic_arm'])
def test_goals_that_cannot_be_met_are_among_the_others(name):
    arm = arm_of(name)
    solver = new_solver(arm, restarts=20)
    positions, directions = goals_of(arm, 30)
    positions[::3] += 3 * arm.reach
    directions[1::3] = np.roll(directions[1::3], 1, axis=1)
    batch = solver.solve_batch(positions, directions)
    middle = np.repeat(arm.middle[None], 30, axis=0)
    assert_same_as_solve(solver, batch, positions, directions, middle)
    assert (batch.status[::3] == Status.UNREACHABLE).all()
    assert batch.solved[2::3].all()
    assert np.isfinite(batch.q).all()
    assert ((batch.q >= arm.lower) & (batch.q <= arm.upper)).all()


@pytest.mark.parametrize('method', ['dls', 'ccd', 'transpose', 'scipy'])
def test_other_methods_solve_batches_too(method):
    arm = arm_of('seed_arm')
    solver = new_solver(arm, method=method)
    positions, directions = goals_of(arm, 4)
    batch = solver.solve_batch(positions, directions)
    middle = np.repeat(arm.middle[None], 4, axis=0)
    assert assert_same_as_solve(solver, batch, positions, directions, middle) > 0


@pytest.mark.parametrize('name', ['seed_arm', 'prismatic_arm'])
def test_workers_do_not_matter(name):
    """Over several parts and with a part that is not full."""
    arm = arm_of(name)
    solver = new_solver(arm)
    count = 2 * BATCH_PART + 77
    positions, directions = goals_of(arm, count)
    answers = [solver.solve_batch(positions, directions, workers=workers) for workers in (1, 2, 5, None)]
    for answer in answers[1:]:
        assert answer.q.tobytes() == answers[0].q.tobytes()
        assert answer.solved.tobytes() == answers[0].solved.tobytes()
        assert answer.position_error.tobytes() == answers[0].position_error.tobytes()
        assert answer.direction_error.tobytes() == answers[0].direction_error.tobytes()
    order = np.random.default_rng(3).permutation(count)
    shuffled = solver.solve_batch(positions[order], directions[order])
    assert shuffled.q.tobytes() == answers[0].q[order].tobytes()
    assert answers[0].solved.all()


def test_no_goals_and_one_goal():
    arm = arm_of('seed_arm')
    solver = new_solver(arm)
    none = solver.solve_batch(np.empty((0, 3)), np.empty((0, 3)), np.empty((0, 5)))
    assert none.q.shape == (0, 5)
    assert none.solved.shape == none.position_error.shape == none.direction_error.shape == (0,)
    assert solver.solve_batch(np.empty((0, 3))).q.shape == (0, 5)
    positions, directions = goals_of(arm, 1)
    for seeds in (None, arm.upper, [arm.upper]):
        one = solver.solve_batch(positions.tolist(), directions.tolist(), seeds)
        expected = solver.solve(Goal(positions[0], directions[0]), arm.middle if seeds is None else arm.upper)
        assert one.q[0].tobytes() == expected.q.tobytes()


def test_shapes_types_and_inputs():
    arm = arm_of('so101_like')
    solver = new_solver(arm)
    positions, directions = goals_of(arm, 9)
    seeds = arm.sample(np.random.default_rng(4), 9)
    copies = [array.copy() for array in (positions, directions, seeds)]
    batch = solver.solve_batch(positions, directions * 1.0005, seeds)  # nearly unit is normalised
    for array, copy in zip((positions, directions, seeds), copies, strict=True):
        np.testing.assert_array_equal(array, copy)
    assert batch.q.shape == (9, arm.n)
    assert batch.solved.dtype == np.bool_
    assert batch.solved.all()
    strided = solver.solve_batch(
        np.asfortranarray(positions), np.repeat(directions, 2, axis=0)[::2], np.asfortranarray(seeds)
    )
    plain = solver.solve_batch(positions, directions, seeds)
    assert strided.q.tobytes() == plain.q.tobytes()


GOOD = [[0.1, 0.0, 0.2], [0.2, 0.0, 0.1]]
DOWN = [[0.0, 0.0, -1.0], [0.0, 0.0, -1.0]]


@pytest.mark.parametrize(
    ('arguments', 'message'),
    [
        (([0.1, 0.0, 0.2],), r'positions must have shape \(N, 3\), got \(3,\)'),
        (([[0.1, 0.0]],), r'positions must have shape \(N, 3\), got \(1, 2\)'),
        (([[0.1, 0.0, np.nan]],), 'positions must be finite, row 0'),
        (([GOOD[0], [0.1, np.inf, 0.0]],), 'positions must be finite, row 1'),
        (('abc',), 'positions must be numbers'),
        ((None,), 'positions must'),
        ((GOOD, DOWN[:1]), 'positions and directions must have the same length, got 2 and 1'),
        ((GOOD, [[0, 0, -1], [0, 0, -1.01]]), 'directions must be unit vectors .* row 1'),
        ((GOOD, [[0, 0, 0], [0, 0, -1]]), 'directions must be unit vectors .* row 0'),
        ((GOOD, [[0, 0, np.nan], [0, 0, -1]]), 'directions must be finite, row 0'),
        ((GOOD, DOWN, np.zeros(4)), r'seeds must be .*\(5,\) or \(2, 5\)'),
        ((GOOD, DOWN, np.zeros((3, 5))), r'seeds must be .*\(5,\) or \(2, 5\)'),
        ((GOOD, DOWN, np.full(5, np.nan)), 'seeds must be finite'),
        ((GOOD, DOWN, 'abc'), 'seeds must be'),
        ((GOOD, DOWN, [[0.0] * 5, [0.0]]), 'seeds must be'),
        (([[10**400, 0, 0]],), 'positions must be finite'),
        ((GOOD, DOWN, [10**400, 0, 0, 0, 0]), 'seeds must be'),
        ((GOOD, DOWN, None, 0), 'workers must be a whole number, 1 or more, got 0'),
        ((GOOD, DOWN, None, -2), 'workers must be a whole number, 1 or more, got -2'),
        ((GOOD, DOWN, None, '2'), "workers must be a whole number, 1 or more, got '2'"),
        ((GOOD, DOWN, None, 1.5), r'workers must be a whole number, 1 or more, got 1\.5'),
    ],
)
def test_bad_input_is_rejected_with_one_clear_error(arguments, message):
    with pytest.raises(InputError, match=message):
        new_solver(arm_of('seed_arm')).solve_batch(*arguments)


ENDLESS = """
import sys
import numpy as np
from ik_node import Arm, IkSolver
arm = Arm.from_file(sys.argv[1])
solver = IkSolver(arm, restarts=100)
rng = np.random.default_rng(0)
positions = np.array([arm.fk(q)[0] for q in arm.sample(rng, 3000)])
directions = rng.normal(size=(3000, 3))  # at random: out of reach, so each takes its time
directions /= np.linalg.norm(directions, axis=1)[:, None]
print('at work', flush=True)
solver.solve_batch(np.tile(positions, (200, 1)), np.tile(directions, (200, 1)), workers=int(sys.argv[2]))
print('finished')
"""


@pytest.mark.slow
@pytest.mark.parametrize('workers', [1, 2])
def test_ctrl_c_stops_a_batch(workers):
    """Half a million goals that cannot be met would take many minutes."""
    path = Path(__file__).resolve().parents[2] / 'urdf' / 'so101_like.urdf.xacro'
    process = subprocess.Popen(
        [sys.executable, '-c', ENDLESS, path, str(workers)],
        env={**os.environ, 'PYTHONPATH': os.pathsep.join([str(path.parents[1]), *sys.path])},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert process.stdout.readline() == 'at work\n'
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        said, errors = process.communicate(timeout=100)
    finally:
        process.kill()
        process.wait()
    assert said == ''
    assert errors.rstrip().endswith('KeyboardInterrupt')


INTERRUPTED = """
import os, signal, sys, time
import numpy as np
from ik_node import Arm, IkSolver
solver = IkSolver(Arm.from_file(sys.argv[1]), restarts=20)
rng = np.random.default_rng(0)
positions = np.array([solver.arm.fk(q)[0] for q in solver.arm.sample(rng, 12000)])
directions = rng.normal(size=(12000, 3))  # at random: out of reach, so that each is solved by itself
directions /= np.linalg.norm(directions, axis=1)[:, None]
begun, solve = [], solver.solve

def counted(goal, seed=None):
    begun.append(goal)
    if len(begun) == 20:
        os.kill(os.getpid(), signal.SIGINT)
    return solve(goal, seed)

solver.solve = counted
try:
    solver.solve_batch(positions, directions, workers=4)
except KeyboardInterrupt:
    after = len(begun)
    time.sleep(0.2)
    print(after, len(begun) - after)
"""


def test_after_ctrl_c_the_threads_solve_no_more_goals():
    """Each ends with the goal that it is at, not with its part of the batch."""
    path = Path(__file__).resolve().parents[2] / 'urdf' / 'so101_like.urdf.xacro'
    process = subprocess.run(
        [sys.executable, '-c', INTERRUPTED, path],
        env={**os.environ, 'PYTHONPATH': os.pathsep.join([str(path.parents[1]), *sys.path])},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    begun, after = map(int, process.stdout.split())
    assert 20 <= begun < 4000, f'{begun} goals were begun'  # a busy machine takes its time to interrupt
    assert after == 0
