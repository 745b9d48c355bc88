# SPDX-License-Identifier: Apache-2.0
"""Arms with joints to spare: lists with joints locked, and one configuration of every self-motion."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from all_solutions_checks import least_gap
from cases import arm_of
from made_arms import make_arm, random_unit
from oracles.traced import STEP, distances, on, separate, traced, without_turns
from shared_files import shared_path

from ik_node import Arm, Goal, IkSolver, InputError

pytestmark = pytest.mark.slow


def spare_arm(joints: int, seed: int = 0, slide: int | None = None) -> Arm:
    """An arm of any geometry with more joints than position and direction need."""
    rng = np.random.default_rng((seed, joints, 31))
    axes = [random_unit(rng) for _ in range(joints)]
    middle, half = rng.uniform(-0.5, 0.5, joints), rng.uniform(1.0, 3.0, joints)
    kinds = ['prismatic' if i == slide else 'revolute' for i in range(joints)]
    if slide is not None:
        middle[slide], half[slide] = 0.0, 0.3
    limits, tip = np.column_stack([middle - half, middle + half]), (0.1, 0, 0.05)
    return make_arm(axes, rng.uniform(-0.25, 0.25, (joints, 3)), limits, kinds, random_unit(rng), tip)


def real_arm(name: str, axis=(0.0, 0.0, 1.0), tip: str | None = None) -> Arm:
    return Arm.from_file(shared_path('arms', f'{name}.urdf'), tip, tool_axis=axis)


ARMS = {
    'six': lambda: spare_arm(6),
    'seven': lambda: spare_arm(7),
    'rail': lambda: spare_arm(6, 1, slide=0),
    'lift at the tool': lambda: spare_arm(6, 2, slide=5),
    'koch_v1_1': lambda: real_arm('koch_v1_1', tip='gripper_tcp2'),  # with the jaw
    'vx300s': lambda: real_arm('vx300s'),
    'panda': lambda: real_arm('panda'),
    'ur5e x': lambda: real_arm('ur5e', (1.0, 0.0, 0.0)),
}


def places(arm: Arm) -> list[list[int]]:
    """As many joints that count as are to spare: next to the base, next to the tool, and between."""
    counts = np.flatnonzero(~arm.idle).tolist()
    spare = len(counts) - arm.effective_dof
    return [counts[k : k + spare] for k in (0, len(counts) - spare, (len(counts) - spare) // 2)]


@pytest.mark.parametrize('name', ARMS)
def test_all_solutions_of_the_other_joints_are_found(name):
    arm = ARMS[name]()
    solver, search = IkSolver(arm), IkSolver(arm, closed_form=False)
    for held, q in zip(places(arm), arm.sample(np.random.default_rng(5), 3), strict=True):
        names = [arm.joint_names[i] for i in held]
        goal = Goal(*arm.fk(q))
        solutions = solver.solve_all(goal, q, names, time_budget=np.inf)
        assert solutions.complete
        assert least_gap(arm, q, solutions) < 1e-6
        for solution in solutions:
            assert solution.solved
            assert (solution.q[held] == q[held]).all()
            assert ((solution.q >= arm.lower) & (solution.q <= arm.upper)).all()
            errors = solver.errors(goal, solution.q)
            assert (solution.position_error, solution.direction_error) == errors
            assert max(errors) < 1e-6
        for one, other in itertools.combinations(solutions[:40], 2):
            assert np.abs(one.q - other.q).max() > 1e-4
        assert np.diff([np.abs(solution.q - q).max() for solution in solutions]).min(initial=0.0) > -1e-8
        for restarted in search.solve_all(goal, q, names, time_budget=0.2):
            assert least_gap(arm, restarted.q, solutions) < 1e-5


def test_one_of_five_joints_can_be_held():
    axes = [(0, 0, 1), (0, 1, 0), (0, 1, 0), (0, 1, 0), (1, 0, 0)]
    offsets = [(0, 0, 0.1), (0, 0, 0.05), (0.2, 0, 0), (0.2, 0, 0), (0.05, 0, 0)]
    arm = make_arm(axes, offsets, [(-3, 3)] * 5, tool_axis=(0, 0, 1), tool_point=(0.1, 0, 0.02))
    for name, q in zip(arm.joint_names, arm.sample(np.random.default_rng(2), 5), strict=True):
        solutions = IkSolver(arm).solve_all(Goal(*arm.fk(q)), q, [name], time_budget=np.inf)
        assert least_gap(arm, q, solutions) < 1e-6
        assert not any(solution.self_motion for solution in solutions)


def test_locked_joints_leave_families_while_others_are_to_spare():
    arm = spare_arm(7)
    q = arm.sample(np.random.default_rng(3), 1)[0]
    solutions = IkSolver(arm).solve_all(Goal(*arm.fk(q)), q, [arm.joint_names[0]], time_budget=np.inf)
    assert not solutions.complete
    assert all(solution.self_motion for solution in solutions)
    assert least_gap(arm, q, solutions) < 1e-4


def test_all_joints_can_be_held():
    arm = spare_arm(6)
    q = arm.sample(np.random.default_rng(4), 1)[0]
    for goal, expected in ((Goal(*arm.fk(q)), [q.tolist()]), (Goal(*arm.fk(q + 0.1)), [])):
        found = IkSolver(arm).solve_all(goal, q, arm.joint_names)
        assert [solution.q.tolist() for solution in found] == expected
        assert found.complete


def test_joints_that_mimic_a_held_one_are_held_too():
    axes = [(0, 0, 1), (0, 1, 0), (0, 1, 0), (1, 0, 0), (0, 1, 0), (1, 0, 0)]
    offsets = [(0, 0, 0.1), (0.1, 0, 0.05), (0.2, 0, 0), (0.2, 0.05, 0), (0.05, 0, 0), (0.1, 0, 0)]
    arm = make_arm(axes, offsets, [(-2, 2)] * 6, None, (0, 0, 1), (0.1, 0, 0), mimics=[(5, 0, -0.5)])
    assert arm.n == 5
    q = arm.sample(np.random.default_rng(6), 1)[0]
    solutions = IkSolver(arm).solve_all(Goal(*arm.fk(q)), q, ['joint1'], time_budget=np.inf)
    assert least_gap(arm, q, solutions) < 1e-6
    assert solutions.complete


def test_what_cannot_be_held_is_named():
    arm, ball_arm = spare_arm(6), arm_of('ball_joint_arm')
    for held in ('joint1', [1], None, {'joint1': 0.3}, ['joint1', 'joint1'], ['joint9']):
        with pytest.raises(InputError, match='joint'):
            IkSolver(arm).solve_all(Goal(*arm.fk(arm.middle)), arm.middle, held)
    with pytest.raises(InputError, match='"joint2" cannot be locked'):
        IkSolver(arm).solve_all(Goal(*arm.fk(arm.middle)), arm.upper + 0.1, ['joint2'])
    ball = next(ball for ball in ball_arm.balls if ball.limited)  # whole or not at all
    goal = Goal(*ball_arm.fk(ball_arm.middle))
    with pytest.raises(InputError, match='ball joint with limits'):
        IkSolver(ball_arm).solve_all(goal, ball_arm.middle, ball.joints[:1])
    assert IkSolver(ball_arm).solve_all(goal, ball_arm.middle, ball.joints)


# --- self-motions of arms with one spare joint ---------------------------------------------------------


def rows_of(solver: IkSolver, goal: Goal, seed, time_budget=np.inf) -> np.ndarray:
    found = solver.solve_all(goal, seed, time_budget=time_budget)
    return without_turns(solver.arm, np.array([one.q for one in found]).reshape(-1, solver.arm.n))


@pytest.mark.parametrize('name', ['six', 'rail', 'panda'])
def test_every_family_is_found_once_by_its_member_nearest_to_the_seed(name):
    arm = ARMS[name]()
    solver, search = IkSolver(arm), IkSolver(arm, closed_form=False)
    assert solver.self_motions is not None
    q, seed = arm.sample(np.random.default_rng(1), 2)
    goal = Goal(*arm.fk(q))
    found = solver.solve_all(goal, seed, time_budget=np.inf)
    assert not found.complete
    assert all(solution.self_motion for solution in found)
    rows = without_turns(arm, np.array([one.q for one in found]))
    families = separate(arm, goal, rows)
    assert len(families) == len(rows) > 0  # none twice
    for family, start in zip(families, rows, strict=True):  # traced to beyond limits
        assert distances(arm, start[None], seed) < distances(arm, family, seed).min() + 3.0 * STEP
    for point in [q, *rows_of(search, goal, seed, 1.0)]:
        assert any(on(arm, family, point) for family in families)


def test_a_family_between_the_values_of_joint_1_is_found():
    """A loop so small that no value of joint 1 in the grid meets it: next to the edge of the workspace."""
    arm = spare_arm(6)
    solver = IkSolver(arm)
    q = np.array([1.6790299796, -1.5227069062, -0.1200354291, 0.9265711597, 1.2889727217, -0.8666370444])
    goal = Goal(*arm.fk(q))
    family = traced(arm, goal, q)
    low, high = family[:, 0].min(), family[:, 0].max()
    grid = solver.self_motions._grid
    assert not ((grid > low - 0.01) & (grid < high + 0.01)).any()
    assert any(on(arm, family, row) for row in rows_of(solver, goal, arm.middle))


def test_a_wide_range_of_joint_1_has_the_same_families_as_one_turn():
    """Turns of joint 1 change nothing; solutions come with all their turns."""
    arm = spare_arm(6)
    wide, endless = widened(arm, 2.0 * np.pi + 1.0), widened(arm, np.pi)
    (q,) = endless.sample(np.random.default_rng(3), 1)
    goal = Goal(*arm.fk(q))
    turned = rows_of(IkSolver(wide), goal, arm.middle)
    for row in rows_of(IkSolver(endless), goal, arm.middle):
        family = traced(wide, goal, row)
        assert any(on(wide, family, other) for other in turned)


def widened(arm: Arm, half: float) -> Arm:
    """The arm with joint 1 from -half to half."""
    joint = replace(arm.robot.joints['joint1'], lower=-half, upper=half)
    robot = arm.robot.with_joints({**arm.robot.joints, 'joint1': joint})
    return Arm(robot, arm.tip_link, arm.tool_axis, arm.tool_point)
