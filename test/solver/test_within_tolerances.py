# SPDX-License-Identifier: Apache-2.0
"""Goals that no configuration meets exactly, but one does within both tolerances: they are solved."""

from __future__ import annotations

import math

import numpy as np
import pytest
from cases import few_cases, shared_cases, shipped_cases
from made_arms import random_unit
from oracles.random_arms import general_arm, random_task

from ik_node import Arm, Goal, IkSolver

CASES = [*shipped_cases(), *shared_cases()]
GOALS = 20
TOLERANCES = [(1e-6, 1e-4), (1e-4, 1e-3), (5e-3, 5e-2), (1e-3, 1e-6)]  # [m], [rad]


def edges(arm: Arm, rng: np.random.Generator) -> np.ndarray:
    """Return joints (n,) at limits, at 0, where arms are straight, or anywhere."""
    lower, upper = np.maximum(arm.lower, -math.pi), np.minimum(arm.upper, math.pi)
    while True:
        anywhere = arm.sample(rng, 1)[0]
        zero = np.clip(np.zeros(arm.n), lower, upper)
        q = np.choose(rng.integers(0, 4, arm.n), [lower, upper, zero, anywhere])
        if arm.ball_excess(q) == 0.0:
            return q


def displaced(arm: Arm, q: np.ndarray, distance: float, angle: float, rng: np.random.Generator) -> Goal:
    """Return a goal that q (n,) misses by less than distance [m] and angle [rad]."""
    position, direction = arm.fk(q)
    across = np.cross(direction, random_unit(rng))
    turn = angle * rng.uniform(0.1, 0.98)
    direction = math.cos(turn) * direction + math.sin(turn) * across / np.linalg.norm(across)
    return Goal(position + distance * rng.uniform(0.1, 0.98) * random_unit(rng), direction)


@pytest.mark.parametrize(('distance', 'angle'), TOLERANCES)
@pytest.mark.parametrize('case', few_cases(), ids=lambda case: case.label)
def test_goals_within_the_tolerances_of_some_configuration_are_solved_from_any_seed(case, distance, angle):
    arm = case.arm()
    solver = IkSolver(arm, position_tolerance=distance, direction_tolerance=angle)
    rng = np.random.default_rng(36)
    for _ in range(GOALS):
        goal = displaced(arm, edges(arm, rng), distance, angle, rng)
        solution = solver.solve(goal, arm.sample(rng, 1)[0])
        assert solution.solved, solution.reason
        position_error, direction_error = solver.errors(goal, solution.q)
        assert position_error <= distance
        assert direction_error <= angle
        assert (arm.lower <= solution.q).all()
        assert (solution.q <= arm.upper).all()
        assert arm.ball_excess(solution.q) == 0.0


def test_where_two_solutions_have_just_vanished_those_of_goals_nearby_lead_there():
    """Three joints at their limits: of 64 descents from anywhere not one does."""
    arm = general_arm(18).arm
    goal = Goal(
        (0.1282731377435152, 0.2027564934327711, 0.22539722200061033),
        (-0.280330583605728, -0.9384807137992179, -0.20166485495044106),
    )
    q = [3.171414620122309, -2.6496574983719805, -1.3690973864413785, 1.8352674950295143, -2.7036675559169723]
    solver = IkSolver(arm)
    assert solver.evaluate(goal, np.array(q)).solved
    assert solver.solve(goal).solved


def test_solutions_by_formula_of_goals_nearby_lead_there_too():
    """Joints 2, 3 and 5 at their limits, of an arm with an exact formula: descents missed two of five."""
    arm = random_task(8).arm
    q = [0.9567102382014652, -0.75579757465096, -1.3948779256227521, -2.233463986621947, -0.508980520556285]
    q = np.clip(q, arm.lower, arm.upper)
    solver = IkSolver(arm)
    assert solver.closed_form is not None
    assert solver.closed_form.exact
    rng = np.random.default_rng(0)
    for _ in range(GOALS):
        goal = displaced(arm, q, 1e-6, 1e-4, rng)
        assert solver.evaluate(goal, q).solved
        assert solver.solve(goal, arm.sample(rng, 1)[0]).solved


@pytest.mark.parametrize('case', [case for case in CASES if case.label in ('lrmate200ic5h', 'shared_absent')])
def test_where_the_direction_is_tied_to_the_position_solutions_that_miss_it_a_little_lead_there(case):
    """Joints 1, 2 and 4 at their limits: 49 of 50 seeds ended elsewhere."""
    arm = case.arm()
    goal = Goal(
        (0.04900510189011668, -0.008639104863175678, 0.7253450842258442),
        (-0.4923793476774183, 0.0867217354464988, -0.8660496051508295),
    )
    solver = IkSolver(arm, position_tolerance=1e-6, direction_tolerance=1e-4)
    assert solver.evaluate(goal, np.array([2.9671, -1.0472, 0.0, -2.0944, 0.0])).solved
    rng = np.random.default_rng(0)
    for _ in range(10):
        assert solver.solve(goal, arm.sample(rng, 1)[0]).solved


@pytest.mark.parametrize('case', [case for case in CASES if case.label == 'xarm5_like'])
def test_formula_solutions_may_miss_a_tied_direction_by_as_much_as_the_tolerance(case):
    """Joints 3 and 4 at their limits: 45 of 50 seeds ended elsewhere."""
    arm = case.arm()
    goal = Goal(
        (-0.011339307227890387, -0.0024909317487327247, -0.06951476866448572),
        (9.671343405651467e-05, -0.02153480837420715, -0.9997680944473062),
    )
    solver = IkSolver(arm, position_tolerance=5e-3, direction_tolerance=5e-2)
    assert solver.evaluate(goal, np.array([3.388, 1.5055820993, 0.19198621772, -1.69296937443, 0.0])).solved
    rng = np.random.default_rng(0)
    for _ in range(10):
        assert solver.solve(goal, arm.sample(rng, 1)[0]).solved


TIGHT = [  # arm, position, direction, joints that meet them within 1 mm and 1e-6 rad
    (
        general_arm(65),
        (-0.5219205240618547, -0.18051785914121052, 0.1122532237107957),
        (-0.7545244601297016, -0.6498734217549589, -0.09141867841138132),
        (
            -1.425012501228638,
            -0.7338499309669966,
            0.04848286268923574,
            -0.17214317529106293,
            0.691798994954216,
        ),
    ),
    (
        random_task(87),
        (0.02612817977048866, 0.10469430531630611, -0.4210627937955692),
        (0.6390177321634284, -0.6760556626861131, 0.36688564830305076),
        (2.56999549828586, -1.7567999220923232, 0.0, 0.5986858528326056),
    ),
]


@pytest.mark.parametrize(
    ('task', 'position', 'direction', 'q'), TIGHT, ids=lambda value: getattr(value, 'name', '')
)
def test_a_direction_that_is_much_tighter_than_the_position_is_approached_gradually(
    task, position, direction, q
):
    """Descents that weighed it with 1000 m/rad from the start got stuck, from the given joints too."""
    arm, goal = task.arm, Goal(position, direction)
    solver = IkSolver(arm, position_tolerance=1e-3, direction_tolerance=1e-6)
    assert solver.evaluate(goal, q).solved
    for seed in (q, *arm.sample(np.random.default_rng(0), 5)):
        assert solver.solve(goal, seed).solved
