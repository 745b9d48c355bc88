# SPDX-License-Identifier: Apache-2.0
"""IkSolver: the solver for one arm."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from numpy.typing import ArrayLike

from ik_node.checks import Array, is_array, positive, whole
from ik_node.errors import InputError, safe_repr
from ik_node.kernels.arrays.layout import LATERAL
from ik_node.model.arm import Arm
from ik_node.solver.batch import seed_rows, solve_goals
from ik_node.solver.goal import (
    BatchSolution,
    Cause,
    Goal,
    PathSolution,
    Reason,
    Solution,
    Solutions,
    Status,
    checked_goal,
    pack_goals,
)
from ik_node.solver.options import SolverOptions
from ik_node.solver.path import best_path
from ik_node.solver.pipeline import errors_of
from ik_node.solver.redundancy.locked_joints import are_named
from ik_node.solver.solver_parts import SolverParts

if TYPE_CHECKING:
    from ik_node.solver.proof.proof import Proof

SOLVING_BUDGET = 5.0  # s, of solve: far more than any goal takes with compiled kernels
LISTING_BUDGET = 0.1  # s, of solve_all
PROVING_BUDGET = 20.0  # s, of prove


class IkSolver:
    """Solves goals for one arm; safe to call from several threads.

    arm, method: as given. closed_form, elimination, self_motions: what the geometry of the arm allows, else
    None; for inspection, see ik_inspect.

    method: one of METHODS, the local method that the random restarts of solve, solve_batch and steps repeat;
    all other calls use lm. The default, lm, follows the closed form if the arm has one; the other methods run
    without it, for comparison, and so does lm with closed_form=False, which leaves elimination out too.
    method_options: switches of the method, such as {'direction': False} for ccd. schedule: one of SCHEDULES,
    how the restarts are annealed. Tolerances in m and rad define what counts as solved, refined to 1e-6 or as
    far as its branch allows. With an exact closed form the solution is the nearest to the seed, by the
    largest single joint move. Other arms get one near the seed, on its branch where the seed nearly meets the
    goal; the first of solve_all is the nearest. (Files that write pi as 3.1416 tilt axes by about 1e-6 rad,
    which makes "straight down" just unreachable: hence 1e-4 for directions.) restarts: after the descent from
    the seed. time_budget: seconds after which a call gives up, a few milliseconds late at most with compiled
    kernels; the only option that makes results depend on the machine, if it is less than a goal takes
    (math.inf: none). direction_weight [m/rad]: for goals that cannot
    be met, minimise position_error^2 + (direction_weight * direction_error)^2; None: position first, then
    direction. compile: 'background': if the cache has no compiled kernels, another process compiles them, and
    meanwhile they run uncompiled, with the same results, ten to a hundred times slower; 'wait': return only
    when the compiled kernels are in use. Raises InputError for values out of range, KernelError if
    compile='wait' and the kernels cannot be compiled.
    """

    def __init__(
        self,
        arm: Arm,
        *,
        method: str = 'lm',
        method_options: Mapping[str, bool] | None = None,
        schedule: str = 'greedy',
        closed_form: bool = True,
        position_tolerance: float = 1e-6,
        direction_tolerance: float = 1e-4,
        restarts: int = 1000,
        time_budget: float = SOLVING_BUDGET,
        random_seed: int = 0,
        direction_weight: float | None = None,
        compile: str = 'background',  # noqa: A002 - the clearest name
    ) -> None:
        options = {name: value for name, value in locals().items() if name not in ('self', 'arm')}
        if not isinstance(arm, Arm):
            raise InputError(f'arm must be an Arm, got {safe_repr(arm)}')
        self._solver_of = partial(IkSolver, **options)
        self._parts = parts = SolverParts(arm, SolverOptions(**options).checked(), self._solver_of)
        self.arm, self.method = arm, method
        self.closed_form, self.elimination = parts.closed_form, parts.elimination
        self.self_motions = parts.self_motions
        # Fewer look-ups for most goals, which take 3 us.
        self._nearest, self._follow = parts.formula.nearest, parts.tracker.advance
        self._time_budget = time_budget

    def __reduce__(self) -> tuple[partial[IkSolver], tuple[Arm]]:
        """Copy and unpickle by the arguments of the constructor."""
        return self._solver_of, (self.arm,)

    def _start(self, seed: ArrayLike | None) -> Array:
        """Return the seed (n,) as a new array; outside the limits is allowed, descents clip it."""
        if seed is None:
            return self.arm.middle.copy()
        return self.arm.checked(seed, 'seed')

    def solve(self, goal: Goal, seed: ArrayLike | None = None, time_budget: float | None = None) -> Solution:
        """Find one configuration for goal, near seed (n,) where possible (default: mid-range).

        The seed may be outside the limits, the solution never is. Never raises for a goal that cannot be met:
        see Solution.status and reason. time_budget [s]: of this call, None: as given to the constructor; when
        it ends without a solution, the status is NOT_FOUND and the cause TIME, unless the goal is out of
        reach by the link lengths. Raises InputError for a seed of the wrong length or with NaN.
        """
        if not isinstance(goal, Goal):  # a call for each goal would cost a hundredth of solving it
            checked_goal(goal)
        q, packed, budget = self._start(seed), goal.packed, self._time_budget
        if time_budget is not None:
            budget = positive('time_budget', time_budget, finite=False)
        solution = self._nearest(packed, q)
        if solution is True or solution is False:
            solution = self._parts.pipeline(goal, q, solution, budget)
        if math.isnan(packed[LATERAL]):
            return solution
        return self._parts.roll.aligned(goal, self._start(seed), solution)

    def align_lateral(self, goal: Goal, seed: ArrayLike, solution: Solution) -> Solution:
        """Return solution, its spare roll turned towards goal.lateral, near seed (n,), with lateral_error.

        Only as far as that keeps what is solved; solve and track do it themselves. Raises InputError.
        """
        checked_goal(goal)
        if not isinstance(solution, Solution):
            raise InputError(f'solution must be a Solution, got {safe_repr(solution)}')
        self.arm.checked(solution.q, 'q of solution')
        return self._parts.roll.aligned(goal, self.arm.checked(seed, 'seed'), solution)

    def solve_all(
        self,
        goal: Goal,
        seed: ArrayLike | None = None,
        locked_joints: Sequence[str] = (),
        time_budget: float | None = None,
    ) -> Solutions:
        """Find every solution within the limits, whole turns included; an empty list if there is none.

        Best first: least largest single joint move from seed (n,) (default: mid-range), then most distance to
        the limits. Arms with an exact closed form or, with up to five joints, an elimination get all of them
        directly, marked complete; for others, and at singular goals, restarts continue until the estimated
        share of missed solutions is below 0.1 %. The link lengths may show that an empty list is complete. Of
        a self-motion the configuration nearest to the seed is returned, marked self_motion; with one spare
        joint they are traced, not searched. locked_joints: names of joints that keep their values in seed;
        the others are solved as a separate arm, so arms with six or seven joints are solved completely for
        given values of the spare ones. time_budget [s]: None is 0.1, or the value of the constructor if that
        is less. Solutions found by then are returned, and complete is False if there may be more. The
        constants of an arm, for the first goal, take up to 0.3 s more. Raises InputError for a seed of the
        wrong length or with NaN, and for locked joints that are unknown or outside their limits.
        """
        checked_goal(goal)
        near, budget = self._start(seed), min(self._time_budget, LISTING_BUDGET)
        if time_budget is not None:
            budget = positive('time_budget', time_budget, finite=False)
        if are_named(locked_joints):
            return self._parts.locked.solve_all(goal, near, locked_joints, self.evaluate, budget)
        return self._parts.all_solutions.solutions(goal, near, budget)

    def prove(self, goal: Goal, seed: ArrayLike | None = None, time_budget: float = PROVING_BUDGET) -> Proof:
        """Find every solution within the limits as solve_all does, with a proof by interval arithmetic.

        For goals with a direction of arms with five joints, where the number of complex solutions is known;
        20 to 60 ms for a goal, and a second or two, for some arms five, for the first. time_budget [s]: when
        it ends, nothing is proven. See Proof. Raises MissingError without python-flint, InputError for a seed
        of the wrong length or with NaN.
        """
        from ik_node.solver.proof.proof import prove  # five modules that few programs need

        budget = positive('time_budget', time_budget, finite=False)
        return prove(self.arm, checked_goal(goal), self._start(seed), budget)

    def solve_batch(
        self,
        positions: ArrayLike,
        directions: ArrayLike | None = None,
        seeds: ArrayLike | None = None,
        workers: int | None = None,
    ) -> BatchSolution:
        """Solve many goals at once, on all cores: positions (N, 3) [m], directions (N, 3) unit or None.

        seeds: (N, n), or (n,) for all, default mid-range. workers: threads, default one per core that the
        process may use. The results are those of solve, for any number of workers; goals that are not solved
        at once take as long as with solve, each with the time budget of the constructor. Raises InputError
        for wrong shapes or values.
        """
        goals = pack_goals(positions, directions)
        starts = self.arm.middle[None].copy() if seeds is None else seed_rows(seeds, len(goals), self.arm.n)
        return solve_goals(self._parts.pipeline, self.solve, goals, starts, workers)

    def track(
        self,
        goal: Goal,
        q: ArrayLike,
        before: ArrayLike | None = None,
        time_budget: float | None = None,
    ) -> Solution:
        """Follow a moving goal from configuration q (n,) without leaving its branch.

        before: the configuration before q, if any; it lets the arm pass straight through configurations
        where branches cross. SOLVED: the next configuration, reached by a continuous motion. If the branch
        ends first (joint limit, singularity) the status is NOT_FOUND, q the last configuration of the branch,
        reason the cause, and other_branch is a configuration on another branch that meets the goal: the
        caller decides whether to jump. For a goal that cannot be met the result is that of solve. time_budget
        [s]: as of solve.
        """
        if not isinstance(goal, Goal):
            checked_goal(goal)
        arm = self.arm
        now = arm.checked(q, 'q')
        last = now.copy() if before is None else arm.checked(before, 'before')
        solve = self.solve if time_budget is None else partial(self.solve, time_budget=time_budget)
        solution = self._follow(goal, now, last, solve)
        if math.isnan(goal.packed[LATERAL]) or solution.status is not Status.SOLVED:
            return solution
        return self._parts.roll.aligned(goal, last, solution)

    def solve_nearby(self, goal: Goal, q: ArrayLike, largest_move: ArrayLike | None = None) -> Solution:
        """Find the closest configuration that a continuous motion from configuration q (n,) reaches.

        For moving goals, in reach or not: the joints move about as little as the goal, whereas solve searches
        for the best configuration anywhere. SOLVED or NOT_FOUND; position first, then direction. largest_move
        (n,): of each joint [rad or m], None: any. Raises InputError for wrong lengths and NaN.
        """
        now = self.arm.checked(q, 'q')
        move = None if largest_move is None else self.arm.checked(largest_move, 'largest_move')
        errors = self._parts.search.refine(checked_goal(goal), now, move)
        if self._parts.search.met(*errors):
            return Solution(Status.SOLVED, now, *errors)
        reason = Reason(Cause.SEARCH_ENDED, 0.0, 'no solution nearby')
        return Solution(Status.NOT_FOUND, now, *errors, reason)

    def advance(self, goal: Array, q: Array, before: Array) -> bool:
        """Move q (n,) to goal (9,), in place, as track does; whether its branch extends to the goal.

        For the points of a path: if the branch ends, there is no further search. Raises InputError unless
        all are writable arrays of floats of these shapes.
        """
        for name, array, size in (('goal', goal, 9), ('q', q, self.arm.n), ('before', before, self.arm.n)):
            if not is_array(array, size):
                raise InputError(f'{name} must be a writable array of {size} floats, got {safe_repr(array)}')
        return self._parts.tracker.step(goal, q, before)[0]

    def steps(self, goal: Goal, seed: ArrayLike | None = None) -> Iterator[Array]:
        """Yield the joints (n,) of one descent by the method from seed (n,): at its start and after each.

        Steps are iterations or sweeps; the last joints are the result of the descent, which random restarts
        repeat. Raises InputError for a seed of the wrong length or with NaN.
        """
        return self._parts.search.steps(checked_goal(goal), self._start(seed))

    def solve_path(
        self,
        positions: ArrayLike,
        directions: ArrayLike | None = None,
        seed: ArrayLike | None = None,
        time_budget: float = 60.0,
    ) -> PathSolution:
        """Find the joint path for goals (N, 3) [m], (N, 3) unit or None, whose largest joint move is least.

        Dynamic programming over all solutions of every point, which avoids branches that end later. seed
        (n,): determines what the goals leave free. Points without a solution are not solved and hold the
        seed. time_budget [s]: after it the search for branches ends; following one takes 10 us per point.
        Raises InputError for wrong shapes or values.
        """
        goals = pack_goals(positions, directions)
        start, budget = self._start(seed), positive('time_budget', time_budget, finite=False)
        options = self._parts.search.options
        return best_path(self.arm, self.closed_form, goals, options, start, self.solve_all, budget)

    def evaluate(self, goal: Goal, q: ArrayLike, restarts: int = 0) -> Solution:
        """Return configuration q (n,) with its errors by FK: SOLVED within the tolerances, else NOT_FOUND.

        Limits are not checked. restarts: value for the solution. Raises InputError.
        """
        q, restarts = self.arm.checked(q, 'q'), whole('restarts', restarts, 0)
        errors = self.errors(goal, q)
        status = Status.SOLVED if self._parts.search.met(*errors) else Status.NOT_FOUND
        return Solution(status, q, *errors, restarts=restarts)

    def errors(self, goal: Goal, q: ArrayLike) -> tuple[float, float]:
        """Return (position error [m], direction error [rad]) of configuration q (n,) by FK."""
        return errors_of(self.arm, checked_goal(goal).packed, q)
