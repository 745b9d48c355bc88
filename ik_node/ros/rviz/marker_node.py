# SPDX-License-Identifier: Apache-2.0
"""ik_marker: an interactive marker in RViz that drags the goal of the tool. Uses topics and services only.

During a drag, a second marker shows the nearest pose that the arm can reach.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from geometry_msgs.msg import PointStamped, Pose, PoseStamped
from rclpy.clock import Clock
from rclpy.clock_type import ClockType
from rclpy.qos import QoSProfile
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from visualization_msgs.msg import InteractiveMarkerFeedback as Feedback

from ik_node.errors import IkError, InputError, MissingError
from ik_node.model.arm import Arm
from ik_node.model.urdf.reader import read_urdf
from ik_node.ros.compat import installed
from ik_node.ros.conversions import finite_positions, matrix_pose, pose_matrix
from ik_node.ros.foreign_goals import ForeignGoals, goal_in_base
from ik_node.ros.interfaces import DESCRIPTION, subscribe
from ik_node.ros.neighbours import Neighbours
from ik_node.ros.qos import NEWEST, STREAM
from ik_node.ros.remarks import Remarks
from ik_node.ros.remote_parameters import RemoteParameters
from ik_node.ros.run import ClosableNode, run
from ik_node.ros.rviz.drag import Drag, Shown
from ik_node.ros.rviz.marker_menu import MarkerMenu
from ik_node.ros.rviz.marker_shape import answer, wish
from ik_node.ros.settings_declaration import declare
from ik_node.ros.tool_settings import ToolSettings
from ik_node.steady import steady
from ik_node.tracks.settings import NO_TRACK

RATE = 20.0  # [Hz] at which the marker follows goals and the tool
STILL = 1e-4  # [rad or m] between two messages; a smaller change is ignored
SEEN = 1e-5  # change of a pose component above which it is published
PATIENCE = 0.5  # [s] to wait for a response before the next query
FEEDBACK = QoSProfile(depth=50)  # the end of a drag follows its last pose at once
WISH, ANSWER = 'goal', 'answer'


class MarkerNode(ClosableNode):
    """The node; options are those of rclpy's Node. Raises IkError if it cannot start."""

    def __init__(self, **options: Any) -> None:
        super().__init__('ik_marker', **options)
        self._settings = declare(self, ToolSettings)
        make_server = installed('interactive_markers', 'InteractiveMarkerServer')
        make_menu = installed('interactive_markers', 'MenuHandler')
        if make_server is None or make_menu is None:
            raise MissingError(
                'ik_marker needs the ROS package interactive_markers, which is not installed: '
                'sudo apt install ros-$ROS_DISTRO-interactive-markers'
            )
        self._arm: Arm | None = None
        self._description = ''
        self._values: dict[str, float] = {}  # newest joint positions received
        self._drag, self._remarks = Drag(), Remarks()
        self._goal = Pose()  # what is shown unless it is the tool
        self._foreign = ForeignGoals()
        self._query: tuple[PoseStamped, float] | None = None  # pending query, and when it was sent
        self._unasked: PoseStamped | None = None  # the newest pose that has not been queried
        self._placed: dict[str, Pose] = {}  # markers where they were last put

        self._goals = self.create_publisher(PoseStamped, 'goal_pose', NEWEST)
        self._met = Neighbours(self, 'ik_marker', sends=['goal_pose'])
        self._queries = self.create_publisher(PoseStamped, 'ik_node/project_pose', NEWEST)
        DESCRIPTION.subscription(self, self._on_description)
        subscribe(self, JointState, 'joint_states', self._on_joints, NEWEST)
        subscribe(self, PoseStamped, 'goal_pose', self._on_goal, STREAM)
        subscribe(self, PointStamped, 'goal_point', self._on_goal, STREAM)
        subscribe(self, JointState, 'goal_joints', self._on_joint_goal, STREAM)
        subscribe(self, PoseStamped, 'ik_node/projected_pose', self._on_answer, STREAM)
        self._track = RemoteParameters(self, 'ik_goals', ['track'], self._rejected)
        self._server = make_server(self, 'ik_marker', feedback_sub_qos=FEEDBACK)
        self._menu = MarkerMenu(self, make_menu(), self._pressed)
        clock = Clock(clock_type=ClockType.STEADY_TIME)
        self.create_timer(1.0 / RATE, self._update, clock=clock)
        self.create_timer(1.0, self._refresh, clock=clock)

    def close(self) -> None:
        """Remove the markers, and close the node."""
        self._server.shutdown()
        self.destroy_node()

    def _pressed(self) -> None:
        """End the drag: a menu entry was selected."""
        self._end_track()
        self._drag.drop()

    def _rejected(self, reason: str) -> None:
        """Log why another node rejected a parameter, if it did."""
        if reason:
            self.get_logger().warning(reason)

    def _refresh(self) -> None:
        self._track.refresh()
        self._menu.refresh()

    # The mouse

    def _on_feedback(self, feedback: Feedback) -> None:
        now = steady()
        if feedback.event_type == Feedback.MOUSE_DOWN:
            self._drag.press(now)
        elif feedback.event_type == Feedback.KEEP_ALIVE:
            self._drag.hold(now)
        elif feedback.event_type == Feedback.MOUSE_UP:
            self._drag.release(now)
        elif feedback.event_type == Feedback.POSE_UPDATE and self._arm is not None:
            self._pull(self._arm, feedback, now)

    def _pull(self, arm: Arm, feedback: Feedback, now: float) -> None:
        try:
            pose_matrix(feedback.pose)
        except IkError as error:
            self._server.setPose(WISH, self._placed[WISH])
            if self._remarks.new(sentence := f'pose ignored: {error}'):
                self.get_logger().warning(sentence)
            return
        self._placed[WISH] = feedback.pose  # the server has put it there
        if not self._drag.pull(now):
            return
        if refused := self._met.foreign():
            if self._remarks.new(refused):
                self.get_logger().warning(refused)
            return
        self._end_track()
        message = PoseStamped(pose=feedback.pose)
        message.header.stamp = self.get_clock().now().to_msg()
        message.header.frame_id = feedback.header.frame_id or arm.base_link
        self._foreign.sent(message)
        self._goals.publish(message)
        self._goal, self._unasked = feedback.pose, message

    def _end_track(self) -> None:
        """Stop the goal publisher, which would override the user."""
        if self._track.values.get('track', NO_TRACK) != NO_TRACK:
            self._track.set(track=NO_TRACK)

    # Received messages

    def _on_description(self, message: String) -> None:
        if message.data == self._description:
            return
        self._description = message.data
        self._arm, self._values, self._drag = None, {}, Drag()
        try:
            self._arm = Arm(read_urdf(message.data), **self._settings.tool())
        except IkError as error:
            self.get_logger().error(f'no marker for this robot: {error}')
        self._server.clear()
        self._server.applyChanges()
        self._placed.clear()

    def _on_joints(self, message: JointState) -> None:
        if self._arm is None:
            return
        values = finite_positions(message, self._arm.robot.joints)
        if any(abs(value - self._values.get(name, value)) > STILL for name, value in values.items()):
            self._drag.moved(steady())
        self._values.update(values)

    def _on_goal(self, message: PoseStamped | PointStamped) -> None:
        if self._arm is None or not self._foreign.is_new(message):
            return
        if self._drag.foreign(steady()):
            self.get_logger().warning('another node sends goals: the marker is released')
        pose = None if self._drag.dragged else goal_in_base(self._arm, message, self._values)
        if pose is not None:
            self._goal = matrix_pose(pose)

    def _on_joint_goal(self, message: JointState) -> None:
        if self._foreign.is_new(message):
            self._drag.drop()

    def _on_answer(self, message: PoseStamped) -> None:
        if self._query is None or message.header.stamp != self._query[0].header.stamp:
            return  # to a query of another node
        self._query = None
        try:
            pose_matrix(message.pose)
        except InputError:  # nor is this from ik_node
            return
        if self._arm is None or self._drag.shown is Shown.TOOL:
            return
        self._place(ANSWER, message.pose, partial(answer, self._arm, ANSWER))
        if not self._drag.dragged and self._unasked is None:
            self._goal = message.pose  # the mouse is released: show what can be reached

    # Showing

    def _update(self) -> None:
        now, arm = steady(), self._arm
        self._drag.update(now)
        if arm is None or not self._values:
            return
        self._ask(now)
        if self._drag.shown is Shown.TOOL:
            self._unasked = None
            self._goal = matrix_pose(arm.link_in_base(arm.tip_link, self._values))
            if self._placed.pop(ANSWER, None) is not None:
                self._server.erase(ANSWER)
        if not self._drag.dragged:  # RViz itself moves what is dragged
            self._place(WISH, self._goal, partial(wish, arm, WISH))
            self._menu.check(self._server)
        self._server.applyChanges()

    def _ask(self, now: float) -> None:
        """Query the nearest pose for the newest pose of the drag, one query at a time."""
        if self._unasked is None or (self._query is not None and now - self._query[1] < PATIENCE):
            return
        self._query, self._unasked = (self._unasked, now), None
        self._queries.publish(self._query[0])

    def _place(self, name: str, pose: Pose, make: Callable[[Pose], Any]) -> None:
        """Put a marker at a pose; make: returns it, if it does not exist yet."""
        before = self._placed.get(name)
        if before is not None and np.abs(pose_matrix(before) - pose_matrix(pose)).max() < SEEN:
            return
        self._placed[name] = pose
        if before is not None:
            self._server.setPose(name, pose)
            return
        self._server.insert(make(pose), feedback_callback=self._on_feedback)
        self._server.applyChanges()
        if name == WISH:
            self._menu.apply(self._server, name)


def main() -> int:
    """Run ik_marker."""
    return run('ik_marker', MarkerNode)
