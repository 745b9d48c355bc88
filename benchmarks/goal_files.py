"""ik_batch: its rate beside that of solve_batch, its memory, and what interruptions change."""

from __future__ import annotations

import filecmp
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter, sleep

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.arms import Task, solver_for
from benchmarks.tables import Table, heading
from ik_node.solver.cores import usable_cores

GOALS, BLOCK = 10_000_000, 200_000
KILLS = 5
ARM = Path(__file__).resolve().parents[1] / 'urdf' / 'seed_arm.urdf.xacro'


def run(tasks: list[Task], scale: float) -> None:
    """Print rates and memory; scale 10 is 10^8 goals, which need 16 GB of disk."""
    count = max(1, round(GOALS * scale / BLOCK)) * BLOCK
    cores = usable_cores()
    heading(
        'Files of goals',
        f"""{count} reachable goals of the seed arm in a Parquet file, by ik_batch on {cores} cores, once
        undisturbed and once killed {KILLS} times. Rate: goals per second, start included, as a share of that
        of solve_batch on one core, in turns with it, times the cores. Memory: of ik_batch and its workers
        together, the most in each quarter of the run [MB].""",
    )
    (task,) = [task for task in tasks if task.name == 'seed_arm']
    positions, directions, _ = task.goals(BLOCK, seed=1)
    with tempfile.TemporaryDirectory() as folder:
        goals = Path(folder) / 'goals.parquet'
        _write(goals, positions, directions, count // BLOCK)
        before = _single(task, positions, directions)
        whole = Path(folder) / 'whole.parquet'
        seconds, memory = _run(goals, whole)
        single = min(before, _single(task, positions, directions))
        broken = Path(folder) / 'broken.parquet'
        for k in range(KILLS):
            _run(goals, broken, kill_after=seconds * (k + 1) / (2 * KILLS))
        again, _ = _run(goals, broken)
        table = Table(
            'run'.ljust(14), 'time [s]', 'share', *(f'memory {k + 1}/4' for k in range(4)), 'same bits'
        )
        share = count / seconds * single / cores
        quarters = [max(part) for part in np.array_split(memory, 4) if len(part)]
        table.row('undisturbed', f'{seconds:.1f}', f'{share:.2f}', *(f'{most:.0f}' for most in quarters), '')
        same = filecmp.cmp(whole, broken, shallow=False)
        table.row(f'after {KILLS} kills', f'{again:.1f}', '', *[''] * len(quarters), 'yes' if same else 'NO')


def _write(path: Path, positions: np.ndarray, directions: np.ndarray, blocks: int) -> None:
    """Write the goals, turned about the first axis in each block."""
    names = ('x', 'y', 'z', 'dx', 'dy', 'dz')
    with pq.ParquetWriter(
        path, pa.schema([(name, pa.float64()) for name in names]), use_dictionary=False
    ) as file:
        for angle in np.linspace(0.0, 2.0 * np.pi, blocks, endpoint=False):
            c, s = np.cos(angle), np.sin(angle)
            R = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
            rows = np.column_stack([positions @ R.T, directions @ R.T])
            file.write_table(pa.table(dict(zip(names, rows.T, strict=True))))


def _single(task: Task, positions: np.ndarray, directions: np.ndarray) -> float:
    """Return the time [s] of a goal by solve_batch on one core, the least of three."""
    solver = solver_for(task.arm)
    times = []
    for _ in range(3):
        start = perf_counter()
        solver.solve_batch(positions, directions, workers=1)
        times.append((perf_counter() - start) / len(positions))
    return min(times)


def _run(goals: Path, output: Path, kill_after: float = np.inf) -> tuple[float, list[float]]:
    """Return the time [s] of ik_batch, and the memory [MB] of all its processes every half second."""
    command = [sys.executable, '-m', 'ik_node.start', 'ik_batch', str(ARM), str(goals), str(output)]
    start, memory = perf_counter(), []
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        while process.poll() is None:
            memory.append(_resident(process.pid))
            if perf_counter() - start > kill_after:
                process.kill()
            sleep(0.5)
    return perf_counter() - start, memory


def _resident(pid: int) -> float:
    """Return the resident memory [MB] of a process and its children."""
    try:
        pages = int(Path(f'/proc/{pid}/statm').read_text().split()[1])
        children = Path(f'/proc/{pid}/task/{pid}/children').read_text().split()
    except OSError:  # it has ended
        return 0.0
    return pages * os.sysconf('SC_PAGE_SIZE') / 1e6 + sum(_resident(int(child)) for child in children)
