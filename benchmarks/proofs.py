# SPDX-License-Identifier: Apache-2.0
"""IkSolver.prove: of which goals all solutions are proven, whether solve_all agrees, and how soon."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from time import thread_time

import numpy as np

from benchmarks.arms import Task, solver_for
from benchmarks.complete import SAME, lacking
from benchmarks.random_arms import general_arm
from benchmarks.special_arms import kinds, near
from benchmarks.tables import Table, heading, percent
from ik_node import IkSolver, Solution, Status
from ik_node.solver.proof.proof import Proof

ARMS = 20  # of general geometry
OF_A_KIND = 6  # of special geometry, and nearly so
GOALS = 50


@dataclass
class Counts:
    """Of some arms: goals, for each whether it is proven; times [s] of all but the first goal of an arm."""

    proven: list[bool] = field(default_factory=list)
    complete: list[bool] = field(default_factory=list)
    solutions: int = 0
    only_proven: int = 0
    only_found: int = 0
    none: int = 0
    rejected: int = 0
    wrong: int = 0
    radius: float = 0.0
    times: list[float] = field(default_factory=list)
    firsts: list[float] = field(default_factory=list)
    reasons: Counter[str] = field(default_factory=Counter)


def run(tasks: list[Task], scale: float) -> None:
    """Print what is proven, by arm or kind of arm."""
    count = max(3, round(GOALS * scale))
    heading(
        'Proofs by interval arithmetic',
        f"""Per arm {count} reachable goals and {count} with the opposite
        direction. Complete: the share that solve_all calls complete. Solutions: those within the limits that
        are proven to be all. Only proven, only found: solutions of proven goals that solve_all or the proof
        alone has; within {SAME:g} in every joint they count as one. None: proven to have none within the
        limits; rejected: how many of these solve calls unreachable; wrong: proven to have one, but called
        unreachable. Radius: the largest of the enclosures, with the rounding of the joints to doubles. Times:
        milliseconds of processor time of the median goal, and of the first goal of an arm on top of it.""",
    )
    columns = ['number', 'goals', 'proven', 'complete', 'solutions', 'only proven', 'only found', 'none']
    table = Table('arms'.ljust(28), *columns, 'rejected', 'wrong', 'radius', 'time', 'first')
    arms = [(task.name, [task]) for task in tasks if fits(task)]
    arms.append(('general', [general_arm(seed) for seed in range(max(2, round(ARMS * min(scale, 1.0))))]))
    most = max(1, round(OF_A_KIND * min(scale, 1.0)))
    arms += [(name, list(filter(fits, group))[:most]) for name, group in {**kinds(), **near()}.items()]
    reasons: Counter[str] = Counter()
    for name, group in arms:
        counts = Counts()
        for task in group:
            judge(task, count, counts)
        reasons += counts.reasons
        if group:
            table.row(name, len(group), *cells(counts))
    print('\nNot proven:')
    for reason, number in reasons.most_common():
        print(f'- {number}: {reason}')


def fits(task: Task) -> bool:
    """Whether an arm has five joints that all count."""
    return task.arm.n == task.arm.effective_dof == 5 and not task.arm.idle.any() and not task.position_only


def judge(task: Task, count: int, counts: Counts) -> None:
    """Add the goals of one arm to counts."""
    positions, directions, _ = task.goals(count, seed=5)
    solver = solver_for(task.arm)
    times = []
    for sign in (1.0, -1.0):
        for position, direction in zip(positions, sign * directions, strict=True):
            goal = task.goal(position, direction)
            start = thread_time()
            proof = solver.prove(goal)
            times.append(thread_time() - start)
            every = solver.solve_all(goal, time_budget=np.inf)
            counts.complete.append(every.complete)
            counts.proven.append(proof.proven)
            if not proof.proven:
                counts.reasons[proof.reason] += 1
                continue
            compare(task, solver, proof, every, solver.solve(goal), counts)
    counts.times += times[1:]
    counts.firsts.append(times[0] - float(np.median(times[1:])))


def compare(
    task: Task, solver: IkSolver, proof: Proof, every: list[Solution], single: Solution, counts: Counts
) -> None:
    """Compare what is proven with what solve_all and solve say."""
    found = np.array([solution.q for solution in every]).reshape(-1, solver.arm.n)
    counts.solutions += len(proof.q)
    only_proven, only_found = lacking(task, proof.q, found), lacking(task, found, proof.q)
    for words, q in (*(('proven', q) for q in only_proven), *(('found', q) for q in only_found)):
        print(f'  only {words}: {task.name} {q.tolist()}')
    counts.only_proven += len(only_proven)
    counts.only_found += len(only_found)
    counts.radius = max([counts.radius, *proof.radius])
    rejected = single.status is Status.UNREACHABLE
    counts.none += not len(proof.q)
    counts.rejected += rejected and not len(proof.q)
    counts.wrong += rejected and len(proof.q) > 0


def cells(counts: Counts) -> list[str]:
    """Return the cells of a row but for name and number."""
    return [
        str(len(counts.proven)),
        percent(np.array(counts.proven)),
        percent(np.array(counts.complete)),
        *(str(n) for n in (counts.solutions, counts.only_proven, counts.only_found)),
        *(str(n) for n in (counts.none, counts.rejected, counts.wrong)),
        f'{counts.radius:.1e}',
        *(f'{1e3 * np.median(times):.0f}' for times in (counts.times, counts.firsts)),
    ]
