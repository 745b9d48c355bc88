# SPDX-License-Identifier: Apache-2.0
"""SoftStart: the torque of servos grows slowly after they were switched on."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from ik_node.servos.arm.activation import limit_torque
from ik_node.servos.arm.survey import ServoSurvey, try_read
from ik_node.servos.bus.transport import Transport
from ik_node.steady import steady

SOFT_START = 1.0  # [s] in which the torque grows from nothing to all
CHECKED = 0.1  # [s] from one look to the next whether the servos have their limits: none acknowledges them


class SoftStart:
    """since: when it began (steady)."""

    def __init__(self) -> None:
        self._growing: deque[tuple[ServoSurvey, float]] = deque()  # until its limit was read back
        self.since = self._checked = 0.0

    def begin(self, servos: Iterable[tuple[ServoSurvey, float]]) -> None:
        """Let the torque of servos grow from their shares on."""
        self._growing, self.since = deque(servos), steady()

    @property
    def ended(self) -> bool:
        """Whether all servos have their limit."""
        return not self._growing

    def confirmed(self, servos: Iterable[ServoSurvey], limit: float) -> dict[int, float]:
        """Return the shares, by id, of the servos that have their share in the end, limit."""
        growing = {servo.joint.id for servo, _ in self._growing}
        return {servo.joint.id: limit for servo in servos if servo.joint.id not in growing}

    def end(self) -> None:
        """Write no more limits."""
        self._growing.clear()

    def grow(self, transport: Transport, limit: float, now: float) -> float:
        """Write the torque limits at a time (steady); return the share that all servos may use.

        limit: that share in the end.
        """
        if not self._growing:
            return limit
        grown = (now - self.since) / SOFT_START
        shares = [(servo, min(begin + grown, limit)) for servo, begin in self._growing]
        limit_torque(transport, shares)
        if grown > 1.0 and now > self._checked + CHECKED:
            self._checked = now
            self._check(transport, limit)
        return min(share for _, share in shares)

    def _check(self, transport: Transport, limit: float) -> None:
        """Read back the limits until one is missing."""
        while self._growing:
            servo, _ = self._growing[0]
            full = servo.model['torque_limit'].count(limit * servo.joint.torque)
            if try_read(transport, servo, 'torque_limit') != full:
                self._growing.rotate(-1)
                return
            self._growing.popleft()
