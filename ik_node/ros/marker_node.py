# SPDX-License-Identifier: Apache-2.0
"""ik_marker: an interactive marker in RViz that drags the goal of the tool. Uses topics and services only.

During a drag, a second marker shows the nearest pose that the arm can reach.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import fields
from enum import Enum
from functools import partial
from typing import Any

import numpy as np
from geometry_msgs.msg import PointStamped, Pose, PoseStamped, Quaternion, Vector3
from rclpy.clock import Clock
from rclpy.clock_type import ClockType
from rclpy.node import Node
from rclpy.qos import QoSProfile
from sensor_msgs.msg import JointState
from std_msgs.msg import ColorRGBA, Float64, String
from std_srvs.srv import Trigger
from visualization_msgs.msg import InteractiveMarker, InteractiveMarkerControl, Marker
from visualization_msgs.msg import InteractiveMarkerFeedback as Feedback

from ik_node.control.settings import ArmSettings
from ik_node.errors import IkError, InputError, MissingError
from ik_node.model.arm import Arm
from ik_node.model.urdf.reader import read_urdf
from ik_node.ros.conversions import array_point, finite_positions, matrix_pose, pose_matrix
from ik_node.ros.frames import ExternalGoalFilter, goal_in_base
from ik_node.steady import steady
from ik_node.tracks import NO_TRACK

from .interfaces import DESCRIPTION, NEWEST, STREAM, Remarks, installed, subscribe
from .neighbours import Neighbours
from .parameters import RemoteParameters, ToolSettings, declare
from .run import ClosableNode, run

BUTTONS = 'Home', 'Stop', 'Resume'  # each is a service of ik_node
OPENINGS = {'Open the gripper': 1.0, 'Close the gripper': 0.0}
MENUS = {'Method': 'solver', 'On unreachable': 'on_unreachable'}  # of parameters of ik_node


class MarkerMenu:
    """The entries of a MenuHandler of interactive_markers; pressed() is called before a service."""

    def __init__(self, node: Node, menu: Any, pressed: Callable[[], None]) -> None:
        self._menu, self._pressed, self._log = menu, pressed, node.get_logger()
        self._parameters = RemoteParameters(node, 'ik_node', MENUS.values(), on_set=self._rejected)
        self._checked: dict[str, str] = {}
        for name in BUTTONS:
            client = node.create_client(Trigger, f'ik_node/{name.lower()}')
            menu.insert(name, callback=partial(self._press, name, client))
        openings = node.create_publisher(Float64, 'ik_node/gripper', NEWEST)
        for name, opening in OPENINGS.items():
            menu.insert(name, callback=lambda _, opening=opening: self._grip(openings, opening))
        choices = {field.name: field.metadata['choices'] for field in fields(ArmSettings)}
        self._entries: dict[tuple[str, str], int] = {}  # handles by parameter and value
        for title, parameter in MENUS.items():
            parent = menu.insert(title)
            for value in choices[parameter]:
                handle = menu.insert(value, parent=parent, callback=partial(self._choose, parameter, value))
                menu.setCheckState(handle, menu.UNCHECKED)
                self._entries[parameter, value] = handle

    def refresh(self) -> None:
        """Request the values of the parameters."""
        self._parameters.refresh()

    def apply(self, server: Any, name: str) -> None:
        """Add the menu to a marker of server."""
        self._checked = {}
        self._menu.apply(server, name)

    def check(self, server: Any) -> None:
        """Tick the entries of the present values."""
        if self._parameters.values == self._checked:
            return
        self._checked = dict(self._parameters.values)
        for (parameter, value), handle in self._entries.items():
            checked = self._checked.get(parameter) == value
            self._menu.setCheckState(handle, self._menu.CHECKED if checked else self._menu.UNCHECKED)
        self._menu.reApply(server)

    def _press(self, name: str, client: Any, _: object) -> None:
        self._pressed()
        if client.service_is_ready():
            client.call_async(Trigger.Request()).add_done_callback(partial(self._answered, name))
        else:
            self._rejected(f'{name}: the service {client.srv_name} is not available')

    def _grip(self, openings: Any, opening: float) -> None:
        self._pressed()
        openings.publish(Float64(data=opening))

    def _answered(self, name: str, future: Any) -> None:
        if not future.result().success:
            self._rejected(f'{name}: {future.result().message}')

    def _choose(self, parameter: str, value: str, _: object) -> None:
        if not self._parameters.set(**{parameter: value}):
            self._rejected('the parameters of ik_node are not available')

    def _rejected(self, reason: str) -> None:
        if reason:
            self._log.warning(reason)


SCALE = 0.3  # of the handles, in reaches of the arm
BALL, AXIS, SHAFT, HEAD = 0.05, 0.2, 0.012, 0.03  # in reaches of the arm
WISH_COLOUR = ColorRGBA(r=1.0, g=0.62, b=0.11, a=0.9)  # the colours of the browser viewer
ANSWER_COLOUR = ColorRGBA(r=0.15, g=0.7, b=0.67, a=0.6)
HALF = float(np.sqrt(0.5))

# By axis, the rotation that turns x there: handles act along the x axis of their orientation.
AXES = {
    'x': Quaternion(w=1.0),
    'y': Quaternion(w=HALF, z=HALF),
    'z': Quaternion(w=HALF, y=-HALF),
}


def wish(arm: Arm, name: str, pose: Pose) -> InteractiveMarker:
    """Return the marker that is dragged; it stands at the pose of the tip frame in the base link."""
    marker = _marker(arm, name, pose)
    marker.description = f'goal {name}'
    marker.scale = SCALE * arm.reach
    for axis, orientation in AXES.items():
        for kind, mode in (
            ('move', InteractiveMarkerControl.MOVE_AXIS),
            ('turn', InteractiveMarkerControl.ROTATE_AXIS),
        ):
            handle = InteractiveMarkerControl(name=f'{kind} {axis}', interaction_mode=mode)
            handle.orientation = orientation
            marker.controls.append(handle)
    marker.controls.append(_shown('ball', InteractiveMarkerControl.MOVE_3D, _tool(arm, WISH_COLOUR)))
    return marker


def answer(arm: Arm, name: str, pose: Pose) -> InteractiveMarker:
    """Return a marker that cannot be dragged: where the tool can be."""
    marker = _marker(arm, name, pose)
    marker.controls.append(_shown('answer', InteractiveMarkerControl.NONE, _tool(arm, ANSWER_COLOUR)))
    return marker


def _shown(name: str, mode: int, markers: list[Marker]) -> InteractiveMarkerControl:
    """Return a control with shapes of its own."""
    control = InteractiveMarkerControl(name=name, interaction_mode=mode, always_visible=True)
    control.orientation.w = 1.0
    control.markers = markers
    return control


def _marker(arm: Arm, name: str, pose: Pose) -> InteractiveMarker:
    marker = InteractiveMarker(name=name, pose=pose, scale=1.0)
    marker.header.frame_id = arm.base_link  # the stamp stays zero: the marker moves with the frame
    return marker


def _tool(arm: Arm, colour: ColorRGBA) -> list[Marker]:
    """Return a ball at the tool point and an arrow along the tool axis, in the tip frame."""
    ball = Marker(type=Marker.SPHERE, color=colour, scale=_size(arm, BALL, BALL, BALL))
    ball.pose.position = array_point(arm.tool_point)
    ball.pose.orientation.w = 1.0
    arrow = Marker(type=Marker.ARROW, color=colour, scale=_size(arm, SHAFT, HEAD, HEAD))
    arrow.pose.orientation.w = 1.0
    head = arm.tool_point + AXIS * arm.reach * arm.tool_axis
    arrow.points = [array_point(arm.tool_point), array_point(head)]
    return [ball, arrow]


def _size(arm: Arm, x: float, y: float, z: float) -> Vector3:
    return Vector3(x=x * arm.reach, y=y * arm.reach, z=z * arm.reach)


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
        self._foreign = ExternalGoalFilter()
        self._query: tuple[PoseStamped, float] | None = None  # pending query, and when it was sent
        self._unsent: PoseStamped | None = None  # the newest pose that has not been queried
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
        self._track = RemoteParameters(self, 'ik_goals', ['track'], on_set=self._rejected)
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
        self._goal, self._unsent = feedback.pose, message

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
        if not self._drag.dragged and self._unsent is None:
            self._goal = message.pose  # the mouse is released: show what can be reached

    # Showing

    def _update(self) -> None:
        now, arm = steady(), self._arm
        self._drag.update(now)
        if arm is None or not self._values:
            return
        self._send_query(now)
        if self._drag.shown is Shown.TOOL:
            self._unsent = None
            self._goal = matrix_pose(arm.link_in_base(arm.tip_link, self._values))
            if self._placed.pop(ANSWER, None) is not None:
                self._server.erase(ANSWER)
        if not self._drag.dragged:  # RViz itself moves what is dragged
            self._place(WISH, self._goal, partial(wish, arm, WISH))
            self._menu.check(self._server)
        self._server.applyChanges()

    def _send_query(self, now: float) -> None:
        """Query the nearest pose for the newest pose of the drag, one query at a time."""
        if self._unsent is None or (self._query is not None and now - self._query[1] < PATIENCE):
            return
        self._query, self._unsent = (self._unsent, now), None
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


SILENCE = 1.0  # [s] without mouse feedback, which RViz sends four times per second, that end a drag
OTHERS = 1.0  # [s] that goals of a track may still arrive after its end
SETTLED = 0.4  # [s] without a new goal or a moving joint after which a goal is not followed any more


class Shown(Enum):
    """What the marker shows."""

    TOOL = 'tool'
    GOAL = 'goal'
    WISH = 'wish'


class Drag:
    """State machine of the marker. Times [s] are of one steady clock."""

    def __init__(self) -> None:
        self.shown = Shown.TOOL
        self._began = self._signed = self._changed = -math.inf
        self._rejected = False  # until the mouse is pressed again

    @property
    def dragged(self) -> bool:
        """Whether a user drags the marker."""
        return self.shown is Shown.WISH

    def press(self, now: float) -> None:
        """Process a mouse press."""
        self._rejected, self._began, self._signed = False, now, now

    def pull(self, now: float) -> bool:
        """Process a new pose of the mouse; return whether it is accepted."""
        if self._rejected:
            return False
        if not self.dragged and now - self._signed > SILENCE:
            self._began = now  # the press was lost
        self.shown, self._signed, self._changed = Shown.WISH, now, now
        return True

    def hold(self, now: float) -> None:
        """Process feedback that the mouse is still pressed."""
        self._signed = now

    def release(self, now: float) -> None:
        """Process the end of a drag: the goal is shown until the arm has come to rest."""
        if self.dragged:
            self.shown, self._changed = Shown.GOAL, now

    def foreign(self, now: float) -> bool:
        """Process a goal of another node; return whether it ends a drag."""
        if self.dragged and now - self._began < OTHERS:
            return False
        ends, self._rejected = self.dragged, self.dragged
        self.shown, self._changed = Shown.GOAL, now
        return ends

    def moved(self, now: float) -> None:
        """Process a motion of the arm."""
        self._changed = now

    def drop(self) -> None:
        """Show the tool: it moves by a button or by joint goals."""
        self.shown, self._rejected = Shown.TOOL, self.dragged

    def update(self, now: float) -> None:
        """Process elapsed time."""
        if self.dragged and now - self._signed > SILENCE:
            self.release(now)
        if self.shown is Shown.GOAL and now - self._changed > SETTLED:
            self.shown = Shown.TOOL
