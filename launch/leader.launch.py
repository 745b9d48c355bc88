# SPDX-License-Identifier: Apache-2.0
"""Lead an arm by another one: ros2 launch ik_node leader.launch.py serial_port:=/dev/ttyACM0 leader:=/dev/ttyACM1

Without arguments both are emulated. Everything else is as in arm.launch.py: sim:=mujoco or real:=true with
serial_port:='' for an arm without bus servos, leader:=topic for a leader that publishes leader/joint_states.
"""

from __future__ import annotations

from pathlib import Path

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, IncludeLaunchDescription
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch.substitutions import LaunchConfiguration

from ik_node.startup.arguments import ARGUMENTS

DEFAULTS = {'serial_port': 'emulated', 'leader': 'emulated', 'profile': 'so101', 'speed_scaling': '0.5'}


def generate_launch_description() -> LaunchDescription:
    """Return arm.launch.py with the values of two arms of the same make."""
    arguments = [
        DeclareLaunchArgument(name, default_value=default, description=ARGUMENTS[name].text)
        for name, default in DEFAULTS.items()
    ]
    arm = IncludeLaunchDescription(
        PythonLaunchDescriptionSource(str(Path(__file__).with_name('arm.launch.py'))),
        launch_arguments=[(name, LaunchConfiguration(name)) for name in DEFAULTS],
    )
    return LaunchDescription([*arguments, arm])
