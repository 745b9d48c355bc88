# SPDX-License-Identifier: Apache-2.0
"""Files of goals: every kind gives the same rows, whatever its blocks are; what is damaged says so."""

from __future__ import annotations

import csv
import re

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest

from ik_node import InputError
from ik_node.batch import csv_goals
from ik_node.batch.goal_files import open_goals
from ik_node.batch.parts import packed

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


@pytest.mark.parametrize('name', ['a.parquet', 'a.csv', 'a.npz', 'a.feather', 'folder'])
@pytest.mark.parametrize('size', [1, 64, 999, 5000])
def test_every_kind_gives_the_same_rows(tmp_path, monkeypatch, name, size):
    monkeypatch.setattr(csv_goals, 'BLOCK', 3000)
    write(tmp_path / name)
    goals = open_goals(tmp_path / name)
    assert {'x', 'y'} <= set(goals.names)
    assert goals.counted == (name != 'a.csv')
    assert abs(goals.rows - ROWS) <= (0 if goals.counted else ROWS // 10)
    batches = list(goals.batches(['y', 'x'], size))
    assert [batch.num_rows for batch in batches[:-1]] == [size] * (len(batches) - 1)
    read = pa.Table.from_batches(batches)
    assert read.column_names == ['y', 'x']
    for column, expected in (('x', X), ('y', -X)):
        np.testing.assert_array_equal(read[column].cast(pa.float64()).to_numpy(), expected)


def test_arrays_of_lists_are_columns_of_lists(tmp_path):
    np.savez_compressed(tmp_path / 'a.npz', position=np.arange(30.0).reshape(10, 3), joints=np.arange(10))
    (batch,) = open_goals(tmp_path / 'a.npz').batches(['position', 'joints'], 100)
    assert batch.column('position')[9].as_py() == [27.0, 28.0, 29.0]
    assert batch.column('joints').to_pylist() == list(range(10))


def test_a_line_that_ends_too_early_is_a_row_without_numbers(tmp_path):
    (tmp_path / 'a.csv').write_text('x,y\n1,2\n3\n4,5,6\n\n7,8,,\n9')
    table = pa.Table.from_batches(open_goals(tmp_path / 'a.csv').batches(['x', 'y'], 100))
    assert table['x'].to_pylist() == ['1', None, None, None, '7', None]


@pytest.mark.parametrize(
    ('name', 'data', 'words'),
    [
        ('a.csv', 'x,y\n1,2\n'.encode('utf-16'), 'it is UTF-16: save it as UTF-8'),
        ('a.csv', b'x,y\r1,2\r', 'its lines end with CR only'),
        ('a.arrow', packed(pa.RecordBatch.from_pydict({'x': [1.0]})), 'it is not an Arrow file: write it'),
    ],
)
def test_a_file_of_a_kind_that_looks_like_another_says_what_to_do(tmp_path, name, data, words):
    (tmp_path / name).write_bytes(data)
    with pytest.raises(InputError, match=re.escape(words)):
        open_goals(tmp_path / name)


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


@pytest.mark.parametrize(
    ('text', 'words'),
    [
        ('x;y\n1.234,5;0\n0,5;1.5\n1.5;2\n', 'column x has numbers with commas and with points'),
        ('x,y\n0,2,0,1\n', 'decimal commas'),
        (b'x,y [\xb5m]\n1,2\n', 'save it as CSV UTF-8'),
    ],
)
def test_what_spreadsheets_write_and_cannot_be_read_says_so(tmp_path, text, words):
    (tmp_path / 'a.csv').write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(InputError, match=words):
        list(open_goals(tmp_path / 'a.csv').batches(['x'], 10))


DAMAGED = {
    'absent.parquet': None,
    'half.parquet': 'half',
    'half.feather': 'half',
    'half.npz': 'half',
    'empty.csv': b'',
    'empty.npz': b'',
    'text.parquet': b'x,y\n1,2\n',
}


@pytest.mark.parametrize('name', DAMAGED)
def test_a_file_that_is_damaged_or_being_written_says_so(tmp_path, name):
    path = tmp_path / name
    if DAMAGED[name] == 'half':
        write(path)
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    elif DAMAGED[name] is not None:
        path.write_bytes(DAMAGED[name])
    with pytest.raises(InputError, match=f'cannot read ".*{name}": .'):
        list(open_goals(path).batches(['x'], 10))


def test_a_kind_that_is_not_known_lists_those_that_are(tmp_path):
    with pytest.raises(
        InputError, match=r'must be one of \.parquet, .*\.csv, .*\.npz.*save the table as CSV'
    ):
        open_goals(tmp_path / 'a.xlsx')


def test_arrays_of_different_lengths_are_no_table(tmp_path):
    np.savez(tmp_path / 'a.npz', x=np.zeros(3), y=np.zeros(4))
    with pytest.raises(InputError, match=r'one length, got x \(3,\), y \(4,\)'):
        open_goals(tmp_path / 'a.npz')


def test_what_was_read_does_not_stay_in_memory(tmp_path):
    rows = 100_000
    with pyarrow.parquet.ParquetWriter(
        tmp_path / 'a.parquet', pa.schema([('x', pa.float64())]), use_dictionary=False, compression='none'
    ) as file:
        for k in range(40):
            file.write_table(pa.table({'x': np.random.default_rng(k).normal(size=rows)}))
    before, most = pa.total_allocated_bytes(), 0
    for _ in open_goals(tmp_path / 'a.parquet').batches(['x'], 10_000):
        most = max(most, pa.total_allocated_bytes() - before)
    assert most < (tmp_path / 'a.parquet').stat().st_size / 4


def test_files_of_a_folder_may_have_different_types_of_numbers(tmp_path):
    for k, kind in enumerate((np.int64, np.float64, np.float32)):
        pyarrow.parquet.write_table(
            pa.table({'x': np.array([k + 0.5]).astype(kind)}), tmp_path / f'{k}.parquet'
        )
    read = pa.Table.from_batches(open_goals(tmp_path).batches(['x'], 2))
    assert read['x'].to_pylist() == [0.0, 1.5, 2.5]


def test_a_file_of_a_folder_that_does_not_fit_is_named(tmp_path):
    pyarrow.parquet.write_table(pa.table({'x': [1.0], 'y': [1.0]}), tmp_path / '0.parquet')
    pyarrow.parquet.write_table(pa.table({'x': [1.0]}), tmp_path / '1.parquet')
    with pytest.raises(InputError, match=r'1\.parquet" has no column "y"'):
        list(open_goals(tmp_path).batches(['x', 'y'], 100))
    pyarrow.parquet.write_table(pa.table({'x': ['one']}), tmp_path / '1.parquet')
    with pytest.raises(InputError, match=r'1\.parquet" does not match the others: '):
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
    monkeypatch.setattr(csv_goals, 'BLOCK', block)
    rows = [('1', 'a\n"b",\n'), ('2', '5" pipe'), ('3', '\n\n'), ('4', 'c')] * 5
    with (tmp_path / 'a.csv').open('w', newline='') as file:
        csv.writer(file).writerows([('x', 'note'), *rows])
    table = pa.Table.from_batches(open_goals(tmp_path / 'a.csv').batches(['x', 'note'], 3))
    assert list(zip(*table.to_pydict().values(), strict=True)) == rows


def test_a_quote_that_is_never_closed_does_not_fill_the_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(csv_goals, 'BLOCK', 10)
    monkeypatch.setattr(csv_goals, 'LONGEST', 100)
    (tmp_path / 'a.csv').write_text('x,y\n1,"2\n' + '3,4\n' * 100)
    with pytest.raises(InputError, match='longer than 100 bytes'):
        list(open_goals(tmp_path / 'a.csv').batches(['x'], 10))


@pytest.mark.parametrize('block', [4, 5, 100])
def test_blank_lines_at_the_end_are_no_rows(tmp_path, monkeypatch, block):
    monkeypatch.setattr(csv_goals, 'BLOCK', block)
    (tmp_path / 'a.csv').write_bytes(b'x,y\r\n1,2\r\n\r\n3,4\r\n\r\n\r\n\r\n')
    table = pa.Table.from_batches(open_goals(tmp_path / 'a.csv').batches(['x'], 10))
    assert table['x'].to_pylist() == ['1', None, '3']


def test_arrays_that_hold_no_goals_are_rejected_only_where_they_are_asked_for(tmp_path):
    np.savez(
        tmp_path / 'a.npz',
        x=np.arange(3.0),
        complex=np.array([1j, 2, 3]),
        mixed=np.array([0.1, 'abc', None], object),
        names=np.array(['arm', 'tool', '0.5']),
        bytes=np.array([b'arm', b'tool', b'0.5']),
    )
    goals = open_goals(tmp_path / 'a.npz')
    (batch,) = goals.batches(['x', 'names', 'bytes'], 10)
    assert batch.column('names').to_pylist() == batch.column('bytes').to_pylist() == ['arm', 'tool', '0.5']
    for name in ('complex', 'mixed'):
        with pytest.raises(InputError, match=f'array {name} must have shape .* real numbers'):
            list(goals.batches(['x', name], 10))


@pytest.mark.parametrize('more', ['', '1\n'], ids=['whole', 'with a short line'])
def test_words_that_mean_missing_elsewhere_stay_words(tmp_path, more):
    words = ['NA', 'null', 'n/a', 'NaN', '']
    (tmp_path / 'a.csv').write_text('x,take\n' + ''.join(f'1,{word}\n' for word in words) + more)
    table = pa.Table.from_batches(open_goals(tmp_path / 'a.csv').batches(['take'], 100))
    assert table['take'].to_pylist()[: len(words)] == [word or None for word in words]


def test_whole_numbers_of_arrays_stay_whole(tmp_path):
    large = 1_700_000_000_000_000_001
    np.savez(tmp_path / 'a.npz', take=np.array([large, large + 64], '>i8'))
    (batch,) = open_goals(tmp_path / 'a.npz').batches(['take'], 10)
    assert batch.column('take').to_pylist() == [large, large + 64]
