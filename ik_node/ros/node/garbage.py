# SPDX-License-Identifier: Apache-2.0
"""Garbage: schedules garbage collection in the program ik_node; not for a node in another process."""

from __future__ import annotations

import gc

from ik_node.kernels import Stage


class Garbage:
    """Keeps collections short: one over all loaded modules would stop every thread for 0.1 s and more."""

    def settle(self) -> None:
        """Collect now, before the arm moves, and exclude the remaining objects from later collections."""
        gc.collect()
        gc.freeze()

    def on_stage(self, stage: Stage) -> None:
        """Do not collect while compiled kernels are loaded, and exclude them afterwards."""
        if stage is Stage.COMPILING:
            gc.disable()
        elif not gc.isenabled():
            gc.freeze()
            gc.enable()
