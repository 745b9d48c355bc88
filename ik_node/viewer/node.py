"""ik_viewer: shows the arm in a browser and lets the user drag its goal. Uses topics and services only."""

from __future__ import annotations

import math
import time
from collections import deque
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import PointStamped, PoseStamped
from rclpy.clock import Clock, ClockType  # type: ignore[attr-defined]
from rclpy.qos import QoSProfile
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from std_srvs.srv import Trigger

from ik_node.checks import Array
from ik_node.errors import IkError
from ik_node.model.arm import Arm
from ik_node.model.urdf import read_urdf
from ik_node.ros.conversions import matrix_pose, point_array, pose_matrix
from ik_node.ros.parameters import declare
from ik_node.ros.qos import LATCHED, NEWEST, STREAM
from ik_node.ros.run import ClosableNode, run
from ik_node.tracks.settings import NO_TRACK
from ik_node.viewer.goals_client import GoalsClient
from ik_node.viewer.guard import Guard
from ik_node.viewer.panel import RED, Panel, Report
from ik_node.viewer.scene import Scene
from ik_node.viewer.server import page_url, start_server, stop_server
from ik_node.viewer.settings import ViewerSettings
from ik_node.viewer.visuals import draw

FRAME_RATE = 30.0  # [Hz] of the display, independent of the rate of joint_states
SLOW_EVERY = 3  # frames from one update of the sliders and the trail to the next
SETTLED = 0.4  # [s] without a new goal or a moving joint after which a goal counts as no longer followed
SLIDER_HOLD = 1.0  # [s] that sliders keep a user's value while the arm has not moved yet
STILL = 1e-4  # [rad or m] between two messages; a smaller change is no motion
TURN = 2.0 * math.pi
HINT = 'Drag the coloured gizmo, or choose a target track.'


class ViewerNode(ClosableNode):
    """The viewer; options are those of rclpy's Node. Raises IkError if it cannot start with its parameters.

    Callbacks of ROS and of viser only store; a timer does the rest at FRAME_RATE.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__('ik_viewer', **options)
        self._settings = declare(self, ViewerSettings)
        guard = Guard(self._settings.host)
        self._server = start_server(self._settings.host, self._settings.port, guard)
        self._scene = Scene(self._server)
        self._panel = Panel(self._server)
        self._panel.show_message('Waiting for robot_description')
        self._arm: Arm | None = None
        self._about_arm = ''
        self._description = ''
        self._values: dict[str, float] = {}  # newest joint positions received
        self._targets: dict[str, float] = {}  # of the sliders; empty unless a user has just moved them
        self._reported = False  # the panel shows a status
        self._goal_shown = False  # the gizmo shows a goal; otherwise it follows the tool
        self._goal_time = self._moved_time = self._slider_time = 0.0
        self._own_goals: deque[PoseStamped | JointState] = deque(maxlen=50)  # that may still be received
        self._joint_goal: list[float] = []  # the last one of another node
        self._frame = 0
        self._new: dict[str, Any] = {}  # per topic the newest message not displayed yet

        self._goal_publisher = self.create_publisher(PoseStamped, 'goal_pose', NEWEST)
        self._joints_publisher = self.create_publisher(JointState, 'goal_joints', NEWEST)
        self._store(String, 'robot_description', LATCHED)
        self._store(JointState, 'joint_states', NEWEST)
        self._store(PoseStamped, 'goal_pose', NEWEST)
        self._store(PointStamped, 'goal_point', NEWEST)
        self._store(JointState, 'goal_joints', NEWEST)
        self._store(DiagnosticStatus, 'ik_node/status', LATCHED)
        self._solver_name = f'{self.get_namespace().rstrip("/")}/ik_node'
        self.create_subscription(DiagnosticArray, '/diagnostics', self._store_diagnostics, STREAM)
        self._buttons = {
            'Home': self.create_client(Trigger, 'ik_node/home'),
            'Stop': self.create_client(Trigger, 'ik_node/stop'),
            'Resume': self.create_client(Trigger, 'ik_node/resume'),
        }
        self._goals = GoalsClient(self, 'ik_goals', self.get_logger().warning)
        clock = Clock(clock_type=ClockType.STEADY_TIME)  # the page stays alive while the simulation is paused
        self.create_timer(1.0 / FRAME_RATE, self._show_frame, clock=clock)
        self.create_timer(1.0, self._goals.refresh, clock=clock)
        url = page_url(self._settings.host, self._server.get_port(), guard.token)
        self.get_logger().info(f'open {url} in a browser')

    def close(self) -> None:
        """Close the web server and the node."""
        stop_server(self._server)
        self.destroy_node()

    def _store(self, kind: type, topic: str, qos: QoSProfile) -> None:
        def store(message: Any) -> None:
            self._new[topic] = message

        self.create_subscription(kind, topic, store, qos)

    def _store_diagnostics(self, message: DiagnosticArray) -> None:
        for status in message.status:
            if status.name == self._solver_name:
                self._new['diagnostics'] = status

    def _show_frame(self) -> None:
        new, self._new = self._new, {}
        description = new.pop('robot_description', None)
        diagnostics = new.pop('diagnostics', None)
        with self._server.atomic():
            if diagnostics is not None:
                self._panel.show_node(diagnostics.message)
            if description is not None:
                self._show_robot(description.data)
            if self._arm is not None:
                self._obey(self._arm)
                self._show_news(self._arm, new)
            elif 'ik_node/status' in new:
                self._new.setdefault('ik_node/status', new['ik_node/status'])  # for the next arm
            self._panel.set_track(self._goals.track)

    def _show_robot(self, text: str) -> None:
        if text == self._description:
            return
        self._description = text
        self._arm = None
        self._values, self._targets = {}, {}
        self._goal_shown = self._reported = False
        settings = self._settings
        try:
            robot = read_urdf(text)
            arm = Arm(
                robot,
                settings.tip_link or None,
                tool_axis=settings.tool_axis,
                tool_point=settings.tool_point,
                base_link=settings.base_link or None,
            )
            drawing = draw(text, robot, arm.tip_link, settings.mesh_path)
        except IkError as error:
            self._scene.clear()
            self._panel.show_sliders(None)
            self._panel.show_message('Cannot show this robot', str(error), RED)
            self.get_logger().error(f'cannot show this robot: {error}')
            return
        for warning in drawing.warnings:
            self.get_logger().info(warning)
        self._arm = arm
        self._about_arm = arm.describe()
        self._scene.show(arm, drawing)
        self._panel.show_sliders(arm)
        self._panel.show_message('Waiting for joint_states', f'{arm.name} is shown with all joints at zero.')

    # User input

    def _obey(self, arm: Arm) -> None:
        track, button = self._panel.take_track(), self._panel.take_button()
        pose, joints = self._scene.take_drag(), self._panel.take_joints()
        if track is not None:
            self._goals.choose(track)
        if button is not None:
            self._press(button)
        if joints and not self._followed():
            self._send_joints(arm, joints)
        if pose is not None:
            self._end_track()
            self._send_goal(arm, pose)

    def _end_track(self) -> None:
        """Stop the goal publisher, which would override the user."""
        if self._goals.track not in (None, NO_TRACK):
            self._goals.choose(NO_TRACK)

    def _press(self, button: str) -> None:
        self._end_track()
        self._goal_shown = False
        self._targets = {}
        if self._buttons[button].service_is_ready():
            self._buttons[button].call_async(Trigger.Request())
        else:
            self.get_logger().warning(
                f'{button}: the service {self._buttons[button].srv_name} is not available'
            )

    def _send_goal(self, arm: Arm, T_base_goal: Array) -> None:
        message = PoseStamped()
        message.header.stamp = self.get_clock().now().to_msg()
        message.header.frame_id = arm.base_link
        message.pose = matrix_pose(T_base_goal)
        self._own_goals.append(message)
        self._goal_publisher.publish(message)
        self._take_goal(T_base_goal, True)

    def _send_joints(self, arm: Arm, joints: dict[str, float]) -> None:
        """Publish the slider positions; joints that no user has moved stay where they are."""
        if not self._targets:
            self._targets = {name: self._values.get(name, 0.0) for name in arm.joint_names}
        for name, value in joints.items():
            if arm.continuous[arm.joint_names.index(name)]:
                turns = round((self._targets[name] - value) / TURN)
                value += turns * TURN  # the sliders show one turn of a joint that may have made many
            self._targets[name] = value
        self._goal_shown = False
        self._slider_time = time.monotonic()
        message = JointState(name=list(self._targets), position=list(self._targets.values()))
        message.header.stamp = self.get_clock().now().to_msg()
        self._own_goals.append(message)
        self._joints_publisher.publish(message)

    # Received messages

    def _show_news(self, arm: Arm, new: dict[str, Any]) -> None:
        if 'joint_states' in new:
            self._take_joints(arm, new['joint_states'])
        foreign = {topic: said for topic, said in new.items() if not self._is_own(said)}
        if 'goal_joints' in foreign and list(foreign['goal_joints'].position) != self._joint_goal:
            self._joint_goal = list(foreign['goal_joints'].position)  # others repeat theirs continuously
            self._goal_shown = False
        for topic in ('goal_pose', 'goal_point'):
            if topic in foreign:
                self._take_foreign_goal(arm, foreign[topic])
        if 'ik_node/status' in new:
            self._panel.show_report(_report(new['ik_node/status']), self._about_arm)
            self._reported = True
        if not self._values:
            return
        if not self._goal_shown:
            self._scene.place_goal(self._in_base(arm, arm.tip_link))
        self._panel.enable_sliders(not self._followed())
        self._frame += 1
        if self._frame % SLOW_EVERY == 0:
            self._scene.extend_trail()
            if time.monotonic() - max(self._slider_time, self._moved_time) > SLIDER_HOLD:
                self._targets = {}
            if not self._targets:
                self._panel.set_joints(self._values)

    def _is_own(self, message: Any) -> bool:
        """Whether this node sent a received message: true once, since others may send the same.

        Not by its stamp alone: with a simulated clock that has not started, all stamps are zero.
        """
        if message not in self._own_goals:
            return False
        while self._own_goals.popleft() != message:
            pass  # older ones were overtaken
        return True

    def _followed(self) -> bool:
        """Whether the arm is moving to a goal pose, or the goal itself is moving."""
        quiet = time.monotonic() - max(self._goal_time, self._moved_time)
        on_track = self._goals.track not in (None, NO_TRACK)
        return self._goal_shown and (on_track or quiet < SETTLED)

    def _take_joints(self, arm: Arm, message: JointState) -> None:
        pairs = zip(message.name, message.position, strict=False)
        known = arm.robot.joints
        values = {name: value for name, value in pairs if name in known and math.isfinite(value)}
        if values and not self._values and not self._reported:
            self._panel.show_message('Ready', HINT)
        if any(abs(value - self._values.get(name, value)) > STILL for name, value in values.items()):
            self._moved_time = time.monotonic()
        if not values.items() <= self._values.items():
            self._values.update(values)
            self._scene.place(self._values)

    def _take_goal(self, T_base_goal: Array, with_direction: bool) -> None:
        self._goal_shown = True
        self._goal_time = time.monotonic()
        self._targets = {}
        self._scene.place_goal(T_base_goal, with_direction)

    def _take_foreign_goal(self, arm: Arm, message: PoseStamped | PointStamped) -> None:
        """Show a goal of another node, unless its frame is known to tf only."""
        frame = message.header.frame_id or arm.base_link
        if frame not in arm.robot.links:
            return
        pose = np.eye(4)
        with_direction = isinstance(message, PoseStamped)
        try:
            if with_direction:
                pose = pose_matrix(message.pose)
            else:
                pose[:3, 3] = point_array(message.point) - arm.tool_point
        except IkError:
            return  # ik_node refuses it too and reports why
        self._take_goal(self._in_base(arm, frame) @ pose, with_direction)

    def _in_base(self, arm: Arm, link: str) -> Array:
        """Return T_base_link (4, 4) at the newest joint positions."""
        T_root_base, T_root_link = (arm.robot.link_pose(name, self._values) for name in (arm.base_link, link))
        return np.asarray(np.linalg.solve(T_root_base, T_root_link), dtype=np.float64)


def _report(message: DiagnosticStatus) -> Report:
    values = {item.key: item.value for item in message.values}
    state = values.get('state', '')
    status = values.get('status', '') or state
    sentence = message.message.removeprefix(f'{status}: ')
    position, direction = (_number(values.get(f'{what}_error', '')) for what in ('position', 'direction'))
    return Report(status, position, direction, sentence[:1].upper() + sentence[1:], state)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def main() -> int:
    """Run ik_viewer."""
    return run('ik_viewer', ViewerNode)
