# SPDX-License-Identifier: Apache-2.0
"""Work in chunks: tasks that other processes can load, and worker processes on this computer."""

from __future__ import annotations

import contextlib
import hashlib
import multiprocessing
import os
import pickle
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import Field, fields
from functools import cache, lru_cache, partial
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Protocol

from ik_node.errors import IkError
from ik_node.solver.solver import IkSolver

SIZE = 16  # [bytes]
PACKAGE = Path(__file__).resolve().parents[1]
ARRAYS = ('joints', 'tool', 'limits', 'period', 'velocity', 'tool_axis', 'tool_point', 'tool_lateral')
WORDS = ('name', 'base_link', 'tip_link', 'joint_names')  # they are in names of columns and in reasons


class Task(Protocol):
    """What is done with each chunk: a dataclass of all that the result depends on besides the chunk.

    The repr of each field but the solver is the same in every process.
    """

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    @property
    def solver(self) -> IkSolver: ...

    def answer(self, chunk: bytes) -> bytes:
        """Return the result of a chunk, both in Arrow's IPC format."""
        ...


def work_of(task: Task) -> Callable[[bytes], bytes]:
    """Return the function that has a task answer chunks, for workers: each reads the task once."""
    return partial(_answer_of_pickled, pickle.dumps(task), code_digest())


def _answer_of_pickled(pickled: bytes, code: str, chunk: bytes) -> bytes:
    return _task(pickled, code).answer(chunk)


@lru_cache(maxsize=4)
def _task(pickled: bytes, code: str) -> Task:
    check_code(code)
    task: Task = pickle.loads(pickled)
    return task


def task_key(task: Task) -> bytes:
    """Return a digest of the code, the arm, the solver's options and the other fields of a task.

    A pickle would not do: it also has what an arm has computed so far.
    """
    build, (arm,) = task.solver.__reduce__()
    options = [getattr(task, field.name) for field in fields(task) if field.name != 'solver']
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


AHEAD = 2  # chunks that each worker has or is about to get
TRIES = 3  # after which a chunk that ends its worker each time is given up

Work = Callable[[bytes], bytes]


class LostError(IkError):
    """Workers ended again and again."""


class Workers(Protocol):
    """Where chunks are worked on. Chunks are independent; the same one may be worked on twice."""

    def results(self, chunks: Iterator[tuple[str, bytes]]) -> Iterator[tuple[str, bytes]]:
        """Return the results by the chunks' names, in any order; few chunks are held at a time."""
        ...

    def __enter__(self) -> Workers: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class Processes:
    """Worker processes, each with a pool of its own: one that dies costs what it had, and is replaced."""

    def __init__(self, work: Work, count: int) -> None:
        self._work = work
        self._pools = [self._new() for _ in range(count)]
        with _starting():
            self._memory = [SharedMemory() for _ in range(count * AHEAD)]

    def _new(self) -> ProcessPoolExecutor:
        with _starting():
            # spawn: a fork of a process with threads may hang.
            return ProcessPoolExecutor(1, multiprocessing.get_context('spawn'), _begin)

    def results(self, chunks: Iterator[tuple[str, bytes]]) -> Iterator[tuple[str, bytes]]:
        """Return the results by the chunks' names, in any order. Raises LostError."""
        again: deque[tuple[str, bytes]] = deque()
        tries: dict[str, int] = {}
        free = deque(range(len(self._memory)))
        given: dict[Future[int], tuple[int, str, bytes]] = {}
        while True:
            while free and (chunk := again.popleft() if again else next(chunks, None)) is not None:
                place = free.popleft()
                given[self._submit(place, chunk[1])] = (place, *chunk)
            if not given:
                return
            done, _ = wait(given, return_when=FIRST_COMPLETED)
            for future in done:
                place, name, data = given.pop(future)
                try:
                    result = self._memory[place].read(future.result())
                except BrokenProcessPool:
                    tries[name] = tries.get(name, 0) + 1
                    if tries[name] > TRIES * AHEAD:
                        raise LostError(
                            f'workers ended {tries[name]} times on the same chunk: too little memory?'
                        ) from None
                    again.append((name, data))
                    free.append(place)
                else:
                    free.append(place)
                    yield name, result

    def _submit(self, place: int, data: bytes) -> Future[int]:
        worker, memory = place % len(self._pools), self._memory[place]
        memory.write(data)
        given = self._work, memory.path, len(data)
        with _starting():
            try:
                return self._pools[worker].submit(_answer, *given)
            except BrokenProcessPool:
                self._pools[worker].shutdown(wait=False, cancel_futures=True)
                self._pools[worker] = self._new()
                return self._pools[worker].submit(_answer, *given)

    def __enter__(self) -> Processes:
        return self

    def __exit__(self, *_: object) -> None:
        """End the workers at once, whatever they do."""
        for pool in self._pools:
            for process in list((pool._processes or {}).values()):
                process.kill()
            pool.shutdown(wait=True, cancel_futures=True)
        for memory in self._memory:
            memory.close()


class SharedMemory:
    """Memory through which a chunk goes to a worker, and its result back.

    A pipe costs a twentieth of solving the goals: it moves a chunk in small pieces. This memory is a file
    without a name, so that nothing is left of it, whatever ends the processes.
    """

    def __init__(self) -> None:
        self._file = os.memfd_create('chunk')
        self.path = f'/proc/{os.getpid()}/fd/{self._file}'

    def write(self, data: bytes) -> None:
        """Put a chunk there. Raises OSError."""
        _put(self._file, data)

    def read(self, size: int) -> bytes:
        """Return the result, of so many bytes."""
        return os.pread(self._file, size, 0)

    def close(self) -> None:
        """Free the memory."""
        os.close(self._file)


def _answer(work: Work, path: str, size: int) -> int:
    """Work on the chunk of so many bytes in shared memory; put the result there and return its size."""
    with Path(path).open('r+b', buffering=0) as memory:
        result = work(memory.read(size))
        _put(memory.fileno(), result)
        return len(result)


def _put(file: int, data: bytes) -> None:
    """Write all of data to the start of a file; one call may write less."""
    done = 0
    while done < len(data):
        done += os.pwrite(file, memoryview(data)[done:], done)


@contextlib.contextmanager
def _starting() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise LostError(f'cannot start a worker process: {error.strerror or error}') from None


def _begin() -> None:
    """Leave Ctrl-C to the process that started this one, and end with it, even if it is killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(multiprocessing.parent_process(),), daemon=True).start()


def _end_with(parent: multiprocessing.process.BaseProcess) -> None:
    parent.join()
    os._exit(1)
