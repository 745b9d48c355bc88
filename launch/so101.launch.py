# SPDX-License-Identifier: Apache-2.0
"""Drive an SO-101: ros2 launch ik_node so101.launch.py serial_port:=/dev/ttyACM0

Without serial_port:=... it takes the only serial adapter, and serial_port:=emulated needs no arm. Everything
else is as in arm.launch.py; description_file:=so101_new_calib.urdf tip_link:=gripper_frame_link shows the
maker's meshes.
"""

from __future__ import annotations

from pathlib import Path

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, IncludeLaunchDescription
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch.substitutions import LaunchConfiguration

from ik_node.startup.arguments import ARGUMENTS

DEFAULTS = {'serial_port': 'auto', 'profile': 'so101', 'speed_scaling': '0.2'}


def generate_launch_description() -> LaunchDescription:
    """Return arm.launch.py with the values of an SO-101."""
    arguments = [
        DeclareLaunchArgument(name, default_value=default, description=ARGUMENTS[name].text)
        for name, default in DEFAULTS.items()
    ]
    arm = IncludeLaunchDescription(
        PythonLaunchDescriptionSource(str(Path(__file__).with_name('arm.launch.py'))),
        launch_arguments=[(name, LaunchConfiguration(name)) for name in DEFAULTS],
    )
    return LaunchDescription([*arguments, arm])
