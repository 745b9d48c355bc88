# SPDX-License-Identifier: Apache-2.0
"""What a node leaves behind when it ends, or takes from the process that it runs in."""

from __future__ import annotations

import gc
import threading
from types import SimpleNamespace

import pytest
from node_harness import running
from small_arm import arm_urdf

from ik_node.kernels import Stage
from ik_node.ros.moveit.services import MoveItServices
from ik_node.ros.node.garbage import Garbage


def test_the_thread_that_answers_moveit_ends_with_its_node_and_the_collector_is_left_alone():
    gc.enable()  # conftest has disabled it
    frozen = gc.get_freeze_count()
    with running(arm_urdf()) as client:
        worker = client.served._moveit._worker
        worker.submit(lambda: None).result()
        (thread,) = worker._threads
        assert gc.isenabled()
        assert gc.get_freeze_count() <= frozen
        client.served.close()
        thread.join(10.0)
        assert not thread.is_alive()


@pytest.fixture
def services():
    """The services of a node that only has names, with a thread that answers."""
    context = SimpleNamespace(on_shutdown=lambda _: None)
    node = SimpleNamespace(
        context=context,
        executor=None,
        get_fully_qualified_name=lambda: '/ik_node',
        get_logger=lambda: SimpleNamespace(debug=lambda _: None, error=lambda *_, **__: None),
        create_service=lambda *_, **__: None,
    )
    services = MoveItServices(node, [], dict, None)
    yield services
    services.close()


def ask(services):
    response = SimpleNamespace(error_code=SimpleNamespace(val=0, message='', source=''))
    return services._served(lambda *_: 'solved')(SimpleNamespace(), response), response


def test_a_request_that_is_dropped_while_it_waits_does_not_count_any_more(services):
    busy = threading.Event()
    services._worker.submit(busy.wait, 10.0)
    query, _ = ask(services)
    query.send(None)  # it waits for the thread
    assert services._waiting == 1
    query.close()
    assert services._waiting == 0
    busy.set()


def test_a_request_after_the_end_is_answered(services):
    services.close()
    query, response = ask(services)
    with pytest.raises(StopIteration):
        query.send(None)
    assert response.error_code.message == 'the node is ending'
    assert services._waiting == 0


def test_garbage_is_collected_again_once_kernels_are_loaded():
    garbage = Garbage()
    try:
        garbage.on_stage(Stage.COMPILING)
        assert not gc.isenabled()
        garbage.on_stage(Stage.READY)
        assert gc.isenabled()
        assert gc.get_freeze_count() > 0
    finally:
        gc.enable()
        gc.unfreeze()
