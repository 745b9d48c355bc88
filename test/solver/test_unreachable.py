# SPDX-License-Identifier: Apache-2.0
"""What is called unreachable, and why; what must not be: goals within the tolerances, and out of time."""

from __future__ import annotations

import inspect
import math

import numpy as np
import pytest
from cases import arm_of, few_cases
from made_arms import make_arm, random_unit
from oracles.random_arms import general_arm, random_task
from oracles.torsos import TOOLS, goals_at, torso

from ik_node import Arm, Goal, IkSolver, Status, TreeSolver, kernels
from ik_node.solver.goal import Cause
from ik_node.solver.workspace_bounds import radial_bounds

pytestmark = pytest.mark.slow

FORMULA = ['seed_arm', 'so101_like', 'moveo_like']
few = pytest.mark.parametrize('case', few_cases(), ids=lambda case: case.label)


def planar_arm(*lengths: float, slide: tuple[float, float] | None = None) -> Arm:
    """Parallel hinges about z, then perhaps a slide along x, the tool along z."""
    n = len(lengths)
    offsets = [(0, 0, 0), *((length, 0, 0) for length in lengths[:-1])]
    axes, limits, kinds = [(0, 0, 1)] * n, [(-3.0, 3.0)] * n, ['revolute'] * n
    if slide is not None:
        axes, offsets = [*axes, (1, 0, 0)], [*offsets, (0, 0, 0)]
        limits, kinds = [*limits, slide], [*kinds, 'prismatic']
    return make_arm(axes, offsets, limits, kinds, tool_point=(lengths[-1], 0, 0))


def widened(arm: Arm, by: float) -> Arm:
    """The same arm with by [rad] more at every limit."""
    wider = Arm.__new__(Arm)
    wider.__dict__.update(arm.__dict__)
    wider.limits = np.array([arm.lower - by, arm.upper + by])
    wider.limits.flags.writeable = False
    wider.lower, wider.upper = wider.limits
    for name in ('_finite', 'middle'):
        wider.__dict__.pop(name, None)
    return wider


@few
def test_far_goals_are_too_far_and_no_configuration_is_outside_the_bounds(case):
    arm = case.arm()
    shells, solver, rng = radial_bounds(arm), IkSolver(arm), np.random.default_rng(31)
    for q in arm.sample(rng, 300):
        assert kernels.out_of_reach(shells, Goal(arm.fk(q)[0]).packed, 0.0) == 0
    for _ in range(3):
        position = arm.joints[0, 3:6] + rng.uniform(1.01, 3) * arm.reach * random_unit(rng)
        for goal in (Goal(position, random_unit(rng)), Goal(position)):
            solution = solver.solve(goal)
            assert (solution.status, solution.restarts) == (Status.UNREACHABLE, 0)
            assert (solution.reason.cause, solution.reason.joint) == (Cause.TOO_FAR, None)
            assert solution.reason.amount == solution.position_error > 0.0
            assert f'{solution.position_error:.4g} m' in solution.reason.sentence


def test_the_bounds_of_a_planar_arm_are_its_reach():
    planar, sliding = planar_arm(0.5, 0.2, 0.1), planar_arm(0.5, slide=(-0.1, 0.3))
    for arm, bounds in ((planar, (0.2, 0.8)), (sliding, (0.4, 0.8))):
        shells = radial_bounds(arm)
        assert len(shells) == 2
        for shell in shells:
            assert shell[3:] == pytest.approx(bounds, abs=1e-8)
    solution = IkSolver(planar).solve(Goal((0.05, 0.0, 0.0)))  # nearer than it can fold
    assert (solution.status, solution.restarts) == (Status.UNREACHABLE, 0)
    assert solution.reason.cause is Cause.TOO_NEAR
    assert solution.reason.amount == pytest.approx(solution.position_error)


@pytest.mark.parametrize('name', ['so101_like', 'xarm5_like'])
def test_a_direction_that_the_position_ties_is_named_with_the_angle_left(name):
    arm = arm_of(name)
    solver, rng = IkSolver(arm), np.random.default_rng(32)
    causes = []
    for q in arm.sample(rng, 30):
        solution = solver.solve(Goal(arm.fk(q)[0], random_unit(rng)))
        assert (solution.status, solution.restarts) == (Status.UNREACHABLE, 0)
        causes.append(solution.reason.cause)
        if causes[-1] is Cause.DIRECTION_CONSTRAINED:
            assert solution.position_error <= 1e-6
            assert solution.reason.amount == solution.direction_error
            assert f'{solution.direction_error:.4g} rad' in solution.reason.sentence
    assert causes.count(Cause.DIRECTION_CONSTRAINED) > 10


@pytest.mark.parametrize('name', FORMULA)
def test_a_joint_that_is_said_to_need_more_makes_the_goal_possible_with_it(name):
    arm = arm_of(name)
    narrow = widened(arm, -0.7 * float((arm.upper - arm.lower).min()) / 2)
    solver, named = IkSolver(narrow), 0
    for q in arm.sample(np.random.default_rng(33), 60):
        goal = Goal(*arm.fk(q))
        solution = solver.solve(goal)
        if solution.status is not Status.UNREACHABLE or solution.reason.cause is not Cause.JOINT_LIMIT:
            continue
        named += 1
        assert solution.restarts == 0
        assert solution.reason.joint in arm.joint_names
        assert f'"{solution.reason.joint}"' in solution.reason.sentence
        if named <= 3:
            excess = solution.reason.amount
            assert IkSolver(widened(narrow, excess + 1e-6)).solve(goal).solved
            assert not IkSolver(widened(narrow, 0.9 * excess)).solve(goal).solved
    assert named > 10


@pytest.mark.parametrize('name', FORMULA)
def test_no_goal_called_unreachable_is_met_by_another_search(name):
    arm = arm_of(name)
    solver, other, rng = IkSolver(arm), IkSolver(arm, method='dls', restarts=150), np.random.default_rng(34)
    rejected = 0
    for q in arm.sample(rng, 400):
        position, direction = arm.fk(q)
        position = position + rng.choice([0.0, 0.2]) * arm.reach * random_unit(rng)
        direction = direction + rng.choice([1e-3, 0.1, 1.0]) * rng.normal(size=3)
        goal = Goal(position, direction / np.linalg.norm(direction))
        solution = solver.solve(goal)
        if solution.status is Status.UNREACHABLE and solution.position_error < 1e-2:
            rejected += 1
            assert not other.solve(goal).solved
        if rejected == 12:
            return
    raise AssertionError(f'only {rejected} of 400 goals were rejected')


# --- goals within the tolerances -----------------------------------------------------------------------


def edges(arm: Arm, rng: np.random.Generator) -> np.ndarray:
    """Return joints (n,) at limits, at 0, where arms are straight, or anywhere."""
    lower, upper = np.maximum(arm.lower, -math.pi), np.minimum(arm.upper, math.pi)
    while True:
        zero = np.clip(np.zeros(arm.n), lower, upper)
        q = np.choose(rng.integers(0, 4, arm.n), [lower, upper, zero, arm.sample(rng, 1)[0]])
        if arm.ball_excess(q) == 0.0:
            return q


def displaced(arm: Arm, q: np.ndarray, distance: float, turn: float, rng: np.random.Generator) -> Goal:
    """Return a goal that q (n,) misses by less than distance [m] and turn [rad]."""
    position, direction = arm.fk(q)
    across = np.cross(direction, random_unit(rng))
    turn = turn * rng.uniform(0.1, 0.98)
    direction = math.cos(turn) * direction + math.sin(turn) * across / np.linalg.norm(across)
    return Goal(position + distance * rng.uniform(0.1, 0.98) * random_unit(rng), direction)


@few
@pytest.mark.parametrize(('distance', 'turn'), [(0.0, 0.0), (1e-6, 1e-4), (1e-4, 1e-3), (5e-3, 5e-2), (1e-3, 1e-6)])
def test_what_some_configuration_meets_within_the_tolerances_is_solved_from_any_seed(case, distance, turn):
    arm = case.arm()
    solver, exact = IkSolver(arm), not distance
    if not exact:
        solver = IkSolver(arm, position_tolerance=distance, direction_tolerance=turn)
    rng = np.random.default_rng(36)
    for _ in range(20):
        goal = displaced(arm, edges(arm, rng), distance, turn, rng)
        solution = solver.solve(goal, arm.sample(rng, 1)[0])
        if exact:  # solved or not, where solutions meet at the edge of what is reachable
            assert solution.status is not Status.UNREACHABLE
            assert solver.solve(Goal(goal.position)).status is not Status.UNREACHABLE
            continue
        assert solution.solved, solution.reason
        assert (np.array(solver.errors(goal, solution.q)) <= [distance, turn]).all()
        assert ((arm.lower <= solution.q) & (solution.q <= arm.upper)).all()
        assert arm.ball_excess(solution.q) == 0.0


# An arm, a goal, joints that meet it within the tolerances, and these: nearly all descents end elsewhere.
HIDDEN = {
    # Three joints at their limits: two solutions have just vanished.
    'general18': (
        (0.1282731377435152, 0.2027564934327711, 0.22539722200061033),
        (-0.280330583605728, -0.9384807137992179, -0.20166485495044106),
        [
            3.171414620122309,
            -2.6496574983719805,
            -1.3690973864413785,
            1.8352674950295143,
            -2.7036675559169723,
        ],
        (1e-6, 1e-4),
    ),
    # Joints 1, 2 and 4 at their limits, the direction tied to the position.
    'lrmate200ic5h': (
        (0.04900510189011668, -0.008639104863175678, 0.7253450842258442),
        (-0.4923793476774183, 0.0867217354464988, -0.8660496051508295),
        [2.9671, -1.0472, 0.0, -2.0944, 0.0],
        (1e-6, 1e-4),
    ),
    # Joints 3 and 4 at their limits.
    'xarm5_like': (
        (-0.011339307227890387, -0.0024909317487327247, -0.06951476866448572),
        (9.671343405651467e-05, -0.02153480837420715, -0.9997680944473062),
        [3.388, 1.5055820993, 0.19198621772, -1.69296937443, 0.0],
        (5e-3, 5e-2),
    ),
    # Directions much tighter than positions.
    'general65': (
        (-0.5219205240618547, -0.18051785914121052, 0.1122532237107957),
        (-0.7545244601297016, -0.6498734217549589, -0.09141867841138132),
        [
            -1.425012501228638,
            -0.7338499309669966,
            0.04848286268923574,
            -0.17214317529106293,
            0.691798994954216,
        ],
        (1e-3, 1e-6),
    ),
    'random87': (
        (0.02612817977048866, 0.10469430531630611, -0.4210627937955692),
        (0.6390177321634284, -0.6760556626861131, 0.36688564830305076),
        [2.56999549828586, -1.7567999220923232, 0.0, 0.5986858528326056],
        (1e-3, 1e-6),
    ),
}
MADE = {'general18': general_arm(18), 'general65': general_arm(65), 'random87': random_task(87)}


@pytest.mark.parametrize('name', HIDDEN)
def test_solutions_of_goals_nearby_lead_to_those_that_descents_miss(name):
    position, direction, q, (distance, turn) = HIDDEN[name]
    arm = MADE[name].arm if name in MADE else arm_of(name)
    solver = IkSolver(arm, position_tolerance=distance, direction_tolerance=turn)
    goal = Goal(position, direction)
    assert solver.evaluate(goal, np.array(q)).solved
    for seed in (q, arm.middle, *arm.sample(np.random.default_rng(0), 8)):
        assert solver.solve(goal, seed).solved


# --- time budgets --------------------------------------------------------------------------------------

ENDED = 1e-9  # s: over before the first look at the clock


@pytest.mark.parametrize('call', [IkSolver, TreeSolver, IkSolver.prove, IkSolver.solve_path])
def test_the_default_time_budget_is_finite(call):
    assert 0.0 < inspect.signature(call).parameters['time_budget'].default < math.inf


def test_nothing_is_called_unreachable_when_time_has_run_out_before_the_tolerances_are_searched():
    """Joints 2, 3 and 5 at their limits: the exact formula finds nothing, but the given q is close enough."""
    arm = random_task(8).arm
    q = [0.9567102382014652, -0.75579757465096, -1.3948779256227521, -2.233463986621947, -0.508980520556285]
    q = np.clip(q, arm.lower, arm.upper)
    solver, rng, causes = IkSolver(arm), np.random.default_rng(0), []
    assert solver.closed_form.exact
    for _ in range(40):
        goal = displaced(arm, q, 1e-6, 1e-4, rng)
        found = solver.solve(goal, arm.sample(rng, 1)[0], time_budget=ENDED)
        assert found.status is not Status.UNREACHABLE
        causes += [] if found.reason is None else [(found.reason.cause, found.reason.amount)]
        assert solver.solve(goal, arm.sample(rng, 1)[0]).solved
    assert set(causes) == {(Cause.TIME, ENDED)}
    far = solver.solve(Goal((0.0, 0.0, 3.0 * arm.reach), (0.0, 0.0, 1.0)), time_budget=ENDED)
    assert far.reason.cause is Cause.TOO_FAR  # the link lengths take no time


def test_a_direction_out_of_reach_is_said_in_plain_words_also_when_time_has_run_out():
    solver, goal = IkSolver(arm_of('so101_like')), Goal((0.25, 0.0, 0.15), (0.0, 0.0, -1.0))
    plain = 'the tool cannot point that way here: the closest direction found is 0.3795 rad off'
    found = solver.solve(goal)
    assert (found.status, str(found.reason)) == (Status.UNREACHABLE, plain)
    late = solver.solve(goal, time_budget=ENDED)
    assert (late.status, late.reason.cause) == (Status.NOT_FOUND, Cause.TIME)
    assert str(late.reason) == f'{plain}; the search for a closer one took over {ENDED:g} s'


@pytest.fixture(scope='module')
def conflict():
    """A tree and goals for its tools that can be met alone, but not together."""
    tree = torso()
    rng, yaw = np.random.default_rng(3), tree.joint_names.index('yaw')
    for _ in range(6):  # the last of them
        first, second = tree.sample(rng, 2)
        first[yaw], second[yaw] = tree.limits[:, yaw]
        goals = {'left': goals_at(tree, first)['left'], 'right': goals_at(tree, second)['right']}
    found = TreeSolver(tree, restarts=50, time_budget=math.inf).solve(goals)
    assert {one.reason.cause for one in found.tools.values()} == {Cause.CONFLICT}
    return tree, goals


def test_looks_at_the_clock_are_after_each_descent_while_kernels_are_not_compiled(monkeypatch, conflict):
    """They do not change an answer."""
    tree, goals = conflict
    solver, both = IkSolver(general_arm(18).arm, closed_form=False), TreeSolver(tree, restarts=50)
    goal = Goal(solver.arm.fk(solver.arm.middle)[0], (0.0, 0.0, 1.0))
    kernels.prepare(wait=True)
    assert solver.solve(goal, time_budget=ENDED).restarts > 0
    rng = np.random.default_rng(0)
    tasks = [Goal(solver.arm.fk(q)[0], rng.permutation([0.0, 0.6, 0.8])) for q in solver.arm.sample(rng, 5)]
    before = [solver.solve(task).q for task in tasks], both.solve(goals).q
    monkeypatch.setattr(kernels, 'ready', lambda: False)
    assert solver.solve(goal, time_budget=ENDED).restarts == 0
    np.testing.assert_array_equal([solver.solve(task).q for task in tasks], before[0])
    np.testing.assert_array_equal(both.solve(goals).q, before[1])


def test_a_method_for_comparison_starts_once_when_time_has_run_out(monkeypatch):
    starts = []
    monkeypatch.setattr(kernels, 'perturb', lambda *_: starts.append(1))
    solver = IkSolver(general_arm(18).arm, method='transpose')
    goal = Goal((0.0, 0.0, 3.0 * solver.arm.reach), (0.0, 0.0, 1.0))
    solver.solve(goal, time_budget=ENDED)
    assert not starts
    solver.solve(goal)
    assert starts


@pytest.mark.parametrize('call', ['solve', 'track'])
def test_goals_of_several_tools_end_with_the_time(call, conflict):
    tree, goals = conflict
    found = getattr(TreeSolver(tree, restarts=10**6), call)(goals, tree.middle, time_budget=0.05)
    assert set(found.tools) == set(TOOLS)
    for one in found.tools.values():
        assert one.status is Status.NOT_FOUND
        assert one.restarts < 10**6
        assert one.reason.cause is Cause.TIME
