"""A real Dask scheduler with real workers, of which some are killed, stopped or replaced."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from slow_work import Slowly
from waiting import wait_for

pytest.importorskip('distributed')

from ik_node import InputError
from ik_node.batch.dask_workers import DaskWorkers

TIMEOUT = 120.0  # [s]
CHUNKS = [(f'chunk{k}', bytes([k])) for k in range(40)]


@pytest.fixture
def cluster(tmp_path):
    with socket.socket() as free:
        free.bind(('127.0.0.1', 0))
        address = f'tcp://127.0.0.1:{free.getsockname()[1]}'
    begun = []

    def start(*arguments: str) -> subprocess.Popen[bytes]:
        test = os.pathsep.join([str(Path(__file__).parent), str(Path(__file__).parents[2])])
        begun.append(
            subprocess.Popen(
                [sys.executable, '-m', 'distributed.cli.dask_' + arguments[0], *arguments[1:]],
                env=os.environ | {'PYTHONPATH': test, 'DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL': '3s'},
                cwd=tmp_path,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        )
        return begun[-1]

    def scheduler() -> subprocess.Popen[bytes]:
        host, port = address.removeprefix('tcp://').split(':')
        return start('scheduler', '--host', host, '--port', port, '--no-dashboard')

    def worker() -> subprocess.Popen[bytes]:
        return start(
            'worker', address, '--nthreads', '1', '--no-nanny', '--no-dashboard', '--host', '127.0.0.1'
        )

    yield address, scheduler, worker
    for process in begun:
        os.killpg(process.pid, signal.SIGCONT) if process.poll() is None else None
        process.kill()
        process.wait()


@pytest.mark.slow
@pytest.mark.parametrize('what', ['nothing', 'killed', 'stopped', 'scheduler'])
def test_every_chunk_has_its_result_whatever_happens(cluster, what):
    address, scheduler, worker = cluster
    first, workers = scheduler(), [worker(), worker()]
    wait_for(lambda: connects(address), 'the scheduler', TIMEOUT)
    with DaskWorkers(Slowly(), address) as mapped:
        wait_for(lambda: len(mapped._client.nthreads()) == 2, 'the workers', TIMEOUT)
        found = {}
        for name, result in mapped.results(iter(CHUNKS)):
            found[name] = result
            if len(found) == 5:
                if what == 'killed':
                    workers[0].kill()
                elif what == 'stopped':
                    os.kill(workers[0].pid, signal.SIGSTOP)
                elif what == 'scheduler':
                    first.kill()
                    first.wait()
                    scheduler()
                    worker()
    assert found == {name: data * 2 for name, data in CHUNKS}


def connects(address: str) -> bool:
    host, port = address.removeprefix('tcp://').split(':')
    with socket.socket() as probe:
        return probe.connect_ex((host, int(port))) == 0


def test_without_a_scheduler_it_says_so(monkeypatch):
    monkeypatch.setattr('ik_node.batch.dask_workers.CONNECTING', 0.5)
    with socket.socket() as free:
        free.bind(('127.0.0.1', 0))
        address = f'tcp://127.0.0.1:{free.getsockname()[1]}'
    with pytest.raises(InputError, match=f'no Dask scheduler at {address}'):
        DaskWorkers(Slowly(), address)
