# SPDX-License-Identifier: Apache-2.0
"""Record: calibrate an arm without LeRobot, as LeRobot does: hold it at zero, then move each joint through
its range. The servos keep it in their memory, and LeRobot can read the file."""

from __future__ import annotations

import json
import select
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from ik_node.console import say, table
from ik_node.errors import InputError, path_text
from ik_node.servos.arm.survey import ArmError, named, read
from ik_node.servos.bus.transport import Transport
from ik_node.servos.calibration.recorded import Recorded, is_same
from ik_node.servos.check.findings import Reading, ServoFinding, measure
from ik_node.servos.check.live import Screen
from ik_node.servos.check.memory import agreed, line, store
from ik_node.servos.check.page import amount, reading_table
from ik_node.servos.check.ranges import Travel, recorded_from
from ik_node.steady import steady

PAUSE = 0.02  # [s] from one reading to the next
BLIND = 0.4  # [s] without a reading after which a joint may have turned anywhere


def check_file(path: Path) -> None:
    """Raise InputError unless a file can be written there."""
    if path.exists():
        raise InputError(f'{path_text(path)} exists already: choose another file')
    if not path.parent.is_dir():
        raise InputError(f'there is no folder {path_text(path.parent)}')


def record(transport: Transport, findings: Sequence[ServoFinding], path: Path) -> int:
    """Record the ranges of all joints, store them in the servos and in a file; 0 if that was wanted.

    Raises PortError, ArmError and InputError.
    """
    for servo in findings:
        if servo.fault or servo.recorded is None:
            raise ArmError(f'{named(servo.joint)} {servo.fault}')
        if servo.recorded.multi_turn:
            raise ArmError(f'{named(servo.joint)} counts beyond one turn: clear bit 4 of its phase')
        if read(transport, servo.joint, servo.model, 'torque_enable'):
            raise ArmError(f'{named(servo.joint)} has torque: switch the power of the arm off and on')
    say('\nHold the arm in the pose in which its description shows all joints at zero. Then press Enter.')
    if not line():
        return 1
    held = [read(transport, servo.joint, servo.model, 'present_position') for servo in findings]
    travels = {servo.joint.name: Travel(tick) for servo, tick in zip(findings, held, strict=True)}
    if not _follow(transport, findings, travels):
        return 1
    found = {servo.joint.name: recorded_from(servo, travels[servo.joint.name]) for servo in findings}
    say('\n'.join(['', *_plan(findings, found), '']))
    if not agreed():
        return 1
    for servo in findings:
        _store(transport, servo, found[servo.joint.name])
    _write(path, findings, found)
    say(f'Stored in the servos and in {path_text(path)}. Check the arm again.')
    return 0


def _follow(transport: Transport, findings: Sequence[ServoFinding], travels: Mapping[str, Travel]) -> bool:
    """Follow the joints until Enter; False if the input ends. Raises ArmError if one was lost of sight."""
    say('Move every joint through its whole range, to both stops. Then press Enter.\n')
    seen = dict.fromkeys(travels, steady())
    screen = Screen()
    while not select.select([sys.stdin.fileno()], [], [], PAUSE)[0]:
        readings, now = measure(transport, findings), steady()
        for servo in findings:
            name, reading = servo.joint.name, readings[servo.joint.name]
            if isinstance(reading, Reading):
                travels[name].add(reading.tick)
                seen[name] = now
            elif now - seen[name] > BLIND:
                raise ArmError(f'{named(servo.joint)}: {reading.value}. Check its cable, and record again')
        spans = {name: (travel.low, travel.high) for name, travel in travels.items()}
        screen.show(reading_table(findings, readings, spans))
    return bool(line())


def _plan(findings: Sequence[ServoFinding], found: Mapping[str, Recorded]) -> list[str]:
    rows = [['joint', 'range', 'offset', 'span', 'between the stops', 'before']]
    for servo in findings:
        joint, new = servo.joint, found[servo.joint.name]
        assert servo.recorded is not None
        stops = '' if joint.stops is None else amount(joint, joint.stops[1] - joint.stops[0])
        row = [joint.name, f'{new.low}..{new.high}', str(new.homing_offset)]
        rows.append([*row, amount(joint, (new.high - new.low) * joint.unit), stops, servo.recorded.text()])
    return table(rows)


def _store(transport: Transport, servo: ServoFinding, new: Recorded) -> None:
    """Write to the memory of a servo what differs, and read it back."""
    joint, model = servo.joint, servo.model
    if servo.recorded is not None and is_same(servo.recorded, new):
        return
    wanted = {
        'homing_offset': new.homing_offset,
        'min_position_limit': new.low,
        'max_position_limit': new.high,
    }
    store(transport, joint, model, wanted)


def _write(path: Path, findings: Sequence[ServoFinding], found: Mapping[str, Recorded]) -> None:
    """Write a file as LeRobot has them."""
    content = {
        servo.joint.lerobot or servo.joint.name: {
            'id': servo.joint.id,
            'drive_mode': 0,
            'homing_offset': found[servo.joint.name].homing_offset,
            'range_min': found[servo.joint.name].low,
            'range_max': found[servo.joint.name].high,
        }
        for servo in findings
    }
    try:
        path.write_text(json.dumps(content, indent=4) + '\n', encoding='utf-8')
    except OSError as error:
        raise InputError(
            f'the servos have stored it, but {path_text(path)} cannot be written: {error}'
        ) from None
