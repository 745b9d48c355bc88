# SPDX-License-Identifier: Apache-2.0
"""The parameters of ik_viewer."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from rclpy.node import Node

from ik_node.control.settings.robot import tool_names
from ik_node.model.urdf.description import xacro_args
from ik_node.ros.settings_declaration import declare_fields, warn_of_unknown
from ik_node.ros.tool_settings import ToolSettings
from ik_node.settings import parameter

OF_TOOL = ('base_link', 'tip_link', 'tool_axis', 'tool_point')  # what every tool has of its own


@dataclass(frozen=True)
class ViewerSettings(ToolSettings):
    """The parameters of ik_viewer."""

    host: str = parameter(
        '127.0.0.1',
        'address to listen on; the page needs the token in the URL that the node prints',
        read_only=True,
    )
    port: int = parameter(
        8080, 'TCP port to listen on; 0 takes a free one', low=0, high=65535, read_only=True
    )
    tools: tuple[str, ...] = parameter(
        ('',),
        'names of the tools on a robot with several, as in ik_node; each has its own left.tip_link and so '
        "on; [''] (default) means a single unnamed tool",
        read_only=True,
    )
    mesh_path: str = parameter(
        '',
        'folder of meshes to display, in addition to installed ROS packages',
        read_only=True,
    )
    shadows: bool = parameter(
        True,
        'draw shadows and reflections; false speeds up pages on computers without a graphics processor',
        read_only=True,
    )
    recordings: str = parameter(
        '~/ik_recordings', 'folder of the recordings that users make and replay', read_only=True
    )
    programs: str = parameter(
        '~/ik_programs', 'folder of the programs of taught points that users save and open', read_only=True
    )
    description_file: str = parameter(
        '',
        'xacro file of robot_description; its arguments NAME_length become sliders',
        read_only=True,
    )
    xacro_args: str = parameter('', "arguments of its expansion, such as 'hand_length:=0.1'", read_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.arguments()

    def arguments(self) -> dict[str, str]:
        """Return xacro_args as mappings. Raises InputError."""
        return xacro_args(self.xacro_args)


def declare_viewer(node: Node) -> tuple[ViewerSettings, dict[str, ViewerSettings]]:
    """Declare the parameters of ik_viewer; return them, and those of each tool by its name, '' if it is one.

    Raises InputError for a value that is not allowed.
    """
    general = ViewerSettings(**declare_fields(node, ViewerSettings))
    defaults = {name: getattr(general, name) for name in OF_TOOL}
    tools = {
        name: dataclasses.replace(general, **declare_fields(node, ViewerSettings, name, defaults))
        for name in tool_names(general.tools)
    }
    warn_of_unknown(node)
    return general, tools or {'': general}
