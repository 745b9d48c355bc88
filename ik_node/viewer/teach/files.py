# SPDX-License-Identifier: Apache-2.0
"""Files: the folder of the programs, where none is lost."""

from __future__ import annotations

import re
from pathlib import Path

from ik_node.errors import InputError
from ik_node.teach.program import Program

SUFFIX = '.yaml'
FILE_NAME = re.compile(r'\w[\w .-]{0,60}')
UNSAVED = 'unsaved'


class Files:
    """Knows of the program that is shown which file it comes from, and whether it is saved there."""

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder).expanduser().absolute()
        self._file: Path | None = None  # where the program comes from, or was saved last
        self._saved: Program | None = None  # what is there
        self._replaces: Path | None = None  # another program that a user has asked once to replace

    def path(self, name: str) -> Path:
        """Return the path of a file. Raises InputError."""
        name = name.removesuffix(SUFFIX)
        if not FILE_NAME.fullmatch(name):
            raise InputError('a file name has letters, digits, blanks, ".", "-" and "_"')
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
        if path.exists() and path not in (self._file, self._replaces):
            self._replaces = path
            raise InputError(f'{path} is another program: press Save again to replace it')
        program.save(path)
        self._file, self._saved, self._replaces = path, program, None
        return path

    def keep_unsaved(self, program: Program) -> str:
        """Keep a program before another one is shown; return a sentence on that. Raises InputError."""
        if not program.points or program is self._saved:
            return ''
        program.save(self._at(UNSAVED))
        return f'The program before was not saved: it is kept as {UNSAVED}.'

    def show(self, program: Program, name: str = '') -> None:
        """Note that a program is shown that was loaded by a name; '' if it is in no file."""
        self._file = self._at(name) if name else None
        self._saved = program if name else None
