"""motion_ahead: the rest of a motion of several groups of joints, as one plan."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ik_node.checks import Array
from ik_node.control.outputs import Plan

if TYPE_CHECKING:
    from ruckig import Trajectory

    from ik_node.control.motion import JointMotion


def motion_ahead(groups: Sequence[tuple[tuple[str, ...], JointMotion]]) -> Plan:
    """Return the rest of the motion of all groups (names, motion)."""
    names = tuple(name for joints, _ in groups for name in joints)
    # Fixed now: the motion goes on while an output works on this plan.
    parts = [
        (motion.plan if motion.moving else None, motion.elapsed, motion.position) for _, motion in groups
    ]
    duration = max([0.0, *(plan.duration - elapsed for plan, elapsed, _ in parts if plan is not None)])
    braking = all(motion.braking or not motion.moving for _, motion in groups)

    def at(t: float) -> tuple[Array, Array]:
        positions, velocities = [], []
        for plan, elapsed, position in parts:
            if plan is None:
                state = position, np.zeros_like(position)
            else:
                state = plan.at_time(min(elapsed + t, plan.duration))[:2]
            positions.append(state[0])
            velocities.append(state[1])
        return np.concatenate(positions), np.concatenate(velocities)

    def knots() -> list[float]:
        times = {
            knot - elapsed for plan, elapsed, _ in parts if plan is not None for knot in plan_knots(plan)
        }
        return sorted(time for time in times if time > 0.0)

    return Plan(names, duration, at, knots, braking)


def plan_knots(plan: Trajectory) -> list[float]:
    """Return the times [s] at which the jerk of any joint changes, with the end of the plan."""
    times = [plan.duration]
    for profile in plan.profiles[0]:
        phases = (*profile.brake.t, *profile.t, *profile.accel.t)
        times.extend(np.cumsum(phases).tolist())
    return times
