# SPDX-License-Identifier: Apache-2.0
"""A real arm on the other end: nothing is commanded before it is known where the joints are."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
from node_harness import Client, running
from rclpy.node import Node
from rclpy.time import Time
from sensor_msgs.msg import JointState
from small_arm import ARM_JOINTS, arm_urdf

from ik_node.ros.node import CHECK, MeasuredWatch
from ik_node.steady import steady

pytestmark = pytest.mark.slow

REMAPPED = ['--ros-args', '-r', 'joint_states:=joint_commands', '-r', 'measured_joint_states:=joint_states']


class Driver:
    """Joints that go where they are commanded, a little below under load, unless they are stuck."""

    def __init__(self, node: Node, commands: str, measured: str, **start: float) -> None:
        self.positions = {**dict.fromkeys(ARM_JOINTS, 0.0), 'finger': 0.02, **start}
        self.commands: list[JointState] = []
        self.stuck = self.silent = False
        self.sag = 0.0
        self.efforts: dict[str, float] = {}
        self.names: tuple[str, ...] = (*ARM_JOINTS, 'finger')
        self._node = node
        self._publisher = node.create_publisher(JointState, measured, 10)
        self._subscription = node.create_subscription(JointState, commands, self._take, 10)
        self._timer = node.create_timer(0.01, self._publish)

    def _take(self, message: JointState) -> None:
        self.commands.append(message)
        if not self.stuck:
            self.positions.update(zip(message.name, message.position, strict=True))

    def _publish(self) -> None:
        if not self.silent:
            values = [self.positions[name] - self.sag for name in self.names]
            efforts = [self.efforts.get(name, 0.0) for name in self.names]
            self._publisher.publish(JointState(name=list(self.names), position=values, effort=efforts))

    def command(self, name: str) -> float:
        """The newest command of a joint."""
        return self.commands[-1].position[list(self.commands[-1].name).index(name)]

    def close(self) -> None:
        self._node.destroy_timer(self._timer)
        self._node.destroy_subscription(self._subscription)
        self._node.destroy_publisher(self._publisher)


@contextmanager
def real_arm(**parameters: object) -> Iterator[Client]:
    """A node whose commands go to a driver that is still to come."""
    with running(arm_urdf(), ready=False, cli_args=REMAPPED, **parameters) as client:
        client.wait(lambda: 'waiting for measured joints' in last(client), 'the node to wait')
        yield client


def last(client: Client) -> str:
    return client.statuses[-1].message if client.statuses else ''


def driver_of(client: Client, **start: float) -> Driver:
    return Driver(client.node, 'joint_commands', 'joint_states', **start)


def test_a_driver_that_starts_later_never_receives_a_made_up_home():
    with real_arm() as client:
        client.wait(lambda: 'joint_states has no publisher' in last(client), 'the node to say why')
        assert last(client).startswith('waiting for measured joints: yaw, shoulder, elbow, roll, wrist')
        driver = driver_of(client, yaw=0.7, elbow=-0.4)
        client.wait(lambda: len(driver.commands) > 20, 'commands')
        for command in driver.commands:
            assert dict(zip(command.name, command.position, strict=True)) == {
                **dict.fromkeys(ARM_JOINTS, 0.0),
                'yaw': 0.7,
                'elbow': -0.4,
            }


def test_with_one_name_for_the_picture_a_late_driver_is_safe_too():
    """joint_states is not remapped: the picture shows home until a driver publishes measurements."""
    with running(arm_urdf()) as client:
        assert client.position('yaw') == 0.0
        driver = Driver(client.node, 'joint_states', 'measured_joint_states', yaw=0.7)
        client.wait(lambda: len(driver.commands) > 20, 'commands')
        assert {command.position[list(command.name).index('yaw')] for command in driver.commands} == {0.7}


def test_each_joint_has_to_be_measured():
    with real_arm() as client:
        client.send('joint_states', JointState(name=['finger', 'camera'], position=[0.01, 1.0]))
        client.send('joint_states', JointState(name=['yaw', 'roll'], position=[0.1, math.nan]))
        client.send('joint_states', JointState(name=['yaw', 'elbow'], position=[0.1]))
        client.send('joint_states', JointState())
        client.wait(lambda: 'joints: shoulder, elbow, roll, wrist' in last(client), 'the yaw')
        assert client.answer('goal_joints', client.joints(yaw=0.0)).message.startswith('goal_joints rejected: wait')
        driver = driver_of(client)
        driver.names = ('shoulder', 'elbow', 'roll', 'wrist', 'yaw')
        client.wait(lambda: driver.commands, 'commands')


def test_wait_for_measured_can_be_demanded_and_waived():
    with running(arm_urdf(), ready=False, wait_for_measured='true') as client:
        client.wait(lambda: 'waiting for measured joints' in last(client), 'the node to wait')
        assert not client.samples
        assert client.set_parameters(wait_for_measured='auto')[0].successful
        client.wait(lambda: client.samples, 'the node to go on')
    with running(arm_urdf(), wait_for_measured=False) as client:
        client.send('measured_joint_states', client.joints(yaw=0.5))
        client.run(0.5)
        assert client.position('yaw') == 0.0


def values_of(client: Client) -> dict[str, str]:
    client.wait(lambda: client.diagnostics, 'diagnostics')
    return {pair.key: pair.value for pair in client.diagnostics[-1].status[0].values}


def test_diagnostics_explain_why_the_arm_stands_still_and_how_old_measurements_are():
    with real_arm() as client:
        why = 'standing still because'
        client.wait(lambda: values_of(client).get(why, '').startswith('waiting for measured'), 'the reason')
        assert values_of(client)['age of the oldest measurement [s]'] == 'inf'
        driver = driver_of(client)
        client.wait(lambda: values_of(client)[why] == 'no goal received yet', 'the next reason')
        assert 0.0 <= float(values_of(client)['age of the oldest measurement [s]']) < 1.0
        assert values_of(client)['least distance to a joint limit [rad or m]'] == '2.5000 (yaw)'
        client.answer('goal_joints', client.joints(elbow=2.0))
        client.wait(lambda: values_of(client)[why].startswith('arrived'), 'the arrival')
        assert values_of(client)['newest goal'] == '1 (goal_joints): arrived'
        assert values_of(client)['least distance to a joint limit [rad or m]'] == '0.5000 (elbow)'
        driver.silent = True
        client.wait(lambda: 'has not been measured' in values_of(client)[why], 'the fault')


SLOW = 'the computer or the driver is too slow'
LATE = 0.4  # [s]


class LateDriver:
    """Joints that follow at once, and whose measurements come LATE, with stamps of a clock or without."""

    def __init__(self, client: Client, stamps: str) -> None:
        self._client, self._stamps = client, stamps
        self._sent: deque[JointState] = deque()
        self.newest = JointState(name=list(ARM_JOINTS), position=[0.0] * 5)
        node = client.node
        self._publisher = node.create_publisher(JointState, 'joint_states', 10)
        node.create_subscription(JointState, 'joint_commands', self._take, 10)
        node.create_timer(0.01, self._publish)

    def _take(self, message: JointState) -> None:
        self.newest = message

    def _publish(self) -> None:
        message = JointState(name=list(self.newest.name), position=list(self.newest.position))
        message.header.stamp = self._client.now().to_msg()
        self._sent.append(message)
        now = self._client.now().nanoseconds
        while self._sent and Time.from_msg(self._sent[0].header.stamp).nanoseconds <= now - LATE * 1e9:
            late = self._sent.popleft()
            if self._stamps != 'true':
                late.header.stamp = Time(seconds=0 if self._stamps == 'none' else 1234).to_msg()
            self._publisher.publish(late)


@pytest.mark.parametrize('stamps', ['true', 'none', 'other clock'])
def test_measurements_are_compared_with_what_was_commanded_at_their_stamp(stamps):
    # 2 rad/s: without the stamps a joint is 0.6 rad away.
    with running(arm_urdf(), ready=False, cli_args=REMAPPED, speed_scaling=1.0, measured_timeout=10.0) as client:
        client.wait(lambda: client.statuses, 'the node to wait')
        LateDriver(client, stamps)
        client.wait(lambda: client.said()['state'] == 'ready', 'measured joints')
        client.send('goal_joints', client.joints(yaw=-2.4))
        client.wait(lambda: client.said()['state'] in ('arrived', 'faulted'), 'the end')
        messages = [status.message for status in client.statuses]
        if stamps == 'true':
            assert client.said()['state'] == 'arrived'
            assert any(SLOW in message for message in messages)
        else:
            assert 'joint "yaw" is' in messages[-1]


@pytest.mark.parametrize('heard', [False, True])
def test_a_publisher_that_goes_without_a_message_silences_nobody(monkeypatch, heard):
    now, publishers = [0.0], {'/joint_states': 1, '/measured_joint_states': 0}
    monkeypatch.setattr(steady, 'read', lambda: now[0])
    node = SimpleNamespace(
        resolve_topic_name=lambda name, **_: f'/{name}', publishers=[], count_publishers=publishers.get
    )
    watch = MeasuredWatch(node, 'measured_joint_states', always=False)
    expected = []
    for count in (0, 1, 0):
        publishers['/measured_joint_states'] = count
        now[0] += 2 * CHECK
        watch.poll('auto')
        expected.append(watch.expected)
        watch.received = (heard and count > 0) or watch.received
    assert expected == [False, True, heard]
