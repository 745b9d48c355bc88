"""IkSolver: the pipeline from goal to solution."""

from __future__ import annotations

import math
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from ik_node import kernels
from ik_node.checks import Vector, positive, real_array, whole
from ik_node.errors import InputError, KernelError
from ik_node.model.arm import Arm
from ik_node.solver.all_solutions import every_configuration, is_redundant
from ik_node.solver.closed_form import NO_FORM, Family, recognise
from ik_node.solver.closest import BestEffort, OwnBestEffort
from ik_node.solver.cores import usable_cores
from ik_node.solver.goal import (
    BatchSolution,
    Block,
    Goal,
    PathSolution,
    Reason,
    Solution,
    Status,
    no_goal,
    pack_goals,
)
from ik_node.solver.infeasible import Refusal
from ik_node.solver.path import best_path
from ik_node.solver.restarts import DESCENTS, Annealing, Found
from ik_node.solver.scipy_method import LeastSquares
from ik_node.solver.spare_roll import spare_roll

METHODS = (*DESCENTS, 'scipy')
COMPILE = ('background', 'wait')
AT_LIMIT = 1e-4  # rad or m: a branch that ends no farther from a limit ends there
BATCH_PART = 1024  # goals that one thread takes at a time
LIMIT_DOUBT = 1e-3  # rad: a solution beyond its limits by less casts doubt on the formula
FEW_RESTARTS = 8  # before the formula is asked whether a position can be reached


class IkSolver:
    """Solves goals for one arm; safe to call from several threads.

    Methods other than lm are used by solve and solve_batch, which then go without the closed form;
    solve_all, track and solve_path never use them: they descend by lm whatever the method.
    """

    def __init__(
        self,
        arm: Arm,
        *,
        method: str = 'lm',
        position_tolerance: float = 1e-6,
        direction_tolerance: float = 1e-4,
        restarts: int = 1000,
        time_budget: float = math.inf,
        random_seed: int = 0,
        compromise: float | None = None,
        compile: str = 'background',  # noqa: A002 - what it is
    ) -> None:
        """Prepare to solve for this arm.

        method: one of METHODS, the descent under the random restarts. The default, lm, comes after the
        closed form where the arm has one; the others stand alone, to be compared. Tolerances in m
        and rad say what counts as solved: the solution within them that is nearest to the seed, carried
        on to 1e-6 or as far as its branch goes. (Files that write pi as 3.1416 tilt axes by some 1e-6
        rad, so that "straight down" is just not reachable there: hence 1e-4 for directions.) restarts:
        random restarts after the descent from the seed. time_budget: seconds after which the search
        gives up; the only option that makes answers depend on the machine. compromise [m/rad]: answer
        goals that cannot be met with the least position_error^2 + (compromise * direction_error)^2;
        None: position first, then direction. compile: 'background': where no compiled kernels are in the
        cache, another process compiles them and the same kernels serve uncompiled meanwhile: the same
        answers, ten to a hundred times slower; 'wait': return only when the compiled ones serve. Raises
        InputError for values out of range, KernelError where compiled kernels are waited for and cannot be
        had.
        """
        self._options = {name: value for name, value in locals().items() if name not in ('self', 'arm')}
        if not isinstance(arm, Arm):
            raise InputError(f'arm must be an Arm, got {arm!r}')
        if compile not in COMPILE:
            raise InputError(f'compile must be one of {", ".join(COMPILE)}, got {compile!r}')
        if method not in METHODS:
            raise InputError(f'method must be one of {", ".join(METHODS)}, got {method!r}')
        if compromise is not None:
            compromise = positive('compromise', compromise)
            if method != 'lm':
                raise InputError(f'only method lm knows a compromise, got {method!r} with {compromise!r}')
        served = kernels.prepare(wait=compile == 'wait')
        if compile == 'wait' and served.stage is not kernels.Stage.READY:
            raise KernelError(str(served))
        self.arm = arm
        self.method = method
        self.closed_form = recognise(arm) if method == 'lm' else None
        search = LeastSquares if method == 'scipy' else Annealing
        self._search = search(
            arm,
            method,
            positive('position_tolerance', position_tolerance),
            positive('direction_tolerance', direction_tolerance),
            whole('restarts', restarts, 0),
            positive('time_budget', time_budget, finite=False),
            whole('random_seed', random_seed, 0, 2**63 - 1),
        )
        self._best_effort = (
            BestEffort(self._search, self.closed_form, compromise)
            if method == 'lm'
            else OwnBestEffort(self._search)
        )
        self._refusal = Refusal(arm, self.closed_form, self._best_effort, self._search.options)
        # Whether it is believed that what the formula does not find is not there.
        self._trusted = self.closed_form is not None and self.closed_form.doubt < math.inf
        self._places = (
            self._trusted and self.closed_form is not None and self.closed_form.family is Family.PARALLEL_ROLL
        )
        self._roll = spare_roll(arm)
        self._redundant = arm.n > arm.effective_dof
        self._path_work = (3 * arm.n + 8, max(arm.n, 9))  # scratch of kernels.advance

    def __reduce__(self) -> tuple[partial[IkSolver], tuple[Arm]]:
        """Copy and unpickle by the arguments of the constructor."""
        return partial(IkSolver, **self._options), (self.arm,)

    def _start(self, seed: ArrayLike | None) -> Vector:
        """Return the seed (n,) as a new array; outside the limits is allowed, descents clip it."""
        if seed is None:
            return self.arm.middle.copy()
        return self.arm.checked(seed, 'seed')

    def _starts(self, seeds: ArrayLike, count: int) -> Vector:
        """Return seeds of a batch as an array (1, n), for all goals, or (count, n)."""
        n = self.arm.n
        try:
            starts = np.atleast_2d(real_array(seeds))
        except (TypeError, ValueError, OverflowError):
            raise InputError(
                f'seeds must be numbers of shape ({n},) or ({count}, {n}), got {seeds!r}'
            ) from None
        if starts.shape not in ((1, n), (count, n)) or not np.isfinite(starts).all():
            raise InputError(f'seeds must be finite, of shape ({n},) or ({count}, {n}), got {starts.shape}')
        return starts

    def solve(self, goal: Goal, seed: ArrayLike | None = None) -> Solution:
        """Find one configuration for goal, near seed (n,) where possible (default: mid-range).

        The seed may lie outside the limits, the answer never does. Never raises for a goal that
        cannot be met: see Solution.status and reason. Raises InputError for a seed of the wrong
        length or with NaN.
        """
        start = time.perf_counter()
        q = self._start(seed)
        try:
            packed = goal.packed
        except AttributeError:
            raise no_goal(goal) from None
        form, regular, solution = self.closed_form, False, None
        if form is not None and not math.isnan(packed[3]):
            solved, position_error, direction_error, regular = kernels.nearest_solution(
                self.arm.joints,
                self.arm.tool,
                self.arm.limits,
                form.constants,
                packed,
                self._search.options,
                q,
                answer := np.empty(self.arm.n),
            )
            if solved:
                solution = Solution(
                    Status.SOLVED, answer, position_error, direction_error, self_motion=self._redundant
                )
        if solution is None:
            solution = self._without_formula(goal, q, start, regular)
        if math.isnan(packed[6]):
            return solution
        return self._with_lateral(goal, q, solution)

    def _without_formula(self, goal: Goal, seed: Vector, start: float, excluded: bool) -> Solution:
        """Search, unless the goal is shown to be impossible; answer with the best effort and the reason.

        excluded: the formula finds no solution within the limits. Rounding near double roots and limits may
        hide one, so that is believed only if nothing else comes near the goal either.
        """
        refusal = self._refusal
        doubt = math.inf if self.closed_form is None else self.closed_form.doubt
        by_place = self._places and goal.direction is None
        proven = refusal.by_reach(goal) is not None
        excluded = excluded and self._trusted
        found, q, miss = Found(False, math.inf, math.inf, 0), seed.copy(), None
        if excluded:
            miss = refusal.near_miss(goal, seed)
            q = seed.copy() if miss is None else miss.q
        elif not proven:
            found = self._search.search(goal, q, start, FEW_RESTARTS if by_place else None)
        if not found.solved:
            effort = self._best_effort.find(goal, seed, q, start + self._search.time_budget, proven)
            if self._search.met(effort.position_error, effort.direction_error):
                found = Found(True, effort.position_error, effort.direction_error, found.restarts)
                q = effort.q
            else:
                near = max(effort.position_error, effort.direction_error) < doubt
                near = near or (miss is not None and miss.excess < max(doubt, LIMIT_DOUBT))
                excluded = excluded or (by_place and not effort.in_place)
                if proven or (excluded and not near):
                    reason = refusal.reason(goal, seed, effort, miss)
                    errors = effort.position_error, effort.direction_error
                    return Solution(Status.UNREACHABLE, effort.q, *errors, reason)
                if excluded or by_place:
                    q = effort.q.copy() if miss is None else miss.q
                    found = self._search.search(goal, q, start)
        if found.solved:
            errors = found.position_error, found.direction_error
            self_motion = is_redundant(self.arm, goal)
            return Solution(Status.SOLVED, q, *errors, None, found.restarts, self_motion)
        errors = effort.position_error, effort.direction_error
        return Solution(Status.NOT_FOUND, effort.q, *errors, self._search_ended(found), found.restarts)

    def _search_ended(self, found: Found) -> Reason:
        if found.out_of_time:
            budget = self._search.time_budget
            return Reason(Block.TIME, budget, f'nothing found within the time budget of {budget:g} s')
        sentence = f'nothing found from the seed and {found.restarts} restarts'
        return Reason(Block.SEARCH_ENDED, found.restarts, sentence)

    def _with_lateral(self, goal: Goal, seed: Vector, solution: Solution) -> Solution:
        """Let the spare roll serve goal.lateral, errors kept; says in the solution how near it comes."""
        arm, q = self.arm, solution.q.copy()
        lateral_error = kernels.serve_lateral(
            arm.joints, arm.tool, arm.limits, goal.packed, self._roll, seed, q
        )
        errors = self.errors(goal, q)
        if solution.solved and not self._search.met(*errors):  # the tool is a hair off the roll axis
            return solution
        solution.q, solution.lateral_error = q, lateral_error
        solution.position_error, solution.direction_error = errors
        return solution

    def solve_all(self, goal: Goal, seed: ArrayLike | None = None) -> list[Solution]:
        """Find every solution within the limits, whole turns included; an empty list if there is none.

        Best first: least largest single joint move from seed (n,) (default: mid-range), then most
        distance to the limits. Arms with an exact closed form give all at once; elsewhere restarts
        go on until the estimated share of missed solutions is below 0.1 % (see all_solutions.py).
        Of a self-motion family the member nearest to the seed is returned, marked self_motion.
        Raises InputError for a seed of the wrong length or with NaN.
        """
        near = self._start(seed)
        try:
            self_motion = is_redundant(self.arm, goal)
        except AttributeError:
            raise no_goal(goal) from None
        deadline = time.perf_counter() + self._search.time_budget
        rows = every_configuration(
            self.arm,
            self.closed_form,
            goal,
            self._search.options,
            near,
            self._search.random_seed,
            self._search.restarts,
            deadline,
        )
        moves = np.abs(rows - near).max(axis=1, initial=0.0).round(9)
        margins = np.minimum(rows - self.arm.lower, self.arm.upper - rows).min(axis=1, initial=math.inf)
        solutions = []
        for k in np.lexsort((-margins, moves)):
            position_error, direction_error = self.errors(goal, rows[k])
            solutions.append(
                Solution(Status.SOLVED, rows[k], position_error, direction_error, self_motion=self_motion)
            )
        return solutions

    def solve_batch(
        self,
        positions: ArrayLike,
        directions: ArrayLike | None = None,
        seeds: ArrayLike | None = None,
        workers: int | None = None,
    ) -> BatchSolution:
        """Solve many goals at once, on all cores: positions (N, 3) [m], directions (N, 3) unit or None.

        seeds: (N, n), or (n,) for all, default mid-range. workers: threads, default one per core that the
        process may use. The answers are those of solve, whatever workers is; goals that are not solved at
        once take as long as there. Raises InputError for wrong shapes or values.
        """
        arm = self.arm
        goals = pack_goals(positions, directions)
        starts = arm.middle[None].copy() if seeds is None else self._starts(seeds, len(goals))
        workers = usable_cores() if workers is None else whole('workers', workers, 1)
        q, errors = np.empty((len(goals), arm.n)), np.empty((len(goals), 2))
        solved, status = np.empty(len(goals), dtype=np.bool_), np.full(len(goals), Status.SOLVED)
        form = NO_FORM if self.closed_form is None else self.closed_form.constants
        most = FEW_RESTARTS if self._places and directions is None else None

        stopped = threading.Event()

        def solve_part(part: slice) -> None:
            seeds = starts if len(starts) == 1 else starts[part]
            self._search.search_many(
                form,
                self._trusted,
                goals[part],
                self._refusal.shells,
                most,
                seeds,
                q[part],
                errors[part],
                solved[part],
            )
            for k in part.start + np.flatnonzero(~solved[part]):
                if stopped.is_set():
                    return
                one = self.solve(Goal.unpacked(goals[k]), starts[min(k, len(starts) - 1)])
                status[k], solved[k], q[k] = one.status, one.solved, one.q
                errors[k] = one.position_error, one.direction_error

        parts = [slice(k, k + BATCH_PART) for k in range(0, len(goals), BATCH_PART)]
        threads = min(workers, len(parts))
        if threads <= 1:  # a pool costs as much as a hundred solves
            for part in parts:
                solve_part(part)
        else:
            with ThreadPoolExecutor(threads) as pool:
                try:
                    list(pool.map(solve_part, parts))
                except BaseException:  # Ctrl-C: each thread ends with the goal that it is at
                    stopped.set()
                    raise
        return BatchSolution(status, solved, q, errors[:, 0], errors[:, 1])

    def track(self, goal: Goal, q: ArrayLike, before: ArrayLike | None = None) -> Solution:
        """Follow a moving goal from configuration q (n,) without leaving its branch.

        before: the configuration before q, where there is one; it lets the arm pass straight through
        places where branches cross. SOLVED: the next configuration, reached by a continuous motion.
        Where the branch ends on the way (joint limit, singularity) the status is NOT_FOUND, q the
        last configuration of the branch, the reason says what ended it, and other_branch is where
        another branch meets the goal: the caller decides whether to jump. A goal that nothing can
        meet is answered as by solve.
        """
        arm = self.arm
        now = arm.checked(q, 'q')
        last = now.copy() if before is None else arm.checked(before, 'before')
        form = NO_FORM if self.closed_form is None else self.closed_form.constants
        work = np.empty(self._path_work)
        try:
            packed = goal.packed
        except AttributeError:
            raise no_goal(goal) from None
        solved, position_error, direction_error = kernels.advance(
            arm.joints, arm.tool, arm.limits, form, packed, self._search.options, now, last, work
        )
        if solved:
            solution = Solution(Status.SOLVED, now, position_error, direction_error)
            return solution if goal.lateral is None else self._with_lateral(goal, last, solution)
        other = self.solve(goal, now)
        if not other.solved:
            return other
        move = float(np.abs(other.q - now).max())
        joint = self._joint_in_the_way(goal, now)
        cause = 'at a singularity' if joint is None else f'at the limit of joint {joint}'
        sentence = f'the branch ends {cause}; another one goes on after a joint move of {move:.3g}'
        reason = Reason(Block.BRANCH_ENDS, move, sentence, joint)
        return Solution(Status.NOT_FOUND, now, position_error, direction_error, reason, other_branch=other.q)

    def _joint_in_the_way(self, goal: Goal, q: Vector) -> str | None:
        """Name the joint whose limit ends the branch at q (n,): without it the way to goal is free."""
        arm = self.arm
        limits = np.where(
            [q - arm.lower < AT_LIMIT, arm.upper - q < AT_LIMIT], [[-math.inf], [math.inf]], arm.limits
        )
        arrived, work = q.copy(), np.empty(self._path_work)
        if not kernels.follow(arm.joints, arm.tool, limits, goal.packed, self._search.options, arrived, work)[
            0
        ]:
            return None
        beyond = np.maximum(arm.lower - arrived, arrived - arm.upper)
        return arm.joint_names[int(beyond.argmax())] if beyond.max() > 0.0 else None

    def solve_path(
        self, positions: ArrayLike, directions: ArrayLike | None = None, seed: ArrayLike | None = None
    ) -> PathSolution:
        """Find the joint path for goals (N, 3) [m], (N, 3) unit or None, whose largest joint move is least.

        Dynamic programming over all solutions of every point, so that the branch taken at the start
        is the one that lasts. seed (n,): settles what the goals leave free. Points without a solution
        are not solved and hold the seed. Raises InputError for wrong shapes or values.
        """
        goals = pack_goals(positions, directions)
        start = self._start(seed)

        def every(k: int, near: Vector) -> Vector:
            found = self.solve_all(Goal.unpacked(goals[k]), near)
            return np.array([solution.q for solution in found]).reshape(-1, self.arm.n)

        return best_path(self.arm, self.closed_form, goals, self._search.options, start, every)

    def errors(self, goal: Goal, q: ArrayLike) -> tuple[float, float]:
        """Return (position error [m], direction error [rad]) of configuration q (n,) by FK."""
        frames = self.arm.frames(q)
        position_error, direction_error = kernels.goal_errors(self.arm.joints, frames, goal.packed)
        return position_error, direction_error
