# SPDX-License-Identifier: Apache-2.0
"""A real Dask scheduler with real workers, of which some are killed, stopped or replaced."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from slow_work import Broken, Slowly
from waiting import wait_for

pytest.importorskip('distributed')

from ik_node import InputError
from ik_node.tools import dask_workers
from ik_node.tools.dask_workers import DaskWorkers
from ik_node.tools.workers import LostError

pytestmark = pytest.mark.slow

TIMEOUT = 120.0  # [s]
CHUNKS = [(f'chunk{k}', bytes([k])) for k in range(40)]


@pytest.fixture
def cluster(tmp_path):
    """The address of a scheduler, and functions that start it and a worker."""
    address, begun = free_address(), []
    host, port = address.removeprefix('tcp://').split(':')
    path = os.pathsep.join([str(Path(__file__).parent), str(Path(__file__).parents[2])])

    def start(*arguments: str) -> subprocess.Popen[bytes]:
        begun.append(
            subprocess.Popen(
                [sys.executable, '-m', 'distributed.cli.dask_' + arguments[0], *arguments[1:]],
                env=os.environ | {'PYTHONPATH': path, 'DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL': '3s'},
                cwd=tmp_path,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        )
        return begun[-1]

    few = '--nthreads', '1', '--no-nanny', '--no-dashboard', '--host', host
    yield (
        address,
        lambda: start('scheduler', '--host', host, '--port', port, '--no-dashboard'),
        lambda: start('worker', address, *few),
    )
    for process in begun:
        process.kill()
        process.wait()


def free_address() -> str:
    with socket.socket() as free:
        free.bind(('127.0.0.1', 0))
        return f'tcp://127.0.0.1:{free.getsockname()[1]}'


def test_every_chunk_has_its_result_whatever_is_killed(cluster):
    address, scheduler, worker = cluster
    first, workers = scheduler(), [worker(), worker()]
    wait_for(lambda: connects(address), 'the scheduler', TIMEOUT)
    with DaskWorkers(Slowly(), address) as mapped:
        wait_for(lambda: len(mapped._client.nthreads()) == 2, 'the workers', TIMEOUT)
        found = {}
        for name, result in mapped.results(iter(CHUNKS)):
            found[name] = result
            if len(found) == 5:
                workers[0].kill()
            elif len(found) == 20:
                first.kill()
                first.wait()
                scheduler()
                worker()
    assert found == {name: data * 2 for name, data in CHUNKS}


def test_few_chunks_are_held_and_their_errors_are_not_taken_for_the_cluster_s(cluster, monkeypatch, capsys):
    address, scheduler, worker = cluster
    monkeypatch.setattr(dask_workers, 'MAX_SENT', 300)
    monkeypatch.setattr(dask_workers, 'WARN_AFTER', 0.5)
    monkeypatch.setattr(dask_workers, 'COUNT_EVERY', 0.0)
    read = []

    def chunks():
        for k in range(10):
            read.append(k)
            yield f'big{k}', bytes(100)
        raise OSError('the disk of the goals')

    scheduler()
    wait_for(lambda: connects(address), 'the scheduler', TIMEOUT)
    with DaskWorkers(Slowly(), address) as mapped:
        results = mapped.results(chunks())
        found = threading.Thread(target=lambda: read.append(next(results)))
        found.start()
        said = lambda: capsys.readouterr().err  # noqa: E731
        wait_for(lambda: f'the scheduler at {address} has no workers' in said(), 'a line', TIMEOUT)
        for _ in range(2):
            worker()
        found.join(TIMEOUT)
        wait_for(lambda: len(mapped._client.nthreads()) == 2, 'the workers', TIMEOUT)
        for count in (2, 3, 4):
            next(results)
            assert len(read) - 1 <= count + 2  # three were held: two for each core would be four
        with pytest.raises(OSError, match='the disk of the goals'):
            list(results)
    with (
        DaskWorkers(Broken(), address) as mapped,
        pytest.raises(LostError, match=r'a worker of .* failed: no space on the worker'),
    ):
        list(mapped.results(iter(CHUNKS[:1])))


def connects(address: str) -> bool:
    host, port = address.removeprefix('tcp://').split(':')
    with socket.socket() as probe:
        return probe.connect_ex((host, int(port))) == 0


def test_without_a_scheduler_it_says_so(monkeypatch):
    monkeypatch.setattr('ik_node.tools.dask_workers.CONNECTING', 0.5)
    address = free_address()
    with pytest.raises(InputError, match=f'no Dask scheduler at {address}'):
        DaskWorkers(Slowly(), address)
