# SPDX-License-Identifier: Apache-2.0
"""Record: calibrate an arm without LeRobot, as LeRobot does: hold it at zero, then move each joint through
its range. The servos keep it in their memory, and LeRobot can read the file."""

from __future__ import annotations

import json
import math
import os
import select
import sys
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path

from ik_node.console import say, table
from ik_node.errors import InputError, path_text
from ik_node.files import write_file
from ik_node.servos.arm.registers import ArmError, Servo
from ik_node.servos.bus.models import RADIANS_PER_TICK, TICKS_PER_TURN
from ik_node.servos.bus.transport import Fault
from ik_node.servos.calibration.profile import JointProfile
from ik_node.servos.calibration.recorded import Recorded, is_same
from ik_node.servos.calibration.zeros import LEROBOT, MIN_SPAN, SPANS_AGREE, ZERO_FROM
from ik_node.steady import steady

from .report import FACTORY_GAIN, Diagnosis, Reading, ServoReport, is_weak, measure, unprotected

WIDTH = 100  # of a sentence


def servo_table(servos: Sequence[ServoReport]) -> list[str]:
    """Return the table of what is in the memory of the servos."""
    rows = [['id', 'joint', 'model', 'firmware', 'range', 'span', 'offset', 'torque', 'P']]
    for servo in servos:
        head = [str(servo.joint.id), servo.joint.name, servo.model.name, servo.firmware]
        recorded = servo.recorded
        if recorded is None:
            rows.append([*head[:2], servo.fault, '', '', '', '', '', ''])
            continue
        span = (recorded.high - recorded.low) * servo.joint.unit
        row = [f'{recorded.low}..{recorded.high}', amount(servo.joint, span), str(recorded.homing_offset)]
        torque = 'on' if servo.counts['torque_enable'] else 'off'
        rows.append([*head, *row, torque, str(servo.counts['p_gain'])])
    return table(rows)


def reading_table(
    servos: Sequence[ServoReport],
    readings: Mapping[str, Reading | Fault],
    seen: Mapping[str, tuple[int, int]] | None = None,
) -> list[str]:
    """Return the table of what the servos measure. seen [ticks]: the least and the largest, by joint."""
    rows = [['joint', 'tick', 'position', 'seen', 'load', 'voltage', 'temp', 'reports']]
    for servo in servos:
        reading = readings.get(servo.joint.name)
        if reading is None or isinstance(reading, Fault):
            rows.append([servo.joint.name, '', '', '', '', '', '', reading.value if reading else servo.fault])
            continue
        position = seen_text = ''
        if servo.calibration is not None:
            position = amount(servo.joint, servo.calibration.position(reading.tick))
        if seen is not None and servo.joint.name in seen:
            low, high = seen[servo.joint.name]
            seen_text = f'{low}..{high} ({amount(servo.joint, (high - low) * servo.joint.unit)})'
        rows.append(
            [
                *(servo.joint.name, str(reading.tick), position, seen_text),
                '' if reading.load is None else f'{100 * reading.load:.0f} %',
                *(f'{reading.volts:.1f} V', f'{reading.temperature:.0f} C'),
                ', '.join(reading.conditions) or 'ok',
            ]
        )
    return table(rows)


def zero_table(servos: Sequence[ServoReport]) -> list[str]:
    """Return the table of the estimates of zero: ticks, and how far they are from the one that counts."""
    rows = [['joint', 'zero', 'from', *ZERO_FROM, 'limits']]
    for servo in servos:
        calibration = servo.calibration
        if calibration is None:
            rows.append([servo.joint.name, 'not known', *[''] * (2 + len(ZERO_FROM))])
            continue
        estimates = []
        for name in ZERO_FROM:
            tick = calibration.estimates.get(name)
            if name == LEROBOT and servo.joint.gripper:  # in percent
                tick = None
            difference = '' if tick is None else amount(servo.joint, (tick - calibration.zero) * servo.joint.unit)
            estimates.append('' if tick is None else f'{tick:.0f} ({difference})')
        limits = f'{amount(servo.joint, calibration.lower)} to {amount(servo.joint, calibration.upper)}'
        rows.append([servo.joint.name, f'{calibration.zero:.1f}', calibration.source, *estimates, limits])
    return table(rows)


def sentences(diagnosis: Diagnosis) -> list[str]:
    """Return problems and warnings as lines."""
    lines = []
    for head, texts in (('Problems', diagnosis.problems), ('Warnings', diagnosis.warnings)):
        if texts:
            lines += ['', head]
            for text in texts:
                lines += textwrap.wrap(text, WIDTH, initial_indent='- ', subsequent_indent='  ')
    if not diagnosis.problems:
        lines += ['', 'The arm can be driven' + (', see the warnings.' if diagnosis.warnings else '.')]
    return lines


def amount(joint: JointProfile, value: float) -> str:
    """Return a position of a joint [rad or m] in degrees or mm."""
    if joint.unit < RADIANS_PER_TICK / 4:  # a linear joint, in m
        return f'{round(1000.0 * value, 1) + 0.0} mm'  # + 0.0: no -0.0
    return f'{round(math.degrees(value), 1) + 0.0} deg'


PERIOD = 0.1  # [s] from one table to the next in a terminal
PERIOD_OF_LOG = 1.0  # [s] elsewhere
UP, CLEAR = '\x1b[{}A', '\x1b[J'  # cursor up by lines; clear from there


class Screen:
    """Shows lines in place of those before in a terminal, now and then one below the other elsewhere."""

    def __init__(self) -> None:
        self._terminal = sys.stdout.isatty()
        self._due, self._count = steady(), 0

    def show(self, lines: Sequence[str]) -> None:
        """Show lines, unless others were shown just before."""
        if steady() < self._due:
            return
        self._due = steady() + (PERIOD if self._terminal else PERIOD_OF_LOG)
        back = UP.format(self._count) + CLEAR if self._terminal and self._count else ''
        self._count = len(lines)
        say(back + '\n'.join(lines))


def live(servos: Sequence[ServoReport]) -> int:
    """Show a table of the servos until Ctrl-C. Raises PortError."""
    say('\nMove the arm by hand; Ctrl-C ends this.')
    seen: dict[str, tuple[int, int]] = {}
    screen = Screen()
    try:
        while True:
            readings = measure(servos)
            _note(seen, readings)
            screen.show(reading_table(servos, readings, seen))
            steady.sleep(PAUSE)
    except KeyboardInterrupt:
        return 0


def _note(seen: dict[str, tuple[int, int]], readings: dict[str, Reading | Fault]) -> None:
    for name, reading in readings.items():
        if isinstance(reading, Reading):
            low, high = seen.get(name, (reading.tick, reading.tick))
            seen[name] = min(low, reading.tick), max(high, reading.tick)


MIDDLE = 2047  # tick of the pose held at zero, as LeRobot has it
MIN_TRAVEL = 200  # [ticks] that a joint must be moved
LARGEST_OFFSET = 2047  # [ticks] Feetech
LARGEST_IN_POSITION_MODE = 1024  # [ticks] Dynamixel
POSITION_MODE = 3  # of Dynamixel


class Travel:
    """Where a joint was, from its first tick on, beyond 4095 and 0 too: low and high [ticks]."""

    def __init__(self, tick: int) -> None:
        self.start = self.low = self.high = self._now = tick

    def add(self, tick: int) -> None:
        """Note the next tick; the joint has turned by less than half a turn since the last one."""
        half = TICKS_PER_TURN // 2
        self._now += (tick - self._now + half) % TICKS_PER_TURN - half
        self.low, self.high = min(self.low, self._now), max(self.high, self._now)


def recorded_from(servo: ServoReport, travel: Travel) -> Recorded:
    """Return what to store of a joint that was held at zero first, then moved. Raises ArmError."""
    joint, before = servo.joint, servo.recorded
    assert before is not None
    shift = 0 if joint.zero is not None else _shift(servo, travel)
    offset = before.homing_offset + servo.model.homing_sign * shift
    if servo.model.homing_sign < 0:
        offset = min((offset + LARGEST_OFFSET) % TICKS_PER_TURN - LARGEST_OFFSET, LARGEST_OFFSET)
    elif servo.counts['operating_mode'] == POSITION_MODE and abs(offset) > LARGEST_IN_POSITION_MODE:
        raise ArmError(
            f'{servo}: an offset of {offset} ticks is more than the {LARGEST_IN_POSITION_MODE} that '
            'position mode allows: mount its horn nearer to the middle'
        )
    if joint.full_turn:
        return Recorded(0, TICKS_PER_TURN - 1, offset or 1)  # 0 would look like that of the factory
    span = travel.high - travel.low
    stops = None if joint.stops is None else (joint.stops[1] - joint.stops[0]) / joint.unit
    if span < (MIN_TRAVEL if stops is None else MIN_SPAN * stops):
        raise ArmError(f'{servo} was moved by {amount(joint, span * joint.unit)} only: move it to both stops')
    low, high = travel.low + shift, travel.high + shift
    if not 0 < low < high < TICKS_PER_TURN - 1:
        raise ArmError(
            f'{servo}: ticks {low} to {high} are not within one turn: hold it nearer to the middle of '
            'its range at first'
        )
    return Recorded(low, high, offset)


def _shift(servo: ServoReport, travel: Travel) -> int:
    """Return by how much the ticks must change, so that zero is at MIDDLE where that is possible."""
    joint, span = servo.joint, travel.high - travel.low
    middle = round((travel.low + travel.high) / 2)
    if joint.gripper:
        return MIDDLE - middle
    if joint.stops is not None and joint.homing is not None and not joint.full_turn:
        low, high = sorted(joint.sign * stop / joint.unit for stop in joint.stops)  # [ticks] from zero
        if abs(span - (high - low)) * joint.unit <= SPANS_AGREE:  # better than the eye
            return round(joint.homing + (low + high) / 2.0) - middle
    return (MIDDLE if joint.homing is None else round(joint.homing)) - travel.start


def agreed() -> bool:
    """Ask whether what was shown may be stored; return whether the owner agrees."""
    say('Type yes and press Enter to store that in the servos: ')
    if line().strip().lower() == 'yes':
        return True
    say('Nothing was stored.')
    return False


def line() -> str:
    """Return what was typed until Enter, empty at the end of the input."""
    return os.read(sys.stdin.fileno(), 4096).decode(errors='replace')


def store(servo: Servo, counts: Mapping[str, int]) -> None:
    """Write counts to registers of the memory, by name, and read them back. Raises ArmError."""
    if servo.has('lock'):
        servo.write('lock', 0)
    try:
        for name, count in counts.items():
            servo.write(name, count)
    finally:
        if servo.has('lock'):
            servo.write('lock', 1)


def protect(servos: Sequence[ServoReport]) -> int:
    """Write the overload protection of grippers and the factory P gain to the servos; 0 if that is done.

    Raises PortError and ArmError.
    """
    plan = []
    for servo in servos:
        if servo.fault:
            raise ArmError(f'{servo} {servo.fault}')
        changes = unprotected(servo) | ({'p_gain': FACTORY_GAIN} if is_weak(servo) else {})
        if changes and servo.read('torque_enable'):
            raise ArmError(f'{servo} has torque: switch it off first, and support the arm')
        plan.append((servo, changes))
    rows = [['joint', 'register', 'now', 'then']]
    for servo, changes in plan:
        rows += [[servo.joint.name, name, str(servo.counts[name]), str(count)] for name, count in changes.items()]
    if len(rows) == 1:
        say('\nThe servos already have these values: there is nothing to store.')
        return 0
    say('\n'.join(['', *table(rows), '']))
    if not agreed():
        return 1
    for servo, changes in plan:
        if changes:
            store(servo, changes)
    say('Stored in the servos. The torque of a gripper takes effect the next time that they are switched on.')
    return 0


PAUSE = 0.02  # [s] from one reading to the next
BLIND = 0.4  # [s] without a reading after which a joint may have turned anywhere


def check_file(path: Path) -> None:
    """Raise InputError unless a file can be written there."""
    if path.exists():
        raise InputError(f'{path_text(path)} exists already: choose another file')
    if not path.parent.is_dir():
        raise InputError(f'there is no folder {path_text(path.parent)}')


def record(servos: Sequence[ServoReport], path: Path) -> int:
    """Record the ranges of all joints, store them in the servos and in a file; 0 if that is done.

    Raises PortError, ArmError and InputError.
    """
    for servo in servos:
        if servo.fault or servo.recorded is None:
            raise ArmError(f'{servo} {servo.fault}')
        if servo.recorded.multi_turn:
            raise ArmError(f'{servo} counts beyond one turn: clear bit 4 of its phase')
        if servo.read('torque_enable'):
            raise ArmError(f'{servo} has torque: switch the power of the arm off and on')
    say('\nHold the arm in the pose in which its description shows all joints at zero. Then press Enter.')
    if not line():
        return 1
    at_zero = [servo.read('present_position') for servo in servos]
    travels = {servo.joint.name: Travel(tick) for servo, tick in zip(servos, at_zero, strict=True)}
    if not _follow(servos, travels):
        return 1
    found = {servo.joint.name: recorded_from(servo, travels[servo.joint.name]) for servo in servos}
    say('\n'.join(['', *_plan(servos, found), '']))
    if not agreed():
        return 1
    for servo in servos:
        _store(servo, found[servo.joint.name])
    _write(path, servos, found)
    say(f'Stored in the servos and in {path_text(path)}. Check the arm again.')
    return 0


def _follow(servos: Sequence[ServoReport], travels: Mapping[str, Travel]) -> bool:
    """Follow the joints until Enter; False if the input ends. Raises ArmError if one was lost of sight."""
    say('Move every joint through its whole range, to both stops. Then press Enter.\n')
    seen = dict.fromkeys(travels, steady())
    screen = Screen()
    while not select.select([sys.stdin.fileno()], [], [], PAUSE)[0]:
        readings, now = measure(servos), steady()
        for servo in servos:
            name, reading = servo.joint.name, readings[servo.joint.name]
            if isinstance(reading, Reading):
                travels[name].add(reading.tick)
                seen[name] = now
            elif now - seen[name] > BLIND:
                raise ArmError(f'{servo}: {reading.value}. Check its cable, and record again')
        spans = {name: (travel.low, travel.high) for name, travel in travels.items()}
        screen.show(reading_table(servos, readings, spans))
    return bool(line())


def _plan(servos: Sequence[ServoReport], found: Mapping[str, Recorded]) -> list[str]:
    rows = [['joint', 'range', 'offset', 'span', 'between the stops', 'before']]
    for servo in servos:
        joint, new = servo.joint, found[servo.joint.name]
        assert servo.recorded is not None
        stops = '' if joint.stops is None else amount(joint, joint.stops[1] - joint.stops[0])
        row = [joint.name, f'{new.low}..{new.high}', str(new.homing_offset)]
        rows.append([*row, amount(joint, (new.high - new.low) * joint.unit), stops, servo.recorded.text()])
    return table(rows)


def _store(servo: ServoReport, new: Recorded) -> None:
    """Write to the memory of a servo what differs, and read it back."""
    if servo.recorded is not None and is_same(servo.recorded, new):
        return
    store(
        servo,
        {
            'homing_offset': new.homing_offset,
            'min_position_limit': new.low,
            'max_position_limit': new.high,
        },
    )


def _write(path: Path, servos: Sequence[ServoReport], found: Mapping[str, Recorded]) -> None:
    """Write a file as LeRobot has them."""
    content = {
        servo.joint.lerobot or servo.joint.name: {
            'id': servo.joint.id,
            'drive_mode': 0,
            'homing_offset': found[servo.joint.name].homing_offset,
            'range_min': found[servo.joint.name].low,
            'range_max': found[servo.joint.name].high,
        }
        for servo in servos
    }
    try:
        write_file(path, json.dumps(content, indent=4) + '\n')
    except InputError as error:
        raise InputError(f'{error}. The servos have stored the calibration') from None
