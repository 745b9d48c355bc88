# SPDX-License-Identifier: Apache-2.0
"""Show an arm in RViz that moves to goal_pose: ros2 launch ik_node arm.launch.py

Any arm: description_file:=my_arm.urdf tip_link:=gripper. All arguments: ros2 launch -s ik_node arm.launch.py
They are defined in ik_node/startup/arguments.py.
"""

from __future__ import annotations

import secrets
import tempfile
from pathlib import Path
from typing import Any

from launch import LaunchContext, LaunchDescription
from launch.actions import (
    DeclareLaunchArgument,
    OpaqueFunction,
    RegisterEventHandler,
    SetEnvironmentVariable,
    Shutdown,
)
from launch.event_handlers import OnShutdown
from launch.events.process import ProcessExited
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue

from ik_node.ros.sessions import SESSION
from ik_node.startup.arguments import ARGUMENTS
from ik_node.startup.launch_plan import NodeSpec, check_installed, launch_plan


def generate_launch_description() -> LaunchDescription:
    """Return the arguments, and the action that starts the nodes once they have values."""
    arguments = [
        DeclareLaunchArgument(name, default_value=one.default, description=one.text, choices=one.choices)
        for name, one in ARGUMENTS.items()
    ]
    return LaunchDescription([*arguments, OpaqueFunction(function=start)])


def start(context: LaunchContext) -> list[Any]:
    """Return the actions for the arguments. Raises IkError, which ros2 launch prints before it ends."""
    planned = launch_plan(context.launch_configurations)
    check_installed(planned.programs)
    actions: list[Any] = [SetEnvironmentVariable(SESSION, secrets.token_hex(4))]
    arguments = {}
    if planned.rviz_config:
        folder = tempfile.TemporaryDirectory(prefix='ik_node_')
        file = Path(folder.name) / 'arm.rviz'
        file.write_text(planned.rviz_config, encoding='utf-8')
        arguments['rviz2'] = ['-d', str(file)]
        actions.append(RegisterEventHandler(OnShutdown(on_shutdown=lambda *_: folder.cleanup())))
    return actions + [
        node(one, '/'.join(filter(None, (planned.namespace, one.namespace))), arguments.get(one.executable, []))
        for one in planned.programs
    ]


def node(one: NodeSpec, namespace: str, arguments: list[str]) -> Node:
    """Return the action that starts a node."""
    # A string stays a string even if YAML would read it as a number or a boolean.
    parameters = {
        name: ParameterValue(value, value_type=str) if isinstance(value, str) else value
        for name, value in one.parameters.items()
    }
    options: dict[str, Any] = {}
    if one.files:  # with its name given, parameters set here override those of any section in the files
        options['name'] = one.executable
    if one.ends_all:
        options['on_exit'] = end
    return Node(
        package=one.package,
        executable=one.executable,
        namespace=namespace,
        parameters=[*one.files, parameters],
        remappings=one.remappings,
        arguments=arguments,
        output='screen',
        **options,
    )


def end(event: ProcessExited, context: LaunchContext) -> Shutdown:
    """Shut down when a node ends. Raises RuntimeError, so that ros2 launch returns 1, if it failed."""
    if event.returncode and not context.is_shutdown:
        raise RuntimeError(f'{event.process_name} ended with exit code {event.returncode}')
    return Shutdown(reason=f'{event.process_name} ended')
