# SPDX-License-Identifier: Apache-2.0
"""ik_batch as a program: the same file however it is interrupted, and what the user reads."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
import pytest
from programs import Here, check_rejected, ran
from waiting import wait_for

from ik_node import Arm, IkSolver
from ik_node.batch import job
from ik_node.batch.table_files import table_writer
from ik_node.cli import batch, place, reach, retarget

ROOT = Path(__file__).resolve().parents[2]
ARM = str(ROOT / 'urdf' / 'seed_arm.urdf.xacro')
# Chunks of 100 rows, and workers that wait in each, so that there is time to interrupt them.
SLOW = """
import sys, time
from ik_node.batch import job
job.CHUNK = 100
solve_rows = job.solve_rows
def slowly(*given):
    time.sleep(0.1)
    return solve_rows(*given)
job.solve_rows = slowly
if __name__ == '__main__':
    from ik_node.cli.batch import main
    sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture
def goals(tmp_path, monkeypatch):
    """A file of 3,000 goals, which are solved 100 at a time."""
    monkeypatch.setattr(job, 'CHUNK', 100)
    arm = Arm.from_file(ARM)
    rows = [np.concatenate(arm.fk(q)) for q in arm.sample(np.random.default_rng(0), 3000)]
    table = pa.table(dict(zip(('x', 'y', 'z', 'dx', 'dy', 'dz'), np.transpose(rows), strict=True)))
    pyarrow.parquet.write_table(table, tmp_path / 'goals.parquet')
    return tmp_path / 'goals.parquet'


@pytest.fixture
def start(tmp_path):
    """A function that starts ik_batch as a process."""
    begun = []

    def run(*arguments: object) -> subprocess.Popen[str]:
        script = tmp_path / 'run.py'
        script.write_text(SLOW)
        path = os.pathsep.join([str(ROOT), os.environ.get('PYTHONPATH', '')])
        begun.append(
            subprocess.Popen(
                [sys.executable, str(script), ARM, *map(str, arguments)],
                env=os.environ | {'PYTHONPATH': path},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                start_new_session=True,
            )
        )
        return begun[-1]

    yield run
    for process in begun:
        process.kill()
        process.wait()
        process.stdout.close()


def children(process: subprocess.Popen[str]) -> list[int]:
    text = Path(f'/proc/{process.pid}/task/{process.pid}/children').read_text()
    return [int(pid) for pid in text.split() if 'spawn_main' in Path(f'/proc/{pid}/cmdline').read_text()]


def is_running(pid: int) -> bool:
    try:
        return Path(f'/proc/{pid}/stat').read_text().rsplit(')', 1)[1].split()[0] != 'Z'
    except OSError:
        return False


def solve_columns(path, solver):
    given = pyarrow.parquet.read_table(path)
    columns = [given[name].to_numpy() for name in given.column_names]
    return solver.solve_batch(np.column_stack(columns[:3]), np.column_stack(columns[3:]))


@pytest.mark.parametrize('name', ['out.csv', 'out.arrow', 'out.feather', 'out.parquet'])
def test_the_suffix_of_an_output_is_what_is_written_and_formulas_are_text(tmp_path, name):
    table = pa.record_batch({'=j': ['=1+1', '-0.5', '@a', 'b', None], 'n': [-1.0, 2.0, 3.0, 4.0, None]})
    with table_writer(tmp_path / f'{name}.writing', table.schema) as write:
        write(table)
    (tmp_path / f'{name}.writing').rename(tmp_path / name)
    if name.endswith('.csv'):
        lines = (tmp_path / name).read_text().splitlines()
        assert [line.partition(',')[0] for line in lines] == [
            '"\'=j"',
            '"\'=1+1"',
            '"-0.5"',
            '"\'@a"',
            '"b"',
            '',
        ]
        return
    read = pyarrow.dataset.dataset(tmp_path / name, format='parquet' if 'parquet' in name else 'ipc')
    assert read.to_table().equals(pa.Table.from_batches([table]))


@pytest.mark.parametrize(
    ('program', 'arguments', 'words'),
    [
        (batch, ['goals.csv', 'out.json'], '.csv'),
        (batch, ['goals.csv', 'out'], '.csv'),
        (batch, ['goals.csv', 'notes.csv'], '--overwrite'),
        (batch, ['goals.csv', 'goals.csv', '--overwrite'], 'input'),
        (batch, ['goals.csv', 'arm.csv', '--overwrite'], 'input'),
        (batch, ['goals.csv', 'pipe.csv', '--overwrite'], 'pipe'),
        (retarget, ['goals.csv', 'out.npz', '--episode', 'x', '--fps', '9'], '.csv'),
        (retarget, ['data', 'out', '--report', 'notes.csv'], '--overwrite'),
        (retarget, ['data', 'out', '--report', 'report.txt'], '.json'),
        (retarget, ['data', 'out', '--recordings', 'film.mcap'], 'folder'),
        (place, ['goals.csv', '--output', 'place.csv'], 'without a suffix'),
        (place, ['goals.csv', '--output', 'notes'], '--overwrite'),
        (reach, ['--output', 'reach.csv'], 'without a suffix'),
        (reach, ['--output', 'notes'], '--overwrite'),
    ],
)
def test_outputs_of_other_kinds_and_files_of_others_are_refused(
    tmp_path, monkeypatch, capsys, program, arguments, words
):
    monkeypatch.chdir(tmp_path)
    Path('arm.csv').symlink_to(ARM)
    os.mkfifo('pipe.csv')
    for name in ('notes.csv', 'notes.png', 'goals.csv'):
        Path(name).write_text('x,y,z\n1,2,3\n')
    before = {path.name for path in tmp_path.iterdir()}
    assert program.main([ARM, *arguments]) == 2
    assert words in capsys.readouterr().err
    assert {path.name for path in tmp_path.iterdir()} == before


def test_the_file_holds_what_solve_batch_finds(goals, tmp_path):
    ended = ran(batch, ARM, goals, tmp_path / 'out.parquet')
    assert ended.code == 0, ended.err
    assert 'solved               3000  100.00 %' in ended.out
    assert 'position from "x", "y", "z"; direction from "dx", "dy", "dz"' in ended.out
    table = pyarrow.parquet.read_table(tmp_path / 'out.parquet')
    solver = IkSolver(Arm.from_file(ARM), compile='wait')
    for name, q in zip(solver.arm.joint_names, solve_columns(goals, solver).q.T, strict=True):
        np.testing.assert_array_equal(table[name].to_numpy(), q)
    assert not (tmp_path / 'out.parquet.parts').exists()


def test_kills_and_interruptions_of_processes_change_no_bit(goals, start, tmp_path):
    whole, broken = tmp_path / 'whole.parquet', tmp_path / 'broken.parquet'

    def parts() -> int:
        return len(list(tmp_path.glob('broken.parquet.parts/*.arrow')))

    process = start(goals, broken, '--workers', 2)
    wait_for(lambda: parts() >= 2, 'parts', 180.0)
    os.kill(children(process)[0], signal.SIGKILL)  # a worker that dies costs no more than its chunks
    wait_for(lambda: parts() >= 8, 'parts', 180.0)
    for number in (signal.SIGKILL, signal.SIGINT):
        workers, before = children(process), parts()
        assert workers
        process.send_signal(number)
        said = process.communicate(timeout=60)[0]
        wait_for(lambda pids=workers: not any(map(is_running, pids)), 'the end of the workers', 60.0)
        assert not broken.exists()
        if number == signal.SIGKILL:
            process = start(goals, broken, '--workers', 1)
            wait_for(lambda n=before: parts() > n + 1, 'a part', 180.0)
    assert process.returncode == 130
    assert f'{broken}.parts: the same command continues' in said
    assert 0 < parts() < 30
    assert ran(batch, ARM, goals, broken).code == 0
    assert ran(batch, ARM, goals, whole, '--workers', 3).code == 0
    assert broken.read_bytes() == whole.read_bytes()


@pytest.mark.parametrize('change', [['--tool-axis', 'x'], ['--count']])
def test_other_options_use_no_part_of_before(goals, tmp_path, monkeypatch, change):
    output, few = tmp_path / 'out.parquet', tmp_path / 'few.parquet'
    pyarrow.parquet.write_table(pyarrow.parquet.read_table(goals).slice(0, 400), few)

    def stop() -> None:
        if len(list(tmp_path.glob('out.parquet.parts/*.arrow'))) > 2:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Here, 'meanwhile', staticmethod(stop))
        assert ran(batch, ARM, few, output).code == 130
    assert ran(batch, ARM, few, output, *change).code == 0
    table = pyarrow.parquet.read_table(output)
    assert ('solutions' in table.column_names) == ('--count' in change)
    axis = (1.0, 0.0, 0.0) if '--tool-axis' in change else (0.0, 0.0, 1.0)
    solver = IkSolver(Arm.from_file(ARM, tool_axis=axis), compile='wait')
    np.testing.assert_array_equal(table['joint1'].to_numpy(), solve_columns(few, solver).q[:, 0])


def test_a_summary_names_the_worst_rows(tmp_path):
    table = pa.table({'x': ['0.3', '5', 'abc', '9'], 'y': ['0'] * 4, 'z': ['0.2'] * 4})
    pyarrow.parquet.write_table(table, tmp_path / 'goals.parquet')
    ended = ran(batch, ARM, tmp_path / 'goals.parquet', tmp_path / 'out.parquet')
    assert ended.code == 0
    lines = ended.out.splitlines()
    (first,) = [k for k, line in enumerate(lines) if line.startswith('unreachable')]
    assert lines[first + 1].startswith('    row 3: 8')
    assert lines[first + 2].startswith('    row 1: 4')
    assert "    row 2: x is 'abc', not a finite number" in lines
    assert 'direction free' in ended.out


@pytest.mark.parametrize(
    ('arguments', 'named'),
    [
        (['nowhere.parquet', 'out.parquet'], '"nowhere.parquet"'),
        (['goals.parquet', '/nowhere/out.parquet'], '"/nowhere/out.parquet"'),
        (['goals.parquet', 'out.parquet', '--direction', 'n'], 'no column "n"; the columns are "x", "y"'),
        (['goals.parquet', 'out.parquet', '--workers', '0'], '--workers must be at least 1, got 0'),
        (['goals.parquet', 'out.parquet', '--seed', 'x'], 'column "x" must hold lists of 5 numbers'),
        (['goals.parquet', 'out.parquet', '--seed', 'x', 'y'], '--seed takes 5 columns'),
    ],
)
def test_wrong_arguments(tmp_path, monkeypatch, arguments, named):
    monkeypatch.chdir(tmp_path)
    pyarrow.parquet.write_table(pa.table({name: [0.2] for name in 'xyz'}), 'goals.parquet')
    check_rejected(ran(batch, ARM, *arguments), named)
