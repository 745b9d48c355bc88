# SPDX-License-Identifier: Apache-2.0
"""Tracks: closed curves along which goals move, where to put one in the workspace, and its parameters."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ik_node.checks import Array, unit_vector
from ik_node.errors import InputError
from ik_node.settings import check, parameter
from ik_node.solver.goal import Goal
from ik_node.solver.solver import IkSolver
from ik_node.solver.spare_roll import spare_roll

SPIRAL_TURNS = 6  # per lap; even, so that the second half lap does not retrace the first
ROUNDED = 0.1  # share of a line for accelerating, and the same share for decelerating
POINTS = 4096  # of the arc length table, per lap


def _circle(u: ArrayLike) -> tuple[Array, Array]:
    return np.cos(u), np.sin(u)


def _figure_eight(u: ArrayLike) -> tuple[Array, Array]:
    """Gerono's lemniscate."""
    return np.sin(u), np.sin(u) * np.cos(u)


def _spiral(u: ArrayLike) -> tuple[Array, Array]:
    """Outwards and back in, through the centre without a corner: a rose r = sin(angle / turns)."""
    angle = SPIRAL_TURNS * np.asarray(u)
    return np.sin(u) * np.cos(angle), np.sin(u) * np.sin(angle)


CURVES: dict[str, Callable[[ArrayLike], tuple[Array, Array]]] = {
    'circle': _circle,
    'figure_eight': _figure_eight,
    'spiral': _spiral,
}
TRACKS = (*CURVES, 'line')


def plane_axes(direction: ArrayLike) -> tuple[Array, Array]:
    """Return unit axes x, y, each (3,), so that x, y and the unit direction (3,) are a right-handed frame.

    x is as close to the base link's x as possible (its y if direction is along x).
    """
    normal = unit_vector('direction', direction)
    near = np.array([1.0, 0.0, 0.0]) if abs(normal[0]) < 0.9 else np.array([0.0, 1.0, 0.0])
    x = near - (near @ normal) * normal
    x /= np.linalg.norm(x)
    y: Array = np.asarray(np.cross(normal, x), np.float64)  # NumPy 2.2 is vague about the type
    return x, y


def tip_pose(
    position: ArrayLike,
    direction: ArrayLike,
    tool_axis: ArrayLike,
    tool_point: ArrayLike,
    roll: float = 0.0,
) -> Array:
    """Return the pose T (4, 4) of the tip that puts tool_point at position and tool_axis along direction.

    direction and tool_axis are unit, all (3,). roll [rad]: about direction; 0 takes plane_axes to plane_axes.
    """
    axis, own = unit_vector('direction', direction), unit_vector('tool_axis', tool_axis)
    x, y = plane_axes(axis)
    turned = np.cos(roll) * x + np.sin(roll) * y, np.cos(roll) * y - np.sin(roll) * x
    T = np.eye(4)
    T[:3, :3] = np.column_stack((*turned, axis)) @ np.vstack((*plane_axes(own), own))
    T[:3, 3] = np.asarray(position) - T[:3, :3] @ np.asarray(tool_point)
    return T


def _along_line(lap: float) -> float:
    """Return the position from -1 to 1 after a share of a lap, 0 to 1: there and back, smooth at the ends."""
    way = 2.0 * min(lap, 1.0 - lap)
    top = 2.0 / (1.0 - ROUNDED)
    if way < ROUNDED:
        return -1.0 + top * way * way / (2.0 * ROUNDED)
    if way > 1.0 - ROUNDED:
        return 1.0 - top * (1.0 - way) ** 2 / (2.0 * ROUNDED)
    return -1.0 + top * (way - ROUNDED / 2.0)


class Track:
    """A curve around centre (3,) [m], in the plane normal to direction (3,), at speed [m/s].

    name: one of TRACKS. size [m]: the radius, or half the length of a line or an eight. The speed is
    constant, except near the ends of a line, where it reverses smoothly. lap [s] is the time for one lap.
    Raises InputError for an unknown name, or numbers that are not finite or not greater than 0.
    """

    def __init__(
        self, name: str, centre: Sequence[float], size: float, speed: float, direction: Sequence[float]
    ) -> None:
        if name not in TRACKS:
            raise InputError(f'track must be one of {", ".join(TRACKS)}, got {name!r}')
        self._centre = np.array(centre, dtype=np.float64)
        if self._centre.shape != (3,) or not np.isfinite(self._centre).all():
            raise InputError(f'centre must be three finite numbers, got {centre!r}')
        for what, value in (('size', size), ('speed', speed)):
            if not (np.isfinite(value) and value > 0.0):
                raise InputError(f'{what} must be finite and greater than 0, got {value!r}')
        self._size = size
        self._x, self._y = plane_axes(direction)
        self._curve = CURVES.get(name)
        if self._curve is None:
            length = 4.0 / (1.0 - ROUNDED)
        else:
            self._u = np.linspace(0.0, 2.0 * np.pi, POINTS + 1)
            steps = np.hypot(*np.diff(self._curve(self._u), axis=1))
            self._arc = np.concatenate(([0.0], np.cumsum(steps)))
            length = float(self._arc[-1])
            self._arc /= length
        self.lap = length * size / speed

    def position(self, time: float) -> Array:
        """Return the position (3,) [m] at time [s], periodic in lap."""
        share = (time / self.lap) % 1.0
        if self._curve is None:
            x, y = _along_line(share), 0.0
        else:
            x, y = map(float, self._curve(np.interp(share, self._arc, self._u)))
        return self._centre + self._size * (x * self._x + y * self._y)


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
    best, best_margin = 0.0, -math.inf
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
        if step < np.pi and margin > best_margin:
            best, best_margin = roll, margin
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


NO_TRACK = 'none'  # the goal is at rest


@dataclass(frozen=True)
class TrackSettings:
    """The parameters of ik_goals."""

    track: str = parameter('circle', 'curve along which the goal moves', choices=(NO_TRACK, *TRACKS))
    centre: tuple[float, ...] = parameter((0.4, 0.0, 0.2), 'centre of the track in frame [m]', size=3)
    size: float = parameter(0.08, 'radius, or half the length of a line or an eight [m]', low=1e-4, high=100.0)
    speed: float = parameter(0.1, 'speed of the goal along the track [m/s]', low=1e-4, high=100.0)
    direction: tuple[float, ...] = parameter(
        (0.0, 0.0, -1.0), 'direction in which the tool points, at right angles to the plane of the track', size=3
    )
    roll: float = parameter(
        0.0, 'roll of the tool about its axis along the track [rad]', low=-2.0 * math.pi, high=2.0 * math.pi
    )
    frame: str = parameter('base_link', 'frame of centre and direction')
    tool_axis: tuple[float, ...] = parameter(
        (0.0, 0.0, 1.0),
        'direction in which the tool points, in the frame of the tip link, as in ik_node',
        size=3,
        axis=True,
    )
    tool_point: tuple[float, ...] = parameter((0.0, 0.0, 0.0), 'tool point in the tip frame [m], as in ik_node', size=3)
    goal_rate: float = parameter(50.0, 'goals per second [Hz]', low=0.1, high=1000.0)

    def __post_init__(self) -> None:
        check(self)
        unit_vector('parameter direction', self.direction)
        unit_vector('parameter tool_axis', self.tool_axis)
        if not self.frame:
            raise InputError('parameter frame must be the name of a frame, got an empty string')
