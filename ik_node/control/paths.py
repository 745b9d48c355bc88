# SPDX-License-Identifier: Apache-2.0
"""Paths of the tool: lines and curves, the joints along them, their timing, and the limits of motion."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ik_node.checks import Array, positive, real_array
from ik_node.errors import IkError, InputError, safe_repr
from ik_node.solver.goal import Goal, pack_goals
from ik_node.solver.solver import IkSolver

from .models import ArmModel, ToolModel
from .motion import ROLL_SHARE, SHARE, ToolPace
from .settings import ArmSettings
from .trajectory import Trajectory

DEGREE = 5  # of curves, odd

Columns = NDArray[np.intp]


def knots_between(breaks: Array, degree: int) -> Array:
    """Return the clamped knots of a spline whose pieces meet at breaks (k,)."""
    return np.concatenate([np.repeat(breaks[0], degree), breaks, np.repeat(breaks[-1], degree)])


def basis(knots: Array, degree: int, x: Array, derivatives: int = 0) -> tuple[Columns, Array]:
    """Return which B-splines are not 0 at x (p,), and their values and derivatives there.

    Columns (p, degree + 1) of the coefficients, and (derivatives + 1, p, degree + 1). Cox and de Boor's
    recursion.
    """
    last = len(knots) - degree - 2
    piece = np.clip(np.searchsorted(knots, x, side='right') - 1, degree, last)
    rows = []
    for order in range(derivatives + 1):
        values = np.ones((len(x), 1))
        for k in range(1, degree + 1):
            before = piece[:, None] + np.arange(1 - k, 1)  # of the splines of degree k - 1 that are not 0
            values = values / (knots[before + k] - knots[before])
            if k <= degree - order:
                rising, falling = x[:, None] - knots[before], knots[before + k] - x[:, None]
            else:  # the derivative of a spline of degree k
                rising, falling = np.array(k), np.array(-k)
            none = np.zeros((len(x), 1))
            values = np.hstack([none, values * rising]) + np.hstack([values * falling, none])
        rows.append(values)
    return piece[:, None] + np.arange(-degree, 1), np.array(rows)


class Curve:
    """The spline of DEGREE through values (k, n) at increasing sites (k,), k > DEGREE; not-a-knot."""

    def __init__(self, sites: Array, values: Array) -> None:
        inner = (DEGREE + 1) // 2
        breaks = np.concatenate([sites[:1], sites[inner:-inner], sites[-1:]])
        self._knots = knots_between(breaks, DEGREE)
        columns, rows = basis(self._knots, DEGREE, sites)
        matrix = np.zeros((len(sites), len(sites)))
        np.put_along_axis(matrix, columns, rows[0], axis=1)
        self._coefficients = np.asarray(np.linalg.solve(matrix, values), float)

    def __call__(self, x: Array, derivatives: int = 0) -> Array:
        """Return the curve and its derivatives (derivatives + 1, p, n) at x (p,)."""
        columns, rows = basis(self._knots, DEGREE, x, derivatives)
        curve: Array = np.einsum('dpc,pcn->dpn', rows, self._coefficients[columns])
        return curve


METRES_PER_RADIAN = 0.1  # what a turn counts beside a motion of the tool point
SHORTEST = 1e-6  # [m] a line that is shorter is left out
MAX_POINTS, MAX_BLENDED = 100, 20  # a path with more takes too long to plan
OPPOSITE = math.pi - 1e-3  # [rad] a turn by more has no definite axis


@dataclass(frozen=True, eq=False)
class Lines:
    """k straight lines, end to end: position (3,) and direction (3,) at their start, None if it is free.

    sizes (k,): how long each one counts [m]; a turn counts METRES_PER_RADIAN. moves (k, 3): of the tool
    point. angles (k,), axes (k, 3): of the turn.
    """

    position: Array
    direction: Array | None
    sizes: Array
    moves: Array
    angles: Array
    axes: Array


class Stretch:
    """A smooth part of a tool path, s from 0 to 1: one line, or several with blended corners.

    The speed along one line passes to the next one smoothly while s is within the blend of a corner, so that
    the path has three continuous derivatives and leaves the lines by no more than the blend.
    """

    def __init__(self, lines: Lines, blend: float) -> None:
        self._lines = lines
        ends = np.cumsum(lines.sizes)
        self.size = float(ends[-1])
        self._corners = ends[:-1]
        self._blends = np.minimum(blend, 0.5 * np.minimum(lines.sizes[:-1], lines.sizes[1:]))
        self.length = float(np.linalg.norm(lines.moves, axis=1).sum())
        corners, blends = self._corners, self._blends
        # Where the path changes its shape.
        self.marks = np.unique(np.concatenate([corners - blends, corners, corners + blends])) / self.size

    def _done(self, s: Array) -> tuple[Array, Array]:
        """Return how far along each line the path is (k, p), as a share of it, and the derivatives by s."""
        x, sizes = s * self.size, self._lines.sizes
        done = np.ones((len(sizes) + 1, len(x)))  # of the transitions into each line: speed that has passed on
        speed = np.ones_like(done)
        done[0], speed[0] = x, 1.0
        for k, (corner, blend) in enumerate(zip(self._corners, self._blends, strict=True)):
            y = np.clip((x - corner + blend) / (2.0 * blend), 0.0, 1.0)
            # The integral of the smooth step y^4 (35 - 84 y + 70 y^2 - 20 y^3).
            done[k + 1] = 2.0 * blend * y**5 * (7.0 - 14.0 * y + 10.0 * y**2 - 2.5 * y**3) + np.maximum(
                x - corner - blend, 0.0
            )
            speed[k + 1] = y**4 * (35.0 - 84.0 * y + 70.0 * y**2 - 20.0 * y**3)
        done[-1] = speed[-1] = 0.0
        share = (done[:-1] - done[1:]) / sizes[:, None]
        return share, (speed[:-1] - speed[1:]) * (self.size / sizes[:, None])

    def goals(self, s: Array) -> Array:
        """Return goals (p, 9) for the kernels at s (p,)."""
        lines, (share, _) = self._lines, self._done(s)
        points = lines.position + share.T @ lines.moves
        if lines.direction is None:
            return pack_goals(points, None)
        axis = np.repeat(lines.direction[None], len(s), axis=0)
        for k, (w, angle) in enumerate(zip(lines.axes, lines.angles, strict=True)):
            turn = (share[k] * angle)[:, None]
            along = (axis @ w)[:, None] * (1.0 - np.cos(turn)) * w
            axis = np.cos(turn) * axis + np.sin(turn) * np.cross(w, axis) + along
        return pack_goals(points, axis / np.linalg.norm(axis, axis=1)[:, None])

    def speed(self, s: Array) -> Array:
        """Return how fast the tool point moves (p,) [m per unit of s] at s (p,)."""
        return np.linalg.norm(self._done(s)[1].T @ self._lines.moves, axis=1)

    def travelled(self, s: float) -> float:
        """Return the distance along the lines [m] from the start to s."""
        share = self._done(np.array([s]))[0][:, 0]
        return float(share @ np.linalg.norm(self._lines.moves, axis=1))


@dataclass(frozen=True, eq=False)
class ToolPath:
    """Points (k, 3) [m] in the base link's frame; the tool moves to one after another in straight lines.

    directions (k, 3), unit: the direction turns evenly along each line, about the axis normal to both ends.
    None: it is free. Raises InputError for values that are not finite or not of these shapes.
    """

    points: Array
    directions: Array | None = None

    def __post_init__(self) -> None:
        goals = pack_goals(self.points, self.directions)
        if not 0 < len(goals) <= MAX_POINTS:
            raise InputError(f'a path must have 1 to {MAX_POINTS} poses, got {len(goals)}')
        object.__setattr__(self, 'points', goals[:, :3])
        if self.directions is not None:
            object.__setattr__(self, 'directions', goals[:, 3:6])

    def stretches(self, position: Array, direction: Array, blend: float | None) -> list[Stretch]:
        """Return the smooth parts of the path from position (3,) and direction (3,); none if it is there.

        blend [m]: how near a corner the path may leave the lines; None: it stops at each corner. Raises
        InputError for a direction opposite to the one before.
        """
        points = np.vstack([position, self.points])
        rows = None if self.directions is None else np.vstack([direction, self.directions])
        kept = [0]
        for k in range(1, len(points)):
            turn = 0.0 if rows is None else float(np.linalg.norm(rows[k] - rows[kept[-1]]))
            if max(float(np.linalg.norm(points[k] - points[kept[-1]])), METRES_PER_RADIAN * turn) > SHORTEST:
                kept.append(k)
        if blend is not None and len(kept) > MAX_BLENDED + 1:
            raise InputError(f'a path with blended corners may have {MAX_BLENDED} poses at most, got {len(kept) - 1}')
        moves = np.diff(points[kept], axis=0)
        axes, angles = (np.zeros_like(moves), np.zeros(len(moves))) if rows is None else _turns(rows[kept])
        sizes = np.maximum(np.linalg.norm(moves, axis=1), METRES_PER_RADIAN * angles)
        ends = [0, *([] if blend is not None else range(1, len(moves))), len(moves)]
        return [
            Stretch(
                Lines(
                    points[kept[first]],
                    None if rows is None else rows[kept[first]],
                    sizes[first:last],
                    moves[first:last],
                    angles[first:last],
                    axes[first:last],
                ),
                blend or 0.0,
            )
            for first, last in pairwise(ends)
            if last > first
        ]


def _turns(rows: Array) -> tuple[Array, Array]:
    """Return axes (k, 3) and angles (k,) of the turns between unit vectors (k + 1, 3)."""
    before, after = rows[:-1], rows[1:]
    normal = np.cross(before, after)
    length = np.linalg.norm(normal, axis=1)
    angles = np.arctan2(length, (before * after).sum(axis=1))
    opposite: NDArray[np.int64] = np.flatnonzero(angles > OPPOSITE)
    if len(opposite):
        raise InputError(
            f'line {opposite[0] + 1} turns the tool to the opposite direction: '
            'add a pose between them to define the direction of the turn'
        )
    axes = normal / np.maximum(length, 1e-300)[:, None]
    return axes, angles


# The fastest timing of a joint path within velocity, acceleration and jerk limits.
#
# The path is q(u), u from 0 to 1, with q' = q'' = 0 at both ends, so that the arm rests there whatever the
# speed of u is. With b = (du/dt)^2 and derivatives by u,
#
#     velocity      q' sqrt(b)
#     acceleration  q'' b + q' b' / 2
#     jerk          (q''' b + 3/2 q'' b' + 1/2 q' b'') sqrt(b)
#
# so the limits are linear in b but for the factor sqrt(b) of the jerk. Dividing by it leaves the convex J
# b^-1/2 on the right; its tangent is below it, so what keeps the linearised limit keeps the true one
# (Debrouwere et al. 2013). b is a quadratic spline; a barrier method finds the least time, the integral of
# b^-1/2. Only three coefficients count in a piece of b, so its matrices have five diagonals.

TIMING_DEGREE = 2  # of b: its second derivative, and the jerk, may jump where pieces meet
INSIDE = np.array([1e-6, 0.5, 1.0 - 1e-6])  # where in a piece the limits count
SIMPSON = np.array([1.0, 4.0, 1.0]) / 6.0
POINTS = np.array([0.1127016653792583, 0.5, 0.8872983346207417])  # of Gauss and Legendre in a piece
WEIGHTS = np.array([5.0, 8.0, 5.0]) / 18.0
GAP = 3e-3  # share of the time by which the barrier may miss the optimum
STAGE = 12.0  # growth of the barrier's weight
STEPS = 30  # of Newton's method per stage, at most
SHORTEST_RAMP = 0.002  # share of the path in which it speeds up from rest
PIECES, MAX_PIECES = 96, 256  # of b
NODES = 4  # of the trajectory in a piece of b
MARGIN = 1.0 - 1e-4  # share of the limits that is used


@dataclass(frozen=True, eq=False)
class Bounds:
    """Velocity, acceleration and jerk limits (n,), and the tool's speed limit [m/s], inf for none.

    Raises InputError unless all are greater than 0, those of the joints finite.
    """

    velocity: Array
    acceleration: Array
    jerk: Array
    tool_speed: float = np.inf

    def __post_init__(self) -> None:
        for name in ('velocity', 'acceleration', 'jerk'):
            given = getattr(self, name)
            try:
                limits = real_array(given)
            except (TypeError, ValueError, OverflowError):
                limits = np.empty(0)
            if limits.ndim != 1 or not len(limits) or not (np.isfinite(limits) & (limits > 0.0)).all():
                raise InputError(f'{name} must be finite numbers greater than 0, one per joint, got {safe_repr(given)}')
            object.__setattr__(self, name, limits)
        object.__setattr__(self, 'tool_speed', positive('tool_speed', self.tool_speed, finite=False))


# Return the joints and their derivatives by s (4, p, n) and the tool's speed |dp/ds| (p,) at s (p,).
Path = Callable[[Array], tuple[Array, Array]]


def timed(path: Path, sites: Array, bounds: Bounds) -> Trajectory:
    """Return the motion along path over s from 0 to 1 from rest to rest, as fast as the bounds allow.

    sites (k,) from 0 to 1: close together where the path bends sharply, so that the timing is finer there.
    """
    ramp = _ramp(path, bounds)
    profile = _Profile(path, _breaks(sites, ramp), ramp, bounds)
    return profile.trajectory(profile.fastest())


def _ramp(path: Path, bounds: Bounds) -> float:
    """Return the share of u in which the path speeds up to the velocity limits, about."""
    q, speed = path(np.linspace(0.0, 1.0, 65))
    moves = np.maximum(np.abs(q[1]).mean(axis=0), 1e-9)
    limits = bounds.velocity, bounds.acceleration, bounds.jerk
    velocity, acceleration, jerk = (float((limit / moves).min()) for limit in limits)
    velocity = min(velocity, bounds.tool_speed / max(float(speed.mean()), 1e-9))
    if acceleration**2 < velocity * jerk:
        time = velocity / acceleration + acceleration / jerk
    else:
        time = 2.0 * np.sqrt(velocity / jerk)
    share = min(max(0.5 * time * velocity, SHORTEST_RAMP), 0.4)
    return float(share / (0.6 + 0.8 * share))


def _breaks(sites: Array, ramp: float) -> Array:
    """Return where pieces of b meet: a third in each ramp, and closer where sites are close."""
    count = int(np.clip(2 * len(sites), PIECES, MAX_PIECES))
    u = np.linspace(0.0, 1.0, 2049)
    even = np.interp(u, [0.0, ramp, 1.0 - ramp, 1.0], [0.0, 1.0 / 3.0, 2.0 / 3.0, 1.0])
    near = np.interp(u, np.interp(sites, ramped(u, ramp)[0], u), np.linspace(0.0, 1.0, len(sites)))
    return np.interp(np.linspace(0.0, 1.0, count + 1), 0.5 * (even + near), u)


def ramped(u: Array, ramp: float) -> Array:
    """Return s and its first three derivatives (4, p) at u (p,): s starts and ends as a cube."""
    x, y = np.minimum(u / ramp, 1.0), np.minimum((1.0 - u) / ramp, 1.0)

    def rise(x: Array) -> tuple[Array, Array, Array, Array]:
        """The integral of 6 x^2 - 8 x^3 + 3 x^4, that polynomial, and two derivatives."""
        whole = (2.0 - 2.0 * x + 0.6 * x * x) * x**3
        return (
            whole,
            (6.0 - 8.0 * x + 3.0 * x * x) * x * x,
            12.0 * x * (1.0 - x) ** 2,
            12.0 - 48.0 * x + 36.0 * x * x,
        )

    up, down = rise(x), rise(y)
    end = ramp * 0.6
    total = 1.0 - 2.0 * ramp + 2.0 * end
    s = np.where(
        u < ramp,
        ramp * up[0],
        np.where(u <= 1.0 - ramp, end + u - ramp, total - ramp * down[0]),
    )
    first = up[1] * down[1]
    second = np.where(u < ramp, up[2], 0.0) / ramp - np.where(u > 1.0 - ramp, down[2], 0.0) / ramp
    third = (np.where(u < ramp, up[3], 0.0) + np.where(u > 1.0 - ramp, down[3], 0.0)) / ramp**2
    return np.array([s, first, second, third]) / total


class _Profile:
    def __init__(self, path: Path, breaks: Array, ramp: float, bounds: Bounds) -> None:
        self._path, self._breaks, self._ramp, self._bounds = path, breaks, ramp, bounds
        self._knots = knots_between(breaks, TIMING_DEGREE)
        widths = np.diff(breaks)
        u = (breaks[:-1, None] + widths[:, None] * INSIDE).ravel()
        self._weights = (widths[:, None] * SIMPSON).ravel()
        self._columns, self._bases = basis(self._knots, TIMING_DEGREE, u, 2)
        self._size = len(self._knots) - TIMING_DEGREE - 1  # coefficients of b
        q, speed = self._by_u(u)
        limits = bounds.velocity, bounds.acceleration, bounds.jerk
        self._v2 = np.column_stack([(q[1] / limits[0]) ** 2, (speed / bounds.tool_speed) ** 2])
        self._a = np.array([q[2], 0.5 * q[1], np.zeros_like(q[1])]) / limits[1]  # times b, b', b''
        self._j = np.array([q[3], 1.5 * q[2], 0.5 * q[1]]) / limits[2]

    def _by_u(self, u: Array) -> tuple[Array, Array]:
        """Return the joints and three derivatives by u (4, p, n), and the tool's speed (p,)."""
        s, first, second, third = ramped(u, self._ramp)
        q, speed = self._path(s)
        first, second, third = first[:, None], second[:, None], third[:, None]
        rows = [
            q[0],
            q[1] * first,
            q[2] * first**2 + q[1] * second,
            q[3] * first**3 + 3.0 * q[2] * first * second + q[1] * third,
        ]
        return np.array(rows), speed * first[:, 0]

    def fastest(self) -> Array:
        """Return the coefficients of b that take the least time."""
        slowest = max(self._v2.max(), np.abs(self._a[0]).max(), np.cbrt(np.abs(self._j[0]).max()) ** 2)
        c = np.full(self._size, 0.5 / slowest)
        count = 2 * (self._a[0].size + self._j[0].size) + self._v2.size
        weight = count / self._time(c)
        while True:
            c = self._centred(c, weight)
            if count / weight <= GAP * self._time(c):
                return c
            weight *= STAGE

    def _time(self, c: Array) -> float:
        return float(self._weights @ self._b(c)[0] ** -0.5)

    def _b(self, c: Array) -> Array:
        """Return b, b' and b'' (3, p)."""
        z: Array = np.einsum('kpc,pc->kp', self._bases, c[self._columns])
        return z

    def _slacks(self, c: Array) -> tuple[Array, list[Array]] | None:
        """Return b, b', b'' (3, p) and the slacks of all limits, None unless all are positive."""
        z = self._b(c)
        b = z[0]
        if b.min() <= 0.0:
            return None
        a = np.einsum('kpn,kp->pn', self._a, z)
        j = np.einsum('kpn,kp->pn', self._j, z)
        root = b[:, None] ** -0.5
        slacks = [1.0 - self._v2 * b[:, None], 1.0 - a, 1.0 + a, root - j, root + j]
        return (z, slacks) if min(slack.min() for slack in slacks) > 0.0 else None

    def _cost(self, z: Array, slacks: list[Array], weight: float) -> float:
        return weight * float(self._weights @ z[0] ** -0.5) - sum(float(np.log(s).sum()) for s in slacks)

    def _centred(self, c: Array, weight: float) -> Array:
        """Return the coefficients at which weight * time + barrier is least."""
        now = self._slacks(c)
        assert now is not None
        cost = self._cost(*now, weight)
        points = self._bases.shape[1]
        for _ in range(STEPS):
            (b, _, _), slacks = now
            inverse = [1.0 / slack for slack in slacks]
            gradient = np.zeros((3, points))
            hessian = np.zeros((3, 3, points))
            gradient[0] = -0.5 * weight * self._weights * b**-1.5
            hessian[0, 0] = 0.75 * weight * self._weights * b**-2.5
            gradient[0] += (self._v2 * inverse[0]).sum(axis=1)
            hessian[0, 0] += ((self._v2 * inverse[0]) ** 2).sum(axis=1)
            fall = np.zeros_like(self._j)
            fall[0] = -0.5 * b[:, None] ** -1.5
            for slope, over in (
                (-self._a, inverse[1]),
                (self._a, inverse[2]),
                (fall - self._j, inverse[3]),
                (fall + self._j, inverse[4]),
            ):
                scaled = slope * over
                gradient -= scaled.sum(axis=2)
                hessian += np.einsum('kpn,lpn->klp', scaled, scaled)
            H, g = self._of_coefficients(hessian, gradient)
            scale = 1.0 / np.sqrt(np.diagonal(H))
            step = -scale * np.linalg.solve(H * scale[:, None] * scale + 1e-12 * np.eye(self._size), scale * g)
            decrease = -float(g @ step)
            if decrease <= 0.05:
                break
            share = 1.0
            while share > 1e-8:
                trial = self._slacks(c + share * step)
                if trial is not None:
                    new = self._cost(*trial, weight)
                    if new <= cost - 0.1 * share * decrease:
                        break
                share *= 0.5
            else:
                break
            c, now, cost = c + share * step, trial, new
        return c

    def _of_coefficients(self, hessian: Array, gradient: Array) -> tuple[Array, Array]:
        """Return the Hessian (k, k) and gradient (k,) by c, from those by b, b', b'': (3, 3, p), (3, p)."""
        blocks = np.einsum('kpi,kpj->pij', self._bases, np.einsum('klp,lpj->kpj', hessian, self._bases))
        parts = np.einsum('kpi,kp->pi', self._bases, gradient)
        H, g = np.zeros((self._size, self._size)), np.zeros(self._size)
        np.add.at(H, (self._columns[:, :, None], self._columns[:, None, :]), blocks)
        np.add.at(g, self._columns, parts)
        return H, g

    def trajectory(self, c: Array) -> Trajectory:
        """Return the motion for the coefficients of b, slowed down so that the limits hold between points."""
        shares = np.arange(NODES) / NODES
        widths = np.diff(self._breaks)
        u = np.append((self._breaks[:-1, None] + widths[:, None] * shares).ravel(), 1.0)
        inner = (u[:-1, None] + np.diff(u)[:, None] * POINTS).ravel()
        columns, values = basis(self._knots, TIMING_DEGREE, inner)
        speeds = (values[0] * c[columns]).sum(axis=1)
        times = (speeds**-0.5).reshape(-1, len(POINTS)) @ WEIGHTS * np.diff(u)
        columns, values = basis(self._knots, TIMING_DEGREE, u, 1)
        b, slope = (values * c[columns]).sum(axis=2)
        q, tool = self._by_u(u)
        velocity = q[1] * np.sqrt(b)[:, None]
        acceleration = q[2] * b[:, None] + 0.5 * q[1] * slope[:, None]
        for row in (velocity, acceleration):
            row[[0, -1]] = 0.0
        found = Trajectory(np.concatenate([[0.0], np.cumsum(times)]), q[0], velocity, acceleration)
        bounds = self._bounds
        factor = found.excess(MARGIN * bounds.velocity, MARGIN * bounds.acceleration, MARGIN * bounds.jerk)
        return found.slowed(max(factor, float((tool * np.sqrt(b)).max()) / (MARGIN * bounds.tool_speed)))


ACCURACY = (2e-4, float(np.radians(0.1)))  # [m, rad] within which the tool keeps to the path
EXACT = 0.1  # share of ACCURACY that the curve between two solutions may take
FIRST_STEP, LARGEST_STEP, MIN_STEP = 1.0 / 64.0, 1.0 / 24.0, 1e-6  # of s
LARGE_MOVE, SMALL_MOVE = 0.12, 0.04  # [rad, or as a share of the reach] of a joint in one step
MAX_SITES = 400
NEAREST = 60  # steps to the configuration with the least errors
ROUNDS = 8
BETWEEN = np.array([0.2, 0.4, 0.6, 0.8])  # positions between two sites at which the curve is checked
SLACK = 5e-7  # [rad, m] by which it may exceed a limit between sites
OTHER_SITES = 200  # for the choice of another branch
SINGULAR = 'too near to a singularity, where small motions of the tool need large motions of the joints'
INTRICATE = 'from here on the path bends too sharply or too often, or is too near to a singularity'


class PathEndsError(IkError):
    """A stretch cannot be followed beyond s, for this reason."""

    def __init__(self, s: float, reason: str) -> None:
        super().__init__(reason)
        self.s = s


class JointPath:
    """The joints q(s) of a stretch as a spline through exact solutions at sites (k,), rows (k, n)."""

    def __init__(self, solver: IkSolver, stretch: Stretch, start: Array, end: float = 1.0) -> None:
        """Follow the stretch from start (n,), which is where it begins, up to s = end.

        Raises PathEndsError where the branch of start ends.
        """
        self._solver, self._stretch, self._end = solver, stretch, end
        try:
            sites, rows = self._followed(start)
        except PathEndsError:
            found = self._planned(start)
            if found is None:
                raise
            sites, rows = found
        self.sites, self.rows = self._refined(sites, rows)
        self.curve = Curve(self.sites, self.rows)

    def __call__(self, s: Array) -> tuple[Array, Array]:
        """Return joints and derivatives (4, p, n), tool speed (p,) at s (p,), as a share of the end."""
        scale = self._end ** np.arange(4.0)
        q = self.curve(self._end * s, 3) * scale[:, None, None]
        return q, self._stretch.speed(self._end * s) * self._end

    def _followed(self, start: Array) -> tuple[Array, Array]:
        """Return sites and solutions along the branch of start (n,)."""
        arm = self._solver.arm
        span = np.where(arm.prismatic, arm.reach, 1.0)
        marks = np.append(self._stretch.marks, 1.0)
        sites, rows = [0.0], [start]
        step, last = FIRST_STEP, 0.0
        while sites[-1] < self._end:
            mark = min(self._end, float(marks[np.searchsorted(marks, sites[-1], side='right')]))
            step = min(step, LARGEST_STEP, mark - sites[-1])
            s = mark if sites[-1] + 1.01 * step >= mark else sites[-1] + step
            carried = 0.0 if len(rows) < 2 else step / last * (rows[-1] - rows[-2])
            q = self._next(s, rows[-1], carried)
            move = np.inf if q is None else float(np.abs((q - rows[-1]) / span).max())
            if q is not None and move <= LARGE_MOVE:
                last = s - sites[-1]
                sites.append(s)
                rows.append(q)
                step = 2.0 * step if move < SMALL_MOVE else step
                if len(sites) > MAX_SITES:
                    raise PathEndsError(sites[-1], INTRICATE)
            elif step > MIN_STEP:
                step *= 0.5
            else:
                raise PathEndsError(sites[-1], self._why(s, rows[-1]))
        return np.array(sites), np.array(rows)

    def _next(self, s: float, q: Array, step: Array | float) -> Array | None:
        """Return the solution at s on the branch of q (n,), about step (n,) away; None if it ends."""
        goal, found = self._stretch.goals(np.array([s])), q.copy()
        if self._solver.advance(goal[0], found, q - step):
            return self._exact(s, found)
        # Where the solver's tolerances are not met, those of the path may be.
        ahead = self._nearest(s, np.clip(q + step, self._solver.arm.lower, self._solver.arm.upper))
        return ahead if self._errors(np.array([s]), ahead[None])[0] <= 1.0 - EXACT else None

    def _planned(self, start: Array) -> tuple[Array, Array] | None:
        """Return sites and solutions on another branch, which crosses that of start (n,), or None."""
        sites = np.linspace(0.0, self._end, OTHER_SITES)
        goals = self._stretch.goals(sites)
        directions = None if np.isnan(goals[0, 3]) else goals[:, 3:6]
        found = self._solver.solve_path(goals[:, :3], directions, start)
        if not found.solved.all() or found.breaks or np.abs(found.q[0] - start).max() > 1e-3:
            return None
        rows = np.array([self._exact(s, q) for s, q in zip(sites, found.q, strict=True)])
        rows[0] = start
        return sites, rows

    def _exact(self, s: float, q: Array) -> Array:
        """Return the solution next to q (n,), to rounding: anything less exact would make the path rough."""
        best, error, arm = q, np.inf, self._solver.arm
        for _ in range(4):
            missing, J = self._missing(s, q)
            size = float(np.linalg.norm(missing))
            if not size < 0.5 * error:
                break
            best, error = q, size
            q = np.clip(q + np.linalg.pinv(J, rcond=1e-6) @ missing, arm.lower, arm.upper)
        return best

    def _nearest(self, s: float, q: Array) -> Array:
        """Return the configuration near q (n,) with the least errors, where there is no solution.

        Levenberg and Marquardt's method, to rounding.
        """
        arm, damping = self._solver.arm, 1e-3
        missing, J = self._missing(s, q)
        for _ in range(NEAREST):
            H = J.T @ J
            step = np.linalg.solve(H + damping * np.trace(H) * np.eye(len(q)), J.T @ missing)
            ahead = np.clip(q + step, arm.lower, arm.upper)
            left, slope = self._missing(s, ahead)
            if left @ left < missing @ missing:
                q, missing, J, damping = ahead, left, slope, 0.1 * damping
                if np.abs(step).max() < 1e-10:
                    break
            elif damping > 1e3:
                break
            else:
                damping *= 10.0
        return q

    def _missing(self, s: float, q: Array) -> tuple[Array, Array]:
        """Return the deviation from the path at s as shares of ACCURACY, and its derivative by the joints."""
        arm, goal = self._solver.arm, self._stretch.goals(np.array([s]))[0]
        rows = 3 if np.isnan(goal[3]) else 6
        weights = np.repeat(1.0 / np.array(ACCURACY), 3)[:rows]
        frames = arm.frames(q)
        missing = weights * (goal[:rows] - np.concatenate([frames[-3], frames[-2]])[:rows])
        return missing, weights[:, None] * arm.jacobian(q)[:rows]

    def _refined(self, sites: Array, rows: Array) -> tuple[Array, Array]:
        """Add solutions until the spline through all keeps to the path and within the limits between them."""
        arm = self._solver.arm
        while len(sites) < 8:  # a spline of degree 5 needs six
            sites, rows = self._with(sites, rows, np.arange(len(sites) - 1))
        for _ in range(ROUNDS):
            exact = self._errors(sites, rows)
            off = np.flatnonzero(exact > 1.0 - EXACT)
            if len(off):
                raise PathEndsError(float(sites[max(off[0] - 1, 0)]), self._why(float(sites[off[0]]), rows[off[0]]))
            between = (sites[:-1, None] + np.diff(sites)[:, None] * BETWEEN).ravel()
            q = Curve(sites, rows)(between)[0]
            errors = self._errors(between, q).reshape(-1, len(BETWEEN))
            beyond = (np.maximum(arm.lower - q, q - arm.upper) > SLACK).any(axis=1).reshape(errors.shape)
            # Solutions within the tolerance need not be exact: what the curve adds to their error counts.
            allowed = EXACT + np.maximum(exact[:-1], exact[1:])
            k = np.flatnonzero((errors > allowed[:, None]).any(axis=1) | beyond.any(axis=1))
            if not len(k):
                return sites, rows
            if len(sites) + len(k) > MAX_SITES:
                break
            sites, rows = self._with(sites, rows, k)
        raise PathEndsError(float(sites[k[0]]), INTRICATE if len(sites) + len(k) > MAX_SITES else SINGULAR)

    def _with(self, sites: Array, rows: Array, k: NDArray[np.int64]) -> tuple[Array, Array]:
        """Add solutions in the middle between sites k and k + 1."""
        middle = 0.5 * (sites[k] + sites[k + 1])
        added = []
        for s, i in zip(middle, k, strict=True):
            q = self._next(float(s), rows[i], 0.5 * (rows[i + 1] - rows[i]))
            if q is None:
                raise PathEndsError(float(sites[i]), self._why(float(s), rows[i]))
            added.append(q)
        return np.insert(sites, k + 1, middle), np.insert(rows, k + 1, added, axis=0)

    def _errors(self, s: Array, q: Array) -> Array:
        """Return the errors (p,) of joints q (p, n) at s (p,), the larger one, as a share of ACCURACY."""
        goals = self._stretch.goals(s)
        errors = [self._solver.errors(Goal.unpacked(goal), row) for goal, row in zip(goals, q, strict=True)]
        return (np.array(errors) / ACCURACY).max(axis=1)

    def _why(self, s: float, q: Array) -> str:
        """Return why the branch of q (n,) ends before s."""
        solution = self._solver.track(Goal.unpacked(self._stretch.goals(np.array([s]))[0]), q)
        return SINGULAR if solution.reason is None else str(solution.reason)


BACK = 1e-3  # share of a stretch that is left before the end of its branch
STEP = 0.005  # [s] between two checks of the tool speed
SHORTEST_PART = 1e-3  # share of a stretch: a shorter part is not executed


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
            if end < SHORTEST_PART:
                return LineMotion(whole, length, before, reason)
            joints = JointPath(solver, stretch, q, end)
        motion = timed(joints, joints.sites / end, bounds)
        whole = motion if whole is None else whole.followed_by(motion)
        before += stretch.travelled(end)
        q = motion.positions[-1]
        if reason:
            return LineMotion(whole, length, before, reason)
    return LineMotion(whole, length, before)


def plan_path(model: ArmModel, tool: ToolModel, path: ToolPath, start: Array, settings: ArmSettings) -> LineMotion:
    """Plan a motion of the only tool from start (n,) along path by the settings; see plan_lines."""
    limits = limits_of_motion(model, tool.index, settings)
    speed = settings.path_speed or np.inf
    motion = plan_lines(
        tool.solver,
        ToolPath(path.points) if settings.path_direction == 'free' else path,
        start,
        Bounds(limits.velocity, limits.acceleration, limits.jerk, speed),
        settings.path_blend if settings.path_corners == 'blend' else None,
        settings.path_partial,
    )
    return _paced(motion, ToolPace([(tool.arm, tool.columns)], *settings.tool_rates()))


def _paced(motion: LineMotion, pace: ToolPace) -> LineMotion:
    """Return motion, slowed down until it keeps the limits of the tool."""
    trajectory = motion.trajectory
    if trajectory is None or not pace.limited:
        return motion
    times = np.linspace(0.0, trajectory.duration, max(2, int(trajectory.duration / STEP)))
    position, velocity, *_ = trajectory.sampled(times)
    excess = pace.excess(position, velocity) / SHARE
    return replace(motion, trajectory=trajectory.slowed(excess)) if excess > 1.0 else motion


@dataclass(frozen=True, eq=False)
class MotionLimits:
    """Position [rad or m], velocity, acceleration and jerk limits of some joints, each (k,)."""

    lower: Array
    upper: Array
    velocity: Array
    acceleration: Array
    jerk: Array


def limits_of_motion(model: ArmModel, index: Sequence[int] | NDArray[np.int64], settings: ArmSettings) -> MotionLimits:
    """Return the limits of the variables of a model at index (k)."""
    joints = model.joints
    velocity = settings.velocity_share * joints.velocity[index]
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
