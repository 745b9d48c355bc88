# SPDX-License-Identifier: Apache-2.0
"""All solutions of a goal proven by interval arithmetic: five joints, goals with a direction.

As many regular complex solutions as there can be at most, each enclosed, leave no room for another: near any
other, singular or of a family, goals nearby would have a regular one in addition to those enclosed, which
persist. The arm is that of its numbers in double precision, axes and direction brought to unit length
exactly; tolerances do not count.

The proof rests on FLINT, on the bounds and enclosures below and on prove(), not on the numerical search for
the solutions.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from threading import TIMEOUT_MAX, Lock
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ik_node import kernels
from ik_node.checks import Array
from ik_node.extras import load
from ik_node.kernels.arrays import AXIS, DIRECTION, LATERAL, OFFSET, PRISMATIC, ROOT_SLACK, SWITCHES
from ik_node.model.arm import Arm
from ik_node.model.rotations import hat
from ik_node.solver.closed_form import meeting_point, slant
from ik_node.solver.goal import Goal
from ik_node.steady import steady

from .elimination import TaskChain, chain_of

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
    return _with(geometry, part, [(at, middle if dot(axis, middle) > 0 else minus(middle)) for at, axis in lines])


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
    points = [*(line[0] for line in other.axes), other.tool[0]]
    length = sum(math.dist(_floats(a), _floats(b)) for a, b in itertools.pairwise(points))
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


GENERAL, SPECIAL = 16, 8


# How many solutions a goal with a direction can have, complex ones included.
#
# Five joints and the free roll are a chain of six hinges, whose loop has at most 16 isolated solutions
# (Primrose, On the input-output equation of the general 7R-mechanism, Mechanism and Machine Theory 21,
# 1986). Where three neighbouring joints move in a plane or meet in a point, or axes 4 and 5 meet the tool
# axis, four pairs of angles remain, and two ways for the others to each: 8 (docs/explanation/proofs.md).
#
# Those are the bounds of general arms of each kind. They hold for all others and for slides: regular
# solutions persist when the geometry is disturbed, and a slide is the limit of a hinge far away.


def most_solutions(geometry: ExactGeometry) -> int:
    """Return how many regular complex solutions a goal can have at most; five joints."""
    lines, slides = geometry.axes, geometry.slides
    axes = [axis for _, axis in lines]
    special = not any(slides[3:]) and _meet(lines[3], lines[4], geometry.tool)
    if special and sum(slides[:3]) == 1:
        first, second = (axis for axis, slide in zip(axes[:3], slides[:3], strict=True) if not slide)
        if not any(cross(first, second)):
            return SPECIAL // 2  # the height of the wrist point gives the slide, and a triangle follows
    for k in range(3):
        part = slice(k, k + 3)
        if _planar(axes[part], slides[part]):
            if any(slides[:k] + slides[k + 3 :]):
                return SPECIAL // 2  # the direction gives the other joint, twice, and the slide follows
            special = True
        elif not any(slides[part]):
            special = special or _meet(*lines[part])
    return SPECIAL if special else GENERAL


def _planar(axes: list[Vector], slides: tuple[bool, ...]) -> bool:
    """Whether three joints move in parallel planes: axes parallel, slides perpendicular to them."""
    hinges = [axis for axis, slide in zip(axes, slides, strict=True) if not slide]
    if not hinges:
        return False
    return all(
        dot(hinges[0], axis) == 0 if slide else not any(cross(hinges[0], axis))
        for axis, slide in zip(axes, slides, strict=True)
    )


def _meet(first: Line, second: Line, third: Line) -> bool:
    """Whether three lines meet in one point, the first two of them not parallel."""
    normal = cross(first[1], second[1])
    square = dot(normal, normal)
    if square == 0:
        return False
    share = dot(cross(subtracted(second[0], first[0]), second[1]), normal) / square
    x, y, z = (p + share * w for p, w in zip(*first, strict=True))
    return not any(any(cross(subtracted((x, y, z), line[0]), line[1])) for line in (second, third))


# All complex solutions of goals with a direction, by continuation. Numerical: Enclosing encloses them.
#
# Where an arm has as many joints as the task has degrees of freedom, its solutions move continuously with
# the goal, complex values allowed, unless the path of goals meets a singular one; a path from a random
# complex goal does not, with probability one. Closed paths of goals lead from one solution to all others
# (Sommese and Wampler, The Numerical Solution of Systems of Polynomials, 2005, chapters 7 and 15).

Complex = NDArray[np.complex128]

LOOPS = 80  # closed paths of goals
IDLE_LOOPS = 24  # in a row without a new solution: there are no others
WAYS = 3  # to each goal, until all solutions have arrived
SAME = 1e-6  # rad or share of the size: solutions nearer than that are one
FIRST_STEP, MIN_STEP = 0.05, 1e-9  # shares of a path
PREDICTED = 1e-3  # rad or share: a step whose prediction errs by more may have led to another solution
CORRECTED = 1e-5  # likewise, after a Newton step
FAR = 40.0  # rad: imaginary part of an angle that goes to infinity
MAX_STEPS = 1500


class OutOfTimeError(Exception):
    """A deadline has passed."""


def check_time(deadline: float) -> None:
    """Raise OutOfTimeError if steady() is beyond deadline."""
    if steady() > deadline:
        raise OutOfTimeError


class ComplexSolutions:
    """Finds all complex solutions of the goals of one arm with five joints."""

    def __init__(self, chain: TaskChain, max_count: int, deadline: float) -> None:
        """Find the solutions of a random complex goal, at most `most`. Raises OutOfTimeError."""
        self._chain = chain
        self._kinematics = _Kinematics(chain)
        rng = np.random.default_rng(0)
        q = rng.normal(size=(1, 5)) + 0.3j * rng.normal(size=(1, 5))
        reached = self._kinematics(q)[0][0]
        self._position, self._direction = reached[:, 0], reached[:, 1]
        sphere = _Sphere(np.array([0.0, 0.0, 1.0]))
        start, idle = self._start(sphere), 0
        for _ in range(LOOPS):
            check_time(deadline)
            around = [start, _random_goal(rng), _random_goal(rng), start]
            known = _distinct(np.concatenate([q, self._along(sphere, q, around)]), chain)
            idle = idle + 1 if len(known) == len(q) else 0
            q = known
            if len(q) >= max_count or idle == IDLE_LOOPS:
                break
        self._known = q

    @property
    def count(self) -> int:
        """The number of solutions of a generic goal."""
        return len(self._known)

    def of(self, position: Array, direction: Array, deadline: float) -> Complex:
        """Return the solutions (k, 5) [rad or m] of a goal: position (3,) [m], unit direction (3,).

        deadline: steady() at which it gives up. Raises OutOfTimeError.
        """
        chain, sphere = self._chain, _Sphere(direction)
        end = np.concatenate([(position - chain.origin) / chain.size, np.zeros(2)])
        found, rng = np.empty((0, 5), complex), np.random.default_rng(1)
        for k in range(WAYS):
            check_time(deadline)
            path = [self._start(sphere), *(_random_goal(rng) for _ in range(k)), end]
            found = _distinct(np.concatenate([found, self._along(sphere, self._known, path)]), chain)
            if len(found) >= self.count:
                break
        return found * np.where(chain.slides, chain.size, 1.0)

    def _start(self, sphere: _Sphere) -> Complex:
        return np.concatenate([self._position, sphere.angles(self._direction)])

    def _along(self, sphere: _Sphere, q: Complex, goals: list[Complex]) -> Complex:
        with np.errstate(all='ignore'):  # for paths that diverge
            for start, end in itertools.pairwise(goals):
                q = _followed(self._kinematics, sphere, q, start, end)
        return q


def _random_goal(rng: np.random.Generator) -> Complex:
    return rng.normal(size=5) + 1j * rng.normal(size=5)


class _Kinematics:
    """Forward kinematics of a chain at complex values, lengths as shares of its size."""

    def __init__(self, chain: TaskChain) -> None:
        self.slides = chain.slides
        joints = zip(chain.axes, chain.points, chain.slides, strict=True)
        parts = np.array([_motion_parts(*joint) for joint in joints])
        self._fixed, self._cosine, self._sine = parts[:, 0], parts[:, 1], parts[:, 2]
        self._tool = np.array([[*chain.point, 1.0], [*chain.axis, 0.0]]).T

    def __call__(self, q: Complex) -> tuple[Complex, Complex]:
        """Return tool points and axes (k, 3, 2) at q (k, n), and their derivatives (k, n, 3, 2)."""
        slides, n = self.slides, q.shape[1]
        c, s = np.where(slides, q, np.cos(q)), np.where(slides, 0.0, np.sin(q))
        motions = self._fixed + _times(c, self._cosine) + _times(s, self._sine)
        rates = _times(np.where(slides, 1.0, -s), self._cosine) + _times(np.where(slides, 0.0, c), self._sine)
        before, behind = np.empty_like(motions), np.empty((*q.shape, 4, 2), complex)
        before[:, 0], behind[:, n - 1] = np.eye(4), self._tool
        for k in range(n - 1):
            before[:, k + 1] = before[:, k] @ motions[:, k]
            behind[:, n - 2 - k] = motions[:, n - 1 - k] @ behind[:, n - 1 - k]
        return (motions[:, 0] @ behind[:, 0])[:, :3], (before @ rates @ behind)[:, :, :3]


def _times(factors: Complex, matrices: Array) -> Complex:
    product: Complex = factors[:, :, None, None] * matrices
    return product


def _motion_parts(axis: Array, point: Array, slides: bool) -> Array:
    """Return the matrices (3, 4, 4) whose sum, times 1, cos q, sin q or 1, t, 0, is a joint's motion."""
    parts = np.zeros((3, 4, 4))
    if slides:
        parts[0], parts[1, :3, 3] = np.eye(4), axis
        return parts
    k = hat(axis)
    parts[0, :3, :3], parts[1, :3, :3], parts[2, :3, :3] = np.eye(3) + k @ k, -k @ k, k
    parts[:, :3, 3] = -parts[:, :3, :3] @ point
    parts[0, :3, 3] += point
    parts[0, 3, 3] = 1.0
    return parts


class _Sphere:
    """Complex unit vectors by two angles: latitude and longitude, both 0 at a given real one."""

    def __init__(self, middle: Array) -> None:
        self._basis = np.linalg.svd(middle[None])[2]
        self._basis[0] = middle

    def angles(self, d: Complex) -> Complex:
        """Return the two angles of d (3,)."""
        x, y, z = self._basis @ d
        return np.array([np.arcsin(z), -1j * np.log((x + 1j * y) / np.sqrt(1.0 - z * z))])

    def at(self, angles: Complex) -> tuple[Complex, Complex, Complex]:
        """Return unit vectors (k, 3), their derivatives (k, 2, 3) and the squares (k, 2) of these."""
        (c, d), (s, t) = np.cos(angles).T, np.sin(angles).T
        unit = np.stack([c * d, c * t, s], 1)
        rates = np.stack([-s * d, -s * t, c, -c * t, c * d, np.zeros_like(c)], 1).reshape(-1, 2, 3)
        return unit @ self._basis, rates @ self._basis, np.stack([np.ones_like(c), c * c], 1)


def _followed(kinematics: _Kinematics, sphere: _Sphere, q: Complex, start: Complex, end: Complex) -> Complex:
    """Follow solutions q (k, n) of goal start to those of goal end; rows that diverge are omitted.

    Goals (5,): a position and two angles of sphere. Each row has steps of its own: predicted by Runge and
    Kutta's rule of order 4, corrected by two Newton steps.
    """
    change, q = end - start, q.copy()

    def newton_step(q: Complex, shares: Array) -> Complex:
        goals = start + shares[:, None] * change
        reached, rates = kinematics(q)
        unit, tangents, _ = sphere.at(goals[:, 3:])
        missing = np.einsum('kij,kj->ki', tangents, unit - reached[..., 1])
        return _solved(rates, tangents, np.concatenate([goals[:, :3] - reached[..., 0], missing], 1))

    def speed(q: Complex, shares: Array) -> Complex:
        _, tangents, squares = sphere.at(start[3:] + shares[:, None] * change[3:])
        moving = np.broadcast_to(change[:3], (len(q), 3))
        return _solved(kinematics(q)[1], tangents, np.concatenate([moving, squares * change[3:]], 1))

    done, steps = np.zeros(len(q)), np.full(len(q), FIRST_STEP)
    for _ in range(MAX_STEPS):
        rows = np.flatnonzero((done < 1.0) & (steps > MIN_STEP))
        if not len(rows):
            break
        at, before = q[rows], done[rows]
        step = np.minimum(steps[rows], 1.0 - before)
        h = step[:, None]
        first = speed(at, before)
        second = speed(at + h / 2 * first, before + step / 2)
        third = speed(at + h / 2 * second, before + step / 2)
        fourth = speed(at + h * third, before + step)
        at = at + h / 6 * (first + 2 * second + 2 * third + fourth)
        error = newton_step(at, before + step)
        at = at + error
        rest = newton_step(at, before + step)
        at = at + rest
        scale = np.where(kinematics.slides, 1.0 + np.abs(at), 1.0)  # some slides come from far away
        size = np.abs(error / scale).max(axis=1)
        good = (size < PREDICTED) & (np.abs(rest / scale).max(axis=1) < CORRECTED)
        good &= np.abs(at.imag / scale).max(axis=1) < FAR
        q[rows[good]] = at[good]
        done[rows[good]] = np.where(step < steps[rows], 1.0, before + step)[good]
        growth = np.where(size < PREDICTED / 30, 2.0, 1.2)  # errors grow by 2^5
        steps[rows] = np.where(good, growth, 0.25) * step
    return q[done >= 1.0]


def _solved(rates: Complex, tangents: Complex, right: Complex) -> Complex:
    """Return joint motions (k, n) that move point and axis as right (k, 5) says, the axis along tangents."""
    turning = np.einsum('knj,kij->kni', rates[..., 1], tangents)
    jacobian = np.concatenate([rates[..., 0], turning], 2).swapaxes(1, 2)
    try:
        motions: NDArray[Any] = np.linalg.solve(jacobian, right[..., None])[..., 0]
    except np.linalg.LinAlgError:
        motions = np.full_like(right, np.nan)
    return motions


def _distinct(rows: Complex, chain: TaskChain) -> Complex:
    """Return rows (k, n) without repetitions, whole turns left out."""
    kept: list[Complex] = []
    for row in rows:
        gaps = np.array(kept).reshape(-1, chain.n) - row
        turns = np.where(chain.slides, 0.0, 2 * np.pi * np.round(gaps.real / (2 * np.pi)))
        if not (np.abs(gaps - turns).max(axis=1) < SAME).any():
            kept.append(row)
    return np.array(kept).reshape(-1, chain.n)


# Solutions of a goal enclosed in discs by ball arithmetic: FLINT's acb, which rounds outwards.
#
# Krawczyk's operator with complex numbers: let C be an approximate inverse of the derivative f' at y, and
# rho < 1 a bound of the norm of 1 - C f'(x) for all x within r of y. Then the map x - C f(x) contracts by
# rho, and if |C f(y)| + rho r < r it takes that disc into itself: exactly one zero of f lies in it, within
# |C f(y)| / (1 - rho) of y, and f' is regular throughout (Krawczyk, Newton-Algorithmen zur Bestimmung von
# Nullstellen mit Fehlerschranken, Computing 4, 1969).

USER = 'a proof of all solutions'
PRECISION = 128  # bits
NEWTON_STEPS = 8
SMALL = 2.0**-100  # size of a Newton step at which the centre is accurate enough
DISC, DISCS = 2.0**-16, 8  # radius r that is tried first, and how many smaller ones near singular solutions
SMALLER = 2.0**-20  # the least share of the radius before


@dataclass(frozen=True, eq=False)
class Enclosure:
    """One complex solution: each joint within radius of its entry of centre (n exact acb) [rad or m].

    There is no other solution within alone of the centre.
    """

    centre: tuple[Any, ...]
    radius: float
    alone: float

    @property
    def middle(self) -> NDArray[np.complex128]:
        """The centre (n,), rounded."""
        return np.array([complex(value) for value in self.centre])

    def inside(self, other: Enclosure) -> bool:
        """Whether this solution is certain to be in the disc where other is unique."""
        gap = max(_up(abs(one - two)) for one, two in zip(self.centre, other.centre, strict=True))
        return gap + self.radius < 0.99 * other.alone

    @property
    def real(self) -> bool | None:
        """Whether the solution is real, None if that is not decided.

        The conjugate of a solution is one too, so it is the same one if it is in the same disc.
        """
        imaginary = max(_up(abs(value.imag)) for value in self.centre)
        if 2.0 * imaginary + self.radius < 0.5 * self.alone:
            return True
        return False if any(_down(abs(value.imag)) > self.radius for value in self.centre) else None


class Enclosing:
    """Encloses solutions of goals of an arm of exactly this geometry, its axes brought to unit length."""

    def __init__(self, geometry: ExactGeometry, point: float = 0.0, axis: float = 0.0) -> None:
        """For each goal and all whose position [m] and unit direction differ by no more than point and axis.

        Raises MissingError without python-flint.
        """
        self._flint = flint = load('flint', USER)
        self._slides, self._spread = geometry.slides, (point, axis)
        with flint.ctx.workprec(PRECISION):
            self._parts = [
                self._motion_parts(self._unit(self._balls(along)), self._balls(place), slides)
                for (place, along), slides in zip(geometry.axes, geometry.slides, strict=True)
            ]
            tool, forward = map(self._balls, geometry.tool)
            rows = [list(pair) for pair in zip(tool, self._unit(forward), strict=True)]
            self._tool = flint.acb_mat([*rows, [1, 0]])

    def __call__(self, goal: Array, start: Iterable[complex]) -> Enclosure | None:
        """Return the solution of goal (9,) near start (n), None if that fails, as at singular ones."""
        arb = self._flint.arb
        with self._flint.ctx.workprec(PRECISION):
            point, axis = (arb(0, spread) for spread in self._spread)
            direction = self._unit([arb(value) for value in goal[DIRECTION:LATERAL].tolist()])
            target = _Target(
                self._flint,
                [arb(value) + point for value in goal[:DIRECTION].tolist()],
                [value + axis for value in direction],
            )
            return self._enclosed(target, start)

    def distinct(self, solutions: list[Enclosure]) -> list[Enclosure]:
        """Return solutions of which no two can be the same, whole turns left out."""
        kept: list[Enclosure] = []
        with self._flint.ctx.workprec(PRECISION):
            for one in solutions:
                if all(self._gap(one.centre, other.centre) > 2.0 * (one.radius + other.radius) for other in kept):
                    kept.append(one)
        return kept

    def distance(self, q: Array, solutions: list[Enclosure]) -> float:
        """Return within which distance [rad or m] of each joint of q (n,) there is one of real solutions."""
        acb = self._flint.acb
        with self._flint.ctx.workprec(PRECISION):
            least = min(
                max(
                    _up(abs(self._difference(acb(value), centre, slides))) + one.radius
                    for value, centre, slides in zip(q.tolist(), one.centre, self._slides, strict=True)
                )
                for one in solutions
            )
        return math.nextafter(least, math.inf)

    def _gap(self, one: tuple[Any, ...], other: tuple[Any, ...]) -> float:
        """Return a distance that some joint of two configurations surely has."""
        differences = map(self._difference, one, other, self._slides)
        return max(_down(abs(difference)) for difference in differences)

    def _difference(self, one: Any, other: Any, slides: bool) -> Any:
        """Return one - other less whole turns."""
        turn = 2 * self._flint.arb.pi()
        return one - other - (0 if slides else turn * round(float((one - other).real / turn)))

    def _enclosed(self, target: _Target, start: Iterable[complex]) -> Enclosure | None:
        acb, acb_mat = self._flint.acb, self._flint.acb_mat
        y = [acb(value) for value in start]
        n = len(y)
        for _ in range(NEWTON_STEPS):
            try:
                inverse = target.rates(self._reached(y)[1]).mid().inv().mid()
            except ZeroDivisionError:
                return None
            step = inverse * target.residual(self._reached(y)[0]).mid()
            size = max(_up(abs(step[k, 0])) for k in range(n))
            if not size < 1.0:
                return None
            y = [(y[k] - step[k, 0]).mid() for k in range(n)]
            if size < SMALL:
                break
        step = inverse * target.residual(self._reached(y)[0])
        move = max(_up(abs(step[k, 0])) for k in range(n))
        one = acb_mat(n, n, [int(i == k) for i in range(n) for k in range(n)])
        r = max(DISC, 4.0 * move)
        for _ in range(DISCS):
            ball = self._flint.arb(0, r)
            reached, rates = self._reached([value + acb(ball, ball) for value in y])
            rest = one - inverse * target.rates(rates)
            rho = max(_up(sum(abs(rest[i, k]) for k in range(n))) for i in range(n))
            if rho < 0.5:
                fits = 2.0 * move < r and target.faces(reached)
                return Enclosure(tuple(y), 2.0 * move, r) if fits else None
            r *= max(0.4 / rho, SMALLER)
        return None

    def _reached(self, q: list[Any]) -> tuple[Any, list[Any]]:
        """Return tool point and axis (4, 2) at q and their derivatives, all acb_mat."""
        motions, turns = [], []
        for (fixed, cosine, sine), value, slides in zip(self._parts, q, self._slides, strict=True):
            if slides:
                motions.append(fixed + cosine * value)
                turns.append(cosine)
            else:
                s, c = value.sin_cos()
                motions.append(fixed + cosine * c + sine * s)
                turns.append(sine * c - cosine * s)
        behind = [self._tool]
        for motion in reversed(motions):
            behind.append(motion * behind[-1])
        behind.reverse()  # behind[k]: by joints k, k + 1, ...
        rates, before = [], None
        for k, turn in enumerate(turns):
            moved = turn * behind[k + 1]
            rates.append(moved if before is None else before * moved)
            before = motions[k] if before is None else before * motions[k]
        return behind[0], rates

    def _balls(self, vector: Vector) -> list[Any]:
        return [self._flint.arb(self._flint.fmpq(part.numerator, part.denominator)) for part in vector]

    @staticmethod
    def _unit(parts: list[Any]) -> list[Any]:
        length = sum(part * part for part in parts).sqrt()
        return [part / length for part in parts]

    def _motion_parts(self, axis: list[Any], point: list[Any], slides: bool) -> tuple[Any, Any, Any]:
        """Return acb_mat (4, 4) whose sum, times 1, cos q, sin q or 1, t, 0, is a joint's motion."""
        mat, arb = self._flint.acb_mat, self._flint.arb
        if slides:
            fixed = [[int(i == k) for k in range(4)] for i in range(4)]
            return mat(fixed), mat([*([0, 0, 0, part] for part in axis), [0, 0, 0, 0]]), mat(4, 4)
        x, y, z = axis
        along = [[a * b for b in axis] for a in axis]
        across = [[arb(int(i == k)) - along[i][k] for k in range(3)] for i in range(3)]
        cross = [[arb(0), -z, y], [z, arb(0), -x], [-y, x, arb(0)]]
        parts = []
        for index, turn in enumerate((along, across, cross)):
            centre = [sum(a * b for a, b in zip(row, point, strict=True)) for row in turn]
            shift = [p - c if index == 0 else -c for p, c in zip(point, centre, strict=True)]
            rows = [[*row, part] for row, part in zip(turn, shift, strict=True)]
            parts.append(mat([*rows, [0, 0, 0, int(index == 0)]]))
        return parts[0], parts[1], parts[2]


class _Target:
    """The five equations of a goal: the tool point, and the tool axis along two directions across the goal's.

    Their second solution is the goal's direction mirrored; faces tells it.
    """

    def __init__(self, flint: Any, position: list[Any], direction: list[Any]) -> None:
        self._direction = direction
        across = np.linalg.svd(np.array([[float(part.mid()) for part in direction]]))[2][1:]
        rows = [[*row, 0.0] for row in (*np.eye(3), *across)]
        self._select = flint.acb_mat([[float(value) for value in row] for row in rows])
        self._target = self._selected(flint.acb_mat([*map(list, zip(position, direction, strict=True)), [0, 0]]))
        self._mat = flint.acb_mat
        first, second = across.tolist()
        normal = [
            flint.arb(first[i]) * second[j] - flint.arb(first[j]) * second[i] for i, j in ((1, 2), (2, 0), (0, 1))
        ]
        along = sum(a * b for a, b in zip(normal, direction, strict=True))
        # all solutions are direction + share normal, of length one
        self._mirrored = 1 - 2 * along * along / sum(part * part for part in normal)

    def _selected(self, reached: Any) -> list[Any]:
        """The five numbers that the equations compare, of a tool point and axis (4, 2)."""
        product = self._select * reached
        return [product[i, 0 if i < 3 else 1] for i in range(5)]

    def residual(self, reached: Any) -> Any:
        """Return by how much the equations are missed, acb_mat (5, 1)."""
        values = zip(self._selected(reached), self._target, strict=True)
        return self._mat([[value - target] for value, target in values])

    def rates(self, rates: list[Any]) -> Any:
        """Return the derivatives of the equations, acb_mat (5, n)."""
        return self._mat([self._selected(rate) for rate in rates]).transpose()

    def faces(self, reached: Any) -> bool:
        """Whether a solution there points along the goal's direction, not along the mirrored one."""
        share = sum(reached[i, 1].real * part for i, part in enumerate(self._direction))
        return bool(share > 0 and self._mirrored < 0)


def _up(value: Any) -> float:
    """A float not below the ball value; infinite for NaN, which max may lose."""
    top = float(value.upper())
    return math.inf if math.isnan(top) else math.nextafter(top, math.inf)


def _down(value: Any) -> float:
    """A float not above the ball value; -inf for NaN."""
    bottom = float(value.lower())
    return -math.inf if math.isnan(bottom) else math.nextafter(bottom, -math.inf)


MAX_LIMIT = 1e6  # rad or m: up to there ROOT_SLACK is far more than rounding
PROVERS: WeakKeyDictionary[Arm, Prover] = WeakKeyDictionary()
ANY_ERROR = np.full(SWITCHES, np.inf)  # options of a search that rejects nothing
LOCK = Lock()  # FLINT's precision is that of the whole process


@dataclass(frozen=True, eq=False)
class Proof:
    """Whether q are proven to be all solutions of a goal within the limits, whole turns included.

    q (k, n) [rad or m]: best first, as in IkSolver.solve_all; no rows: no solution. radius (k,): an exact one
    is within that of each joint of q. enclosed: how many complex solutions are proven, of at most bound.
    reason: '' if proven; else why not, and q has no rows.
    """

    proven: bool
    q: Array
    radius: Array
    enclosed: int
    bound: int
    reason: str


class Prover:
    """Proves all solutions of the goals of one arm."""

    def __init__(self, arm: Arm, deadline: float) -> None:
        """Find out how many complex solutions a goal has, which takes a second or two, for some arms five.

        deadline: steady() at which it gives up. Raises OutOfTimeError, MissingError without
        python-flint.
        """
        self._rejection, self.bound = '', 0
        chain = chain_of(arm, direction=True)
        if chain is None or not arm.is_plain or arm.n != 5 or chain.n != 5:
            self._rejection = (
                'the number of solutions is known only for arms with exactly five joints, '
                'each of which moves the tool, without mimic joints'
            )
            return
        geometry = geometry_of(arm)
        rounding = ROUNDING * arm.reach
        self._enclosing = Enclosing(geometry)
        self._blurred = Enclosing(geometry, rounding, ROUNDING)
        self.bound = most_solutions(geometry)
        nearby = special_nearby(arm, geometry) if self.bound == GENERAL else None
        self._nearby: Enclosing | None = None
        if nearby is not None:
            self._nearby = Enclosing(nearby.geometry, nearby.point, nearby.axis)
            self.bound = most_solutions(nearby.geometry)
        self._solutions = ComplexSolutions(chain, self.bound, deadline)
        if self._solutions.count < self.bound:
            self._rejection = (
                f'{self._solutions.count} complex solutions are known for goals of this arm, '
                f'but up to {self.bound} cannot be excluded'
            )

    def __call__(self, arm: Arm, goal: Goal, seed: Array, deadline: float) -> Proof:
        """Return the proof for a goal of the same arm; seed (n,) decides the order. Raises OutOfTimeError."""
        if self._rejection:
            return self._unproven(arm, 0, self._rejection)
        if goal.direction is None:
            return self._unproven(arm, 0, 'the goal has no direction')
        packed = goal.packed
        starts = self._solutions.of(packed[:DIRECTION], packed[DIRECTION:LATERAL], deadline).tolist()
        found = []
        for start in starts:
            check_time(deadline)
            if (one := self._enclosing(packed, start)) is not None:
                found.append(one)
        enclosed = self._enclosing.distinct(found)
        distinct = len(enclosed)
        if distinct < self.bound:
            reason = f'{distinct} of {self.bound} complex solutions could be enclosed: others may be singular'
            return self._unproven(arm, distinct, reason)
        if self._nearby is not None and not self._all_near(self._nearby, packed, enclosed):
            return self._unproven(arm, distinct, 'the geometry is too far from the special one that it nearly has')
        if any(solution.real is None for solution in enclosed):
            return self._unproven(arm, distinct, 'it could not be decided whether a solution is real')
        real = [solution for solution in enclosed if solution.real]
        if any(self._blurred(packed, solution.middle.tolist()) is None for solution in real):
            return self._unproven(arm, distinct, 'a solution is singular to within rounding')
        judged = [_within_limits(arm, solution) for solution in real]
        if None in judged:
            return self._unproven(arm, distinct, f'a solution is within {ROOT_SLACK:g} rad or m of a limit')
        inside = [solution for solution, within in zip(real, judged, strict=True) if within]
        q = _listed(arm, goal, seed, inside)
        radius = np.array([self._enclosing.distance(row, inside) for row in q])
        return Proof(True, q, radius, distinct, self.bound, '')

    def _unproven(self, arm: Arm, enclosed: int, reason: str) -> Proof:
        return Proof(False, np.empty((0, arm.n)), np.empty(0), enclosed, self.bound, reason)

    def _all_near(self, nearby: Enclosing, packed: Array, enclosed: list[Enclosure]) -> bool:
        """Whether all real solutions are among those enclosed, of an arm of nearly special geometry.

        Each is one of the special arm, of a goal nearby. So it is in one of the discs that hold all solutions
        of the special arm for each such goal, if these lie in the discs of enclosed.
        """
        found = [nearby(packed, solution.middle.tolist()) for solution in enclosed]
        around = [one for one in found if one is not None]
        return len(nearby.distinct(around)) == len(enclosed) == self.bound and all(
            one.inside(solution) for one, solution in zip(around, enclosed, strict=True)
        )


def _within_limits(arm: Arm, solution: Enclosure) -> bool | None:
    """Whether a real solution is within the limits after whole turns, None if it is not decided.

    Nearer to a limit than ROOT_SLACK it is not, as solve_all lists such solutions on either side.
    """
    decided = True
    for value, low, high, period in zip(solution.middle.real, arm.lower, arm.upper, arm.period, strict=True):
        if math.isinf(high - low):
            continue
        if period == 0.0:
            near = min(abs(value - low), abs(value - high))
            inside = low < value < high
        else:
            first, last = (low - value) / period, (high - value) / period
            near = min(abs(first - round(first)), abs(last - round(last))) * period
            inside = math.floor(last) >= math.ceil(first)
        if not near > ROOT_SLACK + solution.radius or not max(abs(low), abs(high)) < MAX_LIMIT:
            decided = False
        elif not inside:
            return False
    return True if decided else None


def _listed(arm: Arm, goal: Goal, seed: Array, inside: list[Enclosure]) -> Array:
    """Return all whole turns within the limits (k, n), best first."""
    start = np.clip(seed, arm.lower, arm.upper)
    found = np.array([solution.middle.real for solution in inside]).reshape(-1, arm.n)
    model = arm.joints, arm.tool, arm.limits, arm.turning_period
    q: Array = kernels.list_solutions(*model, goal.packed, ANY_ERROR, start, seed, found, len(found))[0]
    return q


def prove(arm: Arm, goal: Goal, seed: Array, time_budget: float) -> Proof:
    """Return the proof for a goal of arm, if there is one within time_budget [s].

    seed (n,) decides the order. The first call for an arm takes a second or two, for some five. Raises
    MissingError without python-flint.
    """
    deadline = steady() + time_budget
    late = Proof(False, np.empty((0, arm.n)), np.empty(0), 0, 0, f'the time budget of {time_budget:g} s is used up')
    if not LOCK.acquire(timeout=min(time_budget, TIMEOUT_MAX)):
        return late
    try:
        if arm not in PROVERS:
            PROVERS[arm] = Prover(arm, deadline)
        return PROVERS[arm](arm, goal, seed, deadline)
    except OutOfTimeError:
        return late
    finally:
        LOCK.release()
