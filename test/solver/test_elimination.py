# SPDX-License-Identifier: Apache-2.0
"""All solutions of arms of general geometry by elimination."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import numpy as np
import pytest
from made_arms import make_arm, random_unit
from shared_files import shared_path

from ik_node import Arm, Goal, IkSolver, Status
from ik_node.kernels.elimination.general import REVERSED
from ik_node.solver.elimination.general import general_constants
from ik_node.solver.elimination.task_joints import chain_of

TURN = [[-math.pi, math.pi]] * 5


def general_arm(seed: int, slides: tuple[int, ...] = (), limits=TURN) -> Arm:
    """Five joints with axes in any direction; those in slides are prismatic."""
    rng = np.random.default_rng((seed, 10))
    axes = [random_unit(rng) for _ in range(5)]
    kinds = ['prismatic' if i in slides else 'revolute' for i in range(5)]
    bounds = [[-0.5, 0.5] if i in slides else limits[i] for i in range(5)]
    offsets = rng.uniform(-0.2, 0.2, (5, 3))
    return make_arm(axes, offsets, bounds, kinds, random_unit(rng), rng.uniform(-0.2, 0.2, 3))


def manseur_doty_arm() -> Arm:
    """The arm with up to 16 solutions, by DH parameters (after Manseur and Doty 1989)."""
    pose, axes, points = np.eye(4), [], []
    right, little = math.pi / 2, math.radians(1.0)
    for a, alpha, d in zip((0.3, 1, 0, 1.5, 0), (right, little, right, little, right), (0, 0, 0.2, 0, 0),
                           strict=True):  # fmt: skip
        axes.append(pose[:3, 2])
        points.append(pose[:3, 3])
        c, s = math.cos(alpha), math.sin(alpha)
        pose = pose @ np.array([[1, 0, 0, a], [0, c, -s, 0], [0, s, c, d], [0, 0, 0, 1]])
    offsets = np.diff(np.vstack([np.zeros(3), points]), axis=0)
    return make_arm(axes, offsets, TURN, None, pose[:3, 2], pose[:3, 3] - points[-1])


def gap(q, rows) -> float:
    """Least largest joint difference of q (n,) from any of rows, whole turns left out."""
    differences = np.array([row.q for row in rows]).reshape(-1, len(q)) - q
    return np.abs((differences + math.pi) % (2 * math.pi) - math.pi).max(axis=1).min(initial=math.inf)


def assert_holds(arm: Arm, q, solutions) -> None:
    """The solutions of the goal that q reaches: complete, true, distinct, and q among them."""
    goal = Goal(*arm.fk(q))
    assert solutions.complete
    assert gap(q, solutions) < 1e-5
    for solution in solutions:
        position, direction = arm.fk(solution.q)
        assert np.linalg.norm(position - goal.position) < 1e-8
        assert np.linalg.norm(direction - goal.direction) < 1e-8
        assert (solution.q >= arm.lower).all()
        assert (solution.q <= arm.upper).all()
    for a, b in itertools.combinations(solutions, 2):
        assert np.abs(a.q - b.q).max() > 1e-4


@pytest.mark.parametrize('seed', range(4))
def test_general_arms(seed):
    arm = general_arm(seed)
    solver = IkSolver(arm)
    for q in arm.sample(np.random.default_rng(seed), 15):
        assert_holds(arm, q, solver.solve_all(Goal(*arm.fk(q)), time_budget=np.inf))


@pytest.mark.parametrize('place', range(5))
def test_a_slide_at_any_place(place):
    arm = general_arm(place, (place,))
    solver = IkSolver(arm)
    for q in arm.sample(np.random.default_rng(place), 15):
        assert_holds(arm, q, solver.solve_all(Goal(*arm.fk(q)), time_budget=np.inf))


def test_sixteen_solutions():
    arm = manseur_doty_arm()
    solver = IkSolver(arm)
    counts = []
    for q in arm.sample(np.random.default_rng(0), 6):
        solutions = solver.solve_all(Goal(*arm.fk(q)), time_budget=np.inf)
        assert_holds(arm, q, solutions)
        counts.append(len(solutions))
    assert max(counts) == 16
    assert {count % 2 for count in counts} == {0}


@pytest.mark.parametrize('seed', range(3))
def test_restarts_find_no_others(seed):
    arm = general_arm(seed + 20)
    solver, search = IkSolver(arm), IkSolver(arm, closed_form=False)
    for q in arm.sample(np.random.default_rng(seed), 3):
        goal = Goal(*arm.fk(q))
        solutions, others = (
            solver.solve_all(goal, time_budget=np.inf),
            search.solve_all(goal, time_budget=np.inf),
        )
        assert not others.complete
        assert all(gap(other.q, solutions) < 1e-3 for other in others)


def test_chain_read_from_the_tool():
    """Both chains of an arm have the same solutions; the one farther from singular is taken."""
    both = set()
    for seed in range(8):
        constants, regular = general_constants(chain_of(general_arm(seed), True))
        both.add(constants[0, REVERSED])
        assert regular > 1e-4
    assert both == {0.0, 1.0}


@pytest.mark.parametrize('seed', range(3))
def test_tool_axes_along_and_opposite_to_that_of_the_zero_pose(seed):
    """Where the turn of the tool is zero or has no unique axis."""
    arm = general_arm(seed)
    solver = IkSolver(arm)
    zero = arm.fk(np.zeros(5))
    assert_holds(arm, np.zeros(5), solver.solve_all(Goal(*zero), time_budget=np.inf))
    found = solver.solve(Goal(zero[0], -zero[1]))
    if found.solved:
        assert_holds(arm, found.q, solver.solve_all(Goal(*arm.fk(found.q)), time_budget=np.inf))


def test_goals_that_leave_a_joint_free_are_not_called_complete():
    """A rail along the arm's plane, and a tool point on axis 1."""
    rail = Arm.from_file(shared_path('arms', 'magician_rail.urdf'))
    q = [1.0, -math.pi / 2, -0.08726646259971647, -0.2617993877991494, -0.0122]
    up = make_arm([[0, 0, 1], [0, 1, 0], [0, 1, 0]], [[0, 0, 0.1], [0, 0, 0.1], [0, 0, 0.2]], [[-3, 3]] * 3,
                  tool_point=[0, 0, 0.15])  # fmt: skip
    for arm, goal in ((rail, Goal(*rail.fk(q))), (up, Goal((0, 0, 0.5)))):
        found = IkSolver(arm).solve_all(goal, time_budget=np.inf)
        assert found
        assert not found.complete


def test_right_angles_lose_no_solution():
    """Axes along x, y and z, joints at right angles: where eigenvalues coincide."""
    rng = np.random.default_rng(7)
    lost = complete = 0
    for _ in range(3):
        axes = np.eye(3)[rng.integers(3, size=5)]
        offsets = 0.1 * rng.integers(-1, 2, (5, 3))
        arm = make_arm(axes, offsets, [[-3.1, 3.1]] * 5, tool_point=(0.1, 0.03, 0))
        if arm.effective_dof < 5:
            continue
        solver = IkSolver(arm)
        for _ in range(6):
            q = rng.integers(-1, 2, 5) * math.pi / 2
            found = solver.solve_all(Goal(*arm.fk(q)), time_budget=np.inf)
            complete += found.complete
            lost += found.complete and gap(q, found) > 1e-3
    assert complete > 0
    assert lost == 0


def test_no_restarts_are_needed():
    for seed in range(6):
        arm = general_arm(seed + 40, (seed,) if seed < 5 else ())
        solver = IkSolver(arm, restarts=0)
        for q in arm.sample(np.random.default_rng(seed), 15):
            assert solver.solve(Goal(*arm.fk(q))).solved


def test_unreachable_is_shown_and_restarts_cannot_refute_it():
    shown = 0
    for seed in range(4):
        arm = general_arm(seed + 60, limits=[[-1.2, 1.5]] * 5)
        solver, search = IkSolver(arm), IkSolver(arm, closed_form=False, restarts=300)
        rng = np.random.default_rng(seed)
        for q in arm.sample(rng, 15):
            goal = Goal(arm.fk(q)[0], random_unit(rng))
            answer = solver.solve(goal)
            assert answer.status is not Status.NOT_FOUND
            complete = solver.solve_all(goal, time_budget=np.inf)
            assert complete.complete
            assert bool(complete) == answer.solved
            if answer.status is Status.UNREACHABLE:
                shown += 1
                assert answer.reason is not None
                assert not search.solve(goal).solved
    assert shown > 10


def test_a_joint_limit_that_is_in_the_way_is_named():
    """Limits exclude the only solutions: the reason says which joint, and by how much."""
    wide = general_arm(3)
    q = wide.sample(np.random.default_rng(5), 1)[0]
    goal = Goal(*wide.fk(q))
    beyond = IkSolver(wide).solve_all(goal, time_budget=np.inf)
    limits = [[-math.pi, math.pi]] * 5
    limits[2] = [-math.pi, min(solution.q[2] for solution in beyond) - 0.05]
    answer = IkSolver(general_arm(3, limits=limits)).solve(goal)
    assert answer.status is Status.UNREACHABLE
    assert answer.reason.joint == 'joint3'
    assert answer.reason.amount == pytest.approx(0.05, abs=1e-6)


@pytest.mark.parametrize('name', ['seed_arm', 'prismatic_arm'])
def test_special_geometry_is_singular_here(name):
    """Three parallel axes, and a lift: the equations of general arms do not determine the joints."""
    arm = Arm.from_file(Path(__file__).parents[2] / 'urdf' / f'{name}.urdf.xacro')
    assert general_constants(chain_of(arm, True))[1] < 1e-12
