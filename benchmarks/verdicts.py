# SPDX-License-Identifier: Apache-2.0
"""What goals in and out of reach are called on arms without parallel axes 2, 3, 4, and how soon."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, field

import numpy as np

from benchmarks.arms import Task, solver_for
from benchmarks.chain import Array
from benchmarks.general import groups, times
from benchmarks.goals import at_limits, singular
from benchmarks.random_arms import unit
from benchmarks.reference import Reference, in_threads
from benchmarks.special_arms import near
from benchmarks.tables import Table, heading
from ik_node import Solution, Status

GOALS = 100_000  # reachable, and as many others
REFUTED = 2000  # rejections of which brute force tries to meet the goal
RESTARTS = 2000
EXAMPLES = 5  # of open goals, printed per kind
BEYOND = (0.02, 0.6)  # [rad, or 0.15 m] by which joints exceed their limits
REACHABLE = ('reachable', 'at limits', 'singular')  # the others may be beyond reach
KINDS = ('around', 'beyond', 'turned', *REACHABLE)


@dataclass
class Verdicts:
    """Counts of one kind of goal on some arms; rejections: times [s] of UNREACHABLE. examples: open goals."""

    goals: int = 0
    solved: int = 0
    rejected: int = 0
    tried: int = 0
    wrong: int = 0
    rejections: list[float] = field(default_factory=list)
    examples: list[str] = field(default_factory=list)

    @property
    def open(self) -> int:
        """How many are neither solved nor rejected."""
        return self.goals - self.solved - self.rejected

    def add(self, other: Verdicts) -> None:
        """Add those of another arm."""
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)


def run(tasks: list[Task], scale: float) -> None:
    """Print the verdicts by kind of arm and kind of goal."""
    arms = [*near().items(), *groups(tasks, min(scale, 1.0))]
    number = sum(len(group) for _, group in arms)
    count, tried = max(3, math.ceil(GOALS * scale / number)), math.ceil(REFUTED * scale / number)
    heading(
        'Verdicts without parallel axes 2, 3, 4',
        f"""Per arm {count} reachable goals, of which a tenth have joints at their limits and a tenth are at
        singular poses, and {count} others, a third each: anywhere around the workspace with random
        directions; by FK with one joint to all of them beyond their limits by {BEYOND[0]:g} to
        {BEYOND[1]:g} rad; reachable positions with random directions. Wrong: called solved, but not so by
        the FK of this benchmark; reachable, but called unreachable; called unreachable, but met by one of
        {RESTARTS} restarts of an independent solver (tried: how many rejections were checked so, up to
        {tried} per arm and kind). Times: microseconds of processor time of a rejection with its reason.""",
    )
    columns = ['number', 'solved', 'rejected', 'open', 'tried', 'wrong', 'median', 'p99']
    table = Table('arms'.ljust(28), 'goals'.ljust(10), *columns)
    total = {kind: Verdicts() for kind in KINDS}
    for name, group in arms:
        found = {kind: Verdicts() for kind in KINDS}
        for task in group:
            for kind, verdicts in judge(task, count, tried).items():
                found[kind].add(verdicts)
                total[kind].add(verdicts)
        for kind, verdicts in found.items():
            table.row(name, kind, *cells(verdicts))
    for kind, verdicts in total.items():
        table.row('all', kind, *cells(verdicts))
    for verdicts in total.values():
        for example in verdicts.examples[:EXAMPLES]:
            print(f'  open: {example}')


def cells(found: Verdicts) -> list[object]:
    """Return counts, the share that is open, and times."""
    share = f'{100 * found.open / found.goals:.3f} %'
    counts = [found.goals, found.solved, found.rejected, share, found.tried, found.wrong]
    if not found.rejections:
        return counts
    return counts + [f'{1e6 * value:.1f}' for value in np.quantile(found.rejections, (0.5, 0.99))]


def judge(task: Task, count: int, tried: int) -> dict[str, Verdicts]:
    """Return the verdicts for an arm, by kind of goal."""
    solver = solver_for(task.arm)
    found = {}
    for kind, (positions, directions) in goals(task, count).items():
        answers: list[Solution] = []
        spent = times(solver.solve, task, positions, directions, answers)
        solved = np.array([answer.solved for answer in answers])
        rejected = np.array([answer.status is Status.UNREACHABLE for answer in answers])
        good = task.good(np.array([answer.q for answer in answers]), positions, directions)
        wrong = solved & ~good
        checked = np.zeros(0, dtype=int)
        if kind in REACHABLE:
            wrong |= rejected
        else:
            checked = np.flatnonzero(rejected)[:tried]
            brute = functools.partial(Reference(task).solutions, restarts=RESTARTS)
            met = in_threads(brute, positions[checked], directions[checked])
            wrong[checked[np.array([len(q) > 0 for q in met], bool)]] = True
        for k in np.flatnonzero(wrong):
            told = f'{answers[k].status.name} {positions[k].tolist()} {directions[k].tolist()}'
            print(f'  wrong: {task.name} {kind} {told}: {answers[k].q.tolist()}')
        left = np.flatnonzero(~solved & ~rejected)[:EXAMPLES]
        examples = [f'{task.name} {kind} {positions[k].tolist()} {directions[k].tolist()}' for k in left]
        counts = map(int, (len(positions), solved.sum(), rejected.sum(), len(checked), wrong.sum()))
        found[kind] = Verdicts(*counts, spent[rejected].tolist(), examples)
    return found


def goals(task: Task, count: int) -> dict[str, tuple[Array, Array]]:
    """Return positions and directions (N, 3) by kind."""
    third = count // 3
    positions, directions, _ = task.goals(math.ceil(0.8 * count), seed=15)
    rng = np.random.default_rng((16, *task.name.encode()))
    turned = np.array([unit(rng) for _ in range(2 * count)])
    reach = max(Reference(task).scale, 1e-3)
    around = task.chain.first + reach * rng.uniform(0.0, 1.1, (third, 1)) * turned[count : count + third]
    limits, poses = (make(task, rng, math.ceil(0.1 * count)) for make in (at_limits, singular))
    return {
        'around': (around, turned[:third]),
        'beyond': task.chain.fk(beyond(task, rng, third)),
        'turned': (positions[: count - 2 * third], turned[: count - 2 * third]),
        'reachable': (positions, directions),
        'at limits': (limits.positions, limits.directions),
        'singular': (poses.positions, poses.directions),
    }


def beyond(task: Task, rng: np.random.Generator, count: int) -> Array:
    """Return configurations (count, n) of which some joints are beyond their limits."""
    arm = task.arm
    q = arm.sample(rng, count)
    some = rng.random(q.shape) < rng.random((count, 1))
    some[np.arange(count), rng.integers(arm.n, size=count)] = True
    past = rng.uniform(*BEYOND, q.shape) * np.where(arm.prismatic, 0.15, 1.0)
    ends = np.where(rng.random(q.shape) < 0.5, arm.lower - past, arm.upper + past)
    return np.where(some & np.isfinite(ends), ends, q)
