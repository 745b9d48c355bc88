# SPDX-License-Identifier: Apache-2.0
"""Show two arms in RViz, each on a track of its own: ros2 launch ik_node two_arms.launch.py

They are two tools of one robot, moved by one node; with nodes:=two they are two robots, each moved by a node
in a namespace of its own.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from launch import LaunchContext, LaunchDescription
from launch.actions import DeclareLaunchArgument, GroupAction, IncludeLaunchDescription, OpaqueFunction
from launch.launch_description_sources import PythonLaunchDescriptionSource

ARM = Path(__file__).parent / 'arm.launch.py'
TRACKS = {'left': 'circle', 'right': 'figure_eight'}
ROBOTS = {'one': 'two_arms', 'two': 'seed_arm'}  # by nodes: the robot of both tools, or of each node


def generate_launch_description() -> LaunchDescription:
    """Return the arguments, and the action that starts the nodes once they have values."""
    return LaunchDescription(
        [
            DeclareLaunchArgument(
                'nodes', default_value='one', description='Nodes that move the arms', choices=['one', 'two']
            ),
            DeclareLaunchArgument(
                'description_file',
                default_value='',
                description='Robot with two tools (nodes:=one; one of your own needs params_file with its '
                'tools), or each of two robots (nodes:=two): a .urdf or .xacro file or a robot shipped with '
                f'ik_node; empty: {ROBOTS["one"]} or {ROBOTS["two"]}',
            ),
            DeclareLaunchArgument('rviz', default_value='true', description='Start RViz', choices=['true', 'false']),
            OpaqueFunction(function=start),
        ]
    )


def start(context: LaunchContext) -> list[Any]:
    """Return the action or the actions that start the arms."""
    values = context.launch_configurations
    robot = values['description_file'] or ROBOTS[values['nodes']]
    given = {'rviz': values['rviz'], 'description_file': robot}
    if values['nodes'] == 'one':
        return [arm(given | {'track': ' '.join(TRACKS.values())})]
    return [arm(given | {'namespace': name, 'track': track}) for name, track in TRACKS.items()]


def arm(arguments: dict[str, str]) -> GroupAction:
    """Return the action that starts arm.launch.py; in a scope, so that its arguments remain its own."""
    source = PythonLaunchDescriptionSource(str(ARM))
    return GroupAction([IncludeLaunchDescription(source, launch_arguments=arguments.items())])
