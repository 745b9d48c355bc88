# SPDX-License-Identifier: Apache-2.0
"""The servos of an arm: their registers, the survey, which writes nothing, and what each cycle measures."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ik_node.errors import IkError, join_names
from ik_node.servos.bus.dynamixel import ALERT
from ik_node.servos.bus.models import TICKS_PER_TURN, ServoModel, model_named, model_numbered
from ik_node.servos.bus.transport import Answer, Fault, Reply, Transport
from ik_node.servos.calibration.profile import ArmProfile, JointProfile
from ik_node.servos.calibration.recorded import Recorded, recorded_in, registers_of
from ik_node.servos.calibration.zeros import JointCalibration

TRIES = 3  # of each read: the first packet after opening may be lost
TIME_PROFILE = 0x04  # bit of the drive mode: profiles are times, not speeds


class ArmError(IkError):
    """The arm cannot be used; the message names the servo, and what helps."""


@dataclass(frozen=True)
class Servo:
    """The servo of a joint, on a bus; as text it is how messages name it."""

    transport: Transport
    joint: JointProfile
    model: ServoModel

    def __str__(self) -> str:
        return named(self.joint)

    def has(self, name: str) -> bool:
        """Whether its model has a register."""
        return name in self.model.registers

    def read(self, name: str) -> int:
        """Return the count in a register. Raises ArmError if the servo does not answer after TRIES."""
        register = self.model[name]
        reply: Answer | Fault = Fault.SILENT
        for _ in range(TRIES):
            reply = self.transport.read(self.joint.id, register.address, register.size)
            if isinstance(reply, Answer):
                return register.decode(reply.data)
        assert isinstance(reply, Fault)
        raise ArmError(f'{self}: {reply.value}. Check its cable and its power')

    def try_read(self, name: str) -> int | None:
        """Return the count in a register, read once; None without an answer."""
        register = self.model[name]
        reply = self.transport.read(self.joint.id, register.address, register.size)
        return register.decode(reply.data) if isinstance(reply, Answer) else None

    def read_constant(self, name: str) -> int:
        """Return the count in a register that nobody changes meanwhile: two answers in a row agree.

        The checksum of Feetech's protocol has 8 bits, so one damaged answer in a few hundred looks sound, and
        the zero of a joint and its torque depend on what is read here. Raises ArmError.
        """
        before = self.read(name)
        for _ in range(TRIES):
            now = self.read(name)
            if now == before:
                return now
            before = now
        raise ArmError(f'{self} answers differently each time for {name}. Check its cable and its power')

    def write(self, name: str, count: int) -> None:
        """Write a register and read it back. Raises ArmError if it does not take the value."""
        register = self.model[name]
        for _ in range(TRIES):
            self.transport.write(self.joint.id, register.address, register.encode(count))
            if self.read(name) == count:
                return
        raise ArmError(
            f'{self} does not accept {count} as {name}. Check its cable, and switch the power of the arm off and on'
        )

    def check_mode(self) -> None:
        """Raise ArmError if the servo does not go to positions: with torque it might turn without end."""
        mode = self.read_constant('operating_mode')
        if mode not in self.model.position_modes:
            raise ArmError(f'{self} is in operating mode {mode}, it must be {self.position_modes}')

    @property
    def position_modes(self) -> str:
        """Its operating modes that go to positions, in words."""
        return ' or '.join(map(str, sorted(self.model.position_modes)))


@dataclass(frozen=True)
class ServoSurvey(Servo):
    """A servo as it was found. memory: what calibration, or the factory, has stored.

    current_limit [counts]: 0 if it does not measure its current. volts [V]: least and most that it allows.
    p_gain [counts]: of its controller.
    """

    memory: Recorded
    time_profile: bool = False
    current_limit: int = 0
    volts: tuple[float, float] = (0.0, math.inf)
    p_gain: int = 0


def named(joint: JointProfile) -> str:
    """Return how messages name the servo of a joint."""
    return f'servo {joint.id} ({joint.name})'


def named_all(joints: Iterable[JointProfile]) -> str:
    """Return how messages name the servos of several joints."""
    *others, last = map(named, joints)
    return f'{", ".join(others)} and {last}' if others else last


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
        raise ArmError(f'no answer from {named_all(missing)}. Check the cables after the last servo that answers')
    surveyed = [_surveyed(transport, joint) for joint in profile.joints]
    for servo in surveyed:
        for id in servo.joint.shadows:
            _check_shadow(servo, id)
    return surveyed


def is_damaged(transport: Transport, joint: JointProfile) -> bool:
    """Whether a servo gives damaged answers only, as two servos with the same id do, which answer at once.

    This reads what it measures: what is stored is the same in both, so that those answers look sound.
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


def _check_shadow(servo: Servo, id: int) -> None:
    """Raise ArmError unless the servo of that id does what the other servo of its joint does."""
    shadow, leader = Servo(servo.transport, replace(servo.joint, id=id), servo.model), servo.joint.id
    if not _answers(servo.transport, id):
        raise ArmError(f'no answer from {shadow}, which turns with servo {leader}. Check its cable and its power')
    secondary = shadow.read_constant('secondary_id')
    if secondary != leader:
        raise ArmError(
            f'{shadow} has the secondary id {secondary}, so it does not turn with servo {leader}: set it to {leader}'
        )


def _surveyed(transport: Transport, joint: JointProfile) -> ServoSurvey:
    servo = Servo(transport, joint, model_named(joint.model))
    number = servo.read_constant('model')
    if number != servo.model.number:
        servo = replace(servo, model=other_model(servo, number))
    servo.check_mode()
    model = servo.model
    counts = {name: servo.read_constant(name) for name in registers_of(model)}
    time_profile = bool(counts.get('drive_mode', 0) & TIME_PROFILE)
    current_limit = servo.read_constant('current_limit') if servo.has('current_limit') else 0
    low, high = (model[name].quantity(servo.read_constant(name)) for name in ('min_voltage', 'max_voltage'))
    p_gain = servo.read_constant('p_gain')
    return ServoSurvey(
        transport, joint, model, recorded_in(model, counts), time_profile, current_limit, (low, high), p_gain
    )


def other_model(servo: Servo, number: int) -> ServoModel:
    """Return the model that a servo reports. Raises ArmError unless it has the registers of the profile."""
    other = model_numbered(number)
    if other is None or other.registers is not servo.model.registers:
        shown = f'model {number}' if other is None else other.name
        raise ArmError(f'{servo} is {shown}, the profile has {servo.model.name}: choose another profile')
    return other


def wrong_supply(volts: float, allowed: tuple[float, float]) -> str:
    """Return what is wrong with the supply of a servo, and what helps; volts, allowed [V]. '' if nothing."""
    low, high = allowed
    if low <= volts <= high or not high > 0.0:
        return ''
    remedy = 'use a stronger supply' if volts < low else 'switch the supply off, it is for other servos'
    return f'{volts:.1f} V, allowed are {low:.1f} to {high:.1f} V: {remedy}'


def memories(servos: Iterable[ServoSurvey]) -> Mapping[str, Recorded]:
    """Return what calibration has stored in the servos, by joint."""
    return {servo.joint.name: servo.memory for servo in servos}


RETRIES = 2  # single reads per cycle, after a sync read with faults
SLACK = 40  # [ticks] beyond the fastest motion that a position may have changed
PUSHED = 1.5  # times the fastest speed without load, when pushed by hand or by gravity
SETTLED = 3  # readings that agree with each other are believed, even after a jump


@dataclass(frozen=True)
class JointMeasurement:
    """One joint, as its servo answered in this cycle.

    tick, position [rad or m], velocity [rad/s or m/s], load: share of the largest torque, its sign that
    of the motion that it drives. voltage [V], temperature [degrees C]. conditions: what the servo reports.
    """

    tick: int
    position: float
    velocity: float
    load: float
    voltage: float
    temperature: float
    conditions: tuple[str, ...] = ()


@dataclass
class Counts:
    """Counts since the start: faults of the bus by kind, retries, and commands that went beyond a limit."""

    retries: int = 0
    limited: int = 0
    faults: dict[str, int] = field(default_factory=dict)

    def add(self, fault: str) -> None:
        """Count a fault."""
        self.faults[fault] = self.faults.get(fault, 0) + 1


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
        self._implausible: dict[str, list[int]] = {}
        self._beyond: dict[str, int] = {}  # ticks of joints that count beyond one turn

    def know(self, ticks: Mapping[str, int], time: float) -> None:
        """Note that joints were at these ticks at time [s]: the next readings must be near."""
        self._ticks.update(ticks)
        self.last.update(dict.fromkeys(ticks, time))
        self._implausible.clear()

    def read(self, time: float) -> dict[str, JointMeasurement]:
        """Return the joints that answered at time [s]."""
        transport, model = self._servos[0].transport, self._servos[0].model
        address, size = model.measured
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
            measured = self._measured(servo, reply, time)
            if measured is not None:
                found[servo.joint.name] = measured
        before, self._reported = self._reported, {name: joint.conditions for name, joint in found.items()}
        both = {name: [c for c in now if c in before.get(name, ())] for name, now in self._reported.items()}
        self.lasting = {name: conditions for name, conditions in both.items() if conditions}
        return found

    def _measured(self, servo: ServoSurvey, reply: Reply, time: float) -> JointMeasurement | None:
        if not isinstance(reply, Answer):
            return None
        model, joint = servo.model, servo.joint
        counts = model.decode(model.measured[0], reply.data)
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
            share = counts['present_current'] / max(servo.current_limit, 1)
        self._ticks[joint.name], self.last[joint.name] = tick, time
        return JointMeasurement(
            tick,
            self.calibration[joint.name].position(tick),
            joint.sign * joint.unit * quantity['present_velocity'],
            joint.sign * share,
            quantity['present_voltage'],
            quantity['present_temperature'],
            tuple(model.conditions_of(self._status(servo, reply))),
        )

    def _status(self, servo: ServoSurvey, reply: Answer) -> int:
        """Return the bits of the register status: in each answer, or, of a Dynamixel, announced by a bit."""
        if servo.model.homing_sign < 0:
            return reply.error
        if not reply.error & ALERT:
            return 0
        return servo.try_read('status') or 0

    def _plausible(self, servo: ServoSurvey, tick: int, time: float) -> bool:
        """Whether a joint can have moved to a tick since it was measured last."""
        joint = servo.joint
        self._beyond.pop(joint.name, None)
        if servo.model.homing_sign < 0 and not 0 <= tick < TICKS_PER_TURN:
            self._beyond[joint.name] = tick
            return False
        if joint.name not in self._ticks:
            return True
        moved = abs(tick - self._ticks[joint.name])
        if joint.full_turn:
            moved = min(moved, abs(TICKS_PER_TURN - moved))
        possible = SLACK + PUSHED * joint.fastest / joint.unit * (time - self.last[joint.name])
        rejected = self._implausible.setdefault(joint.name, [])
        if moved <= possible:
            rejected.clear()
            return True
        rejected.append(tick)
        del rejected[:-SETTLED]
        return len(rejected) == SETTLED and max(rejected) - min(rejected) <= SLACK

    def silent(self, time: float, patience: float) -> list[str]:
        """Return the joints that have not answered for longer than patience [s]."""
        return [
            servo.joint.name for servo in self._servos if time - self.last.get(servo.joint.name, -math.inf) > patience
        ]

    def silence(self, silent: Sequence[str]) -> str:
        """Return why there is no measurement of joints that have been silent for too long, and what helps."""
        found = []
        if unanswered := [name for name in silent if name not in self._beyond]:
            found.append(f'no answer from {join_names(unanswered)}: check the cables')
        found += [
            f'"{name}" is at tick {self._beyond[name]}, beyond its turn of 0 to {TICKS_PER_TURN - 1}: '
            'clear bit 4 of its phase, and calibrate it again'
            for name in silent
            if name in self._beyond
        ]
        return '; '.join(found)
