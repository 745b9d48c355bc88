# SPDX-License-Identifier: Apache-2.0
"""solve_all with joints locked: the others are solved as an arm of their own, completely."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from all_solutions_checks import least_gap
from made_arms import make_arm, random_unit
from oracles.chain import Chain
from shared_files import shared_path

from ik_node import Arm, Goal, IkSolver, InputError


def spare_arm(joints: int, seed: int = 0, slide: int | None = None) -> Arm:
    """An arm of any geometry with more joints than position and direction need."""
    rng = np.random.default_rng((seed, joints, 31))
    axes = [random_unit(rng) for _ in range(joints)]
    middle = rng.uniform(-0.5, 0.5, joints)
    half = rng.uniform(1.0, 3.0, joints)
    kinds = ['prismatic' if i == slide else 'revolute' for i in range(joints)]
    if slide is not None:
        middle[slide], half[slide] = 0.0, 0.3
    limits = np.column_stack([middle - half, middle + half])
    return make_arm(
        axes, rng.uniform(-0.25, 0.25, (joints, 3)), limits, kinds, random_unit(rng), (0.1, 0, 0.05)
    )


def real_arm(name: str, axis=(0.0, 0.0, 1.0), tip: str | None = None) -> Arm:
    return Arm.from_file(shared_path('arms', f'{name}.urdf'), tip, tool_axis=axis)


ARMS = {
    'six': lambda: spare_arm(6),
    'seven': lambda: spare_arm(7),
    'rail': lambda: spare_arm(6, 1, slide=0),
    'lift at the tool': lambda: spare_arm(6, 2, slide=5),
    'koch_v1_1': lambda: real_arm('koch_v1_1', tip='gripper_tcp2'),  # with the jaw
    'omx_l': lambda: real_arm('omx_l', tip='link6'),
    'vx300s': lambda: real_arm('vx300s'),
    'panda': lambda: real_arm('panda'),
    'panda x': lambda: real_arm('panda', (1.0, 0.0, 0.0)),
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
    rng = np.random.default_rng(5)
    for held, q in zip(places(arm), arm.sample(rng, 3), strict=True):
        names = [arm.joint_names[i] for i in held]
        goal = Goal(*arm.fk(q))
        solutions = solver.solve_all(goal, q, names, time_budget=np.inf)
        assert solutions.complete
        assert least_gap(arm, q, solutions) < 1e-6
        for solution in solutions:
            assert solution.solved
            assert (solution.q[held] == q[held]).all()
            assert ((solution.q >= arm.lower) & (solution.q <= arm.upper)).all()
            assert (solution.position_error, solution.direction_error) == solver.errors(goal, solution.q)
            assert max(solution.position_error, solution.direction_error) < 1e-6
        for one, other in itertools.combinations(solutions[:40], 2):
            assert np.abs(one.q - other.q).max() > 1e-4
        moves = [np.abs(solution.q - q).max() for solution in solutions]
        assert moves == sorted(moves) or np.diff(moves).min() > -1e-8
        for restarted in search.solve_all(goal, q, names, time_budget=np.inf):
            assert least_gap(arm, restarted.q, solutions) < 1e-5


def test_one_of_five_joints_can_be_held():
    axes = [(0, 0, 1), (0, 1, 0), (0, 1, 0), (0, 1, 0), (1, 0, 0)]
    offsets = [(0, 0, 0.1), (0, 0, 0.05), (0.2, 0, 0), (0.2, 0, 0), (0.05, 0, 0)]
    arm = make_arm(axes, offsets, [(-3, 3)] * 5, tool_axis=(0, 0, 1), tool_point=(0.1, 0, 0.02))
    solver = IkSolver(arm)
    for name, q in zip(arm.joint_names, arm.sample(np.random.default_rng(2), 5), strict=True):
        solutions = solver.solve_all(Goal(*arm.fk(q)), q, [name], time_budget=np.inf)
        assert least_gap(arm, q, solutions) < 1e-6
        assert not any(solution.self_motion for solution in solutions)


def test_locked_joints_leave_families_while_others_are_to_spare():
    arm = spare_arm(7)
    q = arm.sample(np.random.default_rng(3), 1)[0]
    solutions = IkSolver(arm).solve_all(Goal(*arm.fk(q)), q, [arm.joint_names[0]], time_budget=np.inf)
    assert not solutions.complete
    assert all(solution.self_motion for solution in solutions)
    assert least_gap(arm, q, solutions) < 1e-4


def test_joints_behind_a_held_one_follow_it_in_every_frame():
    """The goal is one of the arm's base link, whatever is locked; a direction is turned, not moved."""
    arm = ARMS['six']()
    chain = Chain(arm_text(arm), 'base', 'link6', arm.tool_axis, arm.tool_point)
    q = arm.sample(np.random.default_rng(8), 1)[0]
    point, axis = chain.fk(q[None])
    for held in (['joint1'], ['joint1', 'joint3'], ['joint6']):
        for solution in IkSolver(arm).solve_all(Goal(point[0], axis[0]), q, held, time_budget=np.inf):
            np.testing.assert_allclose(chain.fk(solution.q[None])[0][0], point[0], rtol=0, atol=1e-8)


def arm_text(arm: Arm) -> str:
    """URDF text of a made arm."""
    words = {name: ' '.join(map(repr, values)) for name, values in (
        (joint.name, joint.origin[:3, 3].tolist()) for joint in arm.robot.joints.values())}  # fmt: skip
    joints = ''.join(
        f'<joint name="{joint.name}" type="{joint.type}"><parent link="{joint.parent}"/>'
        f'<child link="{joint.child}"/><origin xyz="{words[joint.name]}"/>'
        f'<axis xyz="{" ".join(map(repr, joint.axis.tolist()))}"/></joint>'
        for joint in arm.robot.joints.values()
    )
    return f'<robot name="made">{joints}</robot>'


def test_all_joints_can_be_held():
    arm = spare_arm(6)
    q = arm.sample(np.random.default_rng(4), 1)[0]
    solver = IkSolver(arm)
    here = solver.solve_all(Goal(*arm.fk(q)), q, arm.joint_names, time_budget=np.inf)
    elsewhere = solver.solve_all(Goal(*arm.fk(q + 0.1)), q, arm.joint_names, time_budget=np.inf)
    assert [solution.q.tolist() for solution in here] == [q.tolist()]
    assert elsewhere == []
    assert here.complete
    assert elsewhere.complete


def test_joints_that_mimic_a_held_one_are_held_too():
    axes = [(0, 0, 1), (0, 1, 0), (0, 1, 0), (1, 0, 0), (0, 1, 0), (1, 0, 0)]
    offsets = [(0, 0, 0.1), (0.1, 0, 0.05), (0.2, 0, 0), (0.2, 0.05, 0), (0.05, 0, 0), (0.1, 0, 0)]
    arm = make_arm(axes, offsets, [(-2, 2)] * 6, None, (0, 0, 1), (0.1, 0, 0), mimics=[(5, 0, -0.5)])
    assert arm.n == 5
    q = arm.sample(np.random.default_rng(6), 1)[0]
    solutions = IkSolver(arm).solve_all(Goal(*arm.fk(q)), q, ['joint1'], time_budget=np.inf)
    assert least_gap(arm, q, solutions) < 1e-6
    assert solutions.complete


def test_bad_names_and_values_are_rejected():
    arm = spare_arm(6)
    solver, goal = IkSolver(arm), Goal(*arm.fk(arm.middle))
    for held, words in (
        ('joint1', 'list of joint names'),
        ([1], 'list of joint names'),
        (None, 'list of joint names'),
        ({'joint1': 0.3}, 'list of joint names'),
        (['joint1', 'joint1'], 'twice'),
        (['joint9'], 'not one of'),
    ):
        with pytest.raises(InputError, match=words):
            solver.solve_all(goal, arm.middle, held, time_budget=np.inf)
    with pytest.raises(InputError, match='"joint2" cannot be locked'):
        solver.solve_all(goal, arm.upper + 0.1, ['joint2'], time_budget=np.inf)


def test_a_ball_with_limits_is_held_whole_or_not_at_all():
    from cases import shipped_cases

    arm = next(case for case in shipped_cases() if case.label == 'ball_joint_arm').arm()
    ball = next(ball for ball in arm.balls if ball.limited)
    solver, q = IkSolver(arm), arm.middle
    goal = Goal(*arm.fk(q))
    with pytest.raises(InputError, match='ball joint with limits'):
        solver.solve_all(goal, q, ball.joints[:1], time_budget=np.inf)
    assert solver.solve_all(goal, q, ball.joints, time_budget=np.inf)
