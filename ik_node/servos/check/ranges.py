# SPDX-License-Identifier: Apache-2.0
"""From the travel of a joint to what is stored of it: the range, and the offset that keeps it in one turn."""

from __future__ import annotations

from ik_node.servos.arm.survey import ArmError, named
from ik_node.servos.bus.models import TICKS_PER_TURN
from ik_node.servos.calibration.estimates import LEAST_SPAN, SPANS_AGREE
from ik_node.servos.calibration.recorded import Recorded
from ik_node.servos.check.findings import ServoFinding
from ik_node.servos.check.page import amount

MIDDLE = 2047  # tick of the pose that was held, as LeRobot has it
LEAST = 200  # [ticks] that a joint must be moved
LARGEST_OFFSET = 2047  # [ticks] Feetech
LARGEST_IN_POSITION_MODE = 1024  # [ticks] Dynamixel
POSITION_MODE = 3  # of Dynamixel


class Travel:
    """Where a joint was, from its first tick on, beyond 4095 and 0 too: low and high [ticks]."""

    def __init__(self, tick: int) -> None:
        self.start = self.low = self.high = self._now = tick

    def add(self, tick: int) -> None:
        """Note the next tick; the joint has turned by less than half a turn since the last one."""
        half = TICKS_PER_TURN // 2
        self._now += (tick - self._now + half) % TICKS_PER_TURN - half
        self.low, self.high = min(self.low, self._now), max(self.high, self._now)


def recorded_from(servo: ServoFinding, travel: Travel) -> Recorded:
    """Return what to store of a joint that was held at zero first, then moved. Raises ArmError."""
    joint, before = servo.joint, servo.recorded
    assert before is not None
    shift = 0 if joint.zero is not None else _shift(servo, travel)
    offset = before.homing_offset + servo.model.homing_sign * shift
    if servo.model.homing_sign < 0:
        offset = min((offset + LARGEST_OFFSET) % TICKS_PER_TURN - LARGEST_OFFSET, LARGEST_OFFSET)
    elif servo.counts['operating_mode'] == POSITION_MODE and abs(offset) > LARGEST_IN_POSITION_MODE:
        raise ArmError(
            f'{named(joint)}: an offset of {offset} ticks is more than the {LARGEST_IN_POSITION_MODE} that '
            'position mode allows: mount its horn nearer to the middle'
        )
    if joint.full_turn:
        return Recorded(0, TICKS_PER_TURN - 1, offset or 1)  # 0 would look like that of the factory
    span = travel.high - travel.low
    stops = None if joint.stops is None else (joint.stops[1] - joint.stops[0]) / joint.unit
    if span < (LEAST if stops is None else LEAST_SPAN * stops):
        raise ArmError(
            f'{named(joint)} was moved by {amount(joint, span * joint.unit)} only: move it to both stops'
        )
    low, high = travel.low + shift, travel.high + shift
    if not 0 < low < high < TICKS_PER_TURN - 1:
        raise ArmError(
            f'{named(joint)}: ticks {low} to {high} are not within one turn: hold it nearer to the middle of '
            'its range at first'
        )
    return Recorded(low, high, offset)


def _shift(servo: ServoFinding, travel: Travel) -> int:
    """Return by how much the ticks must change, so that zero is at MIDDLE where that is possible."""
    joint, span = servo.joint, travel.high - travel.low
    middle = round((travel.low + travel.high) / 2)
    if joint.gripper:
        return MIDDLE - middle
    if joint.stops is not None and joint.homing is not None and not joint.full_turn:
        low, high = sorted(joint.sign * stop / joint.unit for stop in joint.stops)  # [ticks] from zero
        if abs(span - (high - low)) * joint.unit <= SPANS_AGREE:  # better than the eye
            return round(joint.homing + (low + high) / 2.0) - middle
    return (MIDDLE if joint.homing is None else round(joint.homing)) - travel.start
