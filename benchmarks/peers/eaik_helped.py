# SPDX-License-Identifier: Apache-2.0
"""EAIK on an arm rewritten for it: parallel axes point the same way, a roll on the tool axis is left out.

Where the axes are not exact enough for it, they are rounded, and its answers are as good as that.
"""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np

from benchmarks.peers import eaik_closed
from benchmarks.peers.eaik_closed import UnknownFamilyError

TITLE = 'EAIK, arm rewritten'
PARALLEL = 1e-5
SNAPPED = 4  # decimals to which axes are rounded where the file's last digits hide the family


class Peer(eaik_closed.Peer):
    """The bare IK call again: what it takes where EAIK's blind spots are worked around."""

    def __init__(self, arm: dict[str, Any]) -> None:
        with contextlib.suppress(UnknownFamilyError):
            super().__init__(arm)
        axes, points = self.rolled.axes, self.rolled.points
        gap = np.cross(points[-1] - points[-2], axes[-1])
        if np.linalg.norm(np.cross(axes[-2], axes[-1])) < PARALLEL and np.linalg.norm(gap) < PARALLEL:
            self.kept = self.kept[:-1]
        rows = np.append(self.kept, len(axes) - 1)
        axes = axes[rows]
        self.sense = np.ones(len(axes))
        for i in range(1, len(axes)):
            if axes[i] @ axes[i - 1] * self.sense[i - 1] < PARALLEL - 1:
                self.sense[i] = -1
        axes = axes * self.sense[:, None]
        try:
            self.build(axes, points[rows])
        except UnknownFamilyError:
            snapped = np.round(axes, SNAPPED)
            self.build(snapped / np.linalg.norm(snapped, axis=1)[:, None], points[rows])
