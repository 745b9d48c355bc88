# SPDX-License-Identifier: Apache-2.0
"""ik_batch and ik_retarget on tables: the same file however they are interrupted, and what the user reads."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest
from programs import Ended, Here, check_rejected, full_disk, ran
from waiting import wait_for

from ik_node import Arm, IkSolver
from ik_node.startup.arguments import URDF
from ik_node.tools import batch, retarget, solve_table
from ik_node.tools.goal_files import table_writer

pytestmark = pytest.mark.slow

ARM = URDF / 'seed_arm.urdf.xacro'
PROGRAMS = {batch: [], retarget: ['--episode', 'take', '--fps', '30']}
both = pytest.mark.parametrize('program', PROGRAMS, ids=['ik_batch', 'ik_retarget'])


@pytest.fixture
def goals(tmp_path, monkeypatch):
    """A file of 600 goals in ten takes, which ik_batch solves 50 at a time."""
    monkeypatch.setattr(solve_table, 'CHUNK', 50)
    arm = Arm.from_file(ARM)
    rows = [np.concatenate(arm.fk(q)) for q in arm.sample(np.random.default_rng(0), 600)]
    columns = dict(zip(('x', 'y', 'z', 'dx', 'dy', 'dz'), np.transpose(rows), strict=True))
    columns['take'] = np.repeat([f'take {k}' for k in range(10)], 60)
    pq.write_table(pa.table(columns), tmp_path / 'goals.parquet')
    return tmp_path / 'goals.parquet'


def solved(path, solver):
    table = pq.read_table(path)
    columns = [table[name].to_numpy() for name in ('x', 'y', 'z', 'dx', 'dy', 'dz')]
    return solver.solve_batch(np.column_stack(columns[:3]), np.column_stack(columns[3:]))


def run(program, path, output, *more) -> Ended:
    return ran(program, ARM, path, output, *PROGRAMS[program], *more)


def parts(output) -> int:
    return len(list(output.parent.glob(f'{output.name}.parts/*.arrow')))


# --- ik_batch ------------------------------------------------------------------------------------------


def test_the_file_holds_what_solve_batch_finds(goals, tmp_path):
    ended = run(batch, goals, tmp_path / 'out.parquet')
    assert ended.code == 0, ended.err
    assert '100.00 %' in ended.out
    assert '"x", "y", "z"; direction from "dx", "dy", "dz"' in ended.out
    table = pq.read_table(tmp_path / 'out.parquet')
    solver = IkSolver(Arm.from_file(ARM), compile='wait')
    for name, q in zip(solver.arm.joint_names, solved(goals, solver).q.T, strict=True):
        np.testing.assert_array_equal(table[name].to_numpy(), q)
    assert parts(tmp_path / 'out.parquet') == 0


# Workers that wait in the middle of a chunk for being killed.
STUCK = """
import pathlib, sys, time
from ik_node.tools import solve_table
solve_table.CHUNK = 50
solve_rows = solve_table.solve_rows
def slowly(*given):
    while len(list(pathlib.Path().glob('*.parts/*.arrow'))) >= 4:
        time.sleep(0.05)
    return solve_rows(*given)
solve_table.solve_rows = slowly
if __name__ == '__main__':
    from ik_node.tools.batch import main
    sys.exit(main(sys.argv[1:]))
"""


def children(process: subprocess.Popen[str]) -> list[int]:
    """The workers of a program."""
    found = []
    for pid in Path(f'/proc/{process.pid}/task/{process.pid}/children').read_text().split():
        with contextlib.suppress(FileNotFoundError):  # it has ended meanwhile
            if 'spawn_main' in Path(f'/proc/{pid}/cmdline').read_text():
                found.append(int(pid))
    return found


def is_running(pid: int) -> bool:
    try:
        return Path(f'/proc/{pid}/stat').read_text().rsplit(')', 1)[1].split()[0] != 'Z'
    except OSError:
        return False


def test_kills_and_interruptions_change_no_bit(goals, tmp_path, monkeypatch):
    whole, broken = tmp_path / 'whole.parquet', tmp_path / 'broken.parquet'
    (tmp_path / 'run.py').write_text(STUCK)
    process = subprocess.Popen(
        [sys.executable, tmp_path / 'run.py', ARM, goals, broken, '--workers', '2'],
        env=os.environ | {'PYTHONPATH': os.pathsep.join([str(URDF.parent), os.environ.get('PYTHONPATH', '')])},
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        wait_for(lambda: parts(broken) >= 4, 'parts', 180.0)
        first = children(process)[0]
        os.kill(first, signal.SIGKILL)  # a worker that dies costs no more than its chunks
        wait_for(lambda: len(set(children(process)) - {first}) == 2, 'another worker', 180.0)
        workers = children(process)
    finally:
        process.kill()
        process.wait()
    assert workers
    wait_for(lambda: not any(map(is_running, workers)), 'the end of the workers', 60.0)
    assert not broken.exists()
    before = parts(broken)
    assert 0 < before < 12

    def stop() -> None:
        if parts(broken) > before + 1:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Here, 'meanwhile', staticmethod(stop))
        ended = run(batch, goals, broken)
    assert ended.code == 130
    assert f'{broken}.parts' in ended.err
    assert before < parts(broken) < 12
    assert run(batch, goals, broken).code == 0
    assert run(batch, goals, whole, '--workers', 3).code == 0
    assert broken.read_bytes() == whole.read_bytes()


@pytest.mark.parametrize('change', [pytest.param(['--tool-axis', 'x'], marks=pytest.mark.nightly), ['--count']])
def test_other_options_use_no_part_of_before(goals, tmp_path, monkeypatch, change):
    output, few = tmp_path / 'out.parquet', tmp_path / 'few.parquet'
    monkeypatch.setattr(solve_table, 'CHUNK', 15)
    pq.write_table(pq.read_table(goals).slice(0, 60), few)

    def stop() -> None:
        if parts(output) > 1:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Here, 'meanwhile', staticmethod(stop))
        assert run(batch, few, output).code == 130
    ended = run(batch, few, output, *change)
    assert ended.code == 0
    assert 'of another arm, other options or another version' in ended.err
    table = pq.read_table(output)
    assert ('solutions' in table.column_names) == ('--count' in change)
    axis = (1.0, 0.0, 0.0) if '--tool-axis' in change else (0.0, 0.0, 1.0)
    solver = IkSolver(Arm.from_file(ARM, tool_axis=axis), compile='wait')
    np.testing.assert_array_equal(table['joint1'].to_numpy(), solved(few, solver).q[:, 0])


def test_a_summary_names_the_worst_rows_and_a_file_may_be_empty(tmp_path):
    table = pa.table({'x': ['0.3', '5', 'abc', '9'], 'y': ['0'] * 4, 'z': ['0.2'] * 4})
    pq.write_table(table, tmp_path / 'goals.parquet')
    ended = run(batch, tmp_path / 'goals.parquet', tmp_path / 'out.parquet')
    assert ended.code == 0
    lines = ended.out.splitlines()
    (first,) = [k for k, line in enumerate(lines) if line.startswith('unreachable')]
    assert lines[first + 1].startswith('    row 3: 8')
    assert lines[first + 2].startswith('    row 1: 4')
    assert any(line.startswith("    row 2: x is 'abc'") for line in lines)
    pyarrow.csv.write_csv(table.slice(0, 0), tmp_path / 'none.csv')
    assert '0 goals in ' in run(batch, tmp_path / 'none.csv', tmp_path / 'none.parquet').out
    assert pq.read_table(tmp_path / 'none.parquet').num_rows == 0


@pytest.mark.parametrize('name', ['out.csv', 'out.arrow', 'out.feather', 'out.parquet'])
def test_the_suffix_of_an_output_is_what_is_written_and_formulas_are_text(tmp_path, name):
    table = pa.record_batch({'=j': ['=1+1', '-0.5', '@a', 'b', None], 'n': [-1.0, 2.0, 3.0, 4.0, None]})
    with table_writer(tmp_path / f'{name}.writing', table.schema) as write:
        write(table)
    (tmp_path / f'{name}.writing').rename(tmp_path / name)
    if name.endswith('.csv'):
        cells = [line.partition(',')[0] for line in (tmp_path / name).read_text().splitlines()]
        assert cells == ['"\'=j"', '"\'=1+1"', '"-0.5"', '"\'@a"', '"b"', '']
        return
    read = pyarrow.dataset.dataset(tmp_path / name, format='parquet' if 'parquet' in name else 'ipc')
    assert read.to_table().equals(pa.Table.from_batches([table]))


# --- both ----------------------------------------------------------------------------------------------


@both
def test_a_full_disk_is_told_and_the_same_command_continues(goals, tmp_path, program):
    output = tmp_path / 'out.parquet'
    for most in (100, 20_000):  # too little for a part, and for the output
        with full_disk(most):
            check_rejected(run(program, goals, output), 'File too large', 'the same command to continue')
        assert not output.exists()
    assert run(program, goals, output).code == 0
    assert pq.read_table(output).num_rows == 600


@both
def test_a_file_that_is_being_written_is_not_taken_for_a_whole_one(goals, tmp_path, program, monkeypatch):
    growing, output = tmp_path / 'goals.csv', tmp_path / 'out.parquet'
    pyarrow.csv.write_csv(pq.read_table(goals), growing)

    def grow() -> None:
        with growing.open('a') as file:
            file.write('0.3,0.1,0.2,0,0,1,"take 9"\n')

    monkeypatch.setattr(Here, 'meanwhile', staticmethod(grow))
    check_rejected(run(program, growing, output), 'has changed during the run')
    goals.write_bytes(goals.read_bytes()[: goals.stat().st_size // 2])
    check_rejected(run(program, goals, output), 'goals.parquet')
    assert not output.exists()


@both
@pytest.mark.parametrize('stream', ['stdout', 'stderr'])
def test_words_that_cannot_be_printed_do_not_cost_the_output(goals, tmp_path, program, stream, monkeypatch, capsys):
    output = tmp_path / 'out.parquet'
    with Path('/dev/full').open('w') as full:
        monkeypatch.setattr(sys, stream, full)
        code = program.main([str(ARM), str(goals), str(output), *PROGRAMS[program]])
    if stream == 'stdout':
        assert code == 2
        assert 'No space left on device' in capsys.readouterr().err
    else:
        assert code == 0
        assert pq.read_table(output).num_rows == 600
