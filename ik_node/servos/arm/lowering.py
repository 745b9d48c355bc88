# SPDX-License-Identifier: Apache-2.0
"""Lowering: the torque of an arm vanishes slowly before it is switched off."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence

from ik_node.servos.arm.activation import limit_torque, torque_share, unwatch
from ik_node.servos.arm.survey import ArmError, ServoSurvey
from ik_node.servos.bus.transport import Transport

LOWERING = 3.0  # [s] in which the torque vanishes
PERIOD = 0.01  # [s] from one step to the next
Shares = list[tuple[ServoSurvey, float]]


class Lowering:
    """Begins at once. The torque of a servo sinks from what it has: it is never raised.

    A servo that does not answer is lowered from what is known of it; else it keeps its torque until it
    answers, or until the torque is switched off.
    """

    def __init__(
        self, transport: Transport, servos: Sequence[ServoSurvey], known: Mapping[int, float]
    ) -> None:
        """known: the shares that servos have, by id, as far as they are known."""
        unwatch(transport, servos)  # a servo that its watchdog has stopped accepts no limit
        self._transport, self._begun = transport, time.monotonic()
        self._known, self._unknown = known, deque(servos)
        self._first: list[tuple[ServoSurvey, float, float]] = []  # the share of each, and when that was [s]

    def step(self) -> bool:
        """Write the limits of this time; return whether there will be more of them."""
        self._look()
        if self._first:
            shares = {servo.joint.id: share for servo, share in self.shares}
            limit_torque(self._transport, [servo for servo, _, _ in self._first], shares)
        return self._passed < LOWERING

    @property
    def shares(self) -> Shares:
        """The share that each servo may use now; those without an answer are left out."""
        left = max(LOWERING - self._passed, 0.0)
        return [(servo, share * left / (LOWERING - since)) for servo, share, since in self._first]

    @property
    def _passed(self) -> float:
        return time.monotonic() - self._begun

    def _look(self) -> None:
        """Read what the servos have, until one does not answer."""
        while self._unknown and (passed := self._passed) < LOWERING:
            servo = self._unknown[0]
            try:
                share = torque_share(self._transport, servo)
            except ArmError:
                if servo.joint.id not in self._known:
                    self._unknown.rotate(-1)
                    break
                share = self._known[servo.joint.id]
            self._first.append((servo, share, passed))
            self._unknown.popleft()


def lower(
    transport: Transport,
    servos: Sequence[ServoSurvey],
    known: Mapping[int, float],
    measure: Callable[[], None],
    is_held: Callable[[], bool],
) -> Shares | None:
    """Let the torque vanish; return the shares of the servos if is_held ended that, None at the end.

    known: the shares that servos have, by id. measure: called in each step.
    """
    lowering = Lowering(transport, servos, known)
    while lowering.step():
        measure()
        if is_held():
            return lowering.shares
        time.sleep(PERIOD)
    return None
