# SPDX-License-Identifier: Apache-2.0
"""The folder Link lengths of the panel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import viser

from ik_node.viewer.panel import html
from ik_node.viewer.panel.inputs import Inputs, by_user, merged

RANGE = (0.7, 1.5)  # of a slider, as shares of the length in the file
ORDER = 2e6  # of the folder: below the methods
HINT = 'Rebuilds the description with these lengths; joints keep their positions.'


class LengthsPanel:
    """A slider in millimetres for each length; inputs are kept until take returns them."""

    def __init__(self, gui: viser.GuiApi, lengths: Mapping[str, float]) -> None:
        """lengths: [m] by name."""
        self._touched: Inputs[dict[str, float]] = Inputs()
        self._sliders: dict[str, Any] = {}
        self._folder = gui.add_folder('Link lengths', order=ORDER, expand_by_default=False, visible=False)
        with self._folder:
            for name, value in lengths.items():
                low, high = (round(1e3 * share * value) for share in RANGE)
                label = f'{name.replace("_", " ")} [mm]'
                self._sliders[name] = gui.add_slider(label, low, high, 0.1, round(1e3 * value, 1))
                self._sliders[name].on_update(self._on_update)
            self._answer = gui.add_html('')
        self.answer('')

    @by_user
    def _on_update(self, event: viser.GuiEvent[Any]) -> bool:
        moved = {
            name: 1e-3 * slider.value for name, slider in self._sliders.items() if slider is event.target
        }
        return self._touched.add(moved)

    @property
    def touched(self) -> bool:
        """Whether there are inputs that take has not returned."""
        return bool(self._touched.waiting())

    def take(self) -> dict[str, float]:
        """Return the lengths [m] that users set since the last call."""
        return merged(self._touched.take())

    def show(self, lengths: Mapping[str, float] | None) -> None:
        """Show these lengths [m], or hide the folder."""
        if self._folder.visible is (lengths is None):
            self._folder.visible = lengths is not None
        touched = merged(self._touched.waiting())
        for name, value in (lengths or {}).items():
            if name not in touched:
                self._sliders[name].value = round(1e3 * value, 1)

    def answer(self, rejection: str) -> None:
        """Show why lengths were rejected, or a help text."""
        self._answer.content = html.answer(rejection or HINT, 'Rejected' if rejection else '')
