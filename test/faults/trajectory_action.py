# SPDX-License-Identifier: Apache-2.0
"""TrajectoryController: offers the action follow_joint_trajectory as a joint_trajectory_controller does.

After the documentation of ros2_controllers, the newest goal replaces the one before, which is aborted; a
trajectory that is invalid or over is rejected; a cancelled or aborted one ends where the joints are. Conduct
says what it does otherwise.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from action_msgs.msg import GoalStatus
from rclpy.action import CancelResponse, GoalResponse
from rclpy.action.server import ActionServer
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.clock import Clock
from rclpy.clock_type import ClockType
from rclpy.node import Node
from rclpy.task import Future

from faults.driver import Driver
from faults.extras import FollowJointTrajectory
from faults.record import Record, now

PERIOD = 0.005  # [s]
STALL = 0.02  # [s]: a longer period is a stall
FEEDBACK = 10  # periods from one feedback to the next
PATH_TOLERANCE, INVALID_GOAL, INVALID_TIME = -4, -1, -3  # of FollowJointTrajectory.Result

Spoil = Callable[[Any], Any]


@dataclass
class Conduct:
    """How the controllers of an arena behave.

    rejects: all goals. keeps: goes on although it is told to cancel. delay: of its answers [s], and of what
    it does; None: it moves the arm, but never answers. twice: it says everything twice, the second time the
    contrary where there is one. spoil: puts garbage into a message. aborts: after this time [s]. away: it
    offers no action.
    """

    rejects: bool = False
    keeps: bool = False
    delay: float | None = 0.0
    twice: bool = False
    spoil: Spoil | None = None
    aborts: float | None = None
    away: bool = False

    def behave(self) -> None:
        """Do from now on what controllers do."""
        vars(self).update(vars(Conduct()))


@dataclass(eq=False)
class Goal:
    """A goal that is carried out. ended: is set to the method that ends its handle and the error code."""

    trajectory: Any
    handle: Any = None
    since: float = field(default_factory=now)
    ended: Future = field(default_factory=Future)

    def end(self, method: str, code: int = 0) -> None:
        """End it, if it has not ended."""
        if not self.ended.done():
            self.ended.set_result((method, code))


class Server(ActionServer):
    """An action server whose answers are as the conduct of its controller says."""

    def __init__(self, controller: TrajectoryController, node: Node, name: str) -> None:
        self._controller = controller
        super().__init__(
            node,
            FollowJointTrajectory,
            name,
            controller.carry_out,
            goal_callback=controller.take,
            handle_accepted_callback=controller.begin,
            cancel_callback=controller.cancel,
            callback_group=ReentrantCallbackGroup(),  # an answer that is late delays nothing else
            result_timeout=10,
        )

    async def _execute_goal_request(self, request_header_and_message: Any) -> None:
        header, request = request_header_and_message
        trajectory, conduct = request.goal.trajectory, self._controller.conduct
        self._controller.heard(trajectory)
        if conduct.delay is None:
            self._controller.take(request.goal)
            return
        await self._controller.later(conduct.delay)
        answer = self._action_type.Impl.SendGoalService.Response()
        if conduct.spoil is not None:
            self._say(self._handle.send_goal_response, header, conduct.spoil(answer))
        await super()._execute_goal_request(request_header_and_message)
        if conduct.twice:
            answer.accepted = conduct.rejects
            self._say(self._handle.send_goal_response, header, answer)

    async def _execute_cancel_request(self, request_header_and_message: Any) -> None:
        header, _ = request_header_and_message
        conduct = self._controller.conduct
        if conduct.delay is None:
            return
        await self._controller.later(conduct.delay)
        answer = self._action_type.Impl.CancelGoalService.Response()
        if conduct.spoil is not None:
            self._say(self._handle.send_cancel_response, header, conduct.spoil(answer))
        await super()._execute_cancel_request(request_header_and_message)
        if conduct.twice:
            self._say(self._handle.send_cancel_response, header, answer)

    def _send_result_response(self, request_header: Any, future: Any) -> None:
        conduct, result = self._controller.conduct, future.result()
        if conduct.delay is None:
            return
        if conduct.spoil is not None:
            self._say(self._handle.send_result_response, request_header, conduct.spoil(result))
        super()._send_result_response(request_header, future)
        if conduct.twice:
            other = self._action_type.Impl.GetResultService.Response(status=GoalStatus.STATUS_ABORTED)
            self._say(self._handle.send_result_response, request_header, other)

    def feed_back(self, goal: Goal) -> None:
        """Publish feedback on a goal."""
        message = self._action_type.Impl.FeedbackMessage(goal_id=goal.handle.goal_id)
        message.feedback.joint_names = goal.trajectory.joint_names
        conduct = self._controller.conduct
        self._handle.publish_feedback(message if conduct.spoil is None else conduct.spoil(message))

    @staticmethod
    def _say(send: Callable[[Any, Any], None], header: Any, answer: Any) -> None:
        with contextlib.suppress(Exception):  # the client has gone
            send(header, answer)


class TrajectoryController:
    """Moves the joints of the driver. heard: is called with each trajectory of a goal."""

    def __init__(
        self,
        node: Node,
        name: str,
        driver: Driver,
        conduct: Conduct,
        heard: Callable[[str, Any, float], None],
        record: Record,
    ) -> None:
        self.conduct = conduct
        self._record = record
        self.heard = lambda trajectory: heard(name, trajectory, now())
        self._node, self._name, self._driver = node, name, driver
        self._goal: Goal | None = None
        self._taken: Any = None  # the trajectory of the goal that was taken last
        self._waiting: list[tuple[float, Future]] = []
        self._ticks = 0
        self._ticked = now()
        self._server: Server | None = Server(self, node, name)
        node.create_timer(PERIOD, self._tick, clock=Clock(clock_type=ClockType.STEADY_TIME))

    async def later(self, delay: float) -> None:
        """Return after a time [s]."""
        if delay:
            future = Future(executor=self._node.executor)
            self._waiting.append((now() + delay, future))
            await future

    def take(self, request: Any) -> GoalResponse:
        """Begin with a trajectory, or reject it."""
        if self.conduct.rejects or not self._driver.follow(request.trajectory):
            return GoalResponse.REJECT
        self._taken = request.trajectory
        if self._goal is not None:
            self._goal.end('abort', INVALID_GOAL)
            self._goal = None
        return GoalResponse.ACCEPT

    def begin(self, handle: Any) -> None:
        """Note the goal of the trajectory that was taken."""
        self._goal = Goal(handle.request.trajectory, handle)
        self._goal.ended = Future(executor=self._node.executor)
        handle.goal = self._goal
        handle.execute()

    async def carry_out(self, handle: Any) -> Any:
        """Return the result of a goal once it has ended."""
        method, code = await handle.goal.ended
        result = FollowJointTrajectory.Result(error_code=code)
        with contextlib.suppress(Exception):  # of rclpy: the handle has ended, or is not cancelled yet
            getattr(handle, method)()
        return result

    def cancel(self, handle: Any) -> CancelResponse:
        """Hold the joints, if it is their goal."""
        if self.conduct.keeps:
            return CancelResponse.REJECT
        goal = getattr(handle, 'goal', None)
        if goal is not None and goal is self._goal:
            self._driver.hold(goal.trajectory.joint_names)
            self._goal = None
        if goal is not None:
            goal.end('canceled')
        return CancelResponse.ACCEPT

    def _tick(self) -> None:
        before, self._ticked = self._ticked, now()
        if self._ticked - before > STALL:
            self._record.stalls.append((self._ticked, self._ticked - before))
        self._ticks += 1
        due = [future for when, future in self._waiting if when <= now()]
        self._waiting = [(when, future) for when, future in self._waiting if when > now()]
        for future in due:
            future.set_result(None)
        goal, conduct = self._goal, self.conduct
        if goal is not None and self._server is not None:
            if self._ticks % FEEDBACK == 0:
                self._server.feed_back(goal)
            if conduct.aborts is not None and now() - goal.since > conduct.aborts:
                self._abort(PATH_TOLERANCE)
            elif not self._driver.moving(goal.trajectory.joint_names):
                goal.end('succeed')
                self._goal = None
        if conduct.away and self._server is not None:
            self._abort(INVALID_GOAL)
            self._server.destroy()
            self._server = None
        elif not conduct.away and self._server is None:
            self._server = Server(self, self._node, self._name)

    def _abort(self, code: int) -> None:
        """End the goal, and hold the joints where they are."""
        if self._taken is not None:
            self._driver.hold(self._taken.joint_names)
        if self._goal is not None:
            self._goal.end('abort', code)
            self._goal = None
