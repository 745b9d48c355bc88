# SPDX-License-Identifier: Apache-2.0
"""Playback: several descents in step, one iteration or sweep per frame."""

from __future__ import annotations

from collections.abc import Sequence

from ik_node.steady import steady
from ik_node.viewer.methods.descent import Descent, Step


class Playback:
    """Shows every descent at the same step; those that have ended stay at their last one."""

    def __init__(self) -> None:
        self.descents: list[Descent] = []
        self.index = 0
        self.playing = False
        self.rate = 1.0  # [1/s]
        self._steps = 0  # to go on by, as soon as they are known
        self._due = 0.0  # when the next step is shown (steady)

    def start(self, descents: Sequence[Descent]) -> None:
        """Show the first step of new descents."""
        for descent in self.descents:
            descent.stop()
        self.descents = list(descents)
        self.index = 0
        self._steps = 0
        self._due = steady() + 1.0 / self.rate

    def play(self) -> None:
        """Continue, or restart at the end."""
        if self.at_end:
            self.index = 0
        self.playing, self._steps = True, 0

    def pause(self) -> None:
        """Stay at the present step."""
        self.playing, self._steps = False, 0

    def step(self) -> None:
        """Pause, and show one more step once it is known."""
        self.playing = False
        self._steps += 1

    def tick(self) -> None:
        """Show the next step if it is due."""
        if self._steps:
            self.advance()
            return
        now = steady()
        if not self.playing or now < self._due:
            return
        self._due = max(now, self._due + 1.0 / self.rate)
        self.advance()

    def advance(self) -> None:
        """Show the next step, once it is known of every descent that has one."""
        if self.at_end:
            self.pause()
        elif all(descent.ended or len(descent.steps) > self.index + 1 for descent in self.descents):
            self.index += 1
            self._steps = max(self._steps - 1, 0)

    @property
    def at_end(self) -> bool:
        """Whether no descent has a further step."""
        return all(descent.ended and len(descent.steps) <= self.index + 1 for descent in self.descents)

    def shown(self, descent: Descent) -> tuple[int, Step] | None:
        """Return the number of the step that is shown of a descent, 0 for the seed, and the step."""
        number = min(self.index, len(descent.steps) - 1)
        return (number, descent.steps[number]) if number >= 0 else None
