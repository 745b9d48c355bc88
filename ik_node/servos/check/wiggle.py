# SPDX-License-Identifier: Apache-2.0
"""Wiggle: the first motion of an arm, of one joint by 3 degrees to both sides with little torque."""

from __future__ import annotations

import math
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from ik_node.console import say
from ik_node.servos.arm.activation import check_range, switch_off, switch_on
from ik_node.servos.arm.survey import TIME_PROFILE, ArmError, ServoSurvey, named, read, write
from ik_node.servos.bus.models import RADIANS_PER_TICK, TICKS_PER_TURN
from ik_node.servos.bus.transport import PortError, Transport
from ik_node.servos.calibration.zeros import MARGIN, STEP_MARGIN
from ik_node.servos.check.findings import ServoFinding
from ik_node.steady import steady

SWING = round(math.radians(3.0) / RADIANS_PER_TICK)  # [ticks] to each side
SPEED = 170.0  # [ticks/s]: 15 degrees/s
TORQUE = 0.3  # share of the torque that the profile allows
PERIOD = 0.02  # [s] from one goal to the next
SETTLING = 0.4  # [s] for the joint to arrive
LOST = 3 * SWING  # [ticks] from goal to joint: something is wrong
FOLLOWED = 0.5  # share of the swing that a joint makes at least
MOTION = 'torque_limit', 'profile_velocity', 'profile_acceleration', 'bus_watchdog'  # are left as found
INTERRUPTS = signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT


def wiggle(transport: Transport, findings: Sequence[ServoFinding], name: str) -> int:
    """Turn a joint to both sides, and say how far it went; 0 if it did. Raises PortError and ArmError.

    Its torque is off before and after, also if this is interrupted.
    """
    servo = next(servo for servo in findings if servo.joint.name == name)
    joint, model = servo.joint, servo.model
    if servo.fault or servo.recorded is None:
        raise ArmError(f'{named(joint)} {servo.fault}')
    if servo.counts['operating_mode'] not in model.position_modes:
        raise ArmError(f'{named(joint)} is in operating mode {servo.counts["operating_mode"]}')
    _ask(servo)
    if read(transport, joint, model, 'torque_enable'):
        raise ArmError(f'{named(joint)} has torque: end the program that drives it, or switch the power off')
    place = read(transport, joint, model, 'present_position')
    timed = bool(servo.counts.get('drive_mode', 0) & TIME_PROFILE)
    one = ServoSurvey(joint, model, servo.recorded, timed, volts=servo.volts)
    _sides(servo, place)  # raises before there is torque
    check_range(one, place)
    try:
        reached = _turned(transport, one, servo)
    except PortError as error:
        raise PortError(f'{error}. {named(joint)} may still have torque: switch its power off') from None
    return _tell(servo, reached)


def _turned(transport: Transport, servo: ServoSurvey, finding: ServoFinding) -> dict[int, int]:
    """Turn a joint to both sides if it may; return how far it went [ticks], by side.

    Raises PortError and ArmError.
    """
    joint, model = servo.joint, servo.model
    with ExitStack() as stack:
        interrupted = stack.enter_context(_interruptible())
        before = {key: read(transport, joint, model, key) for key in MOTION if key in model.registers}
        stack.callback(_restore, transport, servo, before)
        place = switch_on(transport, [servo])[0].present
        sides = _sides(finding, place)
        write(transport, joint, model, 'torque_limit', model['torque_limit'].count(TORQUE * joint.torque))
        return {side: _swing(transport, servo, place, side, interrupted) for side in sides}


def _sides(servo: ServoFinding, place: int) -> list[int]:
    """Return to which sides the joint may turn, +1 and -1: that of rising ticks first."""
    recorded = servo.recorded
    assert recorded is not None
    if recorded.is_range:
        low, high = recorded.low + MARGIN, recorded.high - MARGIN
    else:
        low, high = STEP_MARGIN, TICKS_PER_TURN - 1 - STEP_MARGIN
    sides = [side for side in (1, -1) if low <= place + side * SWING <= high]
    if not sides:
        raise ArmError(
            f'{named(servo.joint)} is at tick {place}, its range is {low} to {high}: move it inside by hand'
        )
    return sides


def _ask(servo: ServoFinding) -> None:
    say(
        f'\n{named(servo.joint)} will turn by 3 degrees with {100 * TORQUE:.0f} % of its torque. All others '
        'are left as they are.'
    )
    if sys.stdin.isatty():
        try:
            input('Keep your hands away. Enter starts, Ctrl-C stops: ')
        except EOFError:
            raise KeyboardInterrupt from None


def _swing(
    transport: Transport, servo: ServoSurvey, place: int, side: int, interrupted: threading.Event
) -> int:
    """Turn to a side and back; return how far the joint went there [ticks]. Raises ArmError."""
    most = 0
    steps = math.ceil(SWING / (SPEED * PERIOD))
    there = [round(side * SWING * step / steps) for step in range(1, steps + 1)]
    stay = [side * SWING] * round(SETTLING / PERIOD)
    for way in (*there, *stay, *reversed(there), *[0] * len(stay)):
        if interrupted.is_set():
            raise KeyboardInterrupt
        register = servo.model['goal_position']
        transport.sync_write(register.address, {servo.joint.id: register.encode(place + way)})
        steady.sleep(PERIOD)
        tick = read(transport, servo.joint, servo.model, 'present_position')
        if abs(tick - place - way) > LOST:
            raise ArmError(f'{named(servo.joint)} is at tick {tick} instead of {place + way}: stopped')
        most = max(most, side * (tick - place))
    return most


def _tell(servo: ServoFinding, reached: dict[int, int]) -> int:
    joint = servo.joint
    went = ' and '.join(
        f'{math.degrees(joint.sign * side * ticks * RADIANS_PER_TICK):+.1f} deg'
        for side, ticks in reached.items()
    )
    if all(ticks >= FOLLOWED * SWING for ticks in reached.values()):
        say(
            f'{joint.name} went {went}. If the first of these has the opposite sign in the description, '
            'the sign in the profile is wrong.'
        )
        return 0
    say(f'{joint.name} went only {went} of 3 degrees: it is blocked, or too heavy for so little torque.')
    return 1


def _restore(transport: Transport, servo: ServoSurvey, before: dict[str, int]) -> None:
    switch_off(transport, [servo])
    for key, count in before.items():
        write(transport, servo.joint, servo.model, key, count)


@contextmanager
def _interruptible() -> Iterator[threading.Event]:
    """Let a closed terminal, or a kill, end this as Ctrl-C does: at the next step, never within _restore."""
    interrupted = threading.Event()
    before = [signal.signal(number, lambda *_: interrupted.set()) for number in INTERRUPTS]
    try:
        yield interrupted
    finally:
        for number, handler in zip(INTERRUPTS, before, strict=True):
            signal.signal(number, handler)
    if interrupted.is_set():
        raise KeyboardInterrupt
