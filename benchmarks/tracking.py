# SPDX-License-Identifier: Apache-2.0
"""Following smooth paths point by point."""

from __future__ import annotations

from time import perf_counter

import numpy as np
from oracles.arms import Task, solver_for
from oracles.chain import Array, into_limits
from oracles.reference import Reference

from benchmarks.complete import SAME, apart, idle_joints
from benchmarks.contest import Contest, Record, title_of
from benchmarks.tables import Table, heading, percent
from ik_node import Goal

POINTS = 100_000
ARMS = 6
FEWER = {'rtb': 3000}
SOLVERS = ['own_track', 'rtb']
ALLOWED = 1.5  # times the largest step of the branch
WAVES = 3
STRAIGHT = 0.1  # a step that differs from the one before by a smaller share of itself goes on as that did
PIECES = 64  # into which a large step is cut to see whether it is a continuous motion


def run(tasks: list[Task], scale: float) -> None:
    """Print success, time and the largest joint step of each solver on each path."""
    chosen = pick(tasks)
    count = max(100, round(POINTS * scale / len(chosen)))
    counts = {peer: min(count, max(100, round(fewer * scale))) for peer, fewer in FEWER.items()}
    heading(
        'Tracking',
        f"""{count} points of a smooth path for each of {len(chosen)} arms, for the peers its beginning. The
        path is the FK of a smooth motion of all joints within the limits, so that motion is a continuous
        branch. Each answer is the seed of the next point. Largest step: of any joint that moves the tool, in
        radians or metres, announced changes of branch left out, and divided by that of the branch. Jumps:
        steps of more than {ALLOWED} times the branch's that neither go on as the step before (within
        {STRAIGHT:.0%}) nor are a continuous motion, by an independent solver in {PIECES} pieces, and are
        not announced. "Other start": from another solution of the first
        point, whose branch may end. "solve_path": all points in one call. Median time per point in
        microseconds.""",
    )
    columns = ('points', 'solved', 'median', 'largest step', 'ratio', 'jumps', 'announced')
    table = Table('arm'.ljust(26), 'solver'.ljust(26), *columns)
    with Contest(SOLVERS) as contest, Contest(SOLVERS[:1]) as alone:
        for task in chosen:
            path = Path(task, count)
            records, left_out = contest.run(task, *path.goals, counts, path.q[0], follow=True, rounds=1)
            for peer in SOLVERS:
                if peer in left_out:
                    table.row(task.name, title_of(peer), 0, left_out[peer])
                else:
                    table.row(task.name, title_of(peer), *path.judged(records[peer], path.q[0]))
            start = path.other_start()
            if start is not None:
                records, _ = alone.run(task, *path.goals, seed=start, follow=True, rounds=1)
                table.row(task.name, 'ik_node track, other start', *path.judged(records['own_track'], start))
            table.row(task.name, 'ik_node solve_path', *path.solved_at_once())


class Path:
    """A smooth path for one arm, the branch q (N, n) that made it, and what counts on it."""

    def __init__(self, task: Task, count: int) -> None:
        self.task = task
        self.q = smooth_motion(task, count)
        self.goals = task.chain.fk(self.q)
        self.busy = ~idle_joints(task)
        self.reference = Reference(task)

    def judged(self, record: Record, start: Array) -> list[object]:
        """Return the cells of a row: points, solved, median, largest step, ratio, jumps, announced."""
        done = len(record.answers)
        answers = nearest_answers(self.task, record, start)
        announced = np.array(record.announced)
        solved = record.solved(self.task, self.goals[0][:done], self.goals[1][:done])
        return [
            done,
            percent(solved),
            f'{1e6 * np.median(record.times):.1f}',
            *self.steps(answers, announced),
        ]

    def steps(self, answers: Array, announced: Array) -> list[object]:
        """Return largest step, ratio, jumps and announced changes of answers (N + 1, n), the start first."""
        branch = np.abs(np.diff(self.q[: len(announced)], axis=0))[:, self.busy].max()
        moves = np.diff(answers, axis=0)[:, self.busy]
        steps = np.abs(moves).max(axis=1)
        bends = np.abs(np.diff(moves, axis=0, prepend=moves[:1])).max(axis=1)
        large = np.flatnonzero((steps > ALLOWED * branch) & (bends > STRAIGHT * steps) & ~announced)
        jumps = sum(not self.is_continuous(k, answers[k], answers[k + 1]) for k in large)
        largest = steps[~announced].max()
        return [f'{largest:.4f}', f'{largest / branch:.2f}', jumps, np.count_nonzero(announced)]

    def is_continuous(self, k: int, before: Array, after: Array) -> bool:
        """Whether following the path from point k - 1 in small pieces leads from before to after."""
        shares = np.linspace(0.0, 1.0, PIECES + 1)[1:, None]
        between = self.q[max(k - 1, 0)] * (1.0 - shares) + self.q[k] * shares
        reached, _ = self.reference.follow(before, *self.task.chain.fk(between))
        return bool(apart(self.task, reached * self.busy, after * self.busy) < SAME)

    def other_start(self) -> Array | None:
        """Return the solution of the first point that is furthest from the branch, if there is another."""
        solutions = solver_for(self.task.arm).solve_all(Goal(self.goals[0][0], self.goals[1][0]), self.q[0])
        return solutions[-1].q if len(solutions) > 1 else None

    def solved_at_once(self) -> list[object]:
        """Return the cells of solve_path's row."""
        solver = solver_for(self.task.arm)
        solver.solve_path(self.goals[0][:5], self.goals[1][:5], self.q[0])
        start = perf_counter()
        found = solver.solve_path(*self.goals, self.q[0])
        time = (perf_counter() - start) / len(self.q)
        announced = np.zeros(len(self.q), dtype=bool)
        announced[list(found.breaks)] = True
        announced[0] = True  # where to begin is part of the answer
        cells = self.steps(np.vstack([self.q[:1], found.q]), announced)
        solved = self.task.good(found.q, *self.goals)
        return [len(self.q), percent(solved), f'{1e6 * time:.1f}', *cells[:-1], len(found.breaks)]


def pick(tasks: list[Task]) -> list[Task]:
    """Return up to ARMS arms with five joints, half of them shipped, half real."""
    shipped = [task for task in tasks if task.shipped and task.arm.n == 5]
    real = [task for task in tasks if not task.shipped and task.arm.n == 5]
    half = min(ARMS // 2, len(real))
    spread = real[:: max(1, len(real) // half)][:half] if half else []
    return [*shipped[: ARMS - len(spread)], *spread]


def smooth_motion(task: Task, count: int) -> Array:
    """Return joints (count, n) that swing within the limits, a sum of WAVES slow waves each."""
    rng = np.random.default_rng(8)
    lower, upper = np.nan_to_num([task.arm.lower, task.arm.upper], neginf=-np.pi, posinf=np.pi)
    share = rng.dirichlet(np.ones(WAVES), task.arm.n)
    waves = rng.uniform(2.0, 12.0, (task.arm.n, WAVES)) * count / 16_000
    phase = rng.uniform(0.0, 2 * np.pi, (task.arm.n, WAVES))
    time = np.linspace(0.0, 2 * np.pi, count)[:, None, None]
    swing = (share * np.sin(waves * time + phase)).sum(axis=-1)
    return (lower + upper) / 2 + 0.45 * (upper - lower) * swing


def nearest_answers(task: Task, record: Record, start: Array) -> Array:
    """Return start and at each point the answer nearest to the one before (N + 1, n), or that one again."""
    limits, path = np.array([task.arm.lower, task.arm.upper]), [start]
    for answers in record.answers:
        path.append(path[-1])
        if answers:
            candidates, inside = into_limits(np.array(answers), limits, task.arm.prismatic)
            if inside.any():
                moves = np.abs(candidates[inside] - path[-1]).max(axis=1)
                path[-1] = candidates[inside][moves.argmin()]
    return np.array(path)
