# SPDX-License-Identifier: Apache-2.0
"""All complex solutions of goals with a direction, by continuation. Numerical: proof.py encloses them.

Where an arm has as many joints as the task has degrees of freedom, its solutions move continuously with the
goal, complex values allowed, unless the path of goals meets a singular one; a path from a random complex goal
does not, with probability one. Closed paths of goals lead from one solution to all others (Sommese and
Wampler, The Numerical Solution of Systems of Polynomials, 2005, chapters 7 and 15).
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ik_node.checks import Array
from ik_node.model.rotations import hat
from ik_node.solver.elimination.task_joints import TaskChain
from ik_node.steady import steady

Complex = NDArray[np.complex128]

LOOPS = 80  # closed paths of goals
IDLE_LOOPS = 24  # in a row without a new solution: there are no others
WAYS = 3  # to each goal, until all solutions have arrived
SAME = 1e-6  # rad or share of the size: solutions nearer than that are one
FIRST_STEP, LEAST_STEP = 0.05, 1e-9  # shares of a path
PREDICTED = 1e-3  # rad or share: a step whose prediction errs by more may have led to another solution
CORRECTED = 1e-5  # likewise, after a Newton step
FAR = 40.0  # rad: imaginary part of an angle that goes to infinity
MOST_STEPS = 1500


class OutOfTimeError(Exception):
    """A deadline has passed."""


def check_time(deadline: float) -> None:
    """Raise OutOfTimeError if steady() is beyond deadline."""
    if steady() > deadline:
        raise OutOfTimeError


class ComplexSolutions:
    """Finds all complex solutions of the goals of one arm with five joints."""

    def __init__(self, chain: TaskChain, most: int, deadline: float) -> None:
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
            if len(q) >= most or idle == IDLE_LOOPS:
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
    for _ in range(MOST_STEPS):
        rows = np.flatnonzero((done < 1.0) & (steps > LEAST_STEP))
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
