# SPDX-License-Identifier: Apache-2.0
"""IkSolver: the solver for one arm; goals, goals that move, paths, and its options."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ik_node import kernels
from ik_node.checks import Array, is_array, positive, whole
from ik_node.errors import InputError, KernelError, safe_repr
from ik_node.kernels.arrays import LATERAL
from ik_node.model.arm import Arm
from ik_node.solver.all_solutions import AllSolutions
from ik_node.solver.closed_form import NO_FORM, ClosedForm, formula_model, recognise, recognise_without_roll
from ik_node.solver.goal import (
    SOLVED,
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
from ik_node.solver.restarts import RandomRestarts
from ik_node.solver.unreachable import UnreachableGoals
from ik_node.steady import steady

from .batch import seed_rows, solve_goals
from .closest import ClosestSearch
from .cones import ConeGoals
from .elimination import elimination_of
from .methods import METHODS
from .pipeline import Pipeline, errors_of
from .redundancy import LockedJoints, are_named, self_motions_of
from .spare_roll import SpareRoll

if TYPE_CHECKING:
    from .proof import Proof

AT_LIMIT = 1e-4  # rad or m: a branch that ends this close to a limit ends at the limit


class Tracker:
    """Moves from one configuration to the next goal without changing branch."""

    def __init__(self, arm: Arm, form: ClosedForm | None, options: Array, cones: ConeGoals) -> None:
        """options: of the search. cones: which moves to goals with a cone."""
        self._arm, self._options, self._cones = arm, options, cones
        self._form = NO_FORM if form is None else form.constants
        self._work = (3 * arm.n + 8, max(arm.n, 9))  # scratch of kernels.advance

    def advance(self, goal: Goal, q: Array, before: Array, solve: Callable[[Goal, Array], Solution]) -> Solution:
        """Move q (n,) to goal, in place; before (n,): the configuration before q. See IkSolver.track.

        solve: (goal, seed) -> Solution, called if the branch ends.
        """
        if goal.cone:
            solved = self._cones.advance(goal, q)
            position_error, direction_error = errors_of(self._arm, goal.packed, q)
        else:
            solved, position_error, direction_error = self.step(goal.packed, q, before)
        if solved:
            return Solution(Status.SOLVED, q, position_error, direction_error)
        other = solve(goal, q)
        if not other.solved:
            return other
        moves = np.abs(other.q - q)
        move = float(moves.max())
        unit = 'm' if self._arm.prismatic[int(moves.argmax())] else 'rad'
        joint = self._blocking_joint(goal, q)
        cause = 'where configurations meet (a singularity)' if joint is None else f'at the limit of joint "{joint}"'
        sentence = (
            f'the joints cannot continue smoothly {cause}: the other configuration that meets the goal is '
            f'{move:.3g} {unit} away'
        )
        reason = Reason(Cause.BRANCH_ENDS, move, sentence, joint)
        return Solution(Status.NOT_FOUND, q, position_error, direction_error, reason, other_branch=other.q)

    def step(self, goal: Array, q: Array, before: Array) -> tuple[bool, float, float]:
        """Do as advance for goal (9,), without a search if the branch ends: (solved, both errors)."""
        arm, work = self._arm, np.empty(self._work)
        found: tuple[bool, float, float] = kernels.advance(
            arm.joints, arm.tool, arm.limits, self._form, goal, self._options, q, before, work
        )
        return found

    def _blocking_joint(self, goal: Goal, q: Array) -> str | None:
        """Return the joint whose limit ends the branch at q (n,): without it the motion can continue."""
        arm = self._arm
        limits = np.where(
            [q - arm.lower < AT_LIMIT, arm.upper - q < AT_LIMIT],
            [[-math.inf], [math.inf]],
            [arm.lower, arm.upper],
        )
        limits.flags.writeable = False  # as those that the kernel is compiled for
        arrived, work = q.copy(), np.empty(self._work)
        model = arm.joints, arm.tool, limits
        if goal.cone:
            arrives = self._cones.advance(goal, arrived, limits)
        else:
            arrives = kernels.follow(*model, goal.packed, self._options, arrived, work)[0]
        if not arrives:
            return None
        beyond = np.maximum(arm.lower - arrived, arrived - arm.upper)
        return arm.joint_names[int(beyond.argmax())] if beyond.max() > 0.0 else None


FIRST_STATIONS = 9  # points of a path at which arms without an exact formula look for branches
MOST_STATIONS = 64  # with those added where no branch has been found


class SolveAll(Protocol):
    """IkSolver.solve_all."""

    def __call__(self, goal: Goal, seed: Array, *, time_budget: float) -> Solutions: ...


def best_path(
    arm: Arm,
    form: ClosedForm | None,
    goals: Array,
    options: Array,
    seed: Array,
    solve_all: SolveAll,
    time_budget: float,
) -> PathSolution:
    """Return the path over goals (N, 9) whose largest joint move is least; see IkSolver.solve_path."""
    deadline = steady() + time_budget
    if len(goals) == 0:
        return PathSolution(np.empty((0, arm.n)), np.empty(0, dtype=np.bool_), 0.0, ())
    constants = NO_FORM if form is None else form.constants
    # Whole turns within limits are separate choices, those of continuous joints are equivalent.
    period = np.where(arm.continuous, arm.period, 0.0)
    if form is not None and form.exact and not np.isnan(goals[:, 3]).any():
        found, counts = _with_turns(arm, *_by_formula(arm, constants, goals, options, seed))
    else:

        def every(k: int) -> list[Array]:
            left = max(deadline - steady(), 1e-9)
            return [one.q for one in solve_all(Goal.unpacked(goals[k]), seed, time_budget=left)]

        found, counts = _by_following(arm, period, constants, goals, options, every)
    solved = counts > 0
    q = np.repeat(seed[None], len(goals), axis=0)
    if not solved.any():
        return PathSolution(q, solved, 0.0, ())
    rows, row_counts = found[solved], counts[solved]
    choice = np.empty(len(rows), dtype=np.int64)
    scratch = np.empty((2, found.shape[1])), np.empty(rows.shape[:2], dtype=np.int64)
    kernels.best_branch(period, rows, row_counts, seed, *scratch, choice)
    chosen = _unrolled(period, rows[np.arange(len(rows)), choice], seed)
    q[solved] = chosen
    moves = np.abs(np.diff(chosen, axis=0)).max(axis=1, initial=0.0)
    breaks = _breaks(arm, goals[solved], options, chosen)
    points = np.flatnonzero(solved)
    # Between points that are separated by unsolved goals no continuous motion is known.
    gaps = points[1:][np.diff(points) > 1]
    every_break = sorted({*points[breaks].tolist(), *gaps.tolist()})
    return PathSolution(q, solved, float(moves.max(initial=0.0)), tuple(every_break))


def _by_formula(
    arm: Arm, constants: Array, goals: Array, options: Array, seed: Array
) -> tuple[Array, NDArray[np.int64]]:
    found = np.zeros((len(goals), kernels.MOST_CANDIDATES, arm.n))
    counts = np.empty(len(goals), dtype=np.int64)
    kernels.formula_path(arm.joints, arm.tool, arm.limits, arm.period, constants, goals, options, seed, found, counts)
    return found, counts


def _with_turns(arm: Arm, found: Array, counts: NDArray[np.int64]) -> tuple[Array, NDArray[np.int64]]:
    """Add to found (N, k, n) the whole-turn variants of joints with a turn's room within finite limits."""
    low, high = arm.lower - kernels.ROOT_SLACK, arm.upper + kernels.ROOT_SLACK
    there = np.arange(found.shape[1]) < counts[:, None]
    for i in np.flatnonzero((arm.period > 0.0) & ~arm.continuous & ~arm.idle):
        most = int((high[i] - low[i]) / arm.period[i])
        if most == 0:
            continue
        turns = arm.period[i] * np.arange(-most, most + 1)
        values = found[:, :, None, i] + turns
        there = (there[:, :, None] & (values >= low[i]) & (values <= high[i])).reshape(len(found), -1)
        found = np.repeat(found, len(turns), axis=1)
        found[:, :, i] = np.clip(values, arm.lower[i], arm.upper[i]).reshape(len(found), -1)
        found, there = _compact(found, there)
    return found, there.sum(axis=1)


def _compact(found: Array, there: NDArray[np.bool_]) -> tuple[Array, NDArray[np.bool_]]:
    """Move the valid rows (there, (N, k)) of found (N, k, n) to the front and drop columns without any."""
    first = np.argsort(~there, axis=1, kind='stable')[:, : max(1, there.sum(axis=1).max(initial=0))]
    return np.take_along_axis(found, first[:, :, None], axis=1), np.take_along_axis(there, first, axis=1)


def _by_following(
    arm: Arm,
    period: Array,
    constants: Array,
    goals: Array,
    options: Array,
    every: Callable[[int], list[Array]],
) -> tuple[Array, NDArray[np.int64]]:
    """Find all configurations at some stations and follow each in both directions to the end of its branch.

    Stations are spread over the path, then added where no branch has been found. every: returns all
    configurations that meet the goal of a number.
    """
    last = len(goals) - 1
    tracks: list[Array] = []
    seen = np.zeros(len(goals), dtype=np.bool_)
    stations = np.unique(np.linspace(0, last, FIRST_STATIONS).round().astype(np.int64)).tolist()
    for _ in range(MOST_STATIONS):
        if not stations:
            unseen = np.flatnonzero(~seen)
            if len(unseen) == 0:
                break
            stations.append(int(unseen[len(unseen) // 2]))
        station = stations.pop(0)
        seen[station] = True
        for q in every(station):
            passing = [track[station] for track in tracks if not np.isnan(track[station, 0])]
            if any(kernels.largest_move(period, q, other) < kernels.DISTINCT for other in passing):
                continue
            track = np.full((len(goals), arm.n), np.nan)
            for order in (np.arange(station, last + 1), np.arange(station, -1, -1)):
                _follow(arm, constants, goals, options, order, q, track)
            tracks.append(track)
            seen |= ~np.isnan(track[:, 0])
    if not tracks:
        return np.empty((len(goals), 1, arm.n)), np.zeros(len(goals), dtype=np.int64)
    found = np.stack(tracks, axis=1)
    found, there = _compact(found, ~np.isnan(found[:, :, 0]))
    return found, there.sum(axis=1)


def _follow(
    arm: Arm,
    constants: Array,
    goals: Array,
    options: Array,
    order: Iterable[int],
    start: Array,
    track: Array,
) -> None:
    """Write track (N, n) along goals (N, 9) in the given order from start (n,), until the branch ends."""
    work = np.empty((3 * arm.n + 8, max(arm.n, 9)))
    before, now = start.copy(), start.copy()
    for k in order:
        q = now.copy()
        model = arm.joints, arm.tool, arm.limits
        if not kernels.advance(*model, constants, goals[k], options, q, before, work)[0]:
            return
        track[k] = q
        before, now = now, q


def _unrolled(period: Array, path: Array, seed: Array) -> Array:
    """Choose the whole turns of continuous joints on path (N, n): no jumps of a turn, start near seed."""
    out = path.copy()
    for i in np.flatnonzero(period):
        line = np.unwrap(path[:, i], period=period[i])
        out[:, i] = line + period[i] * round((seed[i] - line[0]) / period[i])
    return out


def _breaks(arm: Arm, goals: Array, options: Array, path: Array) -> NDArray[np.int64]:
    """Return the points k of path (N, n) that do not continue the branch of point k - 1.

    A step that continues the previous one is on the branch, also straight through a singularity.
    """
    work = np.empty((3 * arm.n + 8, max(arm.n, 9)))
    moves = np.diff(path, axis=0)
    sizes = np.abs(moves).max(axis=1)
    bends = np.abs(np.diff(moves, axis=0)).max(axis=1)
    goes_on = np.zeros(len(moves), dtype=np.bool_)
    goes_on[1:] = (bends <= kernels.BEND * sizes[:-1]) & (sizes[1:] <= kernels.LARGE_MOVE)
    breaks = [
        k + 1
        for k in np.flatnonzero(~goes_on)
        if not kernels.is_smooth(arm.joints, arm.tool, arm.limits, goals[k + 1], options, path[k], path[k + 1], work)
    ]
    return np.array(breaks, dtype=np.int64)


COMPILE = ('background', 'wait')
SOLVING_BUDGET = 5.0  # s, of solve: far more than any goal takes with compiled kernels
LISTING_BUDGET = 0.1  # s, of solve_all
PROVING_BUDGET = 20.0  # s, of prove
TOLERANCES = 8  # of goals, whose solvers are kept


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
        _check_choices(method, compile, closed_form)
        weight = None if direction_weight is None else positive('direction_weight', direction_weight)
        if weight is not None and method != 'lm':
            raise InputError(
                f'direction_weight is supported by method lm only, got {safe_repr(method)} with {weight!r}'
            )
        self._solver_of = partial(IkSolver, **options)
        self.arm, self.method = arm, method
        position_tolerance = positive('position_tolerance', position_tolerance)
        direction_tolerance = positive('direction_tolerance', direction_tolerance)
        restarts = whole('restarts', restarts, 0)
        self._time_budget = positive('time_budget', time_budget, finite=False)
        random_seed = whole('random_seed', random_seed, 0, 2**63 - 1)
        served = kernels.prepare(wait=compile == 'wait')
        algebra = method == 'lm' and closed_form
        self.closed_form = form = recognise(arm) if algebra else None
        self._search = search = RandomRestarts(
            arm,
            method,
            position_tolerance,
            direction_tolerance,
            restarts,
            random_seed,
            schedule,
            method_options,
        )
        self._locked = LockedJoints(arm, self._solver_of)
        exact = form is not None and form.exact
        self.elimination = elimination_of(arm, search.options) if algebra and not exact else None
        self.self_motions = self_motions_of(arm, self._locked, search.options) if algebra else None
        if compile == 'wait' and served.stage is not kernels.Stage.READY:
            raise KernelError(str(served))
        position_form = recognise_without_roll(arm) if form is None and algebra else form
        closest = ClosestSearch(search, position_form, weight)
        unreachable = UnreachableGoals(arm, form, closest, search.options)
        self._cones = ConeGoals(search, form, position_form, unreachable)
        self._pipeline = Pipeline(form, self.elimination, search, closest, unreachable, self._cones.is_outside)
        self._all_solutions = AllSolutions(arm, form, self.elimination, self.self_motions, search, unreachable)
        self._tracker = Tracker(arm, form, search.options, self._cones)
        self._tolerant = lru_cache(TOLERANCES)(
            lambda tolerance: IkSolver(arm, **{**options, 'position_tolerance': tolerance})
        )
        self._roll = SpareRoll(arm, search.met)
        self._model = None if form is None else formula_model(arm, form, search.options)
        self._redundant = arm.n > arm.effective_dof

    def __reduce__(self) -> tuple[partial[IkSolver], tuple[Arm]]:
        """Copy and unpickle by the arguments of the constructor."""
        return self._solver_of, (self.arm,)

    def _start(self, seed: ArrayLike | None) -> Array:
        """Return the seed (n,) as a new array; outside the limits is allowed, descents clip it."""
        if seed is None:
            return self.arm.middle.copy()
        return self.arm.checked(seed, 'seed')

    def __repr__(self) -> str:
        form = 'a closed form' if self.closed_form else 'elimination' if self.elimination else 'a search'
        return f'<IkSolver of {self.arm.name}: {self.arm.n} joints, method {self.method}, solutions by {form}>'

    def solve(self, goal: Goal, seed: ArrayLike | None = None, time_budget: float | None = None) -> Solution:
        """Find one configuration for goal, near seed (n,) where possible (default: mid-range).

        The seed may be outside the limits, the solution never is. Never raises for a goal that cannot be met:
        see Solution.status and reason. time_budget [s]: of this call, None: as given to the constructor; when
        it ends without a solution, the status is NOT_FOUND and the cause TIME, unless the goal is out of
        reach by the link lengths. Of a goal with a cone, the solution is the nearest of all directions in it,
        and what comes closest to a goal that cannot be met is least outside the cone; method lm alone serves
        these. The first goal with a tolerance of its own takes as long as a solver takes to be made. Raises
        InputError for a seed of the wrong length or with NaN.
        """
        if not isinstance(goal, Goal):  # a call for each goal would cost a hundredth of solving it
            checked_goal(goal)
        if goal.cone or goal.tolerance is not None:
            return self._solve_with_room(goal, seed, time_budget)
        packed, budget = goal.packed, self._time_budget
        if time_budget is not None:
            budget = positive('time_budget', time_budget, finite=False)
        solution, excluded = None, False
        if self._model is not None:  # two microseconds, and most goals end here
            q = np.empty(self.arm.n)
            given = self.arm.middle if seed is None else seed
            found = kernels.nearest_by_formula(given, self._model, packed, q)
            if found is None:
                found = kernels.nearest_by_formula(self._start(seed), self._model, packed, q)
            solved, position_error, direction_error, decided = found
            if solved:
                solution = Solution(SOLVED, q, position_error, direction_error, None, 0, self._redundant)
                if decided:
                    return solution
            excluded = decided and self._pipeline.trusted
        start = self._start(seed)
        if solution is None:
            solution = self._pipeline(goal, start, excluded, budget)
        return solution if math.isnan(packed[LATERAL]) else self._roll.aligned(goal, start, solution)

    def _solve_with_room(self, goal: Goal, seed: ArrayLike | None, time_budget: float | None) -> Solution:
        """Solve a goal with a cone or a tolerance of its own."""
        solver, goal = self._serving(goal)
        if solver is not self:
            return solver.solve(goal, seed, time_budget)
        if self.method != 'lm':
            raise InputError(f'goals with a cone are supported by method lm only, got method {self.method}')
        start, budget = self._start(seed), self._time_budget
        if time_budget is not None:
            budget = positive('time_budget', time_budget, finite=False)
        solution = self._cones.solve(goal, start, budget, self.solve)
        return solution if goal.lateral is None else self._roll.aligned(goal, start, solution)

    def _serving(self, goal: Goal) -> tuple[IkSolver, Goal]:
        """Return the solver that has the tolerance of goal, and goal without it."""
        if checked_goal(goal).tolerance is None:
            return self, goal
        return self._tolerant(goal.tolerance), Goal.unpacked(goal.packed, goal.cone)

    def align_lateral(self, goal: Goal, seed: ArrayLike, solution: Solution) -> Solution:
        """Return solution, its spare roll turned towards goal.lateral, near seed (n,), with lateral_error.

        Only as far as that keeps what is solved; solve and track do it themselves. Raises InputError.
        """
        checked_goal(goal)
        if not isinstance(solution, Solution):
            raise InputError(f'solution must be a Solution, got {safe_repr(solution)}')
        self.arm.checked(solution.q, 'q of solution')
        return self._roll.aligned(goal, self.arm.checked(seed, 'seed'), solution)

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
        share of missed solutions is below 0.1 %. Where no configuration meets the goal exactly, what solve finds
        within the tolerances is listed; an empty list is complete only where solve finds the goal unreachable. Of
        a self-motion the configuration nearest to the seed is returned, marked self_motion; with one spare
        joint they are traced, not searched. locked_joints: names of joints that keep their values in seed;
        the others are solved as a separate arm, so arms with six or seven joints are solved completely for
        given values of the spare ones. time_budget [s]: None is 0.1, or the value of the constructor if that
        is less. Solutions found by then are returned, and complete is False if there may be more. The
        constants of an arm, for the first goal, take up to 0.3 s more. A goal with a cone has more solutions than
        a list can hold: those with the direction of the nearest one are returned, and complete is False. Raises
        InputError for a seed of the wrong length or with NaN, and for locked joints that are unknown, outside
        their limits, or given with a cone.
        """
        solver, goal = self._serving(goal)
        if solver is not self:
            return solver.solve_all(goal, seed, locked_joints, time_budget)
        near, budget = self._start(seed), min(self._time_budget, LISTING_BUDGET)
        if time_budget is not None:
            budget = positive('time_budget', time_budget, finite=False)
        if goal.cone:
            return self._solutions_in_cone(goal, near, locked_joints, budget)
        if are_named(locked_joints):
            return self._locked.solve_all(goal, near, locked_joints, self.evaluate, budget)
        return self._all_solutions.solutions(goal, near, budget, self.solve)

    def _solutions_in_cone(self, goal: Goal, seed: Array, locked_joints: Sequence[str], budget: float) -> Solutions:
        if are_named(locked_joints):
            raise InputError('locked_joints are not supported for goals with a cone: give the direction alone')
        nearest = self.solve(goal, seed, budget)
        if not nearest.solved:
            return Solutions((), complete=nearest.status is Status.UNREACHABLE)
        axis = self.arm.fk(nearest.q)[1]
        every = self._all_solutions.solutions(Goal(goal.position, axis), seed, budget, self.solve)
        found = [replace(one, direction_error=self.errors(goal, one.q)[1]) for one in every]
        return Solutions(found or [nearest], complete=False)

    def prove(self, goal: Goal, seed: ArrayLike | None = None, time_budget: float = PROVING_BUDGET) -> Proof:
        """Find every solution within the limits as solve_all does, with a proof by interval arithmetic.

        For goals with a direction of arms with five joints, where the number of complex solutions is known;
        20 to 60 ms for a goal, and a second or two, for some arms five, for the first. time_budget [s]: when
        it ends, nothing is proven. See Proof. Raises MissingError without python-flint, InputError for a seed
        of the wrong length or with NaN.
        """
        from .proof import prove  # five modules that few programs need

        budget = positive('time_budget', time_budget, finite=False)
        return prove(self.arm, without_cone(goal, 'prove'), self._start(seed), budget)

    def solve_batch(
        self,
        positions: ArrayLike,
        directions: ArrayLike | None = None,
        seeds: ArrayLike | None = None,
        workers: int | None = None,
    ) -> BatchSolution:
        """Solve many goals at once, on all cores: positions (N, 3) [m], directions (N, 3) or one (3,) or None.

        seeds: (N, n), or (n,) for all, default mid-range. workers: threads, default one per core that the
        process may use. The results are those of solve, for any number of workers; joints by a closed form may
        differ by 1e-9 rad, as processors with AVX2 solve several goals at once. Goals that are not solved
        at once take as long as with solve, each with the time budget of the constructor. Raises InputError
        for wrong shapes or values.
        """
        goals = pack_goals(positions, directions)
        starts = self.arm.middle[None].copy() if seeds is None else seed_rows(seeds, len(goals), self.arm.n)
        return solve_goals(self._pipeline, self.solve, goals, starts, workers)

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
        if goal.tolerance is not None:
            solver, goal = self._serving(goal)
            return solver.track(goal, q, before, time_budget)
        if goal.cone and self.method != 'lm':
            return self.solve(goal, q, time_budget)  # which says that it is not supported
        arm = self.arm
        now = arm.checked(q, 'q')
        last = now.copy() if before is None else arm.checked(before, 'before')
        solve = self.solve if time_budget is None else partial(self.solve, time_budget=time_budget)
        solution = self._tracker.advance(goal, now, last, solve)
        if math.isnan(goal.packed[LATERAL]) or solution.status is not Status.SOLVED:
            return solution
        return self._roll.aligned(goal, last, solution)

    def solve_nearby(self, goal: Goal, q: ArrayLike, largest_move: ArrayLike | None = None) -> Solution:
        """Find the closest configuration that a continuous motion from configuration q (n,) reaches.

        For moving goals, in reach or not: the joints move about as little as the goal, whereas solve searches
        for the best configuration anywhere. SOLVED or NOT_FOUND; position first, then direction. largest_move
        (n,): of each joint [rad or m], None: any. Raises InputError for wrong lengths and NaN.
        """
        now = self.arm.checked(q, 'q')
        move = None if largest_move is None else self.arm.checked(largest_move, 'largest_move')
        solver, goal = self._serving(without_cone(goal, 'solve_nearby'))
        errors = solver._search.refine(goal, now, move)
        if solver._search.met(*errors):
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
        return self._tracker.step(goal, q, before)[0]

    def steps(self, goal: Goal, seed: ArrayLike | None = None) -> Iterator[Array]:
        """Yield the joints (n,) of one descent by the method from seed (n,): at its start and after each.

        Steps are iterations or sweeps; the last joints are the result of the descent, which random restarts
        repeat. Raises InputError for a seed of the wrong length or with NaN.
        """
        return self._search.steps(without_cone(goal, 'steps'), self._start(seed))

    def solve_path(
        self,
        positions: ArrayLike,
        directions: ArrayLike | None = None,
        seed: ArrayLike | None = None,
        time_budget: float = 60.0,
    ) -> PathSolution:
        """Find the joint path for goals (N, 3) [m], directions as for solve_batch, whose largest joint move is least.

        Dynamic programming over all solutions of every point, which avoids branches that end later. seed
        (n,): determines what the goals leave free. Points without a solution are not solved and hold the
        seed. time_budget [s]: after it the search for branches ends; following one takes 10 us per point.
        Raises InputError for wrong shapes or values.
        """
        goals = pack_goals(positions, directions)
        start, budget = self._start(seed), positive('time_budget', time_budget, finite=False)
        options = self._search.options
        return best_path(self.arm, self.closed_form, goals, options, start, self.solve_all, budget)

    def evaluate(self, goal: Goal, q: ArrayLike, restarts: int = 0) -> Solution:
        """Return configuration q (n,) with its errors by FK: SOLVED within the tolerances, else NOT_FOUND.

        Limits are not checked. restarts: value for the solution. Raises InputError.
        """
        q, restarts = self.arm.checked(q, 'q'), whole('restarts', restarts, 0)
        errors = self.errors(goal, q)
        met = self._serving(goal)[0]._search.met(*errors, goal.cone)
        status = Status.SOLVED if met else Status.NOT_FOUND
        return Solution(status, q, *errors, restarts=restarts)

    def errors(self, goal: Goal, q: ArrayLike) -> tuple[float, float]:
        """Return (position error [m], direction error [rad]) of configuration q (n,) by FK."""
        return errors_of(self.arm, checked_goal(goal).packed, q)


def without_cone(goal: Goal, call: str) -> Goal:
    """Return goal. Raises InputError for one with a cone, which call does not support."""
    if checked_goal(goal).cone:
        raise InputError(f'{call} does not support goals with a cone: give the direction alone, such as that of solve')
    return goal


def _check_choices(method: Any, compile_: Any, closed_form: Any) -> None:
    """Raise InputError for options of IkSolver that are none of the allowed ones."""
    if not isinstance(compile_, str) or compile_ not in COMPILE:
        raise InputError(f'compile must be one of {", ".join(COMPILE)}, got {safe_repr(compile_)}')
    if not isinstance(method, str) or method not in METHODS:
        hint = '; leave method out for the default' if isinstance(method, str) and method == 'default' else ''
        raise InputError(f'method must be one of {", ".join(METHODS)}, got {safe_repr(method)}{hint}')
    if not isinstance(closed_form, (bool, np.bool_)):
        raise InputError(f'closed_form must be True or False, got {safe_repr(closed_form)}')
