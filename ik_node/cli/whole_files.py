# SPDX-License-Identifier: Apache-2.0
"""Files that programs write: completely or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import IO

from ik_node.errors import InputError


def output_name(name: str, *suffixes: str) -> str:
    """Return the output name without one of suffixes. Raises InputError for a folder that is not writable."""
    path = Path(name)
    if path.suffix in suffixes:
        path = path.with_suffix('')
    if not path.name or path.name == '..' or not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise InputError(f'--output: cannot write to the folder "{path.parent}"')
    return str(path)


def write_whole(name: str, content: Callable[[IO[bytes]], object]) -> None:
    """Write a file by content, or leave what is there. Raises InputError, as for a full disk."""
    part = Path(f'{name}.part')
    try:
        with part.open('wb') as file:
            content(file)
            file.flush()
            os.fsync(file.fileno())
        part.replace(name)
    except OSError as error:
        raise InputError(f'cannot write "{name}": {error.strerror or error}') from None
    finally:
        part.unlink(missing_ok=True)
