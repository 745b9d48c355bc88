# SPDX-License-Identifier: Apache-2.0
"""Tables that are empty, incomplete, mixed, growing, or too large for the disk: what the user reads."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from programs import Ended, Here, check_rejected, full_disk, ran

from ik_node.cli import batch, retarget
from ik_node.startup.robots import URDF

ROWS = 40
ARM = URDF / 'seed_arm.urdf.xacro'
PROGRAMS = {batch: [], retarget: ['--episode', 'take', '--fps', '30']}

pytestmark = pytest.mark.parametrize('program', PROGRAMS, ids=['ik_batch', 'ik_retarget'])


def table(**changed) -> pa.Table:
    columns = {name: np.full(ROWS, value) for name, value in (('x', 0.3), ('y', 0.1), ('z', 0.2))}
    columns['take'] = np.repeat(['first', 'second'], ROWS // 2)
    return pa.table({name: value for name, value in (columns | changed).items() if value is not None})


def write(given: pa.Table, path) -> None:
    (pyarrow.csv.write_csv if path.suffix == '.csv' else pq.write_table)(given, path)


def run(program, goals, output) -> Ended:
    return ran(program, ARM, goals, output, *PROGRAMS[program], '--workers', 1)


def check_no_output(program, goals, output, *named: str) -> None:
    """Check that there is one line with an error that names what is wrong, and nothing beside the parts."""
    before = sorted(path.name for path in output.parent.iterdir())
    check_rejected(run(program, goals, output), *named)
    assert sorted(path.name for path in output.parent.iterdir() if path.suffix != '.parts') == before


@pytest.mark.parametrize('suffix', ['.parquet', '.csv'])
def test_a_file_without_rows(tmp_path, program, suffix):
    write(table().slice(0, 0), tmp_path / f'goals{suffix}')
    output = tmp_path / 'out.parquet'
    if program is retarget:
        check_no_output(program, tmp_path / f'goals{suffix}', output, 'no rows')
        return
    ended = run(program, tmp_path / f'goals{suffix}', output)
    assert ended.code == 0
    assert '0 goals in ' in ended.out
    assert pq.read_table(output).num_rows == 0


@pytest.mark.parametrize(
    ('changed', 'named'),
    [
        ({'z': None}, ['x, y and z']),
        ({'z': [[0.1, 0.2]] * ROWS}, ['"z"', 'list']),
        ({'z': pa.nulls(ROWS, pa.date32())}, ['"z"', 'date32']),
    ],
)
def test_columns_that_cannot_hold_goals(tmp_path, program, changed, named):
    write(table(**changed), tmp_path / 'goals.parquet')
    check_no_output(program, tmp_path / 'goals.parquet', tmp_path / 'out.parquet', *named)


@pytest.mark.parametrize(
    ('given', 'why'),
    [
        ([0.2, float('nan'), float('inf'), None, 1e300], ['nan, not a', 'inf, not a', 'missing', 'beyond']),
        (['0.2', 'abc', '1,5', None, '1e300'], ["'abc', not a", "'1,5', not a", 'missing', 'beyond']),
    ],
)
def test_rows_that_hold_no_goal_have_a_reason(tmp_path, program, given, why):
    write(table(z=given + given[:1] * (ROWS - len(given))), tmp_path / 'goals.parquet')
    assert run(program, tmp_path / 'goals.parquet', tmp_path / 'out.parquet').code == 0
    reasons = pq.read_table(tmp_path / 'out.parquet')['reason_text'].to_pylist()
    assert len(reasons) == ROWS
    assert all(words in reason for words, reason in zip(why, reasons[1:5], strict=True))
    assert not any([reasons[0], *reasons[5:]])


@pytest.mark.parametrize('most', [100, 3000])  # too little for a part, and for the output
def test_a_full_disk_is_told_and_the_same_command_continues(tmp_path, program, most):
    rows = dict(zip('xyz', 0.1 + 0.2 * np.random.default_rng(0).random((3, ROWS)), strict=True))
    take = np.repeat([f'take {k}' for k in range(10)], ROWS // 10)
    goals, output = tmp_path / 'goals.parquet', tmp_path / 'out.parquet'
    write(table(**rows, take=take), goals)
    with full_disk(most):
        check_no_output(program, goals, output, 'File too large', 'same command continues')
    assert run(program, goals, output).code == 0
    assert pq.read_table(output).num_rows == ROWS


def test_a_file_that_is_being_written_is_not_taken_for_a_whole_one(tmp_path, program, monkeypatch):
    write(table(), tmp_path / 'whole.parquet')
    data = (tmp_path / 'whole.parquet').read_bytes()
    (tmp_path / 'goals.parquet').write_bytes(data[: len(data) // 2])
    check_no_output(program, tmp_path / 'goals.parquet', tmp_path / 'out.parquet', 'goals.parquet')
    write(table(), tmp_path / 'goals.csv')

    def grow() -> None:
        with (tmp_path / 'goals.csv').open('a') as file:
            file.write('0.3,0.1,0.2,"second"\n')

    monkeypatch.setattr(Here, 'meanwhile', staticmethod(grow))
    check_no_output(program, tmp_path / 'goals.csv', tmp_path / 'out.parquet', 'has changed during the run')


@pytest.mark.parametrize('stream', ['stdout', 'stderr'])
def test_words_that_cannot_be_printed_do_not_cost_the_output(tmp_path, program, stream, monkeypatch, capsys):
    write(table(), tmp_path / 'goals.parquet')
    output = tmp_path / 'out.parquet'
    with Path('/dev/full').open('w') as full:
        monkeypatch.setattr(sys, stream, full)
        code = program.main([str(ARM), str(tmp_path / 'goals.parquet'), str(output), *PROGRAMS[program]])
    if stream == 'stdout':
        assert code == 2
        assert 'cannot print: No space left on device' in capsys.readouterr().err
    else:
        assert code == 0
        assert pq.read_table(output).num_rows == ROWS


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
        check_rejected(run(program, source, output), 'would be written over or into the input')
    assert goals.read_bytes() == data
    assert sorted(path.name for path in tmp_path.rglob('*')) == ['a.parquet', 'goals', 'link.parquet']
