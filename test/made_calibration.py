# SPDX-License-Identifier: Apache-2.0
"""Calibrations of an SO-101 that could be: zeros in known places, ranges between the stops."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path

from ik_node.servos.calibration.profile import ArmProfile, read_profile
from ik_node.servos.calibration.recorded import Recorded

SO101 = read_profile('so101')
TICK = math.tau / 4096
FULL_TURN = Recorded(0, 4095, -977)


def recorded_between_stops(offset: float = 0.0) -> dict[str, Recorded]:
    """Return what is recorded of an SO-101 with all zeros at tick 2048 + offset, moved to all stops."""
    found = {}
    for joint in SO101.joints:
        if joint.stops is None:
            found[joint.name] = FULL_TURN
        else:
            low, high = (round(2048 + offset + end / TICK) for end in joint.stops)
            found[joint.name] = Recorded(low, high, 300 + joint.id)
    return found


def entries(recorded: Mapping[str, Recorded], profile: ArmProfile = SO101) -> dict[str, dict[str, int]]:
    """Return the content of LeRobot's file for an arm."""
    return {
        joint.lerobot or joint.name: {
            'id': joint.id,
            'drive_mode': 0,
            'homing_offset': recorded[joint.name].homing_offset,
            'range_min': recorded[joint.name].low,
            'range_max': recorded[joint.name].high,
        }
        for joint in profile.joints
    }


def write_file(path: Path, values: object) -> Path:
    """Write values as JSON, with the folders; return path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(values))
    return path
