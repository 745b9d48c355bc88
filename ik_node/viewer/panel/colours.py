# SPDX-License-Identifier: Apache-2.0
"""The colours of tools and ghosts, in the scene and in the panel."""

from __future__ import annotations

from typing import NamedTuple

from ik_node.viewer.panel.html import Colour


class ToolColours(NamedTuple):
    """Of the wanted and the present axis of a tool."""

    wanted: Colour
    present: Colour


# One pair per tool; a fifth tool has the colours of the first.
TOOLS = (
    ToolColours((255, 159, 28), (38, 178, 170)),
    ToolColours((231, 76, 139), (74, 118, 222)),
    ToolColours((196, 158, 0), (108, 160, 36)),
    ToolColours((150, 84, 206), (120, 96, 84)),
)
GHOSTS: tuple[Colour, Colour] = ((124, 58, 237), (22, 163, 74))  # of the two methods side by side
