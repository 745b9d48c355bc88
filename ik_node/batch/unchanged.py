# SPDX-License-Identifier: Apache-2.0
"""Unchanged: whether files are as they were."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ik_node.errors import InputError, path_text


class Unchanged:
    """Files as they are when it is made."""

    def __init__(self, given: Path, files: Sequence[str | Path]) -> None:
        """given: what a user has named. files: what is read of it. Raises OSError."""
        self._given, self._files = given, list(files)
        self._stamp = self._now()

    def check(self) -> None:
        """Raise InputError if a file has changed."""
        try:
            same = self._now() == self._stamp
        except OSError:
            same = False
        if not same:
            raise InputError(
                f'"{path_text(self._given)}" has changed during the run: is it still being written?'
            )

    def _now(self) -> list[tuple[int, int, int]]:
        """Return what changes with the files: a line that is not yet whole may look like a row."""
        found = [Path(file).stat() for file in self._files]
        return [(one.st_ino, one.st_size, one.st_mtime_ns) for one in found]
