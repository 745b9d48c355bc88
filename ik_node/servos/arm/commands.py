# SPDX-License-Identifier: Apache-2.0
"""Commands: the newest positions that others ask for, and since when."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Mapping

from ik_node.errors import InputError, join_names


class Commands:
    """Positions [rad or m] by joint; safe to use from several threads.

    holds: how often latch was called. torque_off: the arm is to be without torque. Both outlast the
    connection to the servos, as the latch does.
    """

    def __init__(self, names: tuple[str, ...]) -> None:
        self._names, self._lock = names, threading.Lock()
        self._positions: dict[str, float] = {}
        self._given = -math.inf
        self._latched = False
        self.holds, self.torque_off = 0, False

    @property
    def latched(self) -> bool:
        """Whether none are taken."""
        return self._latched

    def latch(self) -> None:
        """Forget all, and take none until release."""
        with self._lock:
            self._latched, self.torque_off = True, False
            self.holds += 1
            self._positions.clear()

    def release(self) -> None:
        """Take commands again."""
        with self._lock:
            self._latched = self.torque_off = False

    def checked(self, positions: Mapping[str, float]) -> dict[str, float]:
        """Return the positions of joints of the arm.

        Raises InputError for numbers that are not finite, and if no joint of the arm is named.
        """
        own = {name: float(positions[name]) for name in self._names if name in positions}
        if not own:
            raise InputError(f'the command names no joint of this arm; joints: {join_names(self._names)}')
        for name, value in own.items():
            if not math.isfinite(value):
                raise InputError(f'the command of joint {name} is {value}')
        return own

    def put(self, positions: Mapping[str, float]) -> None:
        """Ask for checked positions; joints that are not named keep theirs."""
        with self._lock:
            if not self._latched:
                self._positions.update(positions)
                self._given = time.monotonic()

    def fresh(self, timeout: float) -> dict[str, float]:
        """Return the positions if the newest ones are not older than timeout [s]; else forget them."""
        with self._lock:
            if time.monotonic() - self._given > timeout:
                self._positions.clear()
            return dict(self._positions)

    def clear(self) -> None:
        """Forget all."""
        with self._lock:
            self._positions.clear()
            self._given = -math.inf
