# SPDX-License-Identifier: Apache-2.0
"""The managed node: each step by the standard services, in rest and in motion."""

import pytest
from interleaved import at_step
from lifecycle_msgs.msg import State, Transition
from lifecycle_msgs.srv import ChangeState, GetState
from node_harness import Client, running
from small_arm import arm_urdf
from std_msgs.msg import String

from ik_node.ros.node.at_rest import AtRest


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


def test_it_starts_by_itself_by_default():
    with running(arm_urdf()) as client:
        assert state(client) == State.PRIMARY_STATE_ACTIVE
        assert client.samples


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


def test_it_ends_its_wait_though_the_arm_never_rests(monkeypatch):
    monkeypatch.setattr('ik_node.ros.node.node.BRAKING', 0.1)
    with running(arm_urdf()) as client:
        client.answer('goal_joints', client.joints(yaw=2.0))
        client.wait(lambda: client.position('yaw') > 0.1, 'the motion')
        monkeypatch.setattr(type(client.served), '_resting', False)
        assert change(client, Transition.TRANSITION_DEACTIVATE)
        assert state(client) == State.PRIMARY_STATE_INACTIVE


def test_an_arm_that_comes_to_rest_at_any_step_of_asking_is_told_of_once():
    for step in range(1, 1000):
        resting, told = [], []
        rest = AtRest(lambda resting=resting: bool(resting))

        def come_to_rest(rest=rest, resting=resting):
            resting.append(True)
            rest.look()

        within = at_step(step, come_to_rest, lambda rest=rest, told=told: rest.then(lambda: told.append(1)))
        if not within:
            break
        assert told == [1]
    assert step > 10
