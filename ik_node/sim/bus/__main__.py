# SPDX-License-Identifier: Apache-2.0
"""python -m ik_node.sim.bus so101: emulate the servos of a profile, and print the port."""

from __future__ import annotations

import argparse
import contextlib
import signal
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from ik_node.errors import IkError, InputError
from ik_node.servos.calibration.profile import ArmProfile, JointProfile, read_profile
from ik_node.sim.bus.bus import Bus
from ik_node.sim.bus.dynamixel_servo import DRIVE_MODE, POSITION, REVERSE, SECONDARY, DynamixelServo
from ik_node.sim.bus.dynamixel_servo import HIGH as DXL_HIGH
from ik_node.sim.bus.dynamixel_servo import LOW as DXL_LOW
from ik_node.sim.bus.motor import Motor
from ik_node.sim.bus.server import Server
from ik_node.sim.bus.servo import Servo
from ik_node.sim.bus.sts_servo import HIGH, LOW, MOST_TORQUE, OFFSET, OVERLOAD, PROTECTION_CURRENT, StsServo

MIDDLE = 2048.0  # tick of zero of every emulated joint


def servos_of(profile: ArmProfile) -> list[Servo]:
    """Return the servos of an arm whose zeros are at MIDDLE, calibrated from stop to stop."""
    servos = [servo for joint in profile.joints for servo in _servos(profile, joint)]
    for servo in servos:
        if profile.baud not in servo.BAUDS:
            raise InputError(f'no servo of {profile.name} has {profile.baud} baud, but {servo.BAUDS}')
        _keep(servo, servo.BAUD_AT, 1, servo.BAUDS.index(profile.baud))
    return servos


def _servos(profile: ArmProfile, joint: JointProfile) -> list[Servo]:
    fastest = joint.fastest / joint.unit
    stops = joint.stops
    if stops is None:
        low, high = (-1e9, 1e9) if joint.full_turn else (MIDDLE - 1900, MIDDLE + 1900)
    else:
        low, high = sorted(MIDDLE + joint.sign * stop / joint.unit for stop in stops)
    if profile.protocol == 'feetech':
        offset = 1 if joint.full_turn else 0  # without offset and range it would be as delivered
        motor = Motor(MIDDLE + offset, low=low, high=high, fastest=fastest, play=6.0)
        servo: Servo = StsServo(joint.id, motor)
        _keep(servo, OFFSET, 2, offset)
        if not joint.full_turn:
            _keep(servo, LOW, 2, round(low))
            _keep(servo, HIGH, 2, round(high))
        if joint.gripper:  # as LeRobot sets it
            for address, size, value in (
                (MOST_TORQUE, 2, 500),
                (PROTECTION_CURRENT, 2, 250),
                (OVERLOAD, 1, 25),
            ):
                _keep(servo, address, size, value)
        return [servo]
    mode = POSITION if joint.mode is None else joint.mode
    found: list[Servo] = []
    ends = (2 * MIDDLE - high, 2 * MIDDLE - low) if joint.reversed else (low, high)
    for id in (joint.id, *joint.shadows):
        motor = Motor(MIDDLE, low=ends[0], high=ends[1], fastest=fastest)
        servo = DynamixelServo(id, joint.model, motor, mode)
        if id != joint.id:
            _keep(servo, SECONDARY, 1, joint.id)
        if joint.reversed:
            _keep(servo, DRIVE_MODE, 1, REVERSE)
        if mode == POSITION:
            _keep(servo, DXL_LOW, 4, round(low))
            _keep(servo, DXL_HIGH, 4, round(high))
        found.append(servo)
    return found


def _keep(servo: Servo, address: int, size: int, value: int) -> None:
    servo.put(address, size, value)
    servo.keep(address, size)


def main() -> int:
    """Run the emulated bus of a profile until Ctrl-C, or until the program that started it ends."""
    parser = argparse.ArgumentParser(prog='ik_node.sim.bus', description=__doc__)
    parser.add_argument('profile', help='profile in config/servos, or the path of one')
    parser.add_argument('--link', help='path of the port (default: in a new folder)')
    parser.add_argument('--seed', type=int, default=0, help='seed of the random faults')
    parser.add_argument('--calls', action='store_true', help='answer calls on stdin, and end when it closes')
    given = parser.parse_args()
    try:
        profile = read_profile(given.profile)
        servos = servos_of(profile)
    except IkError as error:
        print(error, file=sys.stderr)
        return 1
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(0))
    with contextlib.ExitStack() as stack, contextlib.suppress(KeyboardInterrupt):
        link = Path(given.link or Path(stack.enter_context(TemporaryDirectory(prefix='ik_bus_')), 'port'))
        server = Server(Bus(servos, profile.protocol, given.seed), link, given.calls)
        stack.callback(server.do_plug, False)  # removes the link
        if not given.calls:
            print(link, flush=True)
        server.run()
    return 0


if __name__ == '__main__':
    sys.exit(main())
