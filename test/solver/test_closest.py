# SPDX-License-Identifier: Apache-2.0
"""Closest configurations against a numeric reference: scipy's descents from many places, SLSQP to the end."""

from __future__ import annotations

import math

import numpy as np
import pytest
from cases import BY_NAME, few_cases, new_solver, shipped_cases
from hypothesis import given, settings
from hypothesis import strategies as st
from made_arms import make_arm, parallel_arm, random_unit
from random_chains import frames_at, random_chain
from scipy.optimize import least_squares, minimize

from ik_node import Goal, IkSolver, InputError, Status, kernels

CASES = [BY_NAME[name] for name in ('seed_arm', 'so101_like', 'prismatic_arm', 'ball_joint_arm')]
POSITION, DIRECTION = 1e-6, 1e-4  # m and rad by which the reference may be better
STARTS = 8


def angle(a, b):
    return 2.0 * math.atan2(np.linalg.norm(a - b), np.linalg.norm(a + b))


def bounds_of(arm):
    """Finite limits; a hair inside one another, which least_squares asks for."""
    lower = np.where(np.isfinite(arm.lower), arm.lower, -2 * np.pi)
    upper = np.where(np.isfinite(arm.upper), arm.upper, 2 * np.pi)
    return lower, np.maximum(upper, lower + 1e-9)


def reference(arm, goal, rng, starts=STARTS):
    """Both errors of the best of many descents: least position error first, then least direction error."""
    lower, upper = bounds_of(arm)
    best = (np.inf, np.inf)
    for q in arm.sample(rng, starts):
        for weight in (0.1, 3e-3):
            q = least_squares(
                lambda q, w=weight: np.concatenate(
                    [arm.fk(q)[0] - goal.position, w * (arm.fk(q)[1] - goal.direction)]
                ),
                np.clip(q, lower, upper),
                lambda q, w=weight: arm.jacobian(q) * np.repeat([1.0, w], 3)[:, None],
                bounds=(lower, upper),
                max_nfev=60,
            ).x
        if np.linalg.norm(arm.fk(q)[0] - goal.position) < 1e-2:
            q = minimize(
                lambda q: -(arm.fk(q)[1] @ goal.direction),
                q,
                jac=lambda q: -(goal.direction @ arm.jacobian(q)[3:]),
                bounds=list(zip(lower, upper, strict=True)),
                constraints={
                    'type': 'eq',
                    'fun': lambda q: arm.fk(q)[0] - goal.position,
                    'jac': lambda q: arm.jacobian(q)[:3],
                },
                method='SLSQP',
                options={'ftol': 1e-13, 'maxiter': 200},
            ).x
        position, direction = arm.fk(np.clip(q, lower, upper))
        error = float(np.linalg.norm(position - goal.position))
        turn = angle(direction, goal.direction)
        if error < best[0] - POSITION or (error < best[0] + POSITION and turn < best[1]):
            best = (error, turn)
    return best


def nearest_place(arm, position, rng, starts=STARTS):
    """Least position error of many bounded descents on the position alone."""
    lower, upper = bounds_of(arm)
    if arm.has_cones:
        return min(in_cone(arm, position, q) for q in arm.sample(rng, starts))
    return min(
        math.sqrt(
            2
            * least_squares(
                lambda q: arm.fk(q)[0] - position,
                np.clip(q, lower, upper),
                lambda q: arm.jacobian(q)[:3],
                bounds=(lower, upper),
                xtol=1e-14,
                ftol=1e-14,
                gtol=1e-14,
            ).cost
        )
        for q in arm.sample(rng, starts)
    )


def in_cone(arm, position, q):
    """Least position error of a descent from q with the cone of a ball as a constraint."""
    (ball,) = arm.balls
    columns = [arm.joint_names.index(name) for name in ball.swing_joints]
    found = minimize(
        lambda q: np.sum((arm.fk(q)[0] - position) ** 2),
        q,
        jac=lambda q: 2.0 * (arm.fk(q)[0] - position) @ arm.jacobian(q)[:3],
        bounds=list(zip(arm.lower, arm.upper, strict=True)),
        constraints={'type': 'ineq', 'fun': lambda q: np.prod(np.cos(q[columns])) - math.cos(ball.swing)},
        method='SLSQP',
        options={'ftol': 1e-15, 'maxiter': 300},
    )
    return math.sqrt(found.fun) if found.success else math.inf


def tied_goals(arm, rng, count):
    return [Goal(arm.fk(q)[0], random_unit(rng)) for q in arm.sample(rng, count)]


def far_goals(arm, rng, count):
    base = arm.joints[0, 3:6]
    return [
        Goal(base + rng.uniform(0.5, 1.5) * arm.reach * random_unit(rng), random_unit(rng))
        for _ in range(count)
    ]


@pytest.mark.parametrize('case', CASES, ids=lambda case: case.label)
def test_no_reference_descent_gets_nearer_to_a_direction_that_the_position_ties(case):
    arm = case.arm()
    solver, rng = IkSolver(arm), np.random.default_rng(20)
    for goal in tied_goals(arm, rng, 2):
        solution = solver.solve(goal)
        position, direction = reference(arm, goal, rng)
        assert solution.position_error <= position + POSITION
        if position <= 10 * POSITION:
            assert solution.direction_error <= direction + DIRECTION


@pytest.mark.slow
@pytest.mark.parametrize('case', CASES, ids=lambda case: case.label)
def test_no_reference_descent_gets_nearer_to_a_position_out_of_reach(case):
    arm = case.arm()
    solver, rng = IkSolver(arm), np.random.default_rng(21)
    for goal in far_goals(arm, rng, 2):
        nearest = nearest_place(arm, goal.position, rng)
        assert solver.solve(goal).position_error <= nearest + POSITION
        assert solver.solve(Goal(goal.position)).position_error <= nearest + POSITION


@pytest.mark.parametrize('case', few_cases(), ids=lambda case: case.label)
def test_among_equally_near_places_the_direction_is_the_nearest(case):
    """Many solves from random seeds are many tries: none finds a direction that another misses."""
    arm = case.arm()
    solver, rng = IkSolver(arm), np.random.default_rng(22)
    for goal in [*far_goals(arm, rng, 3), *tied_goals(arm, rng, 3)]:
        answers = [solver.solve(goal, seed) for seed in arm.sample(rng, 10)]
        errors = np.array([(answer.position_error, answer.direction_error) for answer in answers])
        assert np.ptp(errors[:, 0]) <= POSITION
        assert np.ptp(errors[:, 1]) <= DIRECTION


@pytest.mark.parametrize('case', few_cases(), ids=lambda case: case.label)
def test_a_goal_one_millimetre_out_of_reach_is_missed_by_one_millimetre(case):
    """The arm stretched as far as it goes, and the goal beyond its tool point."""
    arm = case.arm()
    solver, rng = IkSolver(arm), np.random.default_rng(23)
    base = arm.joints[0, 3:6]
    for _ in range(3):
        far = Goal(base + 3 * arm.reach * random_unit(rng))
        edge = arm.fk(solver.solve(far).q)[0]
        outward = (far.position - edge) / np.linalg.norm(far.position - edge)
        solution = solver.solve(Goal(edge + 1e-3 * outward, random_unit(rng)))
        assert solution.status is not Status.SOLVED
        assert solution.position_error == pytest.approx(1e-3, abs=POSITION)


@pytest.mark.parametrize('case', few_cases(), ids=lambda case: case.label)
def test_a_goal_that_moves_slowly_out_of_reach_moves_the_arm_slowly(case):
    """No dithering: on a circle around the arm no joint moves much more than the goal does about the base."""
    arm = case.arm()
    solver = IkSolver(arm)
    base, step = arm.joints[0, 3:6], 0.01
    moves = []
    q = None
    for turn in np.arange(-0.6, 0.6, step):
        outward = np.array([math.cos(turn), math.sin(turn), 0.5])
        goal = Goal(base + 1.2 * arm.reach * outward, (0.0, 0.6, -0.8))
        last, q = q, solver.solve(goal, q).q
        if last is not None:
            moves.append(np.abs(q - last).max())
    assert max(moves) <= 10 * step


@pytest.mark.parametrize('case', few_cases(), ids=lambda case: case.label)
def test_of_equally_good_answers_the_seed_has_the_nearest(case):
    """Asked again from its own answer, the solver stays there."""
    arm = case.arm()
    solver, rng = IkSolver(arm), np.random.default_rng(24)
    for goal in [*tied_goals(arm, rng, 6), *far_goals(arm, rng, 6)]:
        answer = solver.solve(goal, arm.sample(rng, 1)[0])
        again = solver.solve(goal, answer.q)
        np.testing.assert_allclose(again.q, answer.q, atol=2e-3)


@pytest.mark.slow
def test_a_compromise_has_the_least_weighted_error():
    arm = next(case for case in shipped_cases() if case.label == 'so101_like').arm()
    rng = np.random.default_rng(25)
    lower, upper = bounds_of(arm)
    for weight in (0.02, 0.3):
        solver = IkSolver(arm, direction_weight=weight)
        for goal in tied_goals(arm, rng, 2):

            def cost(q, goal=goal, weight=weight):
                position, direction = arm.fk(np.clip(q, lower, upper))
                return math.hypot(
                    np.linalg.norm(position - goal.position), weight * angle(direction, goal.direction)
                )

            best = np.inf
            for q in arm.sample(rng, 8):
                descent = minimize(cost, q, method='L-BFGS-B', bounds=list(zip(lower, upper, strict=True)))
                best = min(best, descent.fun)
            solution = solver.solve(goal)
            mine = math.hypot(solution.position_error, weight * solution.direction_error)
            assert mine <= best + 1e-6
            assert mine == pytest.approx(cost(solution.q), abs=1e-12)


def test_the_dearer_the_direction_the_nearer_it_comes():
    arm = next(case for case in shipped_cases() if case.label == 'xarm5_like').arm()
    goal = tied_goals(arm, np.random.default_rng(26), 1)[0]
    solutions = [IkSolver(arm, direction_weight=weight).solve(goal) for weight in (1e-3, 1e-2, 0.1, 1.0)]
    directions = [solution.direction_error for solution in [IkSolver(arm).solve(goal), *solutions]]
    positions = [solution.position_error for solution in [IkSolver(arm).solve(goal), *solutions]]
    assert directions == sorted(directions, reverse=True)
    assert positions == sorted(positions)
    assert directions[-1] < 0.5 * directions[0]


@pytest.mark.parametrize('direction_weight', [0.0, -1.0, math.nan, math.inf])
def test_a_compromise_without_a_price_is_rejected(direction_weight):
    with pytest.raises(InputError, match='direction_weight must be a finite number greater than 0'):
        IkSolver(shipped_cases()[0].arm(), direction_weight=direction_weight)


@given(st.integers(0, 10**6), st.sampled_from([0.0, 1e-3, 0.3]), st.booleans())
@settings(max_examples=100, deadline=None)
def test_newtons_equations_are_the_derivatives_of_the_errors(seed, weight, near):
    """Gradient and Hessian of half the weighted squared errors against central differences."""
    joints, tool, n = random_chain(seed)
    rng = np.random.default_rng(seed)
    q = rng.uniform(-1, 1, n)
    at = frames_at(joints, tool, q + 1e-4 * rng.normal(size=n) if near else rng.uniform(-1, 1, n))
    goal = np.concatenate([at[-3] + 0.1 * rng.normal(size=3), at[-2], np.full(3, np.nan)])

    def errors(q):
        return kernels.goal_errors(joints, frames_at(joints, tool, q), goal)

    def newton(q):
        hessian, gradient, scale = np.empty((n, n)), np.empty(n), np.empty(n)
        rows = np.empty((len(joints), 13))
        kernels.curved_equations(
            joints, frames_at(joints, tool, q), goal, weight, rows, hessian, gradient, scale
        )
        return np.tril(hessian) + np.tril(hessian, -1).T, gradient

    hessian, gradient = newton(q)
    h = 1e-5
    if errors(q)[1] > 3.0:  # the direction error has a kink at pi
        return
    for i in range(n):
        step = h * np.eye(n)[i]
        up, down = errors(q + step), errors(q - step)
        slope = sum(w * (a * a - b * b) for w, a, b in zip((1, weight**2), up, down, strict=True)) / (4 * h)
        assert gradient[i] == pytest.approx(-slope, abs=1e-7)
        column = (newton(q - step)[1] - newton(q + step)[1]) / (2 * h)
        np.testing.assert_allclose(hessian[:, i], column, atol=1e-6)


def test_the_closest_direction_does_not_depend_on_the_seed():
    """Joint 5 turns all the way round, so that the scan over it might begin at the seed."""
    rng, solver = np.random.default_rng(4), new_solver(parallel_arm(8))
    for place in solver.arm.sample(rng, 12):
        axis = rng.normal(size=3)
        goal = Goal(solver.arm.fk(place)[0], axis / np.linalg.norm(axis))
        errors = [solver.solve(goal, seed).direction_error for seed in solver.arm.sample(rng, 6)]
        assert np.ptp(errors) < 2e-6


def test_the_closest_direction_of_four_joints_does_not_depend_on_the_seed():
    """Yaw and three pitches, of which one curve of configurations reaches a position."""
    axes = [(0, 0, 1), (0, -1, 0), (0, -1, 0), (0, -1, 0)]
    offsets = [(0, 0, 0.1), (0.3, 0, 0.2), (1.3, 0, 0.7), (0.5, 0, -0.9)]
    limits = [(-3.15, 3.15), (-0.587, 0.587), (-1.2, 1.5), (0.5, 2.0)]
    arm = make_arm(axes, offsets, limits, tool_axis=(0.4, 0, -1), tool_point=(0.1, 0, 0.05))
    rng, solver = np.random.default_rng(3), new_solver(arm)
    for place, direction in (
        ((-0.006, -0.0767, 1.2857, 0.6008), (-0.952, 0.265, 0.1533)),
        ((-2.4619, -0.4118, 1.2129, 0.6376), (0.7853, 0.0667, 0.6155)),
        ((0.5171, 0.361, 1.2961, 0.7334), (-0.8099, -0.5792, -0.0927)),
    ):
        goal = Goal(arm.fk(place)[0], direction)
        found = [solver.solve(goal, seed) for seed in arm.sample(rng, 20)]
        assert max(answer.position_error for answer in found) < 1e-6
        assert np.ptp([answer.direction_error for answer in found]) < 1e-6
