# SPDX-License-Identifier: Apache-2.0
"""ArmController: decides what an arm may be commanded at any time. It does not use ROS.

Configuration and requests are here; arm_state.py has the states, timed_arm.py the ticks.

Two locks (see locks.py for their order): the lock of the robot is held during changes, the lock of its
outputs from the decision on a setpoint until it has been sent. Whatever ends the commands takes both, so that
no setpoint follows. Reports are delivered without either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from ik_node.checks import Array
from ik_node.control.controller.arm_state import HALTING
from ik_node.control.controller.timed_arm import TimedArm
from ik_node.control.joints.arm_joints import ArmJoints
from ik_node.control.motion.motion import JointMotion
from ik_node.control.robot.arm_model import JointModel
from ik_node.control.settings.arm import ArmSettings
from ik_node.control.state.report import Level
from ik_node.control.state.requests import Aim, Request
from ik_node.control.state.states import COMMANDING, READY, Event, State
from ik_node.control.targets.tree_targets import targets_of
from ik_node.errors import InputError
from ik_node.steady import steady

VOID = 'it was received before the arm was resumed, activated or released: send it again'


class ArmController(TimedArm):
    """One arm, from requests to setpoints. Thread-safe.

    report receives every Report and outputs receive every setpoint, in the thread that caused them. robot:
    shared with the other arms of the same robot. Times are seconds of one clock of the caller; it may jump.
    Only the arrivals of requests are on the clock steady.
    """

    # Configuration

    def configure(self, model: JointModel, settings: ArmSettings | Callable[[], ArmSettings]) -> bool:
        """Switch to the arm of model with settings; False while the previous arm is braking: call again.

        A callable returns settings that set_limits may change at the same time: it is called with the lock.
        Joints of the same name keep their positions. If measurements are expected, a different arm must be
        measured again. The last setpoint of the previous arm is sent before.
        """
        with self._robot.sending(), self._change():
            settings = settings() if callable(settings) else settings
            before = self._model
            if before is not None and model.moves_as(before):
                self._model, self._settings = model, settings
                self._targets.model = model
                self._limit()
                return True
            if before is not None and self._joints.moving:
                self._brake('the arm changes')
                return False
            places = {} if before is None else before.joints.named(self._joints.values(self._feedback)[0])
            self._model, self._settings = model, settings
            self._feedback.judge(model.joints)
            self._targets = targets_of(model)
            self._joints = self._robot.put(self, ArmJoints(model, settings, places, self._robot))
            self._epoch += 1
            self._tracker.end(self._state, 'the arm has changed')
            if not self._feedback.expected:
                self._joints.initialise(self._fresh)
            self._on(Event.CONFIGURE)
            self._begin()
            return True

    def set_limits(self, settings: ArmSettings) -> None:
        """Use the motion limits of settings, from the next setpoint on."""
        with self._lock:
            self._settings = settings
            if self._model is not None:
                self._limit()

    def activate(self) -> None:
        """Allow commands."""
        with self._change():
            if not self._active:
                self._void_earlier()
            self._active = True
            if self._state is State.INACTIVE and self._feedback.expected:
                self._forget_positions('the joints must be measured again')
            self._begin()

    def deactivate(self) -> None:
        """Stop within the limits, then command nothing."""
        with self._robot.sending(), self._change():
            self._active = False
            self._interruptions += 1
            if self._model is not None:
                self._brake('the node is deactivated', Level.OK)
                self._on(Event.STOP if self._joints.moving else Event.DEACTIVATE)

    def expect_measured(self, expected: bool, alone: bool = True) -> None:
        """Set whether the joints are measured, and whether no other node publishes joints of this robot.

        With expected measurements no command is sent before every joint of the arm has been measured.
        """
        with self._change():
            before = self._feedback.expect(expected, alone)
            if self._model is None or before == (expected, alone):
                return
            if expected and not before[0]:
                self._forget_positions('the joints must be measured first')
                self._on(Event.MEASUREMENTS_EXPECTED)
                if not self._active:
                    self._on(Event.DEACTIVATE)
            elif not expected:
                self._release()
            self._initialise_from_measurement()

    def measured_by(self, topic: str, offered: bool, rejected: str = '') -> None:
        """Set where measurements come from, for messages: see Feedback."""
        feedback = self._feedback
        if (topic, offered, rejected) != (feedback.topic, feedback.offered, feedback.rejected):
            with self._change():
                feedback.topic, feedback.offered, feedback.rejected = topic, offered, rejected

    # Requests

    def submit(self, *requests: Request) -> None:
        """Process requests, oldest first: reject invalid ones, pursue the newest valid one of each tool.

        An unexpected error rejects its request too, and is raised after the others.
        """
        newest: dict[str, tuple[Request, Aim, int]] = {}  # by tool, with the epoch in which it was accepted
        failed: list[Exception] = []
        for request in requests:
            with self._answered(request, failed):
                with self._lock:
                    snapshot, epoch = self.snapshot(request.tool), self._epoch
                    void = request.arrival <= self._void_before
                ready = snapshot is not None and snapshot.state in READY and not self._refused
                if snapshot is None or (request.moves and not ready):
                    raise InputError(self.condition()[1])
                if request.moves and void:
                    raise InputError(VOID)
                wanted = request.wanted(snapshot)
                if wanted is not None:
                    newest[request.tool] = request, wanted, epoch
        for request, aim, epoch in newest.values():
            with self._answered(request, failed):
                self._pursue(request, aim, epoch)
        if failed:
            raise failed[0]

    @contextmanager
    def _answered(self, request: Request, failed: list[Exception]) -> Iterator[None]:
        """Reject a request that raises, and deliver its reports; unexpected errors are added to failed."""
        try:
            yield
        except Exception as error:
            reason = str(error)
            if not isinstance(error, InputError):
                failed.append(error)
                reason = f'unexpected error, please report it: {error!r}'
            with self._lock:
                self._tracker.reject(request, reason, self._state)
        try:
            self._robot.deliver()
        except Exception as error:
            failed.append(error)

    def _pursue(self, request: Request, wanted: Aim, epoch: int) -> None:
        with self._lock:
            self._check_epoch(epoch)
            targets, settings, joints = self._targets, self._settings, self._joints
            values, start = joints.values(self._feedback)[0], joints.start_of(request.tool)
            follows, real = joints.arm.motion.follows, self._feedback.expected
        joints.motion_check.check_goal(wanted, request.tool)
        plan = targets.find(wanted, request.tool, request.arrival, start, settings, real)

        def preview(targets: Array) -> JointMotion:
            with self._lock:
                return joints.arm.preview(targets)

        plan = joints.motion_check.choose(plan, request.tool, values, preview, follows)
        with self._lock:
            self._check_epoch(epoch)
            if plan.path is not None and settings is not self._settings:
                raise InputError('the limits changed while the path was planned: send the goal again')
            if plan.joints is not None:
                if self._outputs.only_listed:
                    self._joints.check_listed(plan)
                fresh = self._fresh if self._feedback.expected else None
                self._joints.pursue(plan, self._feedback, fresh)
                self._goals += not bool(np.isnan(plan.joints).all())  # not of a gripper alone
                self._on(Event.GOAL)
            try:
                targets.accept(plan, request)
                target = self._joints.arm.target
                self._tracker.begin(plan, request, self._state, self._ticked, targets.model, target)
            except Exception:  # the request is about to be rejected, so the arm must not move for it
                self._brake('an unexpected error')
                raise

    def _check_epoch(self, epoch: int) -> None:
        """Raise InputError unless the arm has accepted requests without interruption since an epoch."""
        if self._refused:
            raise InputError(self._refused)
        if self._state not in READY:
            raise InputError(f'the state of the arm has changed: {self.condition()[1]}')
        if epoch != self._epoch:
            raise InputError('the arm has been stopped or changed since the request')

    def steer(
        self,
        joints: Array,
        time: float,
        rates: tuple[Array, Array] | None = None,
        since: int | None = None,
    ) -> bool:
        """Continue to joints (arm.n,) as Targets.steer does, at time [s]; False if the arm is not ready.

        since: Snapshot.interruptions when joints were determined: nothing moves if there was one after that.
        """
        with self._change():
            if not self.ready or since not in (None, self._interruptions):
                return False
            self._tracker.end(self._state, 'superseded by a teleoperation command')
            self._targets.steer(joints, time, rates)
            self._joints.go_to(joints)
            self._on(Event.STEER)
            return True

    def end_teleoperation(self) -> None:
        """Come to rest at the end of teleoperation: at its last target if that is close, else at once."""
        with self._change():
            if self._state is State.TELEOPERATED and self._joints.far_behind:
                self._brake('teleoperation ended')

    def tell(
        self,
        level: Level,
        message: str,
        word: str = '',
        during: State | None = None,
        logged: bool = True,
    ) -> bool:
        """Report a sentence that belongs to no request, after all that has been reported.

        word: names it as data, by default the state. during: the only state in which it holds; in another
        one nothing is reported, and False returned. logged: as in Report.
        """
        with self._change():
            if during not in (None, self._state):
                return False
            self._reports.state(word or self._state.value, self._state, (level, message), logged)
            return True

    def stop(self) -> None:
        """Stop within the limits and hold: goals are rejected until resume.

        No setpoint of the previous motion is sent after this returns.
        """
        with self._robot.sending(), self._change():
            self._stopped = True
            self._interruptions += 1
            if self._model is not None:
                self._brake('stopped')
                self._on(Event.STOP)

    def resume(self) -> None:
        """Accept goals again after a stop or a fault. After a fault the arm must be measured again.

        Raises InputError while joints move, are not measured any more or where they cannot be, or while a
        controller moves.
        """
        with self._change():
            if self._model is None or self._joints.moving or self._state is State.STOPPING:
                raise InputError(f'cannot resume: {self.condition()[1]}')
            if self._barred or self._refused:
                raise InputError(f'cannot resume: {self._barred or self._refused}')
            if self._outputs.halting(self._ticked):
                raise InputError(f'cannot resume: {HALTING}')
            silent = self._feedback.silent(self._joints.commanded, self._settings.measured_timeout)
            if silent or (self._feedback.expected and (silent := self._feedback.doubt(self._joints.needed))):
                raise InputError(f'cannot resume: {silent}')
            self._resumed = steady()
            self._stopped = False
            if self._state is State.FAULTED and self._feedback.expected:
                self._forget_positions('the joints must be measured again')
            self._on(Event.RESUME)
            self._initialise_from_measurement()

    def bar(self, reason: str) -> None:
        """Keep the arm from becoming ready, or stop it until resume; '' allows it again."""
        with self._robot.sending(), self._change():
            if reason == self._barred:
                return
            self._barred = reason
            if not reason:
                self._initialise_from_measurement()
            elif self._state in COMMANDING:
                self._fault(reason)

    def refuse(self, reason: str) -> None:
        """Reject goals because the driver takes no commands; '' accepts them again. A moving arm faults."""
        with self._robot.sending(), self._change():
            if reason == self._refused:
                return
            self._refused = reason
            if reason and self._state in COMMANDING - {State.HOLDING, State.STOPPED}:
                self._fault(reason)
            elif self._state is State.HOLDING:
                self._reports.state('waiting' if reason else 'ready', self._state, self.condition())

    def guide(self, begin: bool, time: float) -> None:
        """Begin or end hand guiding: commands then follow the measured positions, slowly.

        It ends after hand_guiding_timeout [s] at the latest. Raises InputError if it cannot begin, or has not
        begun.
        """
        with self._change():
            if not begin:
                if self._state is not State.HAND_GUIDED:
                    raise InputError(f'the arm is not guided by hand; state: {self._state.value}')
                self._release()
                return
            if self._state is not State.HOLDING or not self._feedback.expected:
                raise InputError(f'hand guiding needs a measured arm at rest; state: {self._state.value}')
            if self._refused:
                raise InputError(self._refused)
            self._epoch += 1
            self._guided_until = time + self._settings.hand_guiding_timeout
            self._on(Event.GUIDE)
