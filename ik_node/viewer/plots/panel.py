# SPDX-License-Identifier: Apache-2.0
"""The folder Plots of the panel: charts over the last seconds, and a slider through them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import viser

from ik_node.checks import Array
from ik_node.model.arm import Arm
from ik_node.viewer.panel import html
from ik_node.viewer.panel.controls import update
from ik_node.viewer.panel.html import Colour
from ik_node.viewer.plots.history import LENGTH, Row

ORDER = 2.5e6  # of the folder: above the recordings
HEIGHT = 130  # pixels
NEAR_LIMIT = 5.0  # [%] of the range of a joint, at either end
LINES: tuple[Colour, ...] = (
    (37, 99, 235),
    (219, 39, 119),
    (13, 148, 136),
    (217, 119, 6),
    (147, 51, 234),
    (77, 124, 15),
    (71, 85, 105),
    (8, 145, 178),
)
CURSOR, LIMIT = 'rgb(212, 60, 60)', 'rgba(212, 60, 60, 0.12)'
HINT = 'The ghost shows where the arm was. The arm itself is not commanded.'


class Chart:
    """Lines over time in seconds before now; hidden without data."""

    def __init__(self, gui: viser.GuiApi, title: str, names: Sequence[str], limits: bool = False) -> None:
        """names: of the lines. limits: the lines are shares of a range [%], whose ends are shaded."""
        self._limits = limits
        font = {'font': '11px sans-serif', 'labelFont': '11px sans-serif', 'labelSize': 14}
        edges = ('', '', '', '') if limits else ()
        series: Any = (
            {'label': 's'},
            {'label': 'cursor', 'stroke': CURSOR, 'width': 1},
            *({'label': n, 'stroke': f'rgb{LINES[k % 8]}', 'width': 1.5} for k, n in enumerate(names)),
            *({'label': edge, 'stroke': 'transparent'} for edge in edges),
        )
        first = len(names) + 2
        bands: Any = tuple({'series': (k + 1, k), 'fill': LIMIT} for k in (first, first + 2))
        scales: Any = {'x': {'time': False, 'range': (-LENGTH, 0.0)}}
        axes: Any = ({'size': 24, **font}, {'size': 40, **font})
        self._plot = gui.add_uplot(
            tuple(np.zeros(2) for _ in series),
            series,
            title=title,
            bands=bands if limits else None,
            scales={**scales, 'y': {'range': (0.0, 100.0)}} if limits else scales,
            axes=axes,
            legend={'show': False},
            height=HEIGHT,
            padding=(8, 8, 0, 0),
            visible=False,
        )

    def show(self, times: Array, lines: Array, cursor: float | None) -> None:
        """Show lines (k, m) at times (k,) [s], and a mark at a time; rows with values that are not finite
        are left out."""
        known = np.isfinite(lines).all(axis=1)
        times, lines = times[known], lines[known]
        visible = len(times) > 1
        if visible:
            low, high = (0.0, 100.0) if self._limits else (float(lines.min()), float(lines.max()))
            mark = lines[:, 0].copy()  # hidden below the first line but at the cursor
            if cursor is not None:
                nearest = max(int(np.abs(times - cursor).argmin()), 1)
                mark[nearest - 1 : nearest + 1] = low, high
            edges = (0.0, NEAR_LIMIT, 100.0 - NEAR_LIMIT, 100.0) if self._limits else ()
            self._plot.data = (times, mark, *lines.T, *(np.full(len(times), edge) for edge in edges))
        self._plot.visible = visible

    def remove(self) -> None:
        """Remove the chart."""
        self._plot.remove()


class PlotsPanel:
    """The controls and the charts of one arm."""

    def __init__(self, gui: viser.GuiApi) -> None:
        self._gui = gui
        self._charts: list[Chart] = []
        self._arm: Arm | None = None
        self._folder = gui.add_folder('Plots', order=ORDER, expand_by_default=False)
        with self._folder:
            self._show = gui.add_checkbox('Show plots', False, hint=f'The last {LENGTH:g} s.')
            self._pause = gui.add_checkbox('Look back', False, visible=False, hint=HINT)
            self._time = gui.add_slider('Time [s]', -LENGTH, 0.0, 0.1, 0.0, visible=False)
            self._said = gui.add_html('', visible=False)

    @property
    def on(self) -> bool:
        """Whether users want to see plots."""
        return self._show.value

    @property
    def back(self) -> float | None:
        """How far users look back [s], at most 0; None if they do not."""
        return self._time.value if self.on and self._pause.value else None

    def set_arm(self, arm: Arm | None) -> None:
        """Show the charts of an arm, none without one."""
        if arm is self._arm:
            return
        for chart in self._charts:
            chart.remove()
        self._charts, self._arm = [], arm
        if arm is None:
            return
        joints = arm.joint_names
        with self._folder:
            self._charts = [
                Chart(self._gui, 'Joints, % of their ranges', joints, limits=True),
                Chart(self._gui, 'Velocities [°/s or mm/s]', joints),
                Chart(self._gui, 'Position error [mm]', ('position',)),
                Chart(self._gui, 'Direction error [°]', ('direction',)),
                Chart(self._gui, 'Least singular value', ('singular',)),
                Chart(self._gui, 'Following error [° or mm]', joints),
            ]

    def show(self, arm: Arm, rows: Sequence[Row], now: float, cursor: float | None) -> None:
        """Show rows before the time now [s]; cursor: which is marked and told in words [s]."""
        units = np.where(arm.prismatic, 1e3, math.degrees(1.0))
        times = np.array([row.time for row in rows]) - now
        q = np.array([row.q for row in rows])
        bounded = np.isfinite(arm.lower) & np.isfinite(arm.upper) & (arm.upper > arm.lower)
        low, high = np.where(bounded, arm.lower, -math.pi), np.where(bounded, arm.upper, math.pi)
        turned = np.where(bounded, q, (q + math.pi) % (2.0 * math.pi) - math.pi)
        errors = np.array([row.errors for row in rows]) * (1e3, math.degrees(1.0))
        lines = (
            100.0 * (turned - low) / (high - low),
            units * np.array([row.dq for row in rows]),
            errors[:, :1],
            errors[:, 1:],
            np.array([[row.singular] for row in rows]),
            units * np.array([row.following for row in rows]),
        )
        for chart, values in zip(self._charts, lines, strict=True):
            chart.show(times, values, cursor)
        words = ''
        if cursor is not None and rows:
            row = rows[int(np.abs(times - cursor).argmin())]
            words = _told(arm, row, units)
        self._set(words)

    def show_controls(self) -> None:
        """Show what belongs to the present choice."""
        for control, visible in ((self._pause, self.on), (self._time, self.back is not None)):
            update(control, visible=visible)
        if not self.on:
            self._set('')

    def _set(self, words: str) -> None:
        update(self._said, content=html.box(words) if words else '', visible=bool(words))


def _told(arm: Arm, row: Row, units: Array) -> str:
    """Return a legend with the values of a row."""
    lines = [
        html.legend((LINES[k % 8], f'{name} {units[k] * row.q[k]:.1f} {"mm" if arm.prismatic[k] else "°"}'))
        for k, name in enumerate(arm.joint_names)
    ]
    position, direction = row.errors
    if math.isfinite(position):
        lines.append(html.row('Position error', html.length(position)))
    if math.isfinite(direction):
        lines.append(html.row('Direction error', html.angle(direction)))
    return ''.join(lines)
