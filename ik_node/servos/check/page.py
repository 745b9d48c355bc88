# SPDX-License-Identifier: Apache-2.0
"""The page that ik_servo_check prints: tables and sentences, to be read and to be pasted into an issue."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence

from ik_node.console import table
from ik_node.servos.bus.models import RADIANS_PER_TICK
from ik_node.servos.bus.transport import Fault
from ik_node.servos.calibration.estimates import LEROBOT, ZERO_FROM
from ik_node.servos.calibration.profile import JointProfile
from ik_node.servos.check.diagnosis import Diagnosis
from ik_node.servos.check.findings import Reading, ServoFinding

WIDTH = 100  # of a sentence


def servo_table(findings: Sequence[ServoFinding]) -> list[str]:
    """Return the table of what is in the memory of the servos."""
    rows = [['id', 'joint', 'model', 'firmware', 'range', 'span', 'offset', 'torque', 'P']]
    for servo in findings:
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
    findings: Sequence[ServoFinding],
    readings: Mapping[str, Reading | Fault],
    seen: Mapping[str, tuple[int, int]] | None = None,
) -> list[str]:
    """Return the table of what the servos measure. seen [ticks]: the least and the largest, by joint."""
    rows = [['joint', 'tick', 'position', 'seen', 'load', 'voltage', 'temp', 'reports']]
    for servo in findings:
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


def zero_table(findings: Sequence[ServoFinding]) -> list[str]:
    """Return the table of the estimates of zero: ticks, and how far they are from the one that counts."""
    rows = [['joint', 'zero', 'from', *ZERO_FROM, 'limits']]
    for servo in findings:
        calibration = servo.calibration
        if calibration is None:
            rows.append([servo.joint.name, 'not known', *[''] * (2 + len(ZERO_FROM))])
            continue
        estimates = []
        for name in ZERO_FROM:
            tick = calibration.estimates.get(name)
            if name == LEROBOT and servo.joint.gripper:  # in percent
                tick = None
            apart = '' if tick is None else amount(servo.joint, (tick - calibration.zero) * servo.joint.unit)
            estimates.append('' if tick is None else f'{tick:.0f} ({apart})')
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
