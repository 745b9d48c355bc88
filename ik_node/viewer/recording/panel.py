# SPDX-License-Identifier: Apache-2.0
"""The folder Recording of the panel: record, replay with a scrub bar, CSV of a selection, and pictures."""

from __future__ import annotations

import math
from collections.abc import Sequence

import viser

from ik_node.viewer.panel import html
from ik_node.viewer.panel.controls import update
from ik_node.viewer.panel.html import GREY, RED
from ik_node.viewer.panel.presses import NONE, Presses

RECORD, END = 'Record', 'End recording'
PLAY, PAUSE = 'Play', 'Pause'
CSV = 'Save selection as CSV'
PICTURE = 'Save picture'
CHOSEN, SCRUBBED = 'chosen', 'scrubbed'
ORDER = 3e6  # of the folder: below the link lengths
STEP = 0.01  # [s] of the scrub bar; two decimals
HINT = 'Replay shows a blue ghost only: the arm is not commanded.'


class RecordingPanel:
    """The controls. pressed: what users did, also CHOSEN a file and SCRUBBED, until it is taken."""

    def __init__(self, gui: viser.GuiApi) -> None:
        self.pressed = Presses()
        with gui.add_folder('Recording', order=ORDER, expand_by_default=False):
            self._record = gui.add_button(
                RECORD, color='red', hint='Joints, goals and status, to an MCAP file.'
            )
            self._end = gui.add_button(END, visible=False)
            self._state = gui.add_html('')
            picture = gui.add_button(PICTURE, hint='The scene as this browser shows it, as a PNG file.')
            self._file = gui.add_dropdown('Replay', (NONE,), hint=HINT)
            self._time = gui.add_slider('Time [s]', 0.0, 1.0, STEP, 0.0, visible=False)
            self._buttons = gui.add_button_group('Playback', (PLAY, PAUSE), visible=False)
            self._selection = gui.add_multi_slider('Selection [s]', 0.0, 1.0, STEP, (0.0, 1.0), visible=False)
            self._csv = gui.add_button(CSV, visible=False)
            self._said = gui.add_html('')
        for button, what in ((self._record, RECORD), (self._end, END), (picture, PICTURE), (self._csv, CSV)):
            button.on_click(self.pressed.adder(what))
        self._file.on_update(self.pressed.adder(CHOSEN))
        self._time.on_update(self.pressed.adder(SCRUBBED))
        self._buttons.on_click(self.pressed.adder(''))

    @property
    def selection(self) -> tuple[float, float]:
        """The first and the last time [s] that are selected."""
        first, last = self._selection.value
        return float(first), float(last)

    def show_recording(self, on: bool, title: str, sentence: str) -> None:
        """Show whether there is a recording, and in words how far it is or how it ended."""
        update(self._record, visible=not on)
        update(self._end, visible=on)
        pills = html.pills((title, RED if on or title == 'Ended' else GREY)) if title else ''
        update(self._state, content=html.box(pills + html.paragraph(sentence)) if title else '')

    def show_files(self, names: Sequence[str]) -> None:
        """Offer these files for replay; the one that is chosen stays."""
        self.pressed.offer(self._file, names)

    def show_length(self, seconds: float | None) -> None:
        """Show the scrub bar and the selection for a replay of this length, or none."""
        shown = seconds is not None
        if seconds is not None:
            longest = round(max(math.ceil(seconds / STEP), 1) * STEP, 2)
            self._time.value = 0.0  # type: ignore[misc]
            self._time.max = self._selection.max = longest
            self._selection.value = (0.0, longest)  # type: ignore[misc]
        for control in (self._time, self._buttons, self._selection, self._csv):
            control.visible = shown

    def show_time(self, seconds: float) -> None:
        """Move the scrub bar."""
        value = round(seconds, 2)
        if self._time.value != value and not self.pressed.waiting():
            self._time.value = value  # type: ignore[misc]

    def say(self, sentence: str, wrong: bool = False) -> None:
        """Show a sentence below the replay."""
        self._said.content = html.answer(sentence, 'Not possible' if wrong else '')
