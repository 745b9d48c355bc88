# SPDX-License-Identifier: Apache-2.0
"""TreeSolver: goals for several tools of one robot at once."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from ik_node.checks import Array, positive, whole
from ik_node.errors import InputError, join_names, safe_repr
from ik_node.model.tree import Tree
from ik_node.solver.batch import seed_rows
from ik_node.solver.goal import BatchSolution, Cause, Goal, Solution, Status, pack_goals
from ik_node.solver.restarts import search_options
from ik_node.solver.solver import SOLVING_BUDGET, IkSolver
from ik_node.solver.trees.clock import Clock
from ik_node.solver.trees.shared_joints import SharedJoints
from ik_node.solver.trees.tree_search import KERNELS


@dataclass(frozen=True, eq=False)
class TreeSolution:
    """The result of a solve: q (n,) [rad or m], and by tool a Solution, with the joints (arm.n,) of its arm.

    Tools without a goal that were to be held are among tools if they share joints with those that have one,
    directly or through others: the rest does not move.
    """

    q: Array
    tools: dict[str, Solution]

    @property
    def solved(self) -> bool:
        """Whether every tool is within both tolerances, those that were to be held too."""
        return all(solution.solved for solution in self.tools.values())

    @property
    def status(self) -> Status:
        """SOLVED for all tools, UNREACHABLE if a tool cannot reach its goal in any way, else NOT_FOUND."""
        found = {solution.status for solution in self.tools.values()}
        return next(s for s in (Status.UNREACHABLE, Status.NOT_FOUND, Status.SOLVED) if s in found)


@dataclass(frozen=True, eq=False)
class TreeBatchSolution:
    """The results for N goals per tool: q (N, n), and by tool a BatchSolution."""

    q: Array
    tools: dict[str, BatchSolution]


class TreeSolver:
    """Solves goals for several tools of one robot.

    Tools that share no joint get exactly the answers of an IkSolver of their own; so does a tool that
    shares joints with free ones only. Where tools share joints, these stay as in the seed if every limb can
    then meet its goal; else they move as little as the formulas of the limbs allow; and where these find
    nothing, all joints are searched together.
    """

    def __init__(
        self,
        tree: Tree,
        *,
        method: str = 'lm',
        position_tolerance: float = 1e-6,
        direction_tolerance: float = 1e-4,
        restarts: int = 1000,
        time_budget: float = SOLVING_BUDGET,
        random_seed: int = 0,
        compile: str = 'background',  # noqa: A002 - as of IkSolver
    ) -> None:
        """Prepare to solve for this tree; the options are those of IkSolver. Raises InputError.

        method: lm, or transpose, without formulas, for comparison: every tool steps along the transpose of
        its own Jacobian, and joints that tools share take the mean of their steps.
        """
        if not isinstance(tree, Tree):
            raise InputError(f'tree must be a Tree, got {safe_repr(tree)}')
        if not isinstance(method, str) or method not in KERNELS:
            raise InputError(f'method of a tree must be one of {", ".join(KERNELS)}, got {safe_repr(method)}')
        self.tree, self.method = tree, method
        self._tolerances = (
            positive('position_tolerance', position_tolerance),
            positive('direction_tolerance', direction_tolerance),
        )
        self._restarts = whole('restarts', restarts, 0)
        self._time_budget = positive('time_budget', time_budget, finite=False)
        self._random_seed = whole('random_seed', random_seed, 0, 2**63 - 1)
        self._solvers = {
            name: IkSolver(
                arm,
                method=method,
                position_tolerance=position_tolerance,
                direction_tolerance=direction_tolerance,
                restarts=restarts,
                random_seed=random_seed,
                compile=compile,
            )
            for name, arm in tree.arms.items()
        }
        for group in tree.groups(tuple(tree.arms)):
            for name in group if len(group) > 1 else ():
                if tree.arms[name].has_cones:
                    raise InputError(
                        f'tools {", ".join(group)} share joints, and a ball joint of tool {name} has limits '
                        'of its own: these are supported for tools that share no joints'
                    )
        self._together: dict[tuple[str, ...], SharedJoints] = {}

    def solve(
        self,
        goals: Mapping[str, Goal],
        seed: ArrayLike | None = None,
        weights: Mapping[str, float] | None = None,
        free: Collection[str] = (),
        time_budget: float | None = None,
    ) -> TreeSolution:
        """Find joints that meet the goals by tool, near seed (n,) (default: mid-range).

        A tool without a goal stays where the seed has it, within the limits, and is judged like one with that
        goal, or goes wherever its joints are taken if it is among free. Where not all goals can be met, the
        sum of weights (default 1) times the squared position errors is least, then that of the direction
        errors. time_budget [s]: of this call, None: as given to
        the constructor; tools that are not solved when it ends are NOT_FOUND, with the cause TIME. Raises
        InputError for names that are not tools, for weights not greater than 0, and as IkSolver.solve.
        """
        tree, clock = self.tree, Clock(self._budget(time_budget))
        q = tree.middle if seed is None else tree.checked(seed, 'seed')
        weights = {} if weights is None else weights
        if not isinstance(weights, Mapping):
            raise InputError(f'weights must be numbers by tool, got {safe_repr(weights)}')
        tree.check_names(weights, 'weights')
        for name, weight in weights.items():
            positive(f'the weight of {name}', weight)
        tools: dict[str, Solution] = {}
        for wanted in self._wanted(goals, q, free):
            if len(wanted) == 1:
                ((name, goal),) = wanted.items()
                tools[name] = self._solvers[name].solve(goal, q[tree.columns[name]], clock.left)
            else:
                tools |= _told(goals, self._shared(wanted).solve(wanted, q, weights, clock))
        return self._solution(q, tools)

    def track(
        self,
        goals: Mapping[str, Goal],
        q: ArrayLike,
        before: ArrayLike | None = None,
        free: Collection[str] = (),
        time_budget: float | None = None,
    ) -> TreeSolution:
        """Follow moving goals by tool from configuration q (n,) without leaving its branch.

        before: the configuration before q, if any. As IkSolver.track for every tool; where the branch of
        tools that share joints ends, other_branch of each belongs to one solution for all of them. If not all
        goals can be met, the result is that of solve: it may be far from q, and other_branch is None.
        time_budget [s]: as of solve.
        """
        tree, clock = self.tree, Clock(self._budget(time_budget))
        now = tree.checked(q, 'q')
        last = now.copy() if before is None else tree.checked(before, 'before')
        tools: dict[str, Solution] = {}
        for wanted in self._wanted(goals, now, free):
            if len(wanted) == 1:
                ((name, goal),) = wanted.items()
                columns = tree.columns[name]
                own = self._solvers[name]
                tools[name] = own.track(goal, now[columns], last[columns], clock.left)
            else:
                tools |= _told(goals, self._shared(wanted).track(wanted, now, last, clock))
        return self._solution(now, tools)

    def solve_batch(
        self,
        positions: Mapping[str, ArrayLike],
        directions: Mapping[str, ArrayLike] | None = None,
        seeds: ArrayLike | None = None,
        weights: Mapping[str, float] | None = None,
        free: Collection[str] = (),
    ) -> TreeBatchSolution:
        """Solve many goals: by tool positions (N, 3) [m], and directions (N, 3) unit where they count.

        seeds: (N, n), or (n,) for all, default mid-range. The results are those of solve, each with the time
        budget of the constructor. Raises InputError for wrong shapes or values.
        """
        tree = self.tree
        if not isinstance(positions, Mapping) or not positions:
            raise InputError(f'positions must name at least one tool, got {safe_repr(positions)}')
        directions = directions or {}
        tree.check_names(positions, 'positions')
        if unknown := [name for name in directions if name not in positions]:
            raise InputError(f'directions of {safe_repr(unknown[0])} need positions')
        packed = {name: pack_goals(place, directions.get(name)) for name, place in positions.items()}
        counts = {len(rows) for rows in packed.values()}
        if len(counts) > 1:
            raise InputError(f'positions of all tools must have the same length, got {sorted(counts)}')
        (count,) = counts
        starts = seed_rows(tree.middle if seeds is None else seeds, count, tree.n)
        found = [
            self.solve(
                {name: Goal.unpacked(rows[k]) for name, rows in packed.items()},
                starts[min(k, len(starts) - 1)],
                weights,
                free,
            )
            for k in range(count)
        ]
        q = np.array([one.q for one in found]).reshape(count, tree.n)
        names = found[0].tools if found else packed
        return TreeBatchSolution(
            q, {name: _stacked([one.tools[name] for one in found], tree.arms[name].n) for name in names}
        )

    def _budget(self, time_budget: float | None) -> float:
        return (
            self._time_budget if time_budget is None else positive('time_budget', time_budget, finite=False)
        )

    def _solution(self, q: Array, tools: dict[str, Solution]) -> TreeSolution:
        """Return the solution, q (n,) changed where tools have been moved."""
        for name, solution in tools.items():
            q[self.tree.columns[name]] = solution.q
        return TreeSolution(q, tools)

    def _wanted(self, goals: Mapping[str, Goal], q: Array, free: Collection[str]) -> list[dict[str, Goal]]:
        """Return the goals that have to be met together, with those of tools to be held as at q (n,)."""
        tree = self.tree
        if not isinstance(goals, Mapping) or not goals:
            raise InputError(f'goals must name at least one tool, got {safe_repr(goals)}')
        for name, goal in goals.items():
            if not isinstance(goal, Goal):
                raise InputError(
                    f'goals must be of type Goal, by tool, got {safe_repr(name)}: {safe_repr(goal)}'
                )
        if isinstance(free, str) or not isinstance(free, Collection):
            raise InputError(f'free must be a list of tools, got {safe_repr(free)}')
        tree.check_names(goals, 'goals')
        tree.check_names(free, 'free')
        bound = tuple(name for name in tree.arms if name in goals or name not in free)
        return [
            {name: goals.get(name) or self._held(name, q) for name in group}
            for group in tree.groups(bound)
            if any(name in goals for name in group)
        ]

    def _held(self, name: str, q: Array) -> Goal:
        """Return the pose of a tool at q (n,), within the limits: beyond them it could not be held."""
        return Goal(*self.tree.arms[name].fk(np.clip(q, *self.tree.limits)[self.tree.columns[name]]))

    def _shared(self, wanted: Mapping[str, Goal]) -> SharedJoints:
        """Return the solver of these tools."""
        names = tuple(wanted)
        if names not in self._together:
            reach = max(self.tree.arms[name].reach for name in names)
            self._together[names] = SharedJoints(
                self.tree,
                {name: self._solvers[name] for name in names},
                self.method,
                search_options(self.method, reach, *self._tolerances, 'greedy'),
                self._restarts,
                self._random_seed,
            )
        return self._together[names]


def _told(goals: Mapping[str, Goal], tools: dict[str, Solution]) -> dict[str, Solution]:
    """Return the solutions of tools that share joints; those without a goal of goals were to be held."""
    for name, solution in tools.items():
        reason = solution.reason
        if name not in goals and reason is not None and reason.cause is Cause.CONFLICT:
            sentence = f'no solution was found that holds this tool while {join_names(goals)} meets its goal'
            tools[name] = replace(solution, reason=replace(reason, sentence=sentence))
    return tools


def _stacked(solutions: Sequence[Solution], n: int) -> BatchSolution:
    status = np.empty(len(solutions), dtype=object)
    status[:] = [solution.status for solution in solutions]
    errors = np.array([(x.position_error, x.direction_error) for x in solutions]).reshape(-1, 2)
    q = np.array([solution.q for solution in solutions]).reshape(-1, n)
    reasons = {k: solution.reason for k, solution in enumerate(solutions) if solution.reason is not None}
    return BatchSolution(status, status == Status.SOLVED, q, errors[:, 0], errors[:, 1], reasons)
