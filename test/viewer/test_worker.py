# SPDX-License-Identifier: Apache-2.0
"""The thread behind lists and curves: a failure is an answer too."""

from __future__ import annotations

import threading

import pytest
from waiting import wait_for

from ik_node.viewer.worker import Worker


def failing() -> str:
    raise ZeroDivisionError


def test_a_computation_that_fails_is_told_and_the_next_one_runs(capsys: pytest.CaptureFixture[str]) -> None:
    worker: Worker[str] = Worker('tested', 'failed')
    worker.submit(failing)
    assert wait_for(worker.take, 'the failure', 60.0) == 'failed'
    assert 'ZeroDivisionError' in capsys.readouterr().err
    worker.submit(lambda: 'done')
    assert wait_for(worker.take, 'the result', 60.0) == 'done'
    assert worker.take() is None
    worker.close()


def test_what_runs_while_it_is_dropped_has_no_result() -> None:
    worker: Worker[str] = Worker('tested')
    begun, go = threading.Event(), threading.Event()

    def slow() -> str:
        begun.set()
        go.wait(60.0)
        return 'old'

    worker.submit(slow)
    assert begun.wait(60.0)
    worker.drop()
    worker.submit(lambda: 'new')
    go.set()
    assert wait_for(worker.take, 'the result', 60.0) == 'new'
    worker.close()
