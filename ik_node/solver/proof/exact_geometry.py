# SPDX-License-Identifier: Apache-2.0
"""The axes of an arm as fractions, exactly as given, and special geometry that it nearly has."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from ik_node.checks import Array
from ik_node.kernels.arrays.layout import AXIS, OFFSET, PRISMATIC
from ik_node.model.arm import Arm
from ik_node.solver.closed_form import meeting_point, slant

NEAR = 1e-7  # rad, or share of the reach: geometry that misses a special one by less is nearly special
ROUNDING = 1e-15  # more than that of a unit vector
MARGIN = 1.01  # more than the rounding of the sums that bound how far two geometries differ

Vector = tuple[Fraction, Fraction, Fraction]
Line = tuple[Vector, Vector]  # a point and a direction of any length


@dataclass(frozen=True, eq=False)
class ExactGeometry:
    """The axes of the joints at the zero pose, which of them slide, and tool point and tool axis."""

    axes: tuple[Line, ...]
    slides: tuple[bool, ...]
    tool: Line


@dataclass(frozen=True, eq=False)
class Nearby:
    """Special geometry, and by how much its tool differs at most for the same joints within the limits.

    point [m], axis: length of the difference of two unit vectors.
    """

    geometry: ExactGeometry
    point: float
    axis: float


def geometry_of(arm: Arm) -> ExactGeometry:
    """Return the geometry of an arm without mimic joints."""
    place, lines = exact(np.zeros(3)), []
    for row in arm.joints:
        place = added(place, exact(row[OFFSET]))
        lines.append((place, exact(row[AXIS])))
    slides = tuple(bool(row[PRISMATIC]) for row in arm.joints)
    return ExactGeometry(tuple(lines), slides, (added(place, exact(arm.tool[:3])), exact(arm.tool[3:6])))


def special_nearby(arm: Arm, geometry: ExactGeometry) -> Nearby | None:
    """Return the special geometry nearest to one of five joints that is not special, None if none is near."""
    found = []
    for first in range(3):
        part = slice(first, first + 3)
        if not any(geometry.slides[part]):
            found += [_parallel(geometry, part), _meeting(geometry, part)]
    if not any(geometry.slides[3:]):
        found.append(_wrist(geometry))
    nearby = [_compared(arm, geometry, other) for other in found if other is not None]
    best = min(nearby, key=lambda other: other.point, default=None)
    return best if best is not None and 0.0 < best.point < NEAR * arm.reach else None


def _parallel(geometry: ExactGeometry, part: slice) -> ExactGeometry | None:
    """Return geometry with the axes of three hinges parallel to the middle one."""
    lines = geometry.axes[part]
    middle = lines[1][1]
    if max(slant(_floats(middle), _floats(axis)) for _, axis in lines) > NEAR:
        return None
    return _with(
        geometry, part, [(at, middle if dot(axis, middle) > 0 else minus(middle)) for at, axis in lines]
    )


def _meeting(geometry: ExactGeometry, part: slice) -> ExactGeometry | None:
    """Return geometry with the axes of three hinges through one point."""
    lines = geometry.axes[part]
    centre = _centre(lines)
    return None if centre is None else _with(geometry, part, [(exact(centre), axis) for _, axis in lines])


def _wrist(geometry: ExactGeometry) -> ExactGeometry | None:
    """Return geometry with axes 4 and 5 through one point of the line of the tool."""
    point, axis = geometry.tool
    centre = _centre((*geometry.axes[3:], geometry.tool))
    if centre is None:
        return None
    along = dot(subtracted(exact(centre), point), axis) / dot(axis, axis)
    place = point[0] + along * axis[0], point[1] + along * axis[1], point[2] + along * axis[2]
    return _with(geometry, slice(3, 5), [(place, axis) for _, axis in geometry.axes[3:]])


def _with(geometry: ExactGeometry, part: slice, lines: list[Line]) -> ExactGeometry:
    axes = list(geometry.axes)
    axes[part] = lines
    return replace(geometry, axes=tuple(axes))


def _centre(lines: tuple[Line, ...]) -> Array | None:
    """Return where three lines nearly meet, None if two neighbours are nearly parallel."""
    points, axes = (np.array([_floats(line[k]) for line in lines]) for k in range(2))
    if min(slant(axes[0], axes[1]), slant(axes[1], axes[2])) < NEAR:
        return None
    centre: Array = meeting_point(axes, points)[0]
    return centre


def _compared(arm: Arm, geometry: ExactGeometry, other: ExactGeometry) -> Nearby:
    """Return how far the tools of two geometries, of which other has slides as geometry, differ at most.

    Turns about unit axes v and w differ by at most 5 |v - w|, a joint carries the tool point at a distance of
    at most the length of the chain, and the joints before leave the length of what a joint differs by.
    """
    places = [*(line[0] for line in other.axes), other.tool[0]]
    length = sum(math.dist(_floats(a), _floats(b)) for a, b in itertools.pairwise(places))
    length += np.abs(arm.limits[:2, arm.prismatic]).max(axis=0).sum()
    point = axis = 0.0
    for (_, v), (place, w), line in zip(geometry.axes, other.axes, geometry.axes, strict=True):
        turn = 0.0 if v == w else float(np.linalg.norm(_floats(v) - _floats(w))) + ROUNDING
        gap = math.sqrt(_square_distance(place, line))
        point += 5.0 * turn * (length + gap) + 2.0 * gap
        axis += 5.0 * turn
    return Nearby(other, MARGIN * point, MARGIN * axis)


def _square_distance(place: Vector, line: Line) -> Fraction:
    normal = cross(subtracted(place, line[0]), line[1])
    return dot(normal, normal) / dot(line[1], line[1])


def _floats(vector: Vector) -> Array:
    return np.array([float(part) for part in vector])


def exact(values: ArrayLike) -> Vector:
    """Return three floats as fractions."""
    x, y, z = (Fraction(float(value)) for value in np.asarray(values))
    return x, y, z


def cross(a: Vector, b: Vector) -> Vector:
    """Return the cross product."""
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


def dot(a: Vector, b: Vector) -> Fraction:
    """Return the scalar product."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def added(a: Vector, b: Vector) -> Vector:
    """Return a + b."""
    return a[0] + b[0], a[1] + b[1], a[2] + b[2]


def subtracted(a: Vector, b: Vector) -> Vector:
    """Return a - b."""
    return a[0] - b[0], a[1] - b[1], a[2] - b[2]


def minus(a: Vector) -> Vector:
    """Return -a."""
    return -a[0], -a[1], -a[2]
