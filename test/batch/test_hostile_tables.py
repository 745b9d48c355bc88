# SPDX-License-Identifier: Apache-2.0
"""Tables that are empty, incomplete, mixed, growing, or too large for the disk: what the user reads."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from test_ik_batch import ARM, ROOT

ROWS = 40
PROGRAMS = {'ik_batch': [], 'ik_retarget': ['--episode', 'take', '--fps', '30']}


def table(**changed) -> pa.Table:
    columns = {name: np.full(ROWS, value) for name, value in (('x', 0.3), ('y', 0.1), ('z', 0.2))}
    columns['take'] = np.repeat(['first', 'second'], ROWS // 2)
    return pa.table({name: value for name, value in (columns | changed).items() if value is not None})


def said_by(program: str, goals, output, *, most: int | None = None) -> tuple[int, str]:
    """Run a program; most: bytes of any file that it may write, as on a disk that is full."""

    def limit() -> None:
        if most is not None:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))

    command = [sys.executable, '-m', 'ik_node.start', program, ARM, str(goals), str(output)]
    done = subprocess.run(
        [*command, *PROGRAMS[program], '--workers', '1'],
        cwd=ROOT,
        env={**os.environ, 'PYTHONDONTWRITEBYTECODE': '1'},  # it would keep the part of a module that fits
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        preexec_fn=limit,
    )
    assert 'Traceback' not in done.stdout, done.stdout
    return done.returncode, done.stdout


def rejected(program, goals, output, words: str, **how) -> None:
    """Check that there is one line with these words, and no output."""
    before = sorted(path.name for path in output.parent.iterdir())
    code, said = said_by(program, goals, output, **how)
    (line,) = [line for line in said.splitlines() if line.startswith('error: ')]
    assert code == 2, said
    assert words in line
    assert not output.exists()
    after = sorted(path.name for path in output.parent.iterdir() if path.suffix != '.parts')
    assert after == before


@pytest.mark.slow
@pytest.mark.parametrize('program', PROGRAMS)
@pytest.mark.parametrize('suffix', ['.parquet', '.csv'])
def test_a_file_without_rows(tmp_path, program, suffix):
    write(table().slice(0, 0), tmp_path / f'goals{suffix}')
    output = tmp_path / 'out.parquet'
    if program == 'ik_retarget':
        rejected(program, tmp_path / f'goals{suffix}', output, 'has no rows')
        return
    code, said = said_by(program, tmp_path / f'goals{suffix}', output)
    assert code == 0
    assert '0 goals in ' in said
    assert pq.read_table(output).num_rows == 0


@pytest.mark.slow
@pytest.mark.parametrize('program', PROGRAMS)
@pytest.mark.parametrize(
    ('changed', 'words'),
    [
        ({'z': None}, 'no column of positions: expected x, y and z'),
        ({'z': [[0.1, 0.2]] * ROWS}, 'column "z" must hold numbers, got list'),
        ({'z': pa.nulls(ROWS, pa.date32())}, 'column "z" must hold numbers, got date32'),
    ],
)
def test_columns_that_cannot_hold_goals(tmp_path, program, changed, words):
    write(table(**changed), tmp_path / 'goals.parquet')
    rejected(program, tmp_path / 'goals.parquet', tmp_path / 'out.parquet', words)


@pytest.mark.slow
@pytest.mark.parametrize('program', PROGRAMS)
@pytest.mark.parametrize(
    ('given', 'why'),
    [
        ([0.2, float('nan'), float('inf'), None, 1e300], ['nan, not a', 'inf, not a', 'missing', 'beyond']),
        (['0.2', 'abc', '1,5', None, '1e300'], ["'abc', not a", "'1,5', not a", 'missing', 'beyond']),
    ],
)
def test_rows_that_hold_no_goal_have_a_reason(tmp_path, program, given, why):
    write(table(z=given + given[:1] * (ROWS - len(given))), tmp_path / 'goals.parquet')
    code, said = said_by(program, tmp_path / 'goals.parquet', tmp_path / 'out.parquet')
    assert code == 0, said
    found = pq.read_table(tmp_path / 'out.parquet')
    assert found.num_rows == ROWS
    reasons = found['reason_text'].to_pylist()
    assert all(words in reason for words, reason in zip(why, reasons[1:5], strict=True))
    assert reasons[0] is None
    assert not any(reasons[5:])


@pytest.mark.slow
@pytest.mark.parametrize('program', PROGRAMS)
@pytest.mark.parametrize(
    'most', [100, 3000]
)  # too little for a part, enough for parts but not for the output
def test_a_full_disk_is_told_and_the_same_command_continues(tmp_path, program, most):
    rng = np.random.default_rng(0)
    rows = {name: 0.1 + 0.2 * rng.random(ROWS) for name in ('x', 'y', 'z')}
    take = np.repeat([f'take {k}' for k in range(10)], ROWS // 10)
    write(table(**rows, take=take), tmp_path / 'goals.parquet')
    goals, output = tmp_path / 'goals.parquet', tmp_path / 'out.parquet'
    words = 'File too large; completed chunks are kept, the same command continues'
    rejected(program, goals, output, words, most=most)
    assert said_by(program, goals, output)[0] == 0
    assert pq.read_table(output).num_rows == ROWS


@pytest.mark.slow
@pytest.mark.parametrize('program', PROGRAMS)
def test_a_file_that_is_being_written_is_not_taken_for_a_whole_one(tmp_path, program):
    write(table(), tmp_path / 'whole.parquet')
    data = (tmp_path / 'whole.parquet').read_bytes()
    (tmp_path / 'goals.parquet').write_bytes(data[: len(data) // 2])
    rejected(program, tmp_path / 'goals.parquet', tmp_path / 'out.parquet', 'cannot read "')
    write(table(), tmp_path / 'goals.csv')
    stop = threading.Event()

    def grow() -> None:
        while not stop.wait(0.01):
            with (tmp_path / 'goals.csv').open('a') as file:
                file.write('0.3,0.1,0.2,"second"\n')

    writer = threading.Thread(target=grow)
    writer.start()
    try:
        words = 'has changed during the run: is it still being written?'
        rejected(program, tmp_path / 'goals.csv', tmp_path / 'out.parquet', words)
    finally:
        stop.set()
        writer.join()


@pytest.mark.parametrize('stream', ['stdout', 'stderr'])
def test_words_that_cannot_be_printed_do_not_cost_the_output(tmp_path, stream):
    write(table(), tmp_path / 'goals.parquet')
    command = [sys.executable, '-m', 'ik_node.start', 'ik_batch', ARM, tmp_path / 'goals.parquet']
    streams = {'stdout': subprocess.PIPE, 'stderr': subprocess.PIPE}
    with Path('/dev/full').open('w') as full:
        done = subprocess.run(
            [*command, tmp_path / 'out.parquet', '--workers', '1'],
            cwd=ROOT,
            text=True,
            timeout=300,
            **(streams | {stream: full}),
        )
    if stream == 'stdout':
        assert (done.returncode, done.stderr) == (2, 'error: cannot print: No space left on device\n')
    else:
        assert done.returncode == 0
        assert pq.read_table(tmp_path / 'out.parquet').num_rows == ROWS


@pytest.mark.parametrize('program', PROGRAMS)
def test_the_input_is_not_written_over(tmp_path, program):
    (tmp_path / 'goals').mkdir()
    goals = tmp_path / 'goals' / 'a.parquet'
    write(table(), goals)
    data = goals.read_bytes()
    (tmp_path / 'link.parquet').symlink_to(goals)
    for source, output in (
        (goals, goals),
        (goals, tmp_path / 'goals' / '..' / 'goals' / 'a.parquet'),
        (tmp_path / 'link.parquet', goals),
        (goals, tmp_path / 'link.parquet'),
        (tmp_path / 'goals', tmp_path / 'goals' / 'out.parquet'),
    ):
        code, said = said_by(program, source, output)
        assert code == 2
        assert 'would be written over or into the input: name another one' in said
    assert goals.read_bytes() == data
    assert sorted(path.name for path in tmp_path.rglob('*')) == ['a.parquet', 'goals', 'link.parquet']


def write(given: pa.Table, path) -> None:
    (pyarrow.csv.write_csv if path.suffix == '.csv' else pq.write_table)(given, path)
