# SPDX-License-Identifier: Apache-2.0
"""ArmController: decides what an arm may be commanded at any time. It uses neither ROS nor a clock.

Every change of state is a row of states.TRANSITIONS. Measured positions change commanded ones only while
the arm waits for measurements and while it is hand-guided. gate.py checks every sample.

Two locks (see locks.py for their order): that of the robot is held while something changes, that of its
outputs from the decision on a sample until it is out. What ends the commands takes both, so that no sample
follows it. Reports are delivered under neither.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from ik_node.checks import Array
from ik_node.control.controller.goal_tracker import GoalTracker
from ik_node.control.controller.report_queue import ReportQueue
from ik_node.control.joints.arm_joints import ArmJoints
from ik_node.control.joints.feedback import Feedback
from ik_node.control.joints.shared_robot import SharedRobot
from ik_node.control.outputs.outputs import Output, Outputs
from ik_node.control.outputs.setpoint import Setpoint
from ik_node.control.robot.arm_model import JointModel
from ik_node.control.robot.settings import ArmSettings
from ik_node.control.state.report import Level, Report, condition
from ik_node.control.state.requests import Aim, Request
from ik_node.control.state.snapshot import Snapshot
from ik_node.control.state.states import COMMANDING, ON_ITS_WAY, READY, TRANSITIONS, Event, State
from ik_node.control.targets.targets import Targets
from ik_node.control.targets.tree_targets import targets_of
from ik_node.errors import InputError

MOST_PERIODS = 2.0  # of motion per sample: after a stall the arm continues, it does not jump to catch up
ANNOUNCED = frozenset({State.STOPPED, State.FAULTED, State.HAND_GUIDED})  # reported when they begin
NO_MODEL = 'no robot model yet: waiting for robot_description'


class ArmController:
    """One arm, from requests to samples; safe to call from several threads.

    report gets every Report and outputs get every sample, in the thread that caused it. robot: shared with
    the other arms of the same robot. Times are seconds of one clock of the caller; it may jump.
    """

    def __init__(
        self,
        report: Callable[[Report], None],
        outputs: Sequence[Output] = (),
        robot: SharedRobot | None = None,
    ) -> None:
        self._robot = SharedRobot() if robot is None else robot
        self._lock = self._robot.lock
        self._news, self._outputs = ReportQueue(report), Outputs(outputs)
        self._state = State.UNCONFIGURED
        self._active = False  # commands are allowed
        self._stopped = False  # a stop was asked for, and no resume since
        self._feedback = Feedback()
        self._model: JointModel | None = None
        self._joints: ArmJoints  # of the model
        self._targets: Targets
        self._settings: ArmSettings
        self._epoch = 0  # a solution for a request of another epoch is void
        self._progress = GoalTracker(self._news)
        self._fault_reason = ''
        self._ended = False  # no sample goes out any more
        self._robot.join(self._news.deliver)
        self._ticked, self._guided_until = -math.inf, 0.0  # times: of the last tick, and of hand guiding

    @property
    def state(self) -> State:
        """The state of the arm."""
        return self._state

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
                self._progress.share(self._ticked, remaining),
                self._feedback.age(joints.arm.names),
                None if joints.chased is None else joints.chased[columns],
            )

    def condition(self) -> tuple[Level, str]:
        """Return the condition of the arm in one sentence: what it waits for, or why it does not move."""
        with self._lock:
            if self._model is None:
                return Level.WARN, NO_MODEL
            if self._joints.waiting:
                return Level.WARN, f'{self._joints.waiting}; the arm waits for them'
            return condition(
                self._state, self._fault_reason, self._joints.without_position, self._model.describe
            )

    # Configuration

    def configure(self, model: JointModel, settings: ArmSettings) -> bool:
        """Switch to the arm of model with settings; False while the previous arm still brakes: call again.

        Joints of the same name keep their positions. If measurements are expected, another arm has to be
        measured again.
        """
        with self._change():
            before = self._model
            if before is not None and model.moves_as(before):
                self._model, self._settings = model, settings
                self._targets.model = model
                self._joints.take(model, settings)
                return True
            if before is not None and self._joints.moving:
                self._brake('the arm changes')
                return False
            places = {} if before is None else before.joints.named(self._joints.values(self._feedback)[0])
            self._model, self._settings = model, settings
            self._targets = targets_of(model)
            self._joints = self._robot.put(self, ArmJoints(model, settings, places, self._robot))
            self._epoch += 1
            self._progress.end(self._state, 'the arm has changed')
            if not self._feedback.expected:
                self._joints.initialise(self._fresh)
            self._on(Event.CONFIGURE)
            self._begin()
            return True

    def set_limits(self, settings: ArmSettings) -> None:
        """Use the motion limits of settings, from the next sample on."""
        with self._lock:
            self._settings = settings
            if self._model is not None:
                self._joints.take(self._model, settings)
                if self._state is State.HAND_GUIDED:
                    self._joints.guide()

    def activate(self) -> None:
        """Allow commands."""
        with self._change():
            self._active = True
            if self._state is State.INACTIVE and self._feedback.expected:
                self._forget_places('the joints have to be measured again')
            self._begin()

    def deactivate(self) -> None:
        """Stop within the limits, then command nothing."""
        with self._robot.sampling(), self._change():
            self._active = False
            if self._model is not None:
                self._brake('the node is deactivated', Level.OK)
                self._on(Event.STOP if self._joints.moving else Event.DEACTIVATE)

    def expect_measured(self, expected: bool, alone: bool = True) -> None:
        """Set whether the joints are measured, and whether no other node publishes joints of this robot.

        Once expected, nothing is commanded before every joint of the arm has been measured.
        """
        with self._change():
            before = self._feedback.expect(expected, alone)
            if self._model is None or before == (expected, alone):
                return
            if expected and not before[0]:
                self._forget_places('the joints have to be measured first')
                self._on(Event.MEASUREMENTS_EXPECTED)
                if not self._active:
                    self._on(Event.DEACTIVATE)
            elif not expected:
                self._release()
            self._initialise_from_measurement()

    # Requests

    def submit(self, *requests: Request) -> None:
        """Process requests, oldest first: refuse invalid ones, pursue the newest valid one of each tool.

        An unexpected error refuses its request too, and is raised once the others are done.
        """
        newest: dict[str, tuple[Request, Aim]] = {}  # by tool
        failed: list[Exception] = []
        for request in requests:
            with self._answered(request, failed):
                snapshot = self.snapshot(request.tool)
                if snapshot is None or (request.moves and snapshot.state not in READY):
                    raise InputError(self.condition()[1])
                wanted = request.wanted(snapshot)
                if wanted is not None:
                    newest[request.tool] = request, wanted
        for request, aim in newest.values():
            with self._answered(request, failed):
                self._pursue(request, aim)
        if failed:
            raise failed[0]

    @contextmanager
    def _answered(self, request: Request, failed: list[Exception]) -> Iterator[None]:
        """Refuse a request that raises, and deliver the reports on it; unexpected errors go to failed."""
        try:
            yield
        except Exception as error:
            reason = str(error)
            if not isinstance(error, InputError):
                failed.append(error)
                reason = f'unexpected error, please report it: {error!r}'
            with self._lock:
                self._progress.refuse(request, reason, self._state)
        try:
            self._robot.deliver()
        except Exception as error:
            failed.append(error)

    def _pursue(self, request: Request, wanted: Aim) -> None:
        with self._lock:
            epoch, targets, settings, joints = self._epoch, self._targets, self._settings, self._joints
            values, start = joints.values(self._feedback)[0], joints.start_of(request.tool)
            follows = joints.arm.motion.follows
        joints.way.check_goal(wanted, request.tool)
        answer = targets.find(wanted, request.tool, request.arrival, start, settings)
        preview = partial(joints.preview, self._lock)
        answer = joints.way.choose(answer, request.tool, values, preview, follows)
        with self._lock:
            if epoch != self._epoch or self._state not in READY:
                raise InputError(f'the state of the arm has changed: {self.condition()[1]}')
            if answer.joints is not None:
                if self._outputs.only_listed:
                    self._joints.check_listed(answer.joints)
                fresh = self._fresh if self._feedback.expected else None
                self._joints.go_to(answer.joints, self._feedback, fresh, answer.path)
                self._on(Event.GOAL)
            try:
                targets.accept(answer, request)
                target = self._joints.arm.target
                self._progress.begin(answer, request, self._state, self._ticked, targets.model, target)
            except Exception:  # the request is about to be refused, so the arm must not move for it
                self._brake('an unexpected error')
                raise

    def steer(self, joints: Array, time: float, rates: tuple[Array, Array] | None = None) -> bool:
        """Move on to joints (arm.n,) as Targets.steer does, at time [s]; False if the arm is not ready."""
        with self._change():
            if self._state not in READY:
                return False
            self._progress.end(self._state, 'superseded by a teleoperation command')
            self._joints.go_to(self._targets.steer(joints, time, rates), self._feedback, None)
            self._on(Event.STEER)
            return True

    def end_teleoperation(self) -> None:
        """Come to rest as teleoperation ends: where it last was if the arm is close to that, else at once."""
        with self._change():
            if self._state is State.TELEOPERATED and self._joints.far_behind:
                self._brake('teleoperation ended')

    def tell(self, level: Level, message: str) -> None:
        """Report a sentence on what moves the arm."""
        with self._change():
            self._news.state(self._state.value, self._state, (level, message))

    def stop(self) -> None:
        """Stop within the limits and stay there: goals are refused until resume.

        No sample of the motion before goes out once this returns.
        """
        with self._robot.sampling(), self._change():
            self._stopped = True
            if self._model is not None:
                self._brake('stopped')
                self._on(Event.STOP)

    def resume(self) -> None:
        """Accept goals again after a stop or a fault. After a fault the arm has to be measured again."""
        with self._change():
            if self._model is None or self._joints.moving:
                raise InputError(f'cannot resume: {self.condition()[1]}')
            self._stopped = False
            if self._state is State.FAULTED and self._feedback.expected:
                self._forget_places('the joints have to be measured again')
            self._on(Event.RESUME)
            self._initialise_from_measurement()

    def guide(self, begin: bool, time: float) -> None:
        """Begin or end hand guiding: commands then follow the measured positions, slowly.

        It ends after hand_guiding_timeout [s] at the latest. Raises InputError if it cannot begin.
        """
        with self._change():
            if not begin:
                self._release()
                return
            if self._state is not State.HOLDING or not self._feedback.expected:
                raise InputError(f'hand guiding needs a measured arm at rest; state: {self._state.value}')
            self._epoch += 1
            self._guided_until = time + self._settings.hand_guiding_timeout
            self._joints.guide()
            self._on(Event.GUIDE)

    # Time

    def on_measured(self, positions: Mapping[str, float], received: float, time: float = math.inf) -> None:
        """Store finite measured positions by joint name, received and measured at times [s]; inf: then too.

        Any joints, in any order.
        """
        time = min(time, received)
        with self._change():
            self._feedback.take(positions, time, received)
            if self._model is None or not self._feedback.expected:
                return
            if self._state is State.WAITING:
                self._initialise_from_measurement()
            elif self._state is State.HAND_GUIDED:
                self._joints.follow(positions)
            elif self._state in COMMANDING:
                error = self._joints.following_error(positions, time, received)
                if error is not None:
                    self._fault(error, void=self._outputs.runs_plans)  # no plan begins where the arm is

    def fail(self, reason: str) -> None:
        """Stop until resume, because an output cannot command the arm."""
        with self._robot.sampling(), self._change():
            if self._state in COMMANDING:
                self._fault(reason)

    def halt(self) -> None:
        """End all commands for good: whatever still moves stops on its way."""
        with self._robot.sampling():
            self._ended = True
            with self._lock:
                stand = self._outputs.hold_trajectory(dict)
            self._outputs.emit(None, stand)

    def tick(self, time: float) -> Setpoint | None:
        """Advance to time [s]; return the sample to publish, None if nothing may be published."""
        with self._robot.sampling():
            if self._ended:
                return None
            with self._change():
                sample, lost = self._outputs.in_time(self._advance(time))
                if lost:
                    self._fault(lost, void=True)
                epoch = self._epoch
            with self._lock:
                if sample is not None and epoch != self._epoch:
                    self._outputs.drop(sample)
                    return None
                stand = None
                if sample is None:
                    stand = self._outputs.hold_trajectory(
                        lambda: self._joints.within(self._feedback.recent())
                    )
            return self._outputs.emit(sample, stand)

    def _advance(self, time: float) -> Setpoint | None:
        last, self._ticked = self._ticked, time
        back = self._feedback.advance(time)
        if self._model is None:
            return None
        if back:
            self._guided_until = min(self._guided_until, time + self._settings.hand_guiding_timeout)
        self._initialise_from_measurement()
        self._guard(time)
        braking = self._state is State.FAULTED and self._joints.moving
        if self._joints.without_position or not (self._state in COMMANDING or braking):
            return None
        passed = 0.0 if last == -math.inf else max(time - last, 0.0)
        dt = min(passed, MOST_PERIODS / self._settings.publish_rate)
        missed = passed - dt if self._outputs.carry_on(last) else 0.0
        if self._state is State.TELEOPERATED or (self._state is State.MOVING and self._settings.follow_goals):
            self._joints.chase(self._targets.moving(time), self._targets.smoothing(self._settings))
        sample, refusal = self._joints.step(time, dt, self._feedback, missed, self._outputs.trajectories)
        if refusal is not None:
            self._fault(refusal, void=sample is None)
        if sample is not None:
            sample, self._progress.arrival = replace(sample, arrival=self._progress.arrival), None
            if not (self._joints.moving or self._joints.waiting):
                self._rest()
        return sample

    def _rest(self) -> None:
        if self._state in ON_ITS_WAY:
            lacking = self._lacking() if self._progress.pursues else None
            if lacking is not None and not self._progress.waited(self._ticked):
                return
            self._on(Event.ARRIVED)
            if lacking is None:
                self._progress.arrive()
            else:
                self._progress.end(self._state, lacking)
            return
        self._on(Event.RESTED if self._active else Event.DEACTIVATE)

    def _lacking(self) -> str | None:
        """Return why an arm whose commands rest has not arrived yet, None if it has."""
        if not self._outputs.done():
            return 'the controller has not ended its trajectory'
        return self._joints.lacking(self._feedback) if self._feedback.expected else None

    def _guard(self, time: float) -> None:
        """Check hand guiding, the way of another arm, and whether measurements are late or end."""
        if self._state is State.HAND_GUIDED and time >= self._guided_until:
            self._release()
        if self._state in ON_ITS_WAY and (blocked := self._joints.blocked()):
            self._brake(blocked)
        silent = self._feedback.silent(self._joints.commanded, self._settings.measured_timeout)
        if silent is not None and self._state in COMMANDING:
            self._fault(silent)
        if self._state in ON_ITS_WAY:
            waited = self._joints.waiting
            if (stopped := self._joints.keep_back(self._feedback)) is not None:
                self._brake(stopped)
            elif self._joints.waiting != waited:
                self._news.state('going on' if waited else 'late', self._state, self.condition())

    # Changes of state

    def _begin(self) -> None:
        """Go to work if that is allowed; a stop that was asked for before holds."""
        if self._active:
            self._on(Event.ACTIVATE)
        if self._stopped:
            self._on(Event.STOP)
        self._initialise_from_measurement()

    def _initialise_from_measurement(self) -> None:
        """Leave WAITING once all joint positions are known, and a controller that was halted is at rest."""
        if self._state is not State.WAITING or self._outputs.halting(self._ticked):
            return
        if not self._feedback.expected:
            self._joints.initialise(self._fresh)
        elif self._joints.without_position:  # else the arm was only stopped, and its command does not change
            self._joints.place(self._fresh)
        if not self._joints.without_position:
            self._on(Event.PLACED)

    @property
    def _fresh(self) -> dict[str, float]:
        """Positions by joint that were measured recently."""
        return self._feedback.fresh(self._settings.measured_timeout)

    def _forget_places(self, reason: str) -> None:
        """Forget the positions of the joints: only later measurements count."""
        self._epoch += 1
        self._progress.end(self._state, reason)
        self._joints.unplace()
        self._targets.restart()
        self._feedback.forget()

    def _brake(self, reason: str, level: Level = Level.WARN) -> None:
        self._epoch += 1
        self._progress.end(self._state, reason, level)
        self._joints.brake()
        self._targets.restart()

    def _release(self) -> None:
        if self._state is State.HAND_GUIDED and self._model is not None:
            self._joints.take(self._model, self._settings)
            self._joints.brake()
            self._on(Event.RELEASE)

    def _fault(self, reason: str, void: bool = False) -> None:
        if void:  # no motion from the commanded place is allowed
            self._forget_places(reason)
        self._fault_reason = reason
        self._brake(reason)
        self._on(Event.FAULT)

    def _on(self, event: Event) -> None:
        """Change the state by the table, and report changes that matter to users."""
        before = self._state
        self._state = TRANSITIONS[before].get(event, before)
        begins = before is State.WAITING and self._state is State.HOLDING
        if begins or (self._state in ANNOUNCED and self._state is not before):
            self._news.state('ready' if begins else self._state.value, self._state, self.condition())

    @contextmanager
    def _change(self) -> Iterator[None]:
        """Hold the lock; deliver the reports after its release."""
        try:
            with self._lock:
                yield
                self._news.waiting(self._state, self.condition)
        finally:
            self._robot.deliver()
