# SPDX-License-Identifier: Apache-2.0
"""Files of goals: every kind gives the same rows, whatever its blocks are; what is damaged says so."""

from __future__ import annotations

import csv

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest

from ik_node import InputError
from ik_node.tools import goal_files
from ik_node.tools.checkpoints import packed
from ik_node.tools.goal_files import open_goals

ROWS = 1000
X = np.random.default_rng(0).normal(size=ROWS)
TABLE = pa.table({'x': X, 'other': ['a,"b"'] * ROWS, 'y': -X})


def write(path) -> None:
    if path.suffix == '.parquet':
        pyarrow.parquet.write_table(TABLE, path, row_group_size=70)
    elif path.suffix == '.csv':
        pyarrow.csv.write_csv(TABLE, path)
    elif path.suffix == '.npz':
        np.savez(path, x=X, y=-X)
    elif path.suffix == '.feather':
        pyarrow.feather.write_feather(TABLE, path, chunksize=70)
    else:
        path.mkdir()
        for k in range(0, ROWS, 300):
            pyarrow.parquet.write_table(TABLE.slice(k, 300), path / f'{k:04d}.parquet')


@pytest.mark.slow
@pytest.mark.parametrize('name', ['a.parquet', 'a.csv', 'a.npz', 'a.feather', 'folder'])
@pytest.mark.parametrize('size', [1, 64, 5000])
def test_every_kind_gives_the_same_rows(tmp_path, monkeypatch, name, size):
    monkeypatch.setattr(goal_files, 'BLOCK', 3000)
    write(tmp_path / name)
    goals = open_goals(tmp_path / name)
    assert {'x', 'y'} <= set(goals.names)
    assert goals.exact == (name != 'a.csv')
    assert abs(goals.rows - ROWS) <= (0 if goals.exact else ROWS // 10)
    batches = list(goals.batches(['y', 'x'], size))
    assert [batch.num_rows for batch in batches[:-1]] == [size] * (len(batches) - 1)
    read = pa.Table.from_batches(batches)
    assert read.column_names == ['y', 'x']
    for column, expected in (('x', X), ('y', -X)):
        np.testing.assert_array_equal(read[column].cast(pa.float64()).to_numpy(), expected)


def test_a_line_that_ends_too_early_is_a_row_without_numbers(tmp_path):
    (tmp_path / 'a.csv').write_text('x,y\n1,2\n3\n4,5,6\n\n7,8,,\n9')
    table = pa.Table.from_batches(open_goals(tmp_path / 'a.csv').batches(['x', 'y'], 100))
    assert table['x'].to_pylist() == ['1', None, None, None, '7', None]


UNREADABLE = {  # file name: its content and what is said
    'utf16.csv': ('x,y\n1,2\n'.encode('utf-16'), 'UTF-16'),
    'cr.csv': (b'x,y\r1,2\r', 'CR only'),
    'micro.csv': (b'x,y [\xb5m]\n1,2\n', 'UTF-8'),
    'mixed.csv': (b'x;y\n1.234,5;0\n0,5;1.5\n1.5;2\n', 'column x has numbers with commas and with points'),
    'commas.csv': (b'x,y\n0,2,0,1\n', 'decimal commas'),
    'stream.arrow': (packed(pa.RecordBatch.from_pydict({'x': [1.0]})), 'it is not an Arrow file'),
    'a.xlsx': (b'', r'must be one of \.parquet, .*\.csv, .*\.npz'),
    'absent.parquet': (None, 'cannot read ".*absent.parquet"'),
    'half.parquet': ('half', 'cannot read ".*half.parquet"'),
    'half.feather': ('half', 'cannot read ".*half.feather"'),
    'half.npz': ('half', 'cannot read ".*half.npz"'),
    'empty.csv': (b'', 'cannot read ".*empty.csv"'),
    'empty.npz': (b'', 'cannot read ".*empty.npz"'),
    'text.parquet': (b'x,y\n1,2\n', 'cannot read ".*text.parquet"'),
}


@pytest.mark.parametrize('name', UNREADABLE)
def test_what_cannot_be_read_says_why(tmp_path, name):
    path, (data, named) = tmp_path / name, UNREADABLE[name]
    if data == 'half':
        write(path)
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    elif data is not None:
        path.write_bytes(data)
    with pytest.raises(InputError, match=named):
        list(open_goals(path).batches(['x'], 10))


@pytest.mark.parametrize(
    'text',
    [
        'x [mm];"y ""b""";z\r\n0,5;1;a,b\r\n-2,25e3;;c\r\n',
        '\ufeffsep=;\nx [mm];"y ""b""";z;;\n0,5;1;a,b;;\n-2,25e3;;c;;\n;;;;\n;;;;\n',
        'x [mm]\t"y ""b"""\tz\n0.5\t1\ta,b\n-2.25e3\t\tc\n\t\t\n',
        '\n,,\n"x\n[mm]", "y ""b""",z,,\n0.5,1,"a,b",,\n-2.25e3,,c,,\n,,,,\n\n',
        'x [mm]|y "b"|z\n0.5|1|a,b\n-2.25e3||c\n| |\n',
    ],
)
def test_what_spreadsheets_write_is_read(tmp_path, text):
    (tmp_path / 'a.tsv').write_bytes(text.encode())
    goals = open_goals(tmp_path / 'a.tsv')
    assert goals.names == ['x [mm]', 'y "b"', 'z']
    read = pa.Table.from_batches(goals.batches(goals.names, 100))
    assert [float(cell) for cell in read['x [mm]'].to_pylist()] == [0.5, -2250.0]
    assert read['y "b"'].to_pylist() == ['1', None]
    assert read['z'].to_pylist() == ['a,b', 'c']


def test_what_was_read_does_not_stay_in_memory(tmp_path):
    rows = 30_000
    with pyarrow.parquet.ParquetWriter(
        tmp_path / 'a.parquet', pa.schema([('x', pa.float64())]), use_dictionary=False, compression='none'
    ) as file:
        for k in range(40):
            file.write_table(pa.table({'x': np.random.default_rng(k).normal(size=rows)}))
    before, most = pa.total_allocated_bytes(), 0
    for _ in open_goals(tmp_path / 'a.parquet').batches(['x'], 10_000):
        most = max(most, pa.total_allocated_bytes() - before)
    assert most < (tmp_path / 'a.parquet').stat().st_size / 4


def test_files_of_a_folder_may_have_other_types_of_numbers_and_no_other_columns(tmp_path):
    for k, kind in enumerate((np.int64, np.float64, np.float32)):
        table = pa.table({'x': np.array([k + 0.5]).astype(kind)})
        pyarrow.parquet.write_table(table, tmp_path / f'{k}.parquet')
    read = pa.Table.from_batches(open_goals(tmp_path).batches(['x'], 2))
    assert read['x'].to_pylist() == [0.0, 1.5, 2.5]
    pyarrow.parquet.write_table(pa.table({'x': [1.0], 'y': [1.0]}), tmp_path / '0.parquet')
    with pytest.raises(InputError, match=r'1\.parquet" has no column "y"'):
        list(open_goals(tmp_path).batches(['x', 'y'], 100))
    pyarrow.parquet.write_table(pa.table({'x': ['one']}), tmp_path / '1.parquet')
    with pytest.raises(InputError, match=r'1\.parquet" does not match'):
        open_goals(tmp_path)


@pytest.mark.parametrize('name', ['a.csv', 'a.feather', 'a.npz'])
def test_a_file_that_grows_meanwhile_is_not_trusted(tmp_path, name):
    write(tmp_path / name)
    goals = open_goals(tmp_path / name)
    batches = goals.batches(['x'], 400)
    next(batches)
    with (tmp_path / name).open('ab') as file:
        file.write(b'0.1')
    with pytest.raises(InputError, match='has changed during the run: is it still being written'):
        list(batches)
    with pytest.raises(InputError, match='has changed during the run'):
        goals.check()


@pytest.mark.parametrize('block', [7, 16, 33, 100])
def test_lines_within_quotes_are_one_row_wherever_a_block_ends(tmp_path, monkeypatch, block):
    monkeypatch.setattr(goal_files, 'BLOCK', block)
    rows = [('1', 'a\n"b",\n'), ('2', '5" pipe'), ('3', '\n\n'), ('4', 'c')] * 5
    with (tmp_path / 'a.csv').open('w', newline='') as file:
        csv.writer(file).writerows([('x', 'note'), *rows])
    table = pa.Table.from_batches(open_goals(tmp_path / 'a.csv').batches(['x', 'note'], 3))
    assert list(zip(*table.to_pydict().values(), strict=True)) == rows


def test_a_quote_that_is_never_closed_does_not_fill_the_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(goal_files, 'BLOCK', 10)
    monkeypatch.setattr(goal_files, 'LONGEST', 100)
    (tmp_path / 'a.csv').write_text('x,y\n1,"2\n' + '3,4\n' * 100)
    with pytest.raises(InputError, match='longer than 100 bytes'):
        list(open_goals(tmp_path / 'a.csv').batches(['x'], 10))


@pytest.mark.parametrize('block', [4, 5, 100])
def test_blank_lines_at_the_end_are_no_rows(tmp_path, monkeypatch, block):
    monkeypatch.setattr(goal_files, 'BLOCK', block)
    (tmp_path / 'a.csv').write_bytes(b'x,y\r\n1,2\r\n\r\n3,4\r\n\r\n\r\n\r\n')
    table = pa.Table.from_batches(open_goals(tmp_path / 'a.csv').batches(['x'], 10))
    assert table['x'].to_pylist() == ['1', None, '3']


def test_arrays_are_columns_and_those_without_numbers_are_rejected_where_they_are_asked_for(tmp_path):
    large = 1_700_000_000_000_000_001  # stays whole
    np.savez(
        tmp_path / 'a.npz',
        x=np.arange(3.0),
        position=np.arange(9.0).reshape(3, 3),
        take=np.array([large, large + 64, 0], '>i8'),
        complex=np.array([1j, 2, 3]),
        mixed=np.array([0.1, 'abc', None], object),
        names=np.array(['arm', 'tool', '0.5']),
        bytes=np.array([b'arm', b'tool', b'0.5']),
    )
    goals = open_goals(tmp_path / 'a.npz')
    (batch,) = goals.batches(['x', 'position', 'take', 'names', 'bytes'], 10)
    assert batch.column('position')[2].as_py() == [6.0, 7.0, 8.0]
    assert batch.column('take').to_pylist() == [large, large + 64, 0]
    assert batch.column('names').to_pylist() == batch.column('bytes').to_pylist() == ['arm', 'tool', '0.5']
    for name in ('complex', 'mixed'):
        with pytest.raises(InputError, match=f'array {name} .*real numbers'):
            list(goals.batches(['x', name], 10))
    np.savez(tmp_path / 'b.npz', x=np.zeros(3), y=np.zeros(4))
    with pytest.raises(InputError, match=r'x \(3,\) float64, y \(4,\)'):
        open_goals(tmp_path / 'b.npz')


@pytest.mark.parametrize('more', ['', '1\n'], ids=['whole', 'with a short line'])
def test_words_that_mean_missing_elsewhere_stay_words(tmp_path, more):
    words = ['NA', 'null', 'n/a', 'NaN', '']
    (tmp_path / 'a.csv').write_text('x,take\n' + ''.join(f'1,{word}\n' for word in words) + more)
    table = pa.Table.from_batches(open_goals(tmp_path / 'a.csv').batches(['take'], 100))
    assert table['take'].to_pylist()[: len(words)] == [word or None for word in words]
