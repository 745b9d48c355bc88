# SPDX-License-Identifier: Apache-2.0
"""Goals as messages, and bad ones: each is rejected with its reason, and the motion goes on."""

from __future__ import annotations

import math

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import Pose, PoseArray, PoseStamped, PoseWithCovarianceStamped, Quaternion
from node_harness import Client, running
from rclpy.duration import Duration
from sensor_msgs.msg import JointState
from small_arm import ARM_JOINTS, arm_urdf

from ik_node.errors import InputError
from ik_node.model.arm import Arm
from ik_node.ros.conversions import matrix_pose
from ik_node.ros.goals import JointsRequest
from ik_node.tracks import tip_pose

pytestmark = pytest.mark.slow


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


def coned(client: Client, cone: float = 0.3, tolerance: float = 0.005) -> PoseWithCovarianceStamped:
    """The good goal with a cone [rad] and a tolerance [m]."""
    pose = good(client)
    message = PoseWithCovarianceStamped(header=pose.header)
    message.pose.pose = pose.pose
    put(message, 0, tolerance**2)
    put(message, 21, cone**2)
    return message


def put(message: PoseWithCovarianceStamped, entry: int, value: float) -> None:
    message.pose.covariance[entry] = value


BAD = {  # a row for each kind; test_conversions has all others
    'nan': ('goal_pose', lambda m: setattr(m.pose.position, 'x', math.nan), 'position'),
    'quaternion': ('goal_pose', lambda m: setattr(m.pose, 'orientation', Quaternion(w=2.0)), 'of length 2'),
    'frame': ('goal_pose', lambda m: setattr(m.header, 'frame_id', 'base_lnk'), '"base_link"'),
    'old': ('goal_pose', lambda m: setattr(m.header.stamp, 'sec', -5), 'goal_timeout'),
    'unknown joint': ('goal_joints', lambda m: setattr(m, 'name', ['neck']), '"neck"'),
    'beyond a limit': ('goal_joints', lambda m: setattr(m, 'position', [2.6]), '-2.5 to 2.5'),
    'nan of a cone': ('goal_cone', lambda m: setattr(m.pose.pose.position, 'x', math.nan), 'position'),
    'tolerance below 0': ('goal_cone', lambda m: put(m, 0, -1e-6), 'covariance[0], the square of the tolerance'),
    'tolerance nan': ('goal_cone', lambda m: put(m, 0, math.nan), 'must be from 0 to 1 [m^2], got nan'),
    'cone below 0': ('goal_cone', lambda m: put(m, 21, -0.1), 'covariance[21], the square of the half-angle'),
    'cone beyond pi': ('goal_cone', lambda m: put(m, 21, 9.9), 'must be from 0 to 9.8696 [rad^2], got 9.9'),
    'frame of a point': ('goal_point', lambda m: setattr(m.header, 'frame_id', 'camera'), 'tf2'),
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


@pytest.mark.parametrize('name', BAD)
def test_a_bad_goal_is_rejected(client, name):
    topic, spoil, says = BAD[name]
    makers = {
        'goal_pose': lambda: good(client),
        'goal_cone': lambda: coned(client),
        'goal_point': lambda: client.point((0.4, 0.0, 0.2)),
        'goal_joints': lambda: JointState(name=['elbow'], position=[0.1]),
    }
    message = makers[topic]()
    spoil(message)
    check_rejected(client, topic, message, says)


def test_a_goal_with_a_cone_is_met_within_it(client, arm):
    """A direction that the arm cannot take at the position, and a position just beyond its reach."""
    client.wait_still()
    message = coned(client, math.pi)
    assert client.answer('goal_cone', message).message.startswith('solved')
    assert arm.fk(client.wait_still())[0] == pytest.approx([0.4, 0.1, 0.3], abs=2e-6)
    for cone in (0.0, 0.4):
        message = coned(client, cone)
        axis = np.array([1.0, 0.0, 0.0])
        assert client.answer('goal_cone', message).message.startswith('solved')
        reached = arm.fk(client.wait_still())[1]
        assert math.acos(min(1.0, float(reached @ axis))) <= cone + 2e-4
    reach = arm.fk(np.zeros(arm.n))[0]
    message = coned(client, math.pi, 0.01)
    message.pose.pose.position.x, message.pose.pose.position.z = reach[0] + 0.004, reach[2]
    message.pose.pose.position.y = 0.0
    assert client.answer('goal_cone', message).message.startswith('solved')
    put(message, 0, 0.0)
    assert client.answer('goal_cone', message).message.startswith('unreachable')


def test_goal_timeout_can_be_changed(client):
    old = client.now() - Duration(seconds=5.0)
    check_rejected(client, 'goal_pose', stamped(good(client), old), 'goal_timeout')
    assert client.set_parameters(goal_timeout=60.0)[0].successful
    assert client.answer('goal_pose', stamped(good(client), old)).message.startswith('solved')
    assert client.set_parameters(goal_timeout=1.0)[0].successful


def test_a_goal_that_has_waited_longer_than_goal_timeout_is_rejected(client):
    (tool,) = client.served._tools
    request = JointsRequest('goal_joints', client.joints(yaw=0.1), tool.goals)
    client.run(1.1)
    with pytest.raises(InputError, match='goal_timeout allows 1 s'):
        request.resolve(tool.snapshot())


def test_a_bad_goal_does_not_take_the_place_of_a_good_one(client, arm):
    """Both come between two looks of the node: the newest good one counts."""
    message, bad = good(client), good(client)
    bad.pose.position.x = math.nan
    client.send('goal_pose', message)
    client.send('goal_pose', bad)
    stamp = f'{message.header.stamp.sec}.{message.header.stamp.nanosec:09d}'
    client.wait(
        lambda: any({'solved', stamp} <= {pair.value for pair in s.values} for s in client.statuses),
        'the good one to be solved',
    )
    assert arm.fk(client.wait_still())[0] == pytest.approx([0.4, 0.1, 0.3], abs=2e-6)


def test_a_flood_does_not_stop_the_node(client, arm):
    client.wait_still()
    mark = len(client.samples)
    for index in range(500):
        message = good(client)
        message.pose.position.x = math.nan if index % 2 else 0.4
        message.pose.position.y = 0.1 * math.sin(index)
        client.send('goal_pose', message)
    client.answer('goal_pose', good(client))
    client.wait(lambda: client.said()['status'] == 'solved', 'the last goal to be served')
    assert arm.fk(client.wait_still())[0] == pytest.approx([0.4, 0.1, 0.3], abs=2e-6)
    positions = np.array([sample.position for sample in client.samples[mark:]])
    assert np.isfinite(positions).all()
    assert client.call('ik_node/home').success


def test_a_stop_waits_for_no_message(client):
    client.world.busy.add(client.served)  # as long as rclpy converts a message
    assert client.call('ik_node/stop').success
    client.wait_still()
    assert client.call('ik_node/resume').success
    assert not client.call('ik_node/hand_guide', True).success  # it is not measured
    client.world.busy.clear()


def test_a_path_of_many_poses_is_rejected_by_its_size(client):
    message = PoseArray(poses=[Pose()] * 5000)
    message.header.stamp.sec = 7
    said = client.answer('goal_path', message)
    values = {pair.key: pair.value for pair in said.values}
    assert (values['status'], '7.000000000' in values.values()) == ('rejected', True)


START = {'yaw': 0.3, 'shoulder': 0.5, 'elbow': 0.9, 'roll': 0.4, 'wrist': 0.6}


@pytest.fixture
def placed():
    with running(arm_urdf()) as placed:
        placed.send('goal_joints', placed.joints(**START))
        placed.wait(lambda: np.abs(placed.position() - list(START.values())).max() < 1e-6, 'the start')
        placed.wait_still()
        yield placed


def path(*poses: tuple, frame: str = 'base_link') -> PoseArray:
    """A path through tools, each (position, direction)."""
    message = PoseArray(poses=[matrix_pose(tip_pose(*pose, (0.0, 0.0, 1.0), (0.0, 0.0, 0.0))) for pose in poses])
    message.header.frame_id = frame
    return message


def test_a_path_is_followed_to_its_end_over_its_corners(placed, arm):
    start, direction = arm.fk(list(START.values()))
    corner, end = np.add(start, [0.0, 0.08, 0.03]), np.add(start, [-0.05, 0.0, 0.05])
    message = path((corner, direction), (end, direction))
    message.header.stamp = placed.now().to_msg()
    mark = len(placed.samples)
    status = placed.answer('goal_path', message)
    assert status.level == DiagnosticStatus.OK
    values = {pair.key: pair.value for pair in status.values}
    assert (values['status'], values['state']) == ('solved', 'moving')
    assert values['goal_stamp'] == f'{message.header.stamp.sec}.{message.header.stamp.nanosec:09d}'
    placed.wait_said('arrived')
    assert placed.said()['goal_stamp'] == values['goal_stamp']
    rows = [[s.position[s.name.index(name)] for name in ARM_JOINTS] for s in placed.samples[mark:]]
    tools = [arm.fk(q) for q in rows]
    assert max(np.linalg.norm(tool[1] - direction) for tool in tools) <= math.radians(0.1)
    points = np.array([tool[0] for tool in tools])
    np.testing.assert_allclose(points[-1], end, atol=1e-5)
    assert min(np.linalg.norm(points - corner, axis=1)) < 2e-3


def test_bad_paths_are_rejected(placed, arm):
    start, direction = arm.fk(list(START.values()))
    before = placed.position()
    for spoil, reason in (
        (lambda m: m.poses.clear(), 'got 0'),
        (lambda m: m.poses.extend(m.poses * 100), 'got 101'),
        (lambda m: setattr(m.poses[0].position, 'x', math.nan), 'pose 1: '),
        (lambda m: setattr(m.header, 'frame_id', 'nowhere'), 'nowhere'),
    ):
        message = path((np.add(start, [0.0, 0.05, 0.0]), direction))
        spoil(message)
        status = placed.answer('goal_path', message)
        assert status.message.startswith('goal_path rejected: ')
        assert reason in status.message
    status = placed.answer('goal_path', path((np.add(start, [2.0, 0.0, 0.0]), direction)))
    assert status.level == DiagnosticStatus.ERROR
    assert ' of 2 m: ' in status.message
    np.testing.assert_array_equal(placed.wait_still(), before)


def test_parameters_of_paths(placed, arm):
    start, direction = arm.fk(list(START.values()))
    assert all(r.successful for r in placed.set_parameters(path_partial=True, path_corners='blend'))
    status = placed.answer('goal_path', path((np.add(start, [2.0, 0.0, 0.0]), direction)))
    assert status.level == DiagnosticStatus.WARN
    assert status.message.startswith('unreachable: after 0.')
    placed.wait_said('arrived')
    assert not placed.set_parameters(path_corners='round')[0].successful


def test_a_path_waits_for_rest_and_a_stop_ends_it(placed, arm):
    start, direction = arm.fk(list(START.values()))
    placed.answer('goal_path', path((np.add(start, [0.0, 0.1, 0.0]), direction)))
    status = placed.answer('goal_path', path((start, direction)))
    assert 'rejected: the arm is moving' in status.message
    assert placed.call('ik_node/stop').success
    placed.wait_said('stopped')
    placed.wait_still()
    status = placed.answer('goal_path', path((start, direction)))
    assert 'resume' in status.message
