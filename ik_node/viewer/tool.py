# SPDX-License-Identifier: Apache-2.0
"""ViewedTool: goals, reports and track of one tool, between its topics and the page."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import trimesh
import viser
from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import PointStamped, PoseStamped, PoseWithCovarianceStamped
from rclpy.node import Node
from rclpy.subscription import Subscription
from sensor_msgs.msg import JointState

from ik_node.checks import Array, finite_array
from ik_node.control.states import NEED_RESUME
from ik_node.model.arm import Arm, tool_at
from ik_node.ros.conversions import matrix_pose, report_values, stamp_text
from ik_node.ros.frames import KEPT, ExternalGoalFilter, goal_in_base
from ik_node.ros.interfaces import LATCHED, NEWEST, subscribe
from ik_node.ros.parameters import RemoteParameters
from ik_node.ros.reports import MEASURED_AGE
from ik_node.steady import steady
from ik_node.tracks import NO_TRACK

from .events import Event
from .panel import ARROWS, HINT, LABELS, NUMBERS, TRAIL, Poses, ToolPanel
from .scene import ToolScene

PATIENCE = 1.0  # [s] for the goal publisher to end its track
TRACK = 'track'  # its parameter


class GoalTrack:
    """The track of a goal publisher. refresh: requests it; call it about once per second."""

    def __init__(self, node: Node, publisher: str) -> None:
        """publisher: the name of the goal publisher."""
        self._node = node
        self._waiting: Callable[[], None] | None = None  # to be sent once the track has ended
        self._waits_until = 0.0  # (steady)
        self._parameters = RemoteParameters(node, publisher, [TRACK], on_set=self._answered)
        self.refresh = self._parameters.refresh

    @property
    def name(self) -> str | None:
        """The present track, None without a goal publisher."""
        return self._parameters.values.get(TRACK)

    @property
    def moves(self) -> bool:
        """Whether there is a track, according to the last answer of the goal publisher."""
        return self.name not in (None, NO_TRACK)

    @property
    def may_move(self) -> bool:
        """Whether the goal publisher may still publish a goal."""
        return self._parameters.busy or self.moves

    def choose(self, name: str) -> None:
        """Have the goal publisher follow a track."""
        self._parameters.set(**{TRACK: name})

    def end(self) -> None:
        """End the track and forget what waits for its end."""
        self.forget()
        if self.moves:
            self.choose(NO_TRACK)

    def forget(self) -> None:
        """Forget what waits for the end of the track."""
        self._waiting = None

    def end_and(self, send: Callable[[], None]) -> None:
        """End the track, which would override the user, then call send: at once, or when it has ended.

        A later call replaces one that waits; a call is forgotten if the goal publisher does not answer soon.
        """
        self.end()
        if self._parameters.busy:
            self._waiting, self._waits_until = send, steady() + PATIENCE
        else:
            send()

    def _answered(self, rejection: str) -> None:
        send, self._waiting = self._waiting, None
        if rejection:
            self._node.get_logger().warning(rejection)
        elif send is not None and steady() < self._waits_until:
            send()


SETTLED = 0.4  # [s] without a new goal or a moving joint after which a goal counts as no longer followed
SLIDER_HOLD = 1.0  # [s] that sliders keep a user's value while the arm has not moved yet
SELECTED = 1.0  # [s] after its last goal that a tool stays selected although another one has a newer goal
TURN = 2.0 * math.pi


class ViewedTool:
    """One tool, whose name is the prefix of its topics; the name of a single tool is empty.

    Callbacks of ROS only store messages; the node calls the other methods once per frame. arm is None without
    a robot.
    """

    def __init__(
        self,
        node: Node,
        panel: ToolPanel,
        name: str,
        refused: Callable[[], str],
        taken: Callable[[], None],
        aim: Callable[[viser.ClientHandle], object] = lambda _: None,
    ) -> None:
        """refused: returns why no goals may be sent, '' if they may be. taken: called when there is a newer goal, or
        none. aim: aims a browser's camera at the arm."""
        self._refused, self._taken, self._aim = refused, taken, aim
        self.name = name
        self.panel = panel
        self.arm: Arm | None = None
        self._described = ''  # in words
        self.reported = False  # the panel shows a status
        self._report: tuple[str, str, str] | None = None  # that of ~/status: status, state, sentence
        self._goal_seen = '', ''  # number and stamp of the goal that was reported last
        self._own_stamps: deque[str] = deque(maxlen=KEPT)  # of goals that this page sent
        self._shown: object = None  # which report, with which track
        self.scene: ToolScene | None = None
        self._node = node
        self.arm_state = ''  # as ik_node said last
        self._solution_errors = (math.nan, math.nan)
        self._targets: dict[str, float] = {}  # of the sliders, while a user has just moved them
        self.goal_shown = False  # the gizmo shows a goal; otherwise it follows the tool
        self._gizmo_at: Mapping[str, float] | None = None  # the joint positions of the tool that it follows
        self.goal_time = 0.0  # of the newest goal (steady)
        self._slider_time = 0.0
        self._foreign = ExternalGoalFilter()
        self._new: dict[str, Any] = {}  # per topic the newest message not displayed yet
        before = f'{name}/' if name else ''
        self._goal_publisher = node.create_publisher(PoseStamped, f'{before}goal_pose', NEWEST)
        self._joints_publisher = node.create_publisher(JointState, f'{before}goal_joints', NEWEST)
        self._before = before
        self.solver_name = f'{node.get_namespace().rstrip("/")}/ik_node{f"/{name}" if name else ""}'
        self.diagnosed = ''  # the condition from /diagnostics
        self.measured = False  # its joints are
        self.track = GoalTrack(node, f'{before}ik_goals')
        panel.on_track(self.track.choose)
        panel.goal.on_go(self.type_goal)
        panel.on_view(self._show_view)

    def subscribe(self) -> list[Subscription]:
        """Subscribe to goals and reports; the caller unsubscribes. The goal of the last report is shown."""
        self._goal_seen = '', ''
        self._own_stamps.clear()
        before = self._before
        return [
            subscribe(self._node, kind, source, self._store(topic), qos)
            for kind, topic, source, qos in (
                (PoseStamped, 'goal_pose', f'{before}goal_pose', NEWEST),
                (PoseWithCovarianceStamped, 'goal_cone', f'{before}goal_cone', NEWEST),
                (PointStamped, 'goal_point', f'{before}goal_point', NEWEST),
                (JointState, 'goal_joints', f'{before}goal_joints', NEWEST),
                (DiagnosticStatus, 'status', f'ik_node/{before}status', LATCHED),
            )
        ]

    def _store(self, topic: str) -> Any:
        def store(message: Any) -> None:
            self._new[topic] = message

        return store

    @property
    def joint_names(self) -> tuple[str, ...]:
        """The joints of the arm, none without one."""
        return self.arm.joint_names if self.arm else ()

    def show(self, arm: Arm | None, scene: ToolScene | None, known: bool = False) -> None:
        """Set the arm and scene of a new description; known: the same arm with other link lengths."""
        self.arm, self.scene = arm, scene
        self._targets = {}
        self.track.forget()
        self.release_gizmo()
        self.reported = known and self.reported
        self._report = self._report if known else None
        self._described = arm.describe() if arm is not None else ''  # what ik_node says of an arm that is ready
        self.panel.card.show_poses(None)
        if not known:
            self._taken()
            self.panel.goal.empty()

    # User input

    def process_inputs(self, watching: bool = False) -> Array | None:
        """Process the drags of users.

        watching: the gizmo commands nothing; then return T_base_goal (4, 4) to which a user dragged it.
        """
        if self.scene is None or self.arm is None:
            return None
        pose = self.scene.take_drag()
        if self.scene.take_late():
            self.release_gizmo()  # it is where nobody sent the arm
        if pose is None:
            return None
        if watching:
            self.scene.place_goal(pose)
            return pose
        arm = self.arm
        self._take_goal(pose, True)
        self.track.end_and(lambda: self._send_goal(arm, pose))
        return None

    def _show_view(self, event: Event) -> None:
        if self.scene is None:
            return
        if event.value == ARROWS:
            self._end_drags()
            self.release_gizmo()
        elif event.value == NUMBERS:
            self.panel.goal.fill()
        elif event.value == TRAIL:
            self.scene.clear_trail()
        elif event.client is not None:
            self._aim(event.client)

    def type_goal(self, position: Array, direction: Array) -> None:
        """Process a goal in numbers as a drag of the gizmo to it: position (3,) [m], direction (3,)."""
        if self.scene is None or self.arm is None:
            return
        if not np.linalg.norm(direction) > 0.0:
            self.panel.card.show_refusal('The direction 0, 0, 0 points nowhere: change one number.')
            return
        self.scene.drag(self._pose_towards(self.arm, self.scene.pose, position, direction))

    @staticmethod
    def _pose_towards(arm: Arm, T_base_tip: Array, position: Array, direction: Array) -> Array:
        """Return the pose (4, 4) of the tip with the tool at a goal, turned from another pose as little as possible."""
        _, axis = tool_at(arm, T_base_tip)
        pose = trimesh.geometry.align_vectors(axis, direction) @ T_base_tip
        pose[:3, 3] = position - pose[:3, :3] @ arm.tool_point
        return np.asarray(pose, dtype=np.float64)

    def end_goal(self) -> None:
        """End the track and the goal that the gizmo shows, and forget what waits to be sent."""
        self.track.end()
        self._taken()
        self._end_drags()
        self.goal_shown = False
        self._targets = {}

    def release_gizmo(self) -> None:
        """Let the gizmo follow the tool until the next goal."""
        self.goal_shown = False
        self._gizmo_at = None

    def _send_goal(self, arm: Arm, T_base_goal: Array) -> None:
        if self._refused():
            self.release_gizmo()
            return
        message = PoseStamped()
        message.header.stamp = self._node.get_clock().now().to_msg()
        message.header.frame_id = arm.base_link
        message.pose = matrix_pose(T_base_goal)
        self._foreign.sent(message)
        self._own_stamps.append(stamp_text(message.header.stamp))
        self._goal_publisher.publish(message)
        self._take_goal(T_base_goal, True)

    def send_joints(self, joints: Mapping[str, float], values: Mapping[str, float]) -> None:
        """Publish the slider positions; other joints keep theirs and are left out if they are unknown."""
        arm = self.arm
        if arm is None:
            return
        if not self._targets:
            self._targets = {name: values[name] for name in arm.joint_names if name in values}
        for name, value in joints.items():
            if arm.continuous[arm.joint_names.index(name)]:
                turns = round((self._targets.get(name, value) - value) / TURN)
                value += turns * TURN  # the sliders show one turn of a joint that may have made many
            self._targets[name] = value
        self._end_drags()
        self.goal_shown = False
        self._slider_time = steady()
        self._publish_joints(self._targets)

    def go_to(self, q: Array, T_base_goal: Array, with_direction: bool) -> None:
        """Send the arm to a configuration (n,) that meets a goal, and put the gizmo there."""
        joints = dict(zip(self.joint_names, q.tolist(), strict=True))
        self._end_drags()

        def send() -> None:
            self._take_goal(T_base_goal, with_direction)
            self._targets = joints
            self._publish_joints(joints)

        self.track.end_and(send)

    def _publish_joints(self, joints: Mapping[str, float]) -> None:
        if self._refused():
            self._targets = {}
            return
        self._taken()
        message = JointState(name=list(joints), position=list(joints.values()))
        message.header.stamp = self._node.get_clock().now().to_msg()
        self._foreign.sent(message)
        self._joints_publisher.publish(message)

    # Received messages

    def show_received(self, values: Mapping[str, float], watching: bool = False) -> None:
        """Show what has been received. watching: leave the gizmo alone.

        values: joint positions by name, another mapping once any of them has changed.
        """
        self.panel.card.show_node('' if self.diagnosed == self._described else self.diagnosed)
        if self.scene is None or self.arm is None:
            self._new = {key: new for key, new in self._new.items() if key == 'status'}  # for the next arm
            return
        new, self._new = self._new, {}
        foreign = {topic: message for topic, message in new.items() if self._foreign.is_new(message)}
        if 'goal_joints' in foreign:
            self.goal_shown = False
            self._taken()
        for topic in ('goal_pose', 'goal_cone', 'goal_point'):
            if topic in foreign and not watching:
                pose = goal_in_base(self.arm, foreign[topic], values)
                if pose is not None:
                    self._take_goal(pose, topic != 'goal_point')
        if 'status' in new:
            report = report_values(new['status'])
            self._take_report(report)
            self._take_reported_goal(self.arm, self.scene, report, watching)
            self._shown = None
        self._show_report()
        self.panel.set_track(self.track.name)
        if watching or self.goal_shown:
            self._gizmo_at = None
        elif (
            values
            and values is not self._gizmo_at
            and self.scene.place_goal(self.arm.link_in_base(self.arm.tip_link, values))
        ):
            self._gizmo_at = values

    def _take_reported_goal(self, arm: Arm, scene: ToolScene, report: Mapping[str, str], watching: bool) -> None:
        """Show the goal of a report if it has not come as a message: from before the page, or from a new program."""
        goal = report.get('goal_number', '0'), report.get('goal_stamp', '')
        if goal[0] == '0' or goal == self._goal_seen or report.get('status') == 'rejected':
            return
        self._goal_seen = goal
        newest = self.goal_shown and steady() - self.goal_time < SETTLED  # it may be on its way still
        if goal[1] in self._own_stamps or newest:
            return
        self._taken()
        position, direction = (_vector(report.get(f'goal_{name}', '')) for name in ('position', 'direction'))
        if position is None or watching or report.get('state') == 'stopped':
            return
        _, axis = tool_at(arm, scene.pose)
        pose = self._pose_towards(arm, scene.pose, position, axis if direction is None else direction)
        self._take_goal(pose, direction is not None)

    def _take_report(self, values: Mapping[str, str]) -> None:
        state = values.get('state', '')
        status = values.get('status', '') or state
        sentence = values['message'].removeprefix(f'{status}: ')
        self._solution_errors = _number(values.get('position_error', '')), _number(values.get('direction_error', ''))
        self.arm_state = values.get('arm', '')
        source = values.get('goal', '')
        if source:  # on the page a goal has no topic
            sentence = sentence.replace(f'{source} rejected', 'the goal was rejected', 1)
            sentence = sentence.replace(f'{source} ended', 'the goal ended', 1)
        else:
            self.diagnosed = ''  # it is older than this report on the arm
            self.panel.card.show_node('')
        self._report = status, state, HINT if values['message'] == self._described else sentence
        self.reported = True

    def _show_report(self) -> None:
        shown = self._report, self.track.moves and self.track.name
        if self._report is None or shown == self._shown:
            return
        self._shown = shown
        status, state, sentence = self._report
        if self.track.moves and (status, state) == ('solved', 'moving'):
            sentence = f'following the {LABELS[self.track.name or NO_TRACK]}; drag the arrows to take over'
        self.panel.card.show_report(status, state, self.arm_state, sentence)

    def take_diagnostics(self, status: DiagnosticStatus) -> None:
        """Store what ik_node says of the arm once per second."""
        values = report_values(status)
        self.diagnosed, self.arm_state = status.message, values.get('state', '')
        self.measured = MEASURED_AGE in values

    def place(self, values: Mapping[str, float]) -> None:
        """Move the tool to joint positions by name."""
        if self.scene is not None:
            self.scene.place(values)

    @property
    def stopped(self) -> bool:
        """Whether the arm moves only after a resume."""
        return self.arm_state in NEED_RESUME

    def show_poses(self, values: Mapping[str, float]) -> None:
        """Show in numbers where tool and goal are, at joint positions by name."""
        if self.scene is None or self.arm is None:
            return
        arm = self.arm
        tool, tool_direction = tool_at(arm, arm.link_in_base(arm.tip_link, values))
        pose = self.scene.gizmo_pose() if self.goal_shown else None
        if pose is None:
            self.panel.card.show_poses(Poses(tool, tool_direction))
            self.panel.goal.show(tool, tool_direction)
            return
        goal, direction = tool_at(arm, pose)
        directed = self.scene.directed
        errors = errors_between((tool, tool_direction), (goal, direction), directed)
        wanted = direction if directed else None
        self.panel.card.show_poses(Poses(tool, tool_direction, goal, wanted, errors, self._solution_errors))
        self.panel.goal.show(goal, direction if directed else tool_direction)

    def extend_trail(self) -> None:
        """Add a bead at the tool point; call it at a constant rate."""
        if self.scene is not None:
            self.scene.extend_trail()

    def followed(self, moved_time: float) -> bool:
        """Whether the tool is moving to a goal pose, or the goal itself is moving.

        moved_time: when a joint last moved (steady).
        """
        quiet = steady() - max(self.goal_time, moved_time)
        return self.goal_shown and (self.track.moves or quiet < SETTLED)

    def holds_sliders(self, moved_time: float) -> bool:
        """Whether the sliders show targets that the arm has yet to reach; moved_time as for followed."""
        if steady() - max(self._slider_time, moved_time) > SLIDER_HOLD:
            self._targets = {}
        return bool(self._targets)

    def _end_drags(self) -> None:
        """Release the gizmo, because a user of the panel no longer drags it."""
        if self.scene is not None:
            self.scene.end_drags()

    def _take_goal(self, T_base_goal: Array, with_direction: bool) -> None:
        assert self.scene is not None
        self.goal_shown = True
        self.goal_time = steady()
        self._targets = {}
        self._taken()
        self.scene.place_goal(T_base_goal, with_direction)


def errors_between(tool: tuple[Array, Array], goal: tuple[Array, Array], directed: bool) -> tuple[float, float]:
    """Return how far a tool is from a goal in position [m] and direction [rad], NaN unless directed.

    Each is a position (3,) [m] and a unit direction (3,).
    """
    (position, direction), (place, axis) = tool, goal
    angle = math.atan2(float(np.linalg.norm(np.cross(direction, axis))), float(direction @ axis))
    return float(np.linalg.norm(position - place)), angle if directed else math.nan


def selected(tools: Sequence[ViewedTool], before: ViewedTool) -> ViewedTool:
    """Return the tool with the newest goal, or the one selected before while it still gets goals."""
    if steady() - before.goal_time < SELECTED:
        return before
    return max(tools, key=lambda tool: tool.goal_time)


def _vector(text: str) -> Array | None:
    try:
        return finite_array('goal', [float(number) for number in text.split()], 3)
    except ValueError:
        return None


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
