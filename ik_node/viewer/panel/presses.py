# SPDX-License-Identifier: Apache-2.0
"""Presses: what users do with the controls of a folder, in order, and a choice of files there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import viser

from ik_node.viewer.panel.inputs import Inputs, by_user

NONE = 'none'


class Press(NamedTuple):
    """What a user did: a button or control, its new value, and whose browser it was."""

    what: str
    value: Any
    client: viser.ClientHandle | None


class Presses(Inputs[Press]):
    """The presses of a folder that have not been taken."""

    def adder(self, what: str, stopping: Sequence[str] = ()) -> Any:
        """Return a callback for a control; without a name its value, such as a button, says what it is.

        stopping: those that only stop the arm, and are never too late.
        """

        @by_user
        def add(event: viser.GuiEvent[Any]) -> bool:
            value = event.target.value
            return self.add(Press(what or value, value, event.client), stops=(what or value) in stopping)

        return add

    def offer(self, files: viser.GuiDropdownHandle[str], names: Sequence[str]) -> None:
        """Offer files by their names, or NONE; the one that is chosen stays."""
        options = (NONE, *names)
        if tuple(files.options) != options and not self.waiting():
            chosen = files.value
            files.options = options
            files.value = chosen if chosen in options else NONE  # type: ignore[misc]
