# SPDX-License-Identifier: Apache-2.0
"""A real arm on the other end: the node commands nothing before it knows where the joints are.

The driver here takes joint_commands and publishes joint_states.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from node_harness import Client, running
from rclpy.node import Node
from sensor_msgs.msg import JointState
from small_arm import ARM_JOINTS, arm_urdf

REMAPPED = ['--ros-args', '-r', 'joint_states:=joint_commands', '-r', 'measured_joint_states:=joint_states']


class Driver:
    """Joints that go where they are commanded, a little below under load, unless they are stuck."""

    def __init__(self, node: Node, commands: str, measured: str, **start: float) -> None:
        self.positions = {**dict.fromkeys(ARM_JOINTS, 0.0), 'finger': 0.02, **start}
        self.commands: list[JointState] = []
        self.stuck = self.silent = False
        self.sag = 0.0
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
            self._publisher.publish(JointState(name=list(self.names), position=values))

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
        assert client.answer('goal_joints', client.joints(yaw=0.0)).message.startswith(
            'goal_joints rejected: wait'
        )
        driver = driver_of(client)
        driver.names = ('shoulder', 'elbow', 'roll', 'wrist', 'yaw')
        client.wait(lambda: driver.commands, 'commands')


def test_motion_starts_at_the_measured_joints_and_comes_back_into_the_limits_slowly():
    with real_arm() as client:
        driver = driver_of(client, yaw=2.7)
        client.wait(lambda: driver.commands, 'commands')
        client.answer('goal_joints', client.joints(yaw=2.0))
        client.wait(lambda: driver.positions['yaw'] == pytest.approx(2.0), 'the joint')
        yaw = [c.position[list(c.name).index('yaw')] for c in driver.commands]
        speed = [c.velocity[list(c.name).index('yaw')] for c in driver.commands]
        assert yaw[0] == 2.7
        assert all(b <= a + 1e-12 for a, b in itertools.pairwise(yaw))
        assert (
            max(abs(v) for v, at in zip(speed, yaw, strict=True) if at > 2.5 + 1e-6) <= 0.1 * 0.5 * 2.0 + 1e-9
        )


def test_a_sagging_arm_is_held_where_it_was_sent():
    with real_arm() as client:
        driver = driver_of(client)
        client.wait(lambda: driver.commands, 'commands')
        client.answer('goal_joints', client.joints(elbow=0.5))
        client.wait(lambda: driver.command('elbow') == pytest.approx(0.5), 'the joint')
        driver.sag = 0.06
        assert client.call('ik_node/stop').success
        client.wait(lambda: client.call('ik_node/resume').success, 'rest')
        count = len(driver.commands)
        client.wait(lambda: len(driver.commands) > count + 100, 'a second')
        assert driver.command('elbow') == pytest.approx(0.5)


def test_home_leaves_the_gripper_alone():
    with real_arm() as client:
        driver = driver_of(client, yaw=0.3)
        client.wait(lambda: driver.commands, 'commands')
        assert client.call('ik_node/home').success
        client.wait(lambda: driver.command('yaw') == pytest.approx(0.0, abs=1e-9), 'home')
        assert all('finger' not in command.name for command in driver.commands)
        client.answer('goal_joints', client.joints(finger=0.03))
        client.wait(lambda: driver.positions['finger'] == pytest.approx(0.03), 'the finger')
        assert client.call('ik_node/home').success
        client.wait(
            lambda: len(driver.commands) and driver.command('finger') == pytest.approx(0.03), 'the grip'
        )


def test_a_stuck_joint_faults_the_arm_until_resume():
    with real_arm() as client:
        driver = driver_of(client)
        client.wait(lambda: driver.commands, 'commands')
        driver.stuck = True
        client.answer('goal_joints', client.joints(elbow=1.5))
        client.wait(lambda: client.said()['state'] == 'faulted', 'the fault')
        assert 'joint "elbow"' in last(client)
        assert 'away from its command' in last(client)
        client.run(0.5)
        count = len(driver.commands)
        client.run(0.3)
        assert len(driver.commands) == count  # silence
        assert not client.call('ik_node/home').success
        driver.stuck = False
        assert client.call('ik_node/resume').success
        client.wait(lambda: len(driver.commands) > count + 10, 'commands')
        assert driver.command('elbow') == 0.0  # where it is measured


def test_silence_faults_the_arm():
    with real_arm() as client:
        driver = driver_of(client)
        client.wait(lambda: driver.commands, 'commands')
        driver.silent = True
        client.wait(lambda: 'has not been measured for 1 s' in last(client), 'the fault')
        assert client.answer('goal_joints', client.joints(yaw=1.0)).message.endswith(
            'call ~/resume to continue'
        )


def test_wait_for_measured_can_be_demanded_and_waived():
    with running(arm_urdf(), ready=False, wait_for_measured='true') as client:
        client.wait(lambda: 'waiting for measured joints' in last(client), 'the node to wait')
        assert not client.samples
    with running(arm_urdf(), wait_for_measured=False) as client:
        client.send('measured_joint_states', client.joints(yaw=0.5))
        count = len(client.samples)
        client.wait(lambda: len(client.samples) > count + 50, 'samples')
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
        client.wait(lambda: values_of(client)[why] == 'there was no goal yet', 'the next reason')
        assert 0.0 <= float(values_of(client)['age of the oldest measurement [s]']) < 1.0
        assert values_of(client)['least distance to a joint limit [rad or m]'] == '2.5000 (yaw)'
        client.answer('goal_joints', client.joints(elbow=2.0))
        client.wait(lambda: values_of(client)[why].startswith('arrived'), 'the arrival')
        assert values_of(client)['newest goal'] == '1 (goal_joints): arrived'
        assert values_of(client)['least distance to a joint limit [rad or m]'] == '0.5000 (elbow)'
        driver.silent = True
        client.wait(lambda: 'has not been measured' in values_of(client)[why], 'the fault')


def test_measurements_need_not_be_awaited_any_more():
    with running(arm_urdf()) as client:
        assert client.set_parameters(wait_for_measured='true')[0].successful
        client.wait(lambda: 'waiting for measured joints' in last(client), 'the node to wait')
        assert client.set_parameters(wait_for_measured='auto')[0].successful
        client.wait(lambda: 'effective DoF' in last(client), 'the node to go on')
