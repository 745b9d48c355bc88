"""make compare: the methods of descent side by side on every arm; writes docs/methods.md and its plots."""

from __future__ import annotations

import argparse
import platform
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from tqdm import tqdm

from benchmarks.arms import ROOT, TOLERANCE, Task, chosen
from benchmarks.bench import processor
from benchmarks.chain import Array
from benchmarks.compare_report import write
from ik_node import Goal, IkSolver, Status, kernels
from ik_node.solver.solver import METHODS

DEFAULT = 'default'  # IkSolver as it comes: the closed form where there is one, then lm
COARSE = 1e-3  # m and rad: what many would call there
RESTARTS = 100
GOALS = {'transpose': 60, 'ccd': 60, 'scipy': 12}  # per arm: the first ones of those of the others
MOST_GOALS = 200
SPECIAL_SHARE = 0.1  # of that many goals at singular poses, at limits, out of reach and tied
BEYOND = 1.05  # times the largest reach there can be


@dataclass
class Goals:
    """Goals (N, 3) m, (N, 3) unit, and the seeds (N, n) to start from."""

    positions: Array
    directions: Array
    seeds: Array


@dataclass
class Answers:
    """What a method made of Goals: per goal errors [m], [rad] by the benchmark's FK, whether the first
    descent did it, whether it claims success, and processor time [s]."""

    position: Array
    direction: Array
    first: Array
    claimed: Array
    seconds: Array

    def solved(self, tolerance: float) -> Array:
        """Whether both errors are within tolerance (N,)."""
        return (self.position <= tolerance) & (self.direction <= tolerance)


@dataclass
class Result:
    """All answers of one method on one arm, by kind of goal."""

    task: Task
    method: str
    answers: dict[str, Answers] = field(default_factory=dict)


def reachable(task: Task, rng: np.random.Generator, count: int) -> Goals:
    """Goals that random joints within the limits reach, seed mid-range."""
    q = task.arm.sample(rng, count)
    return Goals(*task.chain.fk(q), np.tile(task.arm.middle, (count, 1)))


def at_limits(task: Task, rng: np.random.Generator, count: int) -> Goals:
    """As reachable, with each joint at one of its limits every other time."""
    arm = task.arm
    q = arm.sample(rng, count)
    ends = np.where(rng.random(q.shape) < 0.5, arm.lower, arm.upper)
    q = np.where((rng.random(q.shape) < 0.5) & ~arm.continuous, ends, q)
    return Goals(*task.chain.fk(q), np.tile(arm.middle, (count, 1)))


def singular(task: Task, rng: np.random.Generator, count: int) -> Goals:
    """Goals at poses where the task Jacobian loses rank as far as single joints can make it."""
    q = np.array([most_singular(task, start) for start in task.arm.sample(rng, count)])
    return Goals(*task.chain.fk(q), np.tile(task.arm.middle, (count, 1)))


def from_singular(task: Task, rng: np.random.Generator, count: int) -> Goals:
    """Reachable goals, started from such a pose."""
    goals = reachable(task, rng, count)
    goals.seeds = np.array([most_singular(task, start) for start in task.arm.sample(rng, count)])
    return goals


def most_singular(task: Task, q: Array) -> Array:
    """Turn one joint after another to where the last singular value of the scaled Jacobian is least."""
    arm = task.arm
    scale = np.where(np.arange(6) < 3, 1 / arm.reach, 1.0)[:, None]
    lower, upper = np.where(arm.continuous, -np.pi, arm.lower), np.where(arm.continuous, np.pi, arm.upper)

    def sharpness(q: Array) -> float:
        values = np.linalg.svd(arm.jacobian(q) * scale, compute_uv=False)
        return float(values[min(arm.effective_dof, arm.n) - 1] / values[0])

    width = upper - lower
    for share in (1.0, 0.05, 0.0025):
        for j in middle_first(arm.n):
            tries = np.tile(q, (21, 1))
            tries[:, j] = np.clip(q[j] + np.linspace(-0.5, 0.5, 21) * share * width[j], lower[j], upper[j])
            q = min(tries, key=sharpness)
    return q


def middle_first(n: int) -> list[int]:
    """Return the joints from the middle outwards: elbows make more singular poses than bases."""
    return sorted(range(n), key=lambda j: abs(j - n // 2))


def out_of_reach(task: Task, rng: np.random.Generator, count: int) -> Goals:
    """Goals a little further than the sum of all lengths, in any direction."""
    away, directions = (v / np.linalg.norm(v, axis=1)[:, None] for v in rng.normal(size=(2, count, 3)))
    positions = task.arm.joints[0, 3:6] + BEYOND * task.arm.reach * away
    return Goals(positions, directions, np.tile(task.arm.middle, (count, 1)))


def tied(task: Task, rng: np.random.Generator, count: int) -> Goals:
    """Reachable positions with random directions: out of reach where the position ties the direction."""
    goals = reachable(task, rng, count)
    goals.directions = rng.normal(size=(count, 3))
    goals.directions /= np.linalg.norm(goals.directions, axis=1)[:, None]
    return goals


KINDS = {
    'reachable': reachable,
    'coarse': reachable,
    'limits': at_limits,
    'singular': singular,
    'from singular': from_singular,
    'out of reach': out_of_reach,
    'tied': tied,
}


def solver_for(task: Task, method: str, tolerance: float) -> IkSolver:
    """Return the solver of a method; all but DEFAULT without closed form."""
    solver = IkSolver(
        task.arm,
        method='lm' if method == DEFAULT else method,
        position_tolerance=tolerance,
        direction_tolerance=tolerance,
        restarts=RESTARTS,
    )
    if method != DEFAULT:
        solver.closed_form = None
    return solver


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
    claimed = np.array([solution.status is Status.SOLVED for solution in solutions])
    first = np.array([solution.restarts == 0 for solution in solutions])
    return Answers(position, direction, first, claimed, np.array(seconds))


def compare(task: Task, method: str, scale: float) -> Result:
    """Measure one method on one arm."""
    result = Result(task, method)
    for number, (kind, make) in enumerate(KINDS.items()):
        if kind == 'tied' and task.arm.effective_dof != 4:
            continue
        plain = kind in ('reachable', 'coarse')
        most = scale * MOST_GOALS * (1.0 if plain else SPECIAL_SHARE)
        share = GOALS.get(method, MOST_GOALS) / MOST_GOALS
        goals = make(task, np.random.default_rng(100 if plain else 101 + number), max(4, round(most)))
        count = max(2, round(share * most) if plain or method == 'scipy' else round(most))
        goals = Goals(goals.positions[:count], goals.directions[:count], goals.seeds[:count])
        solver = solver_for(task, method, COARSE if kind == 'coarse' else TOLERANCE)
        result.answers[kind] = measure(task, solver, goals)
    return result


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--arms', help='names, separated by commas; default all')
    parser.add_argument('--scale', type=float, default=1.0, help='times the number of goals')
    parser.add_argument('--out', type=Path, default=ROOT / 'docs', help='folder to write to')
    options = parser.parse_args()
    kernels.prepare(wait=True)
    try:
        tasks = chosen(options.arms)
    except KeyError as error:
        parser.error(error.args[0])
    pairs = [(task, method) for task in tasks for method in (DEFAULT, *METHODS)]
    results = []
    with tqdm(pairs, unit='run') as bar:
        for task, method in bar:
            bar.set_description(f'{task.name} {method}')
            results.append(compare(task, method, options.scale))
    machine = f'Python {platform.python_version()}, numpy {np.__version__}, {processor()}'
    options.out.mkdir(parents=True, exist_ok=True)
    write(options.out, results, machine)
    print(f'written: {options.out / "methods.md"}')


if __name__ == '__main__':
    main()
