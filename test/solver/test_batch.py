# SPDX-License-Identifier: Apache-2.0
"""solve_batch: many goals at once, each answered as by solve, on the cores that the process may use."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
from cases import arm_of, new_solver

from ik_node import Arm, Goal, IkSolver, Status
from ik_node.solver import batch
from ik_node.solver.batch import BATCH_PART
from ik_node.solver.restarts import LANES


def goals_of(arm: Arm, count: int, seed: int = 1):
    """Positions (count, 3) and directions (count, 3) that the arm can reach."""
    pairs = [arm.fk(q) for q in arm.sample(np.random.default_rng(seed), count)]
    return np.array([position for position, _ in pairs]), np.array([direction for _, direction in pairs])


def assert_same_as_solve(solver: IkSolver, batch, positions, directions, seeds=None, within=0.0) -> int:
    """Row by row what solve gives, bit for bit or within so many rad; returns how many are solved."""
    for k, position in enumerate(positions):
        goal = Goal(position, None if directions is None else directions[k])
        one = solver.solve(goal, solver.arm.middle if seeds is None else seeds[k])
        assert (batch.status[k], batch.solved[k]) == (one.status, one.solved)
        np.testing.assert_allclose(batch.q[k], one.q, rtol=0.0, atol=within)
        errors = one.position_error, one.direction_error
        for expected in (errors, solver.errors(goal, batch.q[k])):
            np.testing.assert_allclose((batch.position_error[k], batch.direction_error[k]), expected, 0.0, within)
    return int(batch.solved.sum())


@pytest.mark.parametrize(
    'name', ['seed_arm', 'so101_like', 'moveo_like', 'prismatic_arm', 'hebi_a2085_05', 'magician_rail']
)
@pytest.mark.parametrize('lanes', [0, 4, 8])
def test_batch_equals_solve(name, lanes, monkeypatch):
    """Bit for bit one by one; with lanes of vectors nearly so."""
    monkeypatch.setenv(LANES, str(lanes))
    arm = arm_of(name)
    solver = new_solver(arm)
    positions, directions = goals_of(arm, 40)
    seeds = arm.sample(np.random.default_rng(2), 40)
    seeds[::3] = np.where(arm.continuous, 4.0, arm.upper + 0.5)
    for given in ((positions, directions, None), (positions, None, None), (positions, directions, seeds)):
        batch = solver.solve_batch(*given)
        assert assert_same_as_solve(solver, batch, *given, within=1e-9 if lanes else 0.0) == 40


@pytest.mark.slow
@pytest.mark.parametrize('name', ['seed_arm', 'so101_like', 'prismatic_arm'])
def test_goals_that_cannot_be_met_are_among_the_others(name):
    arm = arm_of(name)
    solver = new_solver(arm, restarts=20)
    positions, directions = goals_of(arm, 30)
    positions[::3] += 3 * arm.reach
    directions[1::3] = np.roll(directions[1::3], 1, axis=1)
    batch = solver.solve_batch(positions, directions)
    assert_same_as_solve(solver, batch, positions, directions, within=1e-9)
    assert (batch.status[::3] == Status.UNREACHABLE).all()
    assert batch.solved[2::3].all()
    assert ((batch.q >= arm.lower) & (batch.q <= arm.upper)).all()


@pytest.mark.parametrize('method', ['dls', 'ccd', 'transpose'])
def test_other_methods_solve_batches_too(method):
    solver = new_solver(arm_of('seed_arm'), method=method)
    positions, directions = goals_of(solver.arm, 4)
    batch = solver.solve_batch(positions, directions)
    assert assert_same_as_solve(solver, batch, positions, directions) > 0


@pytest.mark.slow
@pytest.mark.parametrize('name', ['seed_arm', 'prismatic_arm'])
def test_workers_do_not_matter(name):
    """Over several parts and with a part that is not full."""
    solver = new_solver(arm_of(name))
    count = 2 * BATCH_PART + 77
    positions, directions = goals_of(solver.arm, count)
    first, *others = [solver.solve_batch(positions, directions, workers=workers) for workers in (1, 2, 5, None)]
    for answer in others:
        for array in ('q', 'solved', 'position_error', 'direction_error'):
            assert getattr(answer, array).tobytes() == getattr(first, array).tobytes()
    order = np.random.default_rng(3).permutation(count)
    assert solver.solve_batch(positions[order], directions[order]).q.tobytes() == first.q[order].tobytes()
    assert first.solved.all()


def test_shapes_types_and_inputs():
    solver = new_solver(arm_of('so101_like'))
    arm = solver.arm
    none = solver.solve_batch(np.empty((0, 3)), np.empty((0, 3)), np.empty((0, arm.n)))
    assert none.q.shape == (0, arm.n)
    assert none.solved.shape == none.position_error.shape == none.direction_error.shape == (0,)
    positions, directions = goals_of(arm, 9)
    for seeds in (None, arm.upper, [arm.upper]):
        one = solver.solve_batch(positions[:1].tolist(), directions[:1].tolist(), seeds)
        expected = solver.solve(Goal(positions[0], directions[0]), arm.middle if seeds is None else arm.upper)
        np.testing.assert_allclose(one.q[0], expected.q, rtol=0.0, atol=1e-9)
    seeds = arm.sample(np.random.default_rng(4), 9)
    copies = [array.copy() for array in (positions, directions, seeds)]
    batch = solver.solve_batch(positions, directions * 1.0005, seeds)  # nearly unit is normalised
    np.testing.assert_array_equal([positions, directions], copies[:2])
    np.testing.assert_array_equal(seeds, copies[2])
    assert (batch.q.shape, batch.solved.dtype) == ((9, arm.n), np.bool_)
    assert batch.solved.all()
    fortran = np.asfortranarray(positions), np.repeat(directions, 2, axis=0)[::2], np.asfortranarray(seeds)
    plain = solver.solve_batch(positions, directions, seeds)
    assert solver.solve_batch(*fortran).q.tobytes() == plain.q.tobytes()


def interrupted(workers: int) -> int:
    """Interrupt a batch at its twentieth goal; return how many goals were begun in all."""
    solver, begun = IkSolver(arm_of('so101_like'), restarts=20), []
    rng, solve = np.random.default_rng(0), solver.solve
    positions, _ = goals_of(solver.arm, 12000)
    directions = rng.normal(size=(12000, 3))  # at random: out of reach, so that each is solved by itself
    directions /= np.linalg.norm(directions, axis=1)[:, None]

    def counted(goal, seed=None):
        begun.append(goal)
        if len(begun) == 20:
            os.kill(os.getpid(), signal.SIGINT)
        return solve(goal, seed)

    solver.solve = counted
    with pytest.raises(KeyboardInterrupt):
        solver.solve_batch(positions, directions, workers=workers)
    for thread in threading.enumerate():
        if 'ThreadPool' in thread.name:  # that the pool had begun, but did not know yet: it does not wait for it
            thread.join(20.0)
            assert not thread.is_alive()
    return len(begun)


@pytest.mark.slow
@pytest.mark.parametrize('workers', [1, 4])
def test_after_ctrl_c_the_threads_solve_no_more_goals(workers):
    """Each ends with the goal that it is at, not with its part of the batch."""
    assert 20 <= interrupted(workers) < 3000  # four parts are 4096; a busy machine takes its time


@pytest.mark.skipif(not hasattr(os, 'sched_setaffinity'), reason='affinity is known on Linux alone')
def test_the_affinity_of_the_process_counts():
    program = (
        'import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}); '
        'from ik_node.solver.batch import usable_cores; print(usable_cores())'
    )
    done = subprocess.run([sys.executable, '-c', program], capture_output=True, text=True, check=True)
    assert done.stdout == '1\n'


@pytest.mark.parametrize(('text', 'most'), [('max 100000', None), ('150000 100000', 2), ('5000 100000', 1)])
def test_the_quota_of_the_container_counts(text, most, tmp_path, monkeypatch):
    everything = batch.usable_cores()
    (tmp_path / 'cpu.max').write_text(text)
    monkeypatch.setattr(batch, 'QUOTA', tmp_path / 'cpu.max')
    if most is None:
        assert batch.usable_cores() >= everything
    else:
        assert batch.usable_cores() == min(most, len(os.sched_getaffinity(0)))


def test_a_batch_starts_no_more_threads_than_cores(monkeypatch):
    monkeypatch.setattr('os.cpu_count', lambda: 64)
    solver, seen, before = IkSolver(arm_of('seed_arm')), set(), threading.active_count()
    solve = type(solver._search).search_many

    def watched(self, *arguments):
        seen.add(threading.active_count() - before)
        return solve(self, *arguments)

    monkeypatch.setattr(type(solver._search), 'search_many', watched)
    solver.solve_batch(*goals_of(solver.arm, 4096))
    assert max(seen) <= batch.usable_cores()
