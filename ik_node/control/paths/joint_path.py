# SPDX-License-Identifier: Apache-2.0
"""JointPath: the joints along a stretch of a tool path, on one branch of solutions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ik_node.checks import Array
from ik_node.control.paths.splines import Curve
from ik_node.control.paths.tool_path import Stretch
from ik_node.errors import IkError
from ik_node.solver.goal import Goal
from ik_node.solver.solver import IkSolver

ACCURACY = (2e-4, float(np.radians(0.1)))  # [m, rad] within which the tool keeps to the path
EXACT = 0.1  # share of ACCURACY that the curve between two solutions may take
FIRST_STEP, LARGEST_STEP, LEAST_STEP = 1.0 / 64.0, 1.0 / 24.0, 1e-6  # of s
LARGE_MOVE, SMALL_MOVE = 0.12, 0.04  # [rad, or as a share of the reach] of a joint in one step
MOST_SITES = 400
NEAREST = 60  # steps to the configuration with the least errors
ROUNDS = 8
BETWEEN = np.array([0.2, 0.4, 0.6, 0.8])  # positions between two sites at which the curve is checked
SLACK = 5e-7  # [rad, m] by which it may exceed a limit between sites
OTHER_SITES = 200  # for the choice of another branch
SINGULAR = 'so near to a singularity that the joints cannot follow smoothly'
INTRICATE = 'from here on it bends too sharply or too often, or a singularity is too near'


class PathEndsError(IkError):
    """A segment cannot be followed beyond s, for this reason."""

    def __init__(self, s: float, reason: str) -> None:
        super().__init__(reason)
        self.s = s


class JointPath:
    """The joints q(s) of a segment as a spline through exact solutions at sites (k,), rows (k, n)."""

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
                if len(sites) > MOST_SITES:
                    raise PathEndsError(sites[-1], INTRICATE)
            elif step > LEAST_STEP:
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
                raise PathEndsError(
                    float(sites[max(off[0] - 1, 0)]), self._why(float(sites[off[0]]), rows[off[0]])
                )
            between = (sites[:-1, None] + np.diff(sites)[:, None] * BETWEEN).ravel()
            q = Curve(sites, rows)(between)[0]
            errors = self._errors(between, q).reshape(-1, len(BETWEEN))
            beyond = (np.maximum(arm.lower - q, q - arm.upper) > SLACK).any(axis=1).reshape(errors.shape)
            # Solutions within the tolerance need not be exact: what the curve adds to their error counts.
            allowed = EXACT + np.maximum(exact[:-1], exact[1:])
            k = np.flatnonzero((errors > allowed[:, None]).any(axis=1) | beyond.any(axis=1))
            if not len(k):
                return sites, rows
            if len(sites) + len(k) > MOST_SITES:
                break
            sites, rows = self._with(sites, rows, k)
        raise PathEndsError(float(sites[k[0]]), INTRICATE if len(sites) + len(k) > MOST_SITES else SINGULAR)

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
