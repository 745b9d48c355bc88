# SPDX-License-Identifier: Apache-2.0
"""Goals that a configuration meets within both tolerances, but none is made to meet exactly: all solved."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from benchmarks.arms import Task
from benchmarks.chain import Array
from benchmarks.random_arms import unit
from benchmarks.special_arms import with_random
from benchmarks.tables import Table, heading
from ik_node import Goal, IkSolver

GOALS = 20_000
TOLERANCES = [(1e-6, 1e-4), (1e-4, 1e-3), (5e-3, 5e-2), (1e-3, 1e-6)]  # [m], [rad]
MISSES = (0.1, 0.98)  # shares of the tolerances by which the configuration misses its goal
ROUNDING = 1e-12  # m and rad


@dataclass
class Counts:
    """How many goals there were, and answers not solved or wrong."""

    goals: int = 0
    unsolved: int = 0
    wrong: int = 0

    def add(self, other: Counts) -> None:
        """Add those of another arm."""
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)


def run(tasks: list[Task], scale: float) -> None:
    """Print how many goals are solved, by kind of arm."""
    groups = with_random(tasks, scale)
    count = max(4, math.ceil(GOALS * scale / sum(len(group) for group in groups.values())))
    heading(
        'Goals met within the tolerances only',
        f"""{count} goals per arm, by turns at tolerances of
        {', '.join(f'{position:g} m and {angle:g} rad' for position, angle in TOLERANCES)}. A configuration
        with each joint at a limit, at 0 or anywhere misses its goal by {MISSES[0]:g} to {MISSES[1]:g} times
        both tolerances. Each goal is asked twice, from mid-range and from a random seed. Wrong: solved, but
        not by the FK of this benchmark within limits and tolerances.""",
    )
    table = Table('arms'.ljust(28), 'number', 'goals', 'answers', 'not solved', 'wrong')
    total = Counts()
    for name, group in groups.items():
        counts = Counts()
        for task in group:
            counts.add(judge(task, count))
        total.add(counts)
        table.row(name, len(group), counts.goals, 2 * counts.goals, counts.unsolved, counts.wrong)
    arms = sum(len(group) for group in groups.values())
    table.row('all', arms, total.goals, 2 * total.goals, total.unsolved, total.wrong)


def judge(task: Task, count: int) -> Counts:
    """Ask for count goals of an arm twice each; print the goals that are not solved."""
    arm, counts, rng = task.arm, Counts(), np.random.default_rng(36)
    solvers = [
        IkSolver(arm, compile='wait', position_tolerance=position, direction_tolerance=angle)
        for position, angle in TOLERANCES
    ]
    for number in range(count):
        choice = number % len(TOLERANCES)
        q = edge(task, rng)
        position, direction = displaced(task, q, TOLERANCES[choice], rng)
        counts.goals += 1
        for seed in (arm.middle, arm.sample(rng, 1)[0]):
            found = solvers[choice].solve(Goal(position, direction), seed)
            if not found.solved:
                counts.unsolved += 1
                given = f'{position.tolist()} {direction.tolist()}: {q.tolist()} from {seed.tolist()}'
                print(f'  not solved: {task.name} {TOLERANCES[choice]} {given}: {found.reason}')
                continue
            errors = task.errors(found.q[None], position[None], direction[None])[:2]
            counts.wrong += any(
                not error[0] <= allowed + ROUNDING
                for error, allowed in zip(errors, TOLERANCES[choice], strict=True)
            )
    return counts


def edge(task: Task, rng: np.random.Generator) -> Array:
    """Return joints (n,), each at a limit, at 0, where arms are straight, or anywhere."""
    arm = task.arm
    lower, upper = np.maximum(arm.lower, -math.pi), np.minimum(arm.upper, math.pi)
    choices = [lower, upper, np.clip(np.zeros(arm.n), lower, upper), arm.sample(rng, 1)[0]]
    return np.choose(rng.integers(0, 4, arm.n), choices)


def displaced(
    task: Task, q: Array, tolerances: tuple[float, float], rng: np.random.Generator
) -> tuple[Array, Array]:
    """Return a position and a direction (3,) that q (n,) misses by less than tolerances [m, rad]."""
    position, direction = (rows[0] for rows in task.chain.fk(q[None]))
    across = np.cross(direction, unit(rng))
    turn = tolerances[1] * rng.uniform(*MISSES)
    direction = math.cos(turn) * direction + math.sin(turn) * across / np.linalg.norm(across)
    return position + tolerances[0] * rng.uniform(*MISSES) * unit(rng), direction
