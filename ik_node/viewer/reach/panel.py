# SPDX-License-Identifier: Apache-2.0
"""The folder Reach of the panel: whether a map of the workspace is shown, and which."""

from __future__ import annotations

from typing import NamedTuple

import viser

from ik_node.viewer.panel.controls import update
from ik_node.viewer.reach.heat import legend

ORDER = 0.95e6  # of the folder: below the solutions
AT_TOOL, THROUGH_TOOL, AT_HEIGHT, WHOLE = PLANES = (
    'horizontal, at the tool',
    'vertical, through the tool',
    'horizontal, at a height',
    'the whole workspace',
)
WORDS = 'Share of the directions of the tool axis that are possible at a position. Self-collision is ignored.'


class Wanted(NamedTuple):
    """What users want to see; height [m] for AT_HEIGHT."""

    plane: str
    height: float


class ReachPanel:
    """The controls."""

    def __init__(self, gui: viser.GuiApi) -> None:
        with gui.add_folder('Reach', order=ORDER, expand_by_default=False):
            self._show = gui.add_checkbox('Show a map', False, hint='A map of the workspace in the scene.')
            self._plane = gui.add_dropdown('Where', PLANES, visible=False)
            self._height = gui.add_slider('Height (mm)', -1000.0, 1000.0, 1.0, 0.0, visible=False)
            self._least = gui.add_slider(
                'At least (%)', 0, 100, 1, 0, hint='Hides positions with fewer directions.', visible=False
            )
            self._legend = gui.add_html(legend(WORDS), visible=False)

    @property
    def wanted(self) -> Wanted | None:
        """What users want to see, None for nothing."""
        if not self._show.value:
            return None
        return Wanted(self._plane.value, 1e-3 * self._height.value)

    @property
    def least(self) -> float:
        """The least share of directions for which a position of the whole workspace is shown."""
        return float(self._least.value) / 100.0

    def set_range(self, low: float, high: float) -> None:
        """Set the heights [m] that can be chosen."""
        self._height.min, self._height.max = round(1e3 * low), round(1e3 * high)
        self._height.value = min(max(self._height.value, self._height.min), self._height.max)  # type: ignore[misc]

    def show_controls(self) -> None:
        """Show what belongs to the present choice."""
        on = self._show.value
        for control, visible in (
            (self._plane, on),
            (self._height, on and self._plane.value == AT_HEIGHT),
            (self._least, on and self._plane.value == WHOLE),
            (self._legend, on),
        ):
            update(control, visible=visible)
