# SPDX-License-Identifier: Apache-2.0
"""Work in chunks on a Dask cluster."""

from __future__ import annotations

import contextlib
import math
import queue
import sys
import time
from collections.abc import Iterator
from concurrent.futures import CancelledError
from typing import Any

import distributed
from distributed.client import FutureCancelledError
from distributed.scheduler import KilledWorker

from ik_node.console import say
from ik_node.errors import InputError

from .workers import AHEAD, LostError, Work

PATIENCE = 60.0  # [s] that a scheduler may be away
CONNECTING = 10.0  # [s]
MAX_SENT = 1 << 30  # [bytes] of chunks that are given to the cluster: they are kept here until it is done
WARN_AFTER = 5.0  # [s] after which missing workers are noticed
COUNT_EVERY = 1.0  # [s] between looks at the number of cores: each asks the scheduler


class DaskWorkers:
    """The workers of the scheduler at an address; ik_node must be installed on each, in the same version."""

    def __init__(self, work: Work, address: str) -> None:
        self._work, self._address = work, address
        self._client: Any = self._connected(time.monotonic())
        self._done: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._futures: dict[str, Any] = {}  # futures by name: Dask forgets what nobody holds
        self._warned, self._cores, self._count_at = False, 1, -math.inf

    def _connected(self, until: float) -> Any:
        """Return a client. Raises InputError if there is no scheduler until then."""
        new: Any = distributed.Client
        while True:
            try:
                return new(self._address, timeout=CONNECTING, set_as_default=False)
            except (OSError, TimeoutError, ValueError) as error:
                if time.monotonic() >= until or isinstance(error, ValueError):
                    raise InputError(f'no Dask scheduler at {self._address}: {error}') from None
                time.sleep(1.0)

    def results(self, chunks: Iterator[tuple[str, bytes]]) -> Iterator[tuple[str, bytes]]:
        """Return the results by the chunks' names, in any order. Raises LostError, InputError."""
        waiting: dict[str, bytes] = {}
        size = 0
        while True:
            limit = AHEAD * self._count_cores()
            # An error of chunks itself is none of the cluster's: it is not caught here.
            while len(waiting) < limit and size < MAX_SENT and (chunk := next(chunks, None)) is not None:
                name, data = chunk
                waiting[name] = data
                size += len(data)
            if not waiting:
                return
            try:
                name, result = self._next(waiting)
            except (CancelledError, FutureCancelledError, OSError):  # the scheduler has gone, or is a new one
                self._reconnect()
                continue
            size -= len(waiting.pop(name))
            yield name, result

    def _next(self, waiting: dict[str, bytes]) -> tuple[str, bytes]:
        """Return the next result of waiting, chunks by name, once they are all given to the cluster."""
        for name, data in waiting.items():
            if name not in self._futures:
                self._futures[name] = self._client.submit(self._work, data, key=name, pure=False)
                self._futures[name].add_done_callback(self._done.put)
        while True:
            try:
                future: Any = self._done.get(timeout=WARN_AFTER)
            except queue.Empty:
                self._warn_without_workers()
                continue
            if future is self._futures.get(future.key):  # none of a client that was closed
                return self._result_of(future)

    def _result_of(self, future: Any) -> tuple[str, bytes]:
        error = future.exception() if future.status == 'error' else None
        if isinstance(error, KilledWorker):
            raise LostError(f'workers ended repeatedly on the same chunk: {error}')
        if isinstance(error, (ImportError, RuntimeError)):
            why = str(error).partition('.')[0]
            raise LostError(f'the workers of {self._address} need this version of ik_node: {why}')
        if isinstance(error, OSError):  # raised by result() it would look like a lost scheduler
            raise LostError(f'a worker of {self._address} failed: {error}')
        name, result = future.key, future.result()
        del self._futures[name]
        return name, result

    def _reconnect(self) -> None:
        self._client.close(timeout=1)
        self._futures, self._done = {}, queue.SimpleQueue()
        self._client = self._connected(time.monotonic() + PATIENCE)

    def _warn_without_workers(self) -> None:
        """Say once that there are no workers; they may come later."""
        if not self._warned and not self._client.nthreads():
            self._warned = True
            say(f'the scheduler at {self._address} has no workers; waiting for some', sys.stderr)

    def _count_cores(self) -> int:
        """Return the number of cores, at least one."""
        if time.monotonic() >= self._count_at:
            with contextlib.suppress(CancelledError, OSError):  # what is given shows a lost scheduler, too
                self._cores = max(1, sum(map(int, self._client.nthreads().values())))
            self._count_at = time.monotonic() + COUNT_EVERY
        return self._cores

    def __enter__(self) -> DaskWorkers:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close(timeout=1)
