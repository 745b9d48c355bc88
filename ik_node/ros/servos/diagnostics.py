# SPDX-License-Identifier: Apache-2.0
"""Diagnostics: one status of the arm, and one of every joint, whether its servo answers or not."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from diagnostic_msgs.msg import DiagnosticStatus

from ik_node.control.state.report import Level
from ik_node.ros.goals.reports import diagnostic
from ik_node.servos.arm.cycle import SILENCE
from ik_node.servos.arm.snapshot import ArmSnapshot, ArmState, JointMeasurement
from ik_node.steady import steady

LEVELS = {
    ArmState.CLOSED: Level.ERROR,
    ArmState.SILENT: Level.ERROR,
    ArmState.FAULTED: Level.ERROR,
    ArmState.PASSIVE: Level.WARN,
    ArmState.LOWERING: Level.WARN,
}
NOT_MEASURED = (ArmState.CLOSED, ArmState.SILENT)


class Diagnostics:
    """What snapshots tell. take may be called from another thread than statuses."""

    def __init__(self, name: str, joints: Iterable[str]) -> None:
        """name: of the node."""
        self._name, self._joints = name, tuple(joints)
        self._arm = ArmSnapshot(steady(), ArmState.CLOSED, 'not started')
        self._answers: dict[str, tuple[float, JointMeasurement]] = {}  # the last of each joint, and when [s]

    def take(self, arm: ArmSnapshot) -> None:
        """Take note of a snapshot."""
        self._answers.update({name: (arm.time, joint) for name, joint in arm.joints.items()})
        self._arm = arm

    def statuses(self) -> list[DiagnosticStatus]:
        """Return the status of the arm, and that of every joint."""
        arm = self._arm
        level = LEVELS.get(arm.state, Level.WARN if arm.reason else Level.OK)
        values: dict[str, Any] = {
            'state': arm.state.value,
            'torque': 'unknown'
            if arm.state in NOT_MEASURED
            else f'{len(arm.powered)} of {len(self._joints)} joints',
            'rate': f'{arm.rate:.1f}',
            'retries': arm.retries,
            'commands beyond a limit': arm.beyond,
        }
        values.update({f'bus errors: {fault}': count for fault, count in arm.faults.items()})
        status = diagnostic(level, self._name, arm.reason or arm.state.value, values)
        return [status, *(self._of_joint(arm, name) for name in self._joints)]

    def _of_joint(self, arm: ArmSnapshot, name: str) -> DiagnosticStatus:
        own = f'{self._name}/{name}'
        when, joint = self._answers.get(name, (0.0, None))
        if joint is None:
            return diagnostic(Level.ERROR, own, 'its servo has not responded yet', {})
        silent = steady() - when
        if silent > SILENCE:
            return diagnostic(Level.ERROR, own, f'its servo has not responded for {silent:.1f} s', {})
        values = {
            'position': f'{joint.position:.4f}',
            'tick': joint.tick,
            'voltage': f'{joint.voltage:.1f}',
            'temperature': f'{joint.temperature:.0f}',
            'load': f'{joint.load:.3f}',
            'torque': 'on' if name in arm.powered else 'off',
        }
        if name in arm.leads:
            lead, trim = arm.leads[name]
            values |= {'lead': f'{lead:.4f}', 'trim': f'{trim:.4f}'}
        warnings = list(joint.conditions)
        if name in arm.limited:
            limit, command = arm.limited[name]
            warnings.append(f'at its limit {limit:.3f}, commanded {command:.3f}')
        if name in arm.doubts:
            warnings.append(arm.doubts[name])
        level = Level.WARN if warnings else Level.OK
        return diagnostic(level, own, ', '.join(warnings) or 'ok', values)
