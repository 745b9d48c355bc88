# SPDX-License-Identifier: Apache-2.0
"""Tracks: closed curves along which a goal moves at constant speed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from ik_node.checks import Array, unit_vector
from ik_node.errors import InputError

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
    wanted, own = unit_vector('direction', direction), unit_vector('tool_axis', tool_axis)
    x, y = plane_axes(wanted)
    turned = np.cos(roll) * x + np.sin(roll) * y, np.cos(roll) * y - np.sin(roll) * x
    T = np.eye(4)
    T[:3, :3] = np.column_stack((*turned, wanted)) @ np.vstack((*plane_axes(own), own))
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
