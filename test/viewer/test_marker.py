# SPDX-License-Identifier: Apache-2.0
"""ik_marker with a stand-in for interactive_markers and a stepped ik_node: a client drags as RViz does."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing
from typing import Any

import marker_stand_in
import numpy as np
import pytest
from geometry_msgs.msg import Pose, PoseStamped
from node_harness import Client, running
from rclpy.parameter import Parameter
from small_arm import PARAMETERS, arm_urdf
from visualization_msgs.msg import InteractiveMarkerFeedback as Feedback
from visualization_msgs.msg import InteractiveMarkerUpdate
from visualization_msgs.srv import GetInteractiveMarkers

from ik_node import Arm
from ik_node.model.urdf.description import load_description
from ik_node.ros.conversions import matrix_pose, pose_matrix
from ik_node.ros.marker_node import OTHERS, SETTLED, SILENCE, Drag, MarkerNode, Shown
from ik_node.ros.programs.track_player import GoalsNode
from ik_node.share import share_path
from ik_node.startup.launch_plan import marker_of
from ik_node.tracks import tip_pose

pytestmark = pytest.mark.slow

Z, ORIGIN = (0.0, 0.0, 1.0), (0.0, 0.0, 0.0)
Q = (0.4, 0.5, 0.9, 0.4, 0.6)


class Rviz:
    """What RViz does with interactive markers: it keeps what it is told, and sends what the mouse does."""

    def __init__(self, client: Client, tool: str = '') -> None:
        self.client = client
        self.poses: dict[str, Pose] = {}
        self.menu: dict[str, int] = {}
        node = client.node
        self.feedback = node.create_publisher(Feedback, f'{tool}ik_marker/feedback', 100)
        node.create_subscription(InteractiveMarkerUpdate, f'{tool}ik_marker/update', self._take, 100)
        self.goals: list[PoseStamped] = []
        node.create_subscription(PoseStamped, f'{tool}goal_pose', self.goals.append, 100)
        client.wait(self.feedback.get_subscription_count, 'the server')
        markers = client._call(
            GetInteractiveMarkers, f'{tool}ik_marker/get_interactive_markers', GetInteractiveMarkers.Request()
        ).markers
        self._show(markers)
        client.wait(lambda: 'goal' in self.poses, 'the marker')

    def _take(self, update: InteractiveMarkerUpdate) -> None:
        self._show(update.markers)
        self.poses |= {pose.name: pose.pose for pose in update.poses}
        for name in update.erases:
            self.poses.pop(name, None)

    def _show(self, markers: Any) -> None:
        for marker in markers:
            self.poses[marker.name] = marker.pose
            if marker.name == 'goal':
                self.menu = {entry.title: entry.id for entry in marker.menu_entries}

    def place(self, name: str = 'goal') -> np.ndarray:
        return pose_matrix(self.poses[name])[:3, 3]

    def send(self, event: int, pose: Pose | None = None, entry: int = 0) -> None:
        feedback = Feedback(client_id='/rviz', marker_name='goal', event_type=event, menu_entry_id=entry)
        feedback.header.frame_id = 'base_link'
        feedback.pose = self.poses['goal'] if pose is None else pose
        self.feedback.publish(feedback)

    def drag(self, pose: Pose, steps: int = 8, release: bool = True) -> None:
        start = pose_matrix(self.poses['goal'])[:3, 3]
        end = pose_matrix(pose)
        self.send(Feedback.MOUSE_DOWN)
        for share in np.linspace(0.0, 1.0, steps + 1)[1:]:
            T = end.copy()
            T[:3, 3] = start + share * (end[:3, 3] - start)
            self.send(Feedback.POSE_UPDATE, matrix_pose(T))
            self.client.run(0.03)
        if release:
            self.send(Feedback.MOUSE_UP, pose)

    def choose(self, title: str) -> None:
        self.client.wait(lambda: title in self.menu, f'{title} in {list(self.menu)}')
        self.send(Feedback.MENU_SELECT, entry=self.menu[title])


@pytest.fixture(scope='module')
def arm() -> Arm:
    return Arm.from_urdf(arm_urdf(), tip_link='tool0', base_link='base_link')


@pytest.fixture(autouse=True)
def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, 'interactive_markers', marker_stand_in)


@pytest.fixture
def client() -> Iterator[Client]:
    with running(arm_urdf(), publish_description=True) as client:
        overrides = [Parameter(name, value=value) for name, value in PARAMETERS.items()]
        with closing(MarkerNode(context=client.node.context, parameter_overrides=overrides)):
            yield client


def near(rviz: Rviz, point: Any, name: str = 'goal', within: float = 2e-3) -> None:
    rviz.client.wait(
        lambda: name in rviz.poses and np.linalg.norm(rviz.place(name) - point) < within,
        f'{name} at {np.round(point, 3)}: {rviz.poses}',
    )


def tool_near(client: Client, arm: Arm, point: Any, *names: str) -> None:
    client.wait(lambda: np.linalg.norm(arm.fk(client.position(*names))[0] - point) < 1e-3, 'the arm')


def wish(arm: Arm, q: Any, away: float = 0.0) -> Pose:
    point, axis = arm.fk(q)
    return matrix_pose(tip_pose(np.add(point, [away, 0.0, 0.0]), axis, Z, ORIGIN))


def test_the_arm_follows_a_drag_and_the_marker_stays_at_the_tool(client, arm):
    rviz = Rviz(client)
    near(rviz, arm.fk(client.position())[0])
    rviz.drag(wish(arm, Q))
    tool_near(client, arm, arm.fk(Q)[0])
    client.wait(lambda: 'answer' not in rviz.poses, 'the answer to be hidden')
    near(rviz, arm.fk(Q)[0])
    assert len(rviz.goals) >= 8
    assert rviz.goals[-1].header.frame_id == 'base_link'
    client.send('goal_joints', client.joints(yaw=-0.5))  # of another node
    client.wait(lambda: abs(client.position('yaw')[0] + 0.5) < 1e-3, 'the arm')
    near(rviz, arm.fk(client.position())[0])


def test_out_of_reach_wish_and_answer_stand_side_by_side(client, arm):
    rviz = Rviz(client)
    far = wish(arm, Q, away=1.0)
    rviz.drag(far, release=False)
    near(rviz, pose_matrix(far)[:3, 3])
    client.wait(lambda: 'answer' in rviz.poses, 'the answer')

    def best() -> bool:
        rviz.send(Feedback.KEEP_ALIVE)
        reached = arm.fk(client.position())[0]
        return bool(np.linalg.norm(rviz.place('answer') - reached) < 2e-3)

    client.wait(best, 'the arm at the answer')
    assert np.linalg.norm(rviz.place() - pose_matrix(far)[:3, 3]) < 1e-6, 'the wish stays while it is held'
    rviz.send(Feedback.MOUSE_UP, far)
    near(rviz, arm.fk(client.position())[0])


def test_a_drag_ends_the_track_and_a_foreign_goal_ends_the_drag(client, arm):
    goals = GoalsNode(
        context=client.node.context,
        parameter_overrides=[
            Parameter(name, value=value)
            for name, value in {'track': 'circle', 'centre': [0.4, 0.0, 0.3], 'size': 0.05}.items()
        ],
    )
    with closing(goals):
        rviz = Rviz(client)
        client.wait(lambda: len(rviz.goals) > 100, 'the track')
        near(rviz, [0.4, 0.0, 0.3], within=0.06)  # the marker follows the track
        client.run(1.2)  # the track is asked for once per second
        rviz.drag(wish(arm, Q))
        client.wait(lambda: goals.get_parameter('track').value == 'none', 'the end of the track')
        tool_near(client, arm, arm.fk(Q)[0])

    rviz.drag(wish(arm, Q, away=0.05), release=False)
    for _ in range(5):
        client.run(0.25)
        rviz.send(Feedback.KEEP_ALIVE)
    point, axis = arm.fk((-0.4, 0.5, 0.9, 0.4, 0.6))
    other = client.pose(tip_pose(point, axis, Z, ORIGIN))
    client.send('goal_pose', other)
    near(rviz, point)
    count = len(rviz.goals)
    for _ in range(5):
        rviz.send(Feedback.POSE_UPDATE, wish(arm, Q))  # the user still pulls
        client.run(0.05)
    near(rviz, point)
    assert len(rviz.goals) == count
    tool_near(client, arm, point)


def test_the_menu_stops_the_arm_and_sets_parameters(client):
    rviz = Rviz(client)
    client.wait(lambda: '[x] lm' in rviz.menu and '[x] auto' in rviz.menu, 'the values of ik_node')
    rviz.choose('Stop')
    client.wait_said('stopped')
    rviz.choose('Resume')
    client.wait(lambda: client.said()['state'] in ('ready', 'holding') or client.statuses, 'resumed')
    rviz.choose('[ ] hold')
    client.wait(lambda: '[x] hold' in rviz.menu, 'the menu to show it')
    rviz.choose('[ ] ccd')
    client.wait(lambda: '[x] ccd' in rviz.menu, 'the menu to show it')
    client.send('goal_joints', client.joints(yaw=0.5))
    client.wait(lambda: abs(client.position('yaw')[0] - 0.5) < 1e-3, 'the arm')
    rviz.choose('Home')
    client.wait(lambda: abs(client.position('yaw')[0]) < 1e-3, 'the arm at home')


def test_a_pose_that_is_none_is_ignored(client, arm):
    rviz = Rviz(client)
    before = rviz.place()
    bad = wish(arm, Q)
    bad.orientation.w += 3.0
    rviz.drag(matrix_pose(pose_matrix(rviz.poses['goal'])), steps=1, release=False)
    rviz.send(Feedback.POSE_UPDATE, bad)
    rviz.send(Feedback.MOUSE_UP)
    near(rviz, before)
    rviz.drag(wish(arm, Q))
    tool_near(client, arm, arm.fk(Q)[0])


def test_each_of_two_tools_has_a_marker_of_its_own():
    text = load_description(share_path('urdf', 'two_arms.urdf.xacro'))
    tips = {side: f'{side}_tool0' for side in ('left', 'right')}

    def marker(side: str, tip: str) -> MarkerNode:
        start = marker_of(side, '')
        remappings = [part for pair in start['remappings'] for part in ('-r', ':='.join(pair))]
        return MarkerNode(
            context=client.node.context,
            namespace=start['namespace'],
            cli_args=['--ros-args', *remappings],
            parameter_overrides=[Parameter('tip_link', value=tip)],
        )

    own = {f'{side}.tip_link': tip for side, tip in tips.items()}
    with (
        running(
            text, ready=False, publish_description=True, tools=list(tips), base_link='', tip_link='', **own
        ) as client,
        ExitStack() as stack,
    ):
        for side, tip in tips.items():
            stack.enter_context(closing(marker(side, tip)))
        client.wait(lambda: client.samples, 'joint_states')
        right, left = Rviz(client, 'right/'), Rviz(client, 'left/')
        arms = {side: Arm.from_urdf(text, tip_link=tip) for side, tip in tips.items()}
        rest = {side: arm.fk(client.position(*arm.joint_names)) for side, arm in arms.items()}
        near(left, rest['left'][0])
        near(right, rest['right'][0])
        names = arms['left'].joint_names
        q = arms['left'].fk(client.position(*names) + 0.2)
        left.drag(matrix_pose(tip_pose(*q, Z, ORIGIN)))
        tool_near(client, arms['left'], q[0], *names)
        near(left, q[0])
        near(right, rest['right'][0])
        assert right.goals == []
        left.choose('Stop')
        client.wait_said('stopped')


# Who may move a goal that is dragged, over time


@pytest.fixture
def drag() -> Drag:
    """A goal that is dragged since 10 s."""
    drag = Drag()
    drag.press(10.0)
    assert drag.shown is Shown.TOOL, 'a click moves nothing'
    assert drag.pull(10.0)
    assert drag.dragged
    return drag


def test_a_goal_is_shown_until_the_arm_has_come_to_rest(drag):
    drag.release(10.1)
    drag.update(10.2)
    assert drag.shown is Shown.GOAL
    drag.moved(10.4)
    drag.update(10.4 + 0.9 * SETTLED)
    assert drag.shown is Shown.GOAL
    drag.update(10.4 + 1.1 * SETTLED)
    assert drag.shown is Shown.TOOL


def test_a_mouse_that_is_held_still_keeps_the_goal_and_one_that_is_gone_does_not(drag):
    for k in range(20):
        drag.hold(10.0 + 0.25 * k)
        drag.update(10.0 + 0.25 * k)
    assert drag.dragged
    drag.update(14.75 + 1.1 * SILENCE)
    assert not drag.dragged


def test_a_foreign_goal_ends_a_drag_until_the_mouse_is_pressed_again(drag):
    assert not drag.foreign(10.0 + 0.5 * OTHERS), 'the last goals of a track'
    assert drag.dragged
    assert drag.foreign(10.0 + 1.5 * OTHERS)
    assert drag.shown is Shown.GOAL
    assert not drag.pull(12.0)
    assert not drag.dragged
    drag.press(12.5)
    assert drag.pull(12.5)


def test_a_button_ends_a_drag(drag):
    drag.drop()
    assert drag.shown is Shown.TOOL
    assert not drag.pull(10.1)
    drag.release(10.2)
    assert drag.shown is Shown.TOOL


def test_a_drag_whose_press_was_lost_counts(drag):
    drag.release(10.5)
    drag.update(20.0)
    assert drag.pull(20.0)
    assert not drag.foreign(20.5)
    assert drag.dragged
