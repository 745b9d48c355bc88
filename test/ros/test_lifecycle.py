# SPDX-License-Identifier: Apache-2.0
"""The managed node, its states, and what it leaves behind when it or a thread of it ends."""

from __future__ import annotations

import gc
import threading
from types import SimpleNamespace

import numpy as np
import pytest
import rclpy
from interleaved import at_step
from lifecycle_msgs.msg import State, Transition
from lifecycle_msgs.srv import ChangeState, GetState
from node_harness import Client, running
from rclpy.lifecycle import LifecycleNode
from rclpy.parameter import Parameter
from small_arm import arm_urdf
from std_msgs.msg import String

from ik_node.kernels import Stage
from ik_node.ros.interfaces import RCLError, given_parameters, wrap_change_state
from ik_node.ros.moveit import MoveItServices
from ik_node.ros.node import GcPolicy, OnRest, SetpointLoop, in_step


def change(client: Client, transition: int) -> bool:
    """Ask for a transition; return whether it succeeded."""
    request = ChangeState.Request(transition=Transition(id=transition))
    return client._call(ChangeState, 'ik_node/change_state', request).success


def state(client: Client) -> int:
    return client._call(GetState, 'ik_node/get_state', GetState.Request()).current_state.id


@pytest.fixture
def managed():
    """A node that waits for its manager."""
    with running(None, ready=False, autostart=False) as client:
        client.wait_connected()
        yield client


@pytest.mark.slow
def test_a_manager_takes_it_through_its_states(managed):
    client = managed
    assert state(client) == State.PRIMARY_STATE_UNCONFIGURED
    assert change(client, Transition.TRANSITION_CONFIGURE)
    client.description.publish(String(data=arm_urdf()))
    assert not client.samples
    assert 'rejected' in client.answer('goal_joints', client.joints(yaw=0.5)).message
    assert change(client, Transition.TRANSITION_ACTIVATE)
    client.wait(lambda: client.samples, 'commands')
    assert state(client) == State.PRIMARY_STATE_ACTIVE
    client.answer('goal_joints', client.joints(yaw=1.5))
    client.wait(lambda: client.position('yaw') > 0.1, 'the motion')
    assert change(client, Transition.TRANSITION_DEACTIVATE)
    assert state(client) == State.PRIMARY_STATE_INACTIVE
    place = client.position('yaw')
    assert place < 1.4
    assert not any(client.samples[-1].velocity)  # it came to rest first
    count = len(client.samples)
    assert 'inactive' in client.answer('goal_joints', client.joints(yaw=0.0)).message
    assert len(client.samples) == count
    assert change(client, Transition.TRANSITION_ACTIVATE)
    client.wait(lambda: len(client.samples) > count, 'commands')
    assert client.position('yaw') == place
    assert change(client, Transition.TRANSITION_DEACTIVATE)
    assert change(client, Transition.TRANSITION_CLEANUP)
    assert state(client) == State.PRIMARY_STATE_UNCONFIGURED
    assert change(client, Transition.TRANSITION_UNCONFIGURED_SHUTDOWN)
    assert state(client) == State.PRIMARY_STATE_FINALIZED


def test_a_configuration_that_fails_leaves_it_unconfigured():
    with running(None, ready=False, autostart=False, urdf_file='/no/such/arm.urdf') as client:
        client.wait_connected()
        assert not change(client, Transition.TRANSITION_CONFIGURE)
        assert state(client) == State.PRIMARY_STATE_UNCONFIGURED


@pytest.mark.slow
def test_callbacks_run_while_it_comes_to_rest_and_a_second_request_waits():
    with running(arm_urdf()) as client:
        assert 'solved' in client.answer('goal_joints', client.joints(yaw=2.0)).message
        client.wait(lambda: client.position('yaw') > 0.1, 'the motion')
        changes = client.node.create_client(ChangeState, 'ik_node/change_state')
        client.wait(changes.service_is_ready, 'change_state')
        transition = Transition(id=Transition.TRANSITION_DEACTIVATE)
        first, second = (changes.call_async(ChangeState.Request(transition=transition)) for _ in range(2))
        client.wait_said('the node is deactivated')
        assert state(client) == State.PRIMARY_STATE_ACTIVE  # answered, though the arm does not rest yet
        assert not first.done()
        client.wait(second.done, 'both answers')
        assert first.result().success
        assert not second.result().success  # it was inactive by then
        assert state(client) == State.PRIMARY_STATE_INACTIVE
        assert not any(client.samples[-1].velocity)


@pytest.mark.slow
def test_it_ends_its_wait_though_the_arm_never_rests(monkeypatch):
    monkeypatch.setattr('ik_node.ros.node.BRAKING', 0.1)
    with running(arm_urdf()) as client:
        client.answer('goal_joints', client.joints(yaw=2.0))
        client.wait(lambda: client.position('yaw') > 0.1, 'the motion')
        monkeypatch.setattr(type(client.served), '_resting', False)
        assert change(client, Transition.TRANSITION_DEACTIVATE)
        assert state(client) == State.PRIMARY_STATE_INACTIVE


def test_an_arm_that_comes_to_rest_at_any_step_of_asking_is_told_of_once():
    for step in range(1, 1000):
        resting, told = [], []
        rest = OnRest(lambda resting=resting: bool(resting))

        def come_to_rest(rest=rest, resting=resting):
            resting.append(True)
            rest.look()

        within = at_step(step, come_to_rest, lambda rest=rest, told=told: rest.then(lambda: told.append(1)))
        if not within:
            break
        assert told == [1]
    assert step > 10


@pytest.mark.slow
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
    services = MoveItServices(node, [], None)
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
    garbage = GcPolicy()
    try:
        garbage.on_stage(Stage.COMPILING)
        assert not gc.isenabled()
        garbage.on_stage(Stage.READY)
        assert gc.isenabled()
        assert gc.get_freeze_count() > 0
    finally:
        gc.enable()
        gc.unfreeze()


def test_an_arm_in_motion_brakes_when_goals_are_no_longer_solved():
    with running(arm_urdf()) as client:
        client.answer('goal_joints', client.joints(yaw=2.0))
        client.wait(lambda: client.position('yaw') > 0.1, 'the motion')
        ended = threading.Thread(target=lambda: None)
        ended.start()
        ended.join()
        client.served._goals._goals = ended
        client.wait_said('restart ik_node: the thread that solves goals has ended')
        client.wait(lambda: not any(client.samples[-1].velocity), 'rest')
        assert client.position('yaw') < 1.9
        client.call('ik_node/resume')
        client.wait(lambda: len(client.statuses) > 4 and client.said()['state'] == 'faulted', 'the fault again')


@pytest.fixture
def node():
    context = rclpy.Context()
    rclpy.init(context=context)
    node = LifecycleNode('inside', context=context, parameter_overrides=[Parameter('speed', value=2.0)])
    yield node
    node.destroy_node()
    rclpy.shutdown(context=context)


def test_parameters_that_nobody_declared_are_known(node):
    assert given_parameters(node)['speed'].value == 2.0


def test_the_callback_of_change_state_is_wrapped_and_raises_rclerror_without_such_a_transition(node):
    before = []
    wrap_change_state(node, lambda change: before.append(change) or (lambda *_: 'wrapped'))
    assert node._service_change_state.callback(None, None) == 'wrapped'
    request = ChangeState.Request(transition=Transition(id=Transition.TRANSITION_DEACTIVATE))
    with pytest.raises(RCLError):
        before[0](request, ChangeState.Response())


def handlers(node):
    entities = (*node.publishers, *node.subscriptions)
    return [handler for entity in entities for handler in entity.event_handlers]


@pytest.mark.slow
def test_between_two_looks_no_event_is_waited_for():
    with running(arm_urdf()) as client:
        mark = len(client.diagnostics)
        client.wait(lambda: len(client.diagnostics) > mark + 1, 'diagnostics')
        found = handlers(client.served)
        assert len(found) > 20
        for look in (True, False, True, False):
            client.wait(
                lambda look=look: all(h.callback_group.can_execute(h) == look for h in found),
                'a look' if look else 'the end of a look',
            )


PERIOD = 10_000_000  # [ns]


def samples_per_period(period: int, kept: bool) -> tuple[np.ndarray, list[int]]:
    """How many samples each period of a controller gets whose clock is 0.03 % fast, and the samples."""
    random = np.random.default_rng(5)
    begins = (np.arange(4000) * PERIOD * 0.9997).astype(np.int64)
    heard = [(int(begin), int(begin + random.uniform(3e5, 1.5e6))) for begin in begins]  # late messages
    due, last, samples, count = 3_000_000, (0, 0), [], 0
    while due < begins[-1]:
        due += period
        while count < len(heard) and heard[count][1] <= due:
            last = heard[count][0], last[0]
            count += 1
        if kept:
            due = in_step(due, period, *last)
        samples.append(due)
    arrivals = np.array(samples) + random.uniform(1e5, 2e6, len(samples))  # of commands that are late
    return np.histogram(arrivals, begins)[0][200:], samples


@pytest.mark.slow
@pytest.mark.parametrize('times', [1, 2])
def test_each_period_of_a_controller_gets_the_same_number_of_samples(times: int) -> None:
    counts, samples = samples_per_period(PERIOD // times, kept=True)
    assert (counts == times).all()
    assert np.abs(np.diff(samples) - PERIOD // times).max() <= PERIOD // times // 8
    free, _ = samples_per_period(PERIOD // times, kept=False)
    assert (free != times).any()
    other = 7_000_000  # [ns]: a controller at another rate changes nothing
    assert in_step(123_456_789, PERIOD, 5 * other, 4 * other) == 123_456_789
    assert abs(in_step(PERIOD, PERIOD, 5 * PERIOD, 2 * PERIOD) - PERIOD) <= PERIOD // 16  # messages are lost


@pytest.mark.slow
def test_the_loop_is_led_into_the_middle_of_the_periods_of_its_controller() -> None:
    """On a clock that passes a millisecond whenever it is read."""
    time, phase, phases, enough = [0], 3_000_000, [], threading.Event()

    def now() -> SimpleNamespace:
        time[0] += 1_000_000
        return SimpleNamespace(nanoseconds=time[0])

    def sample(due: int, at: int) -> None:
        loop.begun((at - phase) // PERIOD * PERIOD + phase)
        phases.append((due - phase) % PERIOD)
        if len(phases) == 100:
            enough.set()

    node = SimpleNamespace(
        get_clock=lambda: SimpleNamespace(now=now), get_parameter=lambda _: SimpleNamespace(value=True)
    )
    loop = SetpointLoop(node, lambda: 0.01, sample)
    loop.start()
    assert enough.wait(60.0)
    loop.close()
    assert abs(phases[0] - PERIOD // 2) > 1_000_000
    assert np.abs(np.array(phases[80:100]) - PERIOD // 2).max() < 100_000
