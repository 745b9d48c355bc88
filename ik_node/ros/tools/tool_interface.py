# SPDX-License-Identifier: Apache-2.0
"""ToolInterface: the topics and services of one tool, in front of the controller that moves it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.node import Node
from std_srvs.srv import SetBool

from ik_node.control.controller.controller import ArmController
from ik_node.control.controller.inbox import Inbox
from ik_node.control.controller.statistics import Statistics
from ik_node.control.joints.shared_robot import SharedRobot
from ik_node.control.outputs.outputs import Output
from ik_node.control.settings.arm import ArmSettings
from ik_node.control.state.report import Level, Report
from ik_node.control.state.requests import HomeRequest
from ik_node.control.state.snapshot import Snapshot
from ik_node.control.state.states import ON_ITS_WAY
from ik_node.errors import InputError
from ik_node.model.arm import Arm
from ik_node.ros import interfaces
from ik_node.ros.goals.frames import Frames
from ik_node.ros.goals.goal_requests import GOALS, SHARED, GoalContext, GoalRequest
from ik_node.ros.goals.node_time import NodeTime
from ik_node.ros.goals.projection import Projection
from ik_node.ros.goals.reports import goal_state, status_message
from ik_node.ros.rviz.goal_markers import GoalMarkers
from ik_node.ros.teleop.teleop_interface import TeleopInterface
from ik_node.ros.tools.diagnostic_values import arm_values
from ik_node.ros.tools.report_pace import ReportPace
from ik_node.steady import steady

ServiceResult = tuple[bool, str]  # whether a service succeeded, and one sentence
STATE_PERIOD = 0.1  # [s] from one goal_state to the next while the arm moves


@dataclass(frozen=True, eq=False)
class NodeContext:
    """State shared by the tools of a node.

    urgent: a node whose executor serves what must not wait behind messages. inbox: of goals.
    queries: inbox of queries. send_now: called when an arm begins to move. clear_driver: ends a hold or a
    fault of the driver.
    """

    node: Any
    urgent: Node
    time: NodeTime
    frames: Frames
    inbox: Inbox
    queries: Inbox
    statistics: Statistics
    robot: SharedRobot
    send_now: Callable[[], None]
    clear_driver: Callable[[Sequence[str]], Awaitable[None]]


class ToolInterface:
    """The topics and services of one tool.

    tool: its name, empty if there is only one; prefix of the names of topics and services. own: its
    controller. Tools that share joints are moved by the controller of the first of them, leader.
    """

    def __init__(
        self,
        shared: NodeContext,
        tool: str,
        settings: Callable[[], ArmSettings],
        outputs: Callable[[ToolInterface], Sequence[Output]],
    ) -> None:
        """outputs: gives those of the own controller, once."""
        self.tool = tool
        self._node, self._time, self._send_now = shared.node, shared.time, shared.send_now
        self._inbox, self._statistics = shared.inbox, shared.statistics
        node, frames, urgent = shared.node, shared.frames, shared.urgent
        self.prefix = prefix = f'{tool}/' if tool else ''
        self.name = f'{node.get_name()}/{tool}' if tool else node.get_name()
        self.goals = GoalContext(frames, shared.time, lambda: settings().goal_timeout, tool)
        self.last_report: Report | None = None  # on a goal
        self._state_due = 0.0  # when the next goal_state is (steady)
        self._on_its_way = False  # at the last setpoint
        self._stopped = False  # a stop was requested, and no resume since
        self._pace = ReportPace(self._publish)
        self._members = [self]  # the tools that this controller moves
        self._status = interfaces.STATUS.publisher(node, prefix)
        self._goal_state = interfaces.GOAL_STATE.publisher(node, prefix)
        self.markers = GoalMarkers(interfaces.MARKERS.publisher(node, prefix))
        self.leader = self
        self.own = ArmController(self._hear, outputs(self), shared.robot)
        for topic, kind in GOALS.items():
            store = partial(self._store, topic.named(prefix), kind)
            topic.subscription(node, store, prefix, refuse=store)
        Projection(node, prefix, self.goals, shared.queries)
        self.teleop = TeleopInterface(node, prefix, self.own, frames, shared.time, settings)
        interfaces.HOME.provide(node, answered(self.home), prefix)
        interfaces.STOP.provide(node, answered(self.stop), prefix, by=urgent)
        offer_resume(shared, self.resume, prefix, lambda: self.leader.own.needed)
        interfaces.HAND_GUIDE.provide(node, self._hand_guide, prefix, by=urgent)

    def close(self) -> None:
        """End what moves the arm."""
        self.teleop.close()

    def bind(self, members: Sequence[ToolInterface]) -> None:
        """Move these tools, of which this is the first, with the own controller."""
        self._members = list(members)
        for member in members:
            member.leader = self
            member.teleop.reject(SHARED if len(members) > 1 else '')
        if any(member._stopped for member in members):
            self.own.stop()

    @property
    def leads(self) -> bool:
        """Whether its own controller moves it."""
        return self.leader is self

    def label(self, text: str) -> str:
        """Return text for the log, prefixed with the name of the tool."""
        return text if text.startswith(self.prefix) else f'{self.tool}: {text}'

    def snapshot(self) -> Snapshot | None:
        """Return the present state of the arm; None before the first one."""
        return self.leader.own.snapshot(self.tool)

    def renew(self, arm: Arm, replaced: bool) -> None:
        """Complete the switch to a new robot: goals for the previous one are void."""
        if replaced:
            self.goals.replaced = steady()
        self.goals.joints = None
        self.markers.clear()
        for warning in arm.warnings:
            self._node.get_logger().warning(warning)

    # Goals and services

    def _store(self, topic: str, kind: type[GoalRequest], message: Any, refusal: str = '') -> None:
        pushed = self._inbox.put(kind(topic, message, self.goals, refusal))
        self._statistics.count('superseded', pushed)

    def home(self) -> ServiceResult:
        """Move to the home position; return whether the arm is ready, and a sentence."""
        if not self.leader.own.ready:
            return False, self.leader.own.condition()[1]
        self._inbox.put(HomeRequest(self.tool, f'~/{self.prefix}home'))
        return True, 'moving to the home position'

    def stop(self) -> ServiceResult:
        """Stop until resume."""
        self._stopped = True
        for member in self.leader._members:
            self._inbox.clear(member.tool)
        self.leader.own.stop()
        return True, f'stopping; call ~/{self.prefix}resume to continue'

    def resume(self) -> ServiceResult:
        """Accept goals again."""
        result = self._tried(self.leader.own.resume)
        if result[0]:
            for member in self.leader._members:
                member._stopped = False
        return result

    def _hand_guide(self, request: SetBool.Request, response: SetBool.Response) -> SetBool.Response:
        """Begin or end hand guiding."""
        guided = self._tried(lambda: self.leader.own.guide(request.data, self._time.now()))
        response.success, response.message = guided
        return response

    def _tried(self, act: Callable[[], None]) -> ServiceResult:
        try:
            act()
        except InputError as error:
            return False, str(error)
        return True, self.leader.own.condition()[1]

    # Reports

    def _hear(self, report: Report) -> None:
        """Forward a report of the own controller: on a goal to its tool, else to all tools."""
        tool = None if report.request is None else report.request.tool
        for member in self._members:
            if tool in (None, member.tool):
                member.report(report, logged=report.logged and (tool is not None or member is self))

    def report(self, report: Report, logged: bool = True) -> None:
        """Publish the result of a goal or the state of the arm, and log problems."""
        if report.request is not None:
            self.last_report = report
            self._count(report)
        if report.status == 'rejected' or report.phase == 'stopped':
            self.goals.joints = None  # a repeated joint goal is a new one
        self._pace.add(report)
        if report.request is not None and report.phase == 'moving' and not self._on_its_way:
            self._send_now()
        if logged and not self._node.closing:  # rejections during shutdown are expected
            self._log(report)

    def _count(self, report: Report) -> None:
        """Count the result of a goal, and show the goal if it is pursued."""
        if report.phase in ('moving', 'held'):
            self._statistics.count('taken')
            self._statistics.solved_in(report.solve_time)
            if report.goal is None or report.solution is None:
                self.markers.clear()
            else:
                self.markers.set(report.goal, report.solution.status)
        elif report.status == 'rejected':
            self._statistics.count('rejected')

    def _log(self, report: Report) -> None:
        log = self._node.get_logger()
        message = self.label(report.message)
        if report.level is Level.ERROR:
            log.error(message, throttle_duration_sec=2.0)
        elif report.level is Level.WARN:
            log.warning(message, throttle_duration_sec=2.0)
        elif report.request is None:
            log.info(message)

    def _publish(self, report: Report) -> None:
        self._status.publish(status_message(self.name, report))
        self._publish_goal_state()

    def _publish_goal_state(self) -> None:
        self._state_due = steady() + STATE_PERIOD
        snapshot = self.snapshot() if self._goal_state.get_subscription_count() else None
        if snapshot is not None:
            self._goal_state.publish(goal_state(self.last_report, snapshot))

    def publish_due(self) -> None:
        """Publish a delayed report, if it is due."""
        self._pace.publish_due()

    def moved(self) -> None:
        """Publish the progress of a moving arm when it is due; call it after each setpoint."""
        self.publish_due()
        self._on_its_way = self.leader.own.state in ON_ITS_WAY
        if self._on_its_way and steady() >= self._state_due:
            self._publish_goal_state()

    def diagnostics(self, condition: str) -> dict[str, str]:
        """Return the values of the arm for /diagnostics; condition: of the arm, as a sentence."""
        snapshot = self.snapshot()
        if snapshot is None:
            return {'state': self.leader.own.state.value}
        return arm_values(snapshot, self.last_report, condition)


def offer_resume(
    shared: NodeContext,
    act: Callable[[], ServiceResult],
    prefix: str = '',
    joints: Callable[[], Sequence[str]] = tuple,
) -> None:
    """Provide ~/resume: act, after the drivers of joints (none: of all) take commands again."""

    async def callback(_: Any, response: Any) -> Any:
        await shared.clear_driver(joints())
        response.success, response.message = act()
        return response

    # a group of its own: a stop does not wait for the driver
    group = MutuallyExclusiveCallbackGroup()
    interfaces.RESUME.provide(shared.node, callback, prefix, group, shared.urgent)


def answered(act: Callable[[], ServiceResult]) -> Callable[[Any, Any], Any]:
    """Return a service callback that responds with the result of act."""

    def callback(_: Any, response: Any) -> Any:
        response.success, response.message = act()
        return response

    return callback
