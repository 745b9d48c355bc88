# SPDX-License-Identifier: Apache-2.0
"""ArmClient beside a node that is stepped: each call returns how it ended."""

from __future__ import annotations

import asyncio
import math
import signal
import threading
from collections.abc import Iterator

import numpy as np
import pytest
import rclpy
from domains import new_domain
from node_harness import Client, running
from rclpy.parameter import Parameter
from small_arm import arm_urdf

from ik_node.client import ArmClient
from ik_node.control.controller import Inbox
from ik_node.errors import InputError
from ik_node.ros.run import Spinner

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures('terminal')]

PLACE, DOWN = (0.45, 0.1, 0.2), (1.0, 0.0, -1.0)
FAR = (-0.45, 0.0, 0.2)


@pytest.fixture
def client() -> Iterator[Client]:
    with running(arm_urdf()) as client:
        yield client


@pytest.fixture
def arm(client: Client) -> Iterator[ArmClient]:  # noqa: ARG001
    with ArmClient() as arm:
        yield arm


def test_a_move_returns_once_the_arm_is_there(arm: ArmClient, client: Client):
    result = arm.move(PLACE, DOWN)
    assert result
    assert (result.state, str(result)) == ('arrived', 'arrived at the goal')
    assert result.position_error < 1e-4
    position, direction = client.tool()
    assert np.allclose(position, PLACE, atol=2e-4)
    assert np.allclose(direction, np.array(DOWN) / math.sqrt(2.0), atol=2e-3)
    assert arm.move((0.45, 0.05, 0.2), DOWN, line=True)


def test_out_of_reach_it_says_why_and_what_is_nearest(arm: ArmClient):
    result = arm.move((4.0, 0.0, 0.2), (1.0, 0.0, 0.0))
    assert not result
    assert result.state == 'unreachable'
    assert 'out of reach' in result.message
    position, direction = result.nearest
    assert 0.5 < position[0] < 1.0
    assert np.linalg.norm(direction) == pytest.approx(1.0)
    assert np.linalg.norm(position - (4.0, 0.0, 0.2)) == pytest.approx(result.position_error, abs=1e-3)


def test_the_gripper_opens_and_closes(arm: ArmClient, client: Client):
    for opening in (1.0, 0.0, 0.0, 0.5):
        result = arm.gripper(opening)
        assert result.state == 'unmeasured'
        assert client.position('finger')[0] == pytest.approx(0.04 * opening, abs=1e-6)
    for opening in (50.0, -0.1, math.nan):
        with pytest.raises(InputError, match='from 0'):
            arm.gripper(opening)


@pytest.mark.parametrize('room', [{'cone': -0.1}, {'cone': 3.2}, {'cone': math.nan}, {'tolerance': -0.01}])
def test_a_cone_or_a_tolerance_that_is_none_is_refused(arm: ArmClient, room: dict[str, float]):
    """A message has their squares, which have no sign."""
    with pytest.raises(InputError, match='a cone is from 0 to pi'):
        arm.move(PLACE, (0, 0, -1), **room)


def test_a_slower_move_leaves_the_speed_as_it_was(arm: ArmClient, client: Client):
    client.parameter_now = lambda: client.served.get_parameter('goal_speed').value
    seen = []
    client.world.once(lambda: abs(client.position('yaw')[0]) > 0.1, lambda: seen.append(client.parameter_now()))
    assert arm.move(FAR, speed=0.5)
    assert seen == [0.5]
    assert arm.move(PLACE)
    assert client.parameter_now() == 1.0
    client.set_parameters(goal_speed=0.1)  # by a program that is killed
    client.run(2.0)
    assert client.parameter_now() == 0.1
    client.wait(lambda: client.parameter_now() == 1.0, 'the whole speed')
    for speed in (0.0, 1.5, 1e-4):
        with pytest.raises(InputError, match='speed'):
            arm.move(FAR, speed=speed)
    assert client.parameter_now() == 1.0


def test_a_slower_move_is_slow_however_long_other_programs_are_waited_for(
    arm: ArmClient, client: Client, monkeypatch: pytest.MonkeyPatch
):
    def wait(_: ArmClient, __: str) -> None:
        for _ in range(200):
            arm._spinner.spin(0.02)

    monkeypatch.setattr(ArmClient, '_meet', wait)
    monkeypatch.setattr(arm, '_neighbours', None, raising=False)
    seen = []
    share = lambda: client.served.get_parameter('goal_speed').value  # noqa: E731
    client.world.once(lambda: abs(client.position('yaw')[0]) > 0.1, lambda: seen.append(share()))
    assert arm.move(FAR, speed=0.5)
    assert seen == [0.5]


def test_a_goal_that_is_solved_for_long_does_not_end_its_speed(client: Client, monkeypatch: pytest.MonkeyPatch):
    share = lambda: client.served.get_parameter('goal_speed').value  # noqa: E731
    client.set_parameters(goal_speed=0.1)
    with monkeypatch.context() as patch:
        patch.setattr(Inbox, '_taken', property(lambda _: 0.0, lambda *_: None), raising=False)
        client.run(5.0)
        assert share() == 0.1
    client.wait(lambda: share() == 1.0, 'the whole speed')


def test_the_speed_of_a_program_that_took_over_stays(arm: ArmClient, client: Client):
    def take_over() -> None:
        client.served.set_parameters([Parameter('goal_speed', value=0.2)])
        client.send('goal_joints', client.joints(yaw=-0.4))

    client.world.once(lambda: abs(client.position('yaw')[0]) > 0.1, take_over)
    assert arm.move(FAR, speed=0.5).state == 'replaced'
    assert client.served.get_parameter('goal_speed').value == 0.2


@pytest.mark.parametrize('how', ['cancel', 'timeout'])
def test_a_motion_that_is_cancelled_brakes_and_the_next_one_begins(arm: ArmClient, client: Client, how: str):
    client.world.once(lambda: abs(client.position('yaw')[0]) > 0.1, arm.cancel if how == 'cancel' else lambda: None)
    result = arm.move(FAR, timeout=math.inf if how == 'cancel' else 1.2)
    assert (bool(result), result.state) == (False, 'cancelled' if how == 'cancel' else 'timed out')
    client.run(1.0)
    rests = client.position()
    client.run(1.0)
    assert (client.position() == rests).all()
    assert 0.05 < abs(rests[0]) < 3.0
    assert arm.move(PLACE)


def test_ctrl_c_stops_the_arm(arm: ArmClient, client: Client):
    moves = lambda: abs(client.position('yaw')[0]) > 0.1  # noqa: E731
    client.world.once(moves, lambda: signal.raise_signal(signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        arm.move(FAR)
    assert arm.move(PLACE).state == 'rejected'
    client.run(1.0)
    assert arm.resume()
    assert arm.move(PLACE)
    assert arm.stop()
    assert arm.gripper(1.0).state == 'rejected'


def test_stop_does_not_wait_for_the_end_of_a_move(arm: ArmClient, client: Client):
    thread = threading.Thread(target=arm.stop)
    client.world.once(lambda: abs(client.position('yaw')[0]) > 0.1, thread.start)
    assert arm.move(FAR).state == 'cancelled'
    thread.join()
    client.run(1.0)
    assert abs(client.position('yaw')[0]) < 3.0
    assert arm.move(PLACE).state == 'rejected'


def test_an_arm_without_a_gripper_says_so():
    refused = pytest.raises(InputError, match='no gripper is known behind this arm')
    with running(arm_urdf(), gripper_joint='none'), ArmClient() as arm, refused:
        arm.gripper(1.0)


def test_two_threads_can_wait_at_once():
    """Two arms in two threads, or one beside rclpy.spin of the program: rclpy's own executor serves one of them."""
    rclpy.init(domain_id=new_domain())
    nodes = [rclpy.create_node(f'program_{k}') for k in range(2)]
    spinners, failed = [Spinner(node) for node in nodes], []

    def spin(spinner: Spinner) -> None:
        try:
            for _ in range(50):
                spinner.spin(0.01)
        except Exception as error:  # of any kind, for the other thread
            failed.append(error)

    threads = [threading.Thread(target=spin, args=(spinner,)) for spinner in spinners]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for node in nodes:
        node.destroy_node()
    rclpy.shutdown()
    assert not failed


def test_it_can_be_awaited(arm: ArmClient, client: Client):
    async def both() -> None:
        assert await arm.move_async(PLACE, DOWN)
        assert (await arm.gripper_async(1.0)).opening is not None

    asyncio.run(both())
    assert client.position('finger')[0] == pytest.approx(0.04)


@pytest.mark.parametrize(
    ('named', 'why'),
    [
        ({'direction': (0, 0, 0)}, 'direction'),
        ({'line': True}, 'needs a direction'),
        ({'cone': 0.1}, 'needs a direction'),
        ({'position': (1.0, 2.0)}, 'position'),
        ({'position': (math.nan, 0.0, 0.0)}, 'position'),
    ],
)
def test_wrong_arguments_are_refused(arm: ArmClient, named: dict[str, object], why: str):
    with pytest.raises(InputError, match=why):
        arm.move(**{'position': PLACE, **named})
