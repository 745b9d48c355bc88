# SPDX-License-Identifier: Apache-2.0
"""ArmJoints: the commanded joints of a robot: those of the arm, and others that goals or settings name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ik_node.checks import Array
from ik_node.control.checks.arm_gates import ArmGates
from ik_node.control.checks.motion_check import CLEARANCE_EN_ROUTE, MotionCheck, places_of
from ik_node.control.checks.trajectory_gate import refuse_trajectory
from ik_node.control.joints.feedback import Feedback
from ik_node.control.joints.following import Following
from ik_node.control.joints.joint_group import JointGroup
from ik_node.control.joints.shared_robot import SharedRobot
from ik_node.control.motion.goal_stream import MotionState
from ik_node.control.motion.motion import JointMotion
from ik_node.control.motion.motion_ahead import motion_ahead
from ik_node.control.motion.tool_pace import ToolPace
from ik_node.control.motion.trajectory import Trajectory
from ik_node.control.outputs.joint_trajectory import JointTrajectory
from ik_node.control.outputs.setpoint import Setpoint
from ik_node.control.outputs.trajectory_streamer import TrajectoryStreamer
from ik_node.control.robot.arm_model import JointModel
from ik_node.control.robot.settings import ArmSettings
from ik_node.control.robot.workspace import Workspace
from ik_node.errors import InputError, listed

HAND_GUIDING_SHARE = 0.25  # of the velocity limits
CATCH_UP = 0.5  # share of the tolerance to which the measurements catch up before the arm goes on
FAR = 0.1  # [rad or m]


class ArmJoints:
    """The arm moves as one group; other joints stay where they are until a goal names them.

    arm: the group of the arm. without_position: joints that have to be commanded and whose position is not
    known: those of the arm, and those that share its controller. way: checks the motions of the arm.
    waiting: what the arm waits for on its way, empty if for nothing.
    """

    def __init__(
        self,
        model: JointModel,
        settings: ArmSettings,
        places: Mapping[str, float],
        robot: SharedRobot,
    ) -> None:
        """places: positions by joint name; other joints of the arm are at home, the rest at their rest."""
        self._model, self._settings, self._robot = model, settings, robot
        names = model.joint_names
        home = dict(zip(names, model.home.tolist(), strict=True))
        known = {**model.joints.named(model.joints.rest), **home}
        known.update({name: place for name, place in places.items() if name in known})
        self.arm = JointGroup(
            names,
            model.limits_of_motion(model.index, settings),
            np.array([known[n] for n in names]),
            model.blocks,
        )
        # Joints that the controller moves besides the arm, a gripper for instance; foreign: not of the robot.
        self._listed = settings.listed_joints(names)
        self._held = tuple(name for name in self._listed if name not in names)
        self._foreign: dict[str, float] = {}  # positions at which they are held
        self.without_position: tuple[str, ...] = (*names, *self._held)
        self._others: dict[str, JointGroup] = {}  # by variable: joints off the arm that goals have named
        self._resting = {name: known[name] for name in model.joints.variables if name not in names}
        self._following = Following(names, model.continuous, model.prismatic)
        self.waiting = ''
        self._goal: Mapping[str, float] = {}  # the last targets
        self.chased: Array | None = None  # where the moving target is that the arm follows
        self._plans: list[object] = []  # of all groups, at the last sample
        self._rows: tuple[object, tuple[NDArray[np.bool_], tuple[str, ...]]] | None = None  # see _published
        self._unchecked = False  # a moving goal is no longer followed: its rest was not checked
        self._values = model.joints.filled(known)  # of all variables, in the last sample
        self._gates = ArmGates(model)
        self._limit_tool()

    def take(self, model: JointModel, settings: ArmSettings) -> None:
        """Change to another model of the same joints, and its limits."""
        self._model, self._settings = model, settings
        for group in self.groups:
            group.limit(self._model.limits_of_motion(model.joints.indices(group.names), settings))
        self.arm.motion.set_blocks(model.blocks)
        self._gates.take(model)
        self._limit_tool()

    def _limit_tool(self) -> None:
        tools, rates = self._model.tools(), self._settings.tool_rates()
        workspaces = [Workspace.of(tool.arm, self._settings.workspace) for tool, _ in tools]
        self._gates.set_limits(workspaces, *rates)
        self.arm.motion.set_pace(ToolPace([(tool.arm, columns) for tool, columns in tools], *rates))
        self.arm.motion.keeps = None if self._gates.cones is None else self._gates.cones.keeps
        self.way = MotionCheck(self._model, workspaces, self._ahead)
        checked = any(workspace.given for workspace in workspaces) or self._model.collision is not None
        self.arm.motion.guard = self._may_pass if checked else None

    def _ahead(self, spacing: float) -> Mapping[str, Array]:
        """Return where the other arms of the robot will be; see SharedRobot."""
        return self._robot.ahead(self, spacing)

    def _may_pass(self, low: Array, high: Array, places: Callable[[], Array]) -> bool:
        """Whether way allows a motion of the arm; other joints count as they were last. See JointMotion."""
        return self.way.is_clear(low, high, self._values) or not self.way.refusal(places(), self._values)

    @property
    def groups(self) -> list[JointGroup]:
        """The commanded joints: those of the arm, and others that goals have named."""
        return [self.arm, *self._others.values()]

    @property
    def commanded(self) -> tuple[str, ...]:
        """The variables that are commanded: those of the arm, and others that goals have named."""
        return (*self.arm.names, *self._others)

    @property
    def moving(self) -> bool:
        """Whether any joint is moving."""
        return any(group.motion.moving for group in self.groups)

    @property
    def braking(self) -> bool:
        """Whether no joint has a target: whatever moves comes to rest."""
        return all(group.motion.braking or not group.motion.moving for group in self.groups)

    @property
    def far_behind(self) -> bool:
        """Whether the arm is still far from its target."""
        return bool((np.abs(self.arm.target - self.arm.motion.position) > FAR).any())

    def values(self, feedback: Feedback) -> tuple[Array, Array]:
        """Return position and velocity (n,) of all variables: commanded, else measured, else at rest."""
        places = dict.fromkeys(self._model.joints.variables, (0.0, 0.0))
        for name, rest in self._resting.items():
            measured = feedback.position(name)
            places[name] = (rest if measured is None else measured, 0.0)
        for group, commanded in self._robot.neighbours(self):
            for name, place, rate in group.states():
                measured = feedback.position(name) if feedback.expected and not commanded else None
                if name in places:
                    places[name] = (place, rate) if measured is None else (measured, 0.0)
        for group in self.groups:
            places.update({name: (place, rate) for name, place, rate in group.states()})
        values = np.array(list(places.values())).reshape(-1, 2)
        return values[:, 0], values[:, 1]

    # Positions

    def place(self, positions: Mapping[str, float]) -> None:
        """Set the arm at rest at measured positions; joints that are not named become without_position."""
        self.chased, self.waiting = None, ''
        known = {name: positions[name] for name in self.arm.names if name in positions}
        if known:
            self.arm.place(known)
        self._gates.restart()
        self.without_position = tuple(name for name in self.arm.names if name not in known)
        self._hold(positions)

    def initialise(self, positions: Mapping[str, float]) -> None:
        """Assume the joints of the arm at their last command or at home, others where they are measured."""
        self.without_position = ()
        self._hold(positions)

    def _hold(self, positions: Mapping[str, float]) -> None:
        """Hold the joints that share the controller of the arm; those that are not named have no position."""
        for name in self._held:
            if name in self._others or name in self._foreign:
                continue
            if name not in positions:
                self.without_position += (name,)
            elif name in self._resting:
                self._others[name] = self._group(name, positions[name])
            else:
                self._foreign[name] = positions[name]

    def _group(self, name: str, position: float) -> JointGroup:
        limits = self._model.limits_of_motion(self._model.joints.indices([name]), self._settings)
        return JointGroup((name,), limits, np.array([position]))

    def unplace(self) -> None:
        """Forget the positions of the joints."""
        self.chased, self.waiting = None, ''
        self.without_position = (*self.arm.names, *self._held)
        self.arm.place({})
        self._others.clear()
        self._foreign.clear()
        self._gates.restart()
        self._following.restart()

    # Motion

    def go_to(
        self,
        targets: Mapping[str, float],
        feedback: Feedback,
        fresh: Mapping[str, float] | None,
        path: Trajectory | None = None,
    ) -> None:
        """Move to targets by name. Joints off the arm start at their measured position, else at rest.

        fresh: recent measurements, None if joints need not be measured. path: how the arm gets there. Raises
        InputError for a joint that has to be measured first, and for a path that does not begin where the arm
        rests.
        """
        if path is not None:
            self.chased = None
            self.arm.motion.follow_path(path)
            return
        new = [name for name in targets if name in self._resting and name not in self._others]
        self._robot.check_free(self, new)
        if self._model.collision is not None and feedback.expected:
            self._robot.check_known(self, feedback.fresh(self._settings.measured_timeout))
        missing = [name for name in new if fresh is not None and name not in fresh]
        if missing:
            raise InputError(f'not measured recently: {listed(missing)}')
        for name in new:
            found = feedback.position(name) if fresh is None else fresh[name]
            self._others[name] = self._group(name, self._resting[name] if found is None else found)
        for group in self.groups:
            if not targets.keys().isdisjoint(group.names):
                group.go_to(targets)
        self._goal = targets

    def start_of(self, tool: str) -> Array:
        """Return where a goal of a tool begins (k,): the joints that move other tools are at their target."""
        motion, alone = self.arm.motion, self._model.alone(tool)
        q = self.arm.target.copy()
        q[alone] = motion.position[alone]
        return q

    def preview(self, lock: AbstractContextManager[object], targets: Mapping[str, float]) -> JointMotion:
        """Return a copy of the motion of the arm that goes to targets by name, taken under lock."""
        with lock:
            return self.arm.preview(targets)

    def chase(self, target: MotionState | None, smoothing: float) -> None:
        """Follow a moving target with the next sample; None: it rests at the last target of go_to."""
        if self.waiting:
            return
        if target is not None:
            self.arm.motion.follow(target, smoothing)
        elif self.chased is not None:
            self.arm.go_to(self._goal)
        self.chased = None if target is None else target.position

    def blocked(self) -> str | None:
        """Return why the arm must not go on; None if it may.

        Looked for when another arm has changed its motion, and when a moving goal is no longer followed.
        """
        motion = self.arm.motion
        told = self._robot.told(self)
        if self._model.collision is None or motion.follows or motion.braking or not motion.moving:
            return None  # what follows is checked at every step
        unchecked, self._unchecked = self._unchecked or told, False
        if not unchecked:
            return None
        return self.way.refusal(places_of(motion.twin()), self._values, CLEARANCE_EN_ROUTE)

    def brake(self) -> None:
        """Stop as soon as the limits allow, and forget the goal."""
        self.chased, self.waiting = None, ''
        for group in self.groups:
            group.stop()

    def keep_back(self, feedback: Feedback) -> str | None:
        """Wait at rest while measurements are so late that the command is too far ahead of them.

        Return why the arm must stop instead: a path cannot be taken up again, or the way there is not free.
        """
        share = CATCH_UP if self.waiting else 1.0
        late = self._following.late(share * self._tolerance, self._delay) if feedback.expected else None
        if late is not None and not self.waiting:
            if self.arm.motion.on_path:
                return late
            self.waiting = late
            for group in self.groups:
                group.wait()
        elif late is None and self.waiting:
            self.waiting = ''
            for group in self.groups:
                group.go_on()
            if self._model.collision is not None and self.arm.motion.moving:
                return self.way.refusal(places_of(self.arm.motion.twin()), self._values, CLEARANCE_EN_ROUTE)
        return None

    def guide(self) -> None:
        """Use the velocity limits of hand guiding."""
        limits = self._model.limits_of_motion(self._model.index, self._settings)
        self.arm.limit(limits, HAND_GUIDING_SHARE)

    def follow(self, positions: Mapping[str, float]) -> None:
        """Move to measured positions."""
        self.arm.go_to({name: value for name, value in positions.items() if name in self.arm.names})

    def step(
        self,
        time: float,
        dt: float,
        feedback: Feedback,
        caught_up: float = 0.0,
        trajectories: TrajectoryStreamer | None = None,
    ) -> tuple[Setpoint | None, str | None]:
        """Advance by dt [s] to time [s]; return the sample, and why the arm must stop, else None.

        There is no sample if that, or the trajectory that brakes, must not go out; if another trajectory must
        not, the sample is without it: the arm can brake, on the previous one until the next sample.
        The sample has the joints that were ever commanded; all of them, to display the robot, if no joint is
        measured and nobody else publishes joints. caught_up: time [s] before that during which the plans went
        on without samples. trajectories: for outputs that run plans.
        """
        refusal: str | None = None
        last = {name: place for group in self.groups for name, place, _ in group.states()}
        motion = self.arm.motion
        followed = motion.follows
        for group in self.groups:
            refusal = group.step(dt, caught_up) or refusal
        self._unchecked |= followed and not motion.follows and not motion.braking
        self._following.commanded(time, motion.position)
        before, self._plans = self._plans, [group.motion.plan for group in self.groups]
        replanned = any(plan is not None and plan not in before for plan in self._plans)
        if replanned:
            self._robot.tell(self)
        joints, (values, rates) = self._model.joints, self.values(feedback)
        self._values = values
        refusal = refusal or self._gates.refuse(motion, dt + caught_up, values)
        positions, velocities = joints.expand(values, rates)
        rows, names = self._published(feedback.alone and not feedback.expected)
        held = np.array(list(self._foreign.values()))
        if refusal is not None:
            for group in self.groups:
                group.place(last)  # where the last sample was: the arm has not been commanded to go on
            self._robot.tell(self)
            return None, f'a sample was not published: {refusal}'
        sample = Setpoint(
            time,
            (*names, *self._foreign),
            np.append(positions[rows], held),
            np.append(velocities[rows], np.zeros(held.size)),
            self._listed,
            replanned,
        )
        if trajectories is None:
            return sample, None
        trajectories.note(sample, self._states(sample), dt + caught_up)
        return self._with_trajectory(sample, trajectories, feedback)

    def _states(self, sample: Setpoint) -> Array:
        """Return position, velocity and acceleration (3, k) of the joints of the controller."""
        known: dict[str, tuple[float, ...]] = {}
        for group in self.groups:
            motion = group.motion
            rows = np.array([motion.position, motion.velocity, motion.acceleration])
            known.update(zip(group.names, map(tuple, rows.T.tolist()), strict=True))
        return np.array(
            [known.get(n, (p, 0.0, 0.0)) for n, p in zip(sample.controller, sample.listed(), strict=True)]
        ).T

    def _with_trajectory(
        self, sample: Setpoint, trajectories: TrajectoryStreamer, feedback: Feedback
    ) -> tuple[Setpoint | None, str | None]:
        """Return a sample with the trajectory that has to be sent with it, if any; see step."""
        if not trajectories.due(sample, self.moving, self.braking):
            return sample, None
        if trajectories.astray and not self._fall_back(trajectories.resume()):
            return None, 'trajectory dropped: the controller has left the motion'
        motions = [(group.names, group.motion) for group in self.groups]
        trajectory = trajectories.next(sample, motion_ahead(motions))
        checks = self._gates.checks(self._values, self._ahead)
        refusal = refuse_trajectory(trajectory, self.groups, checks)
        if refusal is not None:
            return None if self.braking else sample, f'trajectory dropped: {refusal}'
        if sample.time >= trajectories.ends and self._elsewhere(trajectory, feedback):
            trajectories.withhold()  # following_error() says so if the arm stays there
            return sample, None
        trajectories.sent(trajectory)
        return replace(sample, trajectory=trajectory), None

    def _elsewhere(self, trajectory: JointTrajectory, feedback: Feedback) -> bool:
        """Whether the arm is not where a trajectory of a controller at rest begins."""
        if not feedback.expected:
            return False
        starts = dict(zip(trajectory.names, trajectory.positions[0].tolist(), strict=True))
        begin = np.array([starts[name] for name in self.arm.names])
        measured = np.array([feedback.position(name) for name in self.arm.names], dtype=np.float64)
        return self._following.elsewhere(measured, begin, self._tolerance) is not None

    def _fall_back(self, states: Mapping[str, tuple[float, float, float]]) -> bool:
        """Go on from where a controller is, by joint name; return whether all of its joints do."""
        sent = [group for group in self.groups if states.keys() >= set(group.names)]
        if not sent or not all(group.go_on_from(states) for group in sent):
            return False
        self._gates.go_on_from(self.arm.motion.position)
        self._plans = [group.motion.plan for group in self.groups]
        return True

    def _published(self, whole: bool) -> tuple[NDArray[np.bool_], tuple[str, ...]]:
        """Return which joints of the robot are in the samples, and their names: those that it commands.

        whole: those of no arm too, if this is the first one.
        """
        others = frozenset(self._robot.commanded(self)) if whole and self._robot.is_first(self) else None
        key = (self._model, self.commanded, others)
        if self._rows is None or key != self._rows[0]:
            own = self._model.driven_by(self.commanded)
            rows = own if others is None else ~self._model.driven_by(tuple(others))
            pairs = zip(self._model.joints.names, rows, strict=True)
            self._rows = key, (rows, tuple(name for name, row in pairs if row))
        return self._rows[1]

    def check_listed(self, targets: Iterable[str]) -> None:
        """Raise InputError unless the controller moves all joints of targets."""
        missing = [name for name in targets if name not in self._listed]
        if missing:
            raise InputError(
                f'the controller does not move {listed(missing)}; it moves {listed(self._listed)}, as '
                'parameter controller_joints says'
            )

    def lacking(self, feedback: Feedback) -> str | None:
        """Return which joint of the arm is not yet where it was commanded to, None if all are."""
        measured = np.array([feedback.position(name) for name in self.arm.names], dtype=np.float64)
        tolerance = self._model.arrival_tolerance(self._settings)
        error = self._following.elsewhere(measured, self.arm.motion.position, tolerance)
        return None if error is None else f'{error} its target'

    def within(self, positions: Mapping[str, float]) -> dict[str, float]:
        """Return positions of the joints of the arm by name, those outside the limits at the limit."""
        bounds = zip(self.arm.names, self.arm.motion.lower, self.arm.motion.upper, strict=True)
        return {
            name: float(np.clip(positions[name], low, high))
            for name, low, high in bounds
            if name in positions
        }

    def following_error(self, positions: Mapping[str, float], time: float, received: float) -> str | None:
        """Return which joint exceeds its following error by positions measured at time [s]; None: none."""
        measured = np.array([positions.get(name, np.nan) for name in self.arm.names])
        return self._following.error(measured, time, received, self._tolerance, self._delay)

    @property
    def _tolerance(self) -> Array:
        return self._model.following_tolerance(self._settings)

    @property
    def _delay(self) -> float:
        return self._settings.following_delay
