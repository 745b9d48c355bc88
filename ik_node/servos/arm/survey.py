# SPDX-License-Identifier: Apache-2.0
"""The survey of an arm: which servos are there, and what is in their memory. It writes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ik_node.errors import IkError, join_names
from ik_node.servos.bus.models import PHASE_SPEED_0_IS_FASTEST, model_named, model_numbered
from ik_node.servos.bus.registers import ServoModel
from ik_node.servos.bus.transport import Answer, Fault, Transport
from ik_node.servos.calibration.profile import ArmProfile, JointProfile
from ik_node.servos.calibration.recorded import Recorded, recorded_in, registers_of

TRIES = 3  # of each read: the first packet after opening may be lost
TIME_PROFILE = 0x04  # bit of the drive mode: profiles are times, not speeds


class ArmError(IkError):
    """The arm cannot be used; the message names the servo, and what helps."""


@dataclass(frozen=True)
class ServoSurvey:
    """One servo as it was found. memory: what calibration, or the factory, has stored."""

    joint: JointProfile
    model: ServoModel
    firmware: int
    memory: Recorded
    time_profile: bool = False
    warnings: tuple[str, ...] = ()


def named(joint: JointProfile) -> str:
    """Return how messages name a servo."""
    return f'servo {joint.id} ({joint.name})'


def read(transport: Transport, joint: JointProfile, model: ServoModel, name: str) -> int:
    """Return the count in a register. Raises ArmError if the servo does not answer after TRIES."""
    register = model[name]
    reply: Answer | Fault = Fault.SILENT
    for _ in range(TRIES):
        reply = transport.read(joint.id, register.address, register.size)
        if isinstance(reply, Answer):
            return register.decode(reply.data)
    assert isinstance(reply, Fault)
    raise ArmError(f'{named(joint)}: {reply.value}. Check its cable and its power')


def write(transport: Transport, joint: JointProfile, model: ServoModel, name: str, count: int) -> None:
    """Write a register of the RAM and read it back. Raises ArmError if it does not take the value."""
    register = model[name]
    for _ in range(TRIES):
        transport.write(joint.id, register.address, register.encode(count))
        if read(transport, joint, model, name) == count:
            return
    raise ArmError(f'{named(joint)} does not accept {count} as {name}')


def survey(transport: Transport, profile: ArmProfile) -> list[ServoSurvey]:
    """Return the servos of an arm, in the order of its joints. Raises ArmError unless all are as expected."""
    found = {joint.id: _answers(transport, joint.id) for joint in profile.joints}
    missing = [joint for joint in profile.joints if not found[joint.id]]
    if len(missing) == len(profile.joints):
        raise ArmError('the port is open, but no servo answers. Is the power supply of the arm on?')
    if missing:
        names = join_names([named(joint) for joint in missing])
        raise ArmError(f'no answer from {names}. Check the cables after the last servo that answers')
    servos = [_surveyed(transport, joint) for joint in profile.joints]
    versions = {(servo.model.name, servo.firmware) for servo in servos}
    if profile.protocol == 'feetech' and len({firmware for _, firmware in versions}) > 1:
        shown = ', '.join(f'{servo.joint.id}: {_version(servo.firmware)}' for servo in servos)
        servos[0] = _warned(servos[0], f'the servos have different firmware ({shown}): update them')
    return servos


def _answers(transport: Transport, id: int) -> bool:
    return any(isinstance(transport.ping(id), Answer) for _ in range(TRIES))


def _surveyed(transport: Transport, joint: JointProfile) -> ServoSurvey:
    model = model_named(joint.model)
    number = read(transport, joint, model, 'model')
    if number != model.number:
        other = model_numbered(number)
        shown = f'model {number}' if other is None else other.name
        if other is None or other.registers is not model.registers:
            raise ArmError(f'{named(joint)} is {shown}, the profile has {model.name}: choose another profile')
        model = other
    mode = read(transport, joint, model, 'operating_mode')
    if mode not in model.position_modes:
        allowed = ' or '.join(map(str, sorted(model.position_modes)))
        raise ArmError(f'{named(joint)} is in operating mode {mode}, it must be {allowed}')
    counts = {name: read(transport, joint, model, name) for name in registers_of(model)}
    recorded = recorded_in(model, counts)
    if model.homing_sign > 0:
        firmware = read(transport, joint, model, 'firmware')
        return ServoSurvey(joint, model, firmware, recorded, bool(counts['drive_mode'] & TIME_PROFILE))
    major, minor = (read(transport, joint, model, f'firmware_{part}') for part in ('major', 'minor'))
    warnings = []
    if not counts['phase'] & PHASE_SPEED_0_IS_FASTEST:
        warnings.append('a goal speed of 0 stops it; other programs may expect the fastest speed')
    return ServoSurvey(joint, model, 256 * major + minor, recorded, warnings=tuple(warnings))


def _version(firmware: int) -> str:
    return f'{firmware // 256}.{firmware % 256}'


def _warned(servo: ServoSurvey, text: str) -> ServoSurvey:
    return ServoSurvey(
        servo.joint, servo.model, servo.firmware, servo.memory, servo.time_profile, (*servo.warnings, text)
    )


def memories(servos: list[ServoSurvey]) -> Mapping[str, Recorded]:
    """Return what calibration has stored in the servos, by joint."""
    return {servo.joint.name: servo.memory for servo in servos}
