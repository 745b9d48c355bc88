# SPDX-License-Identifier: Apache-2.0
"""motion_ahead: the rest of a motion of several groups of joints, as one plan."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ik_node.checks import Array
from ik_node.control.motion.pursuit import advanced
from ik_node.control.motion.trajectory import Trajectory as TimedPath

if TYPE_CHECKING:
    from ik_node.control.motion.motion import JointMotion
    from ik_node.control.motion.plans import JointPlan

PATH_STEP = 0.01  # [s] between the knots of a path
COAST = 0.15  # [s] for which a controller continues a moving target without a newer trajectory
States = tuple[Array, Array, Array]  # positions, velocities and accelerations


@dataclass(frozen=True, eq=False)
class Plan:
    """The rest of a motion, from the last setpoint to rest.

    at(t) gives positions, velocities and accelerations (n,) of the named joints t [s] after that setpoint;
    from duration on they are at rest. knots: times between which every joint moves by a quintic. limits (3,
    n): of velocity, acceleration and jerk. braking: the motion only ends an earlier one.
    """

    names: tuple[str, ...]
    duration: float
    at: Callable[[float], States]
    knots: Callable[[], Sequence[float]]
    limits: Array
    braking: bool = False


class Part(NamedTuple):
    """The rest of the motion of one group: at and knots as in Plan."""

    duration: float
    at: Callable[[float], States]
    knots: Callable[[], list[float]]


def motion_ahead(groups: Sequence[tuple[tuple[str, ...], JointMotion]]) -> Plan:
    """Return the rest of the motion of all groups (names, motion)."""
    names = tuple(name for joints, _ in groups for name in joints)
    parts = [_part(motion) for _, motion in groups]

    def at(t: float) -> States:
        position, velocity, acceleration = zip(*(part.at(t) for part in parts), strict=True)
        return np.concatenate(position), np.concatenate(velocity), np.concatenate(acceleration)

    def knots() -> list[float]:
        return sorted({knot for part in parts for knot in part.knots() if knot > 0.0})

    braking = all(motion.braking or not motion.moving for _, motion in groups)
    limits = np.concatenate([motion.limits for _, motion in groups], axis=1)
    return Plan(names, max(part.duration for part in parts), at, knots, limits, braking)


def _part(motion: JointMotion) -> Part:
    plan, elapsed, position = motion.plan, motion.elapsed, motion.position
    if plan is None or not motion.moving:
        rest = np.zeros_like(position)
        return Part(0.0, lambda _: (position, rest, rest), list)
    coasting = motion.coasting(COAST)
    if coasting is None:
        return part_of(plan, -elapsed)
    now, jerk, stop = coasting
    after = part_of(stop, COAST)

    def at(t: float) -> States:
        if t >= COAST:
            return after.at(t)
        return advanced(now, jerk, t)

    return Part(after.duration, at, lambda: [COAST, *after.knots()])


def part_of(plan: JointPlan | TimedPath, begin: float) -> Part:
    """Return the part that follows a plan whose beginning is at time begin [s]."""

    def at(t: float) -> States:
        position, velocity, acceleration = plan.at_time(min(t - begin, plan.duration))
        return position, velocity, acceleration

    def knots() -> list[float]:
        return [knot + begin for knot in sorted(plan_knots(plan))]

    return Part(max(plan.duration + begin, 0.0), at, knots)


def plan_knots(plan: JointPlan | TimedPath) -> list[float]:
    """Return the times [s] at which the jerk of any joint changes, with the end of the plan.

    The jerk along a path changes continuously: its knots are dense enough for quintics between them.
    """
    times = [plan.duration]
    if isinstance(plan, TimedPath):
        return [*np.arange(0.0, plan.duration, PATH_STEP).tolist(), *times]
    for profile in plan.profiles:
        phases = (*profile.brake.t, *profile.t, *profile.accel.t)
        times.extend(np.cumsum(phases).tolist())
    return times
