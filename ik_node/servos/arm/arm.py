# SPDX-License-Identifier: Apache-2.0
"""ServoArm: an arm of servos on one bus, from a closed port to following commands.

One thread owns the port. Everybody else leaves commands and requests, and reads snapshots.

The servos have no usable watchdog, so goals stay near the measured joints, and commands that stop leave the
arm where it is.
"""

from __future__ import annotations

import contextlib
import math
import threading
from collections import deque
from collections.abc import Callable, Mapping, MutableMapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NoAnswer
from dataclasses import dataclass
from enum import Enum

from ik_node.errors import IkError, InputError, join_names
from ik_node.servos.bus.transport import PortError, Transport
from ik_node.servos.calibration.profile import ArmProfile
from ik_node.servos.calibration.recorded import Recorded
from ik_node.servos.calibration.zeros import ArmCalibration
from ik_node.steady import steady

from .goals import Goals, Sag, Torques, compliances
from .registers import (
    ArmError,
    Counts,
    JointMeasurement,
    Measuring,
    ServoSurvey,
    memories,
    survey,
    wrong_supply,
)
from .states import NOT_MEASURED, POWERED, TRANSITIONS, WITH_GOALS, ArmSnapshot, ArmState, Event
from .torque import PlaceError, Torque, check_place, limit_torque, reset

RETRY = 1.0  # [s] from one attempt to open the port, or to find the servos, to the next
PATIENCE = 15.0  # [s] for a request
RATE_WINDOW = 100  # cycles over which their rate is measured
SILENCE = 0.3  # [s] without an answer of a servo after which no command is followed
MAX_PERIODS = 5.0  # of motion in one cycle, after one that was late
LOOK = 8  # cycles from one look at what other programs may change to the next: each servo about once a second
DRAIN = 0.1  # [s] after a pause in which commands that waited meanwhile are received
HELD = 'held until it is cleared'
BEING_OFF = 'the torque is being switched off'
NO_SERVO = 'no servo answers any more. Is the power supply of the arm on?'


@dataclass(frozen=True)
class ArmOptions:
    """How an arm is driven.

    rate [Hz] of the cycles. command_timeout [s]: without a command after which the arm holds. torque_limit:
    share of the torque that the profile allows.
    """

    rate: float = 100.0
    command_timeout: float = 0.4
    torque_limit: float = 1.0


class Request(Enum):
    """What others may request of an arm."""

    TORQUE_ON = 'switch the torque on, where the arm is'
    TORQUE_OFF = 'lower the arm slowly, and switch the torque off'
    HOLD = 'hold the arm where it is, and reject commands until it is cleared'
    CLEAR = 'end a hold or a fault'
    CALIBRATE = 'calibrate again, because zeros have changed'


class Inbox:
    """Positions [rad or m] by joint, and requests in their order. Safe to use from several threads.

    latched: no positions are taken, since the arm is to hold. A hold, and a release that is not completed,
    outlast the connection to the servos; the newer one counts.
    """

    def __init__(self, names: tuple[str, ...]) -> None:
        self._names, self._lock = names, threading.Lock()
        self._positions: dict[str, float] = {}
        self._given = self._taken_from = -math.inf  # [s] of steady
        self._requests: deque[tuple[Request, Future[None]]] = deque()
        self.latched = False
        self._releasing = self._held_since = False  # a release is not completed; a hold is newer

    @property
    def is_releasing(self) -> bool:
        """Whether the arm is to be without torque."""
        return self._releasing and not self._held_since

    def add(self, request: Request) -> Future[None]:
        """Add a request; return its result."""
        future: Future[None] = Future()
        with self._lock:
            self._requests.append((request, future))
            if request is Request.HOLD:
                self.latched = self._held_since = True
                self._positions.clear()
            elif request is Request.TORQUE_OFF:
                self._releasing, self._held_since = True, False
        return future

    def next(self) -> tuple[Request, Future[None]] | None:
        """Take the oldest request, None if there is none."""
        with self._lock:
            return self._requests.popleft() if self._requests else None

    def has(self, request: Request) -> bool:
        """Whether such a request is waiting."""
        with self._lock:
            return self._has(request)

    def _has(self, request: Request) -> bool:
        return any(waiting is request for waiting, _ in self._requests)

    def powered(self) -> None:
        """Take positions again, and forget hold and release, except those that are waiting."""
        with self._lock:
            if not self._has(Request.HOLD):
                self.latched = self._held_since = False
            if not self._has(Request.TORQUE_OFF):
                self._releasing = False

    def not_held(self) -> None:
        """Let a release before a hold count again, unless another hold is waiting: nothing was held."""
        with self._lock:
            self._held_since = self._has(Request.HOLD)

    def released(self) -> None:
        """Note that the arm is without torque."""
        with self._lock:
            self._releasing = False

    def checked(self, positions: Mapping[str, float]) -> dict[str, float]:
        """Return the positions of joints of the arm.

        Raises InputError for numbers that are not finite, and if no joint of the arm is named.
        """
        own = {name: float(positions[name]) for name in self._names if name in positions}
        if not own:
            raise InputError(f'the command names no joint of this arm; joints: {join_names(self._names)}')
        for name, value in own.items():
            if not math.isfinite(value):
                raise InputError(f'the command of joint {name} is {value}')
        return own

    def put(self, positions: Mapping[str, float]) -> None:
        """Set the commanded positions, which were checked; joints that are not named keep theirs.

        Raises InputError just after the program has stood still.
        """
        with self._lock:
            if steady() < self._taken_from:
                raise InputError('the driver was suspended until just now, so the command may be out of date')
            if not self.latched:
                self._positions.update(positions)
                self._given = steady()

    def fresh(self, timeout: float) -> dict[str, float]:
        """Return the positions if the newest ones are not older than timeout [s]; else forget them."""
        with self._lock:
            if steady() - self._given > timeout:
                self._positions.clear()
            return dict(self._positions)

    def paused(self) -> None:
        """Note that the program has stood still: what it finds waiting after that is of unknown age."""
        with self._lock:
            self._taken_from = steady() + DRAIN
        self.clear()

    def clear(self) -> None:
        """Forget the positions."""
        with self._lock:
            self._positions.clear()
            self._given = -math.inf


class ServoArm:
    """One arm; safe to call from several threads.

    request_... return futures, which have an ArmError with the reason if the request fails. calibration: None
    before the servos were found.
    """

    def __init__(
        self,
        open_port: Callable[[], Transport],
        profile: ArmProfile,
        calibrate: Callable[[Mapping[str, Recorded]], ArmCalibration],
        options: ArmOptions | None = None,
        changed: Callable[[ArmSnapshot], None] = lambda _: None,
        torques: Torques | None = None,
        factors: MutableMapping[str, float] | None = None,
    ) -> None:
        """open_port: raises PortError if it cannot. calibrate: returns the calibration for what the servos
        have stored, raises InputError. changed: called with every snapshot, in the thread of the arm.
        torques: of gravity at positions, by joint, to compensate the sag; None not to. factors: what was
        and is learned of it, see Sag; calibrate may fill them.
        """
        self._open, self.profile, self._calibrate = open_port, profile, calibrate
        self._options, self._changed = options or ArmOptions(), changed
        self._torques, self.factors = torques, {} if factors is None else factors
        self._inbox = Inbox(profile.names)
        self._ending, self._ended = threading.Event(), False
        self._thread = threading.Thread(target=self._run, name='servos', daemon=True)
        self.calibration: ArmCalibration | None = None
        self._transport: Transport | None = None
        self._state, self._reason = ArmState.CLOSED, 'not started'
        self._counts = Counts()
        self._times: deque[float] = deque(maxlen=RATE_WINDOW)
        self._torque = Torque([])  # what is known of it outlasts the connection
        self._ticks: Mapping[str, int] = {}  # measured without a zero
        self._forget()
        self._snapshot = self._taken()

    def _forget(self) -> None:
        """Know nothing of the servos but their torque."""
        self._servos: list[ServoSurvey] = []
        self._measuring = Measuring([], {}, self._counts)
        self._measured: dict[str, JointMeasurement] = {}
        self._goals = Goals({})
        self._missing = False  # a servo does not answer, and that is the fault
        self._cycles = 0
        self._time = self._moved = steady()  # of the measurement; when goals were sent

    # Of any thread

    def start(self) -> None:
        """Start the thread, which does what step() does once."""
        self._thread.start()

    def stop(self, release: bool = False) -> None:
        """End the steps. The arm holds its pose; release: it is lowered slowly, and without torque then.

        Raises ArmError, once they have ended, if torque is to be released and stays on somewhere.
        """
        reason = ''
        if release and not self._ended:
            future = self.request_torque(False)
            try:
                future.result(PATIENCE)
            except NoAnswer:
                future.cancel()
                reason = f'the servos did not complete that within {PATIENCE:.0f} s'
            except ArmError as error:
                reason = str(error)
        self._ending.set()
        if self._thread.is_alive():
            self._thread.join(PATIENCE)
        else:
            self._end()
        if reason and self._torque.on:
            left = [name for name in self.profile.names if name in self._torque.on]
            raise ArmError(f'{reason}; {join_names(left)} may still have torque: support the arm')

    @property
    def snapshot(self) -> ArmSnapshot:
        """The arm as it was in the last cycle."""
        return self._snapshot

    def command(self, positions: Mapping[str, float]) -> None:
        """Go to positions [rad or m], by joint; joints that are not named keep theirs.

        Raises InputError for numbers that are not finite, and if no joint of the arm is named; ArmError while
        the arm takes no commands.
        """
        own, now = self._inbox.checked(positions), self._snapshot
        if now.state not in POWERED or self._inbox.latched:
            reason = now.reason or (HELD if self._inbox.latched else '')
            raise ArmError(f'the arm is {now.state.value}{f": {reason}" if reason else ""}')
        self._inbox.put(own)

    @property
    def ended(self) -> bool:
        """Whether the arm takes no commands any more, because this driver ends."""
        return self._ended

    def drop_commands(self) -> None:
        """Forget the positions that were commanded: from the next cycle on the arm holds."""
        self._inbox.clear()

    def request_torque(self, on: bool) -> Future[None]:
        """Switch the torque on, where the arm is, or off, slowly: support the arm."""
        return self._request(Request.TORQUE_ON if on else Request.TORQUE_OFF)

    def request_hold(self) -> Future[None]:
        """Hold the arm where it is, and take no commands until clear; it also ends a lowering.

        While the servos do not answer it fails, but counts all the same once they do.
        """
        return self._request(Request.HOLD)

    def request_clear(self) -> Future[None]:
        """End a hold or a fault. A servo that protects itself is without torque for some milliseconds."""
        return self._request(Request.CLEAR)

    def request_calibration(self) -> Future[None]:
        """Calibrate again, because zeros have changed; only without torque, since positions jump."""
        return self._request(Request.CALIBRATE)

    def _request(self, request: Request) -> Future[None]:
        future = self._inbox.add(request)
        if self._ended:
            self._reject('the driver of the servos has ended')
        return future

    # The thread

    def _run(self) -> None:
        due = steady()
        try:
            while not self._ending.is_set():
                due = max(due + self.step(), steady())
                self._ending.wait(due - steady())
        except BaseException as error:
            self._ended = True
            self._close(f'unexpected error, please report it: {error!r}')
            raise
        else:
            self._end()

    def _end(self) -> None:
        """Leave the servos where their joints are: nobody commands them any more."""
        if self._ended:
            return
        self._ended = True  # before what waits is rejected
        with contextlib.suppress(PortError):
            if self._state in POWERED:
                self._on(Event.HOLD)
                self._write_goals()
            if self._state not in NOT_MEASURED and (self._state in WITH_GOALS or self._torque.on):
                self._torque.unwatch()
        self._close('the driver has ended')

    def step(self) -> float:
        """Do one cycle, before it open the port and find the servos, which may have been lost.

        Return how long the next may wait [s].
        """
        try:
            if self._transport is None:
                self._transport = self._open()
            if self._state in NOT_MEASURED:
                self._find(self._transport)
            self._times.append(steady())
            self._cycle()
            self._publish()
            self._serve()
        except PortError as error:
            self._close(str(error))
            return RETRY
        except ArmError as error:  # of a servo that does not answer
            self._pause(Event.SERVOS_LOST, str(error))
            return RETRY
        return 1.0 / self._options.rate

    def _find(self, transport: Transport) -> None:
        """Look for the servos; go on holding an arm that was left with torque, unless it is to be released.

        Raises ArmError unless all are there, and as they should be.
        """
        servos = survey(transport, self.profile)
        try:
            self.calibration = self._calibrate(memories(servos))
        except InputError as error:  # the ticks can be had all the same
            self._ticks = {servo.joint.name: servo.read('present_position') for servo in servos}
            raise ArmError(str(error)) from None
        torque = Torque(servos, self._options.torque_limit)
        torque.read()
        self._forget()
        self._servos, self._torque = servos, torque
        by_name = {joint.name: joint for joint in self.calibration.joints}
        self._measuring = Measuring(servos, by_name, self._counts)
        self._goals = Goals(by_name, Sag(self._torques, compliances(servos), self.factors))
        self._on(Event.FOUND)
        if not torque.on:
            self._inbox.released()
        elif len(torque.on) == len(servos) and not self._inbox.is_releasing:
            try:
                self._power()
            except PlaceError as error:  # its owner can still switch the torque off
                self._reason = str(error)

    def _close(self, reason: str) -> None:
        if self._transport is not None:
            self._transport.close()
            self._transport = None
        self._pause(Event.PORT_LOST, reason)

    def _pause(self, event: Event, reason: str) -> None:
        """Have no cycles until the servos are found."""
        self._forget()
        self._on(event, reason)
        self._times.clear()
        self._inbox.clear()
        self._publish()
        self._ticks = {}
        self._reject(reason)

    def _publish(self) -> None:
        self._snapshot = self._taken()
        self._changed(self._snapshot)

    def _taken(self) -> ArmSnapshot:
        span = self._times[-1] - self._times[0] if len(self._times) > 1 else 0.0
        return ArmSnapshot(
            self._time,
            self._state,
            self._why(),
            dict(self._measured),
            {name: joint.tick for name, joint in self._measured.items()} or self._ticks,
            self._goals.limited,
            frozenset(self._torque.on),
            self._inbox.latched,
            (len(self._times) - 1) / span if span > 0.0 else 0.0,
            self._counts.retries,
            self._counts.limited,
            dict(self._counts.faults),
            self._goals.sag.leads,
            self._goals.sag.warnings,
        )

    def _why(self) -> str:
        """Return why the arm is in its state, and what blocks it."""
        found = [self._reason] if self._reason else []
        if self._state is ArmState.PASSIVE and self._torque.on:
            found.append(self._torque.left(self._inbox.is_releasing))
        if found or self._state in NOT_MEASURED:
            return '; '.join(found)
        found = self._goals.obstacles
        if self._inbox.latched and self._state is ArmState.HOLDING:
            found.append(HELD)
        found += [
            f'"{name}" reports {" and ".join(words)}{self._supply(name)}'
            for name, words in self._measuring.lasting.items()
        ]
        return '; '.join(found)

    def _supply(self, name: str) -> str:
        """Return what helps against the supply of a joint, '' if it is right.

        Without the voltage: it changes all the time, and each message is logged once.
        """
        allowed = next(servo.volts for servo in self._servos if servo.joint.name == name)
        wrong = wrong_supply(self._measured[name].voltage, allowed) if name in self._measured else ''
        return f' ({wrong.partition(", ")[2]})' if wrong else ''

    # The states

    def _on(self, event: Event, reason: str = '') -> bool:
        """Change the state by an event; return whether that counts in this state."""
        after = TRANSITIONS[self._state].get(event)
        if after is None:
            return False
        if after in (ArmState.HOLDING, ArmState.FAULTED):
            self._goals.hold(self._measured)
        if after is not ArmState.FOLLOWING:
            self._inbox.clear()
        self._state, self._reason = after, reason
        return True

    def _fault(self, reason: str) -> bool:
        """Take no commands for a reason; return whether there was none before."""
        if self._state is ArmState.PASSIVE and self._reason:
            return False
        return self._on(Event.FAULT, reason)

    # One cycle

    def _cycle(self) -> None:
        """Measure, and move the goals. Raises PortError."""
        self._measure()
        self._check_answers()
        if self._state in NOT_MEASURED:
            return
        if self._state in WITH_GOALS or self._torque.on:
            self._check_torque()
        self._check_others()
        if self._state in WITH_GOALS:
            now = steady()
            self._move(now, min(now - self._moved, MAX_PERIODS / self._options.rate))
        self._moved = steady()  # what is sent late must not make the next step longer

    def _measure(self) -> None:
        self._time = steady()
        self._measured = self._measuring.read(self._time)

    def _check_answers(self) -> None:
        """Look for servos that do not answer."""
        silent = self._measuring.silent(self._time, SILENCE)
        if len(silent) == len(self._servos):
            self._pause(Event.SERVOS_LOST, NO_SERVO)
        elif silent:
            reason = self._measuring.silence(silent)
            if self._missing:
                self._reason = reason
            self._missing |= self._fault(reason)
        elif self._missing:
            self._missing, self._reason = False, ''
            if self._on(Event.RECOVERED):
                for _ in self._servos[1:]:
                    self._check_torque()

    def _check_torque(self) -> None:
        """Check the torque of one servo per cycle."""
        before = self._torque.loss
        self._torque.check_next()
        loss = self._torque.loss
        if self._state is ArmState.PASSIVE:
            if not self._torque.on:
                self._torque.unwatch()
                self._released()
        elif loss:
            if not self._fault(loss) and self._reason == before:
                self._reason = loss
        elif self._state in POWERED and self._torque.is_stopped():
            self._torque.watch_again()
            self._on(Event.HOLD)

    def _check_others(self) -> None:
        """Look whether another program has changed what holds the arm."""
        self._cycles += 1
        if self._cycles % LOOK or self._state not in POWERED or not self._torque.is_grown:
            return
        found = self._torque.changed()
        if found is None:
            return
        servo, turns, reason = found
        if 'overload' in self._measuring.lasting.get(servo.joint.name, ()):
            return  # its firmware may have done that
        self._fault(reason)
        if turns:
            with contextlib.suppress(ArmError):  # it is told that it does not answer
                Torque([servo]).switch_off()
        else:
            limit_torque([(servo, self._options.torque_limit)])  # it would sink

    def _move(self, now: float, dt: float) -> None:
        commands: dict[str, float] = {}
        if now - self._moved > self._options.command_timeout:
            self._inbox.paused()
        if self._inbox.latched or self._state is ArmState.FAULTED:
            self._inbox.clear()
        else:
            commands = self._inbox.fresh(self._options.command_timeout)
        self._on(Event.COMMANDED if commands else Event.COMMANDS_ENDED)
        limited = set(self._goals.limited)
        torque = self._torque.grow(now)
        self._goals.follow(commands, self._measured, dt, torque, torque >= self._options.torque_limit)
        self._counts.limited += len(self._goals.limited.keys() - limited)
        self._write_goals()

    def _write_goals(self) -> None:
        """Send the servos to the goals of their joints."""
        assert self.calibration is not None
        data, positions = {}, self._goals.sent
        register = self._servos[0].model['goal_position']
        low, high = register.range
        for joint in self.calibration.joints:
            if joint.name in positions:
                tick = min(max(joint.tick(positions[joint.name]), low), high)
                data[joint.profile.id] = register.encode(tick)
        if data:
            self._servos[0].transport.sync_write(register.address, data)

    # Requests

    def _serve(self) -> None:
        """Carry out requests until the servos are lost."""
        while self._state not in NOT_MEASURED and (waiting := self._inbox.next()):
            request, future = waiting
            if not future.set_running_or_notify_cancel():
                continue
            try:
                try:
                    self._carry_out(request)
                finally:
                    self._publish()  # before the answer, and after failures too: the torque may have changed
            except BaseException as error:
                self._fail(request, future, error if isinstance(error, ArmError) else ArmError(str(error)))
                if not isinstance(error, IkError) or isinstance(error, PortError):
                    raise
            else:
                future.set_result(None)

    def _fail(self, request: Request, future: Future[None], error: ArmError) -> None:
        if request is Request.HOLD and self._inbox.latched and self._state is not ArmState.PASSIVE:
            error = ArmError(f'{error}; commands are rejected until clear')
        future.set_exception(error)

    def _reject(self, reason: str) -> None:
        while waiting := self._inbox.next():
            request, future = waiting
            if future.set_running_or_notify_cancel():
                self._fail(request, future, ArmError(reason))

    def _carry_out(self, request: Request) -> None:
        """Raises ArmError."""
        if request is Request.TORQUE_OFF:
            self._switch_off()
        elif request is Request.CALIBRATE:
            self._recalibrate()
        elif request is not Request.TORQUE_ON and self._state is ArmState.PASSIVE:
            if request is Request.HOLD:
                self._inbox.not_held()
            reason = self._why()
            raise ArmError(
                f'this driver does not hold the arm: {reason}' if reason else 'the torque is off: the arm holds nothing'
            )
        elif request is Request.HOLD:
            self._on(Event.HOLD)
        else:
            if request is Request.CLEAR:
                self._reset_overloads()
            self._power()
            self._inbox.powered()

    def _reset_overloads(self) -> None:
        """The torque of overloaded servos is off for a moment."""
        for servo in self._servos:
            if 'overload' in self._measuring.lasting.get(servo.joint.name, ()):
                reset(servo)

    def _power(self) -> None:
        """Switch the torque on where the arm is. Raises ArmError, and the torque is as before."""
        assert self.calibration is not None
        for servo, joint in zip(self._servos, self.calibration.joints, strict=True):
            check_place(servo, joint)
        before = self._torque.on
        try:
            powered = self._torque.switch_on()
        except ArmError:
            if self._state in WITH_GOALS:
                self._torque.watch_again()
            raise
        self._measuring.know({one.servo.joint.name: one.present for one in powered}, self._torque.since)
        self._measure()
        self._moved = self._time
        self._goals.begin({one.servo.joint.name: one.goal for one in powered}, before)
        self._on(Event.POWERED)

    def _switch_off(self) -> None:
        """Lower the arm slowly, and switch the torque off; a hold ends that. Raises ArmError."""
        before, seen = (self._state, self._reason), dict(self._measured)

        def measure() -> None:
            self._measure()
            seen.update(self._measured)
            self._publish()

        self._on(Event.RELEASE, BEING_OFF)
        if self._torque.is_left():
            shares = self._torque.lower(before[0] in WITH_GOALS, measure, lambda: self._inbox.has(Request.HOLD))
            if shares is not None:
                self._state, self._reason = before
                if self._state in WITH_GOALS:
                    self._torque.watch_again()
                    self._torque.grow_from(shares)
                    self._goals.hold(seen)
                raise ArmError('~/hold was called while the arm was lowered, so the torque stays on')
        try:
            self._torque.switch_off(measure)
        except ArmError:
            self._let_go()
            raise
        self._released()

    def _released(self) -> None:
        self._torque.forget()
        self._inbox.released()
        self._let_go()

    def _let_go(self) -> None:
        self._goals.forget()
        self._missing = False
        self._on(Event.RELEASED)

    def _recalibrate(self) -> None:
        if self._state is not ArmState.PASSIVE or self._torque.on:
            raise ArmError('zeros can only be set while the torque is off')
        self._reject('the zeros have just changed: try again')
        self._pause(Event.SERVOS_LOST, '')
