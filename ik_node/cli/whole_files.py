# SPDX-License-Identifier: Apache-2.0
"""Files that programs write: completely or not at all."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import IO

from ik_node.errors import InputError, path_text

FILE_SUFFIX = re.compile(r'\.([A-Za-z]{2,7}|h5|mp4|7z|Z)')  # not .2 or .v2, which may end any name


def add_overwrite(parser: argparse.ArgumentParser) -> None:
    """Add the option without which no program replaces a file."""
    parser.add_argument('--overwrite', action='store_true', help='replace files that exist already')


def check_outputs(paths: Iterable[Path], inputs: Iterable[str | Path], overwrite: bool) -> None:
    """Raise InputError for outputs that are an input, a folder or special file, or exist already.

    overwrite: files may be replaced, inputs never.
    """
    sources = [Path(source) for source in inputs]
    for path in paths:
        given = f'"{path_text(path)}"'
        if not os.path.lexists(path):
            continue
        if any(source.exists() and path.exists() and path.samefile(source) for source in sources):
            raise InputError(f'{given} is an input, which is never written over: name another output')
        if path.is_dir() or (path.exists() and not path.is_file()):
            raise InputError(
                f'cannot write {given}: it is a {"folder" if path.is_dir() else "device or pipe"}'
            )
        if not overwrite:
            raise InputError(f'{given} exists already: name another output, or add --overwrite to replace it')


def output_name(name: str, *suffixes: str) -> str:
    """Return the output name without one of suffixes.

    Raises InputError for a folder that is not writable, and for the suffix of a kind that is not written.
    """
    path = Path(name)
    if path.suffix in suffixes:
        path = path.with_suffix('')
    elif FILE_SUFFIX.fullmatch(path.suffix):
        raise InputError(
            f'--output: "{path_text(path)}" ends with {path.suffix}, but {" and ".join(suffixes)} files are '
            'written: name it without a suffix'
        )
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
