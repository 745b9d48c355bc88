# SPDX-License-Identifier: Apache-2.0
"""Replace plain Python kernels by compiled ones at run time.

Compiled kernels in the cache are loaded at once. Otherwise one low-priority process for each machine and
version fills the cache, and a thread here takes over every kernel as soon as it is compiled.
"""

from __future__ import annotations

import atexit
import enum
import fcntl
import os
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

from ik_node.kernels.runtime import cache
from ik_node.kernels.runtime.numba_import import drop_intermediate_code, load_numba
from ik_node.kernels.runtime.signatures import KERNELS, SERVING, kinds

NATIVE = 'ik_node.kernels.native'  # the name under which the sources are loaded again to be compiled
BUILD = 'ik_node.kernels.runtime.build'  # the program that fills the cache
INTERVAL = 0.1  # s, between two checks for compiled kernels
STALLED = 600.0  # s without another compiled kernel after which there will be none
SHUTDOWN_TIMEOUT = 2.0  # s, for which the end of the program waits for the thread


class Stage(enum.Enum):
    """Which kernels are in use."""

    PLAIN = 'plain'  # compiled kernels have not been requested
    COMPILING = 'compiling'  # plain Python is used until each kernel is compiled
    READY = 'ready'  # all requested kernels are compiled
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
            return f'fast kernels {"ready" if self.compiled else "loaded"} after {self.seconds:.1f} s'
        if self.stage is Stage.COMPILING:
            return f'compiling fast kernels for {self.seconds:.0f} s; slower ones are used meanwhile'
        if self.stage is Stage.FAILED:
            return f'fast kernels are not available, slower ones are used: {self.reason}'
        return 'plain kernels'


class _Loader:
    """The requested kernels and how far they are. changed: guards the fields, and tells of another stage."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.wanted: list[str] = []
        self.loaded: set[str] = set()
        self.stage = Stage.PLAIN
        self.since = self.seconds = 0.0
        self.compiled = False
        self.reason = ''
        self.thread: threading.Thread | None = None  # that takes over what is wanted, until it decides to end
        self.stopping = threading.Event()

    def prepare(self, names: Sequence[str], again: bool) -> None:
        """Request kernels; again: also after a failure."""
        with self.changed:
            if self.stage is Stage.FAILED and not again:
                return
            new = [name for name in dict.fromkeys(names) if name not in {*self.loaded, *self.wanted}]
            if not self.at_work:  # a thread that failed, or that was not forked with the process, left some
                new, self.wanted = self.wanted + new, []
            if not new:
                return
            if self.stage is not Stage.COMPILING:
                self.since = time.monotonic()
            if reason := obstacle():
                self.wanted = new
                return self._end(Stage.FAILED, reason)
            if all(map(cache.is_there, new)):
                load_numba(lambda: True)
                for name in new:
                    self.take_over(name, native(name))
                if not self.wanted:
                    self._end(Stage.READY)
                return
            self.wanted += new
            self.stage, self.compiled = Stage.COMPILING, True
            if not self.at_work:
                self.thread = threading.Thread(target=self._run, name='ik_node kernels', daemon=True)
                self.thread.start()
                atexit.register(self._stop, self.thread)

    @property
    def at_work(self) -> bool:
        """Whether the thread will take over whatever is wanted."""
        return self.thread is not None and self.thread.is_alive()

    def wait(self) -> None:
        """Wait until the requested kernels are in use, or have failed."""
        with self.changed:
            while self.stage is Stage.COMPILING and self.at_work:
                self.changed.wait(INTERVAL)

    def state(self) -> KernelState:
        seconds = time.monotonic() - self.since if self.stage is Stage.COMPILING else self.seconds
        return KernelState(self.stage, seconds, self.compiled, self.reason)

    def take_over(self, name: str, kernel: Any) -> None:
        """Use a compiled kernel from the next call on."""
        drop_intermediate_code(kernel)
        setattr(sys.modules['ik_node.kernels'], name, kernel)
        self.loaded.add(name)

    def _end(self, stage: Stage, reason: str = '') -> None:
        with self.changed:
            self.seconds = time.monotonic() - self.since
            self.reason = reason
            self.stage = stage
            if self.thread is threading.current_thread():
                self.thread = None  # what is requested from now on needs another one
            self.changed.notify_all()

    def _stop(self, thread: threading.Thread) -> None:
        self.stopping.set()
        thread.join(SHUTDOWN_TIMEOUT)

    def _run(self) -> None:
        reason = 'the program is ending'
        try:
            self._fill_and_take_over()
        except Exception as error:  # any error: the plain kernels stay in use
            reason = f'{type(error).__name__}: {error}'
        finally:
            if self.thread is threading.current_thread():  # it has not ended as it should
                self._end(Stage.FAILED, reason)

    def _goes_on(self) -> bool:
        """Whether the program is not ending; yields to other threads."""
        return not self.stopping.wait(0.01)

    def _fill_and_take_over(self) -> None:
        builder: subprocess.Popen[bytes] | None = None
        built: list[str] = []
        advanced, before = time.monotonic(), 0  # when another kernel was found compiled, and how many are
        while not self.stopping.is_set():
            while self.wanted and self._goes_on() and cache.is_there(name := self.wanted[0]):
                load_numba(self._goes_on)
                if self._goes_on():
                    kernel = native(name)
                    with self.changed:
                        self.take_over(name, kernel)
                        self.wanted.remove(name)
            with self.changed:
                if not self.wanted:
                    return self._end(Stage.READY)
                wanted = self.wanted.copy()
            now = len(self.loaded) + sum(map(cache.is_there, wanted))
            if now != before:
                advanced, before = time.monotonic(), now
            if time.monotonic() - advanced > STALLED:
                reason = f'no kernel was compiled for {STALLED:.0f} s (see {_log_file()})'
                return self._end(Stage.FAILED, reason)
            if builder is None:
                builder, built = _builder(wanted), wanted
            elif builder.poll() is not None:
                if builder.returncode or (wanted[0] in built and not cache.is_there(wanted[0])):
                    return self._end(Stage.FAILED, _last_line(builder.returncode))
                builder = None
            self.stopping.wait(INTERVAL)


def prepare(names: Sequence[str] = tuple(SERVING), wait: bool = False) -> KernelState:
    """Request compiled kernels: those in the cache are loaded before this returns, the others later.

    wait: return only when they are in use, or have failed; after a failure only this tries again.
    """
    _loader.prepare(names, again=wait)
    if wait:
        _loader.wait()
    return state()


def state() -> KernelState:
    """Return which kernels are in use. Cheap: poll it in every cycle and report a change of stage."""
    return _loader.state()


def ready() -> bool:
    """Whether the compiled kernels are in use: a descent then takes microseconds, not milliseconds."""
    return _loader.stage is Stage.READY


def obstacle() -> str:
    """Return why compiling is impossible, '' if it is possible."""
    if os.environ.get('NUMBA_DISABLE_JIT', '0') != '0':
        return 'NUMBA_DISABLE_JIT is set'
    return '' if find_spec('numba') else 'numba is not installed'


def native(name: str) -> Any:
    """Return a kernel compiled for the types in signatures.py, from the cache if it is there."""
    if NATIVE not in sys.modules:
        package = ModuleType(NATIVE)
        package.__path__ = [str(Path(__file__).parents[1])]
        sys.modules.setdefault(NATIVE, package)
    kernel = getattr(import_module(f'{NATIVE}.{KERNELS[name]}'), name)
    kernel.compile(tuple(map(_numba_type, kinds(kernel.py_func))))
    kernel.disable_compile()
    return kernel


def _numba_type(kind: str) -> Any:
    from numba import types

    letter, dimensions = kind[0], int(kind[1])
    scalars: dict[str, Any] = {'i': types.int64, 'u': types.uint64, 'b': types.boolean}
    scalar = scalars.get(letter, types.float64)
    layout: Any = 'A' if letter == 'a' else 'C'
    return types.Array(scalar, dimensions, layout, readonly=letter == 'r') if dimensions else scalar


def _log_file() -> Path:
    return cache.root() / 'compiling.log'


def _builder(names: Sequence[str]) -> subprocess.Popen[bytes] | None:
    """Start the process that fills the cache; None if another one is running.

    It inherits the lock, which is released when it ends in any way. It has its own session, so that Ctrl-C
    does not reach it, and ends with this process; the next start continues with what is not compiled yet.
    """
    with cache.lock_file().open('w') as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return None
        above = str(Path(__file__).parents[3])
        path = os.pathsep.join(filter(None, (above, os.environ.get('PYTHONPATH'))))
        with _log_file().open('wb') as log:
            return subprocess.Popen(
                [sys.executable, '-m', BUILD, *names, '--locked-by', str(lock.fileno()), str(os.getpid())],
                env={**os.environ, 'PYTHONPATH': path, 'NUMBA_CACHE_DIR': str(cache.root())},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                pass_fds=(lock.fileno(),),
                start_new_session=True,
            )


def _last_line(code: int) -> str:
    """Return why the compiling process has ended."""
    try:
        lines = _log_file().read_text(errors='replace').split('\n')
    except OSError:
        lines = []
    last = next((line for line in reversed(lines) if line.strip()), 'no output')
    return f'the compiling process ended with exit code {code}: {last.strip()} (see {_log_file()})'


_loader = _Loader()
