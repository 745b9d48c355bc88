# SPDX-License-Identifier: Apache-2.0
"""From findings to sentences: what keeps the arm from working, and what its owner should know."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from ik_node.servos.arm.survey import named, same_id, wrong_supply
from ik_node.servos.bus.models import PHASE_SPEED_0_IS_FASTEST
from ik_node.servos.calibration.profile import ArmProfile
from ik_node.servos.check.findings import DAMAGED, BusTest, ServoFinding
from ik_node.servos.check.protection import FACTORY_GAIN, WEAK_GAIN, is_weak, unprotected

LEADER_VOLTS = (4.5, 5.6)  # [V] of the supply of a leader arm
HOT = 55.0  # [degrees C]
FACTORY_ID = 1
DELIVERED = (
    f'servos as delivered all have the id {FACTORY_ID}: give them their ids, with one servo on the bus at a '
    "time, by lerobot-setup-motors or their maker's program"
)
FEW_FAULTS = 0.001  # share of the answers: an occasional fault is harmless


@dataclass(frozen=True)
class Diagnosis:
    """Sentences. problems: the arm cannot be driven. warnings: it can, but look at that."""

    problems: tuple[str, ...]
    warnings: tuple[str, ...]


def diagnose(
    profile: ArmProfile, findings: Sequence[ServoFinding], elsewhere: Sequence[str], test: BusTest | None
) -> Diagnosis:
    """Return what is wrong. elsewhere: sentences about servos that answer otherwise than expected.

    test: of the bus, None if there was none.
    """
    problems = _of_silence(findings, elsewhere)
    warnings: list[str] = []
    usable = [servo for servo in findings if not servo.fault]
    for servo in usable:
        problems += _problems_of(servo)
        warnings += _warnings_of(servo)
    problems += _of_zeros(usable)
    for text, is_high in _of_voltage(usable):
        (problems if is_high else warnings).append(text)
    if profile.protocol == 'feetech':
        warnings += _of_firmware(usable) + _of_supply(usable)
    if test is not None and sum(test.faults.values()) > FEW_FAULTS * test.reads * len(usable):
        warnings.append('the bus is not reliable: check the cables and the supply')
    warnings += [
        f'{named(servo.joint)} is a gripper with {_in_words(servo)}: it can burn out while it holds '
        'something. --protect sets the values of LeRobot'
        for servo in usable
        if unprotected(servo)
    ]
    weak = [str(servo.joint.id) for servo in usable if is_weak(servo)]
    if weak:
        warnings.append(
            f'the P gain is {WEAK_GAIN} or less in servo {", ".join(weak)}, as LeRobot sets it: the arm sags '
            f'and lags. --protect sets it to that of the factory, {FACTORY_GAIN}'
        )
    on = [named(servo.joint) for servo in usable if servo.counts['torque_enable']]
    if on:
        warnings.append(f'torque is on in {", ".join(on)}: another program has left it so, or is running')
    return Diagnosis(tuple(problems), tuple(warnings))


def bus_text(test: BusTest, servos: int) -> str:
    """Return a test of the bus in words."""
    rate = f'{test.reads / test.seconds:.0f} reads of {servos} servos per second'
    count = sum(test.faults.values())
    if not count:
        return f'{rate}, no fault in {test.reads}'
    shown = ', '.join(f'{number} x {kind}' for kind, number in sorted(test.faults.items()))
    return f'{rate}, {shown} in {test.reads}'


def _of_silence(findings: Sequence[ServoFinding], elsewhere: Sequence[str]) -> list[str]:
    if findings and all(servo.silent for servo in findings):
        return list(elsewhere) or [
            'the port opens, but no servo answers. Is the power supply of the arm on, and is its cable in '
            'the adapter?'
        ]
    silent = [servo.joint for servo in findings if servo.silent]
    found = []
    if silent:
        found.append(
            f'no answer from {", ".join(map(named, silent))}: check the cable that leads to '
            f'{"it" if len(silent) == 1 else "the first of them"}, and the ids of the servos'
        )
        found += elsewhere
    if len(findings) > 1 and [one.joint.id for one in findings if not one.silent] == [FACTORY_ID]:
        found.append(DELIVERED)
    damaged = [servo.joint for servo in findings if servo.fault == DAMAGED]
    if damaged:
        found.append(same_id(damaged, silent))
    found += [
        f'{named(servo.joint)} {servo.fault}'
        for servo in findings
        if servo.fault and servo.fault != DAMAGED and not servo.silent
    ]
    return found


def _problems_of(servo: ServoFinding) -> list[str]:
    found = [
        f'servo {id}, which turns {servo.joint.name} too, does not answer: check its cable'
        for id in servo.silent_shadows
    ]
    mode, allowed = servo.counts['operating_mode'], servo.model.position_modes
    if mode not in allowed:
        shown = ' or '.join(map(str, sorted(allowed)))
        found.append(f'{named(servo.joint)} is in operating mode {mode}, it must be {shown}')
    if servo.model.homing_sign > 0 and servo.reading is not None and servo.reading.conditions:
        found.append(
            f'{named(servo.joint)} has shut itself off: {", ".join(servo.reading.conditions)}. Switch its '
            'power off and on'
        )
    return found


def _of_zeros(usable: Sequence[ServoFinding]) -> list[str]:
    joints: dict[str, list[str]] = {}
    for servo in usable:
        if servo.problem:
            joints.setdefault(servo.problem, []).append(servo.joint.name)
    return [f'{", ".join(names)}: {problem}' for problem, names in joints.items()]


def _of_voltage(usable: Sequence[ServoFinding]) -> list[tuple[str, bool]]:
    """Return a sentence for each kind of servos whose supply is wrong, and whether it has too many volts."""
    kinds: dict[tuple[tuple[float, float], bool], list[ServoFinding]] = {}
    for servo in usable:
        if servo.reading is not None and servo.has_wrong_supply:
            kinds.setdefault((servo.volts, servo.reading.volts > servo.volts[1]), []).append(servo)
    found = []
    for (allowed, is_high), servos in kinds.items():
        volts = [servo.reading.volts for servo in servos if servo.reading is not None]
        wrong = wrong_supply(max(volts) if is_high else min(volts), allowed)
        names = ', '.join(named(servo.joint) for servo in servos)
        found.append((f'{names}: the supply has {wrong}', is_high))
    return found


def _warnings_of(servo: ServoFinding) -> list[str]:
    who, found = named(servo.joint), []
    if servo.calibration is not None:
        found += [f'{who}: {text}' for text in servo.calibration.warnings]
    if servo.reading is not None:
        reported = [one for one in servo.reading.conditions if one != 'voltage' or not servo.has_wrong_supply]
        if reported and servo.model.homing_sign < 0:
            found.append(f'{who} reports {", ".join(reported)}')
        if servo.reading.temperature >= HOT:
            found.append(f'{who} has {servo.reading.temperature:.0f} degrees C: let it cool down')
    if not servo.counts.get('phase', PHASE_SPEED_0_IS_FASTEST) & PHASE_SPEED_0_IS_FASTEST:
        found.append(f'{who}: a goal speed of 0 stops it (bit 3 of phase); some programs expect the opposite')
    return found


def _of_firmware(usable: Sequence[ServoFinding]) -> list[str]:
    if len({servo.firmware for servo in usable}) < 2:
        return []
    shown = ', '.join(f'{servo.joint.id}: {servo.firmware}' for servo in usable)
    return [f'the servos have different firmware ({shown}), which LeRobot rejects: update them']


def _of_supply(usable: Sequence[ServoFinding]) -> list[str]:
    volts = [servo.reading.volts for servo in usable if servo.reading is not None]
    if not volts or not LEADER_VOLTS[0] <= median(volts) <= LEADER_VOLTS[1]:
        return []
    return [
        f'the supply has {median(volts):.1f} V, as that of a leader arm, whose ids are the same: is this the '
        'port of the follower? Servos for 7.4 V must not get 12 V'
    ]


def _in_words(servo: ServoFinding) -> str:
    return ' and '.join(
        f'{name} {servo.counts[name]} (at most {most})' for name, most in unprotected(servo).items()
    )
