# SPDX-License-Identifier: Apache-2.0
"""The panel beside the scene: status, target track and buttons, and the joint sliders."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import viser

from ik_node.tracks.curves import TRACKS
from ik_node.tracks.settings import NO_TRACK
from ik_node.viewer.panel.card import Card
from ik_node.viewer.panel.colours import ToolColours
from ik_node.viewer.panel.inputs import Inputs
from ik_node.viewer.panel.joints_panel import JointsPanel

LABELS = {NO_TRACK: 'none', **{track: track.replace('_', ' ') for track in TRACKS}}
STOP = 'Stop'
BUTTONS = ('Home', STOP, 'Resume')


class Panel:
    """The controls of the page, the same for every browser.

    tools: one part per tool, in a folder of its own if there are several. card: of the whole robot, which is
    that of the tool if there is only one.
    """

    def __init__(self, server: viser.ViserServer, tools: Sequence[tuple[str, ToolColours]]) -> None:
        """tools: name and colours of each."""
        gui = server.gui
        gui.configure_theme(
            control_width='small', show_logo=False, show_share_button=False, brand_color=(28, 132, 128)
        )
        gui.set_panel_label('ik_node')
        several = len(tools) > 1
        if several:
            self.card = Card(gui)
            self._all: Buttons | None = Buttons(gui, 'All tools')
        else:
            self._all = None
        self.tools = [ToolPanel(gui, name if several else '', colours) for name, colours in tools]
        if not several:
            self.card = self.tools[0].card
        self.joints = JointsPanel(gui)

    def take_buttons(self) -> list[str]:
        """Return the buttons for all tools that users pressed since the last call, in order."""
        return self._all.take() if self._all else []


class Buttons:
    """A row of the buttons Home, Stop and Resume."""

    def __init__(self, gui: viser.GuiApi, label: str) -> None:
        self._pressed: Inputs[str] = Inputs()
        gui.add_button_group(label, BUTTONS).on_click(self._on_click)

    # viser calls this on its own threads; client_id is None if this program caused the event, not a user
    async def _on_click(self, event: viser.GuiEvent[Any]) -> None:
        if event.client_id is not None:
            self._pressed.add(event.target.value)

    def take(self) -> list[str]:
        """Return the buttons that users pressed since the last call, in order."""
        return self._pressed.take()


class ToolPanel:
    """The controls of one tool: status, track and buttons; in a folder if it has a name.

    User input is kept until a take_... method returns it; until then it is not overwritten.
    """

    def __init__(self, gui: viser.GuiApi, name: str, colours: ToolColours) -> None:
        self._chosen: Inputs[str] = Inputs()
        with gui.add_folder(name) if name else contextlib.nullcontext():
            self.card = Card(gui, (colours.wanted, 'wanted axis'), (colours.present, 'present axis'))
            self._track = gui.add_dropdown('Target track', tuple(LABELS.values()), disabled=True)
            self._buttons = Buttons(gui, 'Arm')
        self._track.on_update(self._track_chosen)

    async def _track_chosen(self, event: viser.GuiEvent[Any]) -> None:
        if event.client_id is not None:
            self._chosen.add(next(track for track, label in LABELS.items() if label == event.target.value))

    def take_track(self) -> str | None:
        """Return the name of the track that users chose last since the last call."""
        return next(reversed(self._chosen.take()), None)

    def take_buttons(self) -> list[str]:
        """Return the buttons that users pressed since the last call, in order."""
        return self._buttons.take()

    def set_track(self, track: str | None) -> None:
        """Show the goal publisher's track; None = there is no goal publisher."""
        if self._track.disabled is not (track is None):
            self._track.disabled = track is None
        if not self._chosen.waiting():
            self._track.value = LABELS.get(track or NO_TRACK, LABELS[NO_TRACK])  # type: ignore[misc]
