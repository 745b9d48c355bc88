# SPDX-License-Identifier: Apache-2.0
"""ErrorPlot: the position errors of descents, step by step, on a logarithmic scale."""

from __future__ import annotations

from typing import Any

import numpy as np
import viser

from ik_node.viewer.methods.playback import Playback
from ik_node.viewer.panel.colours import GHOSTS

LEAST = 1e-9  # [m] at the bottom: a logarithm has no place for 0
HEIGHT = 150  # pixels
SERIES: tuple[Any, ...] = ({'label': 'step'}, *({'stroke': f'rgb{colour}', 'width': 2} for colour in GHOSTS))


class ErrorPlot:
    """A chart in the panel, hidden while there is nothing to show."""

    def __init__(self, gui: viser.GuiApi) -> None:
        axis = {
            'font': '11px sans-serif',
            'labelFont': '11px sans-serif',
            'labelSize': 14,
            'ticks': {'show': False},
        }
        axes: Any = (
            {'size': 20, 'label': 'step', **axis},
            {'size': 30, 'label': 'log10 of position error [m]', **axis},
        )
        scales: Any = {'x': {'time': False}}
        self._plot = gui.add_uplot(
            (np.arange(2.0),) + len(GHOSTS) * (np.ones(2),),
            SERIES,
            scales=scales,
            axes=axes,
            legend={'show': False},
            height=HEIGHT,
            padding=(8, 8, 0, 0),
            visible=False,
        )
        self._shown: tuple[int, ...] = ()

    def show(self, playback: Playback) -> None:
        """Show the errors up to the step that the playback shows."""
        descents = [descent for descent in playback.descents if descent.steps]
        key = (playback.index, *map(id, descents))
        if key == self._shown:
            return
        self._shown = key
        visible = bool(descents) and playback.index > 0
        self._plot.visible = visible
        if not visible:
            return
        last = playback.index + 1
        lines = []
        for descent in descents:
            errors = [step.position_error for step in descent.steps[:last]]
            lines.append(np.log10(np.maximum(errors + (last - len(errors)) * errors[-1:], LEAST)))
        if len(lines) == 1:  # a plot has two lines
            lines *= 2
        self._plot.series = (SERIES[0], *SERIES[1 : 1 + len(descents)], *SERIES[1 : 3 - len(descents)])
        self._plot.data = (np.arange(float(last)), *lines)
