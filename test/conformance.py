# SPDX-License-Identifier: Apache-2.0
"""One suite of checks for every way of solving: the pipeline and each local method, on every arm.

A check is a function of a Subject; test_conformance.py runs all of CHECKS for all subjects. What a
method may do worse is stated in PROMISES, with the reason.
"""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pytest
from cases import Case

from ik_node import Arm, Goal, IkSolver, InputError, Solution, Status, kernels
from ik_node.solver.goal import Cause

TRUTH = 1e-12  # m and rad: reported errors against another FK at the returned q
# Arms for which the search alone solves every goal of hardly_reachable, or it is beyond the workspace bounds.
DECIDED = ('magician_rail',)


FOUR_ARMS = ('seed_arm', 'xarm5_like', 'prismatic_arm', 'magician')  # one of each kind


@dataclass(frozen=True)
class Promise:
    """What a method achieves on every arm, with random restarts alone.

    success: share of reachable goals that are solved to tolerance [m and rad] within restarts.
    corners: the same for goals at joint limits and singular poses. best: how much further from the
    position than the best known its closest configuration may be, as a share of the reach, and [rad]
    how much worse its direction may be. goals: tested per arm. arms: labels of tested arms; empty: all.
    """

    goals: int = 60
    success: float = 1.0
    corners: float = 1.0
    restarts: int = 1000
    tolerance: float = 1e-6
    best: tuple[float, float] = (1e-5, 1e-4)
    arms: tuple[str, ...] = ()


# The pipeline as a user gets it, and every method of the registry alone.
PROMISES = {
    'pipeline': Promise(),
    # With all joints at a limit, one random start in hundreds is in the basin of the solution.
    # Of closest configurations, the one with the best direction may be missed.
    'lm': Promise(corners=0.9, best=(1e-5, 0.2)),
    # Every step is taken, so it converges less reliably where the error has no zero.
    'dls': Promise(30, corners=0.9, restarts=300, best=(1e-5, 3.2)),
    # Linear convergence, at a rate that the condition number sets; tool points a few millimetres off the
    # roll axis make it hundreds. A millimetre and a milliradian, not always further.
    'transpose': Promise(12, success=0.9, corners=0.7, restarts=200, tolerance=1e-3, best=(1e-2, 3.2)),
    'ccd': Promise(12, success=0.8, corners=0.6, restarts=100, tolerance=1e-3, best=(3e-2, 3.2)),
    'fabrik': Promise(12, success=0.5, corners=0.3, restarts=100, tolerance=1e-3, best=(6e-1, 3.2)),
    # Ten milliseconds a descent: few goals, few restarts, few arms.
    'autodiff': Promise(4, corners=0.6, restarts=4, best=(1e-2, 3.2), arms=('seed_arm', 'prismatic_arm')),
    'scipy': Promise(6, corners=0.7, restarts=10, best=(1e-4, 3.2), arms=FOUR_ARMS),
}


@dataclass(frozen=True)
class Subject:
    """One method on one arm."""

    method: str
    case: Case

    @property
    def promise(self) -> Promise:
        return PROMISES[self.method]

    @property
    def arm(self) -> Arm:
        return self.case.arm()

    def new_solver(self, **options) -> IkSolver:
        """The pipeline is IkSolver as it comes; a method is the same without a closed form."""
        options = {'restarts': self.promise.restarts, 'time_budget': math.inf, **options}
        tolerance = self.promise.tolerance
        tolerances = {'position_tolerance': tolerance, 'direction_tolerance': tolerance}
        if self.method == 'pipeline':
            return IkSolver(self.arm, **tolerances, **options)
        return IkSolver(self.arm, method=self.method, closed_form=False, **tolerances, **options)

    @cached_property
    def solver(self) -> IkSolver:
        return self.new_solver()

    def is_decided(self, solver: IkSolver) -> bool:
        """Whether goals that are hardly reachable are solved or refuted without a search that ends."""
        by_elimination = solver.elimination is not None and solver.elimination.forms(np.zeros(9))
        return solver.closed_form is not None or bool(by_elimination) or self.case.label in DECIDED

    def goals_at(self, points) -> list[Goal]:
        """The goals that the configurations (k, n) reach."""
        return [Goal(*self.arm.fk(q)) for q in points]

    def reachable(self, stream: int, count: int | None = None) -> list[Goal]:
        points = self.arm.sample(np.random.default_rng(stream), count or self.promise.goals)
        return self.goals_at(points)

    def beyond_reach(self) -> list[Goal]:
        """Goals 1 mm, 10 % and a hundred times out of reach, in any direction."""
        rng, arm = np.random.default_rng(11), self.arm
        goals = []
        nearest = arm.reach + self.promise.tolerance + 1e-3
        for distance in (nearest, 1.1 * nearest, 100.0 * nearest):
            away, direction = rng.normal(size=(2, 3))
            position = arm.joints[0, 3:6] + distance * away / np.linalg.norm(away)
            goals.append(Goal(position, direction / np.linalg.norm(direction)))
            goals.append(Goal(position))
        return goals

    def tied(self, count: int) -> list[Goal]:
        """Reachable positions with random directions, mostly out of reach on arms with 4 effective DoF."""
        rng = np.random.default_rng(12)
        goals = []
        for goal in self.reachable(13, count):
            direction = rng.normal(size=3)
            goals.append(Goal(goal.position, direction / np.linalg.norm(direction)))
        return goals

    def hardly_reachable(self) -> list[Goal]:
        """Positions where the arm is stretched most, with the direction that it has there turned round.

        Only a formula can show that they cannot be met; the search ends without an answer.
        """
        points = self.arm.sample(np.random.default_rng(17), 200)
        distances = [np.linalg.norm(self.arm.fk(q)[0] - self.arm.joints[0, 3:6]) for q in points]
        stretched = self.goals_at(points[np.argsort(distances)[-4:]])
        return [Goal(goal.position, -goal.direction) for goal in stretched]

    def assert_true(self, goal: Goal, solution: Solution) -> None:
        """What holds for every answer, whatever its status."""
        arm, q = self.arm, solution.q
        assert q.shape == (arm.n,)
        assert q.dtype == np.float64
        assert np.isfinite(q).all()
        assert (q >= arm.lower).all(), f'below the limits by {arm.lower - q}'
        assert (q <= arm.upper).all(), f'above the limits by {q - arm.upper}'
        assert arm.ball_excess(q) == 0.0, f'outside the limits of a ball by {arm.ball_excess(q)}'
        position_error, direction_error = self.errors(goal, q)
        scale = max(1.0, position_error)
        assert abs(solution.position_error - position_error) <= TRUTH * scale
        assert abs(solution.direction_error - direction_error) <= TRUTH
        met = max(solution.position_error, solution.direction_error) <= self.promise.tolerance
        assert met == (solution.status is Status.SOLVED)
        assert (solution.reason is None) == (solution.status is Status.SOLVED)
        assert 0 <= solution.restarts <= self.promise.restarts

    def errors(self, goal: Goal, q) -> tuple[float, float]:
        """Both errors at q by the oracle."""
        return self.case.plain().errors(dict(zip(self.arm.joint_names, q, strict=True)), goal)


def same_bits(first: Solution, second: Solution) -> bool:
    return first.q.tobytes() == second.q.tobytes() and (
        (first.status, first.position_error, first.direction_error, first.restarts)
        == (second.status, second.position_error, second.direction_error, second.restarts)
    )


def reachable_goals_are_solved(subject: Subject) -> None:
    solved = 0
    for goal in subject.reachable(1):
        solution = subject.solver.solve(goal)
        subject.assert_true(goal, solution)
        assert solution.status is not Status.UNREACHABLE
        solved += solution.solved
    assert solved >= subject.promise.success * subject.promise.goals


def reachable_goals_are_solved_from_any_seed(subject: Subject) -> None:
    """Random seeds, and seeds outside the limits by half a radian: the answer is inside all the same."""
    arm = subject.arm
    goals = subject.reachable(2, subject.promise.goals // 3 + 1)
    seeds = arm.sample(np.random.default_rng(3), len(goals))
    seeds[::2] = np.where(arm.continuous, 4.0, arm.upper + 0.5)
    solved = 0
    for goal, seed in zip(goals, seeds, strict=True):
        solution = subject.solver.solve(goal, seed)
        subject.assert_true(goal, solution)
        solved += solution.solved
    assert solved >= subject.promise.success * len(goals)


def a_seed_that_meets_the_goal_is_the_answer(subject: Subject) -> None:
    """A moving goal that stands still moves no joint."""
    for q in subject.arm.sample(np.random.default_rng(4), 5):
        solution = subject.solver.solve(Goal(*subject.arm.fk(q)), q)
        assert solution.solved
        assert solution.restarts == 0
        np.testing.assert_allclose(solution.q, q, rtol=0, atol=1e-5)


def positions_alone_are_solved(subject: Subject) -> None:
    goals = [Goal(goal.position) for goal in subject.reachable(5, subject.promise.goals // 3 + 1)]
    solved = 0
    for goal in goals:
        solution = subject.solver.solve(goal)
        subject.assert_true(goal, solution)
        assert solution.direction_error == 0.0
        solved += solution.solved
    assert solved >= subject.promise.success * len(goals)


def goals_at_limits_and_singular_poses_give_finite_true_answers(subject: Subject) -> None:
    """Every joint at a limit, at zero or mid-range: Jacobians lose rank, steps have nowhere to go."""
    arm = subject.arm
    lower = np.where(arm.continuous, -np.pi, arm.lower)
    upper = np.where(arm.continuous, np.pi, arm.upper)
    zero = np.clip(np.zeros(arm.n), lower, upper)
    rng = np.random.default_rng(6)
    corners = [np.where(rng.random(arm.n) < 0.5, lower, upper) for _ in range(subject.promise.goals // 10 + 1)]
    solved = []
    for q in [zero, arm.middle, lower, upper, *corners]:
        kernels.clip(q := q.copy(), arm.limits)  # corners of the limits are outside the cone of a ball
        goal = Goal(*arm.fk(q))
        for seed in (None, zero, upper):
            solution = subject.solver.solve(goal, seed)
            subject.assert_true(goal, solution)
            solved.append(solution.solved)
    assert np.mean(solved) >= subject.promise.corners


def goals_on_the_first_axis_give_finite_true_answers(subject: Subject) -> None:
    """There the first joint does not matter, and rotations between opposite vectors come up."""
    arm = subject.arm
    for height in (-0.5, 0.0, 0.3, 1.0):
        position = arm.joints[0, 3:6] + height * arm.reach * arm.joints[0, :3]
        for direction in (arm.joints[0, :3], -arm.joints[0, :3]):
            goal = Goal(position, direction)
            subject.assert_true(goal, subject.solver.solve(goal))


def opposite_directions_give_finite_true_answers(subject: Subject) -> None:
    """The seed's own position with the axis turned right round, where every gradient is zero."""
    for q in subject.arm.sample(np.random.default_rng(7), 3):
        position, direction = subject.arm.fk(q)
        goal = Goal(position, -direction)
        subject.assert_true(goal, subject.solver.solve(goal, q))


def goals_out_of_reach_are_said_to_be_and_reached_for(subject: Subject) -> None:
    """The arm stretches towards the goal: nearer than any of 200 random configurations."""
    arm = subject.arm
    points = arm.sample(np.random.default_rng(8), 200)
    for goal in subject.beyond_reach():
        solution = subject.solver.solve(goal)
        subject.assert_true(goal, solution)
        assert solution.status is Status.UNREACHABLE
        assert solution.reason.cause is Cause.TOO_FAR
        nearest = min(np.linalg.norm(arm.fk(q)[0] - goal.position) for q in [*points, arm.middle])
        assert solution.position_error <= nearest + subject.promise.best[0] * arm.reach


def tied_directions_keep_the_position(subject: Subject) -> None:
    """Position first, and then a direction no worse than one known to be possible there."""
    goals = subject.tied(subject.promise.goals // 6 + 1)
    for made, goal in zip(subject.reachable(13, len(goals)), goals, strict=True):
        solution = subject.solver.solve(goal)
        subject.assert_true(goal, solution)
        assert solution.position_error <= subject.promise.best[0] * max(1.0, subject.arm.reach)
        known = float(np.arccos(np.clip(made.direction @ goal.direction, -1, 1)))
        assert solution.direction_error <= known + subject.promise.best[1]


def huge_and_tiny_goals_give_finite_true_answers(subject: Subject) -> None:
    seed = np.where(subject.arm.continuous, 4.0, subject.arm.upper + 0.5)
    for size in (1e-300, 1e3, 1e6, 1e9):
        solution = subject.solver.solve(Goal((size, 0, -size), (0, 0, 1)), seed)
        assert np.isfinite(solution.q).all()
        assert (solution.q >= subject.arm.lower).all()
        assert (solution.q <= subject.arm.upper).all()
        assert not (size > 1 and solution.solved)


def inputs_are_left_unchanged(subject: Subject) -> None:
    arm = subject.arm
    seed = np.where(arm.continuous, 9.0, arm.upper + 1.0)
    position, direction = arm.fk(arm.sample(np.random.default_rng(9), 1)[0])
    unreachable = position + 3 * arm.reach
    arrays = [seed, position, direction, unreachable]
    before = [array.copy() for array in arrays]
    arm_before = [array.tobytes() for array in (arm.joints, arm.tool, arm.limits, arm.middle)]
    subject.solver.solve(Goal(position, direction), seed)
    answer = subject.solver.solve(Goal(unreachable, direction), seed)
    assert not np.shares_memory(answer.q, seed)
    answer.q[:] = np.nan
    subject.solver.solve(Goal(position))
    for array, copy in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(array, copy)
    assert arm_before == [array.tobytes() for array in (arm.joints, arm.tool, arm.limits, arm.middle)]


def same_input_gives_the_same_bits(subject: Subject) -> None:
    """Twice, in another order, from another solver, and whatever kind of array the seed is."""
    made = [*subject.reachable(10, 3), *subject.tied(2), subject.beyond_reach()[0]]
    raw = [(goal.position.tolist(), goal.direction.tolist()) for goal in made]
    goals = [Goal(*pair) for pair in raw]
    seed = subject.arm.middle
    first = [subject.solver.solve(goal) for goal in goals]
    other = subject.new_solver()
    for goal, pair, answer in reversed(list(zip(goals, raw, first, strict=True))):
        strided = np.repeat(seed, 2)[::2]
        for again in (
            subject.solver.solve(goal, strided),
            other.solve(goal, seed.tolist()),
            subject.solver.solve(Goal(*map(np.array, pair)), tuple(seed)),
        ):
            assert same_bits(answer, again)


def threads_get_the_same_answers(subject: Subject) -> None:
    goals = [*subject.reachable(14, 4), *subject.tied(1)]
    expected = [subject.solver.solve(goal) for goal in goals]
    wrong = []

    def work(shift):
        for k in range(len(goals)):
            i = (k + shift) % len(goals)
            if not same_bits(subject.solver.solve(goals[i]), expected[i]):
                wrong.append(i)

    threads = [threading.Thread(target=work, args=(2 * shift,)) for shift in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def the_restart_budget_is_kept(subject: Subject) -> None:
    used_up = 0
    for restarts in (0, 1, 3):
        solver = subject.new_solver(restarts=restarts)
        for goal in subject.hardly_reachable():
            solution = solver.solve(goal)
            assert 0 <= solution.restarts <= restarts
            met = max(subject.errors(goal, solution.q)) <= subject.promise.tolerance
            assert met == solution.solved
            if solution.status is Status.NOT_FOUND:
                used_up += 1
                assert solution.reason.cause is Cause.SEARCH_ENDED
                assert solution.reason.amount == solution.restarts == restarts
    assert used_up > 0 or subject.is_decided(solver), 'no goal has used the restarts up'


def the_time_budget_is_kept(subject: Subject) -> None:
    """No clock here: with no time at all, what is not settled at once is given up with that reason."""
    solver = subject.new_solver(time_budget=1e-9, restarts=20000)
    used_up = 0
    for goal in subject.hardly_reachable():
        solution = solver.solve(goal)
        if solution.status is Status.NOT_FOUND:
            used_up += 1
            assert solution.reason.cause is Cause.TIME
            assert solution.reason.amount == 1e-9
    assert used_up > 0 or subject.is_decided(solver), 'no goal has used the time up'


def steps_lead_to_what_the_descent_returns(subject: Subject) -> None:
    """Steps begin at the seed, stay within the limits and end at the answer of a solve without restarts."""
    arm, rng = subject.arm, np.random.default_rng(16)
    solver = (
        subject.new_solver(restarts=0, closed_form=False)
        if subject.method == 'pipeline'
        else (subject.new_solver(restarts=0))
    )
    ended = 0
    for q in arm.sample(rng, 4):
        goal = Goal(*arm.fk(q))
        seed = np.clip(q + rng.uniform(-0.2, 0.2, arm.n), arm.lower, arm.upper)
        rows = np.array(list(solver.steps(goal, seed)))
        assert rows.shape[1:] == (arm.n,)
        assert np.isfinite(rows).all()
        assert (rows >= arm.lower).all()
        assert (rows <= arm.upper).all()
        assert max(map(arm.ball_excess, rows)) == 0.0
        np.testing.assert_array_equal(rows[0], seed)
        solution = solver.solve(goal, seed)
        if solution.solved and max(subject.errors(goal, rows[-1])) <= subject.promise.tolerance:
            ended += 1
            assert rows[-1].tobytes() == solution.q.tobytes()
    assert ended > 0 or subject.promise.success < 0.9, 'no descent has met its goal'


def bad_seeds_are_rejected(subject: Subject) -> None:
    n = subject.arm.n
    goal = subject.reachable(15, 1)[0]
    for seed in (
        *([0.0] * (n + 1), [0.0] * (n - 1), 0.0, [[0.0] * n], [0.0] * (n - 1) + [np.nan]),
        *([np.inf] + [0.0] * (n - 1), 'abc', ['x'] * n, [None] * n, {}),
    ):
        with pytest.raises(InputError, match=f'seed must be {n} finite numbers') as caught:
            subject.solver.solve(goal, seed)
        assert subject.arm.joint_names[0] in str(caught.value)
        many = len(seed) if isinstance(seed, list) and all(isinstance(one, float) for one in seed) else n
        assert (f'got {many} numbers: ' in str(caught.value)) == (many != n)


CHECKS = [
    reachable_goals_are_solved,
    reachable_goals_are_solved_from_any_seed,
    a_seed_that_meets_the_goal_is_the_answer,
    positions_alone_are_solved,
    goals_at_limits_and_singular_poses_give_finite_true_answers,
    goals_on_the_first_axis_give_finite_true_answers,
    opposite_directions_give_finite_true_answers,
    goals_out_of_reach_are_said_to_be_and_reached_for,
    tied_directions_keep_the_position,
    huge_and_tiny_goals_give_finite_true_answers,
    inputs_are_left_unchanged,
    same_input_gives_the_same_bits,
    threads_get_the_same_answers,
    the_restart_budget_is_kept,
    the_time_budget_is_kept,
    steps_lead_to_what_the_descent_returns,
    bad_seeds_are_rejected,
]
