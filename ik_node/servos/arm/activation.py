# SPDX-License-Identifier: Apache-2.0
"""Torque on and off without a jump: the goal is where the joint is before its servo gets any torque."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ik_node.servos.arm.survey import (
    ArmError,
    ServoSurvey,
    check_mode,
    named,
    named_all,
    read,
    read_constant,
    try_read,
    write,
    wrong_supply,
)
from ik_node.servos.bus.models import RADIANS_PER_TICK, TICKS_PER_TURN, ServoModel
from ik_node.servos.bus.transport import Transport
from ik_node.servos.calibration.zeros import JointCalibration
from ik_node.steady import steady

from .goals import ACCELERATION, MOST_LEAD, SAG

OUTSIDE = 0.1  # [rad] by which a joint may be outside its limits when torque is switched on
STILL = 6  # [ticks] that a joint at rest may move between two readings:
BETWEEN = 0.01  # [s]
REST_TRIES = 30  # readings until a joint counts as moving
FIRST_TORQUE = 0.2  # share of the torque at the beginning

# [ticks] that a joint may be beyond the range of its servo, which drives it inside: with the play of its
# gears by less than a degree
BEYOND = 4
STEP = 16  # [ticks] that a joint keeps from the step from 4095 to 0: across it a servo turns all the way back
OFF_TRIES = 6  # to switch a servo off: the bus may be bad, and it must not stay on unnoticed
Shares = list[tuple[ServoSurvey, float]]  # servos with shares of the torque that their joints allow
WATCHDOG = 50  # [20 ms] without any packet after which a Dynamixel stops by itself


@dataclass(frozen=True)
class Powered:
    """A servo with torque: its share of what the joint may use, where it is and where it goes [ticks]."""

    servo: ServoSurvey
    share: float
    present: int
    goal: int


class LeftOnError(ArmError):
    """The torque was not switched on, and some servos may have it; names: of their joints."""

    def __init__(self, message: str, names: set[str]) -> None:
        super().__init__(message)
        self.names = names


class VoltageError(ArmError):
    """The supply has more volts than the servos allow."""


class PlaceError(ArmError):
    """A joint stands where its servo must not get torque."""


def check_place(transport: Transport, servo: ServoSurvey, calibration: JointCalibration) -> None:
    """Raise PlaceError if a joint is outside its limits by more than OUTSIDE, or its servo would move it.

    Where its servo has torque already, its goal counts: where the joint hangs may be beyond its range.
    """
    tick = read(transport, servo.joint, servo.model, 'present_position')
    if not has_torque(transport, servo):
        check_range(servo, tick)
    position = calibration.position(tick)
    scale = servo.joint.scale
    if not calibration.lower - OUTSIDE * scale <= position <= calibration.upper + OUTSIDE * scale:
        raise PlaceError(
            f'{named(servo.joint)} is at {position:.3f}, its limits are {calibration.lower:.3f} to '
            f'{calibration.upper:.3f}: move it inside by hand, or set its zero'
        )


def check_voltage(transport: Transport, servos: Sequence[ServoSurvey]) -> None:
    """Raise VoltageError if servos have more volts than they allow: with torque they would burn."""
    for servo in servos:
        counts = [read(transport, servo.joint, servo.model, 'present_voltage') for _ in range(2)]
        volts = servo.model['present_voltage'].quantity(min(counts))  # one of them may be damaged
        if volts > servo.volts[1] > 0.0:
            wrong = wrong_supply(volts, servo.volts)
            raise VoltageError(f'{named(servo.joint)}: the supply has {wrong}')


def check_range(servo: ServoSurvey, tick: int) -> None:
    """Raise PlaceError if a servo without torque would move its joint, once it has torque."""
    if servo.model.homing_sign > 0:
        return
    low, high = STEP, TICKS_PER_TURN - 1 - STEP
    if servo.memory.high:  # 0 to 0: no range
        low, high = max(low, servo.memory.low - BEYOND), min(high, servo.memory.high + BEYOND)
    if not low <= tick <= high:
        raise PlaceError(
            f'{named(servo.joint)} is at tick {tick}, its servo can hold it from {low} to {high} only: '
            'move it inside by hand'
        )


def switch_on(
    transport: Transport, servos: Sequence[ServoSurvey], most: float = FIRST_TORQUE
) -> list[Powered]:
    """Switch the torque of all servos on, each held where it is; return them all.

    The share is FIRST_TORQUE, and not more than most, for those that were off. Every goal of these is at the
    present position, and read back, before any servo gets torque; those that were on keep a goal from which
    their joint only sags.
    Raises ArmError, VoltageError before anything is written; servos that were off are off then.
    """
    before = [has_torque(transport, servo) for servo in servos]
    check_voltage(transport, [servo for servo, on in zip(servos, before, strict=True) if not on])
    switched: list[ServoSurvey] = []
    powered = []
    try:
        first = min(FIRST_TORQUE, most)
        shares = [_prepare(transport, servo, on, first) for servo, on in zip(servos, before, strict=True)]
        for servo, on, share in zip(servos, before, shares, strict=True):
            present = _at_rest(transport, servo)
            goal = _goal(transport, servo, present, on)
            write(transport, servo.joint, servo.model, 'goal_position', goal)
            powered.append(Powered(servo, share, present, goal))
            if not on:
                switched.append(servo)
                write(transport, servo.joint, servo.model, 'torque_enable', 1)
        watch(transport, servos)
    except ArmError as error:
        off = _off(transport, switched)
        left = [servo.joint for servo, is_off in zip(switched, off, strict=True) if is_off is not True]
        if left:
            message = f'{error}; {named_all(left)} may have torque now'
            raise LeftOnError(message, {joint.name for joint in left}) from None
        raise
    return powered


def reset(transport: Transport, servo: ServoSurvey) -> None:
    """End the overload of a servo: its torque is off for some milliseconds. Raises ArmError."""
    goal = _goal(transport, servo, _at_rest(transport, servo), True)
    write(transport, servo.joint, servo.model, 'goal_position', goal)
    for enable in (0, 1):
        write(transport, servo.joint, servo.model, 'torque_enable', enable)


def has_torque(transport: Transport, servo: ServoSurvey) -> bool:
    """Whether a servo has torque. Raises ArmError."""
    return read_constant(transport, servo.joint, servo.model, 'torque_enable') == 1


def may_have_torque(transport: Transport, servo: ServoSurvey) -> bool | None:
    """Whether a servo has torque: that it has none is read twice. None: it does not answer."""
    for _ in range(2):
        found = try_read(transport, servo, 'torque_enable')
        if found != 0:
            return None if found is None else True
    return False


def watch(transport: Transport, servos: Sequence[ServoSurvey]) -> None:
    """Let servos with a watchdog stop by themselves when nothing is heard for WATCHDOG."""
    for servo in servos:
        if 'bus_watchdog' in servo.model.registers:
            write(transport, servo.joint, servo.model, 'bus_watchdog', 0)
            write(transport, servo.joint, servo.model, 'bus_watchdog', WATCHDOG)


def unwatch(transport: Transport, servos: Sequence[ServoSurvey]) -> None:
    """Stop the watchdogs, which would keep other programs from moving the arm."""
    for servo in servos:
        if 'bus_watchdog' in servo.model.registers:
            with contextlib.suppress(ArmError):
                write(transport, servo.joint, servo.model, 'bus_watchdog', 0)


def switch_off(
    transport: Transport, servos: Sequence[ServoSurvey], meanwhile: Callable[[], None] = lambda: None
) -> None:
    """Switch the torque of all servos off, also of those that report a fault. Raises ArmError.

    meanwhile: called between the attempts.
    """
    off = _off(transport, servos, meanwhile)
    found = []
    if on := [servo.joint for servo, is_off in zip(servos, off, strict=True) if is_off is False]:
        found.append(f'the torque of {named_all(on)} stays on')
    if silent := [servo.joint for servo, is_off in zip(servos, off, strict=True) if is_off is None]:
        found.append(f'no answer from {named_all(silent)}, whose torque may still be on')
    if found:
        raise ArmError(f'{"; ".join(found)}: support the arm, and unplug its power')
    unwatch(transport, servos)


def torque_share(transport: Transport, servo: ServoSurvey) -> float:
    """Return the share of what its joint allows that the torque of a servo has. Raises ArmError."""
    count = read_constant(transport, servo.joint, servo.model, 'torque_limit')
    return servo.model['torque_limit'].quantity(count) / servo.joint.torque


def limit_torque(transport: Transport, shares: Shares) -> None:
    """Limit the torque of servos to shares of what their joints allow."""
    data = {}
    for servo, share in shares:
        register = servo.model['torque_limit']
        data[servo.joint.id] = register.encode(register.count(share * servo.joint.torque))
    transport.sync_write(shares[0][0].model['torque_limit'].address, data)


def _prepare(transport: Transport, servo: ServoSurvey, on: bool, first: float) -> float:
    """Set what moves a servo: never what an earlier program has left. Return its share of the torque.

    first: that share, of a servo that is off.
    """
    joint, model = servo.joint, servo.model
    check_mode(transport, joint, model)
    if 'bus_watchdog' in model.registers:
        write(transport, joint, model, 'bus_watchdog', 0)
    if on:  # with less it would sink
        share = torque_share(transport, servo)
    else:
        _check_shutdown(transport, servo)
        share = first
        write(transport, joint, model, 'torque_limit', model['torque_limit'].count(share * joint.torque))
    present = _at_rest(transport, servo)
    write(transport, joint, model, 'goal_position', _goal(transport, servo, present, on))
    if 'goal_time' in model.registers:
        write(transport, joint, model, 'goal_time', 0)
    speed, acceleration = joint.fastest / joint.unit, ACCELERATION
    if servo.time_profile:
        speed = acceleration = 0.0
    write(transport, joint, model, 'profile_velocity', _count(model, 'profile_velocity', speed))
    write(
        transport, joint, model, 'profile_acceleration', _count(model, 'profile_acceleration', acceleration)
    )
    return share


def _check_shutdown(transport: Transport, servo: ServoSurvey) -> None:
    """Raise ArmError if a servo has shut down, and takes no torque before it restarts."""
    joint, model = servo.joint, servo.model
    found = model.conditions_of(read(transport, joint, model, 'status')) if model.homing_sign > 0 else []
    if found:
        raise ArmError(
            f'{named(joint)} has shut down because of {" and ".join(found)}: support the arm, and switch its '
            'power off and on'
        )


def _count(model: ServoModel, name: str, quantity: float) -> int:
    return min(model[name].count(quantity), 254 if model[name].size == 1 else model[name].range[1])


def _at_rest(transport: Transport, servo: ServoSurvey) -> int:
    """Return the position [ticks] of a servo at rest. Raises ArmError if it moves."""
    joint, model = servo.joint, servo.model
    before = read(transport, joint, model, 'present_position')
    for _ in range(REST_TRIES):
        steady.sleep(BETWEEN)
        now = read(transport, joint, model, 'present_position')
        if abs(now - before) <= STILL:
            return now
        before = now
    raise ArmError(f'{named(joint)} moves: hold the arm still while its torque is switched on')


def _goal(transport: Transport, servo: ServoSurvey, present: int, on: bool) -> int:
    """Return the goal [ticks] that holds a servo where it is.

    Held where it sags to, it would sag again: a bus that comes and goes would let the arm creep down.
    """
    if on:
        goal = read_constant(transport, servo.joint, servo.model, 'goal_position')
        if abs(goal - present) * RADIANS_PER_TICK <= SAG + MOST_LEAD:
            return goal
    return present


def _off(
    transport: Transport, servos: Sequence[ServoSurvey], meanwhile: Callable[[], None] = lambda: None
) -> list[bool | None]:
    """Switch servos off, whatever they answer; return whether each has no torque, None without an answer."""
    off: list[bool | None] = [None] * len(servos)
    for attempt in range(OFF_TRIES):
        if attempt:
            meanwhile()
        for k, servo in enumerate(servos):
            if off[k] is not True:
                register = servo.model['torque_enable']
                transport.write(servo.joint.id, register.address, register.encode(0))
                has = may_have_torque(transport, servo)
                off[k] = off[k] if has is None else not has
        if all(off):
            break
    return off
