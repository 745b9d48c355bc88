# SPDX-License-Identifier: Apache-2.0
"""Player: runs checked programs on the arm of ik_node, through its topics, services and parameters."""

from __future__ import annotations

import contextlib
import math
from collections import deque
from collections.abc import Mapping
from typing import Any

from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import PoseArray
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.subscription import Subscription
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger

from ik_node.control.settings import RobotSettings
from ik_node.errors import InputError
from ik_node.ros.conversions import matrix_pose, measured_values, report_values, stamp_text
from ik_node.ros.graph import graph
from ik_node.ros.interfaces import STREAM, subscribe
from ik_node.ros.neighbours import Neighbours
from ik_node.ros.parameters import RemoteParameters, RemoteSettings
from ik_node.teach.runner import Order, Runner, disturbance

ARM = 'ik_node'
SPEED, SHARE = 'speed_scaling', 'goal_speed'
STATUS_QOS = QoSProfile(depth=100)
REST = 0.3  # [s] without a motion after which an arm is at rest
STILL = 2e-3  # [rad or m] by which measured joints at rest differ: more than a step of a servo, 1.5e-3 rad
SPEED_PERIOD = 0.5  # [s] between two requests of the speed
PATIENCE = 10.0  # [s] for ik_node to appear, and for an arm to come to rest


class Player:
    """Prepares and makes the runs of programs of one tool; call update regularly, at 20 Hz or more.

    prepare() begins to listen to ik_node; once prepared is true, settings and joints are those to check with.
    Then run() follows a runner until it ends. joints: positions by name. interruption: why a run must not
    begin, such as a stop.
    """

    def __init__(self, node: Node, neighbours: Neighbours, tool: str = '') -> None:
        """neighbours: the other programs. tool: its name where there are several."""
        self._neighbours = neighbours
        self._node, prefix = node, f'{tool}/' if tool else ''
        self._topic = f'{ARM}/{prefix}status'
        self._joints_goals = node.create_publisher(JointState, f'{prefix}goal_joints', 1)
        self._path_goals = node.create_publisher(PoseArray, f'{prefix}goal_path', 1)
        self._stop = node.create_client(Trigger, f'{ARM}/{prefix}stop')
        self._parameters = RemoteParameters(node, ARM, [SPEED], on_set=self._speed_answered)
        self._settings = RemoteSettings(node)
        self._subscriptions: list[Subscription] = []
        self._reports: deque[dict[str, str]] = deque()
        self.runner: Runner | None = None
        self.interruption = ''
        self._reporters: set[tuple[int, ...]] = set()
        self._scaling = math.nan  # speed_scaling with which the program was checked
        self._slow = False  # goal_speed may be below 1
        self._paced: float | None = None  # that of the order that comes next, once it is set
        self._read_at = -math.inf  # when the speed was requested [s]
        self.joints: dict[str, float] = {}  # positions by name, while it listens
        self._rest_joints: Mapping[str, float] = {}  # joints since the arm is at rest
        self._rest_since = self._deadline = self._now = math.inf  # times [s]

    @property
    def settings(self) -> RobotSettings | None:
        """Those of ik_node, None before they are known."""
        return self._settings.current

    @property
    def busy(self) -> bool:
        """Whether a run goes on."""
        return self.runner is not None

    @property
    def prepared(self) -> bool:
        """Whether settings and joints are known, the arm is at rest, and nothing has interrupted."""
        resting = self._rest_since + REST <= self._now and self._neighbours.settled
        return resting and not self.interruption and self.settings is not None and bool(self._publishers())

    def prepare(self, now: float) -> None:
        """Begin to listen, at now [s]."""
        if not self._subscriptions:
            self._subscriptions = [
                subscribe(self._node, DiagnosticStatus, self._topic, self._on_status, STATUS_QOS),
                subscribe(self._node, JointState, 'joint_states', self._on_joints, STREAM),
            ]
        self._reports.clear()
        self.joints.clear()
        self.interruption, self._deadline = '', now + PATIENCE
        self._rest_joints, self._rest_since = {}, math.inf
        self._settings.reset()
        self._settings.refresh()

    def run(self, runner: Runner, speed: float) -> None:
        """Follow a runner until it ends. speed: the speed_scaling with which it was checked."""
        assert self.settings is not None
        self._slow = self.settings.general.goal_speed != 1.0  # a program that was killed has left it
        self.runner, self._scaling, self._paced = runner, speed, None
        self._reporters = self._publishers()
        self._parameters.reset()
        self._read_at = -math.inf

    def release(self) -> None:
        """Listen no longer."""
        for subscription in self._subscriptions:
            self._node.destroy_subscription(subscription)
        self._subscriptions = []

    def stop(self) -> Any:
        """Stop the arm; return the future response, None without ik_node."""
        return self._stop.call_async(Trigger.Request()) if self._stop.service_is_ready() else None

    def update(self, now: float) -> None:
        """Do what is due at now [s]."""
        self._now = now
        if self.runner is None:
            self._prepare(now)
            return
        while self._reports:
            self.runner.on_report(self._reports.popleft(), now)
        if not self._reporters & self._publishers():  # a node that was started later does not know the goal
            self.runner.end('ik_node has ended or cannot be reached')
        self._watch_speed(self.runner, now)
        order = self.runner.due(now, self.joints)
        if order is not None:
            self._carry_out(self.runner, order, now)
        if self.runner.stops:
            self.runner.stops = False
            self.stop()
        if not self.runner.active:
            self.runner = None
            self.release()

    def _prepare(self, now: float) -> None:
        if not self._subscriptions:
            return
        moving = False
        while self._reports:
            report = self._reports.popleft()
            if report.get('state') in ('moving', 'ready'):  # the arm has yet to come to rest
                moving = True
            else:
                self.interruption = self.interruption or disturbance(report)
        self.interruption = self.interruption or (self._neighbours.foreign() if self._neighbours.settled else '')
        if self.settings is None and not (self._settings.reading or self._settings.failure):
            self._settings.refresh()
        rested, joints = self._rest_joints, self.joints.items()
        if moving or any(abs(value - rested.get(name, math.inf)) > STILL for name, value in joints):
            self._rest_joints, self._rest_since = dict(self.joints), now
        if self._settings.failure:
            self.interruption = self._settings.failure
        elif now > self._deadline and self._rest_since is not math.inf and self._rest_since + REST > now:
            self.interruption = f'the arm has not come to rest within {PATIENCE:g} s'
        elif now > self._deadline and not self.prepared:
            self.interruption = self.interruption or f'{ARM} is not running, or there are no joint_states'

    def _carry_out(self, runner: Runner, order: Order, now: float) -> None:
        """Send a goal, at its speed."""
        if self._parameters.busy:
            self._parameters.refresh()  # it gives up after a while
            return
        if self._paced != order.speed and (self._slow or order.speed != 1.0):
            if self._parameters.set(**{SHARE: order.speed}):
                self._slow, self._paced = order.speed != 1.0, order.speed
            return
        message: Any
        if order.joints is not None:
            message = JointState(name=list(order.joints), position=list(order.joints.values()))
            publisher = self._joints_goals
        else:
            assert order.T_base_tip is not None
            message, publisher = PoseArray(poses=[matrix_pose(order.T_base_tip)]), self._path_goals
        if not publisher.get_subscription_count():
            return
        message.header.stamp = self._node.get_clock().now().to_msg()
        self._paced = None
        runner.sent(order, stamp_text(message.header.stamp), now)
        publisher.publish(message)

    def _watch_speed(self, runner: Runner, now: float) -> None:
        """End the run if somebody changes the speed."""
        if self._parameters.busy or not runner.active:
            return
        speed = self._parameters.values.get(SPEED, self._scaling)
        if speed != self._scaling:
            runner.end(f'{SPEED} was changed to {speed:g} in the meantime')
        elif now > self._read_at + SPEED_PERIOD:
            self._read_at = now
            self._parameters.refresh()

    def _speed_answered(self, rejection: str) -> None:
        if rejection and self.runner is not None:
            self.runner.end(f'{SHARE}: {rejection}')

    def _on_status(self, status: DiagnosticStatus) -> None:
        self._reports.append(report_values(status))

    def _on_joints(self, message: JointState) -> None:
        with contextlib.suppress(InputError):  # ik_node rejects it too
            self.joints |= measured_values(message)

    def _publishers(self) -> set[tuple[int, ...]]:
        """Return the ids of the publishers of reports."""
        topics = [one.topic_name for one in self._subscriptions[:1]]
        return graph.publisher_ids(self._node, topics[0]) if topics else set()
