# SPDX-License-Identifier: Apache-2.0
"""The parameters of a tool that a node shows, and all those of ik_marker."""

from __future__ import annotations

from dataclasses import dataclass

from ik_node.checks import unit_vector
from ik_node.settings import HasTool, check, parameter


@dataclass(frozen=True)
class ToolSettings(HasTool):
    """Which tool of a robot, by the same parameters as of ik_node."""

    base_link: str = parameter('', 'reference link of goals; empty: the root link', read_only=True)
    tip_link: str = parameter(
        '',
        'link that carries the tool; empty: tool0, a frame between fingers, the end of the longest chain or '
        'the link that carries the fingers',
        read_only=True,
    )
    tool_axis: tuple[float, ...] = parameter(
        (0.0, 0.0, 1.0), 'tool axis in the tip frame, unit length', size=3, read_only=True
    )
    tool_point: tuple[float, ...] = parameter(
        (0.0, 0.0, 0.0), 'tool point in the tip frame [m]', size=3, read_only=True
    )

    def __post_init__(self) -> None:
        check(self)
        unit_vector('parameter tool_axis', self.tool_axis)
