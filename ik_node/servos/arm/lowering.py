# SPDX-License-Identifier: Apache-2.0
"""Lowering: the torque of an arm vanishes slowly before it is switched off."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence

from ik_node.servos.arm.activation import Shares, limit_torque, torque_share
from ik_node.servos.arm.survey import ArmError, ServoSurvey, write
from ik_node.servos.bus.transport import Transport
from ik_node.steady import steady

LOWERING = 3.0  # [s] in which the torque vanishes
PERIOD = 0.01  # [s] from one step to the next


class Lowering:
    """Begins at once. The torque of a servo sinks from what it has: it is never raised.

    A servo that does not answer is lowered from what is known of it, and otherwise once it answers; at last
    it is switched off as it is.
    """

    def __init__(
        self, transport: Transport, servos: Sequence[ServoSurvey], known: Mapping[int, float]
    ) -> None:
        """known: the shares that servos have, by id, as far as they are known."""
        self._transport, self._known, self._begun = transport, known, steady()
        self._unread = deque(servos)
        self._first: dict[int, tuple[ServoSurvey, float, float]] = {}  # share, and when read [s], by id

    def step(self) -> bool:
        """Write the limits of this time; return whether there will be more of them."""
        passed = self._passed
        if passed < LOWERING:
            self._look()
        if shares := self.shares:
            limit_torque(self._transport, shares)
        latest = max((since for _, _, since in self._first.values()), default=0.0)
        return passed < latest + LOWERING

    @property
    def shares(self) -> Shares:
        """The share that each servo may use now; those of which none is known are left out."""
        passed = self._passed
        return [
            (servo, share * max(1.0 - (passed - since) / LOWERING, 0.0))
            for servo, share, since in self._first.values()
        ]

    @property
    def _passed(self) -> float:
        return steady() - self._begun

    def _look(self) -> None:
        """Prepare servos, and read what they have, until one does not answer."""
        while self._unread:
            servo = self._unread[0]
            id = servo.joint.id
            try:
                if 'bus_watchdog' in servo.model.registers:  # stopped by it, a servo accepts no limit
                    write(self._transport, servo.joint, servo.model, 'bus_watchdog', 0)
                self._first[id] = servo, torque_share(self._transport, servo), self._passed
                self._unread.popleft()
            except ArmError:
                if id in self._known and id not in self._first:
                    self._first[id] = servo, self._known[id], self._passed
                self._unread.rotate(-1)
                return


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
        steady.sleep(PERIOD)
    return None
