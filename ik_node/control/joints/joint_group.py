# SPDX-License-Identifier: Apache-2.0
"""JointGroup: joints that are commanded together; the gate checks each setpoint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ik_node.checks import Array
from ik_node.control.checks.joint_gate import PLANNED, Gate
from ik_node.control.motion.motion import JointMotion
from ik_node.control.motion.motion_state import MotionState
from ik_node.control.robot.arm_model import Columns
from ik_node.control.robot.motion_limits import MotionLimits
from ik_node.control.state.target_plan import filled

THERE = 1e-6  # [rad or m, per second]: a motion at rest equals the state of its controller


class JointGroup:
    """Variables that move together: the arm, or a single other joint such as a gripper finger.

    gate: checks their setpoints.
    """

    def __init__(
        self,
        names: tuple[str, ...],
        index: Columns,
        limits: MotionLimits,
        positions: Array,
        blocks: Sequence[Columns] | None = None,
    ) -> None:
        """index: of the joints among the variables of the robot. blocks: see JointMotion."""
        self.names, self.index = names, index
        self.motion = JointMotion(limits.lower, limits.upper, positions, blocks)
        self.gate = Gate(names, limits.lower, limits.upper)
        self._later: Array | None = None  # the target of joints that wait
        self.limit(limits)

    @property
    def target(self) -> Array:
        """Target of the joints (n,), also while they wait; their position if they have none."""
        return self.motion.target if self._later is None else self._later

    def limit(self, limits: MotionLimits, share: float = 1.0) -> None:
        """Use these limits from now on, with a share of their velocity."""
        self.motion.set_limits(share * limits.velocity, PLANNED * limits.acceleration, limits.jerk)
        self.gate.set_limits(share * limits.velocity, limits.acceleration, limits.jerk)

    def reset(self, positions: Array) -> None:
        """Initialise the joints at rest at positions (n,); NaN: a joint keeps its own."""
        self._later = None
        self.motion.reset(filled(positions, self.motion.position))
        self.gate.restart()

    def go_to(self, targets: Array) -> None:
        """Move to targets (n,); NaN: a joint keeps its own."""
        target = filled(targets, self.target)
        if self._later is None:
            self.motion.go_to(target)
        else:
            self._later = target

    def stop(self) -> None:
        """Stop as soon as the limits allow, and drop the target."""
        self._later = None
        self.motion.stop()

    def wait(self) -> None:
        """Stop as soon as the limits allow, and keep the target, if there is one, for later."""
        if not self.motion.braking:
            self._later = self.motion.target.copy()
            self.motion.stop()

    def go_on(self) -> None:
        """Resume the motion to the target, if there is one."""
        if self._later is not None:
            self.motion.go_to(self._later)
            self._later = None

    def preview(self, targets: Array) -> JointMotion:
        """Return a copy of the motion that goes to targets (n,); NaN: a joint keeps its own."""
        motion = self.motion.twin()
        motion.go_to(filled(targets, self.target))
        return motion

    def step(self, dt: float, caught_up: float = 0.0) -> str | None:
        """Advance by dt [s]; return why the new setpoint must not be published, else None.

        caught_up: time [s] before dt during which the plan advanced without setpoints.
        """
        if caught_up > 0.0:
            self.motion.carry_on(caught_up)
        position, velocity = self.motion.step(dt)
        return self.gate.reject(position, velocity, dt + caught_up)

    def go_on_from(self, states: Mapping[str, tuple[float, float, float]]) -> bool:
        """Continue from position, velocity and acceleration by joint name; return whether the motion can."""
        state = MotionState(*np.transpose([states[name] for name in self.names]))
        if not self.motion.moving and np.abs(np.subtract(state, self.motion.state)).max() < THERE:
            return True
        if not self.motion.go_on_from(state):
            return False
        self.gate.go_on_from(*self.motion.state)
        return True
