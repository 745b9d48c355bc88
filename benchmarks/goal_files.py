# SPDX-License-Identifier: Apache-2.0
"""ik_batch: its rate beside that of solve_batch, its memory, and what interruptions change."""

from __future__ import annotations

import filecmp
import os
import resource
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter, process_time, sleep

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.arms import ROOT, Task, solver_for
from benchmarks.tables import Table, heading
from ik_node.batch.job import CHUNK
from ik_node.solver.cores import usable_cores

GOALS, BLOCK = 10_000_000, 200_000
KILLS = 5
ARM = ROOT / 'urdf' / 'seed_arm.urdf.xacro'
PLOT = ROOT / 'docs' / 'how_to' / 'batch_memory.png'
LOOK = 0.5  # [s] between looks at the memory
TURN = 15.0  # [s] of ik_batch between two measurements of solve_batch


def run(tasks: list[Task], scale: float) -> None:
    """Print rates and memory, and plot the memory; scale 10 is 10^8 goals, which need 25 GB of disk."""
    count = max(1, round(GOALS * scale / BLOCK)) * BLOCK
    cores = usable_cores()
    heading(
        'Files of goals',
        f"""{count} reachable goals of the seed arm in a Parquet file, by ik_batch on {cores} cores, once
        undisturbed and once killed {KILLS} times by SIGKILL, each time after another seventh of the chunks.
        Every {TURN:g} s ik_batch is stopped and solve_batch solves {BLOCK} goals on the same cores.
        Rate: goals per second. Share: of the rate of solve_batch, start and files included. Processor: the
        same of processor times. Memory: of ik_batch and its workers together, the most in each quarter of
        the run [MB]; private: without what processes share.""",
    )
    (task,) = [task for task in tasks if task.name == 'seed_arm']
    positions, directions, _ = task.goals(BLOCK, seed=1)
    with tempfile.TemporaryDirectory() as folder:
        goals = Path(folder) / 'goals.parquet'
        write_goals(goals, positions, directions, count // BLOCK)
        peer = Peer(task, positions, directions)
        whole = Path(folder) / 'whole.parquet'
        measured = _run(goals, whole, peer)
        table = Table('by'.ljust(12) + '  ', 'rate', 'processor [us]', 'share', 'processor')
        table.row('solve_batch', f'{1.0 / peer.wall:.0f}', f'{1e6 * peer.processor:.2f}')
        table.row(
            'ik_batch',
            f'{count / measured.seconds:.0f}',
            f'{1e6 * measured.processor / count:.2f}',
            f'{count / measured.seconds * peer.wall:.2f}',
            f'{peer.processor / measured.processor * count:.2f}',
        )
        print()
        table = Table('memory'.ljust(12) + '  ', *(f'{k + 1}/4' for k in range(4)))
        for name, values in (('resident', measured.resident), ('private', measured.private)):
            table.row(name, *(f'{max(part):.0f}' for part in np.array_split(values, 4) if len(part)))
        _plot(measured, count)
        broken = Path(folder) / 'broken.parquet'
        done = [_killed(goals, broken, (k + 1) * count // CHUNK // (KILLS + 2)) for k in range(KILLS)]
        _run(goals, broken)
        same = filecmp.cmp(whole, broken, shallow=False)
        print(f'\nKilled with {", ".join(map(str, done))} of {count // CHUNK} chunks done.')
        print(
            f'Afterwards the file of {whole.stat().st_size / 1e9:.2f} GB is {"the same, bit for bit" * same}'
            f'{"NOT THE SAME" * (not same)}.'
        )


def write_goals(path: Path, positions: np.ndarray, directions: np.ndarray, blocks: int) -> None:
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


class Peer:
    """solve_batch on all cores. wall, processor: means of all calls [s per goal]."""

    def __init__(self, task: Task, positions: np.ndarray, directions: np.ndarray) -> None:
        self._solver, self._goals = solver_for(task.arm), (positions, directions)
        self._solver.solve_batch(positions[:1000], directions[:1000])
        self._calls: list[tuple[float, float]] = []

    def measure(self) -> None:
        """Measure one call."""
        start, used = perf_counter(), process_time()
        self._solver.solve_batch(*self._goals)
        self._calls.append((perf_counter() - start, process_time() - used))

    @property
    def wall(self) -> float:
        return float(np.mean(self._calls, axis=0)[0]) / BLOCK

    @property
    def processor(self) -> float:
        return float(np.mean(self._calls, axis=0)[1]) / BLOCK


@dataclass
class Run:
    """A run of ik_batch: seconds without stops, of the processor too; times [s] and memory [MB] then."""

    seconds: float = 0.0
    processor: float = 0.0
    times: list[float] = field(default_factory=list)
    resident: list[float] = field(default_factory=list)
    private: list[float] = field(default_factory=list)


def _started(goals: Path, output: Path) -> subprocess.Popen[bytes]:
    command = [
        sys.executable,
        '-m',
        'ik_node.start',
        'ik_batch',
        str(ARM),
        str(goals),
        str(output),
        '--overwrite',
    ]
    return subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )


def _run(goals: Path, output: Path, peer: Peer | None = None) -> Run:
    """Run ik_batch to its end, in turns with peer."""
    run, before = Run(), _of_children()
    with _started(goals, output) as process:
        turn = perf_counter()
        while process.poll() is None:
            sleep(LOOK)
            now = perf_counter()
            resident, private = _memory(process.pid)
            run.times.append(run.seconds + now - turn)
            run.resident.append(resident)
            run.private.append(private)
            if peer is not None and now - turn > TURN and process.poll() is None:
                os.killpg(process.pid, signal.SIGSTOP)
                run.seconds += perf_counter() - turn
                peer.measure()
                os.killpg(process.pid, signal.SIGCONT)
                turn = perf_counter()
        run.seconds += perf_counter() - turn
    if peer is not None:
        peer.measure()
    assert process.returncode == 0
    run.processor = _of_children() - before
    return run


def _of_children() -> float:
    """Return the processor time [s] of all processes that have ended here."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _killed(goals: Path, output: Path, after: int) -> int:
    """Kill ik_batch once so many chunks are done; return how many are."""
    parts = output.with_name(f'{output.name}.parts')
    with _started(goals, output) as process:
        while (done := len(list(parts.glob('*.arrow')))) < after:
            assert process.poll() is None
            sleep(0.01)
        process.kill()
    assert process.returncode == -signal.SIGKILL
    return done


def _memory(pid: int) -> tuple[float, float]:
    """Return resident and private memory [MB] of a process and its children."""
    resident = private = 0
    try:
        for line in Path(f'/proc/{pid}/smaps_rollup').read_text().splitlines():
            name, _, value = line.partition(':')
            if name == 'Rss':
                resident += int(value.split()[0])
            elif name.startswith('Private_'):
                private += int(value.split()[0])
        children = Path(f'/proc/{pid}/task/{pid}/children').read_text().split()
    except OSError:  # it has ended
        return 0.0, 0.0
    sums = np.array([resident, private]) * 1024 / 1e6 + sum(np.array(_memory(int(one))) for one in children)
    return float(sums[0]), float(sums[1])


def _plot(run: Run, count: int) -> None:
    import matplotlib as mpl

    mpl.use('agg')
    from matplotlib import pyplot

    figure, axis = pyplot.subplots(figsize=(8, 3))
    for name, values in (('resident', run.resident), ('private', run.private)):
        axis.plot(run.times, values, label=name, linewidth=0.8)
    axis.set_xlabel('time [s]')
    axis.set_ylabel('memory [MB]')
    axis.set_ylim(bottom=0.0)
    axis.set_title(f'ik_batch and its workers, {count:.0e} goals')
    axis.grid(visible=True, alpha=0.3)
    axis.legend()
    figure.tight_layout()
    figure.savefig(PLOT, dpi=80)
    print(f'\nwrote {PLOT.relative_to(ROOT)}')
