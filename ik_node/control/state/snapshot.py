# SPDX-License-Identifier: Apache-2.0
"""Snapshot: the state of an arm at one time."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ik_node.checks import Array
from ik_node.control.robot.arm_model import ArmModel
from ik_node.control.state.states import ON_ITS_WAY, State


@dataclass(frozen=True, eq=False)
class Snapshot:
    """The state of an arm at one time: values (n,) of model.joints.variables, target (arm.n,).

    remaining: time left of the motion [s]. share: completed share of the motion to the goal, 1 after the
    arrival, NaN without a goal. measured_age: of the oldest measurement of a joint of the arm [s], infinite
    if there is none, NaN if none is expected. moving_target: joints (arm.n,) for where
    the goal that the arm follows is now, None if it follows none. interruptions: how often it was stopped,
    deactivated or faulted, began to accept commands, and was begun or ended to be guided by hand. goals: how
    many goals moved its joints.
    """

    model: ArmModel
    state: State
    values: Array
    target: Array
    remaining: float
    share: float
    measured_age: float
    moving_target: Array | None = None
    interruptions: int = 0
    goals: int = 0

    @property
    def position(self) -> Array:
        """Commanded positions (arm.n,) of the joints of the arm."""
        return self.values[self.model.index]

    @property
    def behind(self) -> float:
        """Distance of the tool from the moving goal that it follows [m]; NaN without one."""
        if self.moving_target is None:
            return math.nan
        arm = self.model.arm
        return float(np.linalg.norm(arm.fk(self.moving_target)[0] - arm.fk(self.position)[0]))

    @property
    def margin(self) -> tuple[float, str]:
        """The least distance of a joint of the arm from a position limit [rad or m], and which joint."""
        arm = self.model.arm
        margins = np.minimum(self.position - arm.lower, arm.upper - self.position)
        joint = int(margins.argmin())
        return float(margins[joint]), arm.joint_names[joint]

    @property
    def moving(self) -> bool:
        """Whether the joints are moving."""
        return self.state in ON_ITS_WAY or self.state in (State.STOPPING, State.HAND_GUIDED)
