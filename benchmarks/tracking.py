"""Following smooth paths point by point."""

from __future__ import annotations

import numpy as np

from benchmarks.arms import Task
from benchmarks.chain import Array, into_limits
from benchmarks.complete import idle_joints
from benchmarks.contest import Contest, Record, title_of
from benchmarks.tables import Table, heading, percent

POINTS = 100_000
ARMS = 6
FEWER = {'rtb': 3000, 'optik_py': 1000, 'tracik': 500, 'eaik_helped': 3000}
SOLVERS = ['own', 'eaik_helped', 'rtb', 'optik_py', 'tracik']
ALLOWED = 1.5  # times the largest step of the best branch
WAVES = 3


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
        radians or metres, and divided by that of the branch. Jumps: steps of more than {ALLOWED} times the
        branch's. Median time of a call in microseconds.""",
    )
    columns = ('points', 'solved', 'median', 'largest step', 'ratio', 'jumps')
    table = Table('arm'.ljust(26), 'solver'.ljust(20), *columns)
    with Contest(SOLVERS) as contest:
        for task in chosen:
            q = smooth_motion(task, count)
            busy = ~idle_joints(task)
            positions, directions = task.chain.fk(q)
            records, left_out = contest.run(
                task, positions, directions, counts, seed=q[0], follow=True, rounds=1
            )
            for peer in SOLVERS:
                if peer in left_out:
                    table.row(task.name, title_of(peer), 0, left_out[peer])
                    continue
                record, done = records[peer], len(records[peer].answers)
                branch = np.abs(np.diff(q[:done, busy], axis=0)).max()
                steps = joint_steps(task, record, q[0])[:, busy].max(axis=1)
                table.row(
                    task.name,
                    title_of(peer),
                    done,
                    percent(record.solved(task, positions[:done], directions[:done])),
                    f'{1e6 * np.median(record.times):.1f}',
                    f'{steps.max():.4f}',
                    f'{steps.max() / branch:.2f}',
                    np.count_nonzero(steps > ALLOWED * branch),
                )


def pick(tasks: list[Task]) -> list[Task]:
    """Return up to ARMS arms with five joints, shipped and real ones in turn."""
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


def joint_steps(task: Task, record: Record, start: Array) -> Array:
    """Return how far each joint moved at each point (N, n)."""
    limits, q, steps = np.array([task.arm.lower, task.arm.upper]), start, []
    for answers in record.answers:
        moves = np.zeros((1, len(start)))
        if answers:
            candidates, inside = into_limits(np.array(answers), limits, task.arm.prismatic)
            if inside.any():
                moves = np.abs(candidates[inside] - q)
                q = candidates[inside][moves.max(axis=1).argmin()]
        steps.append(moves[moves.max(axis=1).argmin()])
    return np.array(steps)
