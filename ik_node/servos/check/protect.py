# SPDX-License-Identifier: Apache-2.0
"""Protect: store in the servos what keeps a gripper from burning out, and gains that carry the arm."""

from __future__ import annotations

from collections.abc import Sequence

from ik_node.console import say, table
from ik_node.servos.arm.survey import ArmError, named, read
from ik_node.servos.bus.transport import Transport
from ik_node.servos.check.findings import ServoFinding
from ik_node.servos.check.memory import agreed, store
from ik_node.servos.check.protection import FACTORY_GAIN, is_weak, unprotected


def protect(transport: Transport, findings: Sequence[ServoFinding]) -> int:
    """Store in the memory of the servos what protects grippers and carries the arm; 0 if that was wanted.

    Raises PortError and ArmError.
    """
    plan = []
    for servo in findings:
        if servo.fault:
            raise ArmError(f'{named(servo.joint)} {servo.fault}')
        wanted = unprotected(servo) | ({'p_gain': FACTORY_GAIN} if is_weak(servo) else {})
        if wanted and read(transport, servo.joint, servo.model, 'torque_enable'):
            raise ArmError(f'{named(servo.joint)} has torque: switch it off first, and support the arm')
        plan.append((servo, wanted))
    rows = [['joint', 'register', 'now', 'then']]
    for servo, wanted in plan:
        rows += [
            [servo.joint.name, name, str(servo.counts[name]), str(count)] for name, count in wanted.items()
        ]
    if len(rows) == 1:
        say('\nThe servos already have these values: there is nothing to store.')
        return 0
    say('\n'.join(['', *table(rows), '']))
    if not agreed():
        return 1
    for servo, wanted in plan:
        if wanted:
            store(transport, servo.joint, servo.model, wanted)
    say('Stored in the servos. The torque of a gripper takes effect the next time that they are switched on.')
    return 0
