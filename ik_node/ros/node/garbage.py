# SPDX-License-Identifier: Apache-2.0
"""Garbage: when the program ik_node collects garbage. A node in the process of others leaves that to them."""

from __future__ import annotations

import gc

from ik_node.kernels import Stage


class Garbage:
    """Keeps collections short: one over all loaded modules would stop every thread for 0.1 s and more."""

    def settle(self) -> None:
        """Collect now, before the arm moves, and leave what stays out of later collections."""
        gc.collect()
        gc.freeze()

    def heed(self, stage: Stage) -> None:
        """Collect nothing while compiled kernels are loaded beside a moving arm, nor them afterwards."""
        if stage is Stage.COMPILING:
            gc.disable()
        elif not gc.isenabled():
            gc.freeze()
            gc.enable()
