# SPDX-License-Identifier: Apache-2.0
"""Programs as files: what is written is read again, and what is wrong is told with its line."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ik_node.errors import InputError
from ik_node.teach.program import JOINT, LINE, Point, Program

PROGRAM = """\
version: 1
gripper: finger
points:
- name: above
  position: [0.2, 0, 1e-1]
  direction: [0, 0, -1]
- name: pick
  joints: {yaw: 0.1, elbow: -0.2}
  motion: line
  speed: 0.5
  wait: 0.25
  gripper: 0.02
"""

NUMBERS = st.floats(-3.0, 3.0)
UNITS = st.sampled_from([(0.0, 0.0, -1.0), (0.6, 0.0, 0.8), (0.57735, -0.57735, 0.57735), None])


@st.composite
def points(draw: st.DrawFn) -> Point:
    values = {
        'name': draw(st.text(st.characters(codec='utf-8', categories=['L', 'N', 'P']), min_size=1)) + 'x',
        'speed': draw(st.floats(0.01, 1.0)),
        'wait': draw(st.floats(0.0, 10.0)),
        'gripper': draw(st.none() | NUMBERS),
    }
    if draw(st.booleans()):
        joints = draw(st.dictionaries(st.sampled_from(['a', 'b', 'null', '1']), NUMBERS, min_size=1))
        return Point(joints=joints, motion=draw(st.sampled_from([JOINT, LINE])), **values)
    direction = draw(UNITS)
    motion = JOINT if direction is None else draw(st.sampled_from([JOINT, LINE]))
    position = draw(st.tuples(NUMBERS, NUMBERS, NUMBERS))
    near = draw(st.dictionaries(st.sampled_from(['a', 'b']), NUMBERS))
    return Point(position=position, direction=direction, near=near, motion=motion, **values)


@pytest.mark.slow
@settings(max_examples=30)
@given(st.lists(points(), max_size=5, unique_by=lambda point: point.name))
def test_what_is_written_is_read_again(listed: list[Point]) -> None:
    program = Program(tuple(listed), 'my arm', 'left', 'yes')
    assert Program.parse(program.text()) == program


def test_a_file_is_read_and_written(tmp_path: Path) -> None:
    program = Program.parse(PROGRAM)
    first, second = program.points
    assert (first.position, first.direction) == ((0.2, 0.0, 0.1), (0.0, 0.0, -1.0))
    assert second.joints == {'yaw': 0.1, 'elbow': -0.2}
    assert (second.motion, second.speed, second.wait, second.gripper) == (LINE, 0.5, 0.25, 0.02)
    path = tmp_path / 'new' / 'program.yaml'
    program.save(path)
    assert Program.load(path) == program
    assert [one.name for one in path.parent.iterdir()] == ['program.yaml']


@pytest.mark.parametrize(
    ('old', 'new', 'said'),
    [
        ('version: 1', 'version: 2', 'line 1: version'),
        ('points:', 'dots:', 'line 1: it has no "dots"'),
        ('  motion: line', '  motion: arc', 'line 7: point "pick": motion'),
        ('  speed: 0.5', '  speed: 2', 'line 7: point "pick": speed'),
        ('  speed: 0.5', '  speed: .nan', 'speed'),
        ('  wait: 0.25', '  wait: -1', 'wait'),
        ('  wait: 0.25', '  wait: true', 'wait'),
        ('  wait: 0.25', '  speed: 0.1', 'line 11: the key'),
        ('name: pick', 'name: above', '"above"'),
        ('name: pick', 'name: ""', 'name'),
        ('name: pick', 'nme: pick', 'did you mean "name"'),
        ('[0.2, 0, 1e-1]', '[0.2, 0]', 'line 4: point "above": position'),
        ('[0.2, 0, 1e-1]', '[0.2, 0, .inf]', 'position'),
        ('[0, 0, -1]', '[0, 0, 0]', 'direction'),
        ('  position: [0.2, 0, 1e-1]\n', '', 'joints or a position'),
        ('{yaw: 0.1, elbow: -0.2}', '[0.1, 0.2]', 'joints'),
        ('{yaw: 0.1, elbow: -0.2}', '{}', 'joints'),
        ('{yaw: 0.1, elbow: -0.2}', '{yaw: up}', 'joints yaw'),
        ('gripper: finger\n', '', 'no gripper'),
        ('gripper: finger', 'gripper: 3', 'gripper'),
        (PROGRAM, 'hello', 'mapping'),
        (PROGRAM, '[1, 2', 'YAML'),
        (PROGRAM, 'version: 1\npoints: &p [*p]', 'aliases'),
        (PROGRAM, 'version: 1\npoints: [3]', r'points\[0\] must be a mapping'),
        (PROGRAM, '{a: ' * 50_000, 'nested'),
        (PROGRAM, '- ' * 50_000, 'nested'),
    ],
)
def test_what_is_wrong_is_told(old: str, new: str, said: str) -> None:
    assert old in PROGRAM
    with pytest.raises(InputError, match=said):
        Program.parse(PROGRAM.replace(old, new, 1))


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / 'picture.yaml').write_bytes(b'\xff\x00')
    os.mkfifo(tmp_path / 'pipe.yaml')
    (tmp_path / 'large.yaml').write_text('#' * 2_000_000)
    for name in ('none.yaml', 'picture.yaml', 'pipe.yaml', 'large.yaml', '/dev/zero'):
        with pytest.raises(InputError, match=name):
            Program.load(tmp_path / name)
    with pytest.raises(InputError, match=r'x\.yaml'):
        Program().save(tmp_path / 'large.yaml' / 'x.yaml')


def test_a_line_needs_a_direction() -> None:
    with pytest.raises(InputError, match='a line needs a direction'):
        Point('p', position=(0.1, 0.2, 0.3), motion=LINE)


def test_free_names() -> None:
    program = Program((Point('P1', joints={'a': 0.0}), Point('P3', joints={'a': 0.0})))
    assert program.free_name() == 'P4'
    assert Program().free_name() == 'P1'
