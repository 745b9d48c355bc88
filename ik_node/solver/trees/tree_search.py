# SPDX-License-Identifier: Apache-2.0
"""TreeSearch: one search over all joints for several tools at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ik_node import kernels
from ik_node.checks import Array
from ik_node.kernels.arrays.layout import ITERATIONS, POSITION_TOLERANCE, STALL, WEIGHT
from ik_node.model.arm import frozen
from ik_node.model.tree import Tree
from ik_node.solver.methods.registry import METHODS
from ik_node.solver.pipeline import errors_of
from ik_node.solver.trees.clock import Clock

# Of the usual weight of a direction, one after the other: so positions come first.
LADDER = (1.0, 1e-1, 1e-2, 1e-3, 1e-5)
KERNELS = {'lm': 'search_tree', 'transpose': 'search_tree_transpose'}  # the local methods
STARTS = 24  # random starts for the closest configuration
CLOSE = 6  # of those that are close already, as many are improved
DESCENTS_PER_CHECK = 16  # of the clock: about a millisecond


class TreeSearch:
    """Bounded descents of all joints (n,) of a tree towards goals (K, 9) of some of its tools."""

    def __init__(
        self, tree: Tree, names: Sequence[str], method: str, options: Array, random_seed: int
    ) -> None:
        """names: of the tools, in the order of the goals. method: one of KERNELS. options: of kernels."""
        self._tree, self._names, self._options, self._random_seed = tree, names, options, random_seed
        chains = [tree.renumbered(name, tree.arms[name].joints) for name in names]
        self._model = (
            frozen(np.vstack(chains)),
            frozen(np.array([tree.arms[name].tool for name in names])),
            np.cumsum([0, *map(len, chains)]),
        )
        self._branches = branches([tree.columns[name] for name in names], tree.n)
        self._kernel = KERNELS[method]
        kernels.prepare(dict.fromkeys((self._kernel, 'search_tree', 'settle_tree')))

    def solve(self, goals: Array, q: Array, restarts: int, clock: Clock) -> tuple[int, bool]:
        """Search from q (n,), in place, with random restarts; return how many, and whether all is solved."""
        search, weights, state = getattr(kernels, self._kernel), np.ones(len(goals)), self._state()
        part = DESCENTS_PER_CHECK if kernels.ready() else 1
        last = 0
        while True:
            first, last = last, min(last + part, restarts + 1)
            done, solved = self._search(search, goals, weights, self._options, first, last, state, q)
            if solved or clock.late or last > restarts:
                return done, solved

    def closest(self, goals: Array, weights: Array, starts: Sequence[Array], clock: Clock) -> Array:
        """Return the joints (n,) of the least sum of weights (K,) times squared position errors.

        Then of direction errors. Descents from the best of starts (n,), which are close already, and from
        random configurations, with a decreasing weight of the directions: the penalty form of the
        lexicographic problem. Fewer of them if time runs out.
        """
        options, state = self._options.copy(), self._state()
        options[[ITERATIONS, STALL]] = METHODS['lm'].thorough
        tolerance = options[POSITION_TOLERANCE] ** 2
        candidates = sorted(starts, key=lambda q: self._cost(goals, weights, q)[0])[:CLOSE]
        for q in candidates:
            if not clock.late:
                self._settle(goals, weights, LADDER[-1:], q)
        for number in range(STARTS):
            if clock.late:
                break
            q = np.empty(self._tree.n)
            kernels.perturb(self._tree.middle, self._tree.limits, 1.0, state, q)
            # Every other one minimises the positions alone before it turns the tools as far as that allows.
            ladder = LADDER[-1:] if number % 2 else LADDER
            options[WEIGHT] = ladder[0] * self._options[WEIGHT]
            self._search(kernels.search_tree, goals, weights, options, 0, 1, state, q)
            self._settle(goals, weights, ladder, q)
            candidates.append(q)
        best, least = candidates[0], (math.inf, math.inf)
        for q in candidates:
            cost = self._cost(goals, weights, q)
            nearer = cost[0] < least[0] - tolerance
            if nearer or (cost[0] < least[0] + tolerance and cost[1] < least[1]):
                best, least = q, cost
        return best

    def _settle(self, goals: Array, weights: Array, ladder: Sequence[float], q: Array) -> None:
        for share in ladder:
            kernels.settle_tree(
                *self._model, self._tree.limits, goals, weights, share * self._options[WEIGHT], q
            )

    def _cost(self, goals: Array, weights: Array, q: Array) -> tuple[float, float]:
        """Return the sums of weights (K,) times squared position [m^2] and direction errors [rad^2]."""
        tree = self._tree
        errors = [
            errors_of(tree.arms[name], goal, q[tree.columns[name]])
            for name, goal in zip(self._names, goals, strict=True)
        ]
        position, direction = (weights @ np.square(errors)).tolist()
        return position, direction

    def _search(
        self,
        search: Callable[..., Any],
        goals: Array,
        weights: Array,
        options: Array,
        first: int,
        last: int,
        state: NDArray[np.uint64],
        q: Array,
    ) -> tuple[int, bool]:
        errors = np.empty((len(goals), 2))
        model = *self._model, *self._branches, self._tree.limits
        found: tuple[int, bool] = search(*model, goals, weights, options, first, last, state, q, errors)
        return found

    def _state(self) -> NDArray[np.uint64]:
        return np.array([self._random_seed], dtype=np.uint64)


def branches(columns: Sequence[NDArray[np.intp]], n: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return by joint the one before it (n,), -1 for none, and by tool its last joint (K,).

    columns: by tool the joints that move it, from the base. If these are not a tree whose parents come before
    their children, as mimic joints can make it, all joints are taken for one branch.
    """
    parents = np.full(n, -2)
    for own in columns:
        for before, joint in zip([-1, *own], own, strict=False):
            if parents[joint] not in (-2, before) or before > joint:
                return np.arange(n) - 1, np.full(len(columns), n - 1)
            parents[joint] = before
    return np.maximum(parents, -1), np.array([own[-1] for own in columns])
