# SPDX-License-Identifier: Apache-2.0
"""The parameters of ik_node that define its robot and its tool."""

from __future__ import annotations

from dataclasses import dataclass

from ik_node.settings import HasTool, parameter


@dataclass(frozen=True)
class DescriptionSettings(HasTool):
    """Where the description of the robot comes from, the links of its arm and the tool."""

    robot_description: str = parameter(
        '',
        'URDF text; if empty, urdf_file or the topic is used; can be changed at run time only if it '
        'was set at start-up and no real arm is connected',
    )
    urdf_file: str = parameter(
        '', 'path of a .urdf or .xacro file; if empty, the topic is used', read_only=True
    )
    xacro_args: str = parameter(
        '', "arguments of a .xacro file, such as 'dof:=5 gripper:=true'", read_only=True
    )
    autostart: bool = parameter(
        True, 'configure and activate at start-up; false: wait for a lifecycle manager', read_only=True
    )
    publish_description: bool = parameter(
        True,
        'publish the text from robot_description or urdf_file on the topic robot_description',
        read_only=True,
    )
    tools: tuple[str, ...] = parameter(
        ('',),
        'names of the tools on a robot with several; each has its own parameters, such as '
        "left.tip_link; [''] (default) means a single unnamed tool",
        read_only=True,
    )
    base_link: str = parameter('', 'reference link of goals; empty: the root link')
    tip_link: str = parameter(
        '',
        'link that carries the tool; empty: tool0, a frame between fingers, the end of the longest chain or '
        'the link that carries the fingers',
    )
    tool_axis: tuple[float, ...] = parameter(
        (0.0, 0.0, 1.0), 'tool axis in the tip frame, unit length', size=3
    )
    tool_point: tuple[float, ...] = parameter((0.0, 0.0, 0.0), 'tool point in the tip frame [m]', size=3)
