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
        'serial port, preferably a path in /dev/serial/by-id; empty: the only one; emulated: servos without '
        'an arm',
        read_only=True,
    )
    profile: str = parameter(
        'so101',
        f'servos of the arm: {", ".join(shipped_profiles())}, or the path of a file',
        read_only=True,
    )
    description: str = parameter(
        '',
        'description whose limits also apply: a .urdf or .xacro file or a robot shipped with ik_node; empty: '
        'the one that the profile names',
        read_only=True,
    )
    xacro_args: str = parameter(
        '', "arguments of a .xacro file, such as 'dof:=5 gripper:=true'", read_only=True
    )
    calibration: str = parameter(
        MEMORY,
        'source of the calibration: memory: the EEPROM of the servos; lerobot: also the file of LeRobot that '
        'fits the arm; or the path of such a file',
        read_only=True,
    )
    zero_from: str = parameter(
        'stops',
        'zero of the joints: from the mechanical stops, where the whole range was recorded; from the pose '
        'held at the calibration (homing); or the middle of the range, as LeRobot has it',
        choices=ZERO_FROM,
        read_only=True,
    )
    zeros: str = parameter(
        '',
        "ticks of zero by joint, such as 'elbow_flex=2126'; they take precedence over everything else",
        read_only=True,
    )
    known_pose: str = parameter(
        '',
        "pose at which you hold the arm for ~/set_zero [rad or m], such as 'wrist_roll=0, elbow_flex=1.57'; "
        'joints that are not named keep their zeros',
    )
    rate: float = parameter(100.0, 'cycles per second [Hz]', low=10.0, high=500.0, read_only=True)
    command_timeout: float = parameter(
        0.4,
        'time after the last message on joint_commands at which the arm holds its pose [s]',
        low=0.05,
        high=2.0,
        read_only=True,
    )
    torque_limit: float = parameter(
        1.0, 'share of the torque of the servos that may be used', low=0.05, high=1.0, read_only=True
    )
    compensate_sag: bool = parameter(
        True,
        'send the servos ahead by what they yield to the weight of the arm, computed from the masses of the '
        'description and learned at rest',
        read_only=True,
    )
    torque_at_start: bool = parameter(
        False, 'switch the torque on as soon as the servos are found; false: on ~/torque', read_only=True
    )
    on_exit: str = parameter(
        'hold',
        'when the node ends: hold the pose with torque, or release: lower the arm slowly, then no torque',
        choices=ON_EXIT,
    )

    def __post_init__(self) -> None:
        check(self)
