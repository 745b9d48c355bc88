# SPDX-License-Identifier: Apache-2.0
"""All solutions of arms of special geometry and of arms with few joints, by two equations in two joints."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from cases import shared_cases, shipped_cases
from made_arms import make_arm, random_unit, unit

from ik_node import Arm, Goal, IkSolver, kernels
from ik_node.kernels.elimination import layout as rows
from ik_node.solver.elimination.any_geometry import any_form
from ik_node.solver.elimination.pair import MOST, pair_form

MET = 1e-7  # m and rad: a candidate that misses the goal by less is a solution


def random_arm(seed, n, parallel=(), meet=(), slides=(), wrist=False) -> Arm:
    """An arm of random axes, those in parallel with one normal, those in meet through one point.

    wrist: axes 4, 5 and the tool axis meet.
    """
    rng = np.random.default_rng(seed)
    axes, points = np.array([random_unit(rng) for _ in range(n)]), rng.uniform(-0.3, 0.3, (n, 3))
    tool, tip = random_unit(rng), rng.uniform(-0.3, 0.3, 3)
    turning = [k for k in parallel if k not in slides]
    for k in parallel:
        normal = axes[turning[0]]
        axes[k] = (
            normal * rng.choice([-1.0, 1.0]) if k in turning else unit(np.cross(normal, random_unit(rng)))
        )
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
    out = np.empty((MOST, arm.n))
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


def missed(arm, q, goal) -> float:
    """The larger error of q, in m or rad."""
    position, axis = arm.fk(q)
    off = np.linalg.norm(position - goal.position)
    return float(off if goal.direction is None else max(off, np.linalg.norm(axis - goal.direction)))


def check(arm, direction, goals=12, exact=True, name='', tolerance=1e-6):
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


TRIPLES = [(0, 1, 2), (1, 2, 3), (2, 3, 4)]


@pytest.mark.parametrize('places', TRIPLES)
@pytest.mark.parametrize('slides', [(), (0,), (1,), (2,), (0, 1), (0, 2), (1, 2)])
def test_three_joints_in_a_plane(places, slides):
    inside = tuple(places[k] for k in slides)
    form = check(random_arm(3, 5, parallel=places, slides=inside), direction=True)
    numbers = ', '.join(str(k + 1) for k in places)
    assert form.name == (f'joints {numbers} move in one plane' if slides else f'axes {numbers} are parallel')


@pytest.mark.parametrize('places', TRIPLES)
@pytest.mark.parametrize('slides', [(), (0,), (1,), (0, 1)])
@pytest.mark.parametrize('kind', ['parallel', 'meet'])
def test_slides_beside_the_three_joints(places, slides, kind):
    outer = [k for k in range(5) if k not in places]
    outside = tuple(outer[k] for k in slides)
    if kind == 'parallel' and len(slides) == 2:
        pytest.skip('the direction of such an arm has one degree of freedom')
    check(random_arm(4, 5, slides=outside, **{kind: places}), direction=True, name=kind)


@pytest.mark.parametrize('slides', [(), (0,), (1,), (2,), (0, 1), (0, 2), (1, 2)])
def test_a_wrist_point_on_the_tool_axis(slides):
    form = check(random_arm(5, 5, wrist=True, slides=slides), direction=True)
    assert form.name == 'axes 4, 5 and the tool axis meet in one point'


@pytest.mark.parametrize('places', TRIPLES)
def test_three_slides_in_a_row(places):
    check(random_arm(6, 5, slides=places), direction=True, exact=False, name='slide')


@pytest.mark.parametrize('geometry', [{'parallel': (0, 1, 2)}, {'parallel': (1, 2, 3)}, {'meet': (0, 1, 2)}])
def test_four_joints_of_special_geometry_have_one_unknown(geometry):
    form = check(random_arm(7, 4, **geometry), direction=True, exact=False)
    assert form.constants[0, rows.STAGE] == rows.ONE_UNKNOWN


@pytest.mark.parametrize('slides', [(), (0,), (1,), (2,), (3,), (0, 2)])
def test_any_four_joints(slides):
    form = check(random_arm(8, 4, slides=slides), direction=True, exact=False)
    assert form.name == '4 joints'


@pytest.mark.parametrize('direction', [True, False])
@pytest.mark.parametrize('n', [1, 2, 3])
def test_up_to_three_joints(n, direction):
    for kinds in itertools.product([False, True], repeat=n):
        check(random_arm(9, n, slides=tuple(np.flatnonzero(kinds))), direction, exact=False)


@pytest.mark.parametrize('kind', ['parallel', 'meet'])
def test_three_joints_whose_position_is_not_free(kind):
    arm = random_arm(10, 3, **{kind: (0, 1, 2)})
    check(arm, direction=True)
    assert pair_form(arm, direction=False) is None  # two degrees of freedom for three joints


def test_a_roll_about_the_tool_axis_is_left_free():
    arm = random_arm(11, 5, parallel=(1, 2, 3))
    axis = arm.joints[4, :3]
    rolled = make_arm(
        arm.joints[:, :3], arm.joints[:, 3:6], arm.limits[:2].T, tool_axis=axis, tool_point=0.2 * axis
    )
    form = pair_form(rolled, direction=True)
    out = np.empty((MOST, 5))
    count, _ = kernels.pair_candidates(form.constants, goal_of(rolled, np.ones(5), True).packed, out)
    assert count
    assert (np.isnan(out[:count]) == [False, False, False, False, True]).all()


@pytest.mark.parametrize(
    ('arm', 'direction'),
    [
        (random_arm(12, 5), True),  # general geometry
        (random_arm(12, 5), False),  # two joints to spare
        (random_arm(12, 4), False),
        (random_arm(12, 6), True),
        (random_arm(12, 5, parallel=(0, 1, 2, 3)), True),  # four parallel axes
    ],
)
def test_arms_without_such_a_way(arm, direction):
    assert pair_form(arm, direction) is None


@pytest.mark.parametrize(
    'geometry',
    [
        {'n': 5, 'meet': (0, 1, 2)},
        {'n': 5, 'parallel': (2, 3, 4)},
        {'n': 5, 'wrist': True, 'slides': (1,)},
        {'n': 4},
        {'n': 3},
    ],
)
def test_none_missed_that_random_restarts_find(geometry):
    arm = random_arm(13, **geometry)
    form, solver = pair_form(arm, direction=True), IkSolver(arm, closed_form=False)
    for q in arm.sample(np.random.default_rng(2), 3):
        goal = goal_of(arm, q, direction=True)
        own = [one for one in candidates(arm, form, goal)[0] if missed(arm, one, goal) < MET]
        for other in solver.solve_all(goal, time_budget=np.inf):
            assert min(apart(arm, other.q, one) for one in own) < 1e-4


def test_axes_that_are_off_by_rounding_are_still_found():
    """Files write pi/2 as 1.5708; candidates are then polished."""
    arm = random_arm(14, 5, meet=(0, 1, 2))
    axes, offsets = arm.joints[:, :3], arm.joints[:, 3:6].copy()
    offsets[1] += 1e-7
    off = make_arm(axes, offsets, arm.limits[:2].T, tool_axis=arm.tool[3:6], tool_point=arm.tool[:3])
    form = check(off, direction=True, exact=False, tolerance=1e-2)
    assert 1e-9 < form.deviation < 1e-5


# What each arm is, read off its drawing or its file by eye; with direction, then the position alone.
EXPECTED = {
    'moveo_like': ('axes 4, 5 and the tool axis meet in one point', None),
    'prismatic_arm': ('axes 4, 5 and the tool axis meet in one point', None),
    'seed_arm': ('axes 2, 3, 4 are parallel', None),
    'so101_like': ('axes 2, 3, 4 are parallel', None),
    'ball_joint_arm': (None, None),  # its ball has limits that no formula knows
    'moveo': ('axes 4, 5 and the tool axis meet in one point', None),
    'magician_rail': ('axes 3, 4, 5 are parallel', None),
    'px100': ('axes 2, 3, 4 are parallel', None),
    'ur5e': ('axes 2, 3, 4 are parallel', None),
    'vx300s': ('axes 4, 5 and the tool axis meet in one point', None),
    'low_cost_robot': ('3 joints: the position decides', '3 joints: the position decides'),
    'scara_yguel': ('3 joints: the position decides', '3 joints: the position decides'),
    'panda': (None, None),
}


@pytest.mark.parametrize(
    'case', [pytest.param(c, id=c.label) for c in [*shipped_cases(), *shared_cases()] if c.label in EXPECTED]
)
def test_real_arms(case):
    arm = case.arm()
    for direction, name in zip((True, False), EXPECTED[case.label], strict=True):
        if name is None:
            assert pair_form(arm, direction) is None
        elif case.label == 'moveo':  # its lines miss each other by 3e-3 of the size
            assert 1e-4 < pair_form(arm, direction).deviation < 5e-3
        else:
            check(arm, direction, exact=False, name=name)


def polished(arm, q, goal) -> np.ndarray:
    """A configuration (n,) after Newton steps on the true model."""
    for _ in range(8):
        position, axis = arm.fk(q)
        gap = np.concatenate([goal.position - position, goal.direction - axis])
        q = q + np.linalg.lstsq(arm.jacobian(q), gap, rcond=1e-10)[0]
    return q


def three_at_once(arm, goals=5):
    """Check arm by the way that needs no special geometry; returns the numbers of distinct solutions."""
    form = any_form(arm)
    assert form is not None
    counts = []
    for q in arm.sample(np.random.default_rng(3), goals):
        goal = goal_of(arm, q, direction=True)
        found, certain = candidates(arm, form, goal)
        assert certain
        distinct = []
        for one in (polished(arm, other, goal) for other in found):
            if missed(arm, one, goal) < 1e-9 and all(apart(arm, one, other) > 1e-4 for other in distinct):
                distinct.append(one)
        assert min(apart(arm, q, one) for one in distinct) < 1e-6
        counts.append(len(distinct))
    return counts


@pytest.mark.parametrize(
    'geometry',
    [
        {},
        {'slides': (2,)},
        {'slides': (0, 4)},
        {'parallel': (1, 2)},
        {'parallel': (2, 3, 4)},
        {'meet': (0, 1, 2)},
    ],
)
def test_five_joints_of_any_geometry(geometry):
    three_at_once(random_arm(15, 5, **geometry))


@pytest.mark.parametrize('axes', ['xyyxy', 'zyxzy', 'xzyyy', 'yxyyz', 'zxxzy', 'xzzxy', 'zyzzy'])
def test_axes_along_x_y_and_z(axes):
    """Such pairs of axes make the matrix of general arms singular."""
    rng = np.random.default_rng(16)
    offsets = rng.choice([0.0, 0.1, 0.2], (5, 3), p=[0.6, 0.2, 0.2])
    offsets[1:, 0] += 0.1 * (np.abs(offsets[1:]).max(axis=1) == 0.0)
    arm = make_arm(
        [np.eye(3)['xyz'.index(axis)] for axis in axes], offsets, [[-3.1, 3.1]] * 5, tool_point=(0.1, 0.03, 0)
    )
    if arm.effective_dof == 5:
        three_at_once(arm)


def test_sixteen_real_solutions():
    """The arm of Manseur and Doty, A robot manipulator with 16 real inverse kinematic solution sets, 1989."""
    lengths, twists, shifts = (0.3, 1.0, 0.0, 1.5, 0.0), np.radians([90, 1, 90, 1, 90]), (0, 0, 0.2, 0, 0)
    turn, place, axes, points = np.eye(3), np.zeros(3), [], []
    for length, twist, shift in zip(lengths, twists, shifts, strict=True):
        axes.append(turn[:, 2])
        points.append(place)
        place = place + turn @ [length, 0.0, shift]
        c, s = np.cos(twist), np.sin(twist)
        turn = turn @ np.array([[1, 0, 0], [0, c, -s], [0, s, c]])
    offsets = np.diff(points, axis=0, prepend=np.zeros((1, 3)))
    arm = make_arm(axes, offsets, [[-3.14, 3.14]] * 5, tool_axis=turn[:, 2], tool_point=place - points[-1])
    counts = three_at_once(arm, goals=17)
    assert max(counts) == 16


def test_no_way_for_arms_with_joints_to_spare():
    assert any_form(random_arm(17, 6)) is None
    assert any_form(random_arm(17, 4)) is None
