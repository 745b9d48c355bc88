# SPDX-License-Identifier: Apache-2.0
"""The panel beside the scene: status, target track and buttons, and the joint sliders."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import viser

from ik_node.tracks.curves import TRACKS
from ik_node.tracks.settings import NO_TRACK
from ik_node.viewer.panel.buttons import ALL_TOOLS, BUTTONS, HOME, RESUME, ArmPress, Buttons
from ik_node.viewer.panel.card import Card
from ik_node.viewer.panel.colours import ToolColours
from ik_node.viewer.panel.inputs import Inputs, by_user
from ik_node.viewer.panel.joints_panel import JointsPanel

LABELS = {NO_TRACK: 'none', **{track: track.replace('_', ' ') for track in TRACKS}}


class Panel:
    """The controls of the page, the same for every browser.

    tools: one part per tool, in a folder of its own if there are several. card: of the whole robot, which is
    that of the tool if there is only one.
    """

    def __init__(
        self, server: viser.ViserServer, tools: Sequence[tuple[str, ToolColours]], pressed: Inputs[ArmPress]
    ) -> None:
        """tools: name and colours of each. pressed: gets the buttons."""
        gui = server.gui
        gui.configure_theme(
            control_width='small', show_logo=False, show_share_button=False, brand_color=(28, 132, 128)
        )
        gui.set_panel_label('ik_node')
        buttons = Buttons(gui, pressed)
        several = len(tools) > 1
        if several:
            self.card = Card(gui)
            buttons.add_row('All tools', ALL_TOOLS, (HOME, RESUME))
        self.tools = [ToolPanel(gui, name if several else '', colours, buttons) for name, colours in tools]
        if not several:
            self.card = self.tools[0].card
        self.joints = JointsPanel(gui)


class ToolPanel:
    """The controls of one tool: status, track and buttons; in a folder if it has a name.

    The track that a user chose is kept until take_track returns it; until then it is not overwritten.
    """

    def __init__(self, gui: viser.GuiApi, name: str, colours: ToolColours, buttons: Buttons) -> None:
        self._chosen: Inputs[str] = Inputs()
        with gui.add_folder(name) if name else contextlib.nullcontext():
            self.card = Card(gui, (colours.wanted, 'wanted axis'), (colours.present, 'present axis'))
            self._track = gui.add_dropdown('Target track', tuple(LABELS.values()), disabled=True)
            buttons.add_row('Arm', name, BUTTONS if name else (HOME, RESUME))
        self._track.on_update(self._track_chosen)

    @by_user
    def _track_chosen(self, event: viser.GuiEvent[Any]) -> bool:
        return self._chosen.add(next(track for track, label in LABELS.items() if label == event.target.value))

    def take_track(self) -> str | None:
        """Return the name of the track that users chose last since the last call."""
        return next(reversed(self._chosen.take()), None)

    def set_track(self, track: str | None) -> None:
        """Show the goal publisher's track; None = there is no goal publisher."""
        if self._track.disabled is not (track is None):
            self._track.disabled = track is None
        if not self._chosen.waiting():
            self._track.value = LABELS.get(track or NO_TRACK, LABELS[NO_TRACK])  # type: ignore[misc]
