# SPDX-License-Identifier: Apache-2.0
"""Halt: the motion that ends another one at given positions, within all limits."""

from __future__ import annotations

import numpy as np
from ruckig import ControlInterface, InputParameter, Ruckig, Synchronization

from ik_node.checks import Array
from ik_node.control.motion.motion_ahead import Part, part_of
from ik_node.control.motion.motion_state import MotionState
from ik_node.control.motion.plans import BlockPlan, JointPlan
from ik_node.control.motion.pursuit import admissible, calculated


def halt(state: MotionState, stops: Array, limits: Array) -> Part | None:
    """Return the motion from a state of joints (n,) to rest at stops (n,), NaN: as soon as possible.

    limits: of velocity, acceleration and jerk (3, n). Each joint moves as fast as it can, so none
    passes the stop that the plan was checked for. None if there is no such motion.
    """
    fastest, hardest, jerkiest = limits
    start = admissible(state, (fastest, hardest, jerkiest))
    anywhere = np.isnan(stops)
    request = InputParameter(stops.size)
    request.current_position, request.current_velocity, request.current_acceleration = (
        row.tolist() for row in start
    )
    request.max_velocity, request.max_acceleration, request.max_jerk = limits.tolist()
    request.target_position = np.where(anywhere, start.position, stops).tolist()
    request.per_dof_control_interface = [
        ControlInterface.Velocity if free else ControlInterface.Position for free in anywhere
    ]
    request.synchronization = Synchronization.No
    plan = calculated(Ruckig(stops.size), request)
    if plan is None:
        return None
    whole = BlockPlan.of(plan, np.zeros(stops.size))
    return part_of(JointPlan([np.arange(stops.size)], [whole]), 0.0)
