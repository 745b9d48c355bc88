# SPDX-License-Identifier: Apache-2.0
"""The parameters of ik_plant."""

from __future__ import annotations

from dataclasses import dataclass

from ik_node.settings import check, parameter


@dataclass(frozen=True)
class PlantSettings:
    """The parameters of ik_plant."""

    robot_description: str = parameter(
        '', 'URDF text; if empty, urdf_file or the topic is used', read_only=True
    )
    urdf_file: str = parameter(
        '', 'path of a .urdf or .xacro file; if empty, the topic is used', read_only=True
    )
    xacro_args: str = parameter(
        '', "arguments of a .xacro file, such as 'dof:=5 gripper:=true'", read_only=True
    )
    tools: tuple[str, ...] = parameter(
        ('',),
        'names of the tools, as in ik_node; each has a trajectory controller; '
        "[''] (default) means a single controller",
        read_only=True,
    )
    controller_joints: tuple[str, ...] = parameter(
        ('',),
        "joints of position_commands, in its order; [''] (default) means all independent joints",
        read_only=True,
    )
    start: tuple[float, ...] = parameter(
        (0.0,),
        'initial positions of the independent joints [rad, m]; a single value applies to every joint',
        read_only=True,
    )
    publish_rate: float = parameter(
        100.0, 'joint_states per second [Hz]', low=1.0, high=1000.0, read_only=True
    )
    update_rate: float = parameter(
        100.0, 'periods of the controllers per second [Hz]', low=1.0, high=500.0, read_only=True
    )
    noise: float = parameter(
        0.0, 'standard deviation of the measured positions [rad, m]', low=0.0, high=1.0, read_only=True
    )
    latency: float = parameter(
        0.0, 'delay of commands, and again of measurements [s]', low=0.0, high=1.0, read_only=True
    )
    droop: float = parameter(
        0.0,
        'sag under gravity of the most loaded joint in its worst position [rad, m]',
        low=0.0,
        high=1.0,
        read_only=True,
    )
    backlash: float = parameter(
        0.0, 'play between motor and joint [rad, m]', low=0.0, high=1.0, read_only=True
    )

    def __post_init__(self) -> None:
        check(self)
