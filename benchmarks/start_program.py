# SPDX-License-Identifier: Apache-2.0
"""What benchmarks/start.py runs in processes of its own, with this package or an older one.

python start_program.py TASK DESCRIPTION prints the time used as JSON. It imports nothing of benchmarks: the
package under PYTHONPATH may be of another commit.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from pathlib import Path
from typing import Any

PERIOD = 0.01  # s, of the thread whose gaps are measured


class Pulse(threading.Thread):
    """A thread at 100 Hz, as one that publishes joint_states: how late it is at worst."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.largest = 0.0

    def run(self) -> None:
        last = time.perf_counter()
        while True:
            time.sleep(PERIOD)
            now = time.perf_counter()
            self.largest = max(self.largest, now - last)
            last = now


def sample(description: str) -> None:
    """README's sample."""
    from ik_node import Arm, Goal, IkSolver

    arm = Arm.from_file(description)
    solver = IkSolver(arm)
    solution = solver.solve(Goal(position=(0.4, 0.1, 0.2), direction=(0, 0, -1)))
    solver.solve(Goal(position=(2.0, 0.0, 0.2)), seed=solution.q)
    position, direction = arm.fk(solution.q)
    solver.solve_all(Goal(position, direction))


def calls(description: str) -> dict[str, float]:
    """Processor time [s] of the constructor and of the first call of each kind."""
    import numpy as np

    from ik_node import Arm, Goal, IkSolver

    arm = Arm.from_file(description)
    laps: dict[str, float] = {}

    def lap(name: str, call: Any) -> Any:
        start = time.process_time()
        value = call()
        laps[name] = time.process_time() - start
        return value

    solver = lap('IkSolver', lambda: IkSolver(arm))
    joints = arm.sample(np.random.default_rng(0), 20)
    places, axes = map(np.array, zip(*map(arm.fk, joints), strict=True))
    goal = Goal(places[0], axes[0])
    ways = [np.array(way) for way in zip(*map(arm.fk, np.linspace(joints[0], joints[0] + 0.05, 5)), strict=True)]
    lap('first solve', lambda: solver.solve(goal))
    lap('first track', lambda: solver.track(goal, joints[0] + 0.01))
    lap('first solve_batch', lambda: solver.solve_batch(places, axes))
    lap('first solve_path', lambda: solver.solve_path(*ways))
    lap('first solve_all', lambda: solver.solve_all(goal))
    lap('first rejection', lambda: solver.solve(Goal(1.5 * places[1], axes[1])))
    return laps


def take_over(description: str) -> dict[str, float]:
    """Wall time [s] until compiled kernels serve, and the largest gap [ms] of a 100 Hz thread until then."""
    from ik_node import Arm, Goal, IkSolver

    pulse = Pulse()
    pulse.start()
    start = time.perf_counter()
    arm = Arm.from_file(description)
    solver = IkSolver(arm)
    goal = Goal(*arm.fk(arm.middle + 0.1))
    solver.solve(goal)
    first = time.perf_counter() - start
    if _compiles_in_background():
        from ik_node import kernels

        while kernels.state().stage is kernels.Stage.COMPILING:
            solver.solve(goal)
            time.sleep(0.05)
    return {
        'first answer': first,
        'compiled': time.perf_counter() - start,
        'largest gap [ms]': 1e3 * pulse.largest,
    }


def _compiles_in_background() -> bool:
    """Whether this package does; by its files, since an installed one may lend an older one its modules."""
    import ik_node

    return Path(ik_node.__file__).with_name('kernels').is_dir()


TASKS = {'sample': sample, 'calls': calls, 'take_over': take_over}

if __name__ == '__main__':
    begin = time.process_time(), time.perf_counter()
    found = TASKS[sys.argv[1]](sys.argv[2]) or {}
    print(json.dumps({**found, 'end': [time.process_time(), time.perf_counter() - begin[1]]}))
