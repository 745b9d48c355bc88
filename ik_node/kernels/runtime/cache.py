# SPDX-License-Identifier: Apache-2.0
"""The cache of compiled kernels.

numba keys its cache by the text of one file and misses a change of a callee in another. Here the folder
of a module's kernels is named by the contents of the module and of every kernel module that it imports.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path

from ik_node.kernels.runtime.signatures import ARGUMENTS, EXCEPTIONS, KERNELS

HERE = Path(__file__).parents[1]
TYPES = f'{ARGUMENTS} {EXCEPTIONS}'
DIGITS = 16  # of a folder's name
RELATIVE = re.compile(rb'^\s*from (\.+)([\w.]+) import ', re.MULTILINE)  # ast takes ten times as long
UNUSED = 30 * 86400.0  # s: folders that nobody has used for longer are removed when a new one is made


@cache
def root() -> Path:
    """Return the folder of all compiled kernels, writable.

    $NUMBA_CACHE_DIR, else __pycache__ beside the kernels, else the user's cache, else a folder of the
    user's own among the temporary ones.
    """
    wanted = os.environ.get('NUMBA_CACHE_DIR')
    home = os.environ.get('XDG_CACHE_HOME') or os.path.expanduser('~/.cache')  # noqa: PTH111 - without a home it stays
    usual = [Path(wanted).absolute()] if wanted else [HERE / '__pycache__', Path(home, 'ik_node')]
    for folder in usual:
        if folder.is_absolute() and _is_writable(folder):
            _take_over(usual[0], folder)
            return folder
    folder = _temporary()
    _take_over(usual[0], folder)
    logging.getLogger('ik_node').warning(
        'compiled kernels are kept in %s, as %s cannot be written: set NUMBA_CACHE_DIR to a permanent folder',
        folder,
        ' and '.join(map(str, usual)),
    )
    return folder


def folder(module: Path) -> Path:
    """Return the folder of the compiled kernels of one module, given by its file."""
    return root() / digest(module)


def is_there(kernel: str) -> bool:
    """Whether a kernel has been compiled for this processor, numba and Python."""
    return _mark(kernel).exists()


def mark(kernel: str) -> None:
    """Note that a kernel has been compiled."""
    _mark(kernel).touch()


def _mark(kernel: str) -> Path:
    # numba has a folder of its own for each place that a module lies at.
    key = sha256(f'{surroundings()}\n{TYPES}\n{HERE}'.encode()).hexdigest()[:DIGITS]
    module = HERE.joinpath(*KERNELS[kernel].split('.')).with_suffix('.py')
    return folder(module) / f'{kernel}-{key}.ready'


def lock_file() -> Path:
    """Return the file that the compiling process locks."""
    return root() / f'compiling-{sha256(surroundings().encode()).hexdigest()[:DIGITS]}.lock'


def clean() -> None:
    """Mark the folders of the present kernels as used, and remove those that have not been used for long."""
    present = {digest(path) for path in HERE.rglob('*.py')}
    for place in root().iterdir():
        if len(place.name) != DIGITS or not place.is_dir():
            continue
        with suppress(OSError):
            if place.name in present:
                os.utime(place)
            elif time.time() - place.stat().st_mtime > UNUSED:
                shutil.rmtree(place)


@cache
def digest(path: Path) -> str:
    """Return a hash of a kernel module and of all kernel modules that it imports, however indirectly."""
    source = path.read_bytes()
    parts = [source, *(digest(module).encode() for module in sorted(set(_imports(path, source))))]
    return sha256(b'\0'.join(parts)).hexdigest()[:DIGITS]


def _imports(path: Path, source: bytes) -> Iterator[Path]:
    """Yield the files of the modules that relative imports name."""
    for dots, name in RELATIVE.findall(source):
        module = path.parents[len(dots) - 1].joinpath(*name.decode().split('.')).with_suffix('.py')
        if module.exists():
            yield module


@cache
def surroundings() -> str:
    """Return what compiled code depends on besides its source: processor, Python, numba and its settings."""
    versions = []
    for name in ('numba', 'llvmlite'):
        spec = find_spec(name)  # loads nothing
        if spec is not None and spec.origin is not None:
            version = Path(spec.origin).with_name('_version.py')
            versions.append(version.read_text() if version.exists() else spec.origin)
    names = sorted(name for name in os.environ if name.startswith('NUMBA_') and name != 'NUMBA_CACHE_DIR')
    settings = [f'{name}={os.environ[name]}' for name in names]
    return '\n'.join([sys.version, _processor(), *versions, *settings])


def _processor() -> str:
    try:
        lines = Path('/proc/cpuinfo').read_text().splitlines()
    except OSError:
        lines = []
    telling = ('model name', 'flags', 'Features', 'CPU part')
    return '\n'.join([*os.uname()[::4], *sorted({line for line in lines if line.startswith(telling)})])


def _is_writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return False
    return True


def _take_over(filled: Path, folder: Path) -> None:
    """Copy what whoever installed the package has compiled, from where this user cannot write to folder."""
    if filled == folder or not filled.is_dir():
        return
    for name in {digest(path) for path in HERE.rglob('*.py')}:
        if (filled / name).is_dir() and not (folder / name).exists():
            with suppress(OSError), tempfile.TemporaryDirectory(dir=folder) as part:
                shutil.copytree(filled / name, Path(part, name))
                Path(part, name).rename(folder / name)


def _temporary() -> Path:
    """Return a folder that no other user can write to: its contents are executed."""
    place = Path(tempfile.gettempdir(), f'ik_node-{os.getuid()}')
    with suppress(OSError):
        place.mkdir(mode=0o700, exist_ok=True)
        found = place.lstat()
        safe = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o022
        if safe and _is_writable(place):
            return place
    return Path(tempfile.mkdtemp(prefix='ik_node-'))
