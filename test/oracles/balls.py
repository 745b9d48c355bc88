# SPDX-License-Identifier: Apache-2.0
"""Arms with a ball joint, made from random numbers, and a judge of its limits that reads the URDF itself."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass

import numpy as np

from ik_node import Arm, Goal, IkSolver
from ik_node.model.ball import Order
from ik_node.model.urdf.reader import load_description
from ik_node.startup.arguments import SUFFIX, URDF
from oracles.chain import Array, rotations
from oracles.random_arms import unit

PLACES = ('shoulder', 'wrist')
ORDERS = ('xyz', 'zyx', 'zyz')  # universal pair first, twist first, proper Euler angles
AXES = {'x': '1 0 0', 'y': '0 1 0', 'z': '0 0 1'}


@dataclass(frozen=True)
class BallArm:
    """A URDF with one declared ball; tool_axis and tool_point as for Arm. name: place, order, seed."""

    name: str
    text: str
    tool_axis: tuple[float, float, float]
    tool_point: tuple[float, float, float]


def ball_arm(place: str, order: str, seed: int, cone: bool = True) -> BallArm:
    """Return the arm of this seed with the ball at the shoulder or at the wrist.

    Shoulder: the ball, elbow and wrist. Wrist: yaw, pitch and the ball. Axes have random signs. cone: with
    limits of the ball, else the joints alone limit it, and the middle one can pass where they lock.
    """
    rng = np.random.default_rng((seed, PLACES.index(place), ORDERS.index(order)))
    upper, fore, tool = rng.uniform(0.15, 0.4), rng.uniform(0.15, 0.4), rng.uniform(0.08, 0.2)
    base = ' '.join(f'{value:.4f}' for value in rng.uniform(-1.0, 1.0, 3))
    swing, twist = rng.uniform(0.4, 1.4), rng.uniform(0.8, 2.5)
    most = (2.9, 2.6, 2.9) if order == 'zyz' or not cone else (2.0, 2.0, 2.9)
    ball = [(f'ball{k}', axis, most[k]) for k, axis in enumerate(order)]
    if place == 'shoulder':
        chain = [(*ball[0], 0.1), *((*joint, 0.0) for joint in ball[1:])]
        chain += [('elbow', 'y', 2.4, upper), ('wrist', 'y', 2.0, fore)]
    else:
        chain = [('yaw', 'z', 2.9, 0.1), ('pitch', 'y', 1.9, upper)]
        chain += [(*ball[0], fore), *((*joint, 0.0) for joint in ball[1:])]
    links, parent = ['<link name="base"/>'], 'base'
    for k, (name, axis, end, length) in enumerate(chain):
        sign = '-' if rng.random() < 0.5 else ''
        links.append(
            f'<link name="{name}_link"/><joint name="{name}" type="revolute"><parent link="{parent}"/>'
            f'<child link="{name}_link"/><origin xyz="0 0 {length:.6f}" rpy="{"0 0 0" if k else base}"/>'
            f'<axis xyz="{AXES[axis].replace("1", sign + "1")}"/>'
            f'<limit lower="{-end}" upper="{end}" velocity="2" effort="1"/></joint>'
        )
        parent = f'{name}_link'
    twisting = '' if order == 'zyz' else f' twist_joint="ball{0 if order == "zyx" else 2}"'
    limits = f' swing="{swing:.4f}"' if cone else ''
    if cone and seed % 2:
        limits += f' twist_lower="{-twist:.4f}" twist_upper="{twist:.4f}"'
    element = f'<ball joints="ball0 ball1 ball2"{twisting}{limits}/>'
    text = f'<robot name="ball_arm">{"".join(links)}<ik_node>{element}</ik_node></robot>'
    name = f'{place} {order} {seed}'
    return BallArm(name, text, (0.6, 0.0, 0.8), (float(tool), 0.03, 0.05))


class Judge:
    """Swing and twist of the declared ball of a URDF, by rotation matrices."""

    def __init__(self, text: str, names: tuple[str, ...]) -> None:
        """names: of the arm's joints, in the order of q."""
        root = ElementTree.fromstring(text)
        element = root.find('ik_node/ball')
        assert element is not None
        joints = {joint.get('name'): joint for joint in root.findall('joint')}
        self._joints = (element.get('joints') or '').split()
        self._columns = [names.index(name) for name in self._joints]
        self._axes = np.array(
            [[float(part) for part in joints[name].find('axis').get('xyz').split()] for name in self._joints]  # type: ignore[union-attr]
        )
        self.swing = float(element.get('swing') or math.inf)
        self._twist = [
            float(element.get(f'twist_{end}') or default)
            for end, default in (('lower', -math.inf), ('upper', math.inf))
        ]
        self._twist_joint = element.get('twist_joint')

    def excess(self, q: Array) -> float:
        """Return by how much [rad] q (n,) is outside the cone or the twist limits; negative: inside."""
        angles = q[self._columns]
        turns = [rotations(axis, np.array([angle])) for axis, angle in zip(self._axes, angles, strict=True)]
        whole = (turns[0] @ turns[1] @ turns[2])[0]
        if self._twist_joint is None:
            rest, twist = self._axes[0], angles[0] + (self._axes[0] @ self._axes[2]) * angles[2]
        else:
            at = self._joints.index(self._twist_joint)
            rest, twist = self._axes[at], angles[at]
        moved = whole @ rest
        swing = math.atan2(float(np.linalg.norm(np.cross(moved, rest))), float(moved @ rest))
        return max(swing - self.swing, float(twist) - self._twist[1], self._twist[0] - float(twist))


def shipped() -> BallArm:
    """Return the ball-joint arm of the package."""
    return BallArm(
        'ball_joint_arm', load_description(URDF / f'ball_joint_arm{SUFFIX}'), (0.0, 0.0, 1.0), (0.0, 0.0, 0.0)
    )


def solver_of(one: BallArm, **options: object) -> tuple[Arm, IkSolver, Judge]:
    """Return arm, solver and judge."""
    arm = Arm.from_urdf(one.text, tool_axis=one.tool_axis, tool_point=one.tool_point)
    return arm, IkSolver(arm, compile='wait', **options), Judge(one.text, arm.joint_names)  # type: ignore[arg-type]


def inside(arm: Arm, judge: Judge, rng: np.random.Generator, count: int) -> Array:
    """Return joints (count, n) uniform within the limits of the joints and of the ball, by the judge."""
    rows: list[Array] = []
    while len(rows) < count:
        q = rng.uniform(arm.lower, arm.upper)
        if judge.excess(q) <= 0.0:
            rows.append(q)
    return np.array(rows)


def reachable(one: BallArm, count: int) -> tuple[float, float, float]:
    """Return the shares of goals solved, alone and in a batch, and the largest excess of any answer."""
    arm, solver, judge = solver_of(one)
    rng = np.random.default_rng(11)
    places = inside(arm, judge, rng, count)
    poses = [arm.fk(q) for q in places]
    seeds = inside(arm, judge, rng, count)
    found = [solver.solve(Goal(*pose), seed) for pose, seed in zip(poses, seeds, strict=True)]
    batch = solver.solve_batch(*(np.array(rows) for rows in zip(*poses, strict=True)), workers=1)
    away = [unit(rng) for _ in range(max(10, count // 100))]
    far = [solver.solve(Goal(pose[0], axis)).q for pose, axis in zip(poses, away, strict=False)]
    answers = [*(solution.q for solution in found), *batch.q, *far]
    solved = float(np.mean([solution.solved for solution in found]))
    return solved, float(batch.solved.mean()), max(map(judge.excess, answers))


def through_rest(one: BallArm, steps: int) -> tuple[int, float, float]:
    """Return solved points of a track through zero swing, its joint step in units of the goals', excess."""
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
    return solved, step / own, max(map(judge.excess, rows))


def from_lock(one: BallArm, count: int) -> tuple[float, float]:
    """Return the shares of goals that one descent from locked joints solves, with the ball and without."""
    shares = []
    for text in (one.text, re.sub('<ik_node>.*</ik_node>', '', one.text)):
        arm = Arm.from_urdf(text, tool_axis=one.tool_axis, tool_point=one.tool_point)
        solver = IkSolver(arm, compile='wait', restarts=0)
        rng = np.random.default_rng(13)
        goals, seeds = (rng.uniform(arm.lower, arm.upper, (count, arm.n)) for _ in range(2))
        middle = arm.joint_names.index('ball1')
        seeds[:, middle] = 0.0 if ' zyz ' in one.name else math.pi / 2
        found = [solver._search.search(Goal(*arm.fk(q)), seed, 0.0) for q, seed in zip(goals, seeds, strict=True)]
        shares.append(float(np.mean([result.solved for result in found])))
    return shares[0], shares[1]


def by_method(one: BallArm, method: str, count: int) -> tuple[float, float]:
    """Return the share of goals that a method solves, and the largest excess."""
    arm, solver, judge = solver_of(one, method=method, restarts=100, position_tolerance=1e-3, direction_tolerance=1e-3)
    places = inside(arm, judge, np.random.default_rng(12), count)
    found = [solver.solve(Goal(*arm.fk(q))) for q in places]
    solved = float(np.mean([solution.solved for solution in found]))
    return solved, max(judge.excess(solution.q) for solution in found)
