# SPDX-License-Identifier: Apache-2.0
"""The configuration closest to a goal that cannot be met."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ik_node import kernels
from ik_node.checks import Array
from ik_node.kernels.arrays import (
    C1,
    C2,
    C5,
    DIRECTION,
    END,
    ITERATIONS,
    KIND,
    LINK1,
    LINK2,
    OFFSET,
    P0,
    POSITION_TOLERANCE,
    PRISMATIC,
    RATIO,
    SHIFT,
    SIZE,
    VARIABLE,
    WEIGHT,
)
from ik_node.kernels.closest import EQUAL
from ik_node.model.arm import Arm, frozen
from ik_node.solver.closed_form import ClosedForm, Family, with_roll
from ik_node.solver.goal import Goal
from ik_node.solver.restarts import RandomRestarts
from ik_node.solver.workspace_bounds import radial_bounds
from ik_node.steady import steady

RANGE = (1e-9, 1e9)  # m: no arm is smaller or larger
LENGTHS = [C1, C2, C5, END, LINK1, LINK2, P0]  # rows of a form


class UnitSize:
    """The arrays of an arm whose reach is about 1 in its unit of length.

    length [m]: the unit, a power of two, so that nothing is rounded. joints, tool, limits: as those of Arm,
    in that unit. units (n,): of the variables, length for prismatic ones, else 1. reach: that of the arm, in
    this unit.
    """

    def __init__(self, arm: Arm) -> None:
        reach = min(max(arm.reach, RANGE[0]), RANGE[1])
        self.length = length = 2.0 ** round(math.log2(reach))
        self.reach = reach / length
        self.units = frozen(np.where(arm.prismatic, length, 1.0))
        joints, tool, limits = arm.joints.copy(), arm.tool.copy(), arm.limits.copy()
        moves = np.where(joints[:, PRISMATIC] != 0.0, length, 1.0)
        joints[:, OFFSET] /= length
        joints[:, RATIO] *= self.units[joints[:, VARIABLE].astype(int)] / moves
        joints[:, SHIFT] /= moves
        tool[:3] /= length
        limits[:2] /= self.units
        self.joints, self.tool, self.limits = frozen(joints), frozen(tool), frozen(limits)

    def goal(self, packed: Array) -> Array:
        """Return goal (9,) in this unit."""
        scaled = packed.copy()
        scaled[:3] /= self.length
        return scaled

    def form(self, constants: Array) -> Array:
        """Return the constants (14, 3) of a closed form in this unit."""
        scaled = constants.copy()
        scaled[LENGTHS] /= self.length
        scaled[KIND, SIZE] /= self.length
        return frozen(scaled)


KNOWN = 2048  # configurations, the same for every goal and seed
CLUSTERS = 64  # of these configurations; a search starts from one of each
MAX_CORNERED = 7  # with up to so many joints, configurations with every joint at a limit are among them


class KnownPoses:
    """table (n + 6, KNOWN): configurations with tool poses, as in kernels.tabulate_poses, cluster by cluster.

    In the unit of UnitSize. Each is in the cluster of the nearest of CLUSTERS configurations that are far
    from each other.
    """

    def __init__(self, arm: Arm, size: UnitSize, random_seed: int) -> None:
        samples = arm.sample(np.random.default_rng((random_seed, KNOWN)), KNOWN)
        if arm.n <= MAX_CORNERED and not arm.has_cones:  # where limits stop many joints, a corner is nearest
            ends = np.array([samples.min(axis=0), samples.max(axis=0)])
            ends = np.where(np.isfinite(arm.limits[:2]), arm.limits[:2], ends)
            samples[: 2**arm.n] = list(itertools.product(*ends.T))
        span = np.ptp(samples, axis=0)
        scaled = (samples / np.where(span > 0.0, span, 1.0)).T.copy()
        nearest, cluster, centre = np.full(KNOWN, np.inf), np.zeros(KNOWN, dtype=np.int64), 0
        for number in range(CLUSTERS):
            distance = np.abs(scaled - scaled[:, centre, None]).max(axis=0)
            cluster[distance < nearest] = number
            nearest = np.minimum(nearest, distance)
            centre = int(nearest.argmax())
        self.table = np.empty((arm.n + 6, KNOWN))
        ordered = samples[np.argsort(cluster, kind='stable')] / size.units
        kernels.tabulate_poses(size.joints, size.tool, ordered, 1.0, self.table)
        self._ends = np.cumsum(np.unique(cluster, return_counts=True)[1])

    def ranked(self, goal: Array, weight: float) -> NDArray[np.int64]:
        """Return the column of each cluster that is nearest to goal (9,), nearest first.

        weight [m/rad]: of the direction.
        """
        ranked = np.empty(len(self._ends), dtype=np.int64)
        kernels.rank_starts(self.table, self._ends, goal, weight, np.empty(KNOWN), ranked)
        return ranked


WIDE = (0.3, 0.03, 3e-3, 1e-4, 1e-5)  # decreasing weights, times the reach: the direction dominates at first
NARROW = (0.02, 1e-3, 1e-4, 1e-5)  # the position dominates throughout
RANKING = 0.1  # times the reach: the weight of the direction where starts are chosen
REACHED = 1e-6  # share of the reach: below this position error a self-motion is left for the direction
STARTS_PER_CHECK = 16  # between two checks of the clock, a fifth of a millisecond
FAR = 1e6  # times the reach: goals farther away are moved to this distance, so that squares stay finite
TABLE = 64  # rows that the formula may fill
ROUGH = 6.0  # iterations of Levenberg and Marquardt before those of Newton
DIRECTED = 8  # starts for the position that also have about the right direction
KEPT = 16  # equally close ones that are kept


@dataclass(frozen=True, eq=False)
class ClosestConfiguration:
    """q (n,), its errors in m and rad, and in_place: whether the formula reaches the position.

    in_place is None if no formula was used.
    """

    q: Array
    position_error: float
    direction_error: float
    in_place: bool | None


class ClosestSearch:
    """Finds the least position error beyond its tolerance, and then the least direction error.

    Remaining freedom is used to stay near the seed. The position is minimised first and alone, so that its
    error depends neither on the direction nor on the seed: by formula if axes 2, 3, 4 are parallel, else by
    descents until another minimum is unlikely (see docs).
    Of a method other than lm, descents of that method alone find it, for comparison of methods.
    direction_weight [m/rad]: minimise position_error^2 + (direction_weight * direction_error)^2 instead.
    Inside, lengths are in the unit of UnitSize: a larger arm has the same directions. equal [m]: position
    errors that differ by less are equally good. opened: the limits, infinite where a joint turns all the way
    round. narrow: the weights of the direction, the last the least.
    """

    def __init__(self, search: RandomRestarts, form: ClosedForm | None, direction_weight: float | None) -> None:
        """search: provides the arm, the random seed and the local method. form: of the arm, or with_roll."""
        arm = search.arm
        self.arm = arm
        self.search = search
        self._size = size = UnitSize(arm)
        self.equal = EQUAL * size.length
        self._form = size.form(form.constants) if form is not None and form.family is not Family.WRIST else None
        self.direction_weight = direction_weight
        reach = size.reach
        if direction_weight is None:
            self._wide, self.narrow = reach * np.array(WIDE), reach * np.array(NARROW)
        else:
            weight = direction_weight / size.length
            falling = [reach * larger for larger in WIDE if reach * larger > weight]
            self._wide = self.narrow = np.array([*falling, weight])
        self._ranking = RANKING * reach
        self._tolerance = float(search.options[POSITION_TOLERANCE]) / size.length
        self._rough = search.options.copy()
        self._rough[POSITION_TOLERANCE] = self._tolerance
        self._alone = self._rough.copy()  # without the direction
        self._rough[ITERATIONS] = self._alone[ITERATIONS] = ROUGH
        self._rough[WEIGHT], self._alone[WEIGHT] = self.narrow[0], 0.0
        self._far = FAR * reach
        self._shells = frozen(radial_bounds(arm) / size.length)
        # Limits a whole turn or more apart do not stop a descent: the result is wrapped back into them.
        whole_turns = (arm.period > 0.0) & (arm.upper - arm.lower >= arm.period)
        in_balls = [name for ball in arm.balls if ball.limited for name in ball.joints]
        whole_turns &= ~np.isin(arm.joint_names, in_balls)  # the twist of a ball may be a sum of two joints
        opened = np.where(whole_turns, [[-math.inf], [math.inf]], size.limits[:2])
        self.opened = frozen(np.vstack([opened, size.limits[2:]]))
        self._unlimited = without_stops(size.limits, arm.period)

    def find(
        self,
        goal: Goal,
        seed: Array,
        found: Array,
        deadline: float = math.inf,
        beyond: bool = False,
        ignore_limits: bool = False,
    ) -> ClosestConfiguration:
        """Return the closest configuration to goal, near seed (n,); found (n,) is one more start.

        deadline: steady() after which the numeric search starts no more descents. beyond: the
        position is known to be out of reach. ignore_limits: of revolute joints, and where no formula serves,
        also the direction.
        """
        if not self.search.is_lm:
            q = found.copy()
            return ClosestConfiguration(q, *self.search.approach(goal, q, deadline, beyond), None)
        arm, size, whole = self.arm, self._size, self._size.goal(goal.packed)
        packed, start = self._brought_near(whole), seed / size.units
        limits, opened = (self._unlimited, self._unlimited) if ignore_limits else (size.limits, self.opened)
        in_place = None
        if self._form is not None and self.direction_weight is None:
            joints, tool, period, arrays = size.joints, size.tool, arm.period, [limits, opened, start]
            arrays.append(found / size.units)
            if arm.n == 4:
                joints, tool = with_roll(joints, tool)
                period = np.append(period, 0.0)
                arrays = [np.concatenate([one, np.zeros_like(one[..., :1])], axis=-1) for one in arrays]
            limits, opened, *starts = arrays
            table, errors = np.empty((TABLE, 5)), np.empty((TABLE, 2))
            model = joints, tool, limits, opened, period, self._form
            count, in_place = kernels.closest_parallel(*model, packed, self.narrow, *starts, table, errors)
            table = np.ascontiguousarray(table[:, : arm.n])
        else:
            given = np.array([start, found / size.units])
            table, errors, count = self._searched(packed, opened, given, deadline, beyond, ignore_limits)
            kernels.wrap_rows_into_limits(limits, arm.period, start, table, count)
        if self.direction_weight is not None:
            errors[:, 0], errors[:, 1] = np.hypot(errors[:, 0], self.narrow[-1] * errors[:, 1]), 0.0
        tolerance = self._tolerance if self.direction_weight is None else 0.0
        q = table[kernels.best_row(errors, table, count, start, tolerance)].copy()
        kernels.keep_unused_joints(size.joints, size.tool, limits, whole, start, q)
        q *= size.units
        position_error, direction_error = kernels.goal_errors(arm.joints, arm.frames(q), goal.packed)
        return ClosestConfiguration(q, position_error, direction_error, in_place)

    def _searched(
        self, goal: Array, limits: Array, given: Array, deadline: float, beyond: bool, ignore_limits: bool
    ) -> tuple[Array, Array, int]:
        """Minimise without a formula, from given (seed, found): see _multistart and find."""
        if self.direction_weight is not None:
            return self._multistart(goal, limits, given, deadline, math.inf)
        size, bound = self._size, kernels.least_possible(self._shells, goal)
        table, errors, count = self._nearest_positions(goal, limits, bound, given, deadline)
        if ignore_limits:
            return table, errors, count
        if beyond or errors[:count, 0].min() > REACHED:
            count = kernels.closest_out_of_reach(
                size.joints, size.tool, limits, goal, self.narrow, given[0], table, errors, count
            )
        elif not math.isnan(goal[DIRECTION]):
            nearest, error = table[:1], errors[0]
            starts = np.vstack([given, nearest, given[1]])  # found with either weights
            table, errors, count = self._multistart(goal, limits, starts, deadline, 0.0)
            table[count], errors[count] = nearest, error  # in case every descent has lost the position
            count += 1
        return table, errors, count

    def within(self, goal: Goal, seed: Array, given: Array, deadline: float = math.inf) -> Array | None:
        """Return joints (n,) that meet goal within both tolerances, None if descents find none.

        For goals that no configuration meets exactly, which find misses if the closest position is elsewhere.
        given (k, n): where descents start beside known configurations. seed (n,): decides what is left free.
        deadline: as for find.
        """
        arm, size = self.arm, self._size
        packed, given = size.goal(goal.packed), given / size.units
        ranked = self._known.ranked(packed, 0.0 if math.isnan(packed[DIRECTION]) else self._ranking)
        total = len(given) + len(ranked)
        model, starts = (size.joints, size.tool, self.opened), (given, self._known.table, ranked)
        within = self._rough, self.search.direction_tolerance
        marks, q, step = np.empty((total, arm.n)), np.empty(arm.n), _starts_per_check()
        for first in range(0, total, step):
            last = min(first + step, total)
            if kernels.meet_tolerances(*model, packed, *within, *starts, first, last, marks, q):
                kernels.wrap_rows_into_limits(size.limits, arm.period, seed / size.units, q[None], 1)
                return q * size.units
            if steady() > deadline:
                break
        return None

    @cached_property
    def _known(self) -> KnownPoses:
        return KnownPoses(self.arm, self._size, self.search.random_seed)

    def _nearest_positions(
        self, goal: Array, limits: Array, bound: float, given: Array, deadline: float
    ) -> tuple[Array, Array, int]:
        """Minimise the position error from given (k, n): (table, errors (j, 2), number of rows).

        bound [m]: lower bound of that error. The tables have room for twice as many rows plus one.
        """
        size, n = self._size, self.arm.n
        table, errors = np.empty((2 * KEPT + 1, n)), np.empty((2 * KEPT + 1, 2))
        ranked, progress = self._known.ranked(goal, 0.0), np.zeros(3, dtype=np.int64)
        if not math.isnan(goal[DIRECTION]):  # of equally close positions, those with about this direction
            ranked = np.concatenate([self._known.ranked(goal, self._ranking)[:DIRECTED], ranked])
        task = size.joints, size.tool, limits, goal, self._alone, bound
        starts, kept = (self._known.table, ranked, given), (table[:KEPT], errors[:KEPT])
        ended = False
        while not ended:
            ended = kernels.nearest_positions(*task, *starts, _starts_per_check(), progress, *kept)
            ended = ended or steady() > deadline
        return table, errors, int(progress[1])

    def _multistart(
        self, goal: Array, limits: Array, given: Array, deadline: float, least: float
    ) -> tuple[Array, Array, int]:
        """Minimise both errors at once from given (k, n): (table (j, n), errors (j, 2), number of rows < j).

        least [m]: the smallest position error known to be attainable, infinite for a direction_weight.
        """
        size, n = self._size, self.arm.n
        ranked = self._known.ranked(goal, 0.0 if math.isnan(goal[DIRECTION]) else self._ranking)
        total = len(given) + len(ranked)
        table, errors, marks = np.empty((total + 3, n)), np.empty((total + 3, 2)), np.empty((total, n))
        task = size.joints, size.tool, limits, goal, self._rough, self._wide, self.narrow
        starts, rows = (given, self._known.table, ranked), (table, errors, marks)
        count, step = 0, _starts_per_check()
        for first in range(0, total, step):
            last = min(first + step, total)
            count = kernels.multistart(*task, *starts, first, last, *rows, count, least)
            if steady() > deadline:
                break
        return table, errors, count

    def _brought_near(self, goal: Array) -> Array:
        """Return goal (9,) with a position that is at most FAR reaches away."""
        base = self._size.joints[0, OFFSET]
        distance = math.dist(goal[:DIRECTION], base)
        if distance <= self._far:
            return goal
        near = goal.copy()
        near[:DIRECTION] = base + self._far * (goal[:DIRECTION] / distance - base / distance)
        return near


def without_stops(limits: Array, period: Array) -> Array:
    """Return the limits (2, n) of joints without stops but those of prismatic ones; limits (2 or more, n)."""
    return frozen(np.where(period > 0.0, [[-math.inf], [math.inf]], limits[:2]))


def _starts_per_check() -> int:
    return STARTS_PER_CHECK if kernels.ready() else 1
