# SPDX-License-Identifier: Apache-2.0
"""ik_node: goals in, joints out, limits by parameters, and what it says about all that."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticStatus
from node_harness import Client, running
from rosgraph_msgs.msg import Clock
from small_arm import ALL_JOINTS, ARM_JOINTS, arm_urdf, folding_urdf
from std_msgs.msg import String
from visualization_msgs.msg import Marker, MarkerArray

from ik_node.model.arm import Arm
from ik_node.model.urdf.reader import load_description, read_urdf
from ik_node.ros import interfaces
from ik_node.ros.conversions import seconds
from ik_node.ros.graph import graph
from ik_node.ros.interfaces import LATCHED, Interface, PublishedTopic, Service, SubscribedTopic
from ik_node.tracks import tip_pose

TOOL = ((0.0, 0.0, 1.0), (0.0, 0.0, 0.0))
SPEED = 2.0  # [rad/s], of every hinge in arm_urdf
READY = np.array([0.3, 0.4, 0.5, 0.2, 0.3])


@pytest.fixture(scope='module')
def arm() -> Arm:
    return Arm.from_urdf(arm_urdf(), tip_link='tool0', base_link='base_link')


@pytest.fixture(scope='module')
def client():
    """A node at rest somewhere; tests that share it leave its parameters as they were."""
    with running(arm_urdf(), speed_scaling=1.0) as client:
        yield client


def goal_at(arm: Arm, q) -> np.ndarray:
    """A pose of the tip that joints q reach, with some roll."""
    return tip_pose(*arm.fk(q), *TOOL)


def reached(client: Client, arm: Arm, T: np.ndarray, message) -> np.ndarray:
    """Send a goal pose, wait for rest and check that the tool is there; return the joints."""
    status = client.answer('goal_pose', message)
    assert status.level == DiagnosticStatus.OK, status.message
    q = client.wait_still()
    position, direction = arm.fk(q)
    assert position == pytest.approx(T[:3, 3], abs=2e-6)
    assert direction == pytest.approx(T[:3, 2], abs=2e-6)
    return q


@pytest.mark.slow
def test_a_pose_is_reached(client, arm):
    T = goal_at(arm, READY)
    reached(client, arm, T, client.pose(T))
    said = client.said()
    assert said['status'] == 'solved'
    assert float(said['position_error']) <= 1e-6
    assert float(said['direction_error']) <= 1e-6
    assert said['frame'] == 'base_link'
    assert said['reason'] == ''
    assert int(said['restarts']) >= 0
    assert float(said['solve_time']) > 0.0
    assert float(said['goal_stamp']) > 1e9


def test_all_joints_that_move_are_published(client):
    client.wait_still()
    sample = client.samples[-1]
    assert sorted(sample.name) == sorted(ALL_JOINTS)
    assert len(sample.position) == len(sample.velocity) == len(ALL_JOINTS)
    assert not list(sample.effort)
    stamps = [seconds(message.header.stamp) for message in client.samples[-20:]]
    assert all(a < b for a, b in itertools.pairwise(stamps))


def test_a_goal_out_of_reach_stretches_the_arm_towards_it(client, arm):
    status = client.answer('goal_point', client.point([3.0, 0.0, 0.2]))
    assert status.level == DiagnosticStatus.WARN
    assert client.said()['status'] == 'unreachable'
    assert client.said()['reason']
    assert arm.fk(client.wait_still())[0] == pytest.approx([0.7, 0.0, 0.2], abs=1e-2)


@pytest.mark.slow
def test_the_roll_that_a_goal_leaves_free_turns_the_jaw_as_the_pose_says():
    """An arm whose last joint is the tool axis: the pose's x axis, which position and direction leave."""
    text = load_description(Path(__file__).resolve().parents[2] / 'urdf' / 'so101_like.urdf.xacro')
    arm = Arm.from_urdf(text, 'tool0')
    q = np.array([0.2, 0.1, 0.3, 0.4, 0.7])
    lateral = arm.frames(q)[-1]
    with running(text, speed_scaling=1.0) as client:
        T = tip_pose(*arm.fk(q), *TOOL)
        T[:3, :3] = np.column_stack([lateral, np.cross(T[:3, 2], lateral), T[:3, 2]])
        status = client.answer('goal_pose', client.pose(T))
        assert status.level == DiagnosticStatus.OK, status.message
        client.wait(
            lambda: np.allclose(arm.frames(client.position(*arm.joint_names))[-1], lateral, atol=1e-4),
            'the jaw to turn',
        )


@pytest.mark.slow
@pytest.mark.parametrize('frame', ['', 'world', 'l3', 'left'])
def test_goals_may_be_in_the_frame_of_any_link(client, arm, frame):
    robot = read_urdf(arm_urdf())
    start = [0.2, 0.1, 0.6, 0.1, 0.4]
    client.answer('goal_joints', client.joints(**dict(zip(ARM_JOINTS, start, strict=True))))
    client.wait(lambda: client.position() == pytest.approx(start), 'the start')
    values = dict(zip(ARM_JOINTS, client.wait_still(), strict=True))
    base = robot.link_pose('base_link', values)
    T_base_frame = np.linalg.inv(base) @ robot.link_pose(frame or 'base_link', values)
    point = arm.fk([-0.4, 0.2, 0.9, 0.0, 0.2])[0]
    T = goal_at(arm, READY)
    reached(client, arm, T, client.pose(np.linalg.inv(T_base_frame) @ T, frame))
    if not frame or frame == 'world':  # which does not move with the arm
        seen = np.linalg.inv(T_base_frame) @ [*point, 1.0]
        assert client.answer('goal_point', client.point(seen[:3], frame)).message.startswith('solved')
        assert arm.fk(client.wait_still())[0] == pytest.approx(point, abs=2e-6)


def test_joint_goals_move_the_joints_named_and_mimics_follow(client):
    client.answer('goal_joints', client.joints(yaw=-0.5, finger=0.03))
    client.wait(lambda: client.position('yaw', 'finger') == pytest.approx([-0.5, 0.03]), 'the joints')
    client.wait_still()
    assert client.position('other_finger') == pytest.approx(-0.03)
    closing = [s for s in client.samples if s.velocity[s.name.index('finger')] > 1e-3]
    assert closing
    for sample in closing:
        velocity = dict(zip(sample.name, sample.velocity, strict=True))
        assert velocity['other_finger'] == -velocity['finger']
    client.answer('goal_joints', client.joints(finger=0.0))
    client.wait(lambda: client.position('finger') == 0.0, 'the finger')
    assert client.position('yaw') == pytest.approx(-0.5)


@pytest.mark.slow
def test_a_joint_goal_in_a_stream_counts_once(client, arm):
    """joint_state_publisher_gui repeats its sliders for ever, which must not overrule a pose."""
    goal = client.joints(yaw=0.7)
    timer = client.node.create_timer(0.05, lambda: client.send('goal_joints', goal))
    try:
        client.wait(lambda: client.position('yaw') == pytest.approx(0.7), 'the joint')
        client.wait_said('arrived')
        count = len(client.about('goal_joints'))
        T = goal_at(arm, READY)
        reached(client, arm, T, client.pose(T))
        assert len(client.about('goal_joints')) == count
    finally:
        client.node.destroy_timer(timer)
    assert client.position('yaw') == pytest.approx(READY[0], abs=1e-5)


@pytest.mark.slow
def test_home_and_stop(client):
    client.call('ik_node/home')
    client.wait(lambda: client.position() == pytest.approx([0.0] * 5, abs=1e-9), 'home')
    assert client.set_parameters(speed_scaling=0.1)[0].successful
    client.answer('goal_joints', client.joints(yaw=2.0, shoulder=-1.0))
    client.wait(lambda: client.position('yaw') > 0.1, 'the arm to be on its way')
    assert client.call('ik_node/stop').success
    rest = client.wait_still()
    assert 0.1 < rest[0] < 1.99
    assert not client.call('ik_node/home').success
    assert 'call ~/resume' in client.answer('goal_joints', client.joints(yaw=0.0)).message
    assert client.call('ik_node/resume').success
    assert client.set_parameters(speed_scaling=1.0)[0].successful
    assert client.call('ik_node/home').success
    client.wait(lambda: client.position() == pytest.approx([0.0] * 5, abs=1e-9), 'home')


def test_the_newest_goal_wins(client, arm):
    rng = np.random.default_rng(3)
    for q in rng.uniform(-1.0, 1.0, (50, 5)):
        client.send('goal_pose', client.pose(goal_at(arm, q)))
    T = goal_at(arm, READY)
    message = client.pose(T)
    client.send('goal_pose', message)
    stamp = f'{message.header.stamp.sec}.{message.header.stamp.nanosec:09d}'
    client.wait(lambda: client.said()['goal_stamp'] == stamp, 'the status of the last goal')
    assert arm.fk(client.wait_still())[0] == pytest.approx(T[:3, 3], abs=2e-6)


def test_markers_show_the_wanted_and_the_present_axis(client, arm):
    T = goal_at(arm, READY)
    reached(client, arm, T, client.pose(T))

    def at_goal():
        markers = {marker.id: marker for marker in client.markers[-1].markers}
        if len(markers) < 6:
            return None
        tool = markers[2].points[0]
        return markers if [tool.x, tool.y, tool.z] == pytest.approx(T[:3, 3], abs=1e-5) else None

    wanted, ball, present, _, _, trail = client.wait(at_goal, 'markers at the goal').values()
    assert wanted.header.frame_id == 'base_link'
    assert ball.action == Marker.DELETE
    for arrow in (wanted, present):
        tail, tip = (np.array([p.x, p.y, p.z]) for p in arrow.points)
        assert (tip - tail) / np.linalg.norm(tip - tail) == pytest.approx(T[:3, 2], abs=1e-4)
    assert trail.points[-1] == present.points[0]
    late = []
    latecomer = client.node.create_subscription(MarkerArray, 'ik_node/markers', late.append, LATCHED)
    client.wait(lambda: late, 'the markers for an RViz that starts later')
    client.node.destroy_subscription(latecomer)
    assert late[0] == client.markers[-1]
    client.answer('goal_point', client.point([3.0, 0.0, 0.2]))
    client.wait(lambda: client.markers[-1].markers[1].action == Marker.ADD, 'the ball of a point')
    assert client.markers[-1].markers[1].color.g < wanted.color.g
    client.answer('goal_joints', client.joints(yaw=0.25))
    client.wait(lambda: client.markers[-1].markers[0].action == Marker.DELETEALL, 'the markers to go')


@pytest.mark.slow
def test_parameters_change_the_arm_at_once_or_are_rejected(client):
    client.call('ik_node/home')
    client.wait_still()
    for wrong in ({'tip_link': 'hand'}, {'home': [0.1, 0.2]}):
        (result,) = client.set_parameters(**wrong)
        assert not result.successful
        assert next(iter(wrong)) in result.reason
    assert client.set_together(tool_axis=[1.0, 0.0, 0.0], tool_point=[0.0, 0.0, 0.05]).successful
    tool = {'tool_axis': (1, 0, 0), 'tool_point': (0, 0, 0.05)}
    turned = Arm.from_urdf(arm_urdf(), 'tool0', base_link='base_link', **tool)
    position, direction = turned.fk(READY)
    T = tip_pose(position, direction, (1, 0, 0), (0, 0, 0.05))
    status = client.answer('goal_pose', client.pose(T))
    assert status.level == DiagnosticStatus.OK, status.message
    found = turned.fk(client.wait_still())
    assert found[0] == pytest.approx(position, abs=2e-6)
    assert found[1] == pytest.approx(direction, abs=2e-6)
    assert client.set_together(tool_axis=[0.0, 0.0, 1.0], tool_point=[0.0, 0.0, 0.0]).successful


@pytest.mark.slow
def test_names_are_relative(arm):
    with running(arm_urdf(), namespace='left', home=[0.1, 0.2, 3.0, 0.3, 0.4]) as client:
        assert client.position().tolist() == [0.1, 0.2, 2.5, 0.3, 0.4]
        topics = dict(graph.topics(client.node))
        for topic in ('goal_pose', 'goal_point', 'joint_states', 'ik_node/status', 'ik_node/markers'):
            assert f'/left/{topic}' in topics
        T = goal_at(arm, READY)
        reached(client, arm, T, client.pose(T))


@pytest.mark.slow
def test_simulated_time_drives_the_motion():
    with running(None, use_sim_time=True) as client:
        clock = client.node.create_publisher(Clock, '/clock', 10)
        client.description.publish(String(data=arm_urdf()))
        client.wait_said('effective DoF')
        assert not client.samples  # no time, no samples
        assert 'no message has arrived on /clock' in client.answer('goal_joints', client.joints(yaw=0.5)).message
        time = [100.0]

        def tick() -> None:
            time[0] += 0.005
            message = Clock()
            message.clock.sec = int(time[0])
            message.clock.nanosec = int(1e9 * (time[0] % 1.0))
            clock.publish(message)

        client.wait(lambda: (tick(), client.samples)[1], 'the first sample')
        client.send('goal_joints', client.joints(yaw=0.5))
        client.wait(lambda: (tick(), client.position('yaw') == pytest.approx(0.5))[1], 'the joint')
        stamps = [seconds(sample.header.stamp) for sample in client.samples]
        assert 100.0 < stamps[0] < stamps[-1] <= time[0]
        yaw = np.array([sample.position[sample.name.index('yaw')] for sample in client.samples])
        assert (np.abs(np.diff(yaw)) <= 0.5 * SPEED * np.diff(stamps) + 1e-9).all()
        late = client.joints(yaw=0.1)
        late.header.stamp = client.now().to_msg()  # of the clock on the wall
        client.send('goal_joints', late)
        # "arrived" may come after it
        client.wait(lambda: (tick(), any('use_sim_time' in s.message for s in client.statuses))[1], 'the rejection')


BOX = [-0.3, -0.5, -0.2, 0.6, 0.5, 0.6]


def rates(client: Client, name: str) -> np.ndarray:
    """The velocities of a joint in all samples."""
    return np.array([s.velocity[list(s.name).index(name)] for s in client.samples])


@pytest.mark.slow
def test_the_limits_of_a_file_and_of_the_tool_hold_on_the_wire(tmp_path):
    file = tmp_path / 'joint_limits.yaml'
    file.write_text('joint_limits: {yaw: {has_velocity_limits: true, max_velocity: 0.8}}')
    with running(arm_urdf(), joint_limits_file=str(file), speed_scaling=1.0) as client:
        client.send('goal_joints', client.joints(yaw=1.0))
        client.wait_said('arrived')
        assert 0.75 < np.abs(rates(client, 'yaw')).max() <= 0.8 + 1e-9
        client.samples.clear()
        assert client.set_parameters(max_tool_speed=0.2)[0].successful
        client.send('goal_joints', client.joints(yaw=0.0))
        client.wait(lambda: any(s.position[0] == 0.0 for s in client.samples), 'the place')
        assert 0.2 < np.abs(rates(client, 'yaw')).max() <= 0.2 / 0.7 + 1e-9  # 0.7 m from the axis


def test_the_workspace_is_told_rejects_goals_and_changes_while_the_node_runs():
    with running(arm_urdf(), workspace=BOX, home=[0.8] * len(ARM_JOINTS)) as client:
        client.send('goal_point', client.point((0.4, 0.0, -0.3)))
        client.wait_said('z -0.3, allowed: -0.2 to 0.6')
        assert not client.set_parameters(workspace=[0.0, 0.0, 0.0, 1.0, 1.0, -1.0])[0].successful
        assert client.set_parameters(workspace=[0.0] * 6)[0].successful
        client.send('goal_point', client.point((0.4, 0.0, -0.1)))
        client.wait(lambda: 'goal' in client.statuses[-1].message and client.said()['state'] != 'rejected', 'it')


@pytest.mark.slow
def test_self_collision_is_rejected_and_its_distance_is_in_the_diagnostics():
    pytest.importorskip('coal')
    with running(folding_urdf(), tip_link='hand', base_link='base') as client:
        client.send('goal_joints', client.joints(elbow=3.0))
        client.wait_said('goal_joints rejected: at the end of the motion, link "upper" and link "hand" would')
        values = client.wait(
            lambda: [v for a in client.diagnostics for s in a.status for v in s.values if 'collision' in v.key],
            'the distance',
        )
        assert '(' in values[-1].value
        assert client.set_parameters(self_collision='false')[0].successful
        client.send('goal_joints', client.joints(elbow=3.05))
        client.wait(lambda: client.said()['state'] == 'moving', 'the motion')


ELSEWHERE = {'/rosout', '/parameter_events', '/clock', '/tf', '/tf_static'}
ABSENT = {  # with other parameters only
    (SubscribedTopic, '/robot_description'),
    (SubscribedTopic, '/controller_state'),
    (PublishedTopic, '/joint_trajectory'),
    (PublishedTopic, '/position_commands'),
}
STANDARD = re.compile(r'/ik_node/(get|set|list|describe|change)_|/ik_node/(transition_event|_)')
TABLE = {
    (type(one), '/' + one.name.replace('~', 'ik_node').lstrip('/')): one
    for one in vars(interfaces).values()
    if isinstance(one, Interface)
}


def test_the_table_has_every_topic_and_service() -> None:
    with running(arm_urdf()) as client:
        node = client.served
        found = {
            (way, name): re.sub('/(msg|srv)/', '/', types[0])
            for way, ask in (
                (SubscribedTopic, node.get_subscriber_names_and_types_by_node),
                (PublishedTopic, node.get_publisher_names_and_types_by_node),
                (Service, node.get_service_names_and_types_by_node),
            )
            for of in (node.get_name(), f'{node.get_name()}_stop')  # which has the urgent services
            for name, types in ask(of, node.get_namespace())
            if name not in ELSEWHERE and not STANDARD.match(name)
        }
    not_installed = {key for key, one in TABLE.items() if one.type is None}
    assert TABLE.keys() - found.keys() == ABSENT | not_installed
    assert found.keys() <= TABLE.keys()
    for key, kind in found.items():
        assert kind in TABLE[key].types.split(' or '), key
