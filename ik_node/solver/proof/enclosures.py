# SPDX-License-Identifier: Apache-2.0
"""Solutions of a goal enclosed in discs by ball arithmetic: FLINT's acb, which rounds outwards.

Krawczyk's operator with complex numbers: let C be an approximate inverse of the derivative f' at y, and
rho < 1 a bound of the norm of 1 - C f'(x) for all x within r of y. Then the map x - C f(x) contracts by rho,
and if |C f(y)| + rho r < r it takes that disc into itself: exactly one zero of f lies in it, within
|C f(y)| / (1 - rho) of y, and f' is regular throughout (Krawczyk, Newton-Algorithmen zur Bestimmung von
Nullstellen mit Fehlerschranken, Computing 4, 1969).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ik_node.checks import Array
from ik_node.extras import load
from ik_node.kernels.arrays.layout import DIRECTION, LATERAL
from ik_node.solver.proof.exact_geometry import ExactGeometry, Vector

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
                if all(
                    self._gap(one.centre, other.centre) > 2.0 * (one.radius + other.radius) for other in kept
                ):
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
        self._wanted = self._selected(
            flint.acb_mat([*map(list, zip(position, direction, strict=True)), [0, 0]])
        )
        self._mat = flint.acb_mat
        first, second = across.tolist()
        normal = [
            flint.arb(first[i]) * second[j] - flint.arb(first[j]) * second[i]
            for i, j in ((1, 2), (2, 0), (0, 1))
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
        values = zip(self._selected(reached), self._wanted, strict=True)
        return self._mat([[value - wanted] for value, wanted in values])

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
