# SPDX-License-Identifier: Apache-2.0
"""What make compare measures and reports: the answers of a solver to goals."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np
from oracles.arms import Task
from oracles.chain import Array

from benchmarks.goals import Goals
from ik_node import Goal, IkSolver, Status

RESTARTS = 100  # at most, for each goal


@dataclass
class Answers:
    """What a solver made of Goals: per goal errors [m], [rad] by the benchmark's FK, how many restarts it
    took, whether it claims success, and processor time [s]."""

    position: Array
    direction: Array
    restarts: Array
    claimed: Array
    seconds: Array

    @property
    def first(self) -> Array:
        """Whether the first descent did it (N,)."""
        return self.restarts == 0

    def solved(self, tolerance: float) -> Array:
        """Whether both errors are within tolerance (N,)."""
        return (self.position <= tolerance) & (self.direction <= tolerance)


@dataclass
class Result:
    """All answers of one method on one arm, by kind of goal."""

    task: Task
    method: str
    answers: dict[str, Answers] = field(default_factory=dict)


def measure(task: Task, solver: IkSolver, goals: Goals) -> Answers:
    """Solve goals one by one and judge the answers."""
    solutions, seconds = [], []
    for position, direction, seed in zip(goals.positions, goals.directions, goals.seeds, strict=True):
        goal = Goal(position, direction)
        start = time.thread_time()
        solutions.append(solver.solve(goal, seed))
        seconds.append(time.thread_time() - start)
    q = np.array([solution.q for solution in solutions])
    position, direction, _ = task.errors(q, goals.positions, goals.directions)
    restarts = np.array([solution.restarts for solution in solutions])
    claimed = np.array([solution.status is Status.SOLVED for solution in solutions])
    return Answers(position, direction, restarts, claimed, np.array(seconds))
