# SPDX-License-Identifier: Apache-2.0
"""TreeSolver: the solver for several tools on shared joints, by formula for limbs or by search."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ik_node import kernels
from ik_node.checks import Array, positive, whole
from ik_node.errors import InputError, UrdfError, join_names, safe_repr
from ik_node.kernels.arrays import DIRECTION, ITERATIONS, POSITION_TOLERANCE, STALL, WEIGHT
from ik_node.model.arm import Arm, frozen
from ik_node.model.tree import Tree
from ik_node.solver.closed_form import ClosedForm, recognise
from ik_node.solver.goal import BatchSolution, Cause, Goal, Reason, Solution, Status, pack_goals
from ik_node.solver.restarts import search_options
from ik_node.steady import steady

from .batch import seed_rows
from .methods import METHODS
from .pipeline import errors_of
from .solver import SOLVING_BUDGET, IkSolver


class Clock:
    """Runs from its creation on. budget [s]: as given."""

    def __init__(self, budget: float) -> None:
        self.budget = budget
        self._end = steady() + budget

    @property
    def late(self) -> bool:
        """Whether the budget has ended."""
        return steady() > self._end

    @property
    def left(self) -> float:
        """The remaining budget [s], greater than 0 as solvers require."""
        return max(self._end - steady(), 1e-9)


# Of the usual weight of a direction, one after the other: so positions come first.
LADDER = (1.0, 1e-1, 1e-2, 1e-3, 1e-5)
KERNELS = {'lm': 'search_tree', 'transpose': 'search_tree_transpose'}  # the local methods
STARTS = 24  # random starts for the closest configuration
CLOSE = 6  # of those that are close already, as many are improved
DESCENTS_PER_CHECK = 16  # of the clock: about a millisecond


class TreeSearch:
    """Bounded descents of all joints (n,) of a tree towards goals (K, 9) of some of its tools."""

    def __init__(self, tree: Tree, names: Sequence[str], method: str, options: Array, random_seed: int) -> None:
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
        kernels.prepare()

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
            kernels.settle_tree(*self._model, self._tree.limits, goals, weights, share * self._options[WEIGHT], q)

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


STEP = 0.1  # [rad], or this share of the range [m], between two tested positions of the trunk
FINEST = 0.005  # the same, to which the nearest position is refined
TRUNK_SAMPLES = 25  # of the trunk, all over its range, at which the closest configuration is searched


class Trunk:
    """Tools that share joints; the joints that only one of them has are its limb, solved by formula."""

    def __init__(self, tree: Tree, limbs: Sequence[tuple[str, Arm, Arm, ClosedForm]], options: Array) -> None:
        """limbs: by tool, the arm of the trunk, that of the limb and its formula. options: of kernels."""
        counts = tree.shared([name for name, *_ in limbs])
        own = {name: tree.columns[name][count:] for name, count in counts.items()}
        carrying = [tree.renumbered(name, trunk.joints) for name, trunk, _, _ in limbs]
        self._arrays = (
            frozen(np.vstack(carrying)),
            frozen(np.array([trunk.tool for _, trunk, _, _ in limbs])),
            np.cumsum([0, *map(len, carrying)]),
            frozen(np.array([limb.joints for _, _, limb, _ in limbs])),
            frozen(np.array([limb.tool for _, _, limb, _ in limbs])),
            frozen(np.array([limb.limits[:2] for _, _, limb, _ in limbs])),
            frozen(np.array([form.constants for _, _, _, form in limbs])),
            np.array(list(own.values())),
        )
        self._options = options
        self._limbs = [(trunk, limb, tree.columns[name]) for name, trunk, limb, _ in limbs]
        shared = {k for name, count in counts.items() for k in tree.columns[name][:count].tolist()}
        self._joint, self._span = -1, np.zeros(4)
        if len(shared) == 1:
            (self._joint,) = shared
            low, high = tree.limits[:, self._joint]
            scale = high - low if tree.prismatic[self._joint] else 1.0
            self._span = np.array([low, high, STEP * scale, FINEST * scale])

    def solve(self, goals: Array, seed: Array) -> tuple[Array, Array] | None:
        """Return joints (n,) that meet goals (K, 9) by formula, near seed (n,), and their errors (K, 2).

        The trunk stays where it is. If it has one joint, and a limb cannot follow, that moves as little as
        the limbs allow. None if nothing is found.
        """
        if any(math.isnan(direction) for direction in goals[:, DIRECTION].tolist()):
            return None
        q, errors = np.empty(len(seed)), np.empty((len(goals), 2))
        found = kernels.solve_outwards(*self._arrays, goals, self._options, self._joint, self._span, seed, q, errors)
        return (q, errors) if found else None

    @cached_property
    def _solvers(self) -> list[IkSolver]:
        """Solvers of the limbs: only goals that cannot all be met need them."""
        return [IkSolver(limb) for _, limb, _ in self._limbs]

    def spread(self, goals: Array, seed: Array, clock: Clock) -> Iterator[Array]:
        """Yield joints (n,): the shared joint all over its range, and every limb as near its goal as it gets.

        goals (K, 9). Nothing if the trunk has more than one joint, less if time runs out.
        """
        if self._joint < 0:
            return
        low, high = self._span[:2] if np.isfinite(self._span[:2]).all() else (-np.pi, np.pi)
        for value in np.linspace(low, high, TRUNK_SAMPLES):
            if clock.late:
                return
            q = seed.copy()
            q[self._joint] = value
            for (trunk, _, columns), solver, goal in zip(self._limbs, self._solvers, goals, strict=True):
                carried, own = columns[: trunk.n], columns[trunk.n :]
                q[own] = solver.solve(_seen_from(trunk.frames(q[carried]), goal), q[own], clock.left).q
            yield q

    def track(self, goals: Array, q: Array, before: Array) -> Array | None:
        """Move the limbs of q (n,) on to goals (K, 9), in place, each along its branch.

        Returns the errors (K, 2); None, with q as it was, if a limb cannot follow.
        """
        errors = np.empty((len(goals), 2))
        return errors if kernels.advance_limbs(*self._arrays, goals, self._options, before, q, errors) else None


def find_trunk(tree: Tree, names: Sequence[str], options: Array) -> Trunk | None:
    """Return the trunk of tools that share joints; None if a limb has no formula."""
    limbs = []
    for name, count in tree.shared(names).items():
        arm = tree.arms[name]
        chain = tree.robot.chain(arm.tip_link, arm.base_link)
        link = next(joint.child for joint in chain if joint.name == arm.joint_names[count - 1])
        try:
            limb = Arm(tree.robot, arm.tip_link, arm.tool_axis, arm.tool_point, link)
            trunk = Arm(tree.robot, link, 'z', base_link=arm.base_link)
        except UrdfError:
            return None
        form = recognise(limb)
        divided = trunk.joint_names == arm.joint_names[:count] and limb.joint_names == arm.joint_names[count:]
        if form is None or not divided:  # a joint of one may mimic a joint of the other
            return None
        limbs.append((name, trunk, limb, form))
    return Trunk(tree, limbs, options)


def _seen_from(frames: Array, goal: Array) -> Goal:
    """Return goal (9,) in the frame of a limb; frames: of the trunk, whose tool that frame is."""
    origin, z, x = frames[-3:]
    turn = np.array([x, np.cross(z, x), z])
    return Goal.unpacked(np.concatenate([turn @ (goal[:3] - origin), turn @ goal[3:6], turn @ goal[6:]]))


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
            f'the joints of {join_names(solutions)} cannot continue smoothly: the other configuration that meets '
            f'the goals is {move:.3g} rad or m away'
        )
        reason = Reason(Cause.BRANCH_ENDS, move, sentence)
        return {
            name: replace(solution, status=Status.NOT_FOUND, reason=reason, other_branch=others[name].q)
            for name, solution in solutions.items()
        }

    def _turned(self, goals: Mapping[str, Goal], seed: Array, solutions: dict[str, Solution]) -> dict[str, Solution]:
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
                f'the computer was too slow to solve this goal together with {others} in {clock.budget:g} s; try again'
            )
            return Status.NOT_FOUND, Reason(Cause.TIME, clock.budget, sentence)
        amount = solution.position_error
        sentence = f'this goal can be met by itself, but no solution was found together with {others}'
        return Status.NOT_FOUND, Reason(Cause.CONFLICT, amount, sentence)


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
        for group in self._grouped(goals, q, free):
            if len(group) == 1:
                ((name, goal),) = group.items()
                tools[name] = self._solvers[name].solve(goal, q[tree.columns[name]], clock.left)
            else:
                tools |= _solutions_of(goals, self._shared(group).solve(group, q, weights, clock))
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
        for group in self._grouped(goals, now, free):
            if len(group) == 1:
                ((name, goal),) = group.items()
                columns = tree.columns[name]
                own = self._solvers[name]
                tools[name] = own.track(goal, now[columns], last[columns], clock.left)
            else:
                tools |= _solutions_of(goals, self._shared(group).track(group, now, last, clock))
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
        return self._time_budget if time_budget is None else positive('time_budget', time_budget, finite=False)

    def _solution(self, q: Array, tools: dict[str, Solution]) -> TreeSolution:
        """Return the solution, q (n,) changed where tools have been moved."""
        for name, solution in tools.items():
            q[self.tree.columns[name]] = solution.q
        return TreeSolution(q, tools)

    def _grouped(self, goals: Mapping[str, Goal], q: Array, free: Collection[str]) -> list[dict[str, Goal]]:
        """Return the goals that have to be met together, with those of tools to be held as at q (n,)."""
        tree = self.tree
        if not isinstance(goals, Mapping) or not goals:
            raise InputError(f'goals must name at least one tool, got {safe_repr(goals)}')
        for name, goal in goals.items():
            if not isinstance(goal, Goal):
                raise InputError(f'goals must be of type Goal, by tool, got {safe_repr(name)}: {safe_repr(goal)}')
        if isinstance(free, str) or not isinstance(free, Collection):
            raise InputError(f'free must be a list of tools, got {safe_repr(free)}')
        tree.check_names(goals, 'goals')
        tree.check_names(free, 'free')
        bound = tuple(name for name in tree.arms if name in goals or name not in free)
        groups = [group for group in tree.groups(bound) if any(name in goals for name in group)]
        for name in (name for group in groups for name in group if len(group) > 1 and name in goals):
            if goals[name].cone or goals[name].tolerance is not None:
                raise InputError(
                    f'tool {name} shares joints with other tools, which have to meet goals too: a goal with a cone or '
                    'a tolerance is supported for tools that share none'
                )
        return [{name: goals.get(name) or self._present_goal(name, q) for name in group} for group in groups]

    def _present_goal(self, name: str, q: Array) -> Goal:
        """Return the pose of a tool at q (n,), within the limits: beyond them it could not be held."""
        return Goal(*self.tree.arms[name].fk(np.clip(q, *self.tree.limits)[self.tree.columns[name]]))

    def _shared(self, group: Mapping[str, Goal]) -> SharedJoints:
        """Return the solver of these tools."""
        names = tuple(group)
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


def _solutions_of(goals: Mapping[str, Goal], tools: dict[str, Solution]) -> dict[str, Solution]:
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
