# SPDX-License-Identifier: Apache-2.0
"""The folder Slow motion of the panel: which methods to watch, playback, and their errors."""

from __future__ import annotations

from collections import deque
from typing import Any

import viser

from ik_node.solver.methods.registry import METHODS
from ik_node.viewer.methods.error_plot import ErrorPlot
from ik_node.viewer.methods.playback import Playback
from ik_node.viewer.panel import html
from ik_node.viewer.panel.colours import GHOSTS
from ik_node.viewer.panel.controls import update
from ik_node.viewer.panel.html import RED
from ik_node.viewer.panel.inputs import by_user

NONE = 'none'
PLAY, PAUSE, STEP, RESTART = 'Play', 'Pause', 'Step', 'Restart'
HINT = 'The gizmo moves the ghosts only: drag it, and they go there from where the arm is, step by step.'


class SlowMotionPanel:
    """The controls of slow motion; presses are kept until take_button returns them."""

    def __init__(self, gui: viser.GuiApi, folder: viser.GuiFolderHandle) -> None:
        """folder: to put them in."""
        self._pressed: deque[str] = deque(maxlen=20)
        with folder, gui.add_folder('Slow motion'):
            self._watch = gui.add_checkbox(
                'Watch', False, hint='Show how methods work; the arm is not commanded meanwhile.'
            )
            self._first = gui.add_dropdown('Method', tuple(METHODS), initial_value='lm')
            self._second = gui.add_dropdown('Beside it', (NONE, *METHODS), initial_value=NONE)
            self._rate = gui.add_slider('Steps per s', 0.5, 20.0, 0.5, 3.0)
            self._buttons = gui.add_button_group('Playback', (PLAY, PAUSE, STEP, RESTART))
            self._report = gui.add_html('')
            self._plot = ErrorPlot(gui)
        self._buttons.on_click(self._on_click)

    @by_user
    def _on_click(self, event: viser.GuiEvent[Any]) -> None:
        self._pressed.append(event.target.value)

    @property
    def on(self) -> bool:
        """Whether users watch."""
        return self._watch.value

    @property
    def methods(self) -> list[str]:
        """The methods to watch, one or two."""
        return [method for method in (self._first.value, self._second.value) if method != NONE]

    @property
    def rate(self) -> float:
        """Steps per second; a number that is being typed beside the slider may be 0."""
        return max(self._rate.min, self._rate.value)

    def take_button(self) -> str | None:
        """Return the next button of the playback that a user has pressed."""
        return self._pressed.popleft() if self._pressed else None

    def show(self, playback: Playback) -> None:
        """Show the step and the errors of every descent."""
        content = html.paragraph(HINT, faint=True) if self.on else ''
        for descent, colour in zip(playback.descents, GHOSTS, strict=False):
            shown = playback.shown(descent)
            name = f'{html.swatch(colour)}{descent.method}'
            if descent.failure:
                content += (
                    html.row(name, '') + html.pills(('Rejected', RED)) + html.paragraph(descent.failure)
                )
            elif shown is None:
                content += html.row(name, 'is being prepared')
            else:
                number, step = shown
                last = f' of {len(descent.steps) - 1}' if descent.ended else ''
                content += (
                    html.row(name, f'step {number}{last}')
                    + html.row('Position error', html.length(step.position_error))
                    + html.row('Direction error', html.angle(step.direction_error))
                )
        self._plot.show(playback)
        update(self._report, content=html.box(content) if content else '')
