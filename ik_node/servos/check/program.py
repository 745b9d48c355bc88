# SPDX-License-Identifier: Apache-2.0
"""ik_servo_check: find the port, look at every servo, and say what is wrong in one sentence each."""

from __future__ import annotations

import argparse
import os
import platform
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from ik_node.console import run, say
from ik_node.errors import InputError, path_text
from ik_node.extras import load
from ik_node.servos.bus.protocol import Codec
from ik_node.servos.bus.serial_transport import SerialTransport
from ik_node.servos.bus.transport import Transport
from ik_node.servos.calibration.estimates import ZERO_FROM
from ik_node.servos.calibration.lerobot_file import find_file, read_file
from ik_node.servos.calibration.owner_zeros import load_zeros, ticks_now, zeros_path
from ik_node.servos.calibration.profile import PROTOCOLS, ArmProfile, read_profile, shipped_profiles
from ik_node.servos.calibration.recorded import Recorded
from ik_node.servos.calibration.zeros import check_names, read_zeros
from ik_node.servos.check.diagnosis import Diagnosis, bus_text, diagnose
from ik_node.servos.check.findings import ServoFinding, find, test_bus, with_calibration
from ik_node.servos.check.live import live
from ik_node.servos.check.page import reading_table, sentences, servo_table, zero_table
from ik_node.servos.check.protect import protect
from ik_node.servos.check.record import check_file, record
from ik_node.servos.check.search import adapter, search
from ik_node.servos.check.wiggle import wiggle
from ik_node.servos.ports import EMULATED, EmulatedArm, arm_at, the_port

TIMEOUT = 0.05  # [s] of a servo: a busy computer is not a fault of the bus
SCAN_TIMEOUT = 0.02  # [s] of a servo, while many that are not there are tried; FTDI adapters take 16 ms


def main(given: Sequence[str] | None = None) -> int:
    """Check an arm; exit code 0 if it can be driven, 1 if not, 2 if it cannot be checked."""
    parser = argparse.ArgumentParser(
        prog='ik_servo_check',
        description='Check an arm of bus servos: the port, every servo, its zero. Nothing moves, and nothing '
        'is written, unless --wiggle, --record or --protect asks for it.',
    )
    parser.add_argument(
        '--port',
        default='',
        help='serial port, such as /dev/ttyACM0, or emulated (default: the only one)',
    )
    parser.add_argument(
        '--profile',
        default='so101',
        help=f'{", ".join(shipped_profiles())}, or the path of a profile (default: so101)',
    )
    parser.add_argument('--calibration', help="LeRobot's file of this arm (default: the one that fits)")
    parser.add_argument(
        '--zero-from',
        choices=ZERO_FROM,
        default=ZERO_FROM[0],
        help=f'preferred estimate of the zeros (default: {ZERO_FROM[0]})',
    )
    parser.add_argument(
        '--zeros', default='', help="zeros in ticks, such as 'elbow_flex=2126, wrist_roll=2050'"
    )
    action = parser.add_mutually_exclusive_group()
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
        help='store in the servos what keeps a gripper from burning out, and the P gain of the factory',
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
        if arguments.port == EMULATED:
            port = stack.enter_context(closing(EmulatedArm(arguments.profile))).port
        else:
            port = the_port(arguments.port)
        say('\n'.join(_head(port, profile)))
        transport = SerialTransport(port, profile.baud, PROTOCOLS[profile.protocol], TIMEOUT)
        stack.callback(transport.close)
        findings, notes = _findings(transport, profile, arguments, zeros)
        if arguments.live:
            return live(transport, findings)
        if arguments.record:
            return record(transport, findings, Path(arguments.record))
        if arguments.protect:
            return protect(transport, findings)
        diagnosis = _page(transport, profile, findings, notes, port)
        if arguments.wiggle is not None and not any(servo.silent for servo in findings):
            return wiggle(transport, findings, arguments.wiggle)
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


def _findings(
    transport: Transport, profile: ArmProfile, arguments: argparse.Namespace, zeros: Mapping[str, float]
) -> tuple[list[ServoFinding], list[str]]:
    """Return what was found, and notes on where the calibration is from."""
    findings = find(transport, profile)
    memory = {servo.joint.name: servo.recorded for servo in findings if servo.recorded is not None}
    notes = []
    file: dict[str, Recorded] = {}
    path = Path(arguments.calibration) if arguments.calibration else None
    if path is None:
        try:
            path = find_file(profile, memory)
        except InputError as error:  # several fit
            notes.append(f'file     {error} with --calibration')
    if path is not None:
        file = read_file(path, profile)
        notes.append(f"file     {path_text(path)}, LeRobot's")
    own = zeros_path(profile.name, arm_at(arguments.port))
    stored = {name: zero for name, zero in load_zeros(own).items() if name in memory}
    if stored:
        notes.append(f'zeros    {path_text(own)}: {", ".join(stored)}')
    ticks = {**ticks_now(profile, stored, memory), **zeros}
    return with_calibration(findings, profile, arguments.zero_from, ticks, file), notes


def _page(
    transport: Transport,
    profile: ArmProfile,
    findings: Sequence[ServoFinding],
    notes: Sequence[str],
    port: str,
) -> Diagnosis:
    silent = {servo.joint.id for servo in findings if servo.silent}
    elsewhere: list[str] = []
    if silent:
        say(f'no answer from {len(silent)} of {len(findings)} servos; looking for others ...', sys.stderr)
        transport.close()

        def open_port(baud: int, codec: Codec) -> Transport:
            return SerialTransport(port, baud, codec, SCAN_TIMEOUT)

        elsewhere = search(open_port, profile, silent)
    usable = [servo for servo in findings if not servo.fault]
    lines = [*notes]
    test = test_bus(transport, findings) if usable and not silent else None
    if test is not None:
        lines.append(f'bus      {bus_text(test, len(usable))}')
    lines += ['', *servo_table(findings)]
    if usable:
        readings = {one.joint.name: one.reading for one in usable if one.reading is not None}
        lines += ['', *reading_table(findings, readings), '', *zero_table(usable)]
    diagnosis = diagnose(profile, findings, elsewhere, test)
    say('\n'.join([*lines, *sentences(diagnosis)]))
    return diagnosis
