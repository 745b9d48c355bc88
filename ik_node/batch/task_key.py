# SPDX-License-Identifier: Apache-2.0
"""task_key: a name for all that the result of a chunk depends on besides its goals."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

from ik_node.errors import IkError
from ik_node.solver.solver import IkSolver

SIZE = 16  # [bytes]
PACKAGE = Path(__file__).resolve().parents[1]
ARRAYS = ('joints', 'tool', 'limits', 'period', 'velocity', 'tool_axis', 'tool_point', 'tool_lateral')
WORDS = ('name', 'base_link', 'tip_link', 'joint_names')  # they are in names of columns and in reasons


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
        raise IkError('a worker has another version of ik_node, or ik_node has changed meanwhile')
