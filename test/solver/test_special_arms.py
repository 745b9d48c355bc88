# SPDX-License-Identifier: Apache-2.0
"""The arms that benchmarks make, and what counts as a missed solution of theirs."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip('benchmarks', reason='benchmarks/ is importable from the repository root only')

from benchmarks.arms import TOLERANCE, Task, solver_for
from benchmarks.chain import Array
from benchmarks.complete import compared, isolated
from benchmarks.special_arms import (
    MEETING,
    OFFSETS,
    TRIPLES,
    fewer,
    kinds,
    made_arm,
    manseur_doty,
    near,
    numbered,
)
from benchmarks.verdicts import beyond
from ik_node import Goal

GROUPS = {**kinds(), **fewer(), **near()}


def lines(task: Task) -> tuple[Array, Array]:
    """Directions and points (n + 1, 3) of the axes at the middle of the limits, the tool last."""
    _, _, axes, points = task.chain.frames(task.arm.middle)
    point, axis = task.chain.fk(task.arm.middle)
    return np.vstack([axes[0], axis]), np.vstack([points[0], point])


def test_names_differ_and_lead_back() -> None:
    """Each arm can be made again from its name."""
    names = [task.name for group in GROUPS.values() for task in group]
    assert len(names) == len(set(names))
    assert made_arm('meet45t_1e-06_2').xml == GROUPS['meet 45t to 1e-06'][2].xml


def test_no_arm_is_redundant() -> None:
    """Solutions of a goal are isolated, so that they can be counted."""
    exact = {**kinds(), **fewer()}
    assert [task.name for group in exact.values() for task in group if not isolated(task)] == []


@pytest.mark.parametrize('off', [0.0, *OFFSETS])
def test_axes_are_parallel_or_meet_as_named(off: float) -> None:
    """Also away from the zero pose, and near-degenerate ones are off by about as much as they say."""
    suffix = f' to {off:g}' if off else ''
    for places in TRIPLES if not off else TRIPLES[1:]:
        for task in GROUPS[f'parallel {numbered(places)}{suffix}']:
            axes, _ = lines(task)
            slant = max(np.linalg.norm(np.cross(axes[places[0]], axes[k])) for k in places)
            assert 0.1 * off <= slant <= 10.0 * off + 1e-12
    for places in MEETING:
        for task in GROUPS[f'meet {numbered(places)}{suffix}']:
            axes, points = lines(task)
            across = np.eye(3) - axes[:, :, None] * axes[:, None, :]
            across = across[list(places)]
            offsets = np.einsum('kij,kj->ki', across, points[list(places)])
            meeting = np.linalg.lstsq(across.reshape(-1, 3), offsets.ravel(), rcond=None)[0]
            gap = np.linalg.norm(across @ meeting - offsets, axis=1).max()
            assert 0.001 * off <= gap <= 10.0 * off + 1e-12


def test_manseur_doty_has_sixteen_solutions() -> None:
    """As many as the degree allows, found by the search."""
    task = manseur_doty()
    positions, directions, _ = task.goals(60, seed=3)
    solver = solver_for(task.arm, closed_form=False)
    assert len(solver.solve_all(Goal(positions[16], directions[16]), time_budget=np.inf)) == 16


def test_missed_and_wrong_solutions_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A solver that leaves out one solution of each goal and moves another."""
    task = made_arm('position3_4')
    positions, directions, _ = task.goals(3)
    solver = solver_for(task.arm)
    whole = compared(task, solver, positions, directions, restarts=500)
    assert (len(whole.missed), whole.wrong) == (0, 0)
    assert whole.expected == sum(whole.found)
    solve_all = solver.solve_all

    def careless(goal: Goal, time_budget: float) -> list[object]:
        found = solve_all(goal, time_budget=time_budget)
        found[1].q = found[1].q + 1e-4
        return found[1:]

    monkeypatch.setattr(solver, 'solve_all', careless)
    worse = compared(task, solver, positions, directions, restarts=500)
    assert (len(worse.missed), worse.wrong) == (3, 3)


def test_direction_does_not_count_for_position_only() -> None:
    """The judge of the benchmark leaves it out, the position stays."""
    task = made_arm('position3_0')
    positions, directions, q = task.goals(5)
    assert task.good(q, positions, -directions).all()
    assert not task.good(q, positions + 2 * TOLERANCE, directions).any()


def test_goals_beyond_limits_are_beyond() -> None:
    """Every configuration leaves the limits in at least one joint."""
    task = made_arm('slide3_0')
    q = beyond(task, np.random.default_rng(0), 50)
    outside = np.maximum(task.arm.lower - q, q - task.arm.upper).max(axis=1)
    assert (outside > 1e-3).all()
    assert (outside < 0.7).all()
