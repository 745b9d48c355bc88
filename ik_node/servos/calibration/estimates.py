# SPDX-License-Identifier: Apache-2.0
"""Three estimates of the zero of a joint from what was recorded of it, and what makes them doubtful.

stops: the stops of the CAD model are at the ends of the recorded range. homing: the joint was held at zero,
by eye, when LeRobot made that pose tick 2047; or the factory has set it. lerobot: the middle of the recorded
range, which LeRobot calls 0 degrees.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from ik_node.servos.calibration.profile import JointProfile
from ik_node.servos.calibration.recorded import Recorded, is_same

STOPS, HOMING, LEROBOT = 'stops', 'homing', 'lerobot'
ZERO_FROM = (STOPS, HOMING, LEROBOT)
OWNER = 'owner'

SPANS_AGREE = math.radians(3.0)  # recorded and CAD span: then the whole range was recorded
APART = math.radians(4.0)  # two estimates of a zero
LEAST_SPAN, MOST_SPAN = 0.6, 1.05  # of a recorded range, as shares of that of the CAD model


def estimates_of(joint: JointProfile, recorded: Recorded | None) -> dict[str, float]:
    """Return the estimates [ticks] of the zero that can be made, by their names."""
    found: dict[str, float] = {}
    if recorded is not None and recorded.is_range and joint.stops is not None:
        low, high = sorted(joint.sign * stop / joint.unit for stop in joint.stops)  # [ticks] from zero
        if joint.gripper:  # its spans vary with the jaws, but it is always recorded closed
            closed = recorded.low if joint.sign > 0 else recorded.high
            found[STOPS] = closed - joint.sign * joint.stops[0] / joint.unit
        elif abs((recorded.high - recorded.low) - (high - low)) * joint.unit <= SPANS_AGREE:
            found[STOPS] = recorded.middle - (low + high) / 2.0
    if joint.zero is not None:
        found[HOMING] = joint.zero
    elif joint.homing is not None and _is_calibrated(joint, recorded):
        found[HOMING] = joint.homing
    if recorded is not None and (joint.zero is not None or _is_calibrated(joint, recorded)):
        found[LEROBOT] = recorded.middle
    return found


def best_estimate(joint: JointProfile, estimates: Mapping[str, float], zero_from: str) -> str | None:
    """Return the name of the estimate to take, None if there is none."""
    order = {STOPS: (STOPS, HOMING), HOMING: (HOMING,), LEROBOT: (LEROBOT,)}[zero_from]
    if joint.gripper:  # LeRobot has no degrees of it
        order = (STOPS, HOMING)
    return next((name for name in order if name in estimates), None)


def doubts_of(
    joint: JointProfile,
    recorded: Recorded | None,
    file: Recorded | None,
    estimates: Mapping[str, float],
    source: str | None,
    zero: float | None,
) -> list[str]:
    """Return what the owner should look at. source, zero: what was chosen. file: what a file has recorded."""
    found: list[str] = []
    if recorded is None:
        return found
    if file is not None and not is_same(recorded, file):
        found.append(f'the servo has {recorded.text()}, the file {file.text()}: those of the servo are used')
    if recorded.multi_turn:
        found.append(
            'the servo counts beyond one turn (bit 4 of phase): calibrate with LeRobot 0.6.0 or later'
        )
    found += _doubts_of_range(joint, recorded)
    if source == HOMING and joint.stops is not None and joint.zero is None and recorded.is_range:
        found.append('the recorded range is not that between the stops: zero is where the joint was held')
    # The middle differs on every good calibration, by the CAD model: no doubt, unless it is the choice.
    compared = {name: tick for name, tick in estimates.items() if name != LEROBOT}
    if source is not None and zero is not None:
        compared[source] = zero
    apart = (max(compared.values()) - min(compared.values())) * joint.unit if compared else 0.0
    if apart > APART:
        shown = ', '.join(f'{name} {tick:.0f}' for name, tick in compared.items())
        found.append(f'estimates of zero differ by {math.degrees(apart):.1f} degrees: {shown}')
    return found


def _is_calibrated(joint: JointProfile, recorded: Recorded | None) -> bool:
    if recorded is None:
        return False
    return recorded.is_range or (joint.full_turn and not recorded.as_delivered)


def _doubts_of_range(joint: JointProfile, recorded: Recorded) -> list[str]:
    if joint.zero is not None and joint.stops is None:
        return []  # factory limits need no record
    if recorded.as_delivered:
        return ['the servo is as delivered, without a recorded range: calibrate the arm']
    if joint.full_turn:
        return []
    if not recorded.is_range:
        return [
            f'the recorded range {recorded.low} to {recorded.high} contains the step from 4095 to 0: '
            'calibrate again, held in mid-range'
        ]
    if joint.stops is not None:
        share = (recorded.high - recorded.low) * joint.unit / (joint.stops[1] - joint.stops[0])
        if not LEAST_SPAN <= share <= MOST_SPAN:
            return [f'the recorded range is {100 * share:.0f} % of that between the stops: record it again']
    return []
