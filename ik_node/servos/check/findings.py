# SPDX-License-Identifier: Apache-2.0
"""Findings: everything that the servos of an arm tell. Nothing is written, and what is missing is told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from ik_node.errors import InputError, quoted
from ik_node.servos.arm.survey import TRIES, ArmError, is_damaged, read, wrong_supply
from ik_node.servos.bus.models import model_named, model_numbered
from ik_node.servos.bus.registers import ServoModel
from ik_node.servos.bus.transport import Answer, Fault, Transport
from ik_node.servos.calibration.profile import ArmProfile, JointProfile
from ik_node.servos.calibration.recorded import Recorded, recorded_in, registers_of
from ik_node.servos.calibration.zeros import JointCalibration, calibrate
from ik_node.steady import steady

STORED = (
    *('firmware', 'firmware_major', 'firmware_minor', 'operating_mode', 'torque_enable', 'torque_limit'),
    *('p_gain', 'status', 'max_torque', 'protection_current', 'overload_torque'),
    *('min_voltage', 'max_voltage'),
)
DAMAGED = 'gives damaged answers'
READS = 100  # of all servos, to see how reliable the bus is


@dataclass(frozen=True)
class Reading:
    """What one servo measured. load: share of its largest torque, None if it has only a current."""

    tick: int
    load: float | None
    volts: float
    temperature: float
    conditions: tuple[str, ...]


@dataclass(frozen=True)
class ServoFinding:
    """One servo. counts: of its registers, by name. fault: why it cannot be used, empty if it can.

    silent: it does not answer at all. silent_shadows: ids of servos that turn with it and do not answer.
    calibration: None if the zero of the joint is not known; problem says why.
    """

    joint: JointProfile
    model: ServoModel
    counts: Mapping[str, int] = field(default_factory=dict)
    fault: str = ''
    silent: bool = False
    silent_shadows: tuple[int, ...] = ()
    recorded: Recorded | None = None
    reading: Reading | None = None
    calibration: JointCalibration | None = None
    problem: str = ''

    @property
    def volts(self) -> tuple[float, float]:
        """The least and the most [V] that it allows."""
        low, high = (self.model[name].quantity(self.counts[name]) for name in ('min_voltage', 'max_voltage'))
        return low, high

    @property
    def has_wrong_supply(self) -> bool:
        """Whether its supply has too many or too few volts."""
        return self.reading is not None and bool(wrong_supply(self.reading.volts, self.volts))

    @property
    def firmware(self) -> str:
        """The version of the firmware, empty if it is not known."""
        if 'firmware' in self.counts:
            return str(self.counts['firmware'])
        if 'firmware_major' not in self.counts:
            return ''
        return f'{self.counts["firmware_major"]}.{self.counts["firmware_minor"]}'


@dataclass(frozen=True)
class BusTest:
    """How reliable the bus is: reads of all servos, the time that they took [s], and faults by kind."""

    reads: int
    seconds: float
    faults: Mapping[str, int]


def find(transport: Transport, profile: ArmProfile) -> list[ServoFinding]:
    """Return what each servo of a profile tells, in the order of the joints. Raises PortError."""
    return [_found(transport, joint) for joint in profile.joints]


def with_calibration(
    findings: Sequence[ServoFinding],
    profile: ArmProfile,
    zero_from: str,
    zeros: Mapping[str, float],
    file: Mapping[str, Recorded],
) -> list[ServoFinding]:
    """Return findings with the zeros of the joints, as far as they can be known; see calibrate."""
    found = []
    for servo in findings:
        name = servo.joint.name
        one = replace(profile, joints=(servo.joint,))
        memory = {} if servo.recorded is None else {name: servo.recorded}
        try:
            arm = calibrate(
                one,
                memory,
                zero_from,
                {key: zero for key, zero in zeros.items() if key == name},
                None,
                {key: record for key, record in file.items() if key == name},
            )
        except InputError as error:
            found.append(replace(servo, problem=str(error).removeprefix(f'joint {quoted(name)}: ')))
        else:
            found.append(replace(servo, calibration=arm.joints[0]))
    return found


def measure(transport: Transport, findings: Sequence[ServoFinding]) -> dict[str, Reading | Fault]:
    """Return what the servos that can be used measure now, by joint. Raises PortError."""
    usable = [servo for servo in findings if not servo.fault]
    if not usable:
        return {}
    address, size = usable[0].model.measured
    replies = transport.sync_read([servo.joint.id for servo in usable], address, size)
    found: dict[str, Reading | Fault] = {}
    for servo in usable:
        reply = replies[servo.joint.id]
        if isinstance(reply, Answer):
            found[servo.joint.name] = _reading(servo.model, servo.model.decode(address, reply.data), reply)
        else:
            found[servo.joint.name] = reply
    return found


def test_bus(transport: Transport, findings: Sequence[ServoFinding]) -> BusTest:
    """Read all servos READS times. Raises PortError."""
    faults: Counter[str] = Counter()
    begin = steady()
    for _ in range(READS):
        faults.update(one.value for one in measure(transport, findings).values() if isinstance(one, Fault))
    return BusTest(READS, steady() - begin, faults)


def _found(transport: Transport, joint: JointProfile) -> ServoFinding:
    model = model_named(joint.model)
    reply = next((reply for reply in _pings(transport, joint.id) if isinstance(reply, Answer)), None)
    if reply is None:
        silent = all(reply is Fault.SILENT for reply in _pings(transport, joint.id))
        return ServoFinding(joint, model, fault='does not answer' if silent else DAMAGED, silent=silent)
    if is_damaged(transport, joint):
        return ServoFinding(joint, model, fault=DAMAGED)
    try:
        number = read(transport, joint, model, 'model')
        actual = model if number == model.number else model_numbered(number)
        if actual is None or actual.registers is not model.registers:
            shown = f'model {number}' if actual is None else actual.name
            return ServoFinding(joint, model, fault=f'is {shown}, the profile has {model.name}')
        return _read(transport, joint, actual)
    except ArmError:
        return ServoFinding(joint, model, fault='answers only now and then')


def _pings(transport: Transport, id: int) -> list[Answer | Fault]:
    return [transport.ping(id) for _ in range(TRIES)]


def _read(transport: Transport, joint: JointProfile, model: ServoModel) -> ServoFinding:
    names = [name for name in (*STORED, *registers_of(model)) if name in model.registers]
    counts = {name: read(transport, joint, model, name) for name in names}
    address, size = model.measured
    reply = transport.read(joint.id, address, size)
    reading = None
    if isinstance(reply, Answer):
        reading = _reading(model, model.decode(address, reply.data), reply)
        reading = replace(reading, conditions=tuple(model.conditions_of(counts['status'])))
    return ServoFinding(
        joint,
        model,
        counts,
        silent_shadows=tuple(
            id for id in joint.shadows if not any(isinstance(one, Answer) for one in _pings(transport, id))
        ),
        recorded=recorded_in(model, counts),
        reading=reading,
    )


def _reading(model: ServoModel, counts: Mapping[str, int], reply: Answer) -> Reading:
    quantity = {name: model[name].quantity(count) for name, count in counts.items()}
    status = counts.get('status', 0) | (reply.error if model.homing_sign < 0 else 0)
    conditions = tuple(model.conditions_of(status))
    if model.homing_sign > 0 and reply.error:
        conditions = ('hardware error',)
    return Reading(
        counts['present_position'],
        quantity.get('present_load'),
        quantity['present_voltage'],
        quantity['present_temperature'],
        conditions,
    )
