# SPDX-License-Identifier: Apache-2.0
"""The compiled kernels: where they are, and how they replace the plain ones in a running program.

One file holds all of them. A wheel has it for x86-64 and aarch64; elsewhere build.py makes it once for each
version of the sources, beside the package or in a folder of the user; until then the plain kernels serve.
"""

from __future__ import annotations

import enum
import fcntl
import os
import platform
import shutil
import stat
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType

import numpy as np

from ik_node.errors import escaped

HERE = Path(__file__).parent
MODULE = '_ik_kernels'
FOLDER = 'IK_NODE_KERNELS'  # environment variable: the folder for the compiled kernels
PLAIN = 'plain'  # its value that asks for the plain kernels
INTERVAL = 0.05  # [s] between two looks for the file that another process makes
UNUSED = 30 * 86400.0  # [s] after which files that nobody has loaded are removed
DIGITS = 16  # of the digest in the name of the file
DIGEST = sha256().digest_size  # bytes at the end of the file


class Stage(enum.Enum):
    """Which kernels are in use."""

    PLAIN = 'plain'  # compiled kernels have not been requested
    COMPILING = 'compiling'  # plain Python is used until they are there
    READY = 'ready'
    FAILED = 'failed'  # plain Python stays in use until prepare(wait=True) succeeds


@dataclass(frozen=True)
class KernelState:
    """Which kernels are in use, since when and why.

    seconds: from the first request for compiled kernels until they were in use, or until now. compiled:
    whether they had to be compiled, not only loaded. reason: what failed.
    """

    stage: Stage
    seconds: float = 0.0
    compiled: bool = False
    reason: str = ''

    def __str__(self) -> str:
        if self.stage is Stage.READY:
            return 'solving is fast now: ' + (
                'fast kernels are compiled' if self.compiled else 'fast kernels are loaded'
            )
        if self.stage is Stage.COMPILING:
            return f'compiling fast kernels, {self.seconds:.0f} s so far; goals take longer meanwhile'
        if self.stage is Stage.FAILED:
            return f'goals take longer, because there are no fast kernels: {self.reason}'
        return 'plain kernels'


# The file


@cache
def digest() -> str:
    """Return a hash of all sources of the kernels, and of what translates them."""
    found = sha256()
    for path in sorted(path for path in HERE.rglob('*') if path.suffix in ('.py', '.h')):
        found.update(path.name.encode() + b'\0' + path.read_bytes() + b'\0')
    return found.hexdigest()[:DIGITS]


def file_name(machine: str = platform.machine()) -> str:
    """Return the name of the file for these sources and a machine, this one if none is given."""
    return f'{MODULE}-{digest()}-{sys.platform}-{machine}.so'


def obstacle() -> str:
    """Return why this Python cannot load compiled kernels, '' if it can."""
    chosen = os.environ.get(FOLDER)
    if chosen == PLAIN:
        return f'{FOLDER} is {PLAIN}'
    if chosen and cache_folder() != Path(os.path.realpath(Path(chosen).expanduser())):
        return f'{FOLDER} must name a folder to which this user and no other can write, got {escaped(chosen)}'
    if sys.implementation.name != 'cpython':
        return f'{sys.implementation.name} is not CPython'
    if sysconfig.get_config_var('Py_GIL_DISABLED') or hasattr(sys, 'getobjects'):
        return 'this build of Python keeps objects in another way'
    return ''


def is_private(path: Path) -> bool:
    """Whether no other user can change a file or folder: what it holds is executed.

    The group may write to what belongs to the user's own group, which is how many systems set up files.
    """
    found = path.stat()
    others = stat.S_IWOTH if found.st_gid == os.getgid() else stat.S_IWOTH | stat.S_IWGRP
    return found.st_uid in (0, os.getuid()) and not found.st_mode & others


def _candidates() -> Iterator[Path]:
    """Return the folders for compiled kernels, the preferred one first."""
    if (chosen := os.environ.get(FOLDER)) and chosen != PLAIN:
        yield Path(os.path.realpath(Path(chosen).expanduser()))
        return
    yield HERE / '__pycache__'
    home = os.path.expanduser('~')  # noqa: PTH111 - Path.home() raises where there is none
    yield Path(os.environ.get('XDG_CACHE_HOME') or Path(home, '.cache'), 'ik_node')
    yield Path(tempfile.gettempdir(), f'ik_node-{os.getuid()}')


@cache
def cache_folder() -> Path:
    """Return the folder into which kernels are compiled: one that this user, and no other, can write to."""
    for folder in _candidates():
        with suppress(OSError):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if is_private(folder) and os.access(folder, os.W_OK) and not folder.is_symlink():
                return folder
    return Path(tempfile.mkdtemp(prefix='ik_node-'))


def is_usable(path: Path) -> bool:
    """Whether there is such a file, and no other user can change or replace it."""
    with suppress(OSError):
        return is_private(path) and is_private(path.parent)
    return False


def found() -> list[Path]:
    """Return the files with the compiled kernels, the preferred one first.

    They are in the package, from a wheel; beside it, where another user may have compiled them; and in the
    folder of this user. If IK_NODE_KERNELS names a folder, only what is in there counts.
    """
    folders = [cache_folder()] if os.environ.get(FOLDER) else [HERE, HERE / '__pycache__', cache_folder()]
    return list(filter(is_usable, dict.fromkeys(folder / file_name() for folder in folders)))


def find() -> Path | None:
    """Return the file with the compiled kernels, if there is one."""
    return next(iter(found()), None)


def lock_file(folder: Path) -> Path:
    """Return the file that a process locks while it compiles."""
    return folder / f'{MODULE}.lock'


def log_file(folder: Path) -> Path:
    """Return the file with what the process in the background printed."""
    return folder / f'{MODULE}.log'


def remove_old(folder: Path) -> None:
    """Remove kernels of other versions that nobody has used for long."""
    for path in folder.glob(f'{MODULE}-*'):
        with suppress(OSError):
            if time.time() - max(path.stat().st_atime, path.stat().st_mtime) > UNUSED:
                path.unlink()
    for path in folder.glob('.kernels-*'):  # of a process that was killed
        with suppress(OSError):
            if time.time() - path.stat().st_mtime > UNUSED:
                shutil.rmtree(path)


def load_module(name: str, path: Path) -> ModuleType:
    """Load a module of C from a file of any name. Raises ImportError."""
    loader = ExtensionFileLoader(name, str(path))
    spec = spec_from_loader(name, loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module


def sign(path: Path) -> None:
    """Append a digest to a file, which the loader of the system ignores."""
    content = path.read_bytes()
    path.write_bytes(content + sha256(content).digest())


def load(path: Path) -> ModuleType:
    """Load compiled kernels.

    Raises ImportError if the file is damaged, as by a power cut: the loader of the system would end the process.
    Or if the kernels do not read arrays as this NumPy keeps them.
    """
    content = path.read_bytes()
    if sha256(content[:-DIGEST]).digest() != content[-DIGEST:]:
        raise ImportError(f'{path} is damaged')
    module = load_module(MODULE, path)
    # The module reads the memory of arrays itself (emit/module.h): try it with rows that are apart.
    frames, goal = np.zeros((5, 8))[:, 2:5], np.array([1.0, 2.0, 3.0, *[np.nan] * 6])
    frames[2] = 4.0, 6.0, 3.0
    if module.goal_errors(np.zeros((1, 10)), frames, goal) != (5.0, 0.0):
        raise ImportError(f'arrays of NumPy {np.__version__} are not read correctly by {path}')
    return module


# In place of the plain ones


class _Loader:
    """How far the compiled kernels are. changed: guards the fields, and tells of another stage."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.stage = Stage.PLAIN
        self.since = self.seconds = 0.0
        self.compiled = False
        self.reason = ''
        self.thread: threading.Thread | None = None

    def prepare(self, again: bool) -> None:
        """Load the kernels, or have them compiled; again: also after a failure."""
        with self.changed:
            waiting = self.thread is not None and self.thread.is_alive()  # not in a process that was forked
            if self.stage is Stage.READY or waiting or (self.stage is Stage.FAILED and not again):
                return
            self.since = time.monotonic()
            if reason := obstacle():
                self._end(Stage.FAILED, reason)
                return
            for path in found():
                if not self._take_over(path):
                    return
                if path.parent == cache_folder():
                    path.unlink(missing_ok=True)  # damaged, as after a power cut: compiled anew
            self.stage, self.compiled = Stage.COMPILING, True
            self.thread = threading.Thread(target=self._compile, name='ik_node kernels', daemon=True)
            self.thread.start()

    def wait(self) -> None:
        """Wait until the compiled kernels are in use, or have failed."""
        with self.changed:
            while self.stage is Stage.COMPILING and self.thread is not None and self.thread.is_alive():
                self.changed.wait(INTERVAL)

    def state(self) -> KernelState:
        seconds = time.monotonic() - self.since if self.stage is Stage.COMPILING else self.seconds
        return KernelState(self.stage, seconds, self.compiled, self.reason)

    def _take_over(self, path: Path) -> str:
        """Use compiled kernels from the next call on; return why they cannot be loaded, '' if they can."""
        try:
            module = load(path)
        except (ImportError, OSError, AttributeError, TypeError) as error:
            return escaped(str(error))
        package = sys.modules['ik_node.kernels']
        for name in package.KERNELS:
            setattr(package, name, getattr(module, name))
        self._end(Stage.READY)
        return ''

    def _end(self, stage: Stage, reason: str = '') -> None:
        with self.changed:
            self.seconds = time.monotonic() - self.since
            self.stage, self.reason = stage, reason
            self.changed.notify_all()

    def _compile(self) -> None:
        """Have another process compile the kernels, or wait for one that does, and use them."""
        folder = cache_folder()
        path = folder / file_name()
        try:
            while not is_usable(path):
                code = _run_builder(folder)
                if code is None:  # another one is at work
                    time.sleep(INTERVAL)
                elif code or not is_usable(path):
                    self._end(Stage.FAILED, _last_line(folder, code))
                    return
            with self.changed:
                if reason := self._take_over(path):
                    self._end(Stage.FAILED, reason)
        except Exception as error:  # any error: the plain kernels stay in use
            self._end(Stage.FAILED, f'{type(error).__name__}: {escaped(str(error))}')


def _run_builder(folder: Path) -> int | None:
    """Compile in a process of low priority and return its exit code; None if another one compiles.

    The process inherits the lock, which is released when it ends in any way. It has its own session, so
    Ctrl-C does not reach it, and outlives this program: the next one finds what it has made.
    """
    with lock_file(folder).open('w') as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return None
        path = os.pathsep.join(filter(None, (str(HERE.parents[1]), os.environ.get('PYTHONPATH'))))
        with log_file(folder).open('wb') as log:
            command = [sys.executable, '-m', 'ik_node.kernels.build', '--locked']
            process = subprocess.Popen(
                command,
                env={**os.environ, 'PYTHONPATH': path, FOLDER: str(folder)},
                cwd=folder,  # python -m looks for modules there first: nobody else can write to it
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                pass_fds=(lock.fileno(),),
                start_new_session=True,
            )
    return process.wait()


def _last_line(folder: Path, code: int) -> str:
    """Return why the process that compiles has ended."""
    lines: list[str] = []
    with suppress(OSError):
        lines = log_file(folder).read_text(errors='replace').split('\n')
    last = next((line.strip() for line in reversed(lines) if line.strip()), f'exit code {code}, no output')
    return f'{escaped(last)} (see {log_file(folder)})'


_loader = _Loader()


def _after_fork() -> None:
    """Give a child of os.fork a lock that no thread of its parent holds."""
    _loader.changed = threading.Condition()


os.register_at_fork(after_in_child=_after_fork)


def prepare(wait: bool = False) -> KernelState:
    """Request the compiled kernels: if they are there, they are in use when this returns.

    wait: return only when they are in use, or have failed; after a failure only this tries again.
    """
    _loader.prepare(again=wait)
    if wait:
        _loader.wait()
    return state()


def state() -> KernelState:
    """Return which kernels are in use. Cheap: poll it in every cycle and report a change of stage."""
    return _loader.state()


def ready() -> bool:
    """Whether the compiled kernels are in use: a descent then takes microseconds, not milliseconds."""
    return _loader.stage is Stage.READY
