# SPDX-License-Identifier: Apache-2.0
"""Random restarts of a local method: from the seed, from known poses near the goal, from random offsets."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ik_node import kernels
from ik_node.checks import Array
from ik_node.errors import InputError, safe_repr
from ik_node.extras import require
from ik_node.kernels.arrays import (
    DEVIATION,
    END_AT_LAST,
    FAMILY,
    ITERATIONS,
    KIND,
    POSITION_TOLERANCE,
    SIGNS,
    STALL,
    SWITCHES,
    WEIGHT,
)
from ik_node.kernels.language import specialised
from ik_node.model.arm import Arm, frozen
from ik_node.solver.goal import Goal
from ik_node.steady import steady

from .methods import METHODS

ITERATIONS_PER_CHECK = 1920  # at most, between two checks of the clock: about half a millisecond
WEIGHT_PER_REACH = 0.2  # one radian weighs as much as this share of the reach
KNOWN_POSES = 1024  # configurations with precomputed tool poses, to restart near the goal
CLOSEST_WEIGHTS = (1.0, 1e-1, 1e-2, 1e-3, 1e-4)  # times the usual weight
NEARBY_WEIGHTS = (1e-1, 1e-3)  # the same from a start that is close already


LANES = 'IK_NODE_LANES'  # environment variable: how many goals of a batch are solved at once at most; 0: one by one
MOST_LANES = 8


class Schedule(NamedTuple):
    """How the temperature of the random offsets falls before it is raised to 1 again.

    temperatures: number in a cycle. cooling: factor from one to the next. acceptance: increase of the
    weighted error, as a share of that of one radian, that is accepted with probability 1/e at temperature 1
    (Metropolis' rule); 0: only improvements are accepted.
    """

    temperatures: int
    cooling: float
    acceptance: float


SCHEDULES = {'greedy': Schedule(2, 0.5, 0.0), 'metropolis': Schedule(3, 0.5, 0.2)}


class SearchResult(NamedTuple):
    """Where a search ended: errors in m and rad at q, descents after the first, and why it ended."""

    solved: bool
    position_error: float
    direction_error: float
    restarts: int
    out_of_time: bool = False


def _most_lanes() -> int:
    given = os.environ.get(LANES, '')
    return int(given) if given.isdecimal() else MOST_LANES


class RandomRestarts:
    """The random-restart search for one arm."""

    def __init__(
        self,
        arm: Arm,
        method: str,
        position_tolerance: float,
        direction_tolerance: float,
        restarts: int,
        random_seed: int,
        schedule: str = 'greedy',
        method_options: Mapping[str, bool] | None = None,
    ) -> None:
        """Tolerances in m and rad. Raises InputError and MissingError."""
        if not isinstance(schedule, str) or schedule not in SCHEDULES:
            raise InputError(f'schedule must be one of {", ".join(SCHEDULES)}, got {safe_repr(schedule)}')
        self.method = METHODS[method]
        if self.method.needs:
            require(self.method.needs, f'method {method}')
        self.arm = arm
        self.direction_tolerance = direction_tolerance
        self.restarts = restarts
        self.random_seed = random_seed
        self._name, self._kernel, self.is_lm = method, f'search_{method}', method == 'lm'
        self.first_state = np.array([random_seed], dtype=np.uint64)
        self.options = search_options(
            method, arm.reach, position_tolerance, direction_tolerance, schedule, method_options
        )
        self.weight = float(self.options[WEIGHT])
        self._model = arm.joints, arm.tool, arm.limits
        # The restarts from known poses stay in one part, so that the table is read once.
        per_check = ITERATIONS_PER_CHECK // self.method.iterations
        self._part = 1 if self.method.module else max(kernels.INFORMED + 1, per_check)
        # A separate stream: goals drawn by default_rng(random_seed) must not be among the known poses.
        samples = arm.sample(np.random.default_rng((random_seed, KNOWN_POSES)), KNOWN_POSES)
        self.table = np.empty((arm.n + 6, KNOWN_POSES))
        kernels.tabulate_poses(arm.joints, arm.tool, samples, self.weight, self.table)

    def _search(self) -> Callable[..., tuple[int, float, float, bool]]:
        """The search of the method: a kernel, or for a method in Python the same source uncompiled."""
        if not self.method.module:
            return getattr(kernels, self._kernel)
        search = specialised(kernels.anneal, self._kernel, descend=self._descend())
        return np.errstate(all='ignore')(search)  # no overflow warnings, as in compiled code

    def _descend(self) -> Callable[..., int]:
        if not self.method.module:
            return getattr(kernels, f'local_{self._name}')
        return import_module(self.method.module).descend

    def met(self, position_error: float, direction_error: float, cone: float = 0.0) -> bool:
        """Whether errors in m and rad are within the tolerances, that of the direction added to a cone [rad]."""
        allowed = cone + self.direction_tolerance
        return bool(position_error <= self.options[POSITION_TOLERANCE] and direction_error <= allowed)

    def search(
        self, goal: Goal, q: Array, deadline: float, max_restarts: int | None = None, limits: Array | None = None
    ) -> SearchResult:
        """Search from q (n,), in place; deadline: steady() at which it gives up.

        max_restarts: if fewer than the budget allows. limits: if others than those of the arm.
        """
        model = self._model if limits is None else (*self._model[:2], limits)
        restarts_allowed = self.restarts if max_restarts is None else min(max_restarts, self.restarts)
        search, state = self._search(), self.first_state.copy()
        now = np.empty(len(q))
        first, part = 0, self._part if kernels.ready() else 1
        while True:
            last = min(first + part, restarts_allowed + 1)
            restarts, position_error, direction_error, solved = search(
                *model, goal.packed, self.options, self.table, first, last, state, now, q
            )
            if solved:
                return SearchResult(True, position_error, direction_error, restarts)
            out_of_time = steady() > deadline
            if out_of_time or last > restarts_allowed:
                return SearchResult(False, position_error, direction_error, restarts, out_of_time)
            first = last

    def search_many(
        self,
        form: Array,
        trusted: bool,
        goals: Array,
        shells: Array,
        max_restarts: int | None,
        seeds: Array,
        q: Array,
        errors: Array,
        solved: NDArray[np.bool_],
    ) -> None:
        """Solve those of goals (N, 9) that lm solves quickly, as kernels.solve_many; none by other methods.

        If search solves a goal before it first checks the clock, the bits are the same here, but for goals that
        kernels.nearest_in_lanes has solved: these are within 1e-9 rad.
        """
        solved[:] = False
        if not self.is_lm:
            return
        lanes = _most_lanes()
        if form[KIND, FAMILY] != 0.0 and form[SIGNS, DEVIATION] == 0.0 and lanes > 1 and kernels.ready():
            options = self.options[:SWITCHES]
            kernels.nearest_in_lanes(lanes, *self._model, form, goals, options, seeds, q, errors, solved)
        restarts_allowed = self.restarts if max_restarts is None else min(max_restarts, self.restarts)
        search = self.options, self.table, min(self._part, restarts_allowed + 1), self.random_seed
        kernels.solve_many(*self._model, form, trusted, goals, shells, *search, seeds, q, errors, solved)

    def approach(self, goal: Goal, q: Array, deadline: float, out_of_reach: bool = False) -> tuple[float, float]:
        """Find the closest configuration by the method from q (n,), in place. Returns both errors.

        Position first, then direction: from q and from random configurations, consecutive descents with a
        decreasing weight of the direction, the penalty form of the lexicographic problem. More starts follow
        while the position is not met and not known to be out of reach. deadline: as for search.
        """
        options, state, search = self.options.copy(), self.first_state.copy(), self._search()
        options[[ITERATIONS, STALL]] = self.method.thorough
        now = np.empty(len(q))
        starts, max_starts = self.method.starts
        enough, tolerance = starts, options[POSITION_TOLERANCE]
        kernels.clip(q, self.arm.limits)
        trial = q.copy()
        best, least = (math.inf, math.inf), math.inf
        for start in range(starts if out_of_reach else max_starts):
            if (start >= enough and least <= tolerance) or (start and steady() > deadline):
                break
            if start == starts:
                enough = 3 * starts
            if start > 0:
                kernels.perturb(q, self.arm.limits, 1.0, state, trial)
            for weight in CLOSEST_WEIGHTS:
                # Late starts minimise the position error alone, then align the axis as far as that allows.
                serves = start < starts or weight == CLOSEST_WEIGHTS[-1]
                options[WEIGHT] = self.weight * weight if serves else 0.0
                _, *errors, _ = search(*self._model, goal.packed, options, self.table, 0, 1, state, now, trial)
            nearer = errors[0] < least - tolerance
            if nearer or (errors[0] < least + tolerance and errors[1] < best[1]):
                best = errors[0], errors[1]
                q[:] = trial
            least = min(least, errors[0])
        return best

    def refine(self, goal: Goal, q: Array, largest_move: Array | None) -> tuple[float, float]:
        """Move q (n,), in place, to the closest configuration nearby, position first. Returns both errors.

        largest_move: (n,) of each joint [rad or m], None: any. No restarts: small motions of the goal give
        small motions of q, except where a local minimum ends.
        """
        limits = self.arm.limits
        if largest_move is not None:
            inside = np.clip(q, *limits[:2])
            low = np.maximum(limits[0], inside - largest_move)
            high = np.minimum(limits[1], inside + largest_move)
            limits = frozen(np.vstack([low, high, limits[2:]]))
        options, search, now = self.options.copy(), self._search(), np.empty(len(q))
        options[[ITERATIONS, STALL]] = self.method.thorough
        position_error = direction_error = math.inf
        for weight in NEARBY_WEIGHTS:
            options[WEIGHT] = self.weight * weight
            _, position_error, direction_error, _ = search(
                self.arm.joints, self.arm.tool, limits, goal.packed, options, self.table, 0, 1,
                self.first_state.copy(), now, q,
            )  # fmt: skip
        return position_error, direction_error

    def steps(self, goal: Goal, q: Array) -> Iterator[Array]:
        """Yield the joints (n,) of one descent from q (n,): at its start, after each iteration, at its end.

        Each repeats the descent with one more iteration, so that the arithmetic is that of a search.
        """
        options, descend, n = self.options.copy(), self._descend(), len(q)
        frames = np.empty((2 * len(self.arm.joints) + 3, 3))
        work = np.empty((3 * n + 4, max(n, 6)))
        options[END_AT_LAST] = 1.0
        joints = q.copy()
        kernels.clip(joints, self.arm.limits)
        yield joints
        for count in range(1, self.method.iterations + 1):
            options[ITERATIONS], joints = count, q.copy()
            done = descend(*self._model, goal.packed, options, joints, frames, work)
            if done < count:
                break
            yield joints
        options[END_AT_LAST], best = 0.0, q.copy()
        descend(*self._model, goal.packed, options, best, frames, work)
        if not np.array_equal(best, joints):
            yield best


def search_options(
    method: str,
    reach: float,
    position_tolerance: float,
    direction_tolerance: float,
    schedule: str,
    switches: Mapping[str, bool] | None = None,
) -> Array:
    """Return the options of kernels for a search by a method; reach [m] of the arm gives the weight."""
    # Descents compare chords; slightly less, so that the angle itself is within its tolerance.
    chord = 2.0 * math.sin(min(direction_tolerance, math.pi) / 2.0) * (1.0 - 1e-9)
    weight = WEIGHT_PER_REACH * max(reach, 1e-3)
    temperatures, cooling, acceptance = SCHEDULES[schedule]
    return np.array(
        [
            *(position_tolerance, chord, weight, METHODS[method].iterations, METHODS[method].stall),
            *(temperatures, cooling, acceptance * weight, 0.0),
            *_switches(method, {} if switches is None else switches),
        ]
    )


def _switches(method: str, given: Mapping[str, bool]) -> list[float]:
    """Return the switches of a method, in the order of its row, as numbers. Raises InputError for others."""
    known = METHODS[method].switches
    allowed = f'{", ".join(known)} (True or False)' if known else 'none'
    if not isinstance(given, Mapping):
        raise InputError(f'method_options must be a dictionary, got {safe_repr(given)}')
    wrong = [name for name, value in given.items() if name not in known or not isinstance(value, bool)]
    if wrong:
        raise InputError(
            f'method_options of {method} may be {allowed}, got {safe_repr(wrong[0])}: {safe_repr(given[wrong[0]])}'
        )
    return [float(given.get(name, True)) for name in known]
