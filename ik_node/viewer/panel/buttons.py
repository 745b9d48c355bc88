# SPDX-License-Identifier: Apache-2.0
"""The buttons Home, Stop and Resume, and the order in which users press them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import viser

from ik_node.viewer.panel.inputs import Inputs, by_user

HOME, STOP, RESUME = BUTTONS = 'Home', 'Stop', 'Resume'
ALL_TOOLS = ''


class ArmPress(NamedTuple):
    """A button that a user pressed; tool: its name, ALL_TOOLS for all."""

    button: str
    tool: str = ALL_TOOLS


class Buttons:
    """Rows of buttons that share one queue, which the stop button of the page shares too."""

    def __init__(self, gui: viser.GuiApi, pressed: Inputs[ArmPress]) -> None:
        self._gui, self._pressed = gui, pressed

    def add_row(self, label: str, tool: str, names: Sequence[str]) -> None:
        """Add a row of buttons for one tool, or for all, where the panel is at present."""
        self._gui.add_button_group(label, names).on_click(self._adder(tool))

    def _adder(self, tool: str) -> Any:
        @by_user
        def add(event: viser.GuiEvent[Any]) -> bool:
            return self._pressed.add(ArmPress(event.target.value, tool), stops=event.target.value == STOP)

        return add
