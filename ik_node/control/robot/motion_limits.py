# SPDX-License-Identifier: Apache-2.0
"""limits_of_motion: what the description and the settings, speed_scaling among them, allow joints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ik_node.checks import Array
from ik_node.control.motion.tool_pace import ROLL_SHARE
from ik_node.control.robot.arm_model import JointModel
from ik_node.control.settings.arm import ArmSettings


@dataclass(frozen=True, eq=False)
class MotionLimits:
    """Position [rad or m], velocity, acceleration and jerk limits of some joints, each (k,)."""

    lower: Array
    upper: Array
    velocity: Array
    acceleration: Array
    jerk: Array


def limits_of_motion(
    model: JointModel, index: Sequence[int] | NDArray[np.int64], settings: ArmSettings
) -> MotionLimits:
    """Return the limits of the variables of a model at index (k)."""
    joints = model.joints
    velocity = settings.speed_scaling * joints.velocity[index]
    rolls = np.isin(index, model.index[model.rolls])
    velocity[rolls] = np.minimum(velocity[rolls], ROLL_SHARE * settings.tool_rates()[1])
    of_settings = (
        (settings.max_acceleration, settings.max_linear_acceleration),
        (settings.max_jerk, settings.max_linear_jerk),
    )
    acceleration, jerk = (
        np.where(np.isfinite(own), own, np.where(joints.prismatic[index], linear, revolute))
        for own, (revolute, linear) in zip(model.rates[index].T, of_settings, strict=True)
    )
    return MotionLimits(joints.lower[index], joints.upper[index], velocity, acceleration, jerk)
