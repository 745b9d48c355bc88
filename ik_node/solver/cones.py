# SPDX-License-Identifier: Apache-2.0
"""Goals whose direction may lie anywhere in a cone: the solution nearest to the seed, and the next one on a way."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from ik_node import kernels
from ik_node.checks import Array
from ik_node.kernels.arrays import (
    C1,
    D0,
    DIRECTION,
    FREE_ROLL,
    KIND,
    LATERAL,
    P0,
    POSITION_TOLERANCE,
    SIZE,
    W1,
    WEIGHT,
    U,
)
from ik_node.kernels.methods.driver import AIM
from ik_node.model.rotations import rotations
from ik_node.solver.closed_form import RESIDUAL_MARGIN, ROLL_TOLERANCE, ClosedForm
from ik_node.solver.goal import SOLVED, Cause, Goal, Reason, Solution, Solve, Status
from ik_node.solver.restarts import RandomRestarts
from ik_node.solver.unreachable import UnreachableGoals
from ik_node.steady import steady

from .pipeline import FEW_RESTARTS, errors_of
from .redundancy import is_redundant

SPREAD = 64  # directions all over a cone, at which the formula is asked
BETWEEN = 3  # of the best of them, those between which and their neighbours it is asked too
ON_ARC = 24  # the same on each arc of an arm that takes only some directions at a position
AROUND = 16  # angles of joint 1 for positions on its axis, where any will do
STARTS = 6  # of descents to the nearest solution: the nearest of those, or of known poses near the position
OTHERS = 6  # the same, but APART [rad or m] in a joint
APART = 0.3
FAR = 0.3  # reaches: a known pose this far from the position counts as much as one a radian farther from the seed
PIECES = (1, 4, 16)  # of the way to the next goal
LARGEST_MOVE = 0.1  # [rad or m] of a joint in one of them; a larger one is another branch


class ConeGoals:
    """Solves goals with a cone, for one arm, by method lm."""

    def __init__(
        self,
        search: RandomRestarts,
        form: ClosedForm | None,
        position_form: ClosedForm | None,
        unreachable: UnreachableGoals,
    ) -> None:
        """form: of the arm; position_form: the same, or with_roll."""
        self._arm, self._search, self._form, self._unreachable = search.arm, search, form, unreachable
        self._model = search.arm.joints, search.arm.tool, search.arm.limits
        self._exact = search.options.copy()  # or what is nearest would use up the tolerances
        self._exact[:WEIGHT] = np.minimum(self._exact[:WEIGHT], AIM)
        has_planes = position_form is not None and position_form.constants[KIND, FREE_ROLL] != 0.0
        self._planes = ArmPlanes(position_form.constants) if position_form is not None and has_planes else None
        self._planes_decide = position_form is not None and position_form.deviation < ROLL_TOLERANCE
        turns = math.pi * (3.0 - math.sqrt(5.0)) * np.arange(SPREAD)  # as fibonacci_sphere
        self._pattern = np.arange(SPREAD) / (SPREAD - 1.0), np.cos(turns), np.sin(turns)

    def solve(self, goal: Goal, seed: Array, budget: float, solve: Solve) -> Solution:
        """Find the solution of goal nearest to seed (n,), or the closest configuration; see IkSolver.solve.

        solve: (goal, seed, time budget) -> Solution, of goals without a cone.
        """
        deadline = steady() + budget
        alone = Goal.unpacked(goal.packed)
        if self._unreachable.by_reach(goal) is not None:
            return solve(alone, seed, budget)
        packed, q, restarts = np.append(goal.packed, goal.cone), seed.copy(), 0
        found = self._nearest(packed, seed, self._starts(goal, seed), q)
        if not found:
            restarts, found = self._searched(packed, q, FEW_RESTARTS)
            plain = None if found else solve(alone, seed, max(deadline - steady(), 1e-9))
            if plain is not None:
                found = self._search.met(plain.position_error, plain.direction_error, goal.cone)
                if not found:
                    return self._missed(goal, seed, plain, deadline, solve)
                q = plain.q.copy()
            self._nearest(packed, seed, q[None].copy(), q)
        errors = errors_of(self._arm, goal.packed, q)
        return Solution(SOLVED, q, *errors, None, restarts, is_redundant(self._arm, goal))

    def advance(self, goal: Goal, q: Array, limits: Array | None = None) -> bool:
        """Move q (n,) to goal, in place, as little as it takes; whether a continuous motion leads there.

        limits: if others than those of the arm. If the branch ends, q stays as it is.
        """
        position, axis = self._arm.fk(q)
        packed = np.append(goal.packed, goal.cone)
        way = packed[:DIRECTION] - position
        turn = max(kernels.angle_between(axis, packed[DIRECTION:LATERAL]) - goal.cone, 0.0)
        for pieces in PIECES:
            ahead, now = q.copy(), q.copy()
            for left in np.arange(pieces - 1, -1, -1) / pieces:
                target, now = packed.copy(), ahead.copy()
                target[:DIRECTION] -= left * way
                target[kernels.CONE] += left * turn
                found = self._searched(target, ahead, 0, limits)[1]
                if not found or np.abs(ahead - now).max() > LARGEST_MOVE:
                    break
            else:
                q[:] = ahead
                return True
        return False

    def _nearest(self, packed: Array, seed: Array, starts: Array, q: Array) -> bool:
        """Write the solution nearest to seed that descents from starts (k, n) find into q (n,); if there is one."""
        return bool(kernels.nearest_in_cone(*self._model, packed, self._exact, seed, starts, q) < math.inf)

    def _searched(self, packed: Array, q: Array, restarts: int, limits: Array | None = None) -> tuple[int, bool]:
        """Search from q (n,), in place; return the restarts, and whether goal (10,) is met."""
        search = self._search
        model = self._model if limits is None else (*self._model[:2], limits)
        state, allowed, near = search.first_state.copy(), min(restarts, search.restarts), q.copy()
        done, _, _, solved = kernels.search_cone(
            *model, packed, search.options, search.table, 0, allowed + 1, state, np.empty(len(q)), q
        )
        if solved:
            kernels.wrap_rows_into_limits(model[2], self._arm.period, near, q[None], 1)
        return done, solved

    def _starts(self, goal: Goal, seed: Array) -> Array:
        """Return configurations (k, n) from which descents begin, the nearest to seed first, and seed at last."""
        n = self._arm.n
        if self._form is None:
            table = self._search.table
            places, found = table[n : n + DIRECTION], table[:n].T.copy()
            kernels.wrap_rows_into_limits(self._arm.limits, self._arm.period, seed, found, len(found))
            gaps = np.sqrt(np.square(places - goal.packed[:DIRECTION, None]).sum(axis=0))
            return self._spread(found, seed, np.abs(found - seed).max(axis=1) + gaps / (FAR * self._arm.reach))
        if self._planes is not None:
            arcs = [arc.directions(goal.cone) for arc in self._planes.arcs(goal, 0.0)]
            found = self._by_formula(goal, np.vstack(arcs), seed)[0]
            return self._spread(found, seed, np.abs(found - seed).max(axis=1))
        axis = goal.packed[DIRECTION:LATERAL]
        found, directions = self._by_formula(goal, self._around(axis, goal.cone), seed)
        order = np.abs(found - seed).max(axis=1).argsort()
        centres, apart = list[Array](), math.acos(1.0 - (1.0 - math.cos(goal.cone)) / SPREAD)  # its cap is one share
        for direction in directions[order]:
            if all(direction @ other < math.cos(3.0 * apart) for other in centres):
                centres.append(direction)
            if len(centres) == BETWEEN:
                break
        if centres:
            between = np.vstack([self._around(direction, 1.5 * apart)[1::4] for direction in centres])
            between = between[between @ axis >= math.cos(goal.cone)]
            found = np.vstack([found, self._by_formula(goal, between, seed)[0]])
        return self._spread(found, seed, np.abs(found - seed).max(axis=1))

    def _by_formula(self, goal: Goal, directions: Array, seed: Array) -> tuple[Array, Array]:
        """Return solutions (k, n) near seed at the position of goal, for those of directions (k, 3) that have any."""
        assert self._form is not None
        rows = np.full((len(directions), 9), np.nan)
        rows[:, :DIRECTION], rows[:, DIRECTION:LATERAL] = goal.packed[:DIRECTION], directions
        found, errors = np.empty((len(rows), self._arm.n)), np.empty((len(rows), 2))
        solved, shells = np.empty(len(rows), dtype=np.bool_), self._unreachable.shells
        self._search.search_many(self._form.constants, True, rows, shells, 0, seed[None], found, errors, solved)
        return found[solved], directions[solved]

    def _spread(self, rows: Array, seed: Array, moves: Array) -> Array:
        """Return those of rows (k, n) with the least moves (k,), others that are apart, and seed (n,)."""
        rows = rows[moves.argsort()]
        left, kept = rows, list(rows[:STARTS])
        while len(left) and len(kept) < STARTS + OTHERS:
            left = left[np.abs(left - left[0]).max(axis=1) > APART]
            kept += list(left[:1])
        return np.array([*kept, seed])

    def _around(self, axis: Array, cone: float) -> Array:
        """Return SPREAD directions (k, 3) within cone [rad] of axis (3,)."""
        share, cosines, sines = self._pattern
        x, y = normals(axis)
        along = 1.0 - share * (1.0 - math.cos(cone))  # the first at the axis, the last at the edge
        across = np.sqrt(1.0 - along * along)
        return along[:, None] * axis + (across * cosines)[:, None] * x + (across * sines)[:, None] * y

    def _missed(self, goal: Goal, seed: Array, plain: Solution, deadline: float, solve: Solve) -> Solution:
        """Return why no solution was found; plain: what solve returns for the axis of the cone."""
        tolerance, outside = self._search.options[POSITION_TOLERANCE], plain.direction_error - goal.cone
        if plain.reason is not None and plain.reason.cause is Cause.TIME:
            return plain
        sentence = f'no solution found in the cone from the seed and {plain.restarts} random restarts'
        if plain.position_error > tolerance:
            position = solve(Goal(goal.position), seed, max(deadline - steady(), 1e-9))
            if position.status is Status.UNREACHABLE:
                return replace(plain, status=position.status, reason=position.reason)
        else:
            closest = f'the closest direction found at this position is {outside:.4g} rad outside the cone'
            if self.is_outside(goal):
                reason = Reason(Cause.DIRECTION_CONSTRAINED, outside, closest)
                return replace(plain, status=Status.UNREACHABLE, reason=reason)
            sentence = f'{sentence}; {closest}'
        reason = Reason(Cause.SEARCH_ENDED, plain.restarts, sentence)
        return replace(plain, status=Status.NOT_FOUND, reason=reason)

    def is_outside(self, goal: Goal) -> bool:
        """Whether all directions that the arm can take at the position are outside the cone, by joint 1 alone.

        A goal without a cone has one of no width. False where that is not known, as for arms with five effective DoF.
        """
        if self._planes is None or not self._planes_decide or math.isnan(goal.packed[DIRECTION]):
            return False
        low, high = self._arm.limits[:2, 0]
        tolerance = float(self._search.options[POSITION_TOLERANCE])
        for arc in self._planes.arcs(goal, tolerance):
            margin = arc.doubt + RESIDUAL_MARGIN
            turned, turn = arc.angle, 2.0 * math.pi
            if math.isfinite(low):
                turned += turn * math.ceil((low - margin - arc.angle) / turn)
            if turned <= high + margin and arc.least <= goal.cone + self._search.direction_tolerance + margin:
                return False
        return True


def normals(axis: Array) -> tuple[Array, Array]:
    """Return two unit vectors (3,) normal to a unit axis (3,) and to each other."""
    x = np.zeros(3)
    x[np.abs(axis).argmin()] = 1.0
    x -= (axis @ x) * axis
    x /= math.sqrt(x @ x)
    return x, cross(axis, x)


def cross(a: Array, b: Array) -> Array:
    """Return the cross product of two vectors (3,); numpy's takes ten times as long."""
    (x, y, z), (u, v, w) = a.tolist(), b.tolist()
    return np.array([y * w - z * v, z * u - x * w, x * v - y * u])


class Arc:
    """Directions that the tool axis takes while joint 1 stays: those at one angle to axes 2, 3 and 4.

    angle [rad]: of joint 1. doubt [rad]: by how much a position error within the tolerance changes it. least [rad]:
    the angle between the nearest of these directions and that of the goal.
    """

    def __init__(self, angle: float, doubt: float, normal: Array, cosine: float, direction: Array) -> None:
        """normal (3,): axis 2. cosine: of the angle between it and the tool axis. direction (3,): of the goal."""
        self.angle, self.doubt, self._normal, self._cosine = angle, doubt, normal, cosine
        along = float(normal @ direction)
        self._sine = math.sqrt(max(1.0 - cosine * cosine, 0.0))
        across = math.sqrt(max(1.0 - along * along, 0.0))
        # Direction t from the nearest one: its cosine with the goal's is cosine * along + sine * across * cos t.
        self._level, self._swing = cosine * along, self._sine * across
        self.least = abs(math.acos(min(max(along, -1.0), 1.0)) - math.acos(min(max(cosine, -1.0), 1.0)))
        self._towards = (direction - along * normal) / across if across > 1e-9 else normals(normal)[0]

    def directions(self, cone: float) -> Array:
        """Return directions (k, 3) along the part within cone [rad] of the goal's; none if there is none."""
        if self.least > cone:
            return np.empty((0, 3))
        least = (math.cos(cone) - self._level) / self._swing if self._swing > 1e-9 else -1.0
        t = math.acos(min(max(least, -1.0), 1.0)) * np.linspace(-1.0, 1.0, ON_ARC)
        plane = np.array([self._towards, cross(self._normal, self._towards)])
        return self._cosine * self._normal + self._sine * np.column_stack([np.cos(t), np.sin(t)]) @ plane


class ArmPlanes:
    """The directions at a position, of an arm with axes 2, 3, 4 parallel whose last joint only rolls the tool."""

    def __init__(self, constants: Array) -> None:
        """constants (14, 3): of the closed form."""
        self._axis, self._base, self._normal = constants[W1], constants[C1], constants[U]
        self._height = float(self._normal @ (constants[P0] - self._base))
        self._cosine, self._size = float(self._normal @ constants[D0]), float(constants[KIND, SIZE])

    def arcs(self, goal: Goal, tolerance: float) -> list[Arc]:
        """Return them for each angle of joint 1; tolerance [m]: of the position.

        With n axis 2 as joint 1 turns it and x from axis 1 to the position, n . x is that of the zero pose: no joint
        after it moves the tool along axis 2. It is a + length cos(q1 - phase).
        """
        w, u = self._axis, self._normal
        x = goal.packed[:DIRECTION] - self._base
        a = float((w @ u) * (w @ x))
        b, c = float(u @ x) - a, float(x @ cross(w, u))
        length, phase = math.hypot(b, c), math.atan2(c, b)
        if length < ROLL_TOLERANCE * self._size + tolerance:
            angles, doubt = np.linspace(-math.pi, math.pi, AROUND, endpoint=False), math.pi
        else:
            cosine = (self._height - a) / length
            turns = [math.acos(min(max(cosine + by * tolerance / length, -1.0), 1.0)) for by in (-1.0, 0.0, 1.0)]
            angles, doubt = phase + np.array([turns[1], -turns[1]]), max(turns[0] - turns[1], turns[1] - turns[2])
        turned = rotations(w, angles) @ u
        direction = goal.packed[DIRECTION:LATERAL]
        return [
            Arc(angle, doubt, normal, self._cosine, direction)
            for angle, normal in zip(angles.tolist(), turned, strict=True)
        ]
