# SPDX-License-Identifier: Apache-2.0
"""ServoLoop: the cycle of an arm whose servos were found. Only the thread that owns the port calls it.

The servos have no watchdog of their own worth the name, so goals stay near the measured joints, and commands
that stop leave the arm where it is.
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections import deque
from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass

from ik_node.errors import join_names
from ik_node.servos.arm.survey import ArmError, ServoSurvey, named, named_all, try_read, write, wrong_supply
from ik_node.servos.bus.dynamixel import ALERT
from ik_node.servos.bus.models import TICKS_PER_TURN
from ik_node.servos.bus.transport import Answer, Reply, Transport
from ik_node.servos.calibration.zeros import ArmCalibration, JointCalibration
from ik_node.steady import steady

from .activation import (
    LeftOnError,
    PlaceError,
    Shares,
    check_place,
    has_torque,
    limit_torque,
    may_have_torque,
    reset,
    switch_off,
    switch_on,
    torque_share,
    unwatch,
    watch,
)
from .goals import Goals, Sag, Torques, compliances
from .snapshot import POWERED, WITH_GOALS, ArmState, Commands, Counts, JointMeasurement


class Torque:
    """on: the joints whose servos have torque, as far as that is known."""

    def __init__(self, transport: Transport, servos: Sequence[ServoSurvey]) -> None:
        self._transport, self._servos = transport, servos
        self.on: set[str] = set()
        self._lost: dict[str, ServoSurvey] = {}  # servos that have lost it, by joint
        self._checked = self._looked = 0  # the servo that was checked last, and the register

    def switched_on(self) -> None:
        """Note that all servos have torque."""
        self.on, self._lost = {servo.joint.name for servo in self._servos}, {}

    def switched_off(self) -> None:
        """Note that no servo has torque."""
        self.on, self._lost = set(), {}

    def look(self, before: set[str]) -> None:
        """Look which servos have torque; those that do not answer as before."""
        found = {servo.joint.name: may_have_torque(self._transport, servo) for servo in self._servos}
        self.on = {name for name, has in found.items() if has or (has is None and name in before)}

    def is_left(self) -> bool:
        """Whether a servo may have torque."""
        return any(may_have_torque(self._transport, servo) is not False for servo in self._servos)

    def left(self, is_unwanted: bool) -> str:
        """Which servos of an arm that nobody drives have torque, and what helps."""
        servos = named_all(servo.joint for servo in self._servos if servo.joint.name in self.on)
        if is_unwanted:
            return f'torque may still be on in {servos}: support the arm, and switch it off again'
        return f'torque is on in {servos}'

    def check(self) -> None:
        """Check one servo per call: a dip of the supply switches it off, and it has lost what was set."""
        self._checked = (self._checked + 1) % len(self._servos)
        servo = self._servos[self._checked]
        has, name = may_have_torque(self._transport, servo), servo.joint.name
        if has and name not in self._lost:
            self.on.add(name)
        elif has is False:
            self.on.discard(name)
            self._lost[name] = servo

    def stopped(self) -> bool:
        """Whether the watchdog of the servo that was checked last has stopped it, or is not set."""
        servo = self._servos[self._checked]
        found = (
            try_read(self._transport, servo, 'bus_watchdog')
            if 'bus_watchdog' in servo.model.registers
            else None
        )
        return found is not None and found <= 0

    def changed(self, limit: float) -> tuple[ServoSurvey, bool, str] | None:
        """Look at one register of one servo per call that only another program changes.

        limit: the share of the torque that was set. Return the servo, whether it goes to no position any
        more, and a sentence; None if nothing is changed.
        """
        self._looked = (self._looked + 1) % (2 * len(self._servos))
        servo = self._servos[self._looked // 2]
        name = 'operating_mode' if self._looked % 2 else 'torque_limit'
        full = servo.model['torque_limit'].count(limit * servo.joint.torque)
        allowed = servo.model.position_modes if self._looked % 2 else {full}
        found = {try_read(self._transport, servo, name) for _ in range(2)}  # one may be damaged
        if len(found) > 1 or found <= {None, *allowed}:
            return None
        must = ' or '.join(map(str, sorted(allowed)))
        said = (
            f'{named(servo.joint)} has {name} {found.pop()}, it must be {must}: another program has changed'
        )
        return servo, name == 'operating_mode', f'{said} it. End that program, then clear the fault'

    @property
    def loss(self) -> str:
        """Which servos have lost their torque, and what helps; '' if none has."""
        if not self._lost:
            return ''
        servos = named_all(servo.joint for servo in self._lost.values())
        lost, protects = 'has lost its torque', 'it protects itself'
        if len(self._lost) > 1:
            lost, protects = 'have lost their torque', 'they protect themselves'
        return f'{servos} {lost}: the supply has dipped, or {protects}. Support the arm, then clear the fault'


SOFT_START = 1.0  # [s] in which the torque grows from nothing to all
CHECKED = 0.1  # [s] from one look to the next whether the servos have their limits: none acknowledges them


class SoftStart:
    """since: when it began (steady)."""

    def __init__(self) -> None:
        self._growing: deque[tuple[ServoSurvey, float]] = deque()  # until its limit was read back
        self.since = self._checked = 0.0

    def begin(self, servos: Iterable[tuple[ServoSurvey, float]]) -> None:
        """Let the torque of servos grow from their shares on."""
        self._growing, self.since = deque(servos), steady()

    @property
    def ended(self) -> bool:
        """Whether all servos have their limit."""
        return not self._growing

    def confirmed(self, servos: Iterable[ServoSurvey], limit: float) -> dict[int, float]:
        """Return the shares, by id, of the servos that have their share in the end, limit."""
        growing = {servo.joint.id for servo, _ in self._growing}
        return {servo.joint.id: limit for servo in servos if servo.joint.id not in growing}

    def end(self) -> None:
        """Write no more limits."""
        self._growing.clear()

    def grow(self, transport: Transport, limit: float, now: float) -> float:
        """Write the torque limits at a time (steady); return the share that all servos may use.

        limit: that share in the end.
        """
        if not self._growing:
            return limit
        grown = (now - self.since) / SOFT_START
        shares = [(servo, min(begin + grown, limit)) for servo, begin in self._growing]
        limit_torque(transport, shares)
        if grown > 1.0 and now > self._checked + CHECKED:
            self._checked = now
            self._check(transport, limit)
        return min(share for _, share in shares)

    def _check(self, transport: Transport, limit: float) -> None:
        """Read back the limits until one is missing."""
        while self._growing:
            servo, _ = self._growing[0]
            full = servo.model['torque_limit'].count(limit * servo.joint.torque)
            if try_read(transport, servo, 'torque_limit') != full:
                self._growing.rotate(-1)
                return
            self._growing.popleft()


LOWERING = 3.0  # [s] in which the torque vanishes
PERIOD = 0.01  # [s] from one step to the next


class Lowering:
    """Begins at once. The torque of a servo sinks from what it has: it is never raised.

    A servo that does not answer is lowered from what is known of it, and otherwise once it answers; at last
    it is switched off as it is.
    """

    def __init__(
        self, transport: Transport, servos: Sequence[ServoSurvey], known: Mapping[int, float]
    ) -> None:
        """known: the shares that servos have, by id, as far as they are known."""
        self._transport, self._known, self._begun = transport, known, steady()
        self._unread = deque(servos)
        self._first: dict[int, tuple[ServoSurvey, float, float]] = {}  # share, and when read [s], by id

    def step(self) -> bool:
        """Write the limits of this time; return whether there will be more of them."""
        passed = self._passed
        if passed < LOWERING:
            self._look()
        if shares := self.shares:
            limit_torque(self._transport, shares)
        latest = max((since for _, _, since in self._first.values()), default=0.0)
        return passed < latest + LOWERING

    @property
    def shares(self) -> Shares:
        """The share that each servo may use now; those of which none is known are left out."""
        passed = self._passed
        return [
            (servo, share * max(1.0 - (passed - since) / LOWERING, 0.0))
            for servo, share, since in self._first.values()
        ]

    @property
    def _passed(self) -> float:
        return steady() - self._begun

    def _look(self) -> None:
        """Prepare servos, and read what they have, until one does not answer."""
        while self._unread:
            servo = self._unread[0]
            id = servo.joint.id
            try:
                if 'bus_watchdog' in servo.model.registers:  # stopped by it, a servo accepts no limit
                    write(self._transport, servo.joint, servo.model, 'bus_watchdog', 0)
                self._first[id] = servo, torque_share(self._transport, servo), self._passed
                self._unread.popleft()
            except ArmError:
                if id in self._known and id not in self._first:
                    self._first[id] = servo, self._known[id], self._passed
                self._unread.rotate(-1)
                return


def lower(
    transport: Transport,
    servos: Sequence[ServoSurvey],
    known: Mapping[int, float],
    measure: Callable[[], None],
    is_held: Callable[[], bool],
) -> Shares | None:
    """Let the torque vanish; return the shares of the servos if is_held ended that, None at the end.

    known: the shares that servos have, by id. measure: called in each step.
    """
    lowering = Lowering(transport, servos, known)
    while lowering.step():
        measure()
        if is_held():
            return lowering.shares
        steady.sleep(PERIOD)
    return None


RETRIES = 2  # single reads per cycle, after a sync read with faults
SLACK = 40  # [ticks] beyond the fastest motion that a position may have changed
PUSHED = 1.5  # times the fastest speed without load: pushed by hand or by gravity
SETTLED = 3  # readings that agree with each other are believed, even after a jump


class Measuring:
    """Reads all servos once per cycle.

    last: when each servo answered [s], by joint. lasting: conditions that a joint reports again.
    """

    def __init__(
        self, servos: Sequence[ServoSurvey], calibration: Mapping[str, JointCalibration], counts: Counts
    ) -> None:
        self._servos, self._counts = servos, counts
        self.calibration = calibration
        self.last: dict[str, float] = {}
        self.lasting: dict[str, list[str]] = {}
        self._reported: dict[str, tuple[str, ...]] = {}  # conditions
        self._ticks: dict[str, int] = {}
        self._doubted: dict[str, list[int]] = {}
        self._beyond: dict[str, int] = {}  # ticks of joints that count beyond one turn

    def know(self, ticks: Mapping[str, int], time: float) -> None:
        """Take it that joints were at these ticks at time [s]: what comes next must be near."""
        self._ticks.update(ticks)
        self.last.update(dict.fromkeys(ticks, time))
        self._doubted.clear()

    def read(self, transport: Transport, time: float) -> dict[str, JointMeasurement]:
        """Return the joints that answered at time [s]."""
        address, size = self._servos[0].model.measured
        ids = [servo.joint.id for servo in self._servos]
        replies = transport.sync_read(ids, address, size)
        retries = RETRIES
        found = {}
        for servo in self._servos:
            reply = replies[servo.joint.id]
            if not isinstance(reply, Answer):
                self._counts.add(reply.value)
                if retries:
                    retries -= 1
                    self._counts.retries += 1
                    reply = transport.read(servo.joint.id, address, size)
                    if not isinstance(reply, Answer):
                        self._counts.add(reply.value)
            measured = self._measured(servo, reply, address, time, transport)
            if measured is not None:
                found[servo.joint.name] = measured
        before, self._reported = self._reported, {name: joint.conditions for name, joint in found.items()}
        both = {name: [c for c in now if c in before.get(name, ())] for name, now in self._reported.items()}
        self.lasting = {name: conditions for name, conditions in both.items() if conditions}
        return found

    def _measured(
        self, servo: ServoSurvey, reply: Reply, address: int, time: float, transport: Transport
    ) -> JointMeasurement | None:
        if not isinstance(reply, Answer):
            return None
        model, joint = servo.model, servo.joint
        counts = model.decode(address, reply.data)
        tick = counts['present_position']
        if not self._plausible(servo, tick, time):
            self._counts.add('implausible position')
            return None
        quantity = {
            name: model[name].quantity(counts[name])
            for name in ('present_velocity', 'present_voltage', 'present_temperature')
        }
        load = counts.get('present_load')
        if load is not None:
            share = model['present_load'].quantity(load)
        else:  # a share of the largest current is near enough to tell a stall
            share = counts['present_current'] / max(servo.most_current, 1)
        self._ticks[joint.name], self.last[joint.name] = tick, time
        return JointMeasurement(
            tick,
            self.calibration[joint.name].position(tick),
            joint.sign * joint.unit * quantity['present_velocity'],
            joint.sign * share,
            quantity['present_voltage'],
            quantity['present_temperature'],
            tuple(model.conditions_of(self._status(servo, reply, transport))),
        )

    def _status(self, servo: ServoSurvey, reply: Answer, transport: Transport) -> int:
        """Return the bits of the register status: in each answer, or, of a Dynamixel, announced by a bit."""
        if servo.model.homing_sign < 0:
            return reply.error
        if not reply.error & ALERT:
            return 0
        register = servo.model['status']
        found = transport.read(servo.joint.id, register.address, register.size)
        return register.decode(found.data) if isinstance(found, Answer) else 0

    def _plausible(self, servo: ServoSurvey, tick: int, time: float) -> bool:
        """Whether a joint can have moved to a tick since it was measured last."""
        joint = servo.joint
        self._beyond.pop(joint.name, None)
        if servo.model.homing_sign < 0 and not 0 <= tick < TICKS_PER_TURN:
            self._beyond[joint.name] = tick
            return False
        if joint.name not in self._ticks:
            return True
        way = abs(tick - self._ticks[joint.name])
        if joint.full_turn:
            way = min(way, abs(TICKS_PER_TURN - way))
        most = SLACK + PUSHED * joint.fastest / joint.unit * (time - self.last[joint.name])
        doubted = self._doubted.setdefault(joint.name, [])
        if way <= most:
            doubted.clear()
            return True
        doubted.append(tick)
        del doubted[:-SETTLED]
        return len(doubted) == SETTLED and max(doubted) - min(doubted) <= SLACK

    def silent(self, time: float, patience: float) -> list[str]:
        """Return the joints that have not answered for longer than patience [s]."""
        return [
            servo.joint.name
            for servo in self._servos
            if time - self.last.get(servo.joint.name, -math.inf) > patience
        ]

    def why_not(self, silent: Sequence[str]) -> str:
        """Why there is no measurement of joints that have been silent for too long, and what helps."""
        found = []
        if mute := [name for name in silent if name not in self._beyond]:
            found.append(f'no answer from {join_names(mute)}: check the cables')
        found += [
            f'"{name}" is at tick {self._beyond[name]}, beyond its turn of 0 to {TICKS_PER_TURN - 1}: '
            'clear bit 4 of its phase, and calibrate it again'
            for name in silent
            if name in self._beyond
        ]
        return '; '.join(found)


SILENCE = 0.3  # [s] without an answer of a servo after which no command is followed
MOST_PERIODS = 5.0  # of motion in one cycle, after one that was late
LOOK = 8  # cycles from one look at what other programs may change to the next: each servo about once a second
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


class ServoLoop:
    """state, reason: see ArmSnapshot. measured: the joints that answered, at time [s]. torque: who has it.

    goals: where the servos go.
    """

    def __init__(
        self,
        transport: Transport,
        servos: list[ServoSurvey],
        calibration: ArmCalibration,
        options: ArmOptions,
        commands: Commands,
        counts: Counts,
        torques: Torques | None = None,
        factors: MutableMapping[str, float] | None = None,
    ) -> None:
        """torques, factors: against sag, see Sag."""
        self._transport, self._servos, self._calibration = transport, servos, calibration
        self._options, self._commands, self._counts = options, commands, counts
        by_name = {joint.name: joint for joint in calibration.joints}
        self._measuring = Measuring(servos, by_name, counts)
        sag = Sag(torques, compliances(servos), {} if factors is None else factors)
        self.goals = Goals(by_name, sag)
        self.torque = Torque(transport, servos)
        self.measured: dict[str, JointMeasurement] = {}
        self.state, self._reason = ArmState.PASSIVE, ''
        self._cycles = 0
        self._missing = False  # a servo does not answer, and that is the fault
        self._soft_start = SoftStart()
        self.time = self._moved = steady()  # of the measurement; when goals were sent

    @property
    def reason(self) -> str:
        """Why the arm is in its state, and what blocks it."""
        found = [self._reason] if self._reason else []
        if self.state is ArmState.PASSIVE and self.torque.on:
            found.append(self.torque.left(self._commands.torque_off))
        if found:
            return '; '.join(found)
        found = self.goals.obstacles
        if self._commands.latched and self.state is ArmState.HOLDING:
            found.append(HELD)
        found += [
            f'"{name}" reports {" and ".join(words)}{self._supply(name)}'
            for name, words in self._measuring.lasting.items()
        ]
        return '; '.join(found)

    def _supply(self, name: str) -> str:
        """Return what helps against the supply of a joint, '' if it is right.

        Without the voltage: it changes all the time, and a message is said once.
        """
        allowed = next(servo.volts for servo in self._servos if servo.joint.name == name)
        wrong = wrong_supply(self.measured[name].voltage, allowed) if name in self.measured else ''
        return f' ({wrong.partition(", ")[2]})' if wrong else ''

    def take_over(self) -> None:
        """Go on holding an arm that was left with torque, unless it was to be released. Raises ArmError."""
        on = [one for one in self._servos if has_torque(self._transport, one)]
        self.torque.on = {one.joint.name for one in on}
        if not on:
            self._commands.lowered()
        elif len(on) == len(self._servos) and not self._commands.torque_off:
            try:
                self._power()
            except PlaceError as error:  # its owner can still switch the torque off
                self._reason = str(error)

    def step(self) -> None:
        """Measure, and move the goals. Raises PortError."""
        self._measure()
        self._watch(self.time)
        self._watch_others()
        if self.state in WITH_GOALS:
            now = steady()
            self._move(now, min(now - self._moved, MOST_PERIODS / self._options.rate))
        self._moved = steady()  # what is sent late must not make the next step longer

    def _measure(self) -> None:
        self.time = steady()
        self.measured = self._measuring.read(self._transport, self.time)

    def _watch(self, now: float) -> None:
        """Look for servos that do not answer, and for one that has lost its torque."""
        silent = self._measuring.silent(now, SILENCE)
        if len(silent) == len(self._servos):
            self._become(ArmState.SILENT, NO_SERVO)
        elif silent:
            why = self._measuring.why_not(silent)
            if self._missing:
                self._reason = why
            self._missing |= self._fault(why)
        elif self._missing:
            self._missing, self._reason = False, ''
            if self.state is ArmState.FAULTED:
                self._hold()
                for _ in self._servos[1:]:
                    self._check_torque()
        if self.state in WITH_GOALS or self.torque.on:
            self._check_torque()

    def _check_torque(self) -> None:
        """Check the torque of one servo per cycle."""
        before = self.torque.loss
        self.torque.check()
        if self.state is ArmState.PASSIVE:
            if not self.torque.on:
                unwatch(self._transport, self._servos)
                self._released()
        elif self.torque.loss:
            if not self._fault(self.torque.loss) and self._reason == before:
                self._reason = self.torque.loss
        elif self.state in POWERED and self.torque.stopped():
            self._watch_again()
            self._hold()

    def _watch_others(self) -> None:
        """Look whether another program has changed what holds the arm."""
        self._cycles += 1
        if self._cycles % LOOK or self.state not in POWERED or not self._soft_start.ended:
            return
        limit = self._options.torque_limit
        found = self.torque.changed(limit)
        if found is None:
            return
        servo, turns, reason = found
        if 'overload' in self._measuring.lasting.get(servo.joint.name, ()):
            return  # its firmware may have done that
        self._fault(reason)
        if turns:
            with contextlib.suppress(ArmError):  # it is told that it does not answer
                switch_off(self._transport, [servo])
        else:
            limit_torque(self._transport, [(servo, limit)])  # it would sink

    def _watch_again(self) -> None:
        with contextlib.suppress(ArmError):  # a servo does not answer: again in the next cycles
            watch(self._transport, self._servos)

    def _move(self, now: float, dt: float) -> None:
        commands: dict[str, float] = {}
        if now - self._moved > self._options.command_timeout:
            self._commands.paused()
        if self._commands.latched or self.state is ArmState.FAULTED:
            self._commands.clear()
        else:
            commands = self._commands.fresh(self._options.command_timeout)
        if self.state is ArmState.FOLLOWING and not commands:
            self._hold()
        elif self.state is ArmState.HOLDING and commands:
            self._become(ArmState.FOLLOWING, '')
        limited = set(self.goals.limited)
        torque = self._soft_start.grow(self._transport, self._options.torque_limit, now)
        self.goals.follow(commands, self.measured, dt, torque, torque >= self._options.torque_limit)
        self._counts.limited += len(self.goals.limited.keys() - limited)
        write_goals(self._transport, self._servos, self.goals.sent, self._calibration)

    # Requests

    def switch_on(self, asked: int) -> None:
        """Switch the torque on where the arm is. Raises ArmError, and the torque is as before.

        asked: the number of the newest wish before; newer ones count.
        """
        self._power()
        self._commands.release(asked)

    def _power(self) -> None:
        for servo, joint in zip(self._servos, self._calibration.joints, strict=True):
            check_place(self._transport, servo, joint)
        before = self.torque.on
        self.torque.on = {servo.joint.name for servo in self._servos}
        try:
            powered = switch_on(self._transport, self._servos, self._options.torque_limit)
        except ArmError as error:
            self.torque.look(before | (error.names if isinstance(error, LeftOnError) else set()))
            if self.state in WITH_GOALS:
                self._watch_again()
            raise
        self.torque.switched_on()
        self._soft_start.begin((one.servo, one.share) for one in powered)
        self._measuring.know({one.servo.joint.name: one.present for one in powered}, self._soft_start.since)
        self._measure()
        self._moved = self.time
        self.goals.begin({one.servo.joint.name: one.goal for one in powered}, before)
        self._hold()

    def switch_off(self, published: Callable[[], None], asked: int) -> None:
        """Lower the arm slowly, and switch the torque off; published is called meanwhile.

        A hold that is newer than the wish number asked ends that. Raises ArmError.
        """
        before, seen = (self.state, self._reason), dict(self.measured)
        held = self.state in WITH_GOALS

        def measure() -> None:
            self._measure()
            seen.update(self.measured)
            published()

        self._commands.clear()
        self._become(ArmState.LOWERING, BEING_OFF)
        if self.torque.is_left():
            known = self._soft_start.confirmed(self._servos, self._options.torque_limit) if held else {}
            is_held = functools.partial(self._commands.held_since, asked)
            shares = lower(self._transport, self._servos, known, measure, is_held)
            if shares is not None:
                self._keep(before, shares, seen)
                raise ArmError('a hold came while the arm was lowered: its torque stays on')
        try:
            switch_off(self._transport, self._servos, measure)
        except ArmError:
            self.torque.look(self.torque.on)
            self._let_go()
            raise
        self._released()

    def _keep(
        self, before: tuple[ArmState, str], shares: Shares, measured: Mapping[str, JointMeasurement]
    ) -> None:
        """End a lowering: state and reason are as before, and the torque grows from shares on."""
        self._become(*before)
        if self.state in WITH_GOALS:
            self._watch_again()
            self._soft_start.begin(shares)
            self.goals.hold(measured)

    def hold(self) -> None:
        """Hold the arm where it is measured; whoever asks latches the commands. Raises ArmError."""
        if self.state is ArmState.PASSIVE:
            self._commands.reject_hold()
            raise ArmError(not_held(self.reason))
        if self.state in POWERED:
            self._hold()

    def clear(self, asked: int) -> None:
        """As switch_on; the torque of overloaded servos is off for a moment."""
        if self.state is ArmState.PASSIVE:
            raise ArmError(not_held(self.reason))
        for servo in self._servos:
            if 'overload' in self._measuring.lasting.get(servo.joint.name, ()):
                reset(self._transport, servo)
        self.switch_on(asked)

    def come_to_rest(self) -> None:
        """Send the servos where their joints are: nobody commands them any more. Raises PortError."""
        if self.state in POWERED:
            self._hold()
            write_goals(self._transport, self._servos, self.goals.sent, self._calibration)
        if self.state in WITH_GOALS or self.torque.on:
            unwatch(self._transport, self._servos)

    # Changes of state

    def _released(self) -> None:
        self.torque.switched_off()
        self._commands.lowered()
        self._let_go()

    def _let_go(self) -> None:
        """Command nothing any more."""
        self.goals.forget()
        self._soft_start.end()
        self._missing = False
        self._become(ArmState.PASSIVE, '')

    def _hold(self, state: ArmState = ArmState.HOLDING, reason: str = '') -> None:
        self._commands.clear()
        self.goals.hold(self.measured)
        self._become(state, reason)

    def _fault(self, reason: str) -> bool:
        """Take no commands for a reason; return whether there was none before."""
        if self.state in POWERED:
            self._hold(ArmState.FAULTED, reason)
            return True
        if self.state is ArmState.PASSIVE and not self._reason:
            self._reason = reason
            return True
        return False

    def _become(self, state: ArmState, reason: str) -> None:
        self.state, self._reason = state, reason


def not_held(reason: str) -> str:
    """Why a passive arm can neither hold nor be cleared; reason: why it is passive."""
    if reason:
        return f'this driver does not hold the arm: {reason}'
    return 'the torque is off: the arm holds nothing'


def write_goals(
    transport: Transport,
    servos: Sequence[ServoSurvey],
    positions: Mapping[str, float],
    calibration: ArmCalibration,
) -> None:
    """Send the servos to positions [rad or m], by joint; those that are not named stay."""
    data = {}
    register = servos[0].model['goal_position']
    low, high = register.range
    for joint in calibration.joints:
        if joint.name in positions:
            tick = min(max(joint.tick(positions[joint.name]), low), high)
            data[joint.profile.id] = register.encode(tick)
    if data:
        transport.sync_write(register.address, data)
