# SPDX-License-Identifier: Apache-2.0
"""Outputs to controllers, with a simulated arm on the other side, and on which clock."""

from __future__ import annotations

import itertools
import math
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from types import SimpleNamespace

import numpy as np
import pytest
from builtin_interfaces.msg import Time
from interleaved import at_step
from node_harness import Client, running
from rclpy.parameter import Parameter
from sensor_msgs.msg import JointState
from small_arm import ALL_JOINTS, ARM_JOINTS, arm_urdf
from std_msgs.msg import Float64MultiArray, String
from trajectory_msgs.msg import JointTrajectory

from ik_node.control.trajectory import JointTrajectory as Whole
from ik_node.errors import InputError, MissingError
from ik_node.ros import outputs
from ik_node.ros.conversions import seconds
from ik_node.ros.follow_joint_trajectory import action_type
from ik_node.ros.graph import graph
from ik_node.ros.interfaces import CONTROLLER_STATE
from ik_node.ros.outputs import (
    Clocks,
    JointTrajectoryTopic,
    OutputContext,
    TrajectoryOutput,
    output_names,
    trajectory_message,
)
from ik_node.sim.node import PlantNode

pytest.importorskip('mujoco')


SHARED = ['wrist', 'roll', 'elbow', 'shoulder', 'yaw', 'finger']


class Arm:
    """A simulated arm in the domain of a client, until it is ended."""

    def __init__(self, client: Client, **parameters: object) -> None:
        overrides = [
            Parameter(name, value=value) for name, value in {'robot_description': arm_urdf(), **parameters}.items()
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


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.parametrize('output', ['joint_trajectory', 'position_commands'])
def test_a_stop_and_the_end_of_the_arm_in_motion(output):
    with waiting_node(output, measured_timeout=1.0) as client:
        with arm(client, controller_joints=list(ARM_JOINTS)):
            client.answer('goal_joints', client.joints(yaw=2.4))
            client.wait(lambda: client.position('yaw')[0] > 0.5, 'the motion')
            assert client.call('ik_node/stop').success
            client.wait(lambda: near(client), 'rest')
            assert client.position('yaw')[0] < 1.5
            client.wait_said('stopped')
            assert client.call('ik_node/resume').success
            client.answer('goal_joints', client.joints(yaw=-2.0))
            client.wait(lambda: client.position('yaw')[0] < 0.0, 'the motion')
        client.wait(lambda: client.statuses and client.said()['state'] == 'faulted', 'the fault')
        reasons = 'measured for 1 s', 'no controller subscribes to'
        assert any(reason in last(client) for reason in reasons)
        assert '~/resume' in client.answer('goal_joints', client.joints(yaw=0.0)).message


@pytest.mark.slow
def test_a_controller_has_a_name_and_is_named_when_it_is_absent():
    with waiting_node('joint_trajectory', controller='arm_controller') as client:
        client.send('joint_states', client.joints(**dict.fromkeys(ALL_JOINTS, 0.0)))
        client.wait(lambda: 'effective DoF' in last(client), 'the arm')
        client.answer('goal_joints', client.joints(yaw=1.0))
        client.wait(lambda: '/arm_controller/joint_trajectory' in last(client), 'the fault')
    with waiting_node('position_commands', controller='arms/position_controller') as client:
        heard: list[Float64MultiArray] = []
        topic = 'arms/position_controller/commands'
        client.node.create_subscription(Float64MultiArray, topic, heard.append, 10)
        others = JointState(name=['wrist', 'elbow', 'shoulder'], position=[0.5, 0.4, 0.2])
        client.send('joint_states', others)  # in parts
        client.wait(lambda: last(client).endswith('joints: yaw, roll'), 'the rest')
        nan = [math.nan] * 3  # unknown velocities
        rest = JointState(name=['roll', 'camera', 'yaw'], position=[0.3, 9.0, 0.1], velocity=nan)
        client.send('joint_states', rest)
        client.wait(lambda: heard, 'commands')
        assert heard[0].data.tolist() == [0.1, 0.2, 0.4, 0.3, 0.5]


@pytest.mark.slow
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


def test_outputs_are_named_and_checked():
    assert output_names(' joint_states,  position_commands ') == ('joint_states', 'position_commands')
    for text in ('', 'servo', 'joint_states servo', 'joint_trajectory position_commands'):
        with pytest.raises(InputError, match='parameter output'):
            output_names(text)
    for name in ('joint_signs', 'joint_offsets'):  # which would be ignored: the driver has them
        with pytest.raises(InputError, match=name), running(arm_urdf(), **{name: 'yaw: -1'}):
            pass
    if find_spec('control_msgs') is None:
        with pytest.raises(MissingError, match='control_msgs'):
            action_type()


@pytest.mark.parametrize(
    ('ages', 'agree', 'said'),
    [
        ([], False, 'no stamps'),
        ([0.002, 0.3, 0.4], True, 'behind'),
        ([0.3, 0.002], True, 'behind'),
        ([0.2, 0.3], False, '0.2 s behind this clock'),
        ([-0.005], True, 'ahead'),
        ([-3.0, 0.0], False, '3 s ahead of this clock'),
        ([0.002, *[0.4] * 40], True, 'behind'),  # a busy computer
        ([1e9, 0.002, -2e9, 70.0], True, 'behind'),  # garbage
    ],
)
def test_the_fastest_message_tells_how_far_the_clocks_are_apart(ages, agree, said):
    clocks = Clocks()
    for k, age in enumerate(ages):
        now = 50.0 + 0.1 * k
        clocks.note(now, now - age)
        clocks.note(now, None)
    assert clocks.agree is agree
    assert said in clocks.gap
    clocks.note(70.0, 69.999)
    assert clocks.agree


def test_the_clocks_agree_at_every_step_while_a_measurement_is_noted():
    for number in itertools.count(1):
        clocks, seen = Clocks(), []
        clocks.note(10.0, 9.995)
        clocks.note(10.01, 10.004)
        if not at_step(number, lambda: seen.append(clocks.agree), lambda: clocks.note(10.02, 10.0179)):  # noqa: B023
            break
        assert seen == [True]
    assert number > 20


def test_the_clocks_agree_when_a_measurement_is_noted_at_any_step_of_the_question():
    for number in itertools.count(1):
        clocks = Clocks()
        clocks.note(10.0, 9.995)
        if not at_step(number, lambda: clocks.note(16.0, None), lambda: clocks.agree):  # noqa: B023
            break
    assert number > 5


def test_without_a_stamp_the_past_is_not_repeated():
    rows = np.arange(8.0).reshape(4, 2)
    trajectory = Whole(('a', 'b'), np.array([0.0, 0.01, 0.04, 1.0]), rows, 0 * rows, 0 * rows, 5.0, 0.04)
    stamped = trajectory_message(trajectory, Time(sec=7))
    assert stamped.header.stamp.sec == 7
    assert [point.time_from_start.nanosec for point in stamped.points[:3]] == [0, 10**7, 4 * 10**7]
    message = trajectory_message(trajectory, None)
    assert message.header.stamp == Time()
    assert [list(point.positions) for point in message.points] == [[4.0, 5.0], [6.0, 7.0]]


def test_without_a_stamp_a_late_motion_begins_where_it_would_be_by_then():
    rows = np.arange(8.0).reshape(4, 2)
    trajectory = Whole(('a', 'b'), np.array([0.0, 0.04, 0.3, 1.0]), rows, 0 * rows, 0 * rows, 5.0, 0.04)
    message = trajectory_message(trajectory, None, late=0.1)
    assert [list(point.positions) for point in message.points] == [[4.0, 5.0], [6.0, 7.0]]
    times = [point.time_from_start.sec + 1e-9 * point.time_from_start.nanosec for point in message.points]
    assert times == pytest.approx([0.2, 0.9])
    message = trajectory_message(trajectory, None, late=3.0)
    assert [list(point.positions) for point in message.points] == [[6.0, 7.0]]
    assert message.points[0].time_from_start.nanosec > 0
    assert len(trajectory_message(trajectory, Time(sec=7), late=3.0).points) == 4


class Sent(TrajectoryOutput):
    """Keeps what is sent, half a second late."""

    def __init__(self) -> None:
        log = SimpleNamespace(warning=lambda *_, **__: None)
        super().__init__(SimpleNamespace(clocks=Clocks(), node=SimpleNamespace(get_logger=lambda: log)))
        self.sent: list = []

    def late(self, _: float) -> float:
        return 0.5

    def send(self, message, braking) -> None:  # noqa: ARG002
        self.sent.append(message)


@pytest.mark.parametrize(('speed', 'first'), [(0.0, 0.2), (0.4, 0.7)])
def test_a_late_motion_from_rest_begins_at_its_beginning(speed: float, first: float):
    output, times = Sent(), np.array([0.0, 0.2, 0.7, 1.0])
    rest = np.zeros((4, 1))
    speeds = rest.copy()
    speeds[0] = speed
    output._send(Whole(('a',), times, times[:, None], speeds, rest, 5.0, 0.2))
    assert output.sent[0].points[0].positions[0] == first


@pytest.fixture
def subscribed(monkeypatch):
    """An output to the controller "arm", and its callback for the state of the controller."""
    monkeypatch.setitem(CONTROLLER_STATE.__dict__, 'type', String)  # control_msgs may be missing
    callbacks = {}
    node = SimpleNamespace(
        create_publisher=lambda *_, **__: None,
        create_subscription=lambda _, name, callback, *__, **___: callbacks.update({name: callback}),
    )
    heard: list = []
    time, clocks = SimpleNamespace(now=lambda: 1.0, of=lambda stamp: stamp), SimpleNamespace(agree=True)
    context = OutputContext(node, '', 'arm', time, clocks, pytest.fail, lambda *told: heard.append(told))
    JointTrajectoryTopic(context)
    return context, callbacks, heard


@pytest.mark.parametrize('data', [b'', b'\x00' * 3, bytes(200)])
def test_a_state_that_rclpy_cannot_read_is_ignored(subscribed, data):
    _, callbacks, _ = subscribed
    callbacks['arm/controller_state'](data)


def test_of_states_that_have_waited_together_the_newest_counts(subscribed, monkeypatch):
    _, callbacks, heard = subscribed
    callback = callbacks['arm/controller_state']
    state = SimpleNamespace(joint_names=['yaw'], reference=SimpleNamespace(positions=[0.5]))
    for nanosec in (100_000_000, 102_000_000, 900_000_000):
        stamp = nanosec * 1e-9
        monkeypatch.setattr(
            outputs,
            'deserialize_message',
            lambda *_, stamp=stamp: SimpleNamespace(header=SimpleNamespace(stamp=stamp), **vars(state)),
        )
        callback(b'\x00\x01\x00\x00' + struct.pack('<iI', 0, nanosec) + bytes(20))
    assert [time for _, time, _ in heard] == [0.1, 0.9]
