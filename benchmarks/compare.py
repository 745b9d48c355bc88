# SPDX-License-Identifier: Apache-2.0
"""make compare: the local methods side by side on every arm; writes the page docs/explanation/methods.md."""

from __future__ import annotations

import argparse
import platform
from pathlib import Path

import numpy as np
from oracles.arms import ROOT, TOLERANCE, Task, chosen
from tqdm import tqdm

from benchmarks.bench import processor
from benchmarks.compare_answers import RESTARTS, Result, measure
from benchmarks.compare_report import write
from benchmarks.goals import KINDS, Goals
from benchmarks.variants import schedule_rows, switch_rows
from ik_node import IkSolver, kernels
from ik_node.solver.methods import METHODS

DEFAULT = 'default'  # IkSolver as it comes: the closed form where there is one, then lm
COARSE = 1e-3  # m and rad: what many would call there
MAX_GOALS = 200  # per arm, fewer of methods that are slow:
GOALS = {'transpose': 60, 'ccd': 60, 'fabrik': 60, 'autodiff': 12, 'scipy': 12}
SPECIAL_SHARE = 0.1  # of that many goals at singular poses, at limits, out of reach and tied


def solver_for(task: Task, method: str, tolerance: float) -> IkSolver:
    """Return the solver of a method; all but DEFAULT without closed form."""
    return IkSolver(
        task.arm,
        method='lm' if method == DEFAULT else method,
        closed_form=method == DEFAULT,
        position_tolerance=tolerance,
        direction_tolerance=tolerance,
        restarts=RESTARTS,
    )


def compare(task: Task, method: str, scale: float) -> Result:
    """Measure one method on one arm."""
    result = Result(task, method)
    for number, (kind, make) in enumerate(KINDS.items()):
        if kind == 'tied' and task.arm.effective_dof != 4:
            continue
        plain = kind in ('reachable', 'coarse')
        most = scale * MAX_GOALS * (1.0 if plain else SPECIAL_SHARE)
        share = 1.0 if method == DEFAULT else GOALS.get(method, MAX_GOALS) / MAX_GOALS
        goals = make(task, np.random.default_rng(100 if plain else 101 + number), max(4, round(most)))
        few = plain or (method != DEFAULT and METHODS[method].module)
        count = max(2, round(share * most) if few else round(most))
        goals = Goals(goals.positions[:count], goals.directions[:count], goals.seeds[:count])
        solver = solver_for(task, method, COARSE if kind == 'coarse' else TOLERANCE)
        result.answers[kind] = measure(task, solver, goals)
    return result


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--arms', help='names, separated by commas; default all')
    parser.add_argument('--scale', type=float, default=1.0, help='times the number of goals')
    parser.add_argument('--out', type=Path, default=ROOT / 'docs' / 'explanation', help='folder to write to')
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
    few = (
        '' if options.scale == 1.0 else f'With {options.scale:g} times the usual number of goals, so shares are rough. '
    )
    machine = f'{few}Python {platform.python_version()}, numpy {np.__version__}, {processor()}'
    options.out.mkdir(parents=True, exist_ok=True)
    schedules, switches = schedule_rows(tasks, options.scale), switch_rows(tasks, options.scale)
    write(options.out, results, machine, schedules, switches)
    print(f'written: {options.out / "methods.md"}')


if __name__ == '__main__':
    main()
