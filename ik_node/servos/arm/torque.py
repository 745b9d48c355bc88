# SPDX-License-Identifier: Apache-2.0
"""Torque: which servos of an arm have torque, and which have lost it."""

from __future__ import annotations

from collections.abc import Sequence

from ik_node.servos.arm.survey import ServoSurvey, named
from ik_node.servos.bus.transport import Answer, Transport


class Torque:
    """on: the joints whose servos have torque, as far as that is known."""

    def __init__(self, transport: Transport, servos: Sequence[ServoSurvey]) -> None:
        self._transport, self._servos = transport, servos
        self.on: set[str] = set()
        self._lost: list[str] = []  # servos that have lost it
        self._checked = 0  # the servo that was checked last

    def switched_on(self) -> None:
        """Note that all servos have torque."""
        self.on, self._lost = {servo.joint.name for servo in self._servos}, []

    def look(self, before: set[str]) -> None:
        """Look which servos have torque; those that do not answer as before."""
        self.on = {
            servo.joint.name
            for servo in self._servos
            if self._read(servo, 'torque_enable') in ((1, None) if servo.joint.name in before else (1,))
        }

    def left(self) -> list[ServoSurvey]:
        """Return the servos that may have torque."""
        return [servo for servo in self._servos if self._read(servo, 'torque_enable') != 0]

    def check(self) -> None:
        """Check one servo per call: a dip of the supply switches it off. One reading may be wrong."""
        self._checked = (self._checked + 1) % len(self._servos)
        servo = self._servos[self._checked]
        for _ in range(2):
            found = self._read(servo, 'torque_enable')
            if found == 1:
                self.on.add(servo.joint.name)
            if found in (None, 1):
                return
        self.on.discard(servo.joint.name)
        if named(servo.joint) not in self._lost:
            self._lost.append(named(servo.joint))

    def stopped(self) -> bool:
        """Whether the watchdog of the servo that was checked last has stopped it."""
        servo = self._servos[self._checked]
        return 'bus_watchdog' in servo.model.registers and (self._read(servo, 'bus_watchdog') or 0) < 0

    @property
    def loss(self) -> str:
        """Which servos have lost their torque, and what helps; '' if none has."""
        if not self._lost:
            return ''
        lost, protects = 'has lost its torque', 'it protects itself'
        if len(self._lost) > 1:
            lost, protects = 'have lost their torque', 'they protect themselves'
        return (
            f'{" and ".join(self._lost)} {lost}: the supply has dipped, or {protects}. '
            'Support the arm, then clear the fault'
        )

    def _read(self, servo: ServoSurvey, name: str) -> int | None:
        """Return the count in a register, None without an answer."""
        register = servo.model[name]
        reply = self._transport.read(servo.joint.id, register.address, register.size)
        return register.decode(reply.data) if isinstance(reply, Answer) else None
