# SPDX-License-Identifier: Apache-2.0
"""Straight lines: from a tool path and the joints at its start to a timed motion of the joints."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from ik_node.checks import Array, positive
from ik_node.control.motion.tool_pace import SHARE, ToolPace
from ik_node.control.motion.trajectory import Trajectory
from ik_node.control.paths.joint_path import JointPath, PathEndsError
from ik_node.control.paths.path_timing import Bounds, timed
from ik_node.control.paths.tool_path import ToolPath
from ik_node.control.robot.arm_model import ArmModel
from ik_node.control.robot.motion_limits import limits_of_motion
from ik_node.control.settings.arm import ArmSettings
from ik_node.errors import InputError, safe_repr
from ik_node.solver.solver import IkSolver

BACK = 1e-3  # share of a segment that is left before the end of its branch
STEP = 0.005  # [s] between two checks of the tool speed
SHORTEST = 1e-3  # share of a segment: a shorter part is not executed


@dataclass(frozen=True, eq=False)
class LineMotion:
    """A motion along a tool path; trajectory is None if there is nothing to move.

    length [m]: of the whole path. reached [m]: how far the motion goes. reason: why it ends there, or ''.
    """

    trajectory: Trajectory | None
    length: float
    reached: float
    reason: str = ''


def plan_lines(
    solver: IkSolver,
    tool_path: ToolPath,
    start: ArrayLike,
    bounds: Bounds,
    blend: float | None = None,
    partial: bool = False,
) -> LineMotion:
    """Plan the fastest motion along tool_path from joints start (n,), which keeps to it within ACCURACY.

    blend [m]: how near a corner the tool may leave the lines; None: it stops at each corner. partial: return
    the motion up to the point where the path cannot be followed any further. Otherwise that raises
    InputError, with the point and the reason. Raises InputError for other arguments, too.
    """
    for name, given, kind in (
        ('solver', solver, IkSolver),
        ('tool_path', tool_path, ToolPath),
        ('bounds', bounds, Bounds),
        ('partial', partial, (bool, np.bool_)),
    ):
        if not isinstance(given, kind):
            raise InputError(f'{name} is not of the right type: {safe_repr(given)}')
    arm = solver.arm
    q = arm.checked(start, 'start')
    if not len(bounds.velocity) == len(bounds.acceleration) == len(bounds.jerk) == arm.n:
        raise InputError(f'bounds must have limits for each of the {arm.n} joints of the arm')
    if blend is not None:
        blend = positive('blend', blend)
    outside = np.flatnonzero((q < arm.lower) | (q > arm.upper))
    if len(outside):
        raise InputError(f'joint "{arm.joint_names[outside[0]]}" is outside its limits')
    stretches = tool_path.stretches(*arm.fk(q), blend)
    length = sum(stretch.length for stretch in stretches)
    before, whole = 0.0, None
    for number, stretch in enumerate(stretches):
        reason, end = '', 1.0
        try:
            joints = JointPath(solver, stretch, q)
        except PathEndsError as error:
            reason, end = str(error), error.s - BACK
            reached = before + stretch.travelled(error.s)
            where = f'after {reached:.4g} m of {length:.4g} m'
            if len(stretches) > 1:
                where += f', on line {number + 1}'
            elif stretch.length < 1e-9:
                where = f'after {100.0 * error.s:.3g} % of the turn'
            reason = f'{where}: {reason}'
            if not partial:
                raise InputError(reason) from None
            if end < SHORTEST:
                return LineMotion(whole, length, before, reason)
            joints = JointPath(solver, stretch, q, end)
        motion = timed(joints, joints.sites / end, bounds)
        whole = motion if whole is None else whole.followed_by(motion)
        before += stretch.travelled(end)
        q = motion.positions[-1]
        if reason:
            return LineMotion(whole, length, before, reason)
    return LineMotion(whole, length, before)


def plan_path(model: ArmModel, path: ToolPath, start: Array, settings: ArmSettings) -> LineMotion:
    """Plan a motion of the arm from start (n,) along path by the settings; see plan_lines."""
    limits = limits_of_motion(model, model.index, settings)
    speed = settings.path_speed or np.inf
    motion = plan_lines(
        model.solver,
        ToolPath(path.points) if settings.path_direction == 'free' else path,
        start,
        Bounds(limits.velocity, limits.acceleration, limits.jerk, speed),
        settings.path_blend if settings.path_corners == 'blend' else None,
        settings.path_partial,
    )
    return _paced(motion, ToolPace([(model.arm, np.arange(model.arm.n))], *settings.tool_rates()))


def _paced(motion: LineMotion, pace: ToolPace) -> LineMotion:
    """Return motion, slowed down until it keeps the limits of the tool."""
    trajectory = motion.trajectory
    if trajectory is None or not pace.limited:
        return motion
    times = np.linspace(0.0, trajectory.duration, max(2, int(trajectory.duration / STEP)))
    position, velocity, *_ = trajectory.sampled(times)
    excess = pace.excess(position, velocity) / SHARE
    return replace(motion, trajectory=trajectory.slowed(excess)) if excess > 1.0 else motion
