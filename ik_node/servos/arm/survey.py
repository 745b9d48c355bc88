# SPDX-License-Identifier: Apache-2.0
"""The survey of an arm: which servos are there, and what is in their memory. It writes nothing."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ik_node.errors import IkError
from ik_node.servos.bus.models import ServoModel, model_named, model_numbered
from ik_node.servos.bus.transport import Answer, Fault, Transport
from ik_node.servos.calibration.profile import ArmProfile, JointProfile
from ik_node.servos.calibration.recorded import Recorded, recorded_in, registers_of

TRIES = 3  # of each read: the first packet after opening may be lost
TIME_PROFILE = 0x04  # bit of the drive mode: profiles are times, not speeds


class ArmError(IkError):
    """The arm cannot be used; the message names the servo, and what helps."""


@dataclass(frozen=True)
class ServoSurvey:
    """One servo as it was found. memory: what calibration, or the factory, has stored.

    most_current [counts]: its limit, 0 if it does not measure it. volts [V]: least and most that it allows.
    p_gain [counts]: of its controller.
    """

    joint: JointProfile
    model: ServoModel
    memory: Recorded
    time_profile: bool = False
    most_current: int = 0
    volts: tuple[float, float] = (0.0, math.inf)
    p_gain: int = 0


def named(joint: JointProfile) -> str:
    """Return how messages name a servo."""
    return f'servo {joint.id} ({joint.name})'


def named_all(joints: Iterable[JointProfile]) -> str:
    """Return how messages name several servos."""
    *others, last = map(named, joints)
    return f'{", ".join(others)} and {last}' if others else last


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


def try_read(transport: Transport, servo: ServoSurvey, name: str) -> int | None:
    """Return the count in a register, asked for once; None without an answer."""
    register = servo.model[name]
    reply = transport.read(servo.joint.id, register.address, register.size)
    return register.decode(reply.data) if isinstance(reply, Answer) else None


def read_constant(transport: Transport, joint: JointProfile, model: ServoModel, name: str) -> int:
    """Return the count in a register that nobody changes meanwhile: two answers in a row agree.

    The checksum of Feetech's protocol has 8 bits, so one damaged answer in a few hundred looks sound, and the
    zero of a joint and its torque depend on what is read here. Raises ArmError.
    """
    before = read(transport, joint, model, name)
    for _ in range(TRIES):
        now = read(transport, joint, model, name)
        if now == before:
            return now
        before = now
    raise ArmError(f'{named(joint)} answers differently each time for {name}. Check its cable and its power')


def write(transport: Transport, joint: JointProfile, model: ServoModel, name: str, count: int) -> None:
    """Write a register of the RAM and read it back. Raises ArmError if it does not take the value."""
    register = model[name]
    for _ in range(TRIES):
        transport.write(joint.id, register.address, register.encode(count))
        if read(transport, joint, model, name) == count:
            return
    raise ArmError(
        f'{named(joint)} does not accept {count} as {name}. Check its cable, and switch the power of the arm '
        'off and on'
    )


def survey(transport: Transport, profile: ArmProfile) -> list[ServoSurvey]:
    """Return the servos of an arm, in the order of its joints. Raises ArmError unless all are as expected."""
    found = {joint.id: _answers(transport, joint.id) for joint in profile.joints}
    missing = [joint for joint in profile.joints if not found[joint.id]]
    damaged = [joint for joint in profile.joints if is_damaged(transport, joint)]
    if damaged:
        raise ArmError(same_id(damaged, [joint for joint in missing if joint not in damaged]))
    if len(missing) == len(profile.joints):
        raise ArmError('the port is open, but no servo answers. Is the power supply of the arm on?')
    if missing:
        raise ArmError(
            f'no answer from {named_all(missing)}. Check the cables after the last servo that answers'
        )
    surveyed = [_surveyed(transport, joint) for joint in profile.joints]
    for servo in surveyed:
        for id in servo.joint.shadows:
            _check_shadow(transport, servo, id)
    return surveyed


def is_damaged(transport: Transport, joint: JointProfile) -> bool:
    """Whether a servo gives damaged answers only, as two servos with the same id do, which answer at once.

    It is asked for what it measures: what is stored is the same in both, so that those answers look sound.
    """
    replies: list[Answer | Fault] = []
    for _ in range(TRIES):
        replies.append(transport.read(joint.id, *model_named(joint.model).measured))
        if isinstance(replies[-1], Answer):
            return False
    return Fault.CORRUPT in replies or Fault.FOREIGN in replies


def same_id(damaged: Sequence[JointProfile], silent: Sequence[JointProfile]) -> str:
    """Return what to check where servos give damaged answers, and others none: do they have the same id?"""
    who = f'damaged answers from {named_all(damaged)}'
    if len(damaged) == len(silent) == 1:
        who += f', and none from {named(silent[0])}: do both have the id {damaged[0].id}'
    elif silent:
        who += f', and none from {named_all(silent)}: do some of them have the same id'
    else:
        who += f': do two servos have {"this id" if len(damaged) == 1 else "the same id"}'
    return f'{who}? Give each its own, with one servo on the bus at a time; otherwise check the cables'


def _answers(transport: Transport, id: int) -> bool:
    return any(isinstance(transport.ping(id), Answer) for _ in range(TRIES))


def _check_shadow(transport: Transport, servo: ServoSurvey, id: int) -> None:
    """Raise ArmError unless the servo of that id does what the other servo of its joint does."""
    shadow, leader = replace(servo.joint, id=id), servo.joint.id
    if not _answers(transport, id):
        raise ArmError(
            f'no answer from {named(shadow)}, which turns with servo {leader}. Check its cable and its power'
        )
    listens = read_constant(transport, shadow, servo.model, 'secondary_id')
    if listens != leader:
        raise ArmError(
            f'{named(shadow)} has the secondary id {listens}, so it does not turn with servo {leader}: '
            f'set it to {leader}'
        )


def _surveyed(transport: Transport, joint: JointProfile) -> ServoSurvey:
    model = model_named(joint.model)
    number = read_constant(transport, joint, model, 'model')
    if number != model.number:
        other = model_numbered(number)
        shown = f'model {number}' if other is None else other.name
        if other is None or other.registers is not model.registers:
            raise ArmError(f'{named(joint)} is {shown}, the profile has {model.name}: choose another profile')
        model = other
    check_mode(transport, joint, model)
    counts = {name: read_constant(transport, joint, model, name) for name in registers_of(model)}
    time_profile = bool(counts.get('drive_mode', 0) & TIME_PROFILE)
    limited = 'current_limit' in model.registers
    most = read_constant(transport, joint, model, 'current_limit') if limited else 0
    low, high = (
        model[name].quantity(read_constant(transport, joint, model, name))
        for name in ('min_voltage', 'max_voltage')
    )
    gain = read_constant(transport, joint, model, 'p_gain')
    return ServoSurvey(joint, model, recorded_in(model, counts), time_profile, most, (low, high), gain)


def check_mode(transport: Transport, joint: JointProfile, model: ServoModel) -> None:
    """Raise ArmError if a servo does not go to positions: with torque it might turn without end."""
    mode = read_constant(transport, joint, model, 'operating_mode')
    if mode not in model.position_modes:
        allowed = ' or '.join(map(str, sorted(model.position_modes)))
        raise ArmError(f'{named(joint)} is in operating mode {mode}, it must be {allowed}')


def wrong_supply(volts: float, allowed: tuple[float, float]) -> str:
    """Return what is wrong with the supply of a servo, and what helps; volts, allowed [V]. '' if nothing."""
    low, high = allowed
    if low <= volts <= high or not high > 0.0:
        return ''
    remedy = 'use a stronger supply' if volts < low else 'switch the supply off, it is for other servos'
    return f'{volts:.1f} V, allowed are {low:.1f} to {high:.1f} V: {remedy}'


def memories(servos: list[ServoSurvey]) -> Mapping[str, Recorded]:
    """Return what calibration has stored in the servos, by joint."""
    return {servo.joint.name: servo.memory for servo in servos}
