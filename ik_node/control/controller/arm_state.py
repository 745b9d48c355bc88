# SPDX-License-Identifier: Apache-2.0
"""ArmState: the state of an arm, and the effects of each change of state.

Every change is a row of states.TRANSITIONS.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from ik_node.control.controller.goal_tracker import GoalTracker
from ik_node.control.controller.report_queue import ReportQueue
from ik_node.control.joints.arm_joints import ArmJoints
from ik_node.control.joints.feedback import Feedback
from ik_node.control.joints.shared_robot import SharedRobot
from ik_node.control.outputs.outputs import Output, Outputs
from ik_node.control.robot.arm_model import JointModel
from ik_node.control.settings.arm import ArmSettings
from ik_node.control.state.report import Level, Report, condition
from ik_node.control.state.snapshot import Snapshot
from ik_node.control.state.states import READY, REJECTING, TRANSITIONS, Event, State
from ik_node.control.targets.targets import Targets
from ik_node.steady import steady

ANNOUNCED = frozenset({State.STOPPED, State.FAULTED, State.HAND_GUIDED})  # reported on entry
HALTING = 'the joint controller is still coming to rest; try again in a second'
RESUMING = 1.0  # [s] after a resume in which requests wait for the measured joints
NO_MODEL = 'no robot model yet: waiting for robot_description'


class ArmState:
    """The state of an arm, changed under the lock of its robot. Reports are delivered without a lock."""

    def __init__(
        self,
        report: Callable[[Report], None],
        outputs: Sequence[Output] = (),
        robot: SharedRobot | None = None,
    ) -> None:
        self._robot = SharedRobot() if robot is None else robot
        self._lock = self._robot.lock
        self._reports, self._outputs = ReportQueue(report), Outputs(outputs)
        self._state = State.UNCONFIGURED
        self._active = False  # commands are allowed
        self._stopped = False  # a stop was requested, and no resume since
        self._feedback = Feedback()
        self._model: JointModel | None = None
        self._joints: ArmJoints  # of the model
        self._targets: Targets
        self._settings: ArmSettings
        self._interruptions = 0  # as in Snapshot
        self._goals = 0  # that moved joints of the arm
        self._epoch = 0  # a solution for a request of another epoch is void
        self._void_before = -math.inf  # so is a request that arrived before this time (steady)
        self._tracker = GoalTracker(self._reports)
        self._fault_reason = ''
        self._barred = ''  # why the arm must not become ready, besides what it waits for
        self._refused = ''  # why its driver takes no commands
        self._resumed = -math.inf  # when the arm was last resumed (steady)
        self._ended = False  # no more setpoints are sent
        self._robot.join(self._reports.deliver)
        self._ticked, self._guided_until = -math.inf, 0.0  # times: of the last tick, and of hand guiding
        self._unsettled = math.inf  # since when the controller has not come to rest after a stop [s]

    @property
    def state(self) -> State:
        """The state of the arm."""
        return self._state

    @property
    def ready(self) -> bool:
        """Whether goals and steps of a teleoperation are accepted."""
        return self._state in READY and not self._refused

    @property
    def needed(self) -> tuple[str, ...]:
        """The joints that a driver must measure and move; none before the description is known."""
        with self._lock:
            return () if self._model is None else self._joints.needed

    @property
    def interruptions(self) -> int:
        """How often the arm was interrupted, as in Snapshot."""
        return self._interruptions

    @property
    def resuming(self) -> bool:
        """Whether the arm was resumed a moment ago and is about to accept goals, once it is measured."""
        return self._state is State.WAITING and steady() < self._resumed + RESUMING

    @property
    def resting(self) -> bool:
        """Whether nothing is commanded, and a controller that was halted is at rest."""
        idle = self._state in (State.UNCONFIGURED, State.INACTIVE)
        return idle and not self._outputs.halting(self._ticked)

    def snapshot(self, tool: str = '') -> Snapshot | None:
        """Return the present state of the arm of a tool; None before the first one."""
        with self._lock:
            if self._model is None:
                return None
            joints, (arm, columns) = self._joints, self._model.of(tool)
            remaining = joints.arm.motion.remaining
            return Snapshot(
                arm,
                self._state,
                joints.values(self._feedback)[0],
                joints.arm.target[columns],
                remaining,
                self._tracker.share(self._ticked, remaining),
                self._feedback.age(joints.arm.names),
                None if joints.chased is None else joints.chased[columns],
                self._interruptions,
                self._goals,
            )

    def condition(self) -> tuple[Level, str]:
        """Return the condition of the arm as a sentence: what it waits for, or why it does not move."""
        with self._lock:
            if self._model is None:
                return Level.WARN, NO_MODEL
            if self._state is State.WAITING and self._barred:
                return Level.WARN, self._barred
            if self._refused and self._state in READY | {State.WAITING}:
                return Level.WARN, self._refused
            if self._joints.waiting:
                return Level.WARN, f'{self._joints.waiting}; the arm waits for them'
            if self._state is State.WAITING and self._outputs.halting(self._ticked):
                return Level.WARN, HALTING
            if self._state is State.WAITING and (doubt := self._feedback.doubt(self._joints.needed)):
                return Level.WARN, f'{doubt}; no command is sent until it is measured believably'
            missing = self._joints.without_position
            absent = self._feedback.missing(missing) if self._state is State.WAITING else ''
            return condition(self._state, self._fault_reason, missing, absent, self._model.describe)

    # Changes of state

    def _begin(self) -> None:
        """Start if commands are allowed; an earlier stop remains in force."""
        if self._active:
            self._on(Event.ACTIVATE)
        if self._stopped:
            self._on(Event.STOP)
        self._initialise_from_measurement()

    def _initialise_from_measurement(self) -> None:
        """Leave WAITING once all joint positions are known and a halted controller is at rest."""
        if self._state is not State.WAITING or self._barred or self._outputs.halting(self._ticked):
            return
        if not self._feedback.expected:
            self._joints.initialise(self._fresh)
        elif self._joints.without_position:  # else the arm was only stopped, and its command does not change
            self._joints.initialise_from_measurement(self._fresh)
        if not self._joints.without_position:
            self._on(Event.INITIALISED)

    @property
    def _fresh(self) -> dict[str, float]:
        """Positions by joint that were measured recently."""
        return self._feedback.fresh(self._settings.measured_timeout)

    def _forget_positions(self, reason: str) -> None:
        """Forget the joint positions: only later measurements are used."""
        self._epoch += 1
        self._tracker.end(self._state, reason)
        self._joints.forget_positions()
        self._targets.restart()
        self._feedback.forget()

    def _brake(self, reason: str, level: Level = Level.WARN) -> None:
        self._epoch += 1
        self._tracker.end(self._state, reason, level)
        self._joints.brake()
        self._targets.restart()

    def _void_earlier(self) -> None:
        """Reject all requests that have arrived until now, whenever their turn comes."""
        self._void_before = steady()

    def _release(self) -> None:
        if self._state is State.HAND_GUIDED and self._model is not None:
            self._joints.brake()
            self._on(Event.RELEASE)

    def _limit(self) -> None:
        """Apply the limits of the settings, and the lower ones while the arm is hand-guided."""
        if self._model is not None:
            self._joints.take(self._model, self._settings)
            if self._state is State.HAND_GUIDED:
                self._joints.guide()

    def _fault(self, reason: str, void: bool = False) -> None:
        if void:  # no motion from the commanded position is allowed
            self._forget_positions(reason)
        self._fault_reason = reason
        self._interruptions += 1
        self._brake(reason)
        self._on(Event.FAULT)

    def _on(self, event: Event) -> None:
        """Change the state by the table, and report changes that matter to users."""
        before = self._state
        self._state = TRANSITIONS[before].get(event, before)
        if before in REJECTING and self._state is not before:
            self._void_earlier()
        guided = (before is State.HAND_GUIDED) is not (self._state is State.HAND_GUIDED)
        if guided:
            self._limit()
        begins = before is State.WAITING and self._state is State.HOLDING
        self._interruptions += guided or begins
        if begins or (self._state in ANNOUNCED and self._state is not before):
            self._reports.state('ready' if begins else self._state.value, self._state, self.condition())

    @contextmanager
    def _change(self) -> Iterator[None]:
        """Hold the lock; deliver the reports after its release."""
        try:
            with self._lock:
                yield
                self._reports.waiting(self._state, self.condition)
        finally:
            self._robot.deliver()
