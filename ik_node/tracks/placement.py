# SPDX-License-Identifier: Apache-2.0
"""place_track: finds a position at which an arm can follow a track without a break."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np

from ik_node.checks import Array
from ik_node.solver.goal import Goal
from ik_node.solver.redundancy.spare_roll import spare_roll
from ik_node.solver.solver import IkSolver
from ik_node.tracks.curves import Track, tip_pose

SPACING = 0.2  # between points that are tried, in sizes of the track
LARGEST_STEP = 0.6  # [rad or m] between two of them: a larger one is a change of branch
# Shares of the reach, and bearings [rad], the likeliest first.
SIZES = (0.1, 0.05, 0.025)
DISTANCES = (0.5, 0.4, 0.6, 0.7, 0.3)
HEIGHTS = (0.1, 0.0, 0.25, -0.15, 0.4)
BEARINGS = (0.0, np.pi / 2, -np.pi / 2, np.pi)
ROLLS = (0.0, np.pi, np.pi / 2, -np.pi / 2, np.pi / 4, -np.pi / 4, 3 * np.pi / 4, -3 * np.pi / 4)
DIRECTIONS = ((0.0, 0.0, -1.0), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))


@dataclass(frozen=True, eq=False)
class Place:
    """Centre (3,) [m] and size [m] of a track, and the direction (3,) of the tool, normal to its plane."""

    centre: tuple[float, ...]
    size: float
    direction: tuple[float, ...]


def can_follow(solver: IkSolver, name: str, place: Place) -> bool:
    """Whether all points of the track of that name are solved, each near the one before."""
    track = Track(name, place.centre, place.size, 1.0, place.direction)
    q: Array | None = None
    for time in np.linspace(0.0, track.lap, math.ceil(track.lap / (SPACING * place.size))):
        solution = solver.solve(Goal(track.position(time), place.direction), q)
        if not solution.solved or (q is not None and np.abs(solution.q - q).max() > LARGEST_STEP):
            return False
        q = solution.q
    return True


def place_roll(solver: IkSolver, name: str, place: Place) -> float:
    """Return the roll [rad] of tip_pose along a track with which no joint has to unwind.

    Of ROLLS that with which a joint that only rolls the tool stays farthest from its limits; 0 without one.
    """
    arm = solver.arm
    joint = spare_roll(arm)
    if joint < 0:
        return 0.0
    track = Track(name, place.centre, place.size, 1.0, place.direction)
    times = np.linspace(0.0, track.lap, math.ceil(track.lap / (SPACING * place.size)))
    best, most = 0.0, -math.inf
    for roll in ROLLS:
        q: Array | None = None
        margin, step = math.inf, 0.0
        for time in times:
            T = tip_pose(track.position(time), place.direction, arm.tool_axis, arm.tool_point, roll)
            goal = Goal(track.position(time), place.direction, T[:3, :3] @ arm.tool_lateral)
            found = solver.solve(goal, q).q
            step = max(step, 0.0 if q is None else abs(float(found[joint] - q[joint])))
            margin = min(margin, float(min(found[joint] - arm.lower[joint], arm.upper[joint] - found[joint])))
            q = found
        if step < np.pi and margin > most:
            best, most = roll, margin
    return best


def place_track(solver: IkSolver, name: str) -> Place | None:
    """Return a position at which the arm can follow a track with a fixed tool direction, or None.

    Tools that point down are tried first. Use a solver with few restarts: it is fast, and positions that
    need many restarts do not suit a track.
    """
    first, reach = solver.arm.joints[0, 3:6], solver.arm.reach
    for direction, size, bearing, height, distance in itertools.product(
        DIRECTIONS, SIZES, BEARINGS, HEIGHTS, DISTANCES
    ):
        away = reach * np.array([distance * np.cos(bearing), distance * np.sin(bearing), height])
        place = Place(tuple((first + away).tolist()), size * reach, direction)
        if can_follow(solver, name, place):
            return place
    return None
