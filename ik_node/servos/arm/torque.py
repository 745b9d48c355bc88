# SPDX-License-Identifier: Apache-2.0
"""The torque of the servos of an arm: on without a jump, grown, watched, and lowered before it is off.

The goal of a servo is where its joint is before the servo gets any torque.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from ik_node.servos.bus.models import RADIANS_PER_TICK, TICKS_PER_TURN, ServoModel
from ik_node.servos.calibration.zeros import JointCalibration
from ik_node.steady import steady

from .goals import ACCELERATION, MAX_LEAD, SAG
from .registers import ArmError, Servo, ServoSurvey, named_all, wrong_supply

OUTSIDE = 0.1  # [rad] by which a joint may be outside its limits when torque is switched on
STILL = 6  # [ticks] that a joint at rest may move between two readings:
BETWEEN = 0.01  # [s]
REST_TRIES = 30  # readings until a joint counts as moving
FIRST_TORQUE = 0.2  # share of the torque at the beginning
SOFT_START = 1.0  # [s] in which the torque grows from nothing to all
CHECK_PERIOD = 0.1  # [s] between two checks whether the servos have their limits: none acknowledges them
LOWERING = 3.0  # [s] in which the torque vanishes
LOWERING_PERIOD = 0.01  # [s]

# [ticks] that a joint may be beyond the range of its servo, which drives it inside: with the play of its
# gears by less than a degree
BEYOND = 4
STEP = 16  # [ticks] that a joint keeps from the step from 4095 to 0: across it a servo turns all the way back
OFF_TRIES = 6  # to switch a servo off: the bus may be bad, and it must not stay on unnoticed
WATCHDOG = 50  # [20 ms] without any packet after which a Dynamixel stops by itself
Shares = list[tuple[ServoSurvey, float]]  # servos with shares of the torque that their joints allow


class PlaceError(ArmError):
    """A joint stands where its servo must not get torque."""


@dataclass(frozen=True)
class Powered:
    """A servo with torque: its share of what the joint may use, where it is and where it goes [ticks]."""

    servo: ServoSurvey
    share: float
    present: int
    goal: int


class Torque:
    """on: the joints whose servos have torque, as far as that is known."""

    def __init__(self, servos: Sequence[ServoSurvey], limit: float = 1.0) -> None:
        """limit: share of the torque that each joint may use in the end."""
        self._servos, self._limit = servos, limit
        self.on: set[str] = set()
        self._lost: dict[str, ServoSurvey] = {}  # servos that have lost it, by joint
        self._growing: deque[tuple[ServoSurvey, float]] = deque()  # first shares, until the limit is read back
        self.since = self._confirmed = 0.0  # [s] when the torque began to grow; when limits were read back
        self._checked = self._compared = 0  # the servo that was checked last, and the register

    # On and off

    def switch_on(self) -> list[Powered]:
        """Switch the torque of all servos on, each held where it is.

        Those that were off get FIRST_TORQUE, or the limit if that is less. Every goal of these is at the
        present position, and read back, before any servo gets torque; those that were on keep a goal from
        which their joint only sags.
        Raises ArmError, before anything is written if the supply has too many volts; servos that were off are
        off then.
        """
        known = self.on
        self.on = {servo.joint.name for servo in self._servos}
        switched: list[ServoSurvey] = []
        try:
            before = [has_torque(servo) for servo in self._servos]
            check_voltage([servo for servo, on in zip(self._servos, before, strict=True) if not on])
            powered = self._powered(before, switched)
            self.watch()
        except ArmError as error:
            off = _off(switched)
            left = [servo.joint for servo, is_off in zip(switched, off, strict=True) if is_off is not True]
            self.look(known | {joint.name for joint in left})
            if left:
                raise ArmError(f'{error}; {named_all(left)} may have torque now') from None
            raise
        self._lost = {}
        self.grow_from((one.servo, one.share) for one in powered)
        return powered

    def _powered(self, before: Sequence[bool], switched: list[ServoSurvey]) -> list[Powered]:
        """Prepare all servos, then switch them on; switched: to which those are added that get torque."""
        first = min(FIRST_TORQUE, self._limit)
        shares = [_prepare(servo, on, first) for servo, on in zip(self._servos, before, strict=True)]
        powered = []
        for servo, on, share in zip(self._servos, before, shares, strict=True):
            present = _at_rest(servo)
            goal = _goal(servo, present, on)
            servo.write('goal_position', goal)
            powered.append(Powered(servo, share, present, goal))
            if not on:
                switched.append(servo)
                servo.write('torque_enable', 1)
        return powered

    def switch_off(self, meanwhile: Callable[[], None] = lambda: None) -> None:
        """Switch the torque of all servos off, also of those that report a fault. Raises ArmError.

        meanwhile: called between the attempts.
        """
        self._growing.clear()
        off = _off(self._servos, meanwhile)
        found = []
        if on := [servo.joint for servo, is_off in zip(self._servos, off, strict=True) if is_off is False]:
            found.append(f'the torque of {named_all(on)} stays on')
        if silent := [servo.joint for servo, is_off in zip(self._servos, off, strict=True) if is_off is None]:
            found.append(f'no answer from {named_all(silent)}, whose torque may still be on')
        if found:
            self.look(self.on)
            raise ArmError(f'{"; ".join(found)}: support the arm, and unplug its power')
        self.unwatch()
        self.forget()

    def forget(self) -> None:
        """Note that no servo has torque."""
        self.on, self._lost = set(), {}

    def lower(self, driven: bool, measure: Callable[[], None], is_held: Callable[[], bool]) -> Shares | None:
        """Let the torque vanish; return the shares of the servos if is_held ended that, None at the end.

        The torque of a servo sinks from what it has: it is never raised. A servo that does not answer is
        lowered from the limit that it confirmed, if the arm was driven, and otherwise once it answers; in the
        end it is switched off as it is. measure: called in each step.
        """
        growing = {servo.joint.id for servo, _ in self._growing}
        confirmed = {servo.joint.id for servo in self._servos if driven and servo.joint.id not in growing}
        begun, unread = steady(), deque(self._servos)
        first: dict[int, tuple[ServoSurvey, float, float]] = {}  # share, and when it was read [s], by id

        def read_shares() -> None:
            """Prepare servos, and read what they have, until one does not answer."""
            while unread:
                servo = unread[0]
                id = servo.joint.id
                try:
                    if servo.has('bus_watchdog'):  # stopped by it, a servo accepts no limit
                        servo.write('bus_watchdog', 0)
                    first[id] = servo, torque_share(servo), steady()
                    unread.popleft()
                except ArmError:
                    if id in confirmed and id not in first:
                        first[id] = servo, self._limit, steady()
                    unread.rotate(-1)
                    return

        def shares() -> Shares:
            now = steady()
            return [(servo, share * max(1.0 - (now - since) / LOWERING, 0.0)) for servo, share, since in first.values()]

        while True:
            now = steady()
            if now < begun + LOWERING:
                read_shares()
            limit_torque(shares())
            if now >= max((since for _, _, since in first.values()), default=begun) + LOWERING:
                return None
            measure()
            if is_held():
                return shares()
            steady.sleep(LOWERING_PERIOD)

    # The soft start

    def grow_from(self, shares: Iterable[tuple[ServoSurvey, float]]) -> None:
        """Let the torque of servos grow from their shares to the limit."""
        self._growing, self.since = deque(shares), steady()

    @property
    def is_grown(self) -> bool:
        """Whether all servos have their limit."""
        return not self._growing

    def grow(self, now: float) -> float:
        """Write the torque limits at a time (steady); return the share that all servos may use."""
        if not self._growing:
            return self._limit
        grown = (now - self.since) / SOFT_START
        shares = [(servo, min(first + grown, self._limit)) for servo, first in self._growing]
        limit_torque(shares)
        if grown > 1.0 and now > self._confirmed + CHECK_PERIOD:
            self._confirmed = now
            self._confirm()
        return min(share for _, share in shares)

    def _confirm(self) -> None:
        while self._growing:
            servo, _ = self._growing[0]
            if servo.try_read('torque_limit') != self._full(servo):
                self._growing.rotate(-1)
                return
            self._growing.popleft()

    def _full(self, servo: ServoSurvey) -> int:
        return servo.model['torque_limit'].count(self._limit * servo.joint.torque)

    # Checks of servos that have it

    def read(self) -> None:
        """Read which servos have torque. Raises ArmError."""
        self.on = {servo.joint.name for servo in self._servos if has_torque(servo)}

    def look(self, known: set[str]) -> None:
        """Look which servos have torque; those that do not answer count as known, the joints with torque."""
        found = {servo.joint.name: may_have_torque(servo) for servo in self._servos}
        self.on = {name for name, has in found.items() if has or (has is None and name in known)}

    def is_left(self) -> bool:
        """Whether a servo may have torque."""
        return any(may_have_torque(servo) is not False for servo in self._servos)

    def left(self, is_unwanted: bool) -> str:
        """Which servos of an arm that nobody drives have torque, and what helps."""
        servos = named_all(servo.joint for servo in self._servos if servo.joint.name in self.on)
        if is_unwanted:
            return f'torque may still be on in {servos}: support the arm, and switch it off again'
        return f'torque is on in {servos}'

    def check_next(self) -> None:
        """Check one servo per call: a dip of the supply switches it off, and it has lost what was set."""
        self._checked = (self._checked + 1) % len(self._servos)
        servo = self._servos[self._checked]
        has, name = may_have_torque(servo), servo.joint.name
        if has and name not in self._lost:
            self.on.add(name)
        elif has is False:
            self.on.discard(name)
            self._lost[name] = servo

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

    def changed(self) -> tuple[ServoSurvey, bool, str] | None:
        """Read one register of one servo per call that only another program changes.

        Return the servo, whether it goes to no position any more, and a sentence; None if nothing is changed.
        """
        self._compared = (self._compared + 1) % (2 * len(self._servos))
        servo, is_mode = self._servos[self._compared // 2], self._compared % 2 == 1
        name = 'operating_mode' if is_mode else 'torque_limit'
        allowed = servo.model.position_modes if is_mode else {self._full(servo)}
        found = {servo.try_read(name) for _ in range(2)}  # one may be damaged
        if len(found) > 1 or found <= {None, *allowed}:
            return None
        return (
            servo,
            is_mode,
            f'{servo} has {name} {found.pop()}, it must be {" or ".join(map(str, sorted(allowed)))}: another '
            'program has changed it. End that program, then clear the fault',
        )

    # Watchdogs of the servos, where they have one

    def watch(self) -> None:
        """Let servos stop by themselves when nothing is heard for WATCHDOG. Raises ArmError."""
        for servo in self._servos:
            if servo.has('bus_watchdog'):
                servo.write('bus_watchdog', 0)
                servo.write('bus_watchdog', WATCHDOG)

    def watch_again(self) -> None:
        """Set the watchdogs as far as the servos answer."""
        with contextlib.suppress(ArmError):  # a servo does not answer: again in the next cycles
            self.watch()

    def unwatch(self) -> None:
        """Stop the watchdogs, which would keep other programs from moving the arm."""
        for servo in self._servos:
            if servo.has('bus_watchdog'):
                with contextlib.suppress(ArmError):
                    servo.write('bus_watchdog', 0)

    def is_stopped(self) -> bool:
        """Whether the watchdog of the servo that was checked last has stopped it, or is not set."""
        servo = self._servos[self._checked]
        found = servo.try_read('bus_watchdog') if servo.has('bus_watchdog') else None
        return found is not None and found <= 0


def check_place(servo: ServoSurvey, calibration: JointCalibration) -> None:
    """Raise PlaceError if a joint is outside its limits by more than OUTSIDE, or its servo would move it.

    Where its servo has torque already, its goal counts: where the joint hangs may be beyond its range.
    """
    tick = servo.read('present_position')
    if not has_torque(servo):
        check_range(servo, tick)
    position = calibration.position(tick)
    scale = servo.joint.scale
    if not calibration.lower - OUTSIDE * scale <= position <= calibration.upper + OUTSIDE * scale:
        raise PlaceError(
            f'{servo} is at {position:.3f}, its limits are {calibration.lower:.3f} to '
            f'{calibration.upper:.3f}: move it inside by hand, or set its zero'
        )


def check_range(servo: ServoSurvey, tick: int) -> None:
    """Raise PlaceError if a servo without torque would move its joint, once it has torque."""
    if servo.model.homing_sign > 0:
        return
    low, high = STEP, TICKS_PER_TURN - 1 - STEP
    if servo.memory.high:  # 0 to 0: no range
        low, high = max(low, servo.memory.low - BEYOND), min(high, servo.memory.high + BEYOND)
    if not low <= tick <= high:
        raise PlaceError(
            f'{servo} is at tick {tick}, its servo can hold it from {low} to {high} only: move it inside by hand'
        )


def check_voltage(servos: Iterable[ServoSurvey]) -> None:
    """Raise ArmError if servos have more volts than they allow: with torque they would burn."""
    for servo in servos:
        counts = [servo.read('present_voltage') for _ in range(2)]
        volts = servo.model['present_voltage'].quantity(min(counts))  # one of them may be damaged
        if volts > servo.volts[1] > 0.0:
            raise ArmError(f'{servo}: the supply has {wrong_supply(volts, servo.volts)}')


def reset(servo: ServoSurvey) -> None:
    """End the overload of a servo: its torque is off for some milliseconds. Raises ArmError."""
    servo.write('goal_position', _goal(servo, _at_rest(servo), True))
    for enable in (0, 1):
        servo.write('torque_enable', enable)


def has_torque(servo: Servo) -> bool:
    """Whether a servo has torque. Raises ArmError."""
    return servo.read_constant('torque_enable') == 1


def may_have_torque(servo: Servo) -> bool | None:
    """Whether a servo has torque: that it has none is read twice. None: it does not answer."""
    for _ in range(2):
        found = servo.try_read('torque_enable')
        if found != 0:
            return None if found is None else True
    return False


def torque_share(servo: Servo) -> float:
    """Return the share of what its joint allows that the torque of a servo has. Raises ArmError."""
    count = servo.read_constant('torque_limit')
    return servo.model['torque_limit'].quantity(count) / servo.joint.torque


def limit_torque(shares: Shares) -> None:
    """Limit the torque of servos to shares of what their joints allow."""
    if not shares:
        return
    data = {}
    for servo, share in shares:
        register = servo.model['torque_limit']
        data[servo.joint.id] = register.encode(register.count(share * servo.joint.torque))
    first = shares[0][0]
    first.transport.sync_write(first.model['torque_limit'].address, data)


def _prepare(servo: ServoSurvey, on: bool, first: float) -> float:
    """Set what moves a servo: never what an earlier program has left. Return its share of the torque.

    first: that share, of a servo that is off.
    """
    servo.check_mode()
    if servo.has('bus_watchdog'):
        servo.write('bus_watchdog', 0)
    if on:  # with less it would sink
        share = torque_share(servo)
    else:
        _check_shutdown(servo)
        share = first
        servo.write('torque_limit', servo.model['torque_limit'].count(share * servo.joint.torque))
    servo.write('goal_position', _goal(servo, _at_rest(servo), on))
    if servo.has('goal_time'):
        servo.write('goal_time', 0)
    speed, acceleration = servo.joint.fastest / servo.joint.unit, ACCELERATION
    if servo.time_profile:
        speed = acceleration = 0.0
    servo.write('profile_velocity', _count(servo.model, 'profile_velocity', speed))
    servo.write('profile_acceleration', _count(servo.model, 'profile_acceleration', acceleration))
    return share


def _check_shutdown(servo: Servo) -> None:
    """Raise ArmError if a servo has shut down, and takes no torque before it restarts."""
    model = servo.model
    found = model.conditions_of(servo.read('status')) if model.homing_sign > 0 else []
    if found:
        raise ArmError(
            f'{servo} has shut down because of {" and ".join(found)}: support the arm, and switch its power off and on'
        )


def _count(model: ServoModel, name: str, quantity: float) -> int:
    return min(model[name].count(quantity), 254 if model[name].size == 1 else model[name].range[1])


def _at_rest(servo: Servo) -> int:
    """Return the position [ticks] of a servo at rest. Raises ArmError if it moves."""
    before = servo.read('present_position')
    for _ in range(REST_TRIES):
        steady.sleep(BETWEEN)
        now = servo.read('present_position')
        if abs(now - before) <= STILL:
            return now
        before = now
    raise ArmError(f'{servo} moves: hold the arm still while its torque is switched on')


def _goal(servo: Servo, present: int, on: bool) -> int:
    """Return the goal [ticks] that holds a servo where it is.

    Held where it sags to, it would sag again: a bus that comes and goes would let the arm creep down.
    """
    if on:
        goal = servo.read_constant('goal_position')
        if abs(goal - present) * RADIANS_PER_TICK <= SAG + MAX_LEAD:
            return goal
    return present


def _off(servos: Sequence[Servo], meanwhile: Callable[[], None] = lambda: None) -> list[bool | None]:
    """Switch servos off, whatever they answer; return whether each has no torque, None without an answer."""
    off: list[bool | None] = [None] * len(servos)
    for attempt in range(OFF_TRIES):
        if attempt:
            meanwhile()
        for k, servo in enumerate(servos):
            if off[k] is not True:
                register = servo.model['torque_enable']
                servo.transport.write(servo.joint.id, register.address, register.encode(0))
                has = may_have_torque(servo)
                off[k] = off[k] if has is None else not has
        if all(off):
            break
    return off
