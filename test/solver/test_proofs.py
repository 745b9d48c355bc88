# SPDX-License-Identifier: Apache-2.0
"""All solutions proven by interval arithmetic, and what is not proven."""

from __future__ import annotations

import math
import sys

import numpy as np
import pytest
from cases import arm_of
from made_arms import general_arm, make_arm, manseur_doty_arm, parallel_arm, wrist_arm
from shared_files import shared_path

from ik_node import Arm, Goal, IkSolver, Status
from ik_node.errors import MissingError
from ik_node.solver.proof import ComplexSolutions, Enclosing, geometry_of, most_solutions, special_nearby

pytestmark = pytest.mark.slow

pytest.importorskip('flint')


def most(arm: Arm) -> int:
    return most_solutions(geometry_of(arm))


def assert_agrees(solver: IkSolver, goal: Goal) -> int:
    """The proof holds and has the solutions of solve_all; returns how many."""
    proof, every = solver.prove(goal), solver.solve_all(goal, time_budget=np.inf)
    assert proof.proven, proof.reason
    assert proof.enclosed == proof.bound
    assert len(proof.q) == len(every)
    assert (proof.radius < 1e-8).all()
    left = [solution.q for solution in every]
    for q in proof.q:
        nearest = min(range(len(left)), key=lambda k: np.abs(left[k] - q).max())
        assert np.abs(left.pop(nearest) - q).max() < 1e-6
    return len(every)


def goals_of(arm: Arm, count: int, seed: int = 0):
    """Reachable goals, and as many with the opposite direction, of which most are not."""
    for q in arm.sample(np.random.default_rng(seed), count):
        position, direction = arm.fk(q)
        yield Goal(position, direction)
        yield Goal(position, -direction)


ARMS = {  # with the bound of complex solutions, and how many goals
    'general': (lambda: general_arm(0), 16, 2),
    'seed_arm': (lambda: arm_of('seed_arm'), 8, 2),
    'magician_rail': (lambda: Arm.from_file(shared_path('arms', 'magician_rail.urdf')), 4, 3),
    'so101': (lambda: Arm.from_file(shared_path('arms', 'so101.urdf'), 'gripper_frame_link'), 16, 1),
    'nearly parallel': (lambda: parallel_arm(1, tilt=1e-12), 16, 1),  # half of its complex solutions are
    'nearly a wrist': (lambda: wrist_arm(1, miss=1e-12), 16, 1),  # at infinity but for rounding
}


@pytest.mark.parametrize('name', ARMS)
def test_proofs_agree_with_solve_all(name):
    make, bound, goals = ARMS[name]
    arm = make()
    solver = IkSolver(arm)
    assert most(arm) == bound
    counts = [assert_agrees(solver, goal) for goal in goals_of(arm, goals)]
    assert sum(counts) >= goals
    if name.startswith('nearly'):
        assert solver.prove(next(goals_of(arm, 1))).bound == 8


def test_sixteen_real_solutions_are_proven():
    arm = manseur_doty_arm()
    solver = IkSolver(arm)
    goals = (Goal(*arm.fk(q)) for q in arm.sample(np.random.default_rng(0), 6))
    goal = next(goal for goal in goals if len(solver.solve_all(goal, time_budget=np.inf)) == 16)
    assert assert_agrees(solver, goal) == 16


def test_rejections_are_proven():
    """Of goals that only limits forbid, and of goals without any real solution."""
    arm = general_arm(1)
    solver = IkSolver(arm)
    rejected = [goal for goal in goals_of(arm, 5) if solver.solve(goal).status is Status.UNREACHABLE]
    assert len(rejected) > 1
    for goal in [*rejected[:2], Goal((0.0, 0.0, 3 * arm.reach), (0, 0, 1))]:
        proof = solver.prove(goal)
        assert proof.proven
        assert proof.q.shape == (0, 5)


def test_a_missing_solution_leaves_nothing_proven(monkeypatch):
    solver, goal = IkSolver(general_arm(0)), Goal(*general_arm(0).fk([0.1, -0.2, 0.3, 0.4, -0.5]))
    assert solver.prove(goal).proven
    every = ComplexSolutions.of
    for lose in (lambda found: found[1:], lambda found: np.vstack([found[1:], found[1:2] + 2 * math.pi])):
        monkeypatch.setattr(ComplexSolutions, 'of', lambda *given, lose=lose: lose(every(*given)))
        proof = solver.prove(goal)
        assert not proof.proven
        assert (proof.enclosed, proof.bound, len(proof.q)) == (15, 16, 0)
        assert '15 of 16' in proof.reason


def test_a_solution_at_a_limit_is_not_decided():
    arm = general_arm(0)
    q = arm.middle.copy()
    q[2] = arm.upper[2]
    proof = IkSolver(arm).prove(Goal(*arm.fk(q)))
    assert not proof.proven
    assert 'limit' in proof.reason
    assert len(proof.q) == 0
    for off in (-1e-5, 1e-5):
        q[2] = arm.upper[2] + off
        proof = IkSolver(arm).prove(Goal(*arm.fk(q)))
        assert proof.proven
        assert any(np.abs(row - q).max() < 1e-9 for row in proof.q) == (off < 0)


def test_singular_solutions_are_not_enclosed():
    """The elbow stretched, where two solutions coincide, and nearly so."""
    arm = arm_of('seed_arm')
    q = np.array([0.3, 0.4, stretched(arm), 0.5, 0.6])
    assert np.linalg.svd(arm.jacobian(q), compute_uv=False)[-1] < 1e-9
    proof = IkSolver(arm).prove(Goal(*arm.fk(q)))
    assert not proof.proven
    assert 'singular' in proof.reason
    q[2] += 1e-5
    proof = IkSolver(arm).prove(Goal(*arm.fk(q)))
    assert proof.proven
    assert np.abs(proof.q - q).max(axis=1).min() < 1e-9


def test_families_that_rounding_ends_are_not_taken_for_two_solutions():
    """Of the goal as its digits say two solutions are left of a family that holds to 1e-16."""
    axes = np.eye(3)[[0, 0, 0, 2, 1]]
    offsets = 0.1 * np.array([[-1, -1, -1], [0, -1, -1], [-1, 1, 0], [1, -1, -1], [0, -1, -1]])
    arm = make_arm(axes, offsets, [[-3.1, 3.1]] * 5, tool_point=(0.1, 0, 0))
    right = math.pi / 2
    assert not IkSolver(arm).prove(Goal(*arm.fk([0, right, right, right, 0]))).proven


def stretched(arm: Arm) -> float:
    """The position of joint 3 at which axes 2, 3 and 4 lie in one plane and 3 is between the others."""
    u, first, second = arm.joints[1, :3], arm.joints[2, 3:6], arm.joints[3, 3:6]
    first, second = np.cross(u, first), np.cross(u, second)
    return math.copysign(1.0, arm.joints[2, :3] @ u) * math.atan2(u @ np.cross(second, first), second @ first)


def test_the_opposite_direction_is_no_solution():
    """It meets the same five equations."""
    arm = general_arm(0)
    q = np.array([0.1, -0.2, 0.3, 0.4, -0.5])
    position, direction = arm.fk(q)
    enclosing = Enclosing(geometry_of(arm))
    assert enclosing(Goal(position, direction).packed, q.tolist()) is not None
    assert enclosing(Goal(position, -direction).packed, q.tolist()) is None


def test_bounds_need_exact_geometry():
    assert most(parallel_arm(1, tilt=1e-12)) == 16
    assert most(wrist_arm(1, miss=1e-12)) == 16
    x, y, z = np.eye(3).tolist()
    bounds, offsets = [[-3, 3]] * 5, [[0, 0, 0.1], [0, 0, 0.2], [0.1, 0, 0.3], [0, 0, 0.2], [0, 0.1, 0.1]]
    tool = {'tool_axis': (0.6, 0, 0.8), 'tool_point': (0.1, 0.03, 0)}
    assert most(make_arm([z, y, y, y, x], offsets, bounds, **tool)) == 8
    tilted = [z, y, [1e-16, 1, 0], y, x]
    assert most(make_arm(tilted, offsets, bounds, **tool)) == 16
    kinds = ['prismatic', *['revolute'] * 4]
    assert most(make_arm([x, z, y, y, y], offsets, bounds, kinds, **tool)) == 4
    wrist = [*offsets[:4], [0, 0, 0]]
    assert most(make_arm([x, z, z, x, y], wrist, bounds, kinds, tool_axis=(0.6, 0, 0.8))) == 4
    assert most(make_arm([x, z, y, x, y], wrist, bounds, kinds, tool_axis=(0.6, 0, 0.8))) == 8
    kinds = ['revolute', 'revolute', 'prismatic', 'revolute', 'revolute']
    assert most(make_arm([z, y, x, y, x], offsets, bounds, kinds, **tool)) == 8
    assert most(make_arm([z, y, [1, 1e-9, 0], y, x], offsets, bounds, kinds, **tool)) == 16


@pytest.mark.parametrize('make', [lambda: parallel_arm(2, tilt=1e-8), lambda: wrist_arm(2, miss=1e-8)])
def test_special_arms_nearby_differ_by_no_more_than_stated(make):
    arm = make()
    nearby = special_nearby(arm, geometry_of(arm))
    assert most_solutions(nearby.geometry) == 8
    points, axes = (np.array([line[k] for line in nearby.geometry.axes], dtype=float) for k in range(2))
    tool_point, tool_axis = np.array(nearby.geometry.tool, dtype=float)
    offsets = np.diff(points, axis=0, prepend=np.zeros((1, 3)))
    bounds = np.column_stack([arm.lower, arm.upper])
    special = make_arm(axes, offsets, bounds, None, tool_axis, tool_point - points[-1])
    q = np.random.default_rng(0).uniform(-math.pi, math.pi, (200, 5))
    off = np.array([[np.linalg.norm(a - b) for a, b in zip(arm.fk(x), special.fk(x), strict=True)] for x in q])
    assert off[:, 0].max() < nearby.point < 50 * off[:, 0].max()
    assert off[:, 1].max() - 1e-14 < nearby.axis < 50 * off[:, 1].max() + 1e-15


def test_geometry_too_far_from_special_proves_nothing(monkeypatch):
    monkeypatch.setattr('ik_node.solver.proof.NEAR', 1.0)
    arm = parallel_arm(1, tilt=1e-3)
    proof = IkSolver(arm).prove(next(goals_of(arm, 1)))
    assert not proof.proven
    assert (proof.bound, len(proof.q)) == (8, 0)
    assert 'too far' in proof.reason


def test_what_cannot_be_proven_says_why():
    arm = arm_of('seed_arm')
    goal = Goal(arm.fk(arm.middle + 0.2)[0])
    assert 'direction' in IkSolver(arm).prove(goal).reason
    four = arm_of('so101_like')
    proof = IkSolver(four).prove(Goal(*four.fk(four.middle)))
    assert not proof.proven
    assert 'five joints' in proof.reason
    axes = [(0, 0, 1), (0, 1, 0), (0, 1, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)]
    offsets = [(0, 0, 0.1), (0, 0, 0.1), (0, 0.05, 0.3), (0.1, 0, 0.2), (0.02, 0, 0.1), (0, 0, 0.05)]
    rolled = make_arm(axes, offsets, [[-2, 2]] * 6, None, (0, 0, 1), (0, 0, 0.1), [(5, 1, 1.0)])
    assert 'without mimic joints' in IkSolver(rolled).prove(Goal(*rolled.fk(rolled.middle))).reason
    solver, goal = IkSolver(arm), Goal(*arm.fk(arm.middle + 0.2))
    assert solver.prove(goal).proven
    late = solver.prove(goal, time_budget=1e-9)
    assert (late.proven, late.q.shape) == (False, (0, 5))
    assert 'time budget of 1e-09 s' in late.reason


def test_without_the_package_the_error_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, 'flint', None)
    arm = general_arm(7)
    with pytest.raises(MissingError, match=r'-m pip install python-flint'):
        IkSolver(arm).prove(Goal(*arm.fk(arm.middle)))
