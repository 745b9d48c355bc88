# SPDX-License-Identifier: Apache-2.0
"""ik_servo_check: find the port, look at every servo, and say what is wrong in one sentence each."""

from __future__ import annotations

import argparse
import math
import os
import platform
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from ik_node.arguments import PlainParser
from ik_node.console import renamed, run, say
from ik_node.errors import InputError, path_text
from ik_node.extras import load
from ik_node.servos.arm.registers import TIME_PROFILE, ArmError, ServoSurvey
from ik_node.servos.arm.torque import Torque, check_range
from ik_node.servos.bus.models import RADIANS_PER_TICK, TICKS_PER_TURN
from ik_node.servos.bus.packets import Codec
from ik_node.servos.bus.serial_transport import SerialTransport
from ik_node.servos.bus.transport import Answer, PortError, Transport
from ik_node.servos.calibration.owner_zeros import load_zeros, ticks_now, zeros_path
from ik_node.servos.calibration.profile import PROTOCOLS, ArmProfile, read_profile, shipped_profiles
from ik_node.servos.calibration.recorded import Recorded, find_file, read_calibration
from ik_node.servos.calibration.zeros import MARGIN, STEP_MARGIN, ZERO_FROM, check_names, read_zeros
from ik_node.servos.ports import EMULATED, EmulatedArm, arm_at, the_port
from ik_node.steady import steady

from .record import check_file, live, protect, reading_table, record, sentences, servo_table, zero_table
from .report import Diagnosis, ServoReport, bus_text, diagnose, read_all, test_bus, with_calibration

BAUDS = {
    'feetech': (1_000_000, 500_000, 250_000, 115_200),
    'dynamixel': (57_600, 1_000_000, 2_000_000, 115_200, 3_000_000, 4_000_000),
}
IDS = range(11)  # that are tried besides those of the profile
Open = Callable[[int, Codec], Transport]  # speed [baud] and protocol

KNOWN = {  # USB vendor and product of adapters for servos
    (0x0403, 0x6014): 'U2D2 of ROBOTIS, or another adapter with an FT232H',
    (0x0403, 0x6001): 'an adapter with an FT232R',
    (0x1A86, 0x55D3): 'the servo board of Waveshare, or another adapter with a CH343',
    (0x1A86, 0x7523): 'FE-URT-1 of Feetech, or another adapter with a CH340',
}


def search(open_port: Open, profile: ArmProfile, silent: set[int]) -> list[str]:
    """Return sentences about servos that answer otherwise. silent: ids that should answer, and do not.

    Only other ids are looked for if some servos of the profile answer.
    """
    all_silent = silent == set(profile.ids)
    found: list[str] = []
    for name in sorted(PROTOCOLS, key=lambda name: name != profile.protocol):
        for baud in sorted(BAUDS[name], key=lambda baud: baud != profile.baud):
            same = name == profile.protocol and baud == profile.baud
            if not same and not all_silent:
                continue
            ids = _answering(open_port, baud, name, set(IDS) | set(profile.ids))
            strange = sorted(ids - set(profile.ids)) if same else sorted(ids)
            if strange:
                found.append(_sentence(profile, name, baud, strange))
            if ids and not same:
                return found
    return found


def adapter(vendor: int | None, product: int | None) -> str:
    """Return what adapter that is by its USB numbers, empty if it is none that is known for servos."""
    return KNOWN.get((vendor or 0, product or 0), '')


def _answering(open_port: Open, baud: int, protocol: str, ids: set[int]) -> set[int]:
    try:
        transport = open_port(baud, PROTOCOLS[protocol])
    except PortError:  # it does not know this speed
        return set()
    try:
        return {id for id in sorted(ids) if isinstance(transport.ping(id), Answer)}
    finally:
        transport.close()


def _sentence(profile: ArmProfile, protocol: str, baud: int, ids: list[int]) -> str:
    shown = f'{"servos" if len(ids) > 1 else "servo"} {", ".join(map(str, ids))}'
    if protocol != profile.protocol:
        return (
            f'{shown} answered in the protocol of {protocol.capitalize()} servos, the profile '
            f'{profile.name} has {profile.protocol.capitalize()}: choose another profile'
        )
    if baud != profile.baud:
        return (
            f'{shown} answered at {baud} baud, the profile {profile.name} has {profile.baud}: set the '
            "speed of the servos with their maker's program, or write that of the servos into a profile"
        )
    return f'{shown} answered, but the profile {profile.name} has no such id'


SWING = round(math.radians(3.0) / RADIANS_PER_TICK)  # [ticks] to each side
SPEED = 170.0  # [ticks/s]: 15 degrees/s
TORQUE = 0.3  # share of the torque that the profile allows
PERIOD = 0.02  # [s] from one goal to the next
SETTLING = 0.4  # [s] for the joint to arrive
LOST = 3 * SWING  # [ticks] from goal to joint: something is wrong
FOLLOWED = 0.5  # share of the swing that a joint makes at least
MOTION = 'torque_limit', 'profile_velocity', 'profile_acceleration', 'bus_watchdog'  # are left as found
INTERRUPTS = signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT


def wiggle(servos: Sequence[ServoReport], name: str) -> int:
    """Turn a joint to both sides, and say how far it went; 0 if it did. Raises PortError and ArmError.

    Its torque is off before and after, also if this is interrupted.
    """
    servo = next(servo for servo in servos if servo.joint.name == name)
    if servo.fault or servo.recorded is None:
        raise ArmError(f'{servo} {servo.fault}')
    if servo.counts['operating_mode'] not in servo.model.position_modes:
        raise ArmError(f'{servo} is in operating mode {servo.counts["operating_mode"]}')
    _confirm(servo)
    if servo.read('torque_enable'):
        raise ArmError(f'{servo} has torque: end the program that drives it, or switch the power off')
    tick = servo.read('present_position')
    timed = bool(servo.counts.get('drive_mode', 0) & TIME_PROFILE)
    one = ServoSurvey(servo.transport, servo.joint, servo.model, servo.recorded, timed, volts=servo.volts)
    _sides(one, tick)  # raises before there is torque
    check_range(one, tick)
    try:
        reached = _turn(one)
    except PortError as error:
        raise PortError(f'{error}. {servo} may still have torque: switch its power off') from None
    return _report_wiggle(servo, reached)


def _turn(servo: ServoSurvey) -> dict[int, int]:
    """Turn a joint to both sides if it may; return how far it went [ticks], by side.

    Raises PortError and ArmError.
    """
    with ExitStack() as stack:
        interrupted = stack.enter_context(_interruptible())
        before = {name: servo.read(name) for name in MOTION if servo.has(name)}
        torque = Torque([servo])
        stack.callback(_restore, servo, torque, before)
        start = torque.switch_on()[0].present
        sides = _sides(servo, start)
        servo.write('torque_limit', servo.model['torque_limit'].count(TORQUE * servo.joint.torque))
        return {side: _swing(servo, start, side, interrupted) for side in sides}


def _sides(servo: ServoSurvey, tick: int) -> list[int]:
    """Return to which sides the joint may turn, +1 and -1: that of rising ticks first."""
    if servo.memory.is_range:
        low, high = servo.memory.low + MARGIN, servo.memory.high - MARGIN
    else:
        low, high = STEP_MARGIN, TICKS_PER_TURN - 1 - STEP_MARGIN
    sides = [side for side in (1, -1) if low <= tick + side * SWING <= high]
    if not sides:
        raise ArmError(f'{servo} is at tick {tick}, its range is {low} to {high}: move it inside by hand')
    return sides


def _confirm(servo: ServoReport) -> None:
    say(f'\n{servo} will turn by 3 degrees with {100 * TORQUE:.0f} % of its torque. All others are left as they are.')
    if sys.stdin.isatty():
        try:
            input('Keep your hands away. Enter starts, Ctrl-C stops: ')
        except EOFError:
            raise KeyboardInterrupt from None


def _swing(servo: ServoSurvey, start: int, side: int, interrupted: threading.Event) -> int:
    """Turn to a side and back; return how far the joint went there [ticks]. Raises ArmError."""
    farthest = 0
    steps = math.ceil(SWING / (SPEED * PERIOD))
    there = [round(side * SWING * step / steps) for step in range(1, steps + 1)]
    stay = [side * SWING] * round(SETTLING / PERIOD)
    register = servo.model['goal_position']
    for offset in (*there, *stay, *reversed(there), *[0] * len(stay)):
        if interrupted.is_set():
            raise KeyboardInterrupt
        goal = start + offset
        servo.transport.sync_write(register.address, {servo.joint.id: register.encode(goal)})
        steady.sleep(PERIOD)
        tick = servo.read('present_position')
        if abs(tick - goal) > LOST:
            raise ArmError(f'{servo} is at tick {tick} instead of {goal}: stopped')
        farthest = max(farthest, side * (tick - start))
    return farthest


def _report_wiggle(servo: ServoReport, reached: dict[int, int]) -> int:
    joint = servo.joint
    went = ' and '.join(
        f'{math.degrees(joint.sign * side * ticks * RADIANS_PER_TICK):+.1f} deg' for side, ticks in reached.items()
    )
    if all(ticks >= FOLLOWED * SWING for ticks in reached.values()):
        say(
            f'{joint.name} went {went}. If the first of these has the opposite sign in the description, '
            'the sign in the profile is wrong.'
        )
        return 0
    say(f'{joint.name} went only {went} of 3 degrees: it is blocked, or too heavy for so little torque.')
    return 1


def _restore(servo: ServoSurvey, torque: Torque, before: dict[str, int]) -> None:
    torque.switch_off()
    for name, count in before.items():
        servo.write(name, count)


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


TIMEOUT = 0.05  # [s] of a servo: a busy computer is not a fault of the bus
SCAN_TIMEOUT = 0.02  # [s] of a servo, while many that are not there are tried; FTDI adapters take 16 ms


def main(given: Sequence[str] | None = None) -> int:
    """Check an arm; exit code 0 if it can be driven, 1 if not, 2 if it cannot be checked."""
    parser = PlainParser('ik_servo_check')
    arm, do = (
        parser.add_argument_group(title)
        for title in ('arm', 'what to do instead of a check, which moves and writes nothing')
    )
    arm.add_argument(
        '--serial-port',
        default='',
        help='serial port, such as /dev/ttyACM0, or emulated (default: the only one)',
    )
    arm.add_argument('--port', type=renamed('--serial-port'), help=argparse.SUPPRESS)
    arm.add_argument(
        '--profile',
        default='so101',
        help=f'{", ".join(shipped_profiles())}, or the path of a profile (default: so101)',
    )
    arm.add_argument('--calibration', help="LeRobot's file of this arm (default: the one that fits)")
    arm.add_argument(
        '--zero-from',
        choices=ZERO_FROM,
        default=ZERO_FROM[0],
        help=f'preferred estimate of the zeros (default: {ZERO_FROM[0]})',
    )
    arm.add_argument('--zeros', default='', help="zeros in ticks, such as 'elbow_flex=2126, wrist_roll=2050'")
    action = do.add_mutually_exclusive_group()
    action.add_argument('--live', action='store_true', help='show what the servos measure until Ctrl-C')
    action.add_argument(
        '--wiggle',
        metavar='JOINT',
        help='turn one joint by 3 degrees to each side, with 30 %% of the torque that the profile allows',
    )
    action.add_argument(
        '--record',
        metavar='FILE',
        help="calibrate the arm by hand: its servos store it, and so does this file, in LeRobot's format",
    )
    action.add_argument(
        '--protect',
        action='store_true',
        help="write the gripper's overload protection and the factory P gain to the servos",
    )
    return run(_check, parser.parse_args(given))


def _check(arguments: argparse.Namespace) -> int:
    profile = read_profile(arguments.profile)
    zeros = read_zeros(arguments.zeros)
    check_names('--zeros', zeros, profile)
    if arguments.wiggle is not None:
        check_names('--wiggle', [arguments.wiggle], profile)
    if arguments.record:
        check_file(Path(arguments.record))
    with ExitStack() as stack:
        if arguments.serial_port == EMULATED:
            port = stack.enter_context(closing(EmulatedArm(arguments.profile))).port
        else:
            port = the_port(arguments.serial_port)
        say('\n'.join(_head(port, profile)))
        transport = SerialTransport(port, profile.baud, PROTOCOLS[profile.protocol], TIMEOUT)
        stack.callback(transport.close)
        servos, notes = _read_servos(transport, profile, arguments, zeros)
        if arguments.live:
            return live(servos)
        if arguments.record:
            return record(servos, Path(arguments.record))
        if arguments.protect:
            return protect(servos)
        diagnosis = _report(transport, profile, servos, notes, port)
        if arguments.wiggle is not None and not any(servo.silent for servo in servos):
            return wiggle(servos, arguments.wiggle)
        return 1 if diagnosis.problems else 0


def _head(port: str, profile: ArmProfile) -> list[str]:
    try:
        own = version('ik_node')
    except PackageNotFoundError:
        own = '(not installed)'
    real = os.path.realpath(port)
    devices = load('serial.tools.list_ports', 'a servo bus').comports()
    device = next((one for one in devices if one.device == real), None)
    named = ''
    if device is not None and device.vid is not None:
        known = adapter(device.vid, device.pid) or device.description or 'not known as an adapter for servos'
        named = f', USB {device.vid:04x}:{device.pid:04x}, {known}'
    return [
        f'ik_servo_check of ik_node {own}, Python {platform.python_version()}, {platform.platform()}',
        f'port     {path_text(port)}{f" -> {real}" if real != port else ""}{named}',
        f'profile  {profile.name}: {profile.protocol.capitalize()} servos at {profile.baud} baud',
    ]


def _read_servos(
    transport: Transport, profile: ArmProfile, arguments: argparse.Namespace, zeros: Mapping[str, float]
) -> tuple[list[ServoReport], list[str]]:
    """Return the servos, and notes on where the calibration is from."""
    servos = read_all(transport, profile)
    memory = {servo.joint.name: servo.recorded for servo in servos if servo.recorded is not None}
    notes = []
    file: dict[str, Recorded] = {}
    path = Path(arguments.calibration) if arguments.calibration else None
    if path is None:
        try:
            path = find_file(profile, memory)
        except InputError as error:  # several fit
            notes.append(f'file     {error} with --calibration')
    if path is not None:
        file = read_calibration(path, profile)
        notes.append(f"file     {path_text(path)}, LeRobot's")
    own = zeros_path(profile.name, arm_at(arguments.serial_port))
    stored = {name: zero for name, zero in load_zeros(own).items() if name in memory}
    if stored:
        notes.append(f'zeros    {path_text(own)}: {", ".join(stored)}')
    ticks = {**ticks_now(profile, stored, memory), **zeros}
    return with_calibration(servos, profile, arguments.zero_from, ticks, file), notes


def _report(
    transport: Transport,
    profile: ArmProfile,
    servos: Sequence[ServoReport],
    notes: Sequence[str],
    port: str,
) -> Diagnosis:
    silent = {servo.joint.id for servo in servos if servo.silent}
    elsewhere: list[str] = []
    if silent:
        say(f'no answer from {len(silent)} of {len(servos)} servos; looking for others ...', sys.stderr)
        transport.close()

        def open_port(baud: int, codec: Codec) -> Transport:
            return SerialTransport(port, baud, codec, SCAN_TIMEOUT)

        elsewhere = search(open_port, profile, silent)
    usable = [servo for servo in servos if not servo.fault]
    lines = [*notes]
    test = test_bus(servos) if usable and not silent else None
    if test is not None:
        lines.append(f'bus      {bus_text(test, len(usable))}')
    lines += ['', *servo_table(servos)]
    if usable:
        readings = {one.joint.name: one.reading for one in usable if one.reading is not None}
        lines += ['', *reading_table(servos, readings), '', *zero_table(usable)]
    diagnosis = diagnose(profile, servos, elsewhere, test)
    say('\n'.join([*lines, *sentences(diagnosis)]))
    return diagnosis
