# SPDX-License-Identifier: Apache-2.0
"""ToolGate: the final check of the tool in every setpoint, after joint_gate.py."""

from __future__ import annotations

import math

import numpy as np

from ik_node.checks import Array
from ik_node.control.motion.tool_motion import tool_motion
from ik_node.control.settings.workspace import Workspace
from ik_node.model.arm import Arm

ROUNDING = 1e-6  # [m, rad] by which a step may exceed a limit
SLACK = 1e-3  # [m] outside the workspace: goals and motions are checked without it, at other times


class ToolGate:
    """Compares the tool pose of each setpoint with the workspace and with the previous setpoint.

    An arm that starts outside the workspace may move in the smallest box around both until it rests inside.
    """

    def __init__(self, arm: Arm) -> None:
        self.arm = arm
        self._workspace = self._allowed = Workspace(np.full(3, -np.inf), np.full(3, np.inf), given=False)
        self._limits = self._bounds = math.inf, math.inf
        self._last: Array | None = None  # frames of the arm at the last setpoint, see Arm.frames

    def set_limits(self, workspace: Workspace, max_speed: float, max_turn_rate: float) -> None:
        """Set the limits [m, m/s, rad/s]. Tighter ones apply once the joints rest, as in Gate."""
        self._workspace, self._allowed = workspace, self._allowed.around(workspace)
        self._limits = max_speed, max_turn_rate
        self._bounds = max(self._bounds[0], max_speed), max(self._bounds[1], max_turn_rate)
        if self._last is None:
            self.restart()

    def restart(self) -> None:
        """Forget the last setpoint: the arm was reinitialised at rest."""
        self._last = None
        self._allowed, self._bounds = self._workspace, self._limits

    def go_on_from(self, position: Array) -> None:
        """Compare the next setpoint with this one (n,) instead of the last one."""
        self._last = self.arm.frames(position)

    def reject(self, position: Array, moving: bool, dt: float) -> str | None:
        """Return why a setpoint (n,), dt [s] after the last one, must not be published, else None."""
        frames = self.arm.frames(position)
        point = frames[-3]
        if self._last is None:
            self._last = frames
            self._allowed = self._workspace.reaching(point)
        outside = self._allowed.outside(point, SLACK)
        if outside is not None:
            return f'the tool point leaves the workspace: {outside}'
        if min(self._bounds) < math.inf and (rejection := self._too_fast(frames, self._last, dt)) is not None:
            return rejection
        self._last = frames
        if not moving:
            self._bounds, self._allowed = self._limits, self._workspace.reaching(point)
        return None

    def _too_fast(self, frames: Array, last: Array, dt: float) -> str | None:
        """Return why the tool must not move from the last frames to these in dt [s], else None."""
        step = float(np.linalg.norm(frames[-3] - last[-3]))
        # Two frames that differ by a turn by t differ by 2 sqrt(2) sin(t / 2) in all axes together.
        chord = float(np.linalg.norm(_axes(frames) - _axes(last)))
        turn = 2.0 * math.asin(min(1.0, chord / math.sqrt(8.0)))
        for what, unit, value, limit in (
            ('speed', 'm/s', step, self._bounds[0]),
            ('turn rate', 'rad/s', turn, self._bounds[1]),
        ):
            if value > limit * dt + ROUNDING:
                rate = value / dt if dt > 0.0 else math.inf
                return f'tool {what} {rate:.6g} {unit}, allowed: {limit:.6g}'
        return None

    def reject_ahead(self, positions: Array, velocities: Array) -> tuple[int, str] | None:
        """Return which of the setpoints (k, n) of a trajectory is rejected, and why."""
        motion = tool_motion(self.arm, positions, velocities)
        allowed = self._allowed if self._last is not None else self._workspace.reaching(motion.point[0])
        outside = (motion.point < allowed.low - SLACK) | (motion.point > allowed.high + SLACK)
        limits = ('speed', 'm/s', motion.speed, 0), ('turn rate', 'rad/s', motion.turn_rate, 1)
        beyond = [values > self._bounds[i] * (1.0 + ROUNDING) + ROUNDING for _, _, values, i in limits]
        rejected = outside.any(axis=1) | beyond[0] | beyond[1]
        if not rejected.any():
            return None
        k = int(rejected.argmax())
        for (what, unit, values, i), over in zip(limits, beyond, strict=True):
            if over[k]:
                return k, f'tool {what} {values[k]:.6g} {unit}, allowed: {self._bounds[i]:.6g}'
        return k, f'the tool point leaves the workspace: {allowed.outside(motion.point[k], SLACK)}'


def _axes(frames: Array) -> Array:
    """Return the axes (3, 3) of the tip in frames of the arm."""
    return np.vstack([frames[-2:], np.cross(frames[-2], frames[-1])])
