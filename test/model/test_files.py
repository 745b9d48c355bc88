# SPDX-License-Identifier: Apache-2.0
"""Files of users: errors say where, what is allowed and what was given; writing is all or nothing."""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO

import pytest

from ik_node.errors import InputError
from ik_node.files import (
    fields,
    list_of,
    mapping_of,
    number,
    one_of,
    optional,
    read_file,
    switch,
    text,
    whole_file,
    whole_number,
    write_file,
)

ARM = fields(
    {
        'name': text,
        'kind': one_of('left', 'right'),
        'ids': list_of(whole_number(0, 9), 2),
        'joints': mapping_of(fields({'low': number(), 'share': number(0.0, 1.0, above=True)}, ('low',))),
        'on': optional(switch),
    },
    required=('name',),
)
GOOD = """\
name: a
kind: left
ids: [1, 2]
joints:
  1: {low: 1e-3}
  elbow:
    low: -1
    share: 1
on:
"""


def read(path: Path, content: str) -> object:
    path.write_text(content)
    return read_file(path, 'arm', ARM)


def test_a_file_is_read_as_its_fields_say(tmp_path: Path) -> None:
    assert read(tmp_path / 'a.yaml', GOOD) == {
        'name': 'a',
        'kind': 'left',
        'ids': (1, 2),
        'joints': {'1': {'low': 1e-3}, 'elbow': {'low': -1.0, 'share': 1.0}},
        'on': None,
    }
    assert read(tmp_path / 'a.json', '{"name": "a"}') == {'name': 'a'}


@pytest.mark.parametrize(
    ('old', 'new', 'error'),
    [
        ('left', 'up', "arm {}: line 1: kind must be left or right, got 'up'"),
        ('[1, 2]', '[1]', 'arm {}: line 1: ids must be a list of 2, got [1]'),
        ('[1, 2]', '[1, 10]', 'arm {}: line 1: ids[1] must be a whole number from 0 to 9, got 10'),
        ('[1, 2]', '[1, true]', 'arm {}: line 1: ids[1] must be a whole number from 0 to 9, got True'),
        ('low: -1', 'low: .inf', 'arm {}: line 7: joints.elbow.low must be a finite number, got inf'),
        (
            'share: 1',
            'share: 0',
            'arm {}: line 7: joints.elbow.share must be a number greater than 0, at most 1, got 0',
        ),
        (
            'share: 1',
            'shre: 1',
            'arm {}: line 7: joints.elbow has no "shre"; allowed: "low", "share" (did you mean "share"?)',
        ),
        ('    low: -1\n', '', 'arm {}: line 7: joints.elbow lacks "low"'),
        ('    share: 1', '    low: 1', "cannot read arm {}: line 8: the key 'low' is given twice"),
        ('1: {low', '[1]: {low', 'cannot read arm {}: line 5: a key must be text'),
        ('name: a\n', '', 'arm {}: line 1: it lacks "name"'),
        ('name: a', f'name: {["x" * 200]}', "arm {}: line 1: name must be text, got ['xxx"),
        (GOOD, '- 1', 'arm {}: it must be a mapping with "name", "kind", "ids", "joints", "on", got [1]'),
        (GOOD, '{', 'cannot read arm {}: not YAML: '),
        (GOOD, '[' * 20 + ']' * 20, 'cannot read arm {}: lists and mappings are nested deeper than 10'),
        (GOOD, 'a: &a 1\nb: *a', 'cannot read arm {}: it has aliases (*)'),
        (GOOD, '#' * 2_000_000, 'cannot read arm {}: it has more than 1048576 bytes'),
        (GOOD, '\x00', 'cannot read arm {}: not YAML: '),
        (GOOD, '1' * 5000, 'cannot read arm {}: Exceeds the limit'),
    ],
)
def test_an_error_says_where_what_is_allowed_and_what_was_given(tmp_path: Path, old: str, new: str, error: str) -> None:
    path = tmp_path / 'a.yaml'
    assert old in GOOD
    with pytest.raises(InputError) as raised:
        read(path, GOOD.replace(old, new, 1))
    assert str(raised.value).startswith(error.format(path))
    assert len(str(raised.value)) < len(str(path)) + 200


def test_a_file_that_cannot_be_opened_is_named(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / 'pipe')
    for path in (tmp_path, tmp_path / 'none', tmp_path / 'pipe', '/dev/zero', 'a' * 300, 'a\x00b'):
        with pytest.raises(InputError, match='cannot read arm'):
            read_file(path, 'arm', ARM)


def test_a_file_is_stored_before_it_replaces_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise there may be an empty file after a power failure."""
    path, stored = tmp_path / 'file', []
    path.write_text('old')

    def fsync(handle: int) -> None:
        file = Path(f'/proc/self/fd/{handle}').readlink()
        stored.append((file.read_text() if file.is_file() else file.name, path.read_text()))

    monkeypatch.setattr(os, 'fsync', fsync)
    write_file(path, 'new')
    assert stored == [('new', 'old'), (tmp_path.name, 'new')]
    stored.clear()
    with whole_file(path, durable=False) as stream:
        stream.write(b'newer')
    assert (path.read_text(), stored) == ('newer', [])
    assert [file.name for file in tmp_path.iterdir()] == ['file']


def test_what_fails_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / 'new' / 'file'
    write_file(path, 'old')

    def fail(stream: IO[bytes]) -> None:
        stream.write(b'half')
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_file(path, fail)
    assert path.read_text() == 'old'
    assert [file.name for file in path.parent.iterdir()] == ['file']
    with pytest.raises(InputError, match=r'cannot write ".*/file/none": File exists'):
        write_file(path / 'none', 'new')
