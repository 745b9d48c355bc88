# SPDX-License-Identifier: Apache-2.0
"""All solutions by elimination: arms of general and special geometry, with few joints, with mimic joints."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from all_solutions_checks import least_gap
from cases import arm_of
from made_arms import general_arm, make_arm, manseur_doty_arm, random_unit, unit
from shared_files import shared_path

from ik_node import Arm, Goal, IkSolver, Status, kernels
from ik_node.kernels.elimination import layout
from ik_node.kernels.elimination.general import REVERSED
from ik_node.solver.elimination import MAX_PER_GOAL, any_form, chain_of, general_constants, pair_form

pytestmark = pytest.mark.slow

Y, Z = (0, 1, 0), (0, 0, 1)


def listed(arm, goal, **options):
    """All solutions, however long they take."""
    return IkSolver(arm, **options).solve_all(goal, time_budget=np.inf)


def assert_holds(arm: Arm, q, solver: IkSolver) -> int:
    """The solutions of the goal that q reaches: complete, true, distinct, and q among them; their number."""
    goal = Goal(*arm.fk(q))
    solutions = solver.solve_all(goal, time_budget=np.inf)
    assert solutions.complete
    assert least_gap(arm, q, solutions) < 1e-5
    for solution in solutions:
        assert missed(arm, solution.q, goal) < 1e-8
        assert ((solution.q >= arm.lower) & (solution.q <= arm.upper)).all()
    for a, b in itertools.combinations(solutions, 2):
        assert np.abs(a.q - b.q).max() > 1e-4
    assert solver.solve(goal).solved
    return len(solutions)


def missed(arm, q, goal) -> float:
    """The larger error of q, in m or rad."""
    position, axis = arm.fk(q)
    off = np.linalg.norm(position - goal.position)
    return float(off if goal.direction is None else max(off, np.linalg.norm(axis - goal.direction)))


# --- general geometry ----------------------------------------------------------------------------------


@pytest.mark.parametrize('slides', [(), (0,), (1,), (2,), (3,), (4,)])
def test_general_arms_and_a_slide_at_any_place_need_no_restarts(slides):
    arm = general_arm(sum(slides), slides)
    solver = IkSolver(arm, restarts=0)
    for q in arm.sample(np.random.default_rng(1), 12):
        assert_holds(arm, q, solver)
    # The turn of the tool is zero, or has no unique axis.
    zero = np.zeros(5)
    assert_holds(arm, zero, solver)
    found = solver.solve(Goal(arm.fk(zero)[0], -arm.fk(zero)[1]))
    if found.solved:
        assert_holds(arm, found.q, solver)


def test_sixteen_solutions():
    arm = manseur_doty_arm()
    counts = [assert_holds(arm, q, IkSolver(arm)) for q in arm.sample(np.random.default_rng(0), 6)]
    assert max(counts) == 16
    assert {count % 2 for count in counts} == {0}


@pytest.mark.parametrize('seed', range(2))
def test_restarts_find_no_others(seed):
    arm = general_arm(seed + 20)
    for q in arm.sample(np.random.default_rng(seed), 2):
        goal = Goal(*arm.fk(q))
        solutions, others = listed(arm, goal), listed(arm, goal, closed_form=False)
        assert not others.complete
        assert all(least_gap(arm, other.q, solutions) < 1e-3 for other in others)


def test_chains_are_read_from_the_end_that_is_farther_from_singular():
    both = set()
    for seed in range(8):
        constants, regular = general_constants(chain_of(general_arm(seed), True))
        both.add(constants[0, REVERSED])
        assert regular > 1e-4
    assert both == {0.0, 1.0}
    for name in ('seed_arm', 'prismatic_arm'):  # parallel axes, a lift: there the joints are not determined
        assert general_constants(chain_of(arm_of(name), True))[1] < 1e-12


def test_goals_that_leave_a_joint_free_are_not_called_complete():
    """A rail along the arm's plane, and a tool point on axis 1."""
    rail = Arm.from_file(shared_path('arms', 'magician_rail.urdf'))
    q = [1.0, -math.pi / 2, -0.08726646259971647, -0.2617993877991494, -0.0122]
    up = make_arm([Z, Y, Y], [(0, 0, 0.1), (0, 0, 0.1), (0, 0, 0.2)], [[-3, 3]] * 3, tool_point=(0, 0, 0.15))
    for arm, goal in ((rail, Goal(*rail.fk(q))), (up, Goal((0, 0, 0.5)))):
        found = listed(arm, goal)
        assert found
        assert not found.complete


def test_right_angles_lose_no_solution():
    """Axes along x, y and z, joints at right angles: where eigenvalues coincide."""
    rng = np.random.default_rng(7)
    complete = 0
    for _ in range(3):
        axes, offsets = np.eye(3)[rng.integers(3, size=5)], 0.1 * rng.integers(-1, 2, (5, 3))
        arm = make_arm(axes, offsets, [[-3.1, 3.1]] * 5, tool_point=(0.1, 0.03, 0))
        for q in rng.integers(-1, 2, (4, 5)) * math.pi / 2 if arm.effective_dof == 5 else ():
            found = IkSolver(arm).solve_all(Goal(*arm.fk(q)))
            complete += found.complete
            assert not found.complete or least_gap(arm, q, found) < 1e-3
    assert complete > 0


def test_unreachable_is_shown_and_restarts_cannot_refute_it():
    shown = 0
    for seed in range(3):
        arm = general_arm(seed + 60, limits=[[-1.2, 1.5]] * 5)
        search, rng = IkSolver(arm, closed_form=False, restarts=300), np.random.default_rng(seed)
        for q in arm.sample(rng, 10):
            goal = Goal(arm.fk(q)[0], random_unit(rng))
            answer, complete = IkSolver(arm).solve(goal), listed(arm, goal)
            assert answer.status is not Status.NOT_FOUND
            assert complete.complete
            assert bool(complete) == answer.solved
            if answer.status is Status.UNREACHABLE:
                shown += 1
                assert answer.reason is not None
                assert not search.solve(goal).solved
    assert shown > 6


def test_a_joint_limit_that_is_in_the_way_is_named():
    """Limits exclude the only solutions: the reason says which joint, and by how much."""
    wide = general_arm(3)
    goal = Goal(*wide.fk(wide.sample(np.random.default_rng(5), 1)[0]))
    limits = [[-math.pi, math.pi]] * 5
    limits[2] = [-math.pi, min(solution.q[2] for solution in listed(wide, goal)) - 0.05]
    answer = IkSolver(general_arm(3, limits=limits)).solve(goal)
    assert answer.status is Status.UNREACHABLE
    assert answer.reason.joint == 'joint3'
    assert answer.reason.amount == pytest.approx(0.05, abs=1e-6)


# --- special geometry and few joints: two equations in two joints --------------------------------------

MET = 1e-7  # m and rad: a candidate that misses the goal by less is a solution
TRIPLES = [(0, 1, 2), (1, 2, 3), (2, 3, 4)]
WRIST = 'axes 4, 5 and the tool axis meet in one point'


def special_arm(seed, n, parallel=(), meet=(), slides=(), wrist=False) -> Arm:
    """An arm of random axes, those in parallel with one normal, those in meet through one point.

    wrist: axes 4, 5 and the tool axis meet.
    """
    rng = np.random.default_rng(seed)
    axes, points = np.array([random_unit(rng) for _ in range(n)]), rng.uniform(-0.3, 0.3, (n, 3))
    tool, tip = random_unit(rng), rng.uniform(-0.3, 0.3, 3)
    turning = [k for k in parallel if k not in slides]
    for k in parallel:
        normal = axes[turning[0]]
        flat = unit(np.cross(normal, random_unit(rng))) if k in slides else normal * rng.choice([-1.0, 1.0])
        axes[k] = flat
    for k in meet:
        points[k] = points[meet[0]] + axes[k] * rng.uniform(-0.2, 0.2)
    if wrist:
        centre = points[3] + 0.1 * axes[3]
        points[4], tip = centre + axes[4] * rng.uniform(-0.1, 0.1), centre + 0.2 * tool
        tip = tip - points[4]
    kinds = ['prismatic' if k in slides else 'revolute' for k in range(n)]
    limits = [[-0.4, 0.4] if k in slides else [-3.1, 3.1] for k in range(n)]
    return make_arm(axes, np.diff(points, axis=0, prepend=np.zeros((1, 3))), limits, kinds, tool, tip)


def candidates(arm, form, goal) -> tuple[np.ndarray, bool]:
    """The candidates for goal and whether none can be missing; free joints at zero."""
    out = np.empty((MAX_PER_GOAL, arm.n))
    count, certain = kernels.pair_candidates(form.constants, goal.packed, out)
    return np.nan_to_num(out[:count]), certain


def goal_of(arm, q, direction) -> Goal:
    """What arm meets at q."""
    position, axis = arm.fk(q)
    return Goal(position, axis if direction else None)


def apart(arm, a, b) -> float:
    """The largest difference between two configurations, whole turns and idle joints left out."""
    gap = np.where(arm.idle, 0.0, a - b)
    turning = arm.period > 0.0
    gap[turning] = np.remainder(gap[turning] + np.pi, 2 * np.pi) - np.pi
    return float(np.abs(gap).max())


def check(arm, direction=True, goals=5, exact=True, name='', tolerance=1e-6):
    """The configurations that goals are made from are among the candidates; exact: no candidate is wrong."""
    form = pair_form(arm, direction)
    assert form is not None
    assert name in form.name
    assert not form.constants.flags.writeable
    for q in arm.sample(np.random.default_rng(1), goals):
        goal = goal_of(arm, q, direction)
        found, certain = candidates(arm, form, goal)
        assert certain
        assert min(apart(arm, q, other) for other in found) < tolerance
        if exact:
            assert max(missed(arm, other, goal) for other in found) < MET
    return form


@pytest.mark.parametrize('slides', [(), (0,), (1,), (2,), (0, 1), (0, 2), (1, 2)])
def test_three_joints_in_a_plane_and_a_wrist_point_on_the_tool_axis(slides):
    for places in TRIPLES:
        form = check(special_arm(3, 5, parallel=places, slides=tuple(places[k] for k in slides)))
        numbers = ', '.join(str(k + 1) for k in places)
        assert form.name == (f'joints {numbers} move in one plane' if slides else f'axes {numbers} are parallel')
    assert check(special_arm(5, 5, wrist=True, slides=slides)).name == WRIST


@pytest.mark.parametrize('kind', ['parallel', 'meet'])
@pytest.mark.parametrize('slides', [(), (0,), (1,), (0, 1)])
def test_slides_beside_three_joints(slides, kind):
    for places in TRIPLES if kind == 'meet' or len(slides) < 2 else ():  # else the direction has one freedom
        outside = tuple([k for k in range(5) if k not in places][k] for k in slides)
        check(special_arm(4, 5, slides=outside, **{kind: places}), name=kind)


def test_three_slides_in_a_row_and_fewer_joints():
    for places in TRIPLES:
        check(special_arm(6, 5, slides=places), exact=False, name='slide')
    for geometry in ({'parallel': (0, 1, 2)}, {'parallel': (1, 2, 3)}, {'meet': (0, 1, 2)}):
        form = check(special_arm(7, 4, **geometry), exact=False)
        assert form.constants[0, layout.STAGE] == layout.ONE_UNKNOWN
    for slides in ((), (1,), (3,), (0, 2)):
        assert check(special_arm(8, 4, slides=slides), exact=False).name == '4 joints'
    for n, direction in itertools.product((1, 2, 3), (True, False)):
        for kinds in itertools.product([False, True], repeat=n):
            check(special_arm(9, n, slides=tuple(np.flatnonzero(kinds))), direction, exact=False)
    for kind in ('parallel', 'meet'):
        arm = special_arm(10, 3, **{kind: (0, 1, 2)})
        check(arm)
        assert pair_form(arm, direction=False) is None  # two degrees of freedom for three joints


def test_a_roll_about_the_tool_axis_is_left_free():
    arm = special_arm(11, 5, parallel=(1, 2, 3))
    axis = arm.joints[4, :3]
    tool = {'tool_axis': axis, 'tool_point': 0.2 * axis}
    rolled = make_arm(arm.joints[:, :3], arm.joints[:, 3:6], arm.limits[:2].T, **tool)
    out = np.empty((MAX_PER_GOAL, 5))
    goal = goal_of(rolled, np.ones(5), True).packed
    count, _ = kernels.pair_candidates(pair_form(rolled, direction=True).constants, goal, out)
    assert count
    assert (np.isnan(out[:count]) == [False, False, False, False, True]).all()


def test_arms_without_such_a_way():
    for arm, direction in (
        (special_arm(12, 5), True),  # general geometry
        (special_arm(12, 5), False),  # two joints to spare
        (special_arm(12, 4), False),
        (special_arm(12, 6), True),
        (special_arm(12, 5, parallel=(0, 1, 2, 3)), True),  # four parallel axes
    ):
        assert pair_form(arm, direction) is None
    assert any_form(special_arm(17, 6)) is None
    assert any_form(special_arm(17, 4)) is None


@pytest.mark.parametrize(
    'geometry', [{'n': 5, 'meet': (0, 1, 2)}, {'n': 5, 'wrist': True, 'slides': (1,)}, {'n': 4}, {'n': 3}]
)
def test_none_missed_that_random_restarts_find(geometry):
    arm = special_arm(13, **geometry)
    form = pair_form(arm, direction=True)
    for q in arm.sample(np.random.default_rng(2), 2):
        goal = goal_of(arm, q, direction=True)
        own = [one for one in candidates(arm, form, goal)[0] if missed(arm, one, goal) < MET]
        for other in listed(arm, goal, closed_form=False):
            assert min(apart(arm, other.q, one) for one in own) < 1e-4


def test_axes_that_are_off_by_rounding_are_still_found():
    """Files write pi/2 as 1.5708; candidates are then polished."""
    arm = special_arm(14, 5, meet=(0, 1, 2))
    axes, offsets = arm.joints[:, :3], arm.joints[:, 3:6].copy()
    offsets[1] += 1e-7
    off = make_arm(axes, offsets, arm.limits[:2].T, tool_axis=arm.tool[3:6], tool_point=arm.tool[:3])
    assert 1e-9 < check(off, exact=False, tolerance=1e-2).deviation < 1e-5


# What each arm is, read off its drawing or its file by eye; with direction, then the position alone.
NAMES = {
    'prismatic_arm': (WRIST, None),
    'seed_arm': ('axes 2, 3, 4 are parallel', None),
    'ball_joint_arm': (None, None),  # its ball has limits that no formula knows
    'moveo': (WRIST, None),
    'magician_rail': ('axes 3, 4, 5 are parallel', None),
    'ur5e': ('axes 2, 3, 4 are parallel', None),
    'scara_yguel': ('3 joints: the position decides', '3 joints: the position decides'),
    'panda': (None, None),
}


@pytest.mark.parametrize('name', NAMES)
def test_real_arms(name):
    arm = arm_of(name)
    for direction, form in zip((True, False), NAMES[name], strict=True):
        if form is None:
            assert pair_form(arm, direction) is None
        elif name == 'moveo':  # its lines miss each other by 3e-3 of the size
            assert 1e-4 < pair_form(arm, direction).deviation < 5e-3
        else:
            check(arm, direction, exact=False, name=form)


# --- three equations at once: any geometry -------------------------------------------------------------


def polished(arm, q, goal) -> np.ndarray:
    """A configuration (n,) after Newton steps on the true model."""
    for _ in range(8):
        gap = goal.packed[:6] - np.concatenate(arm.fk(q))
        q = q + np.linalg.lstsq(arm.jacobian(q), gap, rcond=1e-10)[0]
    return q


def crossing_arm(axes) -> Arm:
    """Axes along x, y and z: such pairs make the matrix of general arms singular."""
    rng = np.random.default_rng(16)
    offsets = rng.choice([0.0, 0.1, 0.2], (5, 3), p=[0.6, 0.2, 0.2])
    offsets[1:, 0] += 0.1 * (np.abs(offsets[1:]).max(axis=1) == 0.0)
    along = [np.eye(3)['xyz'.index(axis)] for axis in axes]
    return make_arm(along, offsets, [[-3.1, 3.1]] * 5, tool_point=(0.1, 0.03, 0))


@pytest.mark.parametrize(
    'arm',
    [
        special_arm(15, 5),
        special_arm(15, 5, slides=(0, 4)),
        special_arm(15, 5, parallel=(1, 2)),
        special_arm(15, 5, meet=(0, 1, 2)),
        *map(crossing_arm, ('zyxzy', 'zxxzy', 'zyzzy')),
    ],
    ids=['any', 'slides', 'parallel', 'meet', 'zyxzy', 'zxxzy', 'zyzzy'],
)
def test_five_joints_of_any_geometry(arm):
    form = any_form(arm)
    assert arm.effective_dof == 5
    assert form is not None
    for q in arm.sample(np.random.default_rng(3), 3):
        goal = goal_of(arm, q, direction=True)
        found, certain = candidates(arm, form, goal)
        assert certain
        every = [polished(arm, other, goal) for other in found]
        assert min(apart(arm, q, one) for one in every if missed(arm, one, goal) < 1e-9) < 1e-6


# --- mimic joints --------------------------------------------------------------------------------------

WAYS = {  # axes and mimics: the tool stays level, turns half as far as a joint, or in twice the angle
    'level': ([Z, Y, Y, Y, Y], [(3, 1, -1.0), (4, 2, -1.0)]),
    'half': ([Z, Y, Y, Y], [(3, 2, 0.5)]),
    'double': ([Z, Y, Y, Y, Z], [(3, 1, -2.0)]),
}


def mimicking(name: str, tool_axis=(1, 0, 1)) -> Arm:
    axes, mimics = WAYS[name]
    offsets = [(0.0, 0.0, 0.1), (0.03, 0.0, 0.05), (0.02, 0.0, 0.3), (0.25, 0.0, 0.0), (0.0, 0.0, 0.0)]
    count = len(axes)
    return make_arm(axes, offsets[:count], [[-2.5, 2.5]] * count, None, tool_axis, (0.1, 0, 0.03), mimics)


@pytest.mark.parametrize('name', [*WAYS, 'position'])
def test_every_solution_of_an_arm_with_mimic_joints(name):
    """Of a tool that is kept level the position decides."""
    arm = mimicking('level', Z) if name == 'position' else mimicking(name)
    rng = np.random.default_rng(1)
    for q in arm.sample(rng, 4):
        goal = goal_of(arm, q, name != 'position')
        solutions, others = listed(arm, goal), listed(arm, goal, closed_form=False)
        assert solutions.complete
        assert least_gap(arm, q, solutions) < 1e-5
        assert len(solutions) == len(others)
        assert max(least_gap(arm, other.q, solutions) for other in others) < 1e-3
        # Only free joints would meet this: nearer than the two links fold, or with the tool sideways.
        inside = Goal((0.13, 0.0, 0.18))
        sideways = Goal(goal.position, unit(np.cross(arm.fk(q)[1], random_unit(rng))))
        impossible = inside if name == 'position' else sideways
        assert IkSolver(arm).solve(impossible).status is Status.UNREACHABLE
        assert not listed(arm, impossible)


def test_an_arm_without_a_free_joint_of_each_variable_is_searched():
    axes, mimics = [Z, Y, Y, Y], [(1, 0, 1.0), (3, 2, 1.0)]
    arm = make_arm(axes, [(0.1, 0.0, 0.2)] * 4, [[-2.5, 2.5]] * 4, None, (1, 0, 0), (0.1, 0, 0), mimics)
    q = arm.sample(np.random.default_rng(3), 1)[0]
    assert least_gap(arm, q, listed(arm, Goal(*arm.fk(q)))) < 1e-3


def test_the_magician_is_solved_completely():
    arm = arm_of('magician')
    solver = IkSolver(arm)
    for q in arm.sample(np.random.default_rng(4), 20):
        position, axis = arm.fk(q)
        solutions = solver.solve_all(Goal(position, axis), q, time_budget=np.inf)
        assert solutions.complete
        assert least_gap(arm, q, solutions) < 1e-5
        tilted = unit(axis + 0.1 * np.array([1.0, 0.5, 0.0]))
        assert solver.solve(Goal(position, tilted)).status is Status.UNREACHABLE
