# SPDX-License-Identifier: Apache-2.0
"""What ik_servo_check reads from the servos, and the problems and warnings in it; it writes nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median

from ik_node.errors import InputError, quoted
from ik_node.servos.arm.registers import (
    TRIES,
    ArmError,
    Servo,
    is_damaged,
    named,
    same_id,
    wrong_supply,
)
from ik_node.servos.bus.models import PHASE_SPEED_0_IS_FASTEST, ServoModel, model_named, model_numbered
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
class ServoReport(Servo):
    """What was read from one servo.

    counts: of its registers, by name. fault: why it cannot be used, empty if it can. silent: it does not
    answer at all. silent_shadows: ids of servos that turn with it and do not answer. calibration: None if the
    zero of the joint is not known; problem says why.
    """

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


def read_all(transport: Transport, profile: ArmProfile) -> list[ServoReport]:
    """Read all servos of a profile; return them in the order of the joints. Raises PortError."""
    return [_report(transport, joint) for joint in profile.joints]


def with_calibration(
    servos: Sequence[ServoReport],
    profile: ArmProfile,
    zero_from: str,
    zeros: Mapping[str, float],
    file: Mapping[str, Recorded],
) -> list[ServoReport]:
    """Return servos with the zeros of the joints, as far as they can be known; see calibrate."""
    found = []
    for servo in servos:
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


def measure(servos: Sequence[ServoReport]) -> dict[str, Reading | Fault]:
    """Return what the servos that can be used measure now, by joint. Raises PortError."""
    usable = [servo for servo in servos if not servo.fault]
    if not usable:
        return {}
    first = usable[0]
    replies = first.transport.sync_read([servo.joint.id for servo in usable], *first.model.measured)
    found: dict[str, Reading | Fault] = {}
    for servo in usable:
        reply = replies[servo.joint.id]
        if isinstance(reply, Answer):
            found[servo.joint.name] = _reading(servo.model, reply)
        else:
            found[servo.joint.name] = reply
    return found


def test_bus(servos: Sequence[ServoReport]) -> BusTest:
    """Read all servos READS times. Raises PortError."""
    faults: Counter[str] = Counter()
    begin = steady()
    for _ in range(READS):
        faults.update(one.value for one in measure(servos).values() if isinstance(one, Fault))
    return BusTest(READS, steady() - begin, faults)


def _report(transport: Transport, joint: JointProfile) -> ServoReport:
    servo = Servo(transport, joint, model_named(joint.model))

    def faulty(fault: str, silent: bool = False) -> ServoReport:
        return ServoReport(transport, joint, servo.model, fault=fault, silent=silent)

    if not _answers(transport, joint.id):
        silent = all(reply is Fault.SILENT for reply in _pings(transport, joint.id))
        return faulty('does not answer' if silent else DAMAGED, silent)
    if is_damaged(transport, joint):
        return faulty(DAMAGED)
    try:
        number = servo.read('model')
        model = servo.model if number == servo.model.number else model_numbered(number)
        if model is None or model.registers is not servo.model.registers:
            shown = f'model {number}' if model is None else model.name
            return faulty(f'is {shown}, the profile has {servo.model.name}')
        return _read(replace(servo, model=model))
    except ArmError:
        return faulty('answers only now and then')


def _pings(transport: Transport, id: int) -> list[Answer | Fault]:
    return [transport.ping(id) for _ in range(TRIES)]


def _answers(transport: Transport, id: int) -> bool:
    return any(isinstance(reply, Answer) for reply in _pings(transport, id))


def _read(servo: Servo) -> ServoReport:
    transport, joint, model = servo.transport, servo.joint, servo.model
    counts = {name: servo.read(name) for name in (*STORED, *registers_of(model)) if servo.has(name)}
    reply = transport.read(joint.id, *model.measured)
    reading = None
    if isinstance(reply, Answer):
        reading = _reading(model, reply)
        reading = replace(reading, conditions=tuple(model.conditions_of(counts['status'])))
    return ServoReport(
        transport,
        joint,
        model,
        counts,
        silent_shadows=tuple(id for id in joint.shadows if not _answers(transport, id)),
        recorded=recorded_in(model, counts),
        reading=reading,
    )


def _reading(model: ServoModel, reply: Answer) -> Reading:
    counts = model.decode(model.measured[0], reply.data)
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


# Protection: what keeps a gripper that holds something from burning out, and gains that carry the arm.
#
# The values of grippers are those that LeRobot writes: half of the torque, half of the current, and
# overload from a quarter of the torque on. The P gain is that of the factory.

GRIPPER = {'max_torque': 500, 'protection_current': 250, 'overload_torque': 25}  # at most; STS servos
WEAK_GAIN, FACTORY_GAIN = 16, 32  # P; LeRobot writes the weak one at every connection


def unprotected(servo: ServoReport) -> dict[str, int]:
    """Return the counts that registers of a gripper should have, by name; only of those that have more."""
    if not servo.joint.gripper:
        return {}
    return {name: limit for name, limit in GRIPPER.items() if servo.counts.get(name, 0) > limit}


def is_weak(servo: ServoReport) -> bool:
    """Whether the P gain of a servo is so low that the arm sags."""
    return servo.model.homing_sign < 0 and servo.counts['p_gain'] <= WEAK_GAIN


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
    profile: ArmProfile, servos: Sequence[ServoReport], elsewhere: Sequence[str], test: BusTest | None
) -> Diagnosis:
    """Return what is wrong. elsewhere: sentences about servos that answer otherwise than expected.

    test: of the bus, None if there was none.
    """
    problems = _of_silence(servos, elsewhere)
    warnings: list[str] = []
    usable = [servo for servo in servos if not servo.fault]
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
        f'{servo} is a gripper with {_in_words(servo)}: it can burn out while it holds '
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
    on = [str(servo) for servo in usable if servo.counts['torque_enable']]
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


def _of_silence(servos: Sequence[ServoReport], elsewhere: Sequence[str]) -> list[str]:
    if servos and all(servo.silent for servo in servos):
        return list(elsewhere) or [
            'the port opens, but no servo answers. Is the power supply of the arm on, and is its cable in the adapter?'
        ]
    silent = [servo.joint for servo in servos if servo.silent]
    found = []
    if silent:
        found.append(
            f'no answer from {", ".join(map(named, silent))}: check the cable that leads to '
            f'{"it" if len(silent) == 1 else "the first of them"}, and the ids of the servos'
        )
        found += elsewhere
    if len(servos) > 1 and [one.joint.id for one in servos if not one.silent] == [FACTORY_ID]:
        found.append(DELIVERED)
    damaged = [servo.joint for servo in servos if servo.fault == DAMAGED]
    if damaged:
        found.append(same_id(damaged, silent))
    found += [
        f'{servo} {servo.fault}' for servo in servos if servo.fault and servo.fault != DAMAGED and not servo.silent
    ]
    return found


def _problems_of(servo: ServoReport) -> list[str]:
    found = [
        f'servo {id}, which turns {servo.joint.name} too, does not answer: check its cable'
        for id in servo.silent_shadows
    ]
    mode = servo.counts['operating_mode']
    if mode not in servo.model.position_modes:
        found.append(f'{servo} is in operating mode {mode}, it must be {servo.position_modes}')
    if servo.model.homing_sign > 0 and servo.reading is not None and servo.reading.conditions:
        found.append(f'{servo} has shut itself off: {", ".join(servo.reading.conditions)}. Switch its power off and on')
    return found


def _of_zeros(usable: Sequence[ServoReport]) -> list[str]:
    joints: dict[str, list[str]] = {}
    for servo in usable:
        if servo.problem:
            joints.setdefault(servo.problem, []).append(servo.joint.name)
    return [f'{", ".join(names)}: {problem}' for problem, names in joints.items()]


def _of_voltage(usable: Sequence[ServoReport]) -> list[tuple[str, bool]]:
    """Return a sentence for each kind of servos whose supply is wrong, and whether it has too many volts."""
    kinds: dict[tuple[tuple[float, float], bool], list[ServoReport]] = {}
    for servo in usable:
        if servo.reading is not None and servo.has_wrong_supply:
            kinds.setdefault((servo.volts, servo.reading.volts > servo.volts[1]), []).append(servo)
    found = []
    for (allowed, is_high), servos in kinds.items():
        volts = [servo.reading.volts for servo in servos if servo.reading is not None]
        wrong = wrong_supply(max(volts) if is_high else min(volts), allowed)
        names = ', '.join(map(str, servos))
        found.append((f'{names}: the supply has {wrong}', is_high))
    return found


def _warnings_of(servo: ServoReport) -> list[str]:
    who, found = str(servo), []
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


def _of_firmware(usable: Sequence[ServoReport]) -> list[str]:
    if len({servo.firmware for servo in usable}) < 2:
        return []
    shown = ', '.join(f'{servo.joint.id}: {servo.firmware}' for servo in usable)
    return [f'the servos have different firmware ({shown}), which LeRobot rejects: update them']


def _of_supply(usable: Sequence[ServoReport]) -> list[str]:
    volts = [servo.reading.volts for servo in usable if servo.reading is not None]
    if not volts or not LEADER_VOLTS[0] <= median(volts) <= LEADER_VOLTS[1]:
        return []
    return [
        f'the supply has {median(volts):.1f} V, as that of a leader arm, whose ids are the same: is this the '
        'port of the follower? Servos for 7.4 V must not get 12 V'
    ]


def _in_words(servo: ServoReport) -> str:
    return ' and '.join(f'{name} {servo.counts[name]} (at most {limit})' for name, limit in unprotected(servo).items())
