# SPDX-License-Identifier: Apache-2.0
"""IkSolver: arguments that it rejects, and with which words."""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from ik_node import Arm, Goal, IkSolver, InputError

URDF = Path(__file__).resolve().parents[2] / 'urdf'

WHOLE = 'must be a whole number, '
FINITE = 'must be a finite number greater than 0, '


def seed_arm() -> Arm:
    return Arm.from_file(URDF / 'seed_arm.urdf.xacro')


@pytest.mark.parametrize(
    ('name', 'value', 'words'),
    [
        ('restarts', '5', WHOLE + "0 or more, got '5'"),
        ('restarts', 1.5, WHOLE + '0 or more, got 1.5'),
        ('restarts', -1, WHOLE + '0 or more, got -1'),
        ('restarts', True, WHOLE + '0 or more, got True'),
        ('random_seed', 0.5, WHOLE + f'from 0 to {2**63 - 1}, got 0.5'),
        ('random_seed', 2**63, WHOLE + f'from 0 to {2**63 - 1}, got {2**63}'),
        ('random_seed', -1, WHOLE + f'from 0 to {2**63 - 1}, got -1'),
        ('position_tolerance', '1', FINITE + "got '1'"),
        ('position_tolerance', math.inf, FINITE + 'got inf'),
        ('position_tolerance', 0, FINITE + 'got 0'),
        ('position_tolerance', 10**400, FINITE + 'got 1000'),
        ('direction_tolerance', math.inf, FINITE + 'got inf'),
        ('direction_tolerance', None, FINITE + 'got None'),
        ('direction_weight', math.inf, FINITE + 'got inf'),
        ('direction_weight', '1', FINITE + "got '1'"),
        ('time_budget', math.nan, 'must be a number greater than 0, got nan'),
        ('time_budget', '1', "must be a number greater than 0, got '1'"),
    ],
)
def test_an_option_out_of_range_is_named_with_what_is_allowed(name, value, words):
    with pytest.raises(InputError) as caught:
        IkSolver(seed_arm(), **{name: value})
    assert f'{name} {words}' in str(caught.value)


@pytest.mark.parametrize('given', [None, 'arm.urdf', seed_arm])
def test_what_is_not_an_arm_is_rejected(given):
    with pytest.raises(InputError) as caught:
        IkSolver(given)
    assert str(caught.value) == f'arm must be an Arm, got {given!r}'


@pytest.mark.parametrize('wrong', [b'abcde', {0, 1, 2, 3, 4}, np.zeros(5, dtype=complex), ['0'] * 5])
def test_seeds_and_goals_that_are_not_real_numbers_are_rejected(wrong):
    solver = IkSolver(seed_arm())
    with pytest.raises(InputError, match='seed must be 5 finite numbers'):
        solver.solve(Goal((0.3, 0.0, 0.2)), wrong)
    with pytest.raises(InputError, match='seeds must be numbers of shape'):
        solver.solve_batch([(0.3, 0.0, 0.2)], None, wrong)
    with pytest.raises(InputError, match='positions must be'):
        solver.solve_batch(wrong, None)


def test_numbers_of_numpy_are_numbers():
    arm = seed_arm()
    solver = IkSolver(
        arm,
        restarts=np.int32(3),
        random_seed=np.uint64(7),
        position_tolerance=np.float32(1e-5),
        time_budget=np.int64(5),
        direction_weight=np.float64(0.1),
    )
    position, direction = arm.fk(arm.middle + 0.1)
    assert solver.solve(Goal(position, direction)).solved
    assert solver.solve_batch([position], [direction], workers=np.int64(1)).solved.all()


@pytest.mark.parametrize('wrong', [((0.3, 0.0, 0.2), (0.0, 0.0, -1.0)), None, 'goal', np.zeros(9)])
def test_what_is_no_goal_is_rejected_everywhere(wrong):
    arm = seed_arm()
    solver = IkSolver(arm)
    with_joints = (partial(call, q=arm.middle) for call in (solver.track, solver.errors))
    for call in (solver.solve, solver.solve_all, *with_joints):
        with pytest.raises(InputError) as caught:
            call(wrong)
        assert f'goal must be a Goal, got {wrong!r}' in str(caught.value)


def test_entries_that_are_masked_or_too_large_are_rejected_in_a_batch_too():
    solver = IkSolver(seed_arm())
    position, direction = solver.arm.fk(solver.arm.middle)
    masked = np.ma.array([position], mask=[[True, False, False]])
    with pytest.raises(InputError, match='positions must be numbers'):
        solver.solve_batch(masked, [direction])
    with pytest.raises(InputError, match='directions must be numbers'):
        solver.solve_batch([position], np.ma.array([direction]))
    with pytest.raises(InputError, match='positions must be numbers'):
        solver.solve_batch([position, masked[0]], [direction, direction])
    with pytest.raises(InputError, match='position must'):
        Goal(masked[0])
    for seeds in (np.full(5, 1e308), np.ma.array(np.zeros(5), mask=True)):
        with pytest.raises(InputError, match='seeds must be'):
            solver.solve_batch([position], [direction], seeds)
        with pytest.raises(InputError, match='seed must be'):
            solver.solve(Goal(position, direction), seeds)
