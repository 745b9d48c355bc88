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
from waiting import wait_for

from ik_node import Arm, IkSolver
from ik_node.batch.table_files import table_writer
from ik_node.cli import batch, place, reach, retarget

ROOT = Path(__file__).resolve().parents[2]
ARM = str(ROOT / 'urdf' / 'seed_arm.urdf.xacro')
# Chunks of 100 rows, and a worker that waits in each, so that there is time to interrupt it.
SLOW = """
import sys, time
from ik_node.batch import job
job.CHUNK = 100
solve_rows = job.solve_rows
def slowly(*given):
    time.sleep({pause})
    return solve_rows(*given)
job.solve_rows = slowly
if __name__ == '__main__':
    from ik_node.cli.batch import main
    sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture
def goals(tmp_path):
    arm = Arm.from_file(ARM)
    rows = [np.concatenate(arm.fk(q)) for q in arm.sample(np.random.default_rng(0), 3000)]
    table = pa.table(dict(zip(('x', 'y', 'z', 'dx', 'dy', 'dz'), np.transpose(rows), strict=True)))
    pyarrow.parquet.write_table(table, tmp_path / 'goals.parquet')
    return tmp_path / 'goals.parquet'


@pytest.fixture
def start(tmp_path):
    begun = []

    def run(*arguments: object, pause: float = 0.0) -> subprocess.Popen[str]:
        script = tmp_path / 'run.py'
        script.write_text(SLOW.format(pause=pause))
        environment = os.environ | {
            'PYTHONPATH': os.pathsep.join([str(ROOT), os.environ.get('PYTHONPATH', '')])
        }
        begun.append(
            subprocess.Popen(
                [sys.executable, str(script), ARM, *map(str, arguments)],
                env=environment,
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


def parts(output: Path) -> int:
    return len(list(output.with_name(f'{output.name}.parts').glob('*.arrow')))


def is_running(pid: int) -> bool:
    try:
        return Path(f'/proc/{pid}/stat').read_text().rsplit(')', 1)[1].split()[0] != 'Z'
    except OSError:
        return False


def test_the_file_holds_what_solve_batch_finds(goals, start, tmp_path):
    process = start(goals, tmp_path / 'out.parquet')
    said = process.communicate(timeout=180)[0]
    assert process.returncode == 0, said
    assert 'solved               3000  100.00 %' in said
    assert 'position from "x", "y", "z"; direction from "dx", "dy", "dz"' in said
    table, given = (pyarrow.parquet.read_table(path) for path in (tmp_path / 'out.parquet', goals))
    solver = IkSolver(Arm.from_file(ARM), compile='wait')
    columns = [given[name].to_numpy() for name in given.column_names]
    found = solver.solve_batch(np.column_stack(columns[:3]), np.column_stack(columns[3:]))
    for name, q in zip(solver.arm.joint_names, found.q.T, strict=True):
        np.testing.assert_array_equal(table[name].to_numpy(), q)
    assert not (tmp_path / 'out.parquet.parts').exists()


def test_workers_and_interruptions_change_no_bit(goals, start, tmp_path):
    whole, broken = tmp_path / 'whole.parquet', tmp_path / 'broken.parquet'
    assert start(goals, whole, '--workers', 3).wait(timeout=180) == 0
    for number in (signal.SIGKILL, signal.SIGINT, signal.SIGKILL):
        before = parts(broken)
        process = start(goals, broken, '--workers', 1, pause=0.1)
        wait_for(lambda n=before: parts(broken) > n, 'a part', 180.0)
        workers = children(process)
        assert len(workers) == 1
        process.send_signal(number)
        said = process.communicate(timeout=60)[0]
        if number == signal.SIGINT:
            assert process.returncode == 130
            assert f'completed chunks are kept in {broken}.parts: the same command continues' in said
        wait_for(lambda pids=workers: not any(map(is_running, pids)), 'the end of the workers', 60.0)
        assert not broken.exists()
    assert 0 < parts(broken) < 30
    assert start(goals, broken, '--workers', 2).wait(timeout=180) == 0
    assert broken.read_bytes() == whole.read_bytes()


def test_a_worker_that_dies_costs_its_chunk_only(goals, start, tmp_path):
    whole, broken = tmp_path / 'whole.parquet', tmp_path / 'broken.parquet'
    assert start(goals, whole).wait(timeout=180) == 0
    process = start(goals, broken, '--workers', 2, pause=0.1)
    for count in (2, 6, 10):
        wait_for(lambda n=count: parts(broken) >= n, 'parts', 180.0)
        os.kill(children(process)[0], signal.SIGKILL)
    said = process.communicate(timeout=180)[0]
    assert process.returncode == 0, said
    assert broken.read_bytes() == whole.read_bytes()


def test_other_options_use_no_part_of_before(goals, start, tmp_path):
    output = tmp_path / 'out.parquet'
    process = start(goals, output, '--workers', 1, pause=0.1)
    wait_for(lambda: parts(output) > 2, 'parts', 180.0)
    process.kill()
    process.wait()
    assert start(goals, output, '--tool-axis', 'x').wait(timeout=180) == 0
    found = pyarrow.parquet.read_table(output)
    solver = IkSolver(Arm.from_file(ARM, tool_axis=(1.0, 0.0, 0.0)), compile='wait')
    given = pyarrow.parquet.read_table(goals)
    columns = [given[name].to_numpy()[:100] for name in given.column_names]
    expected = solver.solve_batch(np.column_stack(columns[:3]), np.column_stack(columns[3:]))
    np.testing.assert_array_equal(found['joint1'].to_numpy()[:100], expected.q[:, 0])


def test_a_summary_names_the_worst_rows(start, tmp_path):
    table = pa.table({'x': ['0.3', '5', 'abc', '9'], 'y': ['0'] * 4, 'z': ['0.2'] * 4})
    pyarrow.parquet.write_table(table, tmp_path / 'goals.parquet')
    process = start(tmp_path / 'goals.parquet', tmp_path / 'out.parquet')
    said = process.communicate(timeout=180)[0]
    assert process.returncode == 0
    lines = said.splitlines()
    (first,) = [k for k, line in enumerate(lines) if line.startswith('unreachable')]
    assert lines[first + 1].startswith('    row 3: 8')
    assert lines[first + 2].startswith('    row 1: 4')
    assert "    row 2: x is 'abc', not a finite number" in lines
    assert 'direction free' in said


@pytest.mark.parametrize(
    ('arguments', 'words'),
    [
        (['nowhere.parquet', 'out.parquet'], 'error: cannot read "nowhere.parquet": '),
        (['{goals}', '/nowhere/out.parquet'], 'error: cannot write "/nowhere/out.parquet"'),
        (['{goals}', 'out.parquet', '--direction', 'n'], 'error: no column "n"; the columns are "x", "y"'),
        (['{goals}', 'out.parquet', '--workers', '0'], 'error: --workers must be at least 1, got 0'),
        (['{goals}', 'out.parquet', '--seed', 'x'], 'error: column "x" must hold lists of 5 numbers'),
        (['{goals}', 'out.parquet', '--seed', 'x', 'y'], 'error: --seed takes 5 columns'),
    ],
)
def test_what_is_wrong_is_told_in_one_line(goals, start, tmp_path, monkeypatch, arguments, words):
    monkeypatch.chdir(tmp_path)
    process = start(*(str(one).format(goals=goals) for one in arguments))
    said = process.communicate(timeout=180)[0]
    assert process.returncode == 2
    assert words in said
    assert 'Traceback' not in said
