# SPDX-License-Identifier: Apache-2.0
"""Processes: chunks mapped over worker processes of this machine."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from types import TracebackType
from typing import Protocol

from ik_node.errors import IkError

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

    def _new(self) -> ProcessPoolExecutor:
        # spawn: a fork of a process with threads may hang.
        return ProcessPoolExecutor(1, multiprocessing.get_context('spawn'), _begin)

    def results(self, chunks: Iterator[tuple[str, bytes]]) -> Iterator[tuple[str, bytes]]:
        """Return the results by the chunks' names, in any order. Raises LostError."""
        again: deque[tuple[str, bytes]] = deque()
        tries: dict[str, int] = {}
        free = deque(list(range(len(self._pools))) * AHEAD)
        given: dict[Future[bytes], tuple[int, str, bytes]] = {}
        while True:
            while free and (chunk := again.popleft() if again else next(chunks, None)) is not None:
                worker = free.popleft()
                given[self._submit(worker, chunk[1])] = (worker, *chunk)
            if not given:
                return
            done, _ = wait(given, return_when=FIRST_COMPLETED)
            for future in done:
                worker, name, data = given.pop(future)
                free.append(worker)
                try:
                    yield name, future.result()
                except BrokenProcessPool:
                    tries[name] = tries.get(name, 0) + 1
                    if tries[name] > TRIES * AHEAD:
                        raise LostError(
                            f'workers ended {tries[name]} times at the same chunk: too little memory?'
                        ) from None
                    again.append((name, data))

    def _submit(self, worker: int, data: bytes) -> Future[bytes]:
        try:
            return self._pools[worker].submit(self._work, data)
        except BrokenProcessPool:
            self._pools[worker].shutdown(wait=False, cancel_futures=True)
            self._pools[worker] = self._new()
            return self._pools[worker].submit(self._work, data)

    def __enter__(self) -> Processes:
        return self

    def __exit__(self, *_: object) -> None:
        """End the workers at once, whatever they do."""
        for pool in self._pools:
            for process in list((pool._processes or {}).values()):
                process.kill()
            pool.shutdown(wait=True, cancel_futures=True)


def _begin() -> None:
    """Leave Ctrl-C to the process that started this one, and end with it, even if it is killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(multiprocessing.parent_process(),), daemon=True).start()


def _end_with(parent: multiprocessing.process.BaseProcess) -> None:
    parent.join()
    os._exit(1)
