# SPDX-License-Identifier: Apache-2.0
"""SoftStart: the torque of servos grows slowly after they were switched on."""

from __future__ import annotations

import time
from collections.abc import Iterable

from ik_node.servos.arm.activation import limit_torque
from ik_node.servos.arm.survey import ServoSurvey
from ik_node.servos.bus.transport import Transport

SOFT_START = 1.0  # [s] in which the torque grows from nothing to all
REPEATED = 2.0  # times SOFT_START for which the limits are written: no servo acknowledges them


class SoftStart:
    """since: when it began (time.monotonic)."""

    def __init__(self) -> None:
        self._growing: list[tuple[ServoSurvey, float]] = []
        self.since = 0.0

    def begin(self, servos: Iterable[tuple[ServoSurvey, float]]) -> None:
        """Let the torque of servos grow from their shares on."""
        self._growing, self.since = list(servos), time.monotonic()

    def shares(self, servos: Iterable[ServoSurvey], limit: float) -> dict[int, float]:
        """Return the share that each of servos may use now, by id; limit: that share in the end."""
        growing = self._grown(limit, time.monotonic())
        return {servo.joint.id: growing.get(servo.joint.id, limit) for servo in servos}

    def end(self) -> None:
        """Write no more limits."""
        self._growing = []

    def grow(self, transport: Transport, limit: float, now: float) -> float:
        """Write the torque limits at a time (time.monotonic); return the share that all servos may use.

        limit: that share in the end.
        """
        shares = self._grown(limit, now)
        if not shares:
            return limit
        limit_torque(transport, [servo for servo, _ in self._growing], shares)
        if (now - self.since) / SOFT_START > REPEATED:
            self.end()
        return min(shares.values())

    def _grown(self, limit: float, now: float) -> dict[int, float]:
        """Return the shares of the servos whose torque grows, by id."""
        grown = (now - self.since) / SOFT_START
        return {servo.joint.id: min(begin + grown, limit) for servo, begin in self._growing}
