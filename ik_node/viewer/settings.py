"""The parameters of ik_viewer."""

from __future__ import annotations

from dataclasses import dataclass

from ik_node.checks import unit_vector
from ik_node.model.description import xacro_args
from ik_node.settings import check, parameter


@dataclass(frozen=True)
class ViewerSettings:
    """The parameters of ik_viewer."""

    host: str = parameter(
        '127.0.0.1',
        'address to listen on; except on loopback, the page needs the token in the URL that the node prints',
        read_only=True,
    )
    port: int = parameter(
        8080, 'TCP port to listen on; 0 takes a free one', low=0, high=65535, read_only=True
    )
    base_link: str = parameter('', 'link that goals are relative to; empty: the root link', read_only=True)
    tip_link: str = parameter(
        '',
        'link that carries the tool; empty: tool0, a frame between fingers or the end of the longest chain',
        read_only=True,
    )
    tool_axis: tuple[float, ...] = parameter(
        (0.0, 0.0, 1.0), 'unit axis of the tool in the tip frame', size=3, read_only=True
    )
    tool_point: tuple[float, ...] = parameter(
        (0.0, 0.0, 0.0), 'tool point in the tip frame [m]', size=3, read_only=True
    )
    mesh_path: str = parameter(
        '',
        'folder whose meshes may be shown, besides those of installed ROS packages',
        read_only=True,
    )
    description_file: str = parameter(
        '',
        'xacro file that robot_description was made from: its arguments NAME_length become sliders',
        read_only=True,
    )
    xacro_args: str = parameter(
        '', "arguments that it was expanded with, such as 'hand_length:=0.1'", read_only=True
    )

    def __post_init__(self) -> None:
        check(self)
        self.arguments()
        unit_vector('parameter tool_axis', self.tool_axis)

    def arguments(self) -> dict[str, str]:
        """Return xacro_args as mappings. Raises InputError."""
        return xacro_args(self.xacro_args)
