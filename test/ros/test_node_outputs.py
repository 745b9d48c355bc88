# SPDX-License-Identifier: Apache-2.0
"""Outputs to controllers, with a simulated arm on the other side."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
from node_harness import Client, running
from rclpy.parameter import Parameter
from sensor_msgs.msg import JointState
from small_arm import ALL_JOINTS, ARM_JOINTS, arm_urdf
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import JointTrajectory

pytest.importorskip('mujoco')

from ik_node.errors import InputError, MissingError
from ik_node.ros.conversions import seconds
from ik_node.ros.graph import graph
from ik_node.ros.outputs import output_names
from ik_node.ros.outputs.follow_joint_trajectory import action_type
from ik_node.sim.node import PlantNode

SHARED = ['wrist', 'roll', 'elbow', 'shoulder', 'yaw', 'finger']


class Arm:
    """A simulated arm in the domain of a client, until it is ended."""

    def __init__(self, client: Client, **parameters: object) -> None:
        overrides = [
            Parameter(name, value=value)
            for name, value in {'robot_description': arm_urdf(), **parameters}.items()
        ]
        self.node = PlantNode(context=client.node.context, parameter_overrides=overrides)

    def end(self) -> None:
        self.node.destroy_node()


@contextmanager
def arm(client: Client, **parameters: object) -> Iterator[Arm]:
    plant = Arm(client, **parameters)
    try:
        client.wait(lambda: 'effective DoF' in last(client), 'the measured joints')
        yield plant
    finally:
        plant.end()


class Heard:
    """The commands on both topics."""

    def __init__(self, client: Client) -> None:
        self.trajectories: list[JointTrajectory] = []
        self.positions: list[Float64MultiArray] = []
        node = client.node
        node.create_subscription(JointTrajectory, 'joint_trajectory', self.trajectories.append, 100)
        node.create_subscription(Float64MultiArray, 'position_commands', self.positions.append, 1000)


def last(client: Client) -> str:
    return client.statuses[-1].message if client.statuses else ''


def near(client: Client, tolerance: float = 2e-3, **positions: float) -> bool:
    """Whether the simulated arm is there and at rest."""
    sample = client.samples[-1]
    at = dict(zip(sample.name, sample.position, strict=True))
    still = max(map(abs, sample.velocity)) < 1e-3
    return still and all(abs(at[name] - place) < tolerance for name, place in positions.items())


@contextmanager
def waiting_node(output: str, **parameters: object) -> Iterator[Client]:
    with running(arm_urdf(), ready=False, output=output, **parameters) as client:
        client.wait(lambda: 'waiting for measured joints' in last(client), 'the node to wait')
        yield client


def test_an_arm_that_comes_late_is_moved_by_trajectories_from_where_it_is():
    with waiting_node('joint_trajectory') as client:
        heard = Heard(client)
        assert graph.count_publishers(client.node, 'joint_states') == 0
        with arm(client, start=[0.3], noise=1e-4):
            client.wait(lambda: client.world.count_subscriptions('/joint_trajectory') == 2, 'the controller')
            assert graph.count_publishers(client.node, 'joint_states') == 1
            answer = client.answer('goal_joints', client.joints(yaw=1.0, elbow=-0.4))
            assert answer.message.startswith('solved')
            client.wait(lambda: near(client, yaw=1.0, elbow=-0.4, roll=0.3, wrist=0.3), 'the arm')
            client.wait_said('arrived at the requested joint positions')
            (trajectory,) = heard.trajectories
            assert trajectory.joint_names == list(ARM_JOINTS)
            assert seconds(trajectory.header.stamp) > 0.0
            times = [seconds(point.time_from_start) for point in trajectory.points]
            assert times[0] == 0.0
            assert all(b > a for a, b in itertools.pairwise(times))
            assert not any(trajectory.points[-1].velocities)
            assert trajectory.points[0].positions[0] == pytest.approx(0.3, abs=2e-3)
            assert not heard.positions


def test_positions_are_listed_as_the_controller_has_them_and_its_gripper_stays():
    with waiting_node('position_commands', controller_joints=SHARED) as client:
        heard = Heard(client)
        with arm(client, start=[0.1, 0.1, 0.1, 0.1, 0.1, 0.02], controller_joints=SHARED):
            client.wait(lambda: heard.positions, 'commands')
            client.answer('goal_joints', client.joints(yaw=1.0))
            client.wait(lambda: near(client, yaw=1.0, finger=0.02), 'the arm')
            client.answer('goal_joints', client.joints(finger=0.035))
            client.wait(lambda: near(client, tolerance=5e-4, yaw=1.0, finger=0.035), 'the finger')
        rows = np.array([message.data for message in heard.positions])
        assert rows.shape[1] == len(SHARED)
        assert rows[0] == pytest.approx([0.1, 0.1, 0.1, 0.1, 0.1, 0.02], abs=1e-6)
        assert np.abs(np.diff(rows[:, 4])).max() <= 1.0 * 0.05  # 1 rad/s, however late a message was
        assert not heard.trajectories


def test_the_picture_may_be_published_beside_commands():
    with running(arm_urdf(), ready=False, output='joint_states, position_commands') as client:
        client.wait(lambda: 'waiting for measured joints' in last(client), 'the node to wait')
        heard = Heard(client)
        client.send('measured_joint_states', client.joints(**dict.fromkeys(ARM_JOINTS, 0.2)))
        client.wait(lambda: client.samples and heard.positions, 'commands')
        assert heard.positions[-1].data.tolist() == pytest.approx([0.2] * 5)


@pytest.mark.parametrize('output', ['joint_trajectory', 'position_commands'])
def test_an_arm_that_is_killed_in_motion_stops_the_node_which_says_why(output):
    with waiting_node(output, measured_timeout=1.0) as client:
        with arm(client, controller_joints=list(ARM_JOINTS)):
            client.answer('goal_joints', client.joints(yaw=2.4))
            client.wait(lambda: client.position('yaw')[0] > 0.3, 'the motion')
        client.wait(lambda: client.statuses and client.said()['state'] == 'faulted', 'the fault')
        reasons = 'measured for 1 s; call ~/resume', 'no controller subscribes to'
        assert any(reason in last(client) for reason in reasons)
        assert 'call ~/resume' in client.answer('goal_joints', client.joints(yaw=0.0)).message


@pytest.mark.parametrize('output', ['joint_trajectory', 'position_commands'])
def test_a_stop_in_motion_reaches_the_arm(output):
    with waiting_node(output) as client, arm(client, controller_joints=list(ARM_JOINTS)):
        client.answer('goal_joints', client.joints(yaw=2.4))
        client.wait(lambda: client.position('yaw')[0] > 0.5, 'the motion')
        assert client.call('ik_node/stop').success
        client.wait(lambda: near(client), 'rest')
        place = client.position('yaw')[0]
        assert place < 1.5
        client.wait_said('stopped')
        assert client.call('ik_node/resume').success
        client.answer('goal_joints', client.joints(yaw=0.0))
        client.wait(lambda: near(client, yaw=0.0), 'the way back')


def test_moving_goals_reach_an_arm_behind_a_trajectory_controller():
    with waiting_node('joint_trajectory') as client, arm(client, latency=0.005):
        heard = Heard(client)
        for k in range(100):
            client.send('goal_joints', client.joints(yaw=0.01 * k))
            count = len(client.samples)
            client.wait(lambda n=count: len(client.samples) > n + 1, 'the next measurements')
        client.wait(lambda: near(client, yaw=0.99), 'the arm')
        assert len(heard.trajectories) > 10
        speeds = [max(map(abs, sample.velocity)) for sample in client.samples]
        assert max(speeds) < 1.3


def test_droop_and_noise_do_not_change_the_command():
    with waiting_node('position_commands') as client:
        heard = Heard(client)
        with arm(client, droop=0.05, noise=1e-3, controller_joints=list(ARM_JOINTS)):
            client.answer('goal_joints', client.joints(shoulder=1.2))
            client.wait(lambda: 'arrived' in last(client), 'the end of the motion')
            count = len(heard.positions)
            client.wait(lambda: len(heard.positions) > count + 50, 'half a second')
            after = {tuple(message.data) for message in heard.positions[count:]}
            assert len(after) == 1
            assert next(iter(after))[1] == pytest.approx(1.2)
            assert abs(client.position('shoulder')[0] - 1.2) > 0.002


def test_a_controller_that_is_absent_is_named():
    with waiting_node('joint_trajectory', controller='arm_controller') as client:
        client.send('joint_states', client.joints(**dict.fromkeys(ALL_JOINTS, 0.0)))
        client.wait(lambda: 'effective DoF' in last(client), 'the arm')
        client.answer('goal_joints', client.joints(yaw=1.0))
        said = 'no controller subscribes to /arm_controller/joint_trajectory'
        client.wait(lambda: said in last(client), 'the fault')


def test_the_list_of_positions_goes_to_the_controller_of_that_name():
    with waiting_node('position_commands', controller='arms/position_controller') as client:
        heard: list[Float64MultiArray] = []
        client.node.create_subscription(
            Float64MultiArray, 'arms/position_controller/commands', heard.append, 10
        )
        client.send('joint_states', client.joints(**dict.fromkeys(ALL_JOINTS, 0.1)))
        client.wait(lambda: heard, 'commands')
        assert heard[0].data.tolist() == [0.1] * 5


@pytest.mark.parametrize(('output', 'kept'), [('position_commands', True), ('joint_trajectory', False)])
def test_lists_of_positions_keep_step_with_the_stamps_of_measurements(output, kept):
    with waiting_node(output) as client:
        begun: list[int] = []
        client.served._loop.begun = begun.append
        message = client.joints(**dict.fromkeys(ALL_JOINTS, 0.1))
        client.send('joint_states', message)  # without a stamp
        client.wait(lambda: 'effective DoF' in last(client), 'the arm')
        message.header.stamp = client.now().to_msg()
        client.send('joint_states', message)
        client.wait(lambda: begun or not kept, 'the period')
        client.answer('goal_joints', client.joints(yaw=0.2))
        stamp = message.header.stamp
        assert begun == ([stamp.sec * 10**9 + stamp.nanosec] if kept else [])


def test_feedback_in_parts_in_any_order_with_unknown_velocities():
    with waiting_node('position_commands') as client:
        heard = Heard(client)
        arms = JointState(name=['roll', 'camera', 'yaw'], position=[0.3, 9.0, 0.1], velocity=[math.nan] * 3)
        others = JointState(name=['wrist', 'elbow', 'shoulder'], position=[0.5, 0.4, 0.2])
        client.send('joint_states', others)
        client.wait(lambda: last(client).endswith('joints: yaw, roll'), 'the rest')
        client.send('joint_states', arms)
        client.wait(lambda: heard.positions, 'commands')
        assert heard.positions[0].data.tolist() == [0.1, 0.2, 0.4, 0.3, 0.5]


def test_a_joint_measured_beyond_its_limit_comes_back_slowly():
    with waiting_node('joint_trajectory') as client:
        heard = Heard(client)
        with arm(client, start=[2.7, 0.0, 0.0, 0.0, 0.0, 0.0]):
            client.answer('goal_joints', client.joints(yaw=2.0))
            client.wait(lambda: near(client, yaw=2.0), 'the joint')
        beyond = [
            abs(point.velocities[0])
            for trajectory in heard.trajectories
            for point in trajectory.points
            if point.positions[0] > 2.5 + 1e-6
        ]
        assert beyond
        assert max(beyond) <= 0.1 * 0.5 * 2.0 + 1e-9


def test_outputs_are_named_and_checked():
    assert output_names('joint_trajectory') == ('joint_trajectory',)
    assert output_names(' joint_states,  position_commands ') == ('joint_states', 'position_commands')
    for text in ('', 'servo', 'joint_states servo', 'joint_trajectory position_commands'):
        with pytest.raises(InputError, match='parameter output'):
            output_names(text)


def test_the_action_says_what_is_missing():
    try:
        import control_msgs  # noqa: F401
    except ImportError:
        with pytest.raises(MissingError, match='needs the ROS package control_msgs'):
            action_type()
    else:
        pytest.skip('control_msgs is installed')


@pytest.mark.parametrize('name', ['joint_signs', 'joint_offsets'])
def test_signs_and_zeros_of_a_driver_are_rejected_where_they_would_be_ignored(name):
    said = f'the parameter {name} has been removed: configure signs and zeros in the driver'
    with pytest.raises(InputError, match=said), running(arm_urdf(), **{name: 'yaw: -1'}):
        pass
    with running(arm_urdf(), **{name: ''}):
        pass
