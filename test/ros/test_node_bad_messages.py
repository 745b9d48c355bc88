# SPDX-License-Identifier: Apache-2.0
"""Bad messages: each is rejected with its reason on ~/status, the motion goes on as if it had not come."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import Pose, PoseArray, PoseStamped, Quaternion
from node_harness import Client, running
from rclpy.duration import Duration
from sensor_msgs.msg import JointState
from small_arm import ARM_JOINTS, arm_urdf
from std_msgs.msg import Header

from ik_node.errors import InputError
from ik_node.model.arm import Arm
from ik_node.ros import interfaces
from ik_node.ros.goals.goal_requests import JointsRequest
from ik_node.tracks.curves import tip_pose

HOUR = Duration(seconds=3600.0)


@pytest.fixture(scope='module')
def arm() -> Arm:
    return Arm.from_urdf(arm_urdf(), tip_link='tool0', base_link='base_link')


@pytest.fixture(scope='module')
def client():
    with running(arm_urdf(), speed_scaling=1.0, goal_timeout=1.0) as client:
        yield client


def good(client: Client) -> PoseStamped:
    return client.pose(tip_pose((0.4, 0.1, 0.3), (1.0, 0.0, 0.0), (0.0, 0.0, 1.0), (0.0, 0.0, 0.0)))


def stamped(message, time) -> PoseStamped:
    message.header.stamp = time.to_msg()
    return message


def changed(message, path: str, value):
    """Set one field of a message, such as pose.position.x, and return the message."""
    *parents, name = path.split('.')
    part = message
    for parent in parents:
        part = getattr(part, parent)
    setattr(part, name, value)
    return message


BAD_POSES = {
    'nan in the position': ('pose.position.x', math.nan, 'the position must be finite'),
    'inf in the position': ('pose.position.z', -math.inf, 'the position must be finite'),
    'a place far from all': ('pose.position.x', 1e300, 'position must be within 1e+09 m'),
    'nan in the quaternion': ('pose.orientation.y', math.nan, 'the quaternion must be finite'),
    'inf in the quaternion': ('pose.orientation.w', math.inf, 'the quaternion must be finite'),
    'zero quaternion': ('pose.orientation', Quaternion(w=0.0), 'the quaternion must have length 1'),
    'long quaternion': ('pose.orientation', Quaternion(w=2.0), 'got [0.0, 0.0, 0.0, 2.0] of length 2'),
    'unknown frame': ('header.frame_id', 'base_lnk', 'did you mean "base_link"'),
    'frame with a slash': (
        'header.frame_id',
        '/base_link',
        'is not a link of robot "little"',
    ),
    'negative stamp': ('header.stamp', Time(sec=-5), 'old, but goal_timeout allows 1 s'),
}

BAD_JOINTS = {
    'unknown name': (['yaw', 'neck'], [0.0, 0.0], 'unknown joints: "neck"'),
    'fixed joint': (['stand'], [0.0], 'unknown joints: "stand"'),
    'no names': ([], [0.0, 0.0], 'got 2 positions for 0 names'),
    'too few positions': (['yaw', 'elbow'], [0.0], 'got 1 positions for 2 names'),
    'the same name twice': (['yaw', 'yaw'], [0.0, 1.0], 'given twice: "yaw"'),
    'nan': (['yaw'], [math.nan], 'not finite: "yaw"'),
    'inf': (['yaw'], [math.inf], 'not finite: "yaw"'),
    'beyond a limit': (['elbow'], [2.6], 'joint "elbow" cannot move to 2.6, its limits are -2.5 to 2.5'),
}


def check_rejected(client: Client, topic: str, message, says: str) -> None:
    """The message is rejected for that reason while the arm moves, which goes on to where it was going."""
    aim = client.joints(yaw=-0.2 if client.position('yaw')[0] > 0.0 else 0.2)
    client.answer('goal_joints', aim)
    status = client.answer(topic, message)
    assert status.level == DiagnosticStatus.ERROR
    assert status.message.startswith(f'{topic} rejected: ')
    said = {pair.key: pair.value for pair in status.values}
    assert said['status'] == 'rejected'
    assert says in said['reason']
    client.wait(lambda: client.position('yaw') == pytest.approx(aim.position[0]), 'the goal before')
    last = client.samples[-1]
    assert np.isfinite(last.position).all()


@pytest.mark.parametrize('name', BAD_POSES)
def test_a_bad_pose_is_rejected(client, name):
    path, value, says = BAD_POSES[name]
    check_rejected(client, 'goal_pose', changed(good(client), path, value), says)


def test_a_stale_pose_is_rejected(client):
    check_rejected(client, 'goal_pose', stamped(good(client), client.now() - HOUR), '3.6e+03 s old')


def test_a_pose_from_the_future_is_rejected(client):
    check_rejected(client, 'goal_pose', stamped(good(client), client.now() + HOUR), 's in the future')


def test_goal_timeout_can_be_changed(client):
    old = client.now() - Duration(seconds=5.0)
    check_rejected(client, 'goal_pose', stamped(good(client), old), 'goal_timeout allows 1 s')
    assert client.set_parameters(goal_timeout=60.0)[0].successful
    assert client.answer('goal_pose', stamped(good(client), old)).message.startswith('solved')
    assert client.set_parameters(goal_timeout=1.0)[0].successful


def test_a_goal_that_has_waited_longer_than_goal_timeout_is_rejected(client):
    (tool,) = client.served._tools
    request = JointsRequest('goal_joints', client.joints(yaw=0.1), tool.goals)
    client.run(1.1)
    with pytest.raises(InputError, match='goal_timeout allows 1 s'):
        request.wanted(tool.snapshot())


def test_bad_points_are_rejected(client):
    check_rejected(client, 'goal_point', client.point((math.nan, 0.0, 0.0)), 'must be finite')
    check_rejected(client, 'goal_point', client.point((0.4, 0.0, 0.2), frame='camera'), 'tf2')


@pytest.mark.parametrize('name', BAD_JOINTS)
def test_bad_joint_goals_are_rejected(client, name):
    names, positions, says = BAD_JOINTS[name]
    check_rejected(client, 'goal_joints', JointState(name=names, position=positions), says)


def test_a_bad_goal_does_not_take_the_place_of_a_good_one(client, arm):
    """Both come between two looks of the node: the newest good one counts."""
    for _ in range(10):
        message = good(client)
        client.send('goal_pose', message)
        client.send('goal_pose', changed(good(client), 'pose.position.x', math.nan))
        stamp = f'{message.header.stamp.sec}.{message.header.stamp.nanosec:09d}'
        client.wait(
            lambda stamp=stamp: any(
                {'solved', stamp} <= {pair.value for pair in status.values}
                for status in list(client.statuses)
            ),
            'the good one to be solved',
        )
    assert arm.fk(client.wait_still())[0] == pytest.approx([0.4, 0.1, 0.3], abs=2e-6)


def test_a_flood_does_not_stop_the_node(client, arm):
    client.wait_still()
    mark = len(client.samples)
    for index in range(3000):
        message = good(client)
        if index % 2:
            message.pose.position.x = math.nan
        else:
            message.pose.position.y = 0.1 * math.sin(index)
        client.send('goal_pose', message)
    client.answer('goal_pose', good(client))
    client.wait(lambda: client.said()['status'] == 'solved', 'the last goal to be served')
    q = client.wait_still()
    assert arm.fk(q)[0] == pytest.approx([0.4, 0.1, 0.3], abs=2e-6)
    index = [client.samples[-1].name.index(name) for name in ARM_JOINTS]
    positions = np.array([np.array(sample.position)[index] for sample in client.samples[mark:]])
    assert np.isfinite(positions).all()
    assert (np.abs(positions) <= 2.5).all()
    assert client.call('ik_node/home').success


def test_a_stop_waits_for_no_message(client):
    client.world.busy.add(client.served)  # as long as rclpy converts a message
    assert client.call('ik_node/stop').success
    client.wait_still()
    assert client.call('ik_node/resume').success
    assert not client.call('ik_node/hand_guide', True).success  # it is not measured
    client.world.busy.clear()


@pytest.mark.parametrize(
    'topic',
    [
        value
        for value in vars(interfaces).values()
        if isinstance(value, interfaces.SubscribedTopic)
        and value.type is not None  # its package is installed
    ],
)
def test_large_messages_are_refused_before_they_are_converted(topic, monkeypatch):
    """Without a node: what rclpy gives to the callback of a subscription."""
    taken, converted, logged, refused = [], [], [], []
    log = SimpleNamespace(error=lambda text, **_: logged.append(text))
    node = SimpleNamespace(create_subscription=lambda *arguments, **_: arguments[2], get_logger=lambda: log)
    monkeypatch.setattr(
        interfaces, 'deserialize_message', lambda data, _: converted.append(len(data)) or Header()
    )
    large, small = bytes(topic.largest + 1), bytes(topic.largest)
    topic.subscription(node, taken.append)(large, {})
    assert (len(taken), len(logged)) == (0, 1)
    topic.subscription(node, taken.append, refuse=lambda *_: refused.append(1))(large, {})
    assert (len(taken), len(logged), len(refused)) == (0, 1, 1)
    assert max(converted, default=0) <= interfaces.HEADER
    topic.subscription(node, taken.append)(small, {})
    assert len(taken) == 1


def test_a_path_of_many_poses_is_rejected_by_its_size(client):
    message = PoseArray(poses=[Pose()] * 5000)
    message.header.stamp.sec = 7
    said = client.answer('goal_path', message)
    values = {pair.key: pair.value for pair in said.values}
    assert (values['status'], '7.000000000' in values.values()) == ('rejected', True)
