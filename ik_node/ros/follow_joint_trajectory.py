# SPDX-License-Identifier: Apache-2.0
"""follow_joint_trajectory: whole motions for the action of a joint_trajectory_controller of ros2_control.

Unlike the topic, the action reports whether a trajectory is accepted and how it ended.
"""

from __future__ import annotations

import importlib
import os
from typing import Any

from rclpy.action.client import ActionClient
from rclpy.clock import Clock
from rclpy.clock_type import ClockType
from rclpy.node import Node
from trajectory_msgs.msg import JointTrajectory as JointTrajectoryMessage

from ik_node.control.locks import Rank, ordered_lock
from ik_node.control.trajectory import JointTrajectory, Setpoint
from ik_node.errors import MissingError, escaped
from ik_node.ros.conversions import NS_PER_S
from ik_node.ros.outputs import OutputContext, TrajectoryOutput

ACTION = 'follow_joint_trajectory'
PATIENCE = 1.0  # [s] within which the controller must accept or reject a trajectory
# FollowJointTrajectory.Result.error_code
ERRORS = {
    -1: 'invalid goal',
    -2: 'invalid joints',
    -3: 'old header timestamp',
    -4: 'path tolerance violated',
    -5: 'goal tolerance violated',
}
SUCCEEDED, CANCELED = 4, 5  # action_msgs/msg/GoalStatus


def action_type() -> Any:
    """Return the type of the action. Raises MissingError."""
    try:
        return importlib.import_module('control_msgs.action').FollowJointTrajectory
    except ModuleNotFoundError:
        distribution = os.environ.get('ROS_DISTRO', 'jazzy')
        raise MissingError(
            f'output {ACTION} needs the ROS package control_msgs, which is not installed: '
            f'sudo apt install ros-{distribution}-control-msgs. PyPI does not have it; '
            'output joint_trajectory works without it'
        ) from None


def failure(status: int, result: Any) -> str:
    """Return how a controller ended a trajectory as a sentence, empty if it succeeded."""
    if status == SUCCEEDED and result.error_code == 0:
        return ''
    what = 'cancelled' if status == CANCELED else ERRORS.get(result.error_code, f'error {result.error_code}')
    detail = f': {escaped(result.error_string)}' if result.error_string else ''
    return f'the controller ended the trajectory ({what}){detail}'


class Client(ActionClient):
    """Receives no response before its goal is registered: rclpy drops such responses (ros2/rclpy#1123)."""

    def __init__(self, node: Node, kind: Any, name: str) -> None:
        self._noting = ordered_lock(Rank.GOAL)
        super().__init__(node, kind, name)

    def send_goal_async(self, *args: Any, **named: Any) -> Any:
        """Send a goal, in any thread."""
        with self._noting:
            return super().send_goal_async(*args, **named)

    async def execute(self, taken_data: Any) -> None:
        """Process a response."""
        with self._noting:
            pass  # not longer: what is passed on takes other locks
        await super().execute(taken_data)


class FollowJointTrajectoryAction(TrajectoryOutput):
    """Sends each plan as a goal of the action follow_joint_trajectory; the newest replaces the others.

    A stop or a hold is sent as a goal too, because on cancellation the controller brakes beyond the limits of
    the arm. If the controller does not accept that goal, the one that it executes is cancelled.
    """

    def __init__(self, context: OutputContext) -> None:
        super().__init__(context)
        self._action = action_type()
        self._name = context.node.resolve_topic_name(context.named(ACTION))
        self._client = Client(context.node, self._action, context.commands(ACTION))
        self._steady = Clock(clock_type=ClockType.STEADY_TIME)
        self._lock = ordered_lock(Rank.ACTION)  # goals are sent and answered in different threads
        self._number = 0  # of the newest goal
        self._void = 0  # the newest goal that was abandoned
        self._sent_at: int | None = None  # when the newest goal was sent, None once it is answered [ns]
        self._handle: Any = None  # of the goal that the controller executes
        self._running = 0  # its number

    def take(self, setpoint: Setpoint) -> None:
        """Send the trajectory that is due, if any, and check that the controller responds."""
        super().take(setpoint)
        with self._lock:
            late = self._sent_at is not None and self._now() - self._sent_at > PATIENCE * NS_PER_S
            if late:
                self._sent_at = None
        if late:
            self._fail(f'the controller does not respond within {PATIENCE:g} s')

    def send(self, message: JointTrajectoryMessage, braking: bool) -> None:
        """Send a trajectory as a goal."""
        if not self._client.server_is_ready():
            self._fail(f'no controller provides the action {self._name}')
            return
        with self._lock:
            self._number += 1
            number = self._number
            self._sent_at = self._now()
        # At once: the thread for responses may be busy, and a late goal makes the controller jump.
        future = self._client.send_goal_async(self._action.Goal(trajectory=message))
        future.add_done_callback(lambda done: self._answered(done, number, braking))

    def done(self) -> bool:
        """Whether the controller has ended the newest trajectory."""
        with self._lock:
            return self._sent_at is None and self._handle is None

    def halted(self, hold_trajectory: JointTrajectory | None) -> None:
        """Hold the joints by a last goal; without motion cancel all goals."""
        with self._lock:
            self._void, self._sent_at = self._number, None
            if hold_trajectory is None:
                self._cancel()
        super().halted(hold_trajectory)

    def _answered(self, future: Any, number: int, braking: bool) -> None:
        error = future.exception()
        handle = None if error else future.result()
        with self._lock:
            newest = number == self._number
            if newest:
                self._sent_at = None
            if handle is None or not handle.accepted:
                if not newest:
                    return  # the next one decides
                self._cancel()
            elif number <= self._void:
                if newest:
                    handle.cancel_goal_async()
                return
            elif number > self._running:
                if braking:
                    self._cancel()  # for controllers that queue goals
                self._handle, self._running = handle, number
        if handle is None or not handle.accepted:
            self._fail(str(error) if error else 'the controller rejected the trajectory')
        else:
            handle.get_result_async().add_done_callback(lambda done: self._ended(done, number))

    def _ended(self, future: Any, number: int) -> None:
        with self._lock:
            if number != self._number or number <= self._void:
                return  # replaced or cancelled
            self._handle = None
        error = future.exception()
        reason = str(error) if error else failure(future.result().status, future.result().result)
        if reason:
            self._fail(reason)

    def _cancel(self) -> None:
        if self._handle is not None:
            self._handle.cancel_goal_async()
            self._handle = None

    def _now(self) -> int:
        return int(self._steady.now().nanoseconds)

    def _fail(self, reason: str) -> None:
        self._context.fault(f'{ACTION}: {reason}')
