# SPDX-License-Identifier: Apache-2.0
"""Recorded: what a calibration has left in the memory of a servo, or in a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ik_node.servos.bus.models import PHASE_MULTI_TURN, TICKS_PER_TURN
from ik_node.servos.bus.registers import ServoModel

DRIVE_MODE_REVERSED = 0x01  # Dynamixel
REGISTERS = ('min_position_limit', 'max_position_limit', 'homing_offset', 'phase', 'drive_mode')


@dataclass(frozen=True)
class Recorded:
    """What was recorded of a joint.

    low, high [ticks]: its range. homing_offset [ticks]: as in the register. multi_turn: positions count
    beyond one turn. reversed: the servo turns the other way; None where that is not known or cannot be set.
    """

    low: int
    high: int
    homing_offset: int
    multi_turn: bool = False
    reversed: bool | None = None

    @property
    def is_range(self) -> bool:
        """Whether low and high are ends of a motion, without the step from 4095 to 0 between them."""
        return 0 < self.low < self.high < TICKS_PER_TURN - 1

    @property
    def as_delivered(self) -> bool:
        """Whether the servo has the values of the factory: nobody has calibrated it."""
        return (self.low, self.high, self.homing_offset) == (0, TICKS_PER_TURN - 1, 0)

    @property
    def middle(self) -> float:
        """The middle [ticks] of the range, which LeRobot calls 0 degrees."""
        return (self.low + self.high) / 2.0

    def text(self) -> str:
        """Return range and offset in words."""
        return f'range {self.low} to {self.high} and offset {self.homing_offset}'


def registers_of(model: ServoModel) -> tuple[str, ...]:
    """Return the names of those REGISTERS that a servo has."""
    return tuple(name for name in REGISTERS if name in model.registers)


def recorded_in(model: ServoModel, counts: Mapping[str, int]) -> Recorded:
    """Return what is in the memory of a servo. counts: of the registers_of its model, decoded."""
    return Recorded(
        counts['min_position_limit'],
        counts['max_position_limit'],
        counts['homing_offset'],
        bool(counts['phase'] & PHASE_MULTI_TURN) if 'phase' in model.registers else False,
        bool(counts['drive_mode'] & DRIVE_MODE_REVERSED) if 'drive_mode' in model.registers else None,
    )


def is_same(one: Recorded, other: Recorded) -> bool:
    """Whether range and offset are the same."""
    return (one.low, one.high, one.homing_offset) == (other.low, other.high, other.homing_offset)
