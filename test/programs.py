# SPDX-License-Identifier: Apache-2.0
"""Programs called in this process, and workers of tables that are in this process, too."""

from __future__ import annotations

import contextlib
import io
import resource
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import NamedTuple


class Ended(NamedTuple):
    """How a program ended, and what it printed."""

    code: int
    out: str
    err: str


def ran(program: ModuleType, *arguments: object) -> Ended:
    """Call the main function of a program."""
    with (
        contextlib.redirect_stdout(io.StringIO()) as out,
        contextlib.redirect_stderr(io.StringIO()) as err,
    ):
        try:
            code = program.main([str(one) for one in arguments])
        except SystemExit as ended:  # of argparse
            code = ended.code
    return Ended(code, out.getvalue(), err.getvalue())


def check_rejected(ended: Ended, *named: str) -> None:
    """Check for exit code 2 and one line with an error that names what is wrong."""
    assert ended.code == 2, ended
    (line,) = [line for line in ended.err.splitlines() if 'error: ' in line]
    assert 'Traceback' not in ended.err
    for name in named:
        assert name in line


class Here:
    """Workers as ik_node.tools.workers.Processes, but without processes: a few chunks are read ahead."""

    meanwhile: Callable[[], None] = staticmethod(lambda: None)  # called before each chunk

    def __init__(self, work: Callable[[bytes], bytes], count: int) -> None:
        self._work, self._ahead = work, count + 1

    def results(self, chunks: Iterator[tuple[str, bytes]]) -> Iterator[tuple[str, bytes]]:
        held: list[tuple[str, bytes]] = []
        while True:
            while len(held) < self._ahead and (chunk := next(chunks, None)):
                held.append(chunk)
            if not held:
                return
            name, data = held.pop()  # the last first: results come in any order
            type(self).meanwhile()
            yield name, self._work(data)

    def __enter__(self) -> Here:
        return self

    def __exit__(self, *_: object) -> None: ...


@contextlib.contextmanager
def full_disk(most: int) -> Iterator[None]:
    """Have files of this process take no more than most bytes: writing fails, as on a disk that is full."""
    before, bytecode = resource.getrlimit(resource.RLIMIT_FSIZE), sys.dont_write_bytecode
    sys.dont_write_bytecode = True  # an import would leave half a file in __pycache__, for good
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        sys.dont_write_bytecode = bytecode
