# SPDX-License-Identifier: Apache-2.0
"""python -m ik_node.sim.bus so101: emulate the servos of a profile, and print the port."""

from __future__ import annotations

import argparse
import contextlib
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from ik_node.errors import IkError, InputError
from ik_node.model.inertia import Weight
from ik_node.model.urdf.description import load_description
from ik_node.model.urdf.reader import read_urdf
from ik_node.servos.bus.models import model_named
from ik_node.servos.calibration.profile import ArmProfile, JointProfile, read_profile
from ik_node.sim.bus.dynamixel_servo import DRIVE_MODE, P_GAIN, POSITION, REVERSE, SECONDARY, DynamixelServo
from ik_node.sim.bus.dynamixel_servo import HIGH as DXL_HIGH
from ik_node.sim.bus.dynamixel_servo import LOW as DXL_LOW
from ik_node.sim.bus.sts_servo import HIGH, LOW, MOST_TORQUE, OFFSET, OVERLOAD, PROTECTION_CURRENT, StsServo

from .bus import Bus, Server
from .servo import Motor, Servo

MIDDLE = 2048.0  # tick of zero of every emulated joint
MOST_SHARE = 0.95  # of the torque that gravity takes


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


def weighing(
    profile: ArmProfile, servos: Sequence[Servo], weight: Callable[[Mapping[str, float]], Mapping[str, float]]
) -> Callable[[], None]:
    """Return what sets the gravity of servos_of a profile; weight: torques [Nm] at positions, by joint.

    A servo without torque lies on something: it does not fall.
    """
    by_id = {servo.ids[0]: servo for servo in servos}
    joints = [(joint, model_named(joint.model), -1 if joint.reversed else 1) for joint in profile.joints]
    for joint, model, _ in joints:
        for id in (joint.id, *joint.shadows):
            if isinstance(servo := by_id[id], DynamixelServo):
                servo.motor.stiffness = model.stiffness * servo.get(P_GAIN, 2)

    def weigh() -> None:
        torques = weight(
            {
                joint.name: joint.sign * way * joint.unit * (by_id[joint.id].motor.actual - MIDDLE)
                for joint, _, way in joints
            }
        )
        for joint, model, way in joints:
            most = model.stall * (1 + len(joint.shadows)) / joint.scale
            share = joint.sign * way * torques.get(joint.name, 0.0) / most
            for id in (joint.id, *joint.shadows):
                by_id[id].motor.gravity = min(max(share, -MOST_SHARE), MOST_SHARE)

    return weigh


def _keep(servo: Servo, address: int, size: int, value: int) -> None:
    servo.put(address, size, value)
    servo.keep(address, size)


def main() -> int:
    """Run the emulated bus of a profile until Ctrl-C, or until the program that started it ends."""
    parser = argparse.ArgumentParser(prog='ik_node.sim.bus', description=__doc__)
    parser.add_argument('profile', help='profile in config/servos, or the path of one')
    parser.add_argument('--link', help='path of the port (default: in a new folder)')
    parser.add_argument('--description', help='URDF or xacro by whose gravity the servos are loaded')
    parser.add_argument('--xacro-args', default='', help='name:=value ... for a xacro')
    parser.add_argument('--seed', type=int, default=0, help='seed of the random faults')
    parser.add_argument('--calls', action='store_true', help='answer calls on stdin, and end when it closes')
    given = parser.parse_args()
    try:
        profile = read_profile(given.profile)
        servos = servos_of(profile)
        bus = Bus(servos, profile.protocol, given.seed)
        if given.description:
            text = load_description(Path(given.description), given.xacro_args)
            bus.weigh = weighing(profile, servos, Weight(read_urdf(text), text))
    except IkError as error:
        print(error, file=sys.stderr)
        return 1
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(0))
    with contextlib.ExitStack() as stack, contextlib.suppress(KeyboardInterrupt):
        link = Path(given.link or Path(stack.enter_context(TemporaryDirectory(prefix='ik_bus_')), 'port'))
        server = Server(bus, link, given.calls)
        stack.callback(server.do_plug, False)  # removes the link
        if not given.calls:
            print(link, flush=True)
        server.run()
    return 0


if __name__ == '__main__':
    sys.exit(main())
