"""The managed node over real DDS: each step by the standard services, in rest and in motion."""

import pytest
from lifecycle_msgs.msg import State, Transition
from lifecycle_msgs.srv import ChangeState, GetState
from node_harness import Client, running
from small_arm import arm_urdf
from std_msgs.msg import String


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
    assert 'refused' in client.answer('goal_joints', client.joints(yaw=0.5)).message
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
