# SPDX-License-Identifier: Apache-2.0
"""ik_leader: an arm that a hand moves, the leader, leads the arm of ik_node, the follower.

An arm of the same geometry sends goals for joints, any other one poses of an operator. Where the leader stands when
it begins, when it ends and why: see control/leading.py.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import PoseStamped
from rclpy.qos import DurabilityPolicy, QoSProfile
from sensor_msgs.msg import JointState
from std_msgs.msg import Bool, Float64MultiArray, String
from std_srvs.srv import SetBool, Trigger

from ik_node.checks import yaml_number
from ik_node.control.leading import TOPIC, Leader, LeaderSettings
from ik_node.control.models import limited_arm
from ik_node.control.requests import Level
from ik_node.control.states import State
from ik_node.errors import IkError, InputError, join_names
from ik_node.model.arm import Arm
from ik_node.model.urdf.description import load_description
from ik_node.model.urdf.reader import read_urdf
from ik_node.ros import interfaces
from ik_node.ros.conversions import matrix_pose, measured_values, report_values, stamp_text
from ik_node.ros.graph import graph
from ik_node.ros.gripper import GripperRemote
from ik_node.ros.interfaces import (
    GOAL_QOS,
    LATCHED,
    MANY_JOINTS,
    MEASURED,
    NEWEST,
    NUMBER,
    STREAM,
    PublishedTopic,
    Service,
    SubscribedTopic,
    subscribe,
)
from ik_node.ros.neighbours import Neighbours
from ik_node.ros.parameters import RemoteSettings, declare
from ik_node.ros.reports import NodeTime, diagnostic
from ik_node.ros.run import ClosableNode, run

LEADER_STATES = SubscribedTopic(
    TOPIC,
    'sensor_msgs/JointState',
    'measured joints of the leader, all in one message, at 30 Hz or more',
    MEASURED,
    MANY_JOINTS,
)
STATUS = PublishedTopic(
    '~/status',
    'diagnostic_msgs/DiagnosticStatus',
    'whether the follower follows, or what is in the way, as a sentence; `state` (`following` or `waiting`), and by '
    'the names of joints how far the leader must turn [rad or m]',
    LATCHED,
)
LEAD = Service(
    '~/lead',
    'std_srvs/SetBool',
    'true: the follower may follow; for a leader of another make this is the clutch, which opens when the motion ends, '
    'and stays open, which the response tells, if anything is in the way. False: it no longer follows',
)
PERIOD = 0.05  # [s] from one look to the next
SEARCH = 1.0  # [s] from one look at the other programs to the next
SILENT = 0.5  # [s] without joint_states of the follower
REPEATED = 1.0  # [s] from one ~/status to the next that says the same
SAID = 2.0  # [s] from one line of the log to one that differs from it only in numbers
STATUS_QOS = QoSProfile(depth=100, durability=DurabilityPolicy.TRANSIENT_LOCAL)
NOT_READY = ('stopped', 'faulted', 'hand-guided', 'waiting')  # states of the follower in reports on no goal
SENT = 1000  # goals of which a report may still come


class LeaderNode(ClosableNode):
    """The node; options are those of rclpy's Node. Raises IkError if it cannot start with its parameters."""

    def __init__(self, **options: Any) -> None:
        super().__init__('ik_leader', **options)
        self._settings = declare(self, LeaderSettings)
        self._time = NodeTime(self)
        path, self._leader_arm = self._settings.leader_description, None
        if path:
            text = load_description(Path(path).expanduser(), self._settings.leader_xacro_args)
            self._leader_arm = Arm(read_urdf(text), self._settings.leader_tip_link or None, tool_axis='z')
        tool = self._settings.tool
        arm, prefix = (f'ik_node/{tool}', f'{tool}/') if tool else ('ik_node', '')
        self._leader: Leader | None = None
        self._text = ''  # the description of the follower
        self._follower: dict[str, float] = {}  # its positions by joint
        self._heard = -math.inf  # when they came [s]
        self._searched = -math.inf  # when the other programs were last looked for [s]
        self._alone = ''  # why the leader must not lead because of other programs
        self._refusal = ''  # why the follower takes no goals
        self._unusable = ''  # why the follower cannot be led
        self._sent: deque[str] = deque(maxlen=SENT)  # stamps of goals
        self._said, self._said_at = '', -math.inf
        self._published, self._published_at = '', -math.inf
        self._remote = RemoteSettings(self)
        goals = [f'{prefix}goal_joints', f'{arm}/pose_target_cmds']
        self._goals = self.create_publisher(JointState, goals[0], NEWEST)
        self._poses = self.create_publisher(PoseStamped, goals[1], NEWEST)
        self._enable = self.create_publisher(Bool, f'{arm}/enable', GOAL_QOS)
        self._gripper, self._asked = GripperRemote(self, arm, self._on_gripper), math.nan  # its last opening
        self._cancel = self.create_client(Trigger, f'{arm}/cancel')
        self._met = Neighbours(self, 'ik_leader', sends=goals)
        self._status = STATUS.publisher(self)
        LEAD.provide(self, self._lead)
        interfaces.DESCRIPTION.subscription(self, self._describe)
        LEADER_STATES.subscription(self, self._on_leader)
        subscribe(self, JointState, 'joint_states', self._on_follower, MEASURED)
        subscribe(self, JointState, goals[0], self._on_goal, STREAM)
        for topic in (interfaces.GOAL_POSE, interfaces.GOAL_POINT, interfaces.GOAL_PATH):
            name = topic.named(prefix)
            subscribe(self, topic.type, name, partial(self._on_other, name), topic.qos, topic.largest)
        subscribe(self, DiagnosticStatus, f'{arm}/status', self._on_status, STATUS_QOS)
        subscribe(self, Float64MultiArray, f'{arm}/goal_state', self._on_state, STREAM)
        self.create_timer(PERIOD, self._look)

    def come_to_rest(self) -> None:
        """Let the follower come to rest."""
        self._end('ik_leader ends', brake=True)

    # The leader

    def _on_leader(self, message: JointState) -> None:
        leader, now = self._leader, self._time.now()
        if leader is None:
            return
        try:
            positions = measured_values(message)
        except InputError as error:
            self.get_logger().warning(f'message on {TOPIC} ignored: {error}', throttle_duration_sec=SAID)
            return
        leads = leader.take(positions, now, self._time.of(message.header.stamp))
        self._look()
        if not (leads and leader.following):
            return
        stamp = self._time.stamp(now)
        if leader.by_joints:
            goal = leader.goal(now, self._follower)
            joints = JointState(name=list(leader.follower.joint_names), position=goal.tolist())
            joints.header.stamp = stamp
            self._sent.append(stamp_text(stamp))
            self._goals.publish(joints)
        else:
            pose = PoseStamped(pose=matrix_pose(leader.pose()))
            pose.header.stamp = message.header.stamp
            self._enable.publish(Bool(data=True))
            self._poses.publish(pose)
        if (opening := leader.opening(self._follower)) is not None:
            self._gripper.open(opening)

    def _look(self) -> None:
        now = self._time.now()
        self._heard, self._said_at = min(self._heard, now), min(self._said_at, now)  # the clock may be set back
        self._search(now)
        if self._leader is None and self._text and self._remote.current is not None and not self._unusable:
            self._know()
        hindrance = self._hindrance(now)
        if self._leader is None:
            self._say(hindrance)
            return
        if self._leader.look(now, self._follower, hindrance):
            self._release(brake=True)
        self._say(self._leader.condition)

    def _hindrance(self, now: float) -> str:
        """Return why the follower must not follow, '' if nothing is in the way."""
        if now - self._heard > SILENT:
            return 'the follower publishes no joint_states: is ik_node running?'
        if self._leader is None:
            return self._remote.failure or self._unusable or 'the follower is not known yet'
        return self._alone or self._refusal

    def _search(self, now: float) -> None:
        """Look for other programs, and for the follower while it is not known."""
        if now - self._heard > SILENT:
            self._forget('the follower publishes no joint_states')
        if 0.0 <= now - self._searched < SEARCH:
            return
        self._searched = now
        leaders = graph.publishing_nodes(self, TOPIC)
        self._alone = self._met.foreign() if self._met.settled else 'the other programs are looked for'
        if len(leaders) > 1:
            self._alone = f'{join_names(leaders)} publish {TOPIC}: end all but one'
        if self._leader is None and self._remote.current is None:
            self._remote.refresh()

    def _know(self) -> None:
        """Take the follower as its description and the parameters of ik_node tell it."""
        assert self._remote.current is not None
        try:
            own = self._remote.current.arms.get(self._settings.tool)
            if own is None:
                raise InputError(
                    f'ik_node has the tools {join_names(self._remote.current.arms)}: set the parameter tool'
                )
            follower = limited_arm(Arm(read_urdf(self._text), **own.tool()), own)
            self._leader = Leader(self._settings, follower, own.gripper(follower), self._leader_arm)
            self._leader.gripped(self._asked, outdated=False)
        except IkError as error:
            self._unusable = str(error)
            return
        self._unusable = ''
        log = self.get_logger()
        if self._leader.by_joints:
            log.info('the leader leads joint by joint')
        else:
            log.info(f'the leader leads the tool: {self._leader.unlike}')

    def _forget(self, why: str) -> None:
        if self._leader is not None:
            self._end(why, brake=False)
            self._leader = None
        self._unusable = ''
        self._remote.reset()

    def _end(self, why: str, brake: bool) -> None:
        if self._leader is not None and self._leader.following:
            self._leader.end(why, self._time.now())
            self._release(brake)
            self._say(self._leader.condition)

    def _release(self, brake: bool) -> None:
        """Let go of the follower. brake: nothing else moves or has stopped it."""
        assert self._leader is not None
        if not self._leader.by_joints:
            self._enable.publish(Bool(data=False))
        elif brake and self._cancel.service_is_ready():
            self._cancel.call_async(Trigger.Request())

    def _lead(self, request: SetBool.Request, response: SetBool.Response) -> SetBool.Response:
        if self._leader is None:
            response.success, response.message = False, self._hindrance(self._time.now())
            return response
        if not request.data:
            self._end('~/lead was called with false', brake=True)
        self._leader.lead(request.data)
        self._look()
        response.success, response.message = self._leader.wanted is request.data, self._leader.condition
        return response

    # The follower

    def _describe(self, message: String) -> None:
        if message.data != self._text:
            self._forget('the follower has another description')
        self._text = message.data

    def _on_follower(self, message: JointState) -> None:
        try:
            self._follower |= measured_values(message)
        except InputError:  # ik_node rejects it too
            return
        self._heard = self._time.now()

    def _on_goal(self, message: JointState) -> None:
        if stamp_text(message.header.stamp) not in self._sent:
            self._on_other('goal_joints', message)

    def _on_other(self, name: str, _: Any) -> None:
        self._end(f'another goal moves the follower: {name}', brake=False)

    def _on_status(self, status: DiagnosticStatus) -> None:
        report = report_values(status)
        state, message = report.get('state', ''), report['message']
        if report.get('goal_number') not in ('0', None):
            own = report.get('goal_stamp') in self._sent
            if own and state in ('rejected', 'stopped'):
                self._end(message, brake=False)
            elif not own and state == 'moving':
                self._end(f'another goal moves the follower: {report.get("goal")}', brake=False)
            if state == 'moving':
                self._refusal = ''
        elif state in NOT_READY:
            self._refusal = f'the follower: {message}'
        elif state == 'ready':
            self._refusal = ''

    def _on_gripper(self, report: Mapping[str, str]) -> None:
        target = yaml_number(report.get('target'))
        if target is None or report.get('state') == 'rejected':
            return
        self._asked = target
        if self._leader is not None:
            self._leader.gripped(target, self._gripper.moves)

    def _on_state(self, numbers: Float64MultiArray) -> None:
        teleoperated = len(numbers.data) > 1 and numbers.data[1] == State.TELEOPERATED.code
        if teleoperated and self._leader is not None and self._leader.by_joints:
            self._end('an operator moves the follower by teleoperation', brake=False)

    # Words

    def _say(self, sentence: str) -> None:
        """Publish a sentence, and log it, but not each of those that differ only in numbers."""
        now, leader = self._time.now(), self._leader
        new = sentence != self._published
        if not new and 0.0 <= now - self._published_at < REPEATED:
            return
        self._published, self._published_at = sentence, now
        follows = leader is not None and leader.following
        values = {'state': 'following' if follows else 'waiting', **(leader.far if leader else {})}
        self._status.publish(diagnostic(Level.OK if follows else Level.WARN, self.get_name(), sentence, values))
        kind = NUMBER.sub('', sentence)
        if new and (kind != self._said or now - self._said_at > SAID):
            self._said, self._said_at = kind, now
            self.get_logger().info(sentence)


def main() -> int:
    """Run ik_leader."""
    return run('ik_leader', LeaderNode)
