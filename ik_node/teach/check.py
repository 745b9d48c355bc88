# SPDX-License-Identifier: Apache-2.0
"""check: plans every motion of a program as ik_node will, before any of them is made."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ik_node.checks import Array
from ik_node.control.arm_motion import ArmMotion, JointArbiter
from ik_node.control.feedback import Feedback
from ik_node.control.models import JointModel, Models, arms_of, build_models
from ik_node.control.paths import JointPath, ToolPath
from ik_node.control.requests import Aim
from ik_node.control.settings import ArmSettings, RobotSettings
from ik_node.control.solving import goal_solver_of
from ik_node.errors import IkError, InputError, join_names, quoted
from ik_node.model.arm import Arm
from ik_node.model.joint import Joint
from ik_node.solver.goal import Goal
from ik_node.teach.program import DIGITS, LINE, Point, Program
from ik_node.tracks import tip_pose

SHARES = np.linspace(0.0, 1.0, 17)[1:-1]  # of a line, where its branch is looked for
PATIENCE = 10.0  # [s] for the search of branches
REMEDY = 'choose a joint motion for it'
SAME = 1e-3  # [rad or m] between joint positions that are the same
MET = 1e-5  # [m] and [rad]: the errors of joints that lead to a point
OTHER = 0.1  # [rad or m] between two configurations that meet the same goal
LEAST_SCALING = 0.001  # the least speed_scaling of ik_node


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

    end: positions by name of the joints of the arm when it has arrived.
    """

    end: Mapping[str, float]
    joints: Mapping[str, float] | None = None
    T_base_tip: Array | None = None


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


def check(
    model: JointModel,
    settings: ArmSettings,
    program: Program,
    start: Mapping[str, float],
    begin: int = 0,
    again: bool = False,
    before: CheckReport | None = None,
) -> CheckReport:
    """Check a program for the arm of a model with the settings of its node.

    start: positions by joint name. begin: number of the first point to visit. again: the program will start
    anew after its last point. before: an earlier check of the same program, whose configurations are kept.
    """
    dry_run = DryRun(model, settings, program, start)
    if before is not None and before.program == program:
        dry_run.keep(before.moves)
    points = range(len(program.points))
    for number in (*points[begin:], *(points if again else ())):
        dry_run.visit(number)
    findings = tuple(dry_run.findings)
    if not points:
        findings = (Finding('', 'the program has no points'),)
    prismatic = zip(model.joints.variables, model.joints.prismatic, strict=True)
    result = CheckReport(program, dict(start), begin, again, settings.speed_scaling, findings)
    if any(finding.serious for finding in findings):
        return result
    moves = tuple(dry_run.moves.get(k) or Move({}) for k in points)
    return replace(result, moves=moves, prismatic=frozenset(name for name, slides in prismatic if slides))


class DryRun:
    """An arm in thought, which visits points by the motions that its node would make.

    findings: so far. moves: by index of the point, of those that can be reached.
    """

    def __init__(
        self, model: JointModel, settings: ArmSettings, program: Program, start: Mapping[str, float]
    ) -> None:
        self.findings: list[Finding] = []
        self.moves: dict[int, Move] = {}
        self._model, self._settings, self._program = model, settings, program
        self._own, self._columns = model.of(program.tool)
        self._places = {**model.joints.named(model.joints.rest), **start}  # of all variables
        self._known = True  # the arm gets to where it is in thought
        self._chosen: dict[int, Array] = {}  # configurations (n,) of points of the tool
        # By point and rounded places before: the places after. A program that runs again moves the same way.
        self._visits: dict[tuple[float, ...], dict[str, float]] = {}

    @property
    def _arm(self) -> Arm:
        return self._own.arm

    @property
    def _q(self) -> Array:
        return np.array([self._places[name] for name in self._arm.joint_names])

    def keep(self, moves: Sequence[Move]) -> None:
        """Use the configurations of earlier moves, by index, that still lead to their points."""
        for number, (point, move) in enumerate(zip(self._program.points, moves, strict=False)):
            if (
                point.joints is not None
                or move.joints is None
                or set(move.joints) != set(self._arm.joint_names)
            ):
                continue
            q = np.array([move.joints[name] for name in self._arm.joint_names])
            within = bool((q >= self._arm.lower).all() and (q <= self._arm.upper).all())
            if within and max(self._own.solver.errors(goal_of(point), q)) < MET:
                self._chosen[number] = q

    def visit(self, number: int) -> None:
        """Move to a point, or note why that is impossible; then the arm is at the point all the same."""
        point = self._program.points[number]
        begin = number, *(round(value, DIGITS) for value in self._places.values())
        if begin in self._visits and self._known:
            self._places = self._visits[begin]
            return
        try:
            move = self._moved(number, point)
            self._grip(point)
        except InputError as error:
            self._note(Finding(point.name, str(error)))
            self._known = False
            return
        self._visits[begin] = dict(self._places)
        first = self.moves.setdefault(number, move)
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
        joints = dict(zip(self._arm.joint_names, q.tolist(), strict=True))
        known, before = self._known, self._q
        self._known = True
        if known:
            self._go(joints, point.speed)
            self._tell_other_branch(point, before, q)
        self._places |= joints
        return Move(joints, joints=joints)

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
        joints = dict(zip(self._arm.joint_names, end.tolist(), strict=True))
        self._places |= joints
        if q is not None:
            apart = _farthest(dict(zip(self._arm.joint_names, q.tolist(), strict=True)), joints)
            if apart is not None:
                raise InputError(f'the line ends there with a different {apart}: {REMEDY}')
        T = tip_pose(position, direction, self._arm.tool_axis, self._arm.tool_point)
        return Move(joints, T_base_tip=T)

    def _go(self, aim: Aim, speed: float) -> None:
        """Move as the node would. Raises InputError where it would reject the goal."""
        scaled = max(self._settings.speed_scaling * speed, LEAST_SCALING)
        settings = replace(self._settings, speed_scaling=scaled)
        joints = ArmMotion(self._model, settings, self._places, JointArbiter())
        values, start = joints.values(Feedback())[0], joints.start_of(self._program.tool)
        joints.check_goal(aim, self._program.tool)
        plan = goal_solver_of(self._model).find(aim, self._program.tool, 0.0, start, settings)
        plan = joints.choose(plan, self._program.tool, values)
        if plan.partial or plan.joints is None:
            raise InputError(plan.message)
        targets = zip(self._model.joint_names, plan.joints.tolist(), strict=True)
        self._places |= {name: target for name, target in targets if not math.isnan(target)}
        self._places |= plan.others

    def _grip(self, point: Point) -> None:
        name = self._program.gripper
        if point.gripper is None:
            return
        if name not in self._model.joints.variables or name in self._model.joint_names:
            others = [one for one in self._model.joints.variables if one not in self._model.joint_names]
            raise InputError(
                f'there is no gripper joint {quoted(name)}; joints off the arm: {join_names(others)}'
            )
        if self._program.tool and not carries(self._arm, self._arm.robot.joints[name]):
            raise InputError(
                f'joint {quoted(name)} is not on the arm of the tool {quoted(self._program.tool)}'
            )
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
        targets = self._own.joint_targets(point.joints)
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
        path = self._own.solver.solve_path(rows[:, :3], directions, seed, PATIENCE)
        for owner, q, solved in zip(owners, path.q, path.solved, strict=True):
            if owner is not None and solved:
                self._chosen[owner] = q
        if first not in self._chosen:  # the solver says why, or finds it after all
            self._chosen[first] = self._solved(goals[0], seed)

    def _solved(self, goal: Goal, seed: Array) -> Array:
        found = self._own.solver.solve(goal, np.clip(seed, self._arm.lower, self._arm.upper))
        if not found.solved:
            raise InputError(f'{found.status.value}: {found.reason}')
        return found.q

    def _tell_other_branch(self, point: Point, before: Array, q: Array) -> None:
        """Note if a straight motion would come to the same place with other joints than q (n,)."""
        position, direction = self._arm.fk(q)
        end = before
        try:
            for stretch in ToolPath(position[None], direction[None]).stretches(*self._arm.fk(before), None):
                end = JointPath(self._own.solver, stretch, end).rows[-1]
        except IkError:
            return  # there is no straight motion, so no branch of it
        apart = np.where(self._arm.idle, 0.0, np.abs(end - q))
        if apart.max() > OTHER:
            name = self._arm.joint_names[int(apart.argmax())]
            sentence = f'the arm changes its configuration on the way, mainly of joint {quoted(name)}'
            self._note(Finding(point.name, sentence, serious=False))


def carries(arm: Arm, joint: Joint) -> bool:
    """Whether an arm carries a joint at its end: behind its last joint."""
    return any(before.name == arm.joint_names[-1] for before in arm.robot.path(joint.child))


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


class Checker:
    """Checks programs; building the models of a robot takes longer than a check. For one thread."""

    def __init__(self) -> None:
        self._built: tuple[str, RobotSettings] | None = None
        self._models: Models = {}

    def check(
        self,
        text: str,
        settings: RobotSettings,
        program: Program,
        start: Mapping[str, float],
        begin: int = 0,
        again: bool = False,
        before: CheckReport | None = None,
    ) -> CheckReport:
        """Check a program for a robot description with the settings of its node; arguments as of check.

        Raises IkError if there is no such arm.
        """
        if program.tool not in settings.arms:
            names = join_names(name or 'the only one' for name in settings.arms)
            raise InputError(f'there is no tool {quoted(program.tool)}; tools: {names}')
        if self._built is None or text != self._built[0] or not settings.same_models(self._built[1]):
            self._models = build_models(text, settings, {})
            self._built = text, settings
        model = next(one for first, one in self._models.items() if program.tool in arms_of(first, one))
        return check(model, settings.arms[program.tool], program, start, begin, again, before)
