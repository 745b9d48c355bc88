# SPDX-License-Identifier: Apache-2.0
"""Torque: which servos of an arm have torque, and which have lost it."""

from __future__ import annotations

from collections.abc import Sequence

from ik_node.servos.arm.activation import may_have_torque
from ik_node.servos.arm.survey import ServoSurvey, named, named_all, try_read
from ik_node.servos.bus.transport import Transport


class Torque:
    """on: the joints whose servos have torque, as far as that is known."""

    def __init__(self, transport: Transport, servos: Sequence[ServoSurvey]) -> None:
        self._transport, self._servos = transport, servos
        self.on: set[str] = set()
        self._lost: dict[str, ServoSurvey] = {}  # servos that have lost it, by joint
        self._checked = self._looked = 0  # the servo that was checked last, and the register

    def switched_on(self) -> None:
        """Note that all servos have torque."""
        self.on, self._lost = {servo.joint.name for servo in self._servos}, {}

    def switched_off(self) -> None:
        """Note that no servo has torque."""
        self.on, self._lost = set(), {}

    def look(self, before: set[str]) -> None:
        """Look which servos have torque; those that do not answer as before."""
        found = {servo.joint.name: may_have_torque(self._transport, servo) for servo in self._servos}
        self.on = {name for name, has in found.items() if has or (has is None and name in before)}

    def is_left(self) -> bool:
        """Whether a servo may have torque."""
        return any(may_have_torque(self._transport, servo) is not False for servo in self._servos)

    def left(self, is_unwanted: bool) -> str:
        """Which servos of an arm that nobody drives have torque, and what helps."""
        servos = named_all(servo.joint for servo in self._servos if servo.joint.name in self.on)
        if is_unwanted:
            return f'torque may still be on in {servos}: support the arm, and switch it off again'
        return f'torque is on in {servos}'

    def check(self) -> None:
        """Check one servo per call: a dip of the supply switches it off, and it has lost what was set."""
        self._checked = (self._checked + 1) % len(self._servos)
        servo = self._servos[self._checked]
        has, name = may_have_torque(self._transport, servo), servo.joint.name
        if has and name not in self._lost:
            self.on.add(name)
        elif has is False:
            self.on.discard(name)
            self._lost[name] = servo

    def stopped(self) -> bool:
        """Whether the watchdog of the servo that was checked last has stopped it, or is not set."""
        servo = self._servos[self._checked]
        found = (
            try_read(self._transport, servo, 'bus_watchdog')
            if 'bus_watchdog' in servo.model.registers
            else None
        )
        return found is not None and found <= 0

    def changed(self, limit: float) -> tuple[ServoSurvey, bool, str] | None:
        """Look at one register of one servo per call that only another program changes.

        limit: the share of the torque that was set. Return the servo, whether it goes to no position any
        more, and a sentence; None if nothing is changed.
        """
        self._looked = (self._looked + 1) % (2 * len(self._servos))
        servo = self._servos[self._looked // 2]
        name = 'operating_mode' if self._looked % 2 else 'torque_limit'
        full = servo.model['torque_limit'].count(limit * servo.joint.torque)
        allowed = servo.model.position_modes if self._looked % 2 else {full}
        found = {try_read(self._transport, servo, name) for _ in range(2)}  # one may be damaged
        if len(found) > 1 or found <= {None, *allowed}:
            return None
        must = ' or '.join(map(str, sorted(allowed)))
        said = (
            f'{named(servo.joint)} has {name} {found.pop()}, it must be {must}: another program has changed'
        )
        return servo, name == 'operating_mode', f'{said} it. End that program, then clear the fault'

    @property
    def loss(self) -> str:
        """Which servos have lost their torque, and what helps; '' if none has."""
        if not self._lost:
            return ''
        servos = named_all(servo.joint for servo in self._lost.values())
        lost, protects = 'has lost its torque', 'it protects itself'
        if len(self._lost) > 1:
            lost, protects = 'have lost their torque', 'they protect themselves'
        return f'{servos} {lost}: the supply has dipped, or {protects}. Support the arm, then clear the fault'
