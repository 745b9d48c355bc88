# SPDX-License-Identifier: Apache-2.0
"""SharedJoints: the solver for tools of which each shares joints with another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from ik_node.checks import Array
from ik_node.errors import join_names
from ik_node.model.tree import Tree
from ik_node.solver.goal import Cause, Goal, Reason, Solution, Status
from ik_node.solver.solver import IkSolver
from ik_node.solver.trees.clock import Clock
from ik_node.solver.trees.tree_search import TreeSearch
from ik_node.solver.trees.trunk import find_trunk

PIECES = 4  # of the way to the next goal, where the limbs cannot follow without the trunk
LARGEST_MOVE = 0.1  # [rad or m] of a joint in one of them; a larger one is another branch


class SharedJoints:
    """Solves goals for some tools of a tree, all of them in every call."""

    def __init__(
        self,
        tree: Tree,
        solvers: Mapping[str, IkSolver],
        method: str,
        options: Array,
        restarts: int,
        random_seed: int,
    ) -> None:
        """solvers: by tool, of each alone. method: only lm uses formulas. options: of kernels."""
        self._tree, self._solvers, self._restarts = tree, solvers, restarts
        self._trunk = find_trunk(tree, tuple(solvers), options) if method == 'lm' else None
        self._search = TreeSearch(tree, tuple(solvers), method, options, random_seed)

    def solve(
        self, goals: Mapping[str, Goal], seed: Array, weights: Mapping[str, float], clock: Clock
    ) -> dict[str, Solution]:
        """Return a Solution by tool, all with the same shared joints, near seed (n,)."""
        start = np.clip(seed, *self._tree.limits)
        return self._turned(goals, start, self._near(goals, start, weights, clock))

    def _near(
        self, goals: Mapping[str, Goal], start: Array, weights: Mapping[str, float], clock: Clock
    ) -> dict[str, Solution]:
        tree, packed = self._tree, self._packed(goals)
        found = None if self._trunk is None else self._trunk.solve(packed, start)
        if found is not None:
            return self._solved(*found)
        alone = {
            name: solver.solve(goals[name], start[tree.columns[name]], clock.left)
            for name, solver in self._solvers.items()
        }
        q, restarts = start.copy(), 0
        if all(solution.status is not Status.UNREACHABLE for solution in alone.values()):
            restarts, solved = self._search.solve(packed, q, self._restarts, clock)
            if solved:
                return self._solutions(goals, q, restarts)
        sizes = np.array([weights.get(name, 1.0) for name in self._solvers])
        starts = [q, start, *(self._trunk.spread(packed, start, clock) if self._trunk is not None else ())]
        for name, solution in alone.items():
            starts.append(start.copy())
            starts[-1][tree.columns[name]] = solution.q
        solutions = self._solutions(goals, self._search.closest(packed, sizes, starts, clock), restarts)
        for name, solution in solutions.items():
            if not solution.solved:
                status, reason = self._reason(name, alone, solution, clock)
                solutions[name] = replace(solution, status=status, reason=reason)
        return solutions

    def track(self, goals: Mapping[str, Goal], q: Array, before: Array, clock: Clock) -> dict[str, Solution]:
        """Move q (n,) on to goals without leaving the branch; before (n,): the configuration before q.

        The trunk stays while every limb can follow. Not solved: the last configuration on the way, and by
        tool the joints of other_branch, another solution for all tools; without one, what solve finds.
        """
        start = np.clip(q, *self._tree.limits)
        return self._turned(goals, before, self._ahead(goals, start, before, clock))

    def _ahead(self, goals: Mapping[str, Goal], q: Array, before: Array, clock: Clock) -> dict[str, Solution]:
        packed = self._packed(goals)
        errors = None if self._trunk is None else self._trunk.track(packed, q, before)
        if errors is not None:
            return self._solved(q, errors)
        for goals_on_the_way in self._pieces(packed, q):
            ahead = q.copy()
            self._search.solve(goals_on_the_way, ahead, 0, clock)
            if np.abs(ahead - q).max() > LARGEST_MOVE:
                break
            q = ahead
        solutions = self._solutions(goals, q, 0)
        if all(solution.solved for solution in solutions.values()):
            return solutions
        others = self._near(goals, q, {}, clock)
        if not all(other.solved for other in others.values()):
            return others
        move = max(float(np.abs(other.q - solutions[name].q).max()) for name, other in others.items())
        sentence = (
            f'the current solution branch of {join_names(solutions)} ends; continuing needs a joint '
            'motion of '
            f'{move:.3g} rad or m to another branch'
        )
        reason = Reason(Cause.BRANCH_ENDS, move, sentence)
        return {
            name: replace(solution, status=Status.NOT_FOUND, reason=reason, other_branch=others[name].q)
            for name, solution in solutions.items()
        }

    def _turned(
        self, goals: Mapping[str, Goal], seed: Array, solutions: dict[str, Solution]
    ) -> dict[str, Solution]:
        """Serve the lateral axes of goals by the joints that only roll a tool, near seed (n,)."""
        for name, goal in goals.items():
            if goal.lateral is not None:
                own = seed[self._tree.columns[name]]
                solutions[name] = self._solvers[name].align_lateral(goal, own, solutions[name])
        return solutions

    def _pieces(self, goals: Array, q: Array) -> Sequence[Array]:
        """Return goals (K, 9) on the way from the tools at q (n,) to goals."""
        start = goals.copy()
        for k, name in enumerate(self._solvers):
            point, axis = self._tree.arms[name].fk(q[self._tree.columns[name]])
            start[k, :3], start[k, 3:6] = point, axis + 0.0 * goals[k, 3:6]  # NaN stays
        pieces = []
        for share in np.arange(1, PIECES) / PIECES:
            piece = start + share * (goals - start)
            piece[:, 3:6] /= np.linalg.norm(piece[:, 3:6], axis=1)[:, None]
            pieces.append(piece)
        return [*pieces, goals]

    def _packed(self, goals: Mapping[str, Goal]) -> Array:
        return np.array([goals[name].packed for name in self._solvers])

    def _solved(self, q: Array, errors: Array) -> dict[str, Solution]:
        """Return solutions whose errors (K, 2) kernels have found to be within the tolerances."""
        columns = self._tree.columns
        return {
            name: Solution(Status.SOLVED, q[columns[name]], *both)
            for name, both in zip(self._solvers, errors.tolist(), strict=True)
        }

    def _solutions(self, goals: Mapping[str, Goal], q: Array, restarts: int) -> dict[str, Solution]:
        """Return the errors of the joints q (n,) by FK."""
        return {
            name: solver.evaluate(goals[name], q[self._tree.columns[name]], restarts)
            for name, solver in self._solvers.items()
        }

    def _reason(
        self, name: str, alone: Mapping[str, Solution], solution: Solution, clock: Clock
    ) -> tuple[Status, Reason | None]:
        """Return the status and the reason of a tool that is not solved."""
        if not alone[name].solved:
            return alone[name].status, alone[name].reason
        others = join_names(other for other in alone if other != name)
        if clock.late:
            sentence = (
                f'no solution found together with {others} within the time budget of {clock.budget:g} s'
            )
            return Status.NOT_FOUND, Reason(Cause.TIME, clock.budget, sentence)
        amount = solution.position_error
        sentence = f'this goal can be met alone, but no solution was found together with {others}'
        return Status.NOT_FOUND, Reason(Cause.CONFLICT, amount, sentence)
