# SPDX-License-Identifier: Apache-2.0
"""ArmMotion: the motion of the joints that an arm commands; JointArbiter: which arm commands which joints."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from ik_node.checks import Array
from ik_node.control.locks import Rank, ordered_lock
from ik_node.errors import InputError, join_names, quoted
from ik_node.solver.goal import Goal

from .checks import CLEARANCE_EN_ROUTE, JointGate, MotionCheck, States
from .feedback import Feedback, FollowingError
from .models import ArmModel, Columns
from .motion import SPACING, JointMotion, JointPlan, ToolPace, motion_ahead, positions_to_rest
from .paths import MotionLimits, ToolPath, limits_of_motion
from .requests import Aim, JointTargets, Level
from .settings import ArmSettings, Workspace
from .solving import GoalSolver
from .streaming import TrajectoryStreamer
from .trajectory import JointTrajectory, MotionState, Setpoint

THERE = 1e-6  # [rad or m, per second]: a motion at rest equals the state of its controller
PLANNED = 0.99  # share of the acceleration limits for motions; the rest is for transitions of controllers


def filled(joints: Array, present: Array) -> Array:
    """Return the targets joints (k,), those of present (k,) where they are NaN."""
    return np.where(np.isnan(joints), present, joints)


class JointGroup:
    """Variables that move together: the arm, or a single other joint such as a gripper finger.

    gate: their limits, for the check of their setpoints.
    """

    def __init__(
        self,
        names: tuple[str, ...],
        index: Columns,
        limits: MotionLimits,
        positions: Array,
        blocks: Sequence[Columns] | None = None,
    ) -> None:
        """index: of the joints among the variables of the robot. blocks: see JointMotion."""
        self.names, self.index = names, index
        self.motion = JointMotion(limits.lower, limits.upper, positions, blocks)
        self.gate = JointGate(names, index, limits)
        self.limit(limits)

    def limit(self, limits: MotionLimits, share: float = 1.0) -> None:
        """Use these limits from now on, with a share of their velocity."""
        self.motion.set_limits(share * limits.velocity, PLANNED * limits.acceleration, limits.jerk)
        self.gate.set_limits(share * limits.velocity, limits.acceleration, limits.jerk)
        self._allow_hard_stop()

    def stop(self, hard: bool) -> None:
        """Stop as soon as the limits allow. hard: see JointMotion."""
        self.motion.stop(hard)
        self._allow_hard_stop()

    def _allow_hard_stop(self) -> None:
        """Let the gate pass the hard stop, if there is one."""
        if self.motion.hard:
            self.gate.allow_hard_stop()

    def reset(self, positions: Array) -> None:
        """Initialise the joints at rest at positions (n,); NaN: a joint keeps its own."""
        self.motion.reset(filled(positions, self.motion.position))
        self.gate.restart()

    def go_to(self, targets: Array) -> None:
        """Move to targets (n,); NaN: a joint keeps its own."""
        self.motion.go_to(filled(targets, self.motion.target))

    def preview(self, targets: Array) -> JointMotion:
        """Return a copy of the motion that goes to targets (n,); NaN: a joint keeps its own."""
        motion = self.motion.twin()
        motion.resume()
        motion.go_to(filled(targets, motion.target))
        return motion

    def step(self, dt: float, caught_up: float = 0.0) -> None:
        """Advance by dt [s]; caught_up: time [s] before, during which the plan advanced without setpoints."""
        if caught_up > 0.0:
            self.motion.advance(caught_up)
        self.motion.step(dt)

    def continue_from(self, states: Mapping[str, tuple[float, float, float]]) -> bool:
        """Continue from position, velocity and acceleration by joint name; return whether the motion can."""
        state = MotionState(*np.transpose([states[name] for name in self.names]))
        if not self.motion.moving and np.abs(np.subtract(state, self.motion.state)).max() < THERE:
            return True
        if not self.motion.continue_from(state):
            return False
        self.gate.continue_from(*self.motion.state)
        self._allow_hard_stop()
        return True


class JointArbiter:
    """The arms of one robot. lock: held during changes of an arm. output: held while setpoints are sent.

    Every joint is commanded by at most one arm. The first arm publishes joints that belong to none.
    """

    def __init__(self) -> None:
        self.lock, self.output = ordered_lock(Rank.ROBOT), ordered_lock(Rank.OUTPUT)
        self._delivers: list[Callable[[], None]] = []  # what delivers the reports of each controller
        self._motions: Mapping[object, ArmMotion] = {}  # by owner; replaced, never changed
        self._changed: set[int] = set()  # arms that have not processed a change yet

    def join(self, deliver: Callable[[], None]) -> None:
        """Add a controller; deliver: delivers its reports."""
        self._delivers.append(deliver)

    @contextmanager
    def sending(self) -> Iterator[None]:
        """Exclude other threads from sending setpoints; deliver the reports afterwards."""
        try:
            with self.output:
                yield
        finally:
            self.deliver()

    def deliver(self) -> None:
        """Deliver the reports of all arms, unless this thread holds a lock: then later."""
        if not (self.lock._is_owned() or self.output._is_owned()):  # type: ignore[attr-defined]
            for deliver in self._delivers:
                deliver()

    def put(self, owner: object, motion: ArmMotion) -> ArmMotion:
        """Note the motion of the arm that owner commands from now on, and return it."""
        self._motions = {**self._motions, owner: motion}
        return motion

    def is_first(self, motion: ArmMotion) -> bool:
        """Whether this arm publishes the joints that belong to none."""
        return motion is next(iter(self._motions.values()))

    def neighbours(self, motion: ArmMotion) -> Iterator[tuple[JointGroup, bool]]:
        """Return the groups of joints of the other arms, and whether they follow a command at present."""
        for other in self._motions.values():
            if other is not motion:
                for group in other.groups:
                    yield group, group.motion.moving and not other.without_position

    def announce_change(self, motion: ArmMotion) -> None:
        """Note that an arm has started another motion, or stopped before its target."""
        self._changed.update(id(other) for other in self._motions.values() if other is not motion)

    def take_change(self, motion: ArmMotion) -> bool:
        """Return whether another arm has done so since the last call."""
        changed = id(motion) in self._changed
        self._changed.discard(id(motion))
        return changed

    def commanded(self, motion: ArmMotion) -> set[str]:
        """Return the variables that other arms command."""
        others = (other for other in self._motions.values() if other is not motion)
        return {name for other in others for name in other.commanded}

    def check_free(self, motion: ArmMotion, names: Collection[str]) -> None:
        """Raise InputError if another arm commands one of these variables."""
        taken = self.commanded(motion)
        for name in names:
            if name in taken:
                raise InputError(f'joint "{name}" is commanded by another tool of this robot')

    def check_known(self, motion: ArmMotion, measured: Collection[str]) -> None:
        """Raise InputError if positions of other arms, with which this one could collide, are unknown.

        measured: names of the joints that were measured recently.
        """
        for group, _ in self.neighbours(motion):
            for name in group.names:
                if name not in measured:
                    raise InputError(f'joint "{name}" of another tool is not measured: arms could collide')

    def ahead(self, motion: ArmMotion, spacing: float) -> Mapping[str, Array]:
        """Return the future positions of the moving joints of the other arms, by name, spacing [s] apart.

        From the present position to the target.
        """
        with self.lock:
            moving = [group for group, _ in self.neighbours(motion) if group.motion.moving]
            twins = [(group.names, group.motion.twin()) for group in moving]
        found: dict[str, Array] = {}
        for names, twin in twins:
            found |= dict(zip(names, positions_to_rest(twin, spacing).T, strict=True))
        return found


ALTERNATIVES = 8  # number of other solutions to try
HAND_GUIDING_SHARE = 0.25  # of the velocity limits
CATCH_UP = 0.5  # share of the tolerance to which measurements must catch up before the arm continues
FAR = 0.1  # [rad or m]
SHARED = 'another tool shares some of these joints: only goal_pose, goal_point and goal_joints are supported'
PROMPT = 0.001, 0.01  # [m, rad] from its target within which a joint has arrived at once
ANNOUNCE_PERIOD = 0.1  # [s] between announcements of changes while the arm follows a moving target


class ArmMotion:
    """The joints that an arm commands, and their motion: one group; others follow once a goal names them.

    group: the joints of the arm. without_position: joints to be commanded, of the arm and of its controller,
    whose position is unknown. check: judges all that the arm is to do. paused: why a moving arm waits, empty
    if it does not.
    """

    def __init__(
        self,
        model: ArmModel,
        settings: ArmSettings,
        positions: Mapping[str, float],
        robot: JointArbiter,
    ) -> None:
        """positions: by joint name; other joints of the arm: home; the rest: rest position."""
        self._model, self._settings, self._robot = model, settings, robot
        names = model.joint_names
        home = dict(zip(names, model.home.tolist(), strict=True))
        known = {**model.joints.named(model.joints.rest), **home}
        known.update({name: position for name, position in positions.items() if name in known})
        self.group = JointGroup(
            names,
            model.index,
            limits_of_motion(model, model.index, settings),
            np.array([known[n] for n in names]),
            model.blocks,
        )
        # Joints that the controller moves besides the arm, a gripper for instance; foreign: not of the robot.
        self._listed = settings.listed_joints(names)
        self._extra_joints = tuple(name for name in self._listed if name not in names)
        self._foreign: dict[str, float] = {}  # positions at which they are held
        self.without_position: tuple[str, ...] = (*names, *self._extra_joints)
        self._others: dict[str, JointGroup] = {}  # by variable: joints off the arm that goals have named
        self._resting = {name: known[name] for name in model.joints.variables if name not in names}
        self._off = model.joints.indices(list(self._resting))
        self._rows: tuple[object, tuple[NDArray[np.bool_], tuple[str, ...]]] | None = None  # see _published
        self._values = model.joints.filled(known)  # of all variables, in the last setpoint
        self._following = FollowingError(model.joint_names, model.tree.continuous, model.tree.prismatic)
        self.paused = ''
        self._goal = self.group.motion.target  # the last targets
        self.tracked: Array | None = None  # position of the moving target that the arm follows
        self._plans: list[object] = []  # of all groups, at the last setpoint
        self._unchecked = False  # the arm no longer follows a stream step by step: nobody has checked the rest
        self._announced = -math.inf  # when the other arms were last notified of a change [s]
        self.check = MotionCheck(model, settings, partial(robot.ahead, self))
        self.check.joints = [self.group.gate]
        self._set_limits()

    @property
    def groups(self) -> list[JointGroup]:
        """The commanded joints: those of the arm, and others that goals have named."""
        return [self.group, *self._others.values()]

    @property
    def commanded(self) -> tuple[str, ...]:
        """The variables that are commanded: those of the arm, and others that goals have named."""
        return (*self.group.names, *self._others)

    def off_arm(self, name: str) -> tuple[float, float] | None:
        """Return target and present command of a joint off the arm; None before a goal names it."""
        group = self._others.get(name)
        return None if group is None else (float(group.motion.target[0]), float(group.motion.position[0]))

    @property
    def needed(self) -> tuple[str, ...]:
        """The joints whose measurements must be believable: the commanded ones and those that are held."""
        return (*self.commanded, *self._extra_joints)

    @property
    def moving(self) -> bool:
        """Whether any joint is moving."""
        return any(group.motion.moving for group in self.groups)

    @property
    def braking(self) -> bool:
        """Whether no joint has a target: moving joints come to rest."""
        return all(group.motion.braking or not group.motion.moving for group in self.groups)

    def values(self, feedback: Feedback) -> tuple[Array, Array]:
        """Return position and velocity (n,) of all variables: commanded, else measured, else at rest."""
        variables = self._model.joints.variables
        values, rates = np.zeros((2, len(variables)))
        for (name, rest), i in zip(self._resting.items(), self._off, strict=True):
            measured = feedback.position(name)
            values[i] = rest if measured is None else measured
        for group, commanded in self._robot.neighbours(self):
            for k, name in enumerate(group.names):
                if name not in variables:  # of a description that this arm does not have yet
                    continue
                measured = feedback.position(name) if feedback.expected and not commanded else None
                i = variables.index(name)
                values[i] = group.motion.position[k] if measured is None else measured
                rates[i] = group.motion.velocity[k] if measured is None else 0.0
        for group in self.groups:
            values[group.index], rates[group.index] = group.motion.position, group.motion.velocity
        return values, rates

    def start_of(self, tool: str) -> Array:
        """Return the start (k,) for a goal of a tool: joints that move other tools are at their target."""
        motion, alone = self.group.motion, self._model.tools[tool].own
        q = self.group.motion.target.copy()
        q[alone] = motion.position[alone]
        return q

    def within(self, positions: Mapping[str, float]) -> dict[str, float]:
        """Return positions of the joints of the arm by name, clipped to the limits.

        A joint that is outside its limits may stay there: it must not be sent inside at full speed.
        """
        bounds = zip(self.group.names, *self.group.motion.allowed(), strict=True)
        return {name: float(np.clip(positions[name], low, high)) for name, low, high in bounds if name in positions}

    def _continue_from(self, states: Mapping[str, tuple[float, float, float]]) -> bool:
        """Continue from position, velocity and acceleration by joint name; return whether all joints can."""
        sent = [group for group in self.groups if states.keys() >= set(group.names)]
        return bool(sent) and all(group.continue_from(states) for group in sent)

    def _measured(self, feedback: Feedback) -> Array:
        """Return the measured positions (n,) of the arm, NaN where there are none."""
        return np.array([feedback.position(name) for name in self.group.names], dtype=np.float64)

    def initialise(self, positions: Mapping[str, float]) -> None:
        """Assume the joints of the arm at their last command or at home, others as measured."""
        self.without_position = ()
        self._hold(positions)

    def _hold(self, positions: Mapping[str, float]) -> None:
        """Hold the other joints of the controller; unnamed ones are without position."""
        for name in self._extra_joints:
            if name in self._others or name in self._foreign:
                continue
            if name not in positions:
                self.without_position += (name,)
            elif name in self._resting:
                self._add_group(name, positions[name])
            else:
                self._foreign[name] = positions[name]

    def _add_group(self, name: str, position: float) -> None:
        index = self._model.joints.indices([name])
        limits = limits_of_motion(self._model, index, self._settings)
        group = self._others[name] = JointGroup((name,), index, limits, np.array([position]))
        self.check.joints.append(group.gate)

    def _add(self, names: Iterable[str], feedback: Feedback, fresh: Mapping[str, float] | None) -> None:
        """Command the joints off the arm among these variables, too; see begin. Raises InputError."""
        new = [name for name in names if name in self._resting and name not in self._others]
        self._robot.check_free(self, new)
        if self._model.collision is not None and feedback.expected:
            self._robot.check_known(self, feedback.fresh(self._settings.measured_timeout))
        if fresh is not None and (doubt := feedback.doubt(new)):
            raise InputError(doubt)
        missing = [name for name in new if fresh is not None and name not in fresh]
        if missing:
            raise InputError(f'not measured recently: {join_names(missing)}')
        for name in new:
            found = feedback.position(name) if fresh is None else fresh[name]
            self._add_group(name, self._resting[name] if found is None else found)

    def _check_listed(self, targets: JointTargets) -> None:
        """Raise InputError unless the controller moves all joints that have targets."""
        own = zip(self.group.names, np.isnan(targets.joints), strict=True)  # type: ignore[arg-type]
        names = (*(name for name, keeps in own if not keeps), *targets.others)
        missing = [name for name in names if name not in self._listed]
        if missing:
            raise InputError(
                f'the controller moves {join_names(self._listed)}, not {join_names(missing)}: move it with '
                'its own controller, or list it in the parameter controller_joints if this controller has it'
            )

    def _setpoint(self, time: float, values: Array, rates: Array, whole: bool, replanned: bool) -> Setpoint:
        """Return the setpoint at time [s], values and rates (n,) of all variables; whole: see _published."""
        positions, velocities = self._model.joints.expand(values, rates)
        rows, names = self._published(whole)
        foreign = np.array(list(self._foreign.values()))
        return Setpoint(
            time,
            (*names, *self._foreign),
            np.append(positions[rows], foreign),
            np.append(velocities[rows], np.zeros(foreign.size)),
            self._listed,
            replanned,
        )

    def _published(self, whole: bool) -> tuple[NDArray[np.bool_], tuple[str, ...]]:
        """Return the joints in the setpoints, as mask and names: those that it commands.

        whole: also joints that belong to no arm, if this is the first one.
        """
        others = frozenset(self._robot.commanded(self)) if whole and self._robot.is_first(self) else None
        key = (self._model, self.commanded, others)
        if self._rows is None or key != self._rows[0]:
            own = self._model.driven_by(self.commanded)
            rows = own if others is None else ~self._model.driven_by(tuple(others))
            pairs = zip(self._model.joints.names, rows, strict=True)
            self._rows = key, (rows, tuple(name for name, row in pairs if row))
        return self._rows[1]

    def _states(self, setpoint: Setpoint) -> Array:
        """Return position, velocity and acceleration (3, k) of the joints of the controller."""
        known: dict[str, tuple[float, ...]] = {}
        for group in self.groups:
            rows = np.transpose(group.motion.state)
            known.update(zip(group.names, map(tuple, rows.tolist()), strict=True))
        return np.array(
            [known.get(n, (p, 0.0, 0.0)) for n, p in zip(setpoint.controller, setpoint.listed(), strict=True)]
        ).T

    def take(self, model: ArmModel, settings: ArmSettings) -> None:
        """Change to another model of the same joints, and its limits."""
        self._model, self._settings = model, settings
        for group in self.groups:
            group.limit(limits_of_motion(self._model, model.joints.indices(group.names), settings))
        self.group.motion.set_blocks(model.blocks)
        self._set_limits()

    def initialise_from_measurement(self, positions: Mapping[str, float]) -> None:
        """Initialise the arm at rest at measured positions; others go to without_position."""
        self.tracked, self.paused = None, ''
        self.check.restart()
        measured = np.array([positions.get(name, np.nan) for name in self.group.names])
        if not np.isnan(measured).all():
            self.group.reset(measured)
        self.without_position = tuple(name for name in self.group.names if name not in positions)
        self._hold(positions)

    def forget_positions(self) -> None:
        """Forget the positions of the joints."""
        self.tracked, self.paused = None, ''
        self.check.restart()
        self._following.restart()
        self.without_position = (*self.group.names, *self._extra_joints)
        self.group.reset(self.group.motion.position)
        self._others.clear()
        self.check.joints = [self.group.gate]
        self._foreign.clear()

    def _set_limits(self) -> None:
        settings = self._settings
        self._following.set_limits(self._model.following_tolerance(settings), settings.following_delay)
        tools, rates = self._model.tools.values(), settings.tool_rates()
        self.check.take(self._model, settings)
        arms = [(tool.arm, tool.columns) for tool in tools]
        motion = self.group.motion
        motion.set_pace(ToolPace(arms, *rates, self._model.rolls))
        motion.keeps = self.check.keeps_balls if self.check.has_balls else None
        self._limited = self.check.needed  # a planned motion could violate a limit
        motion.guard = self._may_pass if self._limited else None

    def _may_pass(self, low: Array, high: Array, positions: Callable[[], Array]) -> bool:
        """Whether a motion is allowed with the other joints at their last positions. See JointMotion."""
        return self.check.is_clear(low, high, self._values) or not self.check.planned_violation(
            positions(), self._values
        )

    def targets_of(
        self,
        solver: GoalSolver,
        aim: Aim,
        tool: str,
        values: Array,
        measured: bool = False,
        arrival: float = 0.0,
        only_listed: bool = False,
    ) -> JointTargets:
        """Return the joint targets for a goal of a tool that was received at arrival, from where it is now.

        values: all variables (m,) now. measured: measurements are expected. only_listed: a controller moves
        only its own joints. Raises InputError with the reason for which the goal is rejected. Solves without
        a lock.
        """
        with self._robot.lock:
            start, tracking, settings = self.start_of(tool), self.group.motion.tracking, self._settings
        self._check_goal(aim, tool)
        targets = solver.find(aim, tool, arrival, start, settings, measured)
        targets = self.choose(targets, tool, values, tracking)
        if only_listed and targets.joints is not None:
            self._check_listed(targets)
        return targets

    def _check_goal(self, aim: Aim, tool: str) -> None:
        """Raise InputError for a goal of a tool in another unit, or outside a workspace set by the user.

        Also for a path of a tool that shares joints.
        """
        if isinstance(aim, ToolPath) and len(self._model.tools) > 1:
            raise InputError(SHARED)
        arm = self._model.tools[tool].arm
        points = aim.points if isinstance(aim, ToolPath) else ()
        for point in (aim.position,) if isinstance(aim, Goal) else points:
            if doubt := arm.too_far(point):
                raise InputError(f'the goal is {doubt}')
        if isinstance(aim, Goal) and any(self._settings.workspace):
            outside = Workspace.of(arm, self._settings.workspace).outside(aim.position)
            if outside is not None:
                raise InputError(f'the goal is outside the workspace: {outside}')

    def choose(self, targets: JointTargets, tool: str, values: Array, tracking: bool = False) -> JointTargets:
        """Return targets if the motion to them is allowed, else those of another solution to which it is.

        values: all variables (m,) now. tracking: the arm follows a moving goal, and each of its steps is
        checked. If there is none, raises InputError with the position and the reason. Needs no lock.
        """
        if targets.joints is None or not self._limited:
            return targets
        if targets.trajectory is not None:  # there is no alternative to a path
            self._check_planned(targets.trajectory.positions_every(SPACING), values)
            return targets
        now = values[self._model.index]
        if tracking:
            end = filled(targets.joints, now)
            if self.check.is_clear(np.minimum(now, end), np.maximum(now, end), values):
                return targets
        try:
            self._check_motion_to(targets.joints, values)
            return targets
        except InputError as error:
            reason = error
        if targets.goal is not None and targets.solution is not None and targets.solution.solved:
            others = self._model.alternatives(tool, targets.goal, now)
            for q, solution in islice(others, ALTERNATIVES):
                try:
                    self._check_motion_to(q, values)
                except InputError:
                    continue
                message = f'solved with a farther solution (with the nearest one, {reason}); moving to the goal'
                return replace(targets, joints=q, solution=solution, message=message, level=Level.WARN)
        raise reason

    def _check_motion_to(self, joints: Array, values: Array) -> None:
        """Raise InputError if the arm must not move to joints (k,); NaN: a joint keeps its own."""
        end = values.copy()
        end[self._model.index] = filled(joints, values[self._model.index])
        if outside := self.check.ball_violation(end[None]):
            raise InputError(f'the joints cannot move there: {outside}')
        if not self._is_clear(joints, values):
            self._check_planned(positions_to_rest(self._preview(joints)), values)

    def _is_clear(self, joints: Array, values: Array) -> bool:
        """Whether the motion to joints (k,) is known to be allowed, without simulating it."""
        motion = self._preview(joints)
        begin = motion.position
        motion.step(SPACING)
        plan = motion.plan
        if math.isnan(motion.remaining) or not isinstance(plan, JointPlan):
            return False
        return self.check.is_clear(np.minimum(begin, plan.low), np.maximum(begin, plan.high), values)

    def _preview(self, joints: Array) -> JointMotion:
        with self._robot.lock:
            return self.group.preview(joints)

    def _check_planned(self, positions: Array, values: Array) -> None:
        if reason := self.check.planned_violation(positions, values):
            raise InputError(reason)

    @property
    def far_behind(self) -> bool:
        """Whether the arm is still far from its target."""
        return bool((np.abs(self.group.motion.target - self.group.motion.position) > FAR).any())

    def begin(self, targets: JointTargets, feedback: Feedback, fresh: Mapping[str, float] | None) -> None:
        """Begin the motion to targets. Joints off the arm start where they are measured, else at rest.

        fresh: recent measurements, None if joints need not be measured. Raises InputError for a joint that
        must be measured first, and for a path that does not start at the present position.
        """
        assert targets.joints is not None
        if targets.trajectory is not None:
            if self.paused:  # a path cannot be paused
                raise InputError(f'a path cannot begin while the arm waits: {self.paused}')
            self.tracked = None
            self.group.motion.begin_trajectory(targets.trajectory)
            return
        self._add(targets.others, feedback, fresh)
        for name, target in targets.others.items():
            self._others[name].go_to(np.array([target]))
        self.go_to(targets.joints)

    def go_to(self, joints: Array) -> None:
        """Move the joints of the arm to joints (k,); NaN: a joint keeps its target. All NaN: nothing changes."""
        if not np.isnan(joints).all():
            self.group.go_to(joints)
            self._goal = joints

    def track(self, target: MotionState | None, smoothing: float) -> str | None:
        """Follow a moving target with the next setpoint; None: move to the last target of go_to.

        Return why the arm must brake instead: nobody has checked the way to that last target.
        """
        if self.paused:
            return None
        ended = target is None and self.tracked is not None
        self.tracked = None if target is None else target.position
        if target is not None:
            self.group.motion.track(target, smoothing)
        if not ended:
            return None
        blocked = self._violation_ahead(self.group.preview(self._goal))
        if blocked is None:
            self.group.go_to(self._goal)
        return blocked

    def blocked(self) -> str | None:
        """Return why the arm must not continue; None if it may.

        Checked when another arm has changed its motion, and when a stream of goals is no longer followed.
        """
        motion = self.group.motion
        changed = self._robot.take_change(self)
        if motion.tracking or motion.braking or not motion.moving:
            return None  # a stream is checked at every step
        unchecked, self._unchecked = self._unchecked or changed, False
        if not unchecked:
            return None
        return self._violation_ahead(motion.twin())

    def _violation_ahead(self, motion: JointMotion) -> str | None:
        """Return why parts of the robot forbid a copy of the motion, to its end; else None."""
        if self._model.collision is None:
            return None
        return self.check.planned_violation(positions_to_rest(motion), self._values, CLEARANCE_EN_ROUTE)

    def brake(self, aside: bool = True, hard: bool = False) -> None:
        """Stop soon, and forget the goal. aside: joints off the arm, too. hard: as in JointMotion.stop."""
        self.tracked, self.paused = None, ''
        for group in self.groups if aside else [self.group]:
            group.stop(hard)

    def brake_aside(self, names: Collection[str]) -> None:
        """Stop joints off the arm as soon as the limits allow."""
        for name, group in self._others.items():
            if name in names:
                group.motion.stop()

    def pause_for_late_measurements(self, feedback: Feedback) -> str | None:
        """Brake and wait while measurements are so late that the command is too far ahead of them.

        Return why the arm must stop instead: a path cannot be resumed, or the motion would collide.
        """
        share = CATCH_UP if self.paused else 1.0
        late = self._following.late(share) if feedback.expected else None
        if late is not None and not self.paused:
            if self.group.motion.on_trajectory:
                return late
            self.paused = late
            for group in self.groups:
                group.motion.pause()
        elif late is None and self.paused:
            self.paused = ''
            for group in self.groups:
                group.motion.resume()
            if self.group.motion.moving:
                return self._violation_ahead(self.group.motion.twin())
        return None

    def guide(self) -> None:
        """Use the velocity limits of hand guiding."""
        limits = limits_of_motion(self._model, self._model.index, self._settings)
        self.group.limit(limits, HAND_GUIDING_SHARE)

    def go_to_measured(self, positions: Mapping[str, float]) -> None:
        """Move to measured positions."""
        self.group.go_to(np.array([positions.get(name, np.nan) for name in self.group.names]))

    def step(
        self,
        time: float,
        dt: float,
        feedback: Feedback,
        caught_up: float = 0.0,
        trajectories: TrajectoryStreamer | None = None,
    ) -> tuple[Setpoint | None, str | None]:
        """Advance by dt [s] to time [s]; return the setpoint, and why the arm must stop, else None.

        There is no setpoint if it, or the braking trajectory, is rejected. If another trajectory is rejected,
        the setpoint has none, and the controller stays on the previous one until the next setpoint brakes.
        The setpoint has all joints that were ever commanded; those of the whole robot, for display, if no
        joint is measured and no other node publishes joints. caught_up: time [s] before dt during which the
        plans advanced without setpoints. trajectories: for outputs that run plans.
        """
        last = [group.motion.position for group in self.groups]
        motion = self.group.motion
        tracked = motion.tracking
        for group in self.groups:
            group.step(dt, caught_up)
        self._unchecked |= tracked and self.tracked is not None and not (motion.tracking or motion.braking)
        self._following.commanded(time, motion.position)
        before, self._plans = self._plans, [group.motion.plan for group in self.groups]
        replanned = any(plan is not None and plan not in before for plan in self._plans)
        # Each step after a moving target was checked against the plans of the other arms, so they may wait.
        if (tracked and not motion.tracking) or (
            replanned and not (motion.tracking and 0.0 <= time - self._announced < ANNOUNCE_PERIOD)
        ):
            self._announced = time
            self._robot.announce_change(self)
        values, rates = self.values(feedback)
        self._values = values
        states = States.setpoint(dt + caught_up, values, rates, motion.moving)
        violation = self.check.violation(states)
        if violation is not None:
            for group, position in zip(self.groups, last, strict=True):
                group.reset(position)  # at the last setpoint: no later one was sent
            self._robot.announce_change(self)
            return None, f'a setpoint was not published: {violation.sentence}'
        self.check.accept(states)
        whole = feedback.alone and not feedback.expected
        setpoint = self._setpoint(time, values, rates, whole, replanned)
        if trajectories is None:
            return setpoint, None
        trajectories.note(setpoint, self._states(setpoint), dt + caught_up, tracked and caught_up > 0.0)
        return self._with_trajectory(setpoint, trajectories, feedback)

    def _with_trajectory(
        self, setpoint: Setpoint, trajectories: TrajectoryStreamer, feedback: Feedback
    ) -> tuple[Setpoint | None, str | None]:
        """Return a setpoint with the trajectory to send with it, if any; see step."""
        if not trajectories.due(setpoint, self.moving, self.braking):
            return setpoint, None
        if trajectories.diverged and not self._fall_back(trajectories.resume()):
            return None, 'trajectory dropped: the controller does not follow the motion any more'
        motions = [(group.names, group.motion) for group in self.groups]
        trajectory = trajectories.next(setpoint, motion_ahead(motions))
        violation = self.check.trajectory_violation(trajectory, self._values)
        if violation is not None:
            return None if self.braking else setpoint, f'trajectory dropped: {violation}'
        if setpoint.time >= trajectories.ends and self._far_from(trajectory, feedback):
            trajectories.skip()  # following_error() reports an arm that does not follow
            return setpoint, None
        trajectories.sent(trajectory)
        return replace(setpoint, trajectory=trajectory), None

    def _far_from(self, trajectory: JointTrajectory, feedback: Feedback) -> bool:
        """Whether the arm is not at the start of a trajectory for a controller at rest."""
        if not feedback.expected:
            return False
        starts = dict(zip(trajectory.names, trajectory.positions[0].tolist(), strict=True))
        begin = np.array([starts[name] for name in self.group.names])
        return self._following.farthest_from(self._measured(feedback), begin) is not None

    def _fall_back(self, states: Mapping[str, tuple[float, float, float]]) -> bool:
        """Continue from the state of a controller, by joint name; return whether all of its joints can."""
        if not self._continue_from(states):
            return False
        self.check.continue_from(self.group.motion.position)
        self._plans = [group.motion.plan for group in self.groups]
        return True

    def unreached_joint(self, feedback: Feedback, tolerance: Array) -> str | None:
        """Return which joints are farther than tolerance (k,) from their targets; None if none is."""
        measured, targets = self._measured(feedback), self.group.motion.position
        errors = self._following.distances(measured, targets)
        far = np.flatnonzero(np.nan_to_num(errors) > tolerance)
        if not far.size:
            return None
        joints = [
            f'joint {quoted(self.group.names[i])} is {errors[i]:.3g} {unit}'
            for i, unit in zip(far, np.where(self._model.tree.prismatic, 'm', 'rad')[far], strict=True)
        ]
        reached = np.where(np.isnan(measured), targets, measured)
        tools = [(tool.arm, tool.columns) for tool in self._model.tools.values()]
        off = max(
            float(np.linalg.norm(arm.fk(reached[columns])[0] - arm.fk(targets[columns])[0])) for arm, columns in tools
        )
        whose = 'its target' if far.size == 1 else 'their targets'
        return f'{" and ".join(joints)} away from {whose}, the tool {1e3 * off:.1f} mm off'

    def hanging(self, feedback: Feedback) -> str | None:
        """Return which joints are farther than their arrival tolerance from their targets, and what helps."""
        tolerance = self._model.arrival_tolerance(self._settings)
        found = self.unreached_joint(feedback, tolerance)
        return found and (
            f'{found}: raise the P gain of their servos, reduce the load, or, if that is near enough, '
            f'raise arrival_tolerance ({self._settings.arrival_tolerance:g} rad; '
            f'linear_arrival_tolerance: {self._settings.linear_arrival_tolerance:g} m)'
        )

    def inexact(self, feedback: Feedback) -> str | None:
        """Return which joints are not quite at their targets, None if all are."""
        prompt = np.where(self._model.tree.prismatic, *PROMPT)
        return self.unreached_joint(feedback, np.minimum(prompt, self._model.arrival_tolerance(self._settings)))

    def following_error(self, positions: Mapping[str, float], time: float, received: float, lag: float) -> str | None:
        """Return which joint exceeds its following error by positions measured at time [s]; None: none.

        lag: of the controller behind the commands, beyond the usual [s].
        """
        measured = np.array([positions.get(name, np.nan) for name in self.group.names])
        return self._following.error(measured, time, received, lag)
