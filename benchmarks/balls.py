# SPDX-License-Identifier: Apache-2.0
"""Ball joints: goals inside their cones, and tracks straight through zero swing."""

from __future__ import annotations

import itertools
import math
import re
from time import process_time

import numpy as np

from benchmarks.arms import Task
from benchmarks.ball_arms import ORDERS, PLACES, BallArm, Judge, ball_arm
from benchmarks.chain import Array
from benchmarks.random_arms import unit
from benchmarks.tables import Table, heading
from ik_node import Arm, Goal, IkSolver
from ik_node.model.ball import Order
from ik_node.model.urdf.reader import load_description

SHIPPED = 'urdf/ball_joint_arm.urdf.xacro'
GOALS, FEW = 10_000, 1_000  # of the shipped arm and of each random one
SEEDS = 3
STEPS = 400  # points of a track
METHODS = 'dls', 'transpose', 'ccd', 'fabrik'
METHOD_GOALS = 100


def run(tasks: list[Task], scale: float) -> None:  # noqa: ARG001 - arms of its own
    """Print the share of goals that are solved, the largest excess beyond a cone, and steps along tracks."""
    kinds = list(itertools.product(PLACES, ORDERS, range(SEEDS)))
    arms = [shipped(), *(ball_arm(*kind) for kind in kinds)]
    heading(
        'Ball joints',
        f"""Goals are FK at random joints inside the cone: {GOALS} of the shipped arm, {FEW} of each random
        one, which has its ball at the shoulder or at the wrist, in three orders of axes. Each is solved from
        random joints by solve and from the middle by solve_batch. Solved: share of goals. Excess: of the
        configurations returned, the largest angle beyond cone or twist limit, by rotation matrices; below 0:
        inside. Far: the same for best efforts at random directions. Time: microseconds of processor time of
        solve in the mean.""",
    )
    table = Table('arm'.ljust(16), 'goals', 'solved', 'batch', 'excess [rad]', 'far [rad]', 'time')
    for one in arms:
        goals = max(10, round(scale * (GOALS if one is arms[0] else FEW)))
        row = reachable(one, goals)
        table.row(one.name, goals, *row)
    heading(
        'Straight through zero swing',
        f"""Goals of {STEPS} points: FK along joints that take the ball through its rest axis, where proper
        Euler angles lock, while all other joints move too. Each point by track from the one before. Step:
        largest joint step, largest of the joints that made the goals, and their ratio. Goal: the largest
        step of the goal.""",
    )
    table = Table(
        'arm'.ljust(16), 'points', 'solved', 'step [rad]', 'of goals [rad]', 'ratio', 'goal [mm]', 'excess'
    )
    for one in arms:
        table.row(one.name, STEPS, *through_rest(one, max(40, round(scale * STEPS))))
    heading(
        'Straight through where the joints lock',
        """The same without limits of the ball, through the place where its joints lock: the middle joint at
        zero (zyz) or at a right angle (the others).""",
    )
    table = Table('arm'.ljust(16), 'points', 'solved', 'step [rad]', 'of goals [rad]', 'ratio', 'goal [mm]')
    for kind in kinds:
        one = ball_arm(*kind, cone=False)
        table.row(one.name, STEPS, *through_rest(one, max(40, round(scale * STEPS)))[:-1])
    heading(
        'From where the joints lock',
        f"""{FEW} reachable goals per arm, seeds where the joints of the ball lock, no restarts: share that
        one descent solves with the ball declared, whose step is there one of its rotation vector, and
        with three joints that are no ball to the solver.""",
    )
    table = Table('arm'.ljust(16), 'ball', 'three joints')
    for kind in kinds:
        one = ball_arm(*kind, cone=False)
        table.row(one.name, *from_lock(one, max(50, round(scale * FEW))))
    heading(
        'By other methods',
        f"""Share of {METHOD_GOALS} goals of the shipped arm within 1 mm and 1 mrad in 100 restarts, and
        excess as above. ccd turns the ball as one joint.""",
    )
    table = Table('method'.ljust(16), 'solved', 'excess [rad]')
    for method in METHODS:
        table.row(method, *by_method(arms[0], method, max(10, round(scale * METHOD_GOALS))))


def shipped() -> BallArm:
    """Return the ball-joint arm of the package."""
    return BallArm('ball_joint_arm', load_description(SHIPPED), (0.0, 0.0, 1.0), (0.0, 0.0, 0.0))


def solver_of(one: BallArm, **options: object) -> tuple[Arm, IkSolver, Judge]:
    """Return arm, solver and judge."""
    arm = Arm.from_urdf(one.text, tool_axis=one.tool_axis, tool_point=one.tool_point)
    return arm, IkSolver(arm, compile='wait', **options), Judge(one.text, arm.joint_names)  # type: ignore[arg-type]


def reachable(one: BallArm, count: int) -> tuple[str, str, str, str, str]:
    """Return shares of goals solved, largest excesses and time."""
    arm, solver, judge = solver_of(one)
    rng = np.random.default_rng(11)
    places = inside(arm, judge, rng, count)
    poses = [arm.fk(q) for q in places]
    seeds = inside(arm, judge, rng, count)
    start = process_time()
    found = [solver.solve(Goal(*pose), seed) for pose, seed in zip(poses, seeds, strict=True)]
    time = (process_time() - start) / count
    batch = solver.solve_batch(*(np.array(rows) for rows in zip(*poses, strict=True)), workers=1)
    solved = np.mean([solution.solved for solution in found])
    answers = [solution.q for solution in found if solution.solved] + list(batch.q)
    away = [unit(rng) for _ in range(max(10, count // 100))]
    far = [solver.solve(Goal(pose[0], axis)).q for pose, axis in zip(poses, away, strict=False)]
    excess, excess_far = (max(judge.excess(q) for q in rows) for rows in (answers, far))
    return (
        f'{solved:.2%}',
        f'{batch.solved.mean():.2%}',
        f'{excess:.1e}',
        f'{excess_far:.1e}',
        f'{1e6 * time:.0f}',
    )


def through_rest(one: BallArm, steps: int) -> tuple[str, str, str, str, str, str]:
    """Return solved points, joint steps and excess along a track through zero swing."""
    arm, solver, judge = solver_of(one)
    middle, path = arm.middle.copy(), np.empty((steps, arm.n))
    (ball,) = arm.balls
    columns = [arm.joint_names.index(name) for name in ball.joints]
    # All joints at a place where the arm is not straight, moving a little; the ball swings through zero.
    bent = np.array([0.0 if k in columns else 0.7 for k in range(arm.n)])
    locked = 0.0 if math.isfinite(judge.swing) or ball.order is Order.PROPER else math.pi / 2
    swinging = {arm.joint_names.index(name): 0.3 + 0.1 * k for k, name in enumerate(ball.swing_joints)}
    size = 0.6 * min(judge.swing, 1.0) / math.hypot(*swinging.values())
    for k, share in enumerate(np.linspace(-1.0, 1.0, steps)):
        path[k] = middle + bent + 0.2 * share
        for column in columns:
            path[k, column] = swinging.get(column, 0.0) * size * share
        path[k, columns[1]] += locked
    goals = [Goal(*arm.fk(q)) for q in path]
    q = before = path[0]
    rows = [q]
    solved = 0
    for goal in goals[1:]:
        answer = solver.track(goal, q, before)
        solved += answer.solved
        before, q = q, answer.q
        rows.append(q)
    step, own = (float(np.abs(np.diff(each, axis=0)).max()) for each in (np.array(rows), path))
    way = max(float(np.linalg.norm(b.position - a.position)) for a, b in itertools.pairwise(goals))
    excess = max(judge.excess(row) for row in rows)
    return f'{solved}', f'{step:.5f}', f'{own:.5f}', f'{step / own:.3f}', f'{1e3 * way:.3f}', f'{excess:.1e}'


def from_lock(one: BallArm, count: int) -> tuple[str, str]:
    """Return the shares of goals that one descent from locked joints solves, with the ball and without."""
    shares = []
    for text in (one.text, re.sub('<ik_node>.*</ik_node>', '', one.text)):
        arm = Arm.from_urdf(text, tool_axis=one.tool_axis, tool_point=one.tool_point)
        solver = IkSolver(arm, compile='wait', restarts=0)
        rng = np.random.default_rng(13)
        goals, seeds = (rng.uniform(arm.lower, arm.upper, (count, arm.n)) for _ in range(2))
        middle = arm.joint_names.index('ball1')
        seeds[:, middle] = 0.0 if ' zyz ' in one.name else math.pi / 2
        found = [
            solver._parts.search.search(Goal(*arm.fk(q)), seed, 0.0)
            for q, seed in zip(goals, seeds, strict=True)
        ]
        shares.append(f'{np.mean([result.solved for result in found]):.1%}')
    return shares[0], shares[1]


def by_method(one: BallArm, method: str, count: int) -> tuple[str, str]:
    """Return the share of goals that a method solves, and the largest excess."""
    arm, solver, judge = solver_of(
        one, method=method, restarts=100, position_tolerance=1e-3, direction_tolerance=1e-3
    )
    places = inside(arm, judge, np.random.default_rng(12), count)
    found = [solver.solve(Goal(*arm.fk(q))) for q in places]
    excess = max(judge.excess(solution.q) for solution in found)
    return f'{np.mean([solution.solved for solution in found]):.1%}', f'{excess:.1e}'


def inside(arm: Arm, judge: Judge, rng: np.random.Generator, count: int) -> Array:
    """Return joints (count, n) uniform within the limits of the joints and of the ball, by the judge."""
    rows: list[Array] = []
    while len(rows) < count:
        q = rng.uniform(arm.lower, arm.upper)
        if judge.excess(q) <= 0.0:
            rows.append(q)
    return np.array(rows)
