# SPDX-License-Identifier: Apache-2.0
"""Programs that are given something wrong: exit code 2, one line that names it, and nothing written."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest
from programs import check_rejected, ran

from ik_node import start
from ik_node.model.urdf.description import load_description
from ik_node.startup.arguments import URDF
from ik_node.tools import batch, inspect, place, reach, retarget, solve

XACRO = URDF / 'seed_arm.urdf.xacro'
EXPANDED = load_description(XACRO)  # quicker to read
GOAL = ('0.3', '0', '0.2')
FILES = {
    'goal.csv': 'x,y,z\n1,0,0\n',
    'far.csv': 'x,y,z\n9,0,0\n',
    'empty.csv': '',
    'head.csv': 'x,y,z\n',
    'flat.csv': 'x,y\n1,2\n',
    'word.csv': 'x,y,z\n1,a,0\n',
    'nan.csv': 'x,y,z\n1,nan,0\n',
    'frames.csv': 'x,y,z,frame\n1,0,0,a\n1,0,0,b\n',
    'takes.csv': 'take,x,y,z\n',
    'solved.csv': 'take,x,y,z,solved\n',
    'notes.csv': 'x,y,z\n1,2,3\n',
    'notes.png': '',
}
AREA = ('--x', '0', '1', '--y', '0', '1')
TAKES = ('--episode', 'take', '--fps', '30')
# A program, its arguments after the arm, and what the one line of its error names.
WRONG = [
    (solve, ('nan', '0', '0.2'), 'position'),
    (solve, ('-inf', '0', '0.2'), 'position'),
    (solve, (*GOAL, '--direction', '0', '0', '0'), '[0.0, 0.0, 0.0]'),
    (solve, (*GOAL, '--direction', '1', 'nan', '0'), '[1.0, nan, 0.0]'),
    (solve, (*GOAL, '--direction', '0', '1'), '--direction'),
    (solve, (*GOAL, '--seed', '1', '2'), 'seed must be 5'),
    (solve, (*GOAL, '--tip-link', 'hand'), 'tip_link "hand"'),
    (solve, (*GOAL, '--base-link', 'world'), 'base_link "world"'),
    (solve, (*GOAL, '--tool-axis', 'w'), "'w'"),
    (solve, (*GOAL, '--tool-axis', '0,0,0'), 'tool_axis'),
    (solve, (*GOAL, '--lock', 'nobody'), 'nobody'),
    (solve, ('0.3', '0'), 'z'),
    (solve, ('0.3', 'a', '0'), "argument y: invalid float value: 'a'"),
    (reach, ('--resolution', '0'), '--resolution must be greater than 0, got 0'),
    (reach, ('--resolution', 'nan'), '--resolution'),
    (reach, ('--resolution', '1e-9'), 'are allowed'),
    (reach, ('--volume', '--resolution', '0.002'), 'at most 2.0e+06'),
    (reach, ('--volume', '--resolution', '1e-320'), 'at most 2.0e+06'),
    (reach, ('--volume', '--directions', '1001'), 'at most 1000, got 1001'),
    (reach, ('--within', '0'), '--within'),
    (reach, ('--within', 'nan'), '--within'),
    (reach, ('--directions', '0'), '--directions'),
    (reach, ('--height', 'inf'), '--height'),
    (reach, ('--tip-link', 'hand'), 'tip_link "hand"'),
    (reach, ('--output', '/nowhere/at/all'), '"/nowhere/at"'),
    (reach, ('--output', 'reach.csv'), 'leave the suffix out'),
    (reach, ('--output', 'notes'), '--overwrite'),
    (place, ('empty.csv', *AREA), 'empty.csv'),
    (place, ('head.csv', *AREA), '1 to 10000 goals'),
    (place, ('flat.csv', *AREA), 'no column of positions'),
    (place, ('word.csv', *AREA), 'y is'),
    (place, ('nan.csv', *AREA), 'row 0 of "nan.csv"'),
    (place, ('frames.csv', *AREA), '2 frames'),
    (place, ('goal.csv', *AREA, '--path', 'way'), 'no column "way"'),
    (place, ('goal.csv', '--x', '1', '0', '--y', '0', '1'), '--x must be'),
    (place, ('goal.csv', '--x', '0', '1'), '--y MIN MAX'),
    (place, ('goal.csv', *AREA, '--yaw', '0', '400'), 'more than a turn'),
    (place, ('goal.csv', *AREA, '--rail', *'000001'), '--rail and --x, --y, --z'),
    (place, ('goal.csv', '--rail', *'111111'), 'two different points'),
    (place, ('goal.csv', *AREA, '--length', 'nose=0.1:0.2'), "'nose'"),
    (place, ('goal.csv', *AREA, '--length', 'forearm=1'), '--length'),
    (place, ('goal.csv', *AREA, '--output', '/nowhere/a'), '/nowhere'),
    (place, ('goal.csv', '--output', 'place.csv'), 'leave the suffix out'),
    (place, ('goal.csv', '--output', 'notes'), '--overwrite'),
    (batch, ('nowhere.parquet', 'out.parquet'), '"nowhere.parquet"'),
    (batch, ('goals.parquet', '/nowhere/out.parquet'), '"/nowhere/out.parquet"'),
    (batch, ('goals.parquet', 'out.parquet', '--direction', 'n'), '"n"; the columns are "x", "y"'),
    (batch, ('goals.parquet', 'out.parquet', '--workers', '0'), '--workers must be at least 1, got 0'),
    (batch, ('goals.parquet', 'out.parquet', '--seed', 'x'), '"x" must hold lists of 5 numbers'),
    (batch, ('goals.parquet', 'out.parquet', '--seed', 'x', 'y'), '--seed takes 5 columns'),
    (batch, ('goal.csv', 'out.json'), '.csv'),
    (batch, ('goal.csv', 'out'), '.csv'),
    (batch, ('goal.csv', 'notes.csv'), '--overwrite'),
    (batch, ('goal.csv', 'pipe.csv', '--overwrite'), 'pipe'),
    (batch, ('goal.csv', 'arm.csv', '--overwrite'), 'input'),
    *(
        (program, ('folder/goals.parquet', output, '--overwrite', *more), 'input')
        for program, more in ((batch, ()), (retarget, TAKES))
        for output in ('folder/goals.parquet', 'folder/../folder/goals.parquet', 'link.parquet')
    ),
    (batch, ('folder', 'folder/out.parquet'), 'input'),
    (batch, ('link.parquet', 'folder/goals.parquet', '--overwrite'), 'input'),
    (retarget, ('takes.csv', 'out.parquet', '--fps', '30'), '--episode'),
    (retarget, ('takes.csv', 'out.parquet'), '--episode'),
    (retarget, ('takes.csv', 'out.parquet', '--episode', 'take'), '--fps RATE [1/s]'),
    (retarget, ('takes.csv', 'out.parquet', '--episode', 'take', '--fps', '0'), '--fps'),
    (retarget, ('takes.csv', 'out.parquet', '--episode', 'no', '--fps', '30'), 'no column "no"'),
    (retarget, ('takes.csv', 'out.parquet', '--episode', 'take', '--time', 'stamp'), 'no column "stamp"'),
    (retarget, ('solved.csv', 'out.parquet', *TAKES), 'a column "solved"'),
    (retarget, ('takes.csv', 'out.parquet', *TAKES), 'no rows'),
    (retarget, ('goal.csv', 'out.npz', *TAKES), '.csv'),
    (retarget, ('data', 'out', '--report', 'notes.csv'), '--overwrite'),
    (retarget, ('data', 'out', '--report', 'report.txt'), '.json'),
    (retarget, ('data', 'out', '--recordings', 'film.mcap'), 'folder'),
    (retarget, ('none', 'out'), 'meta/info.json'),
]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with files of all kinds; the working directory."""
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        Path(name).write_text(text)
    os.mkfifo('pipe.csv')
    Path('seed.urdf').write_text(EXPANDED)
    Path('arm.csv').symlink_to('seed.urdf')
    Path('folder').mkdir()
    table = pa.table({'x': [0.2], 'y': [0.2], 'z': [0.2], 'take': ['a']})
    for name in ('goals.parquet', 'folder/goals.parquet'):
        pyarrow.parquet.write_table(table, name)
    Path('link.parquet').symlink_to('folder/goals.parquet')
    return tmp_path


def contents(folder):
    """All files and folders; parts of an output may be left, for a run that continues."""
    every = (path for path in folder.rglob('*') if '.parts' not in str(path))
    return {path: path.is_file() and path.read_bytes() for path in every}


@pytest.mark.slow
@pytest.mark.parametrize(
    ('program', 'arguments', 'named'), WRONG, ids=[f'{row[0].__name__[12:]}-{row[2]}' for row in WRONG]
)
def test_what_is_wrong_is_named_and_nothing_is_written(folder, program, arguments, named):
    before = contents(folder)
    ended = ran(program, XACRO if '--length' in arguments else 'seed.urdf', *arguments)
    check_rejected(ended, named)
    assert contents(folder) == before


@pytest.mark.parametrize('program', [solve, inspect, reach])
def test_descriptions_that_cannot_be_read(folder, program):
    for arm, named in (('nothing.urdf', 'nothing.urdf: No such file'), ('goal.csv', 'goal.csv: ')):
        check_rejected(ran(program, arm, *(GOAL if program is solve else ())), named)
    assert not (folder / 'nothing.urdf').exists()


# --- arguments that no program knows -------------------------------------------------------------------

SETUP = (URDF.parent / 'setup.py').read_text(encoding='utf-8')
PROGRAMS = re.findall(r"'(ik_\w+) = ik_node.start:\1'", SETUP)
NODES = [name for name in PROGRAMS if 'node' in getattr(start, name).keywords]


@pytest.fixture
def ended(monkeypatch, capsys):
    """Run a program with arguments; return its exit code and what it has printed."""

    def run(name, *arguments, loads=False):
        monkeypatch.setattr(sys, 'argv', [name, *arguments])
        monkeypatch.setattr(start, '_end', sys.exit)
        if not loads:  # a node must not even load its module
            monkeypatch.setattr(start, 'import_module', lambda module: pytest.fail(f'{module} is loaded'))
        with pytest.raises(SystemExit) as exit_:
            getattr(start, name)()
        text = capsys.readouterr()
        return exit_.value.code, text.out + text.err

    return run


@pytest.mark.parametrize('name', NODES)
def test_nodes_tell_their_usage_and_reject_what_is_not_of_ros(ended, name):
    for arguments in ('--help',), ('-h',), ('--ros-args', '--help'):
        code, text = ended(name, *arguments)
        assert code == 0
        assert f'usage: {name} [--ros-args' in text
    for arguments in ('x',), ('--x',), ('-p', 'a:=b'), ('--ros-args', '-p', 'a:=1', '--', 'x'), ('',):
        code, text = ended(name, *arguments)
        assert code == 2
        assert 'unrecognized arguments' in text


@pytest.mark.parametrize('arguments', [[], ['--ros-args', '-p', 'a:=1', '--ros-args', '-r', 'x:=y', '--']])
def test_nodes_start_with_ros_arguments(ended, monkeypatch, arguments):
    monkeypatch.setattr(start, 'import_module', lambda module: sys.exit(f'{module} is loaded'))
    code, _ = ended('ik_goals', *arguments, loads=True)
    assert 'is loaded' in code


@pytest.mark.parametrize('columns', ['30', '200'])
@pytest.mark.parametrize('name', sorted(set(PROGRAMS) - set(NODES)))
def test_commands_tell_their_usage_and_reject_nonsense(ended, monkeypatch, name, columns):
    monkeypatch.setenv('COLUMNS', columns)
    code, text = ended(name, '--help', loads=True)
    assert code == 0
    assert 'usage: ' in text
    code, text = ended(name, '--nonsense', loads=True)
    assert code == 2
    assert 'error: ' in text


# --- progress ------------------------------------------------------------------------------------------


def test_lines_of_progress_have_the_rate_since_the_last_one_and_what_is_left_at_it(monkeypatch, capsys):
    pytest.importorskip('tqdm')
    from ik_node import arguments

    now = [100.0]
    monkeypatch.setattr(arguments.time, 'monotonic', lambda: now[0])
    for (total, what, about), steps in {
        (1000, 'goals', False): ((1.0, 500), (10.0, 100), (5.0, 10), (20.0, 390)),  # 500 of a run before
        (10, 'goals', True): ((4.0, 5), (10.0, 6)),  # an estimate may be exceeded
        (None, 'episodes', False): ((4.0, 5),),
    }.items():
        with arguments.ProgressBar(total, what, about=about) as bar:
            for seconds, count in steps:
                now[0] += seconds
                bar.add(count)
    assert [line for line in capsys.readouterr().err.splitlines() if 'passed' in line] == [
        '50 % of 1000 goals, 1 s passed, 500 goals/s, 1 s left',
        '60 % of 1000 goals, 11 s passed, 10 goals/s, 40 s left',
        '100 % of 1000 goals, 36 s passed, 16 goals/s, 0 s left',
        '50 % of about 10 goals, 4 s passed, 1.25 goals/s, 4 s left',
        '11 goals, 14 s passed, 0.60 goals/s',
        '5 episodes, 4 s passed, 1.25 episodes/s',
    ]
