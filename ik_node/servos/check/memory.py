# SPDX-License-Identifier: Apache-2.0
"""Writing to the memory of servos, which survives the power, after their owner has agreed."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from ik_node.console import say
from ik_node.servos.arm.survey import write
from ik_node.servos.bus.registers import ServoModel
from ik_node.servos.bus.transport import Transport
from ik_node.servos.calibration.profile import JointProfile


def agreed() -> bool:
    """Ask whether what was shown may be stored; return whether the owner agrees."""
    say('Type yes and press Enter to store that in the servos: ')
    if line().strip().lower() == 'yes':
        return True
    say('Nothing was stored.')
    return False


def line() -> str:
    """Return what was typed until Enter, empty at the end of the input."""
    return os.read(sys.stdin.fileno(), 4096).decode(errors='replace')


def store(transport: Transport, joint: JointProfile, model: ServoModel, wanted: Mapping[str, int]) -> None:
    """Write counts to registers of the memory, by name, and read them back. Raises ArmError."""
    has_lock = 'lock' in model.registers
    if has_lock:
        write(transport, joint, model, 'lock', 0)
    try:
        for name, count in wanted.items():
            write(transport, joint, model, name, count)
    finally:
        if has_lock:
            write(transport, joint, model, 'lock', 1)
