# SPDX-License-Identifier: Apache-2.0
"""DaskWorkers: chunks mapped over the workers of a Dask cluster."""

from __future__ import annotations

import queue
import time
from collections.abc import Iterator
from concurrent.futures import CancelledError
from typing import Any

import distributed
from distributed.client import FutureCancelledError
from distributed.scheduler import KilledWorker

from ik_node.batch.workers import AHEAD, LostError, Work
from ik_node.errors import InputError

PATIENCE = 60.0  # [s] that a scheduler may be away
CONNECTING = 10.0  # [s]


class DaskWorkers:
    """The workers of the scheduler at an address; ik_node must be installed on each, in the same version."""

    def __init__(self, work: Work, address: str) -> None:
        self._work, self._address = work, address
        self._client: Any = self._connected(time.monotonic())

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
        while True:
            try:
                yield from self._round(chunks, waiting)
                return
            except (CancelledError, FutureCancelledError, OSError):  # the scheduler has gone, or is a new one
                self._client.close(timeout=1)
                self._client = self._connected(time.monotonic() + PATIENCE)

    def _round(
        self, chunks: Iterator[tuple[str, bytes]], waiting: dict[str, bytes]
    ) -> Iterator[tuple[str, bytes]]:
        """Return results until all is done; waiting: chunks without one, by name."""
        done: queue.SimpleQueue[Any] = queue.SimpleQueue()
        given = {}  # Dask forgets what nobody holds
        for name, data in waiting.items():
            given[name] = self._submit(name, data, done)
        while True:
            while len(waiting) < AHEAD * self._cores() and (chunk := next(chunks, None)) is not None:
                name, data = chunk
                waiting[name] = data
                given[name] = self._submit(name, data, done)
            if not waiting:
                return
            future = done.get()
            try:
                result = future.result()
            except KilledWorker as error:
                raise LostError(f'workers ended again and again at the same chunk: {error}') from None
            except (ImportError, RuntimeError) as error:
                why = str(error).partition('.')[0]
                raise LostError(
                    f'the workers of {self._address} need this version of ik_node: {why}'
                ) from None
            del waiting[future.key], given[future.key]
            yield future.key, result

    def _submit(self, name: str, data: bytes, done: queue.SimpleQueue[Any]) -> Any:
        future = self._client.submit(self._work, data, key=name, pure=False)
        future.add_done_callback(done.put)
        return future

    def _cores(self) -> int:
        return max(1, sum(map(int, self._client.nthreads().values())))

    def __enter__(self) -> DaskWorkers:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close(timeout=1)
