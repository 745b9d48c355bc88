# SPDX-License-Identifier: Apache-2.0
"""The folder Methods of the panel: the solver of ik_node and its switches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import viser

from ik_node.solver.methods.registry import METHODS
from ik_node.viewer.panel import html
from ik_node.viewer.panel.inputs import Inputs, by_user, merged

SOLVER, SWITCHES_OFF = 'solver', 'solver_switches_off'  # parameters of ik_node
ORDER = 1e6  # of the folder: below the joints


class MethodsPanel:
    """Shows the parameters of ik_node and lets users change them.

    User input is kept until take returns it; until then it is not overwritten.
    """

    def __init__(self, gui: viser.GuiApi) -> None:
        self._changed: Inputs[dict[str, str]] = Inputs()
        self.folder = gui.add_folder('Methods', order=ORDER, expand_by_default=False)
        with self.folder:
            self._solver = gui.add_dropdown(
                'Solver',
                tuple(METHODS),
                disabled=True,
                hint='Local method of ik_node. The closed form is used with lm only.',
            )
            self._switches = {
                switch: gui.add_checkbox(
                    f'{method}: {switch}',
                    True,
                    disabled=True,
                    hint=f'A part of {method} that can be switched off.',
                )
                for method, row in METHODS.items()
                for switch in row.switches
            }
            self._answer = gui.add_html('')
        self._solver.on_update(self._on_solver)
        for box in self._switches.values():
            box.on_update(self._on_switch)

    @by_user
    def _on_solver(self, event: viser.GuiEvent[Any]) -> bool:
        return self._changed.add({SOLVER: event.target.value})

    @by_user
    def _on_switch(self, _: viser.GuiEvent[Any]) -> bool:
        return self._changed.add({SWITCHES_OFF: ', '.join(self.switches_off)})

    @property
    def switches_off(self) -> list[str]:
        """The switches that the page shows as off."""
        return [switch for switch, box in self._switches.items() if not box.value]

    def take(self) -> dict[str, str]:
        """Return the parameters that users changed since the last call, by name."""
        return merged(self._changed.take())

    def show(self, values: Mapping[str, Any]) -> None:
        """Show the parameters of ik_node; none without ik_node."""
        for control in (self._solver, *self._switches.values()):
            if control.disabled is bool(values):
                control.disabled = not values
        changed = merged(self._changed.waiting())
        if SOLVER not in changed and values.get(SOLVER) in METHODS:
            self._solver.value = values[SOLVER]  # type: ignore[misc]
        if SWITCHES_OFF not in changed and SWITCHES_OFF in values:
            off = values[SWITCHES_OFF].replace(',', ' ').split()
            for switch, box in self._switches.items():
                if box.value is (switch in off):
                    box.value = switch not in off  # type: ignore[misc]

    def answer(self, rejection: str) -> None:
        """Show that ik_node has accepted a change, or why it rejected it."""
        label = 'Rejected' if rejection else ''
        self._answer.content = html.answer(rejection or 'Accepted by ik_node.', label)
