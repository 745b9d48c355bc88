# SPDX-License-Identifier: Apache-2.0
"""Protection: what keeps a gripper that holds something from burning out, and gains that carry the arm.

The values of grippers are those that LeRobot writes: half of the torque, half of the current, and overload
from a quarter of the torque on. The P gain is that of the factory.
"""

from __future__ import annotations

from ik_node.servos.check.findings import ServoFinding

GRIPPER = {'max_torque': 500, 'protection_current': 250, 'overload_torque': 25}  # at most; STS servos
WEAK_GAIN, FACTORY_GAIN = 16, 32  # P; LeRobot writes the weak one at every connection


def unprotected(servo: ServoFinding) -> dict[str, int]:
    """Return the counts that registers of a gripper should have, by name; only of those that have more."""
    if not servo.joint.gripper:
        return {}
    return {name: most for name, most in GRIPPER.items() if servo.counts.get(name, 0) > most}


def is_weak(servo: ServoFinding) -> bool:
    """Whether the P gain of a servo is so low that the arm sags."""
    return servo.model.homing_sign < 0 and servo.counts['p_gain'] <= WEAK_GAIN
