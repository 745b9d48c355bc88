# SPDX-License-Identifier: Apache-2.0
"""The parameters of ik_servos."""

from __future__ import annotations

from dataclasses import dataclass

from ik_node.servos.calibration.profile import shipped_profiles
from ik_node.servos.calibration.zeros import ZERO_FROM
from ik_node.settings import check, parameter

MEMORY, LEROBOT = 'memory', 'lerobot'
ON_EXIT = ('hold', 'release')


@dataclass(frozen=True)
class ServoSettings:
    """The parameters of ik_servos, all read at start-up."""

    serial_port: str = parameter(
        '',
        'serial port, preferably a path in /dev/serial/by-id. If it is empty, the only one; "emulated": emulated '
        'servos, no arm needed',
        read_only=True,
    )
    profile: str = parameter(
        'so101',
        f'servo profile of the arm: {", ".join(shipped_profiles())}, or the path of a profile',
        read_only=True,
    )
    description: str = parameter(
        '',
        'robot description whose joint limits also apply: a .urdf or .xacro file, or a robot shipped with '
        'ik_node. If it is empty, the one that the profile names',
        read_only=True,
    )
    xacro_args: str = parameter('', "arguments of a .xacro file, such as 'dof:=5 gripper:=true'", read_only=True)
    calibration: str = parameter(
        MEMORY,
        'where to read the calibration: "memory" (EEPROM of the servos), "lerobot" (EEPROM and the matching '
        'LeRobot file), or the path of a LeRobot file',
        read_only=True,
    )
    zero_from: str = parameter(
        'stops',
        'where joint zero is: "stops" (from the mechanical stops; needs a fully recorded range), "homing" '
        '(the pose held during calibration) or "lerobot" (middle of the range)',
        choices=ZERO_FROM,
        read_only=True,
    )
    zeros: str = parameter(
        '',
        "tick of zero by joint, such as 'elbow_flex=2126'; overrides every other source",
        read_only=True,
    )
    known_pose: str = parameter(
        '',
        "pose in which you hold the arm for ~/set_zero [rad or m], such as 'wrist_roll=0, elbow_flex=1.57'; "
        'joints that are not named keep their zeros',
    )
    rate: float = parameter(100.0, 'cycles per second [Hz]', low=10.0, high=500.0, read_only=True)
    command_timeout: float = parameter(
        0.4,
        'time without a message on joint_commands after which the arm holds its pose [s]',
        low=0.05,
        high=2.0,
        read_only=True,
    )
    torque_limit: float = parameter(
        1.0, 'share of the torque of the servos that may be used', low=0.05, high=1.0, read_only=True
    )
    compensate_sag: bool = parameter(
        True,
        'compensate the sag of the arm: its goals lead by the error that gravity causes, computed from the '
        'masses of the description and refined at rest',
        read_only=True,
    )
    torque_at_start: bool = parameter(
        False, 'switch the torque on as soon as the servos are found, not only on ~/torque', read_only=True
    )
    on_exit: str = parameter(
        'hold',
        'what happens when the node ends: "hold" (the servos keep the pose with torque) or "release" (the '
        'arm is lowered slowly, then the torque is off)',
        choices=ON_EXIT,
    )

    def __post_init__(self) -> None:
        check(self)
