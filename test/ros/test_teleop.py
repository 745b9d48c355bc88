# SPDX-License-Identifier: Apache-2.0
"""A hand: twists, joint velocities and poses move the arm, and their silence ends that."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import numpy as np
import pytest
from geometry_msgs.msg import PoseStamped, TwistStamped
from node_harness import Client, running
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import JointState
from small_arm import arm_urdf
from std_msgs.msg import Bool, Int8
from std_srvs.srv import SetBool

from ik_node.control.settings import ArmSettings
from ik_node.control.teleop import DROPPED
from ik_node.model.arm import Arm
from ik_node.ros.conversions import matrix_pose
from ik_node.ros.interfaces import LATCHED
from ik_node.ros.tool_interface import _joint_velocities, _twist
from ik_node.tracks import tip_pose

pytestmark = pytest.mark.slow

READY = {'yaw': 0.3, 'shoulder': 0.4, 'elbow': 0.5, 'roll': 0.2, 'wrist': 0.3}
PERIOD = 0.02  # [s] between two commands
TOOL = ((0.0, 0.0, 1.0), (0.0, 0.0, 0.0))


@pytest.fixture(scope='module')
def arm() -> Arm:
    return Arm.from_urdf(arm_urdf(), tip_link='tool0', base_link='base_link')


class Hand:
    """Publishes commands, and what it hears of them."""

    def __init__(self, client: Client) -> None:
        node, self.client = client.node, client
        self.twists = node.create_publisher(TwistStamped, 'ik_node/delta_twist_cmds', 10)
        self.jogs = node.create_publisher(JointState, 'ik_node/delta_joint_cmds', 10)
        self.poses = node.create_publisher(PoseStamped, 'ik_node/pose_target_cmds', 10)
        self.enable = node.create_publisher(Bool, 'ik_node/enable', 10)
        self.codes: list[int] = []
        node.create_subscription(Int8, 'ik_node/servo_status', lambda m: self.codes.append(m.data), LATCHED)
        for publisher in (self.twists, self.jogs, self.poses, self.enable):
            client.wait(lambda p=publisher: p.get_subscription_count() > 0, 'the subscription')

    def repeat(self, publisher, message, count: int) -> None:
        for _ in range(count):
            publisher.publish(message)
            self.client.run(PERIOD)

    def twist(self, count: int, frame: str = 'base_link', linear=(0.0, 0.0, 0.0), angular=(0.0, 0.0, 0.0)) -> None:
        message = TwistStamped()
        message.header.frame_id = frame
        message.twist.linear.x, message.twist.linear.y, message.twist.linear.z = map(float, linear)
        message.twist.angular.x, message.twist.angular.y, message.twist.angular.z = map(float, angular)
        self.repeat(self.twists, message, count)

    def pose(self, T: np.ndarray, count: int, way=(0.0, 0.0, 0.0)) -> None:
        """Publish T (4, 4), which moves by way (3,) meanwhile."""
        for k in range(count):
            at = T.copy()
            at[:3, 3] += np.multiply(way, k / count)
            message = PoseStamped(pose=matrix_pose(at))
            message.header.frame_id = 'base_link'
            self.repeat(self.poses, message, 1)


@pytest.fixture
def hand():
    with running(arm_urdf(), speed_scaling=1.0) as client:
        client.answer('goal_joints', client.joints(**READY))
        client.wait_still()
        yield Hand(client)


@pytest.mark.parametrize('frame', ['base_link', 'tool0'])
def test_a_twist_moves_the_tool_and_its_silence_ends_that(hand, arm, frame):
    start, axis = arm.fk(hand.client.wait_still())
    along = axis if frame == 'tool0' else np.array([1.0, 0.0, 0.0])
    way = (0.0, 0.0, -0.25) if frame == 'tool0' else (-0.25, 0.0, 0.0)  # of 0.4 m/s, unitless
    hand.twist(40, frame, way)
    point, direction = arm.fk(hand.client.wait_still())
    moved = point - start
    assert -0.12 < moved @ along < -0.04
    assert np.linalg.norm(moved - (moved @ along) * along) < 0.02  # the joints brake independently
    assert direction == pytest.approx(axis, abs=0.1)
    before = hand.client.position()
    hand.client.run(0.3)
    np.testing.assert_array_equal(hand.client.position(), before)


def test_joint_velocities_move_joints(hand):
    message = JointState(name=['yaw', 'wrist'], velocity=[0.5, -0.5])
    hand.repeat(hand.jogs, message, 25)
    q = dict(zip(READY, hand.client.wait_still(), strict=True))
    assert q['yaw'] > READY['yaw'] + 0.05
    assert q['wrist'] < READY['wrist'] - 0.05
    assert q['elbow'] == pytest.approx(READY['elbow'], abs=1e-9)


@pytest.mark.parametrize('kind', ['twist', 'jog'])
def test_a_command_that_turns_turns_the_arm_at_a_low_goal_speed_too(hand, kind):
    hand.client.set_parameters(goal_speed=0.05)

    def move(sign: float) -> float:
        if kind == 'twist':
            hand.twist(40, linear=(0.0, 0.25 * sign, 0.0))
        else:
            hand.repeat(hand.jogs, JointState(name=['yaw'], velocity=[sign]), 40)
        return hand.client.position('yaw')[0]

    begin, there, back = hand.client.position('yaw')[0], move(1.0), move(-1.0)
    assert there - begin > 0.02
    assert there - back > 0.3 * (there - begin), 'the goal was not far ahead'


@pytest.mark.parametrize(('units', 'shares'), [('unitless', (0.3, 0.2, 0.4)), ('speed_units', (1.0, 1.0, 1.0))])
def test_unitless_commands_are_shares_of_the_scales(arm, units, shares):
    linear, angular, joint = shares
    settings = ArmSettings(
        command_in_type=units, scale_linear=0.3, scale_rotational=0.2, scale_joint=0.4, speed_scaling=1.0
    )
    twist = TwistStamped()
    twist.twist.linear.x, twist.twist.angular.z = 0.5, -0.5
    found = _twist(twist, settings)
    assert (found[0][0], found[1][2]) == pytest.approx((0.5 * linear, -0.5 * angular))
    snapshot = SimpleNamespace(tool=SimpleNamespace(arm=arm))
    jog = JointState(name=['yaw'], velocity=[0.5])
    assert _joint_velocities(jog, snapshot, settings).max() == pytest.approx(0.5 * joint)


def test_poses_move_nothing_until_the_clutch_is_closed(hand, arm):
    before = hand.client.position()
    start, axis = arm.fk(before)
    T = tip_pose(start, axis, *TOOL)
    hand.pose(T, 10, way=(-0.03, 0.0, 0.02))
    hand.client.wait(lambda: -1 in hand.codes, 'the status')
    hand.client.wait_said('the clutch is open')
    np.testing.assert_array_equal(hand.client.position(), before)
    T[:3, 3] = 0.0, 0.0, 2.0  # far away: the hand counts from where it is
    for _ in range(60):
        T[:3, 3] += np.array([-0.03, 0.0, 0.02]) / 60
        hand.enable.publish(Bool(data=True))
        hand.pose(T, 1)
    hand.client.wait(lambda: 0 in hand.codes, 'the end of that status')
    assert arm.fk(hand.client.wait_still())[0] == pytest.approx(np.add(start, [-0.03, 0.0, 0.02]), abs=4e-3)


def test_a_clutch_of_another_reliability_stays_open(hand, arm):
    enable = hand.client.node.create_publisher(
        Bool, 'ik_node/enable', QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
    )
    before = hand.client.position()
    T = tip_pose(*arm.fk(before), *TOOL)
    for _ in range(20):
        enable.publish(Bool(data=True))
        T[:3, 3] += [-1e-3, 0.0, 1e-3]
        hand.pose(T, 1)
    hand.client.wait_said('the clutch is open')
    np.testing.assert_array_equal(hand.client.position(), before)


def test_nonsense_pauses_and_stops_move_nothing(hand):
    before = hand.client.position()
    hand.twist(5, linear=(np.nan, 0.0, 0.0))
    hand.twist(5, frame='nowhere', linear=(1.0, 0.0, 0.0))
    hand.repeat(hand.jogs, JointState(name=['yaw'], velocity=[]), 5)
    hand.repeat(hand.jogs, JointState(name=['nose'], velocity=[1.0]), 5)
    hand.client.wait(lambda: -1 in hand.codes, 'the status')
    for act, undo in (('pause_servo', 'pause_servo'), ('stop', 'resume')):
        assert hand.client.call(f'ik_node/{act}', True if act == 'pause_servo' else None).success
        hand.twist(5, linear=(1.0, 0.0, 0.0))
        np.testing.assert_allclose(hand.client.position(), before, atol=1e-12)
        assert hand.client.call(f'ik_node/{undo}', False if act == 'pause_servo' else None).success
    hand.twist(10, linear=(-0.2, 0.0, 0.0))
    hand.client.wait(lambda: abs(hand.client.position() - before).max() > 1e-3, 'the motion')
    hand.twist(20, linear=(-0.2, 0.0, 0.0))
    at = hand.client.position()
    assert hand.client.call('ik_node/pause_servo', on=True).success
    assert abs(hand.client.wait_still() - at).max() < 0.8, 'a pause brakes: the roll is fast here'


SOON = 0.2  # [s] in which a thread ends that nothing holds up; one that is held up does not end at all
LONG = 60.0  # [s]


@pytest.fixture
def teleop():
    """The hand of a node, whose own thread has ended: each test takes its place."""
    with running(arm_urdf()) as client:
        hand = client.served._tools[0].teleop
        hand.close()
        hand._closing = False
        yield hand


def test_a_pause_ends_a_command_that_is_being_stored(teleop):
    inside, go_on = threading.Event(), threading.Event()
    now = teleop._time.now

    class Waiting:
        """The time, which the callback of a command asks for before it stores that."""

        def now(self):
            inside.set()
            go_on.wait(LONG)
            return now()

    teleop._time = Waiting()
    storing = threading.Thread(target=teleop._store, args=['twist', TwistStamped()])
    storing.start()
    assert inside.wait(LONG)
    pausing = threading.Thread(target=teleop._pause, args=(SetBool.Request(data=True), SetBool.Response()))
    pausing.start()
    pausing.join(SOON)
    go_on.set()
    storing.join(LONG)
    pausing.join(LONG)
    assert teleop._paused
    assert not teleop._new
    kind, _, received = teleop._command
    assert (kind, received) == ('twist', -float('inf'))


def test_a_press_while_commands_are_paused_does_not_count(teleop):
    def pause(paused: bool) -> None:
        teleop._pause(SetBool.Request(data=paused), SetBool.Response())

    def why(*closed: bool) -> str:
        """Why a pose is ignored after messages on ~/enable."""
        for one in closed:
            teleop._enable(Bool(data=one))
        hand = teleop._teleop
        hand.take(hand.ready(), np.eye(4), teleop._time.now(), None, teleop._settings())
        return hand.ignored

    assert not why(True)
    pause(True)
    teleop._enable(Bool(data=False))
    teleop._enable(Bool(data=True))
    pause(False)
    assert why(True) == DROPPED
    pause(False)  # commands are accepted already
    assert not why(False, True)
    pause(False)
    assert not why(True)
