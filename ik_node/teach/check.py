# SPDX-License-Identifier: Apache-2.0
"""check: plans every motion of a program as ik_node will, before any of them is made."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ik_node.checks import Array
from ik_node.control.paths import ToolPath
from ik_node.control.preview import Preview
from ik_node.errors import InputError, join_names, quoted
from ik_node.model.arm import carries
from ik_node.solver.goal import Goal
from ik_node.teach.program import DIGITS, LINE, Point, Program
from ik_node.tracks import tip_pose

SHARES = np.linspace(0.0, 1.0, 17)[1:-1]  # of a line, where its branch is looked for
PATIENCE = 10.0  # [s] for the search of branches
REMEDY = 'choose a joint motion for it'
SAME = 1e-3  # [rad or m] between joint positions that are the same
MET = 1e-5  # [m] and [rad]: the errors of joints that lead to a point
OTHER = 0.1  # [rad or m] between two configurations that meet the same goal


@dataclass(frozen=True)
class Finding:
    """What a check found about the motion to a point, '': about all. serious: the program must not run."""

    point: str
    sentence: str
    serious: bool = True

    def __str__(self) -> str:
        return f'{quoted(self.point)}: {self.sentence}' if self.point else self.sentence


@dataclass(frozen=True, eq=False)
class Move:
    """How ik_node is asked to move to a point: to joints by name, or straight to a pose T_base_tip (4, 4).

    end: positions by name of the joints of the arm when it has arrived. duration [s]: with the gripper's
    motion, without the wait.
    """

    end: Mapping[str, float]
    joints: Mapping[str, float] | None = None
    T_base_tip: Array | None = None
    duration: float = 0.0


@dataclass(frozen=True, eq=False)
class CheckReport:
    """A program and what a check found. It may run only from start, beginning with point number begin.

    start: positions by joint name. again: whether it may continue from its last point to the first. speed:
    speed_scaling of ik_node. moves: by index of the point; empty if anything serious was found.
    """

    program: Program
    start: Mapping[str, float]
    begin: int
    again: bool
    speed: float
    findings: tuple[Finding, ...]
    moves: tuple[Move, ...] = ()
    prismatic: frozenset[str] = frozenset()

    @property
    def passed(self) -> bool:
        """Whether the program may run."""
        return bool(self.moves)

    @property
    def duration(self) -> float:
        """Time [s] from the start to the last point, with the waits."""
        return sum(move.duration for move in self.moves) + sum(p.wait for p in self.program.points[self.begin :])


def check(
    preview: Preview,
    program: Program,
    start: Mapping[str, float],
    begin: int = 0,
    again: bool = False,
    before: CheckReport | None = None,
) -> CheckReport:
    """Check a program by what ik_node would do with its goals.

    start: positions by joint name. begin: number of the first point to visit. again: the program will start
    anew after its last point. before: an earlier check of the same program, whose configurations are kept.
    """
    dry_run = DryRun(preview, program, start)
    if before is not None and before.program == program:
        dry_run.keep(before.moves)
    points = range(len(program.points))
    for number in (*points[begin:], *(points if again else ())):
        dry_run.visit(number)
    findings = tuple(dry_run.findings)
    if not points:
        findings = (Finding('', 'the program has no points'),)
    result = CheckReport(program, dict(start), begin, again, preview.settings.speed_scaling, findings)
    if any(finding.serious for finding in findings):
        return result
    moves = tuple(dry_run.moves.get(k) or Move({}) for k in points)
    joints = preview.model.joints
    sliding = frozenset(name for name, slides in zip(joints.variables, joints.prismatic, strict=True) if slides)
    return replace(result, moves=moves, prismatic=sliding)


class DryRun:
    """A dry run: visits points by the motions that ik_node would make.

    findings: so far. moves: by index of the point, of those that can be reached.
    """

    def __init__(self, preview: Preview, program: Program, start: Mapping[str, float]) -> None:
        self.findings: list[Finding] = []
        self.moves: dict[int, Move] = {}
        self._preview, self._program = preview, program
        self._arm, self._solver = preview.arm, preview.solver
        self._variables = preview.model.joints
        self._positions = self._variables.named(self._variables.filled(start))
        self._duration = 0.0  # of the motions of a visit [s]
        self._known = True  # the arm would be at these positions: no motion before was rejected
        self._chosen: dict[int, Array] = {}  # configurations (n,) of points of the tool
        # By point and rounded positions before: those after. A program that runs again moves the same way.
        self._visits: dict[tuple[float, ...], dict[str, float]] = {}

    @property
    def _q(self) -> Array:
        return np.array([self._positions[name] for name in self._arm.joint_names])

    def _named(self, q: Array) -> dict[str, float]:
        return dict(zip(self._arm.joint_names, q.tolist(), strict=True))

    def keep(self, moves: Sequence[Move]) -> None:
        """Use the configurations of earlier moves, by index, that still lead to their points."""
        for number, (point, move) in enumerate(zip(self._program.points, moves, strict=False)):
            if point.joints is not None or move.joints is None or set(move.joints) != set(self._arm.joint_names):
                continue
            q = np.array([move.joints[name] for name in self._arm.joint_names])
            within = bool((q >= self._arm.lower).all() and (q <= self._arm.upper).all())
            if within and max(self._solver.errors(goal_of(point), q)) < MET:
                self._chosen[number] = q

    def visit(self, number: int) -> None:
        """Move to a point, or note why that is impossible; then the arm is at the point all the same."""
        point = self._program.points[number]
        begin = number, *(round(value, DIGITS) for value in self._positions.values())
        if begin in self._visits and self._known:
            self._positions = self._visits[begin]
            return
        self._duration = 0.0
        try:
            move = self._moved(number, point)
            self._grip(point)
        except InputError as error:
            self._note(Finding(point.name, str(error)))
            self._known = False
            return
        if point.turned:
            sentence = f'the tool points {point.turned:.3g} rad away from the direction wanted there'
            self._note(Finding(point.name, f'{sentence}, the closest that the arm found', serious=False))
        self._visits[begin] = self._positions
        first = self.moves.setdefault(number, replace(move, duration=self._duration))
        apart = _farthest(first.end, move.end)
        if apart is not None:
            sentence = f'a second run would reach it with a different {apart}: {REMEDY}'
            self._note(Finding(point.name, sentence))

    def _note(self, finding: Finding) -> None:
        if finding not in self.findings:
            self.findings.append(finding)

    def _moved(self, number: int, point: Point) -> Move:
        q = self._joints_of(point) if point.joints is not None else None
        if point.motion == LINE:
            return self._line(point, q)
        if q is None:
            q = self._configuration(number)
        joints = end = self._named(q)
        known, before = self._known, self._positions
        self._known = True
        if known:
            self._go(joints, point.speed)
            end = {name: self._positions[name] for name in joints}  # joints without limits: whole turns away
            self._report_other_branch(point, before, self._q)
        self._positions = {**self._positions, **end}
        return Move(end, joints=joints)

    def _line(self, point: Point, q: Array | None) -> Move:
        """Move straight to a point; q (n,): the joints that it has, None for a point of the tool."""
        goal = goal_of(point) if q is None else Goal(*self._arm.fk(q))
        position, direction = np.array(goal.position), np.array(goal.direction)
        if self._known:
            try:
                self._go(ToolPath(position[None], direction[None]), point.speed)
            except InputError as error:
                if q is None:
                    self._solved(goal, self._q)  # says why, if the point itself is out of reach
                raise InputError(f'the line cannot be followed: {error}') from None
            end = self._q
        else:  # only whether the point itself can be reached
            end = self._solved(goal, self._q) if q is None else q
        self._known = True
        joints = self._named(end)
        self._positions = {**self._positions, **joints}
        if q is not None:
            apart = _farthest(self._named(q), joints)
            if apart is not None:
                raise InputError(f'the line ends there with a different {apart}: {REMEDY}')
        T = tip_pose(position, direction, self._arm.tool_axis, self._arm.tool_point)
        return Move(joints, T_base_tip=T)

    def _go(self, aim: ToolPath | Mapping[str, float], speed: float) -> None:
        """Move as ik_node would. Raises InputError where it would reject the goal."""
        motion = self._preview.motion(aim, self._positions, speed)
        if not motion.solved:
            raise InputError(motion.message)
        self._positions = motion.end
        self._duration += motion.duration

    def _grip(self, point: Point) -> None:
        name = self._program.gripper
        if point.gripper is None:
            return
        others = [one for one in self._variables.variables if one not in self._preview.model.joint_names]
        if name not in others:
            raise InputError(f'there is no gripper joint {quoted(name)}; joints off the arm: {join_names(others)}')
        if self._program.tool and not carries(self._arm, self._arm.robot.joints[name]):
            raise InputError(f'joint {quoted(name)} is not on the arm of the tool {quoted(self._program.tool)}')
        if self._known:
            self._go({name: point.gripper}, point.speed)

    # Joints and configurations

    def _joints_of(self, point: Point) -> Array:
        """Return the joints (n,) of a point that gives them, clipped to the limits."""
        assert point.joints is not None
        names = self._arm.joint_names
        if set(point.joints) != set(names):
            raise InputError(
                f'the point names joints {join_names(point.joints)}, but the arm has {join_names(names)}; '
                'programs for other arms must use tool points'
            )
        targets = self._preview.model.joint_targets(point.joints)
        return np.array([targets[name] for name in names])

    def _configuration(self, number: int) -> Array:
        """Return the joints (n,) for a point of the tool. Raises InputError if there are none."""
        if number not in self._chosen:
            self._choose(number)
        return self._chosen[number]

    def _choose(self, first: int) -> None:
        """Choose configurations for a point of the tool and the next ones, on one branch if there is one.

        The lines between them count as points, since the arm cannot change its branch there.
        """
        points, seed = self._program.points, self._q
        if set(points[first].near) == set(self._arm.joint_names):
            seed = np.array([points[first].near[name] for name in self._arm.joint_names])
        goals = [goal_of(points[first])]
        owners: list[int | None] = [first]  # of the goals: numbers of points, None on a line
        for number in range(first + 1, len(points)):
            point = points[number]
            if goals[0].direction is None or point.joints is not None or point.direction is None:
                break
            goal = goal_of(point)
            if point.motion == LINE:
                between = _between(goals[-1], goal)
                goals += between
                owners += [None] * len(between)
            goals.append(goal)
            owners.append(None if point.motion == LINE else number)
        rows = np.array([goal.packed for goal in goals])
        directions = None if goals[0].direction is None else rows[:, 3:6]
        path = self._solver.solve_path(rows[:, :3], directions, seed, PATIENCE)
        for owner, q, solved in zip(owners, path.q, path.solved, strict=True):
            if owner is not None and solved:
                self._chosen[owner] = q
        if first not in self._chosen:  # the solver says why, or finds it after all
            self._chosen[first] = self._solved(goals[0], seed)

    def _solved(self, goal: Goal, seed: Array) -> Array:
        found = self._solver.solve(goal, np.clip(seed, self._arm.lower, self._arm.upper))
        if not found.solved:
            raise InputError(f'{found.status.value}: {found.reason}')
        return found.q

    def _report_other_branch(self, point: Point, before: Mapping[str, float], q: Array) -> None:
        """Note if a straight motion would come to the same place with other joints than q (n,)."""
        position, direction = self._arm.fk(q)
        try:
            straight = self._preview.motion(ToolPath(position[None], direction[None]), before, point.speed)
        except InputError:
            return  # there is no straight motion, so no branch of it
        end = np.array([straight.end[name] for name in self._arm.joint_names])
        apart = np.where(self._arm.idle, 0.0, np.abs(end - q))
        if straight.solved and apart.max() > OTHER:
            name = self._arm.joint_names[int(apart.argmax())]
            sentence = f'the arm changes its configuration on the way, mainly of joint {quoted(name)}'
            self._note(Finding(point.name, sentence, serious=False))


def goal_of(point: Point) -> Goal:
    """Return the goal of a point of the tool."""
    assert point.position is not None
    return Goal(point.position, point.direction)


def _between(one: Goal, other: Goal) -> list[Goal]:
    """Return goals on the line from one to other."""
    path = ToolPath(np.array([other.position]), np.array([other.direction]))
    try:
        stretches = path.stretches(np.array(one.position), np.array(one.direction), None)
    except InputError:  # told once the line is planned
        return []
    return [Goal.unpacked(goal) for stretch in stretches for goal in stretch.goals(SHARES)]


def _farthest(one: Mapping[str, float], other: Mapping[str, float]) -> str | None:
    """Return the joint that differs most between two positions by name, None if none does."""
    apart = {name: abs(one[name] - other.get(name, math.inf)) for name in one}
    name = max(apart, key=lambda joint: apart[joint])
    return f'position of joint {quoted(name)}' if apart[name] > SAME else None
