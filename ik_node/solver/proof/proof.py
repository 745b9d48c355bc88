# SPDX-License-Identifier: Apache-2.0
"""All solutions of a goal proven by interval arithmetic: five joints, goals with a direction.

As many regular complex solutions as there can be at most, each enclosed, leave no room for another: near any
other, singular or of a family, goals nearby would have a regular one in addition to those enclosed, which
persist. The arm is that of its numbers in double precision, axes and direction brought to unit length
exactly; tolerances do not count.

The proof rests on FLINT, on the bounds of solution_bounds.py, on
enclosures.py and on this file, not on the numerical search for the solutions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from threading import TIMEOUT_MAX, Lock
from weakref import WeakKeyDictionary

import numpy as np

from ik_node import kernels
from ik_node.checks import Array
from ik_node.kernels.arrays.layout import DIRECTION, LATERAL, SWITCHES
from ik_node.kernels.arrays.rotation import ROOT_SLACK
from ik_node.model.arm import Arm
from ik_node.solver.elimination.task_joints import chain_of
from ik_node.solver.goal import Goal
from ik_node.solver.proof.complex_solutions import ComplexSolutions, OutOfTimeError, check_time
from ik_node.solver.proof.enclosures import Enclosing, Enclosure
from ik_node.solver.proof.exact_geometry import geometry_of, special_nearby
from ik_node.solver.proof.solution_bounds import GENERAL, most_solutions
from ik_node.steady import steady

ROUNDING = 1e-15  # of goals, share of the reach and rad: real solutions have to outlast that
MOST_LIMIT = 1e6  # rad or m: up to there ROOT_SLACK is far more than rounding
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
            return self._unproven(
                arm, distinct, 'the geometry is too far from the special one that it nearly has'
            )
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
        if not near > ROOT_SLACK + solution.radius or not max(abs(low), abs(high)) < MOST_LIMIT:
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
    late = Proof(
        False, np.empty((0, arm.n)), np.empty(0), 0, 0, f'the time budget of {time_budget:g} s is used up'
    )
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
