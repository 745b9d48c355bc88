# SPDX-License-Identifier: Apache-2.0
"""Tasks: what workers do with each chunk, and a name for all that its result depends on besides its goals."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Callable
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Protocol

from ik_node.errors import IkError
from ik_node.solver.solver import IkSolver

SIZE = 16  # [bytes]
PACKAGE = Path(__file__).resolve().parents[1]
ARRAYS = ('joints', 'tool', 'limits', 'period', 'velocity', 'tool_axis', 'tool_point', 'tool_lateral')
WORDS = ('name', 'base_link', 'tip_link', 'joint_names')  # they are in names of columns and in reasons


class Task(Protocol):
    """What is done with each chunk: all that its result depends on."""

    def answer(self, chunk: bytes) -> bytes:
        """Return the result of a chunk, both in Arrow's IPC format."""
        ...


def work_of(task: Task) -> Callable[[bytes], bytes]:
    """Return the function that has a task answer chunks, for workers: each reads the task once."""
    return partial(_answer, pickle.dumps(task), code_digest())


def _answer(pickled: bytes, code: str, chunk: bytes) -> bytes:
    return _task(pickled, code).answer(chunk)


@lru_cache(maxsize=4)
def _task(pickled: bytes, code: str) -> Task:
    check_code(code)
    task: Task = pickle.loads(pickled)
    return task


def task_key(solver: IkSolver, *options: object) -> bytes:
    """Return a digest of the code, the arm, the solver's options, and further ones with a canonical repr.

    A pickle would not do: it also has what an arm has computed so far.
    """
    build, (arm,) = solver.__reduce__()
    digest = hashlib.blake2b(digest_size=SIZE)
    words = [getattr(arm, name) for name in WORDS]
    balls = [ball.describe() for ball in arm.balls]
    digest.update(repr([code_digest(), words, balls, sorted(build.keywords.items()), options]).encode())
    for name in ARRAYS:
        array = getattr(arm, name)
        digest.update(repr((name, array.shape, array.dtype.str)).encode())
        digest.update(array.tobytes())
    return digest.digest()


@cache
def code_digest() -> str:
    """Return a digest of the source of ik_node: two installations may have the same version number."""
    digest = hashlib.blake2b(digest_size=SIZE)
    for path in sorted(PACKAGE.rglob('*.py')):
        digest.update(path.relative_to(PACKAGE).as_posix().encode() + b'\0')
        digest.update(path.read_bytes() + b'\0')
    return digest.hexdigest()


def check_code(code: str) -> None:
    """Raise IkError unless a digest is that of this installation: another one has other results."""
    if code != code_digest():
        raise IkError('a worker has another version of ik_node, or ik_node has changed since the start')
