# SPDX-License-Identifier: Apache-2.0
"""Taking over compiled kernels at run time: threads that meet at the worst moment, and failures."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading

import pytest

from ik_node.kernels.runtime import takeover
from ik_node.kernels.runtime.takeover import Stage

LONG = 10.0  # [s] in which a thread ends that nothing holds up


class Builder:
    """A compiling process that has ended."""

    def __init__(self, code=0):
        self.returncode = code

    def poll(self):
        return self.returncode


@pytest.fixture
def compiled(monkeypatch):
    """A loader without kernels, whose compiling process compiles at once; the names of what is compiled."""
    compiled: set[str] = set()
    thread = takeover._loader.thread
    if thread is not None:  # it would take what these tests replace
        thread.join()

    def build(names):
        compiled.update(names)
        return Builder()

    monkeypatch.setattr(takeover.cache, 'is_there', compiled.__contains__)
    monkeypatch.setattr(takeover, '_builder', build)
    monkeypatch.setattr(takeover, 'load_numba', lambda _: None)
    monkeypatch.setattr(takeover, 'native', lambda name: name)
    monkeypatch.setattr(takeover, 'drop_intermediate_code', lambda _: None)
    monkeypatch.setattr(takeover, 'obstacle', lambda: '')
    monkeypatch.setattr(takeover, 'INTERVAL', 0.001)
    monkeypatch.setattr(takeover, '_loader', takeover._Loader())
    for name in 'abc':
        monkeypatch.setattr(takeover.sys.modules['ik_node.kernels'], name, 'plain', raising=False)
    return compiled


def within_reason(act):
    """Return what act returns, in a thread of its own: it must not hang."""
    found = []
    thread = threading.Thread(target=lambda: found.append(act()), daemon=True)
    thread.start()
    thread.join(LONG)
    assert found, 'it hangs'
    return found[0]


def test_a_request_while_the_thread_ends_is_not_forgotten(compiled, monkeypatch):
    """The thread has decided to end, and is kept from it while the next kernel is requested."""
    ending, go_on, run = threading.Event(), threading.Event(), takeover._Loader._run

    def runs(loader):
        run(loader)
        ending.set()
        assert go_on.wait(LONG)

    monkeypatch.setattr(takeover._Loader, '_run', runs)
    takeover.prepare(['a'])
    assert ending.wait(LONG)
    assert takeover.state().stage is Stage.READY
    takeover.prepare(['b'])
    go_on.set()
    assert within_reason(lambda: takeover.prepare(['b'], wait=True)).stage is Stage.READY
    assert compiled == {'a', 'b'}


@pytest.mark.usefixtures('compiled')
def test_requests_one_after_the_other_are_taken_over():
    found = [within_reason(lambda n=name: takeover.prepare([n], wait=True)).stage for name in 'abc']
    assert found == [Stage.READY] * 3


def test_a_failure_is_final_for_background_requests_and_tried_again_by_those_that_wait(compiled, monkeypatch):
    build = takeover._builder
    monkeypatch.setattr(takeover, '_builder', lambda _: Builder(1))
    assert within_reason(lambda: takeover.prepare(['a'], wait=True)).stage is Stage.FAILED
    monkeypatch.setattr(takeover, '_builder', build)
    assert takeover.prepare(['a', 'b']).stage is Stage.FAILED
    assert within_reason(lambda: takeover.prepare(['b'], wait=True)).stage is Stage.READY
    assert compiled == {'a', 'b'}
    assert takeover.state().reason == ''


@pytest.mark.usefixtures('compiled')
def test_an_error_in_the_thread_ends_the_waiting(monkeypatch):
    def fails(_):
        raise SystemExit('made up')

    monkeypatch.setattr(takeover, '_builder', fails)
    assert within_reason(lambda: takeover.prepare(['a'], wait=True)).stage is Stage.FAILED


@pytest.mark.usefixtures('compiled')
def test_a_compiler_that_never_ends_is_not_waited_for(monkeypatch):
    """Another process compiles, for ever."""
    monkeypatch.setattr(takeover, '_builder', lambda _: None)
    monkeypatch.setattr(takeover, 'STALLED', 0.0)
    found = within_reason(lambda: takeover.prepare(['a'], wait=True))
    assert found.stage is Stage.FAILED
    assert 'no kernel was compiled for' in found.reason


@pytest.mark.usefixtures('compiled')
def test_the_garbage_collector_is_left_alone(monkeypatch):
    enabled, frozen = [], gc.get_freeze_count()
    monkeypatch.setattr(takeover, 'native', lambda _: enabled.append(gc.isenabled()))
    within_reason(lambda: takeover.prepare(['a'], wait=True))
    assert enabled == [True]
    assert gc.get_freeze_count() <= frozen


@pytest.mark.slow
def test_nothing_is_compiled_for_a_program_that_has_ended():
    build = [sys.executable, '-m', 'ik_node.kernels.runtime.build', '--locked-by', '0', '1']  # not its parent
    done = subprocess.run(build, capture_output=True, text=True, check=True)
    assert done.stdout == ''
