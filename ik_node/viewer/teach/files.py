# SPDX-License-Identifier: Apache-2.0
"""Files: the folder of the programs, where none is lost."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from pathlib import Path

from ik_node.errors import InputError
from ik_node.steady import steady
from ik_node.teach.program import Program

SUFFIX = '.yaml'
FILE_NAME = re.compile(r'\w[\w .-]{0,60}')
UNSAVED = 'unsaved'
DOUBLE_CLICK = 0.5  # [s] within which a second press is not another decision


class Files:
    """Knows of the program that is shown which file it comes from, and whether it is saved there."""

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder).expanduser().absolute()
        self._file: Path | None = None  # where the program comes from, or was saved last
        self._saved: Program | None = None  # what is there
        self._replaces: Path | None = None  # another program that a user has asked once to replace
        self._asked = 0.0  # when that was (steady)

    def path(self, name: str) -> Path:
        """Return the path of a file. Raises InputError."""
        name = name.removesuffix(SUFFIX)
        if not FILE_NAME.fullmatch(name):
            raise InputError('a file name has letters, digits, spaces, ".", "-" and "_"')
        return self._at(name)

    def _at(self, name: str) -> Path:
        return self._folder / f'{name}{SUFFIX}'

    def names(self) -> list[str]:
        """Return the names of all programs."""
        try:
            return sorted(path.stem for path in self._folder.glob(f'*{SUFFIX}') if path.name[0] != '.')
        except OSError:
            return []

    def load(self, name: str) -> Program:
        """Return a program. Raises InputError."""
        return Program.load(self._at(name))

    def save(self, program: Program, name: str) -> Path:
        """Save the program and return where; over another one only if asked twice. Raises InputError."""
        path = self.path(name)
        again = path == self._replaces and steady() > self._asked + DOUBLE_CLICK
        if path.exists() and path != self._file and not again:
            self._replaces, self._asked = path, steady()
            raise InputError(f'{path} is another program: press Save again to replace it')
        program.save(path)
        self._file, self._saved, self._replaces = path, program, None
        return path

    def keep_unsaved(self, program: Program) -> str:
        """Keep a program before another one is shown; return a sentence on that. Raises InputError."""
        if not program.points or program is self._saved:
            return ''
        name = next(name for name in _numbered(UNSAVED) if not self._at(name).exists())
        program.save(self._at(name))
        return f'The previous program was not saved; it is kept as {name}.'

    def show(self, program: Program, name: str = '') -> None:
        """Note that a program is shown that was loaded by a name; '' if it is in no file."""
        self._file = self._at(name) if name else None
        self._saved = program if name else None
        self._replaces = None


def _numbered(name: str) -> Iterator[str]:
    """Yield name, name_2, name_3 and so on."""
    yield name
    yield from (f'{name}_{number}' for number in itertools.count(2))
