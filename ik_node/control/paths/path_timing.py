# SPDX-License-Identifier: Apache-2.0
"""The fastest timing of a joint path within velocity, acceleration and jerk limits.

The path is q(u), u from 0 to 1, with q' = q'' = 0 at both ends, so that the arm rests there whatever the
speed of u is. With b = (du/dt)^2 and derivatives by u,

    velocity      q' sqrt(b)
    acceleration  q'' b + q' b' / 2
    jerk          (q''' b + 3/2 q'' b' + 1/2 q' b'') sqrt(b)

so the limits are linear in b but for the factor sqrt(b) of the jerk. Dividing by it leaves the convex
J b^-1/2 on the right; its tangent is below it, so what keeps the linearised limit keeps the true one
(Debrouwere et al. 2013). b is a quadratic spline; a barrier method finds the least time, the integral of
b^-1/2. Only three coefficients count in a piece of b, so its matrices have five diagonals.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ik_node.checks import Array, positive, real_array
from ik_node.control.motion.trajectory import Trajectory
from ik_node.control.paths.splines import basis, knots_between
from ik_node.errors import InputError, safe_repr

DEGREE = 2  # of b: its second derivative, and the jerk, may jump where pieces meet
INSIDE = np.array([1e-6, 0.5, 1.0 - 1e-6])  # where in a piece the limits count
SIMPSON = np.array([1.0, 4.0, 1.0]) / 6.0
POINTS = np.array([0.1127016653792583, 0.5, 0.8872983346207417])  # of Gauss and Legendre in a piece
WEIGHTS = np.array([5.0, 8.0, 5.0]) / 18.0
GAP = 3e-3  # share of the time by which the barrier may miss the optimum
STAGE = 12.0  # growth of the barrier's weight
STEPS = 30  # of Newton's method per stage, at most
SHORTEST_RAMP = 0.002  # share of the path in which it speeds up from rest
PIECES, MOST_PIECES = 96, 256  # of b
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
                raise InputError(
                    f'{name} must be finite numbers greater than 0, one per joint, got {safe_repr(given)}'
                )
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
    count = int(np.clip(2 * len(sites), PIECES, MOST_PIECES))
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
        self._knots = knots_between(breaks, DEGREE)
        widths = np.diff(breaks)
        u = (breaks[:-1, None] + widths[:, None] * INSIDE).ravel()
        self._weights = (widths[:, None] * SIMPSON).ravel()
        self._columns, self._bases = basis(self._knots, DEGREE, u, 2)
        self._size = len(self._knots) - DEGREE - 1  # coefficients of b
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
            step = -scale * np.linalg.solve(
                H * scale[:, None] * scale + 1e-12 * np.eye(self._size), scale * g
            )
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
        columns, values = basis(self._knots, DEGREE, inner)
        speeds = (values[0] * c[columns]).sum(axis=1)
        times = (speeds**-0.5).reshape(-1, len(POINTS)) @ WEIGHTS * np.diff(u)
        columns, values = basis(self._knots, DEGREE, u, 1)
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
