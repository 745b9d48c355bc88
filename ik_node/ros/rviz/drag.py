# SPDX-License-Identifier: Apache-2.0
"""Drag: the source of the pose of the marker: a user who drags it, other nodes, or the tool."""

from __future__ import annotations

import math
from enum import Enum

SILENCE = 1.0  # [s] without mouse feedback, which RViz sends four times per second, that end a drag
OTHERS = 1.0  # [s] that goals of a track may still arrive after its end
SETTLED = 0.4  # [s] without a new goal or a moving joint after which a goal is not followed any more


class Shown(Enum):
    """What the marker shows."""

    TOOL = 'tool'
    GOAL = 'goal'
    WISH = 'wish'


class Drag:
    """State machine of the marker. Times [s] are of one steady clock."""

    def __init__(self) -> None:
        self.shown = Shown.TOOL
        self._began = self._signed = self._changed = -math.inf
        self._rejected = False  # until the mouse is pressed again

    @property
    def dragged(self) -> bool:
        """Whether a user drags the marker."""
        return self.shown is Shown.WISH

    def press(self, now: float) -> None:
        """Process a mouse press."""
        self._rejected, self._began, self._signed = False, now, now

    def pull(self, now: float) -> bool:
        """Process a new pose of the mouse; return whether it is accepted."""
        if self._rejected:
            return False
        if not self.dragged and now - self._signed > SILENCE:
            self._began = now  # the press was lost
        self.shown, self._signed, self._changed = Shown.WISH, now, now
        return True

    def hold(self, now: float) -> None:
        """Process feedback that the mouse is still pressed."""
        self._signed = now

    def release(self, now: float) -> None:
        """Process the end of a drag: the goal is shown until the arm has come to rest."""
        if self.dragged:
            self.shown, self._changed = Shown.GOAL, now

    def foreign(self, now: float) -> bool:
        """Process a goal of another node; return whether it ends a drag."""
        if self.dragged and now - self._began < OTHERS:
            return False
        ends, self._rejected = self.dragged, self.dragged
        self.shown, self._changed = Shown.GOAL, now
        return ends

    def moved(self, now: float) -> None:
        """Process a motion of the arm."""
        self._changed = now

    def drop(self) -> None:
        """Show the tool: it moves by a button or by joint goals."""
        self.shown, self._rejected = Shown.TOOL, self.dragged

    def update(self, now: float) -> None:
        """Process elapsed time."""
        if self.dragged and now - self._signed > SILENCE:
            self.release(now)
        if self.shown is Shown.GOAL and now - self._changed > SETTLED:
            self.shown = Shown.TOOL
