# SPDX-License-Identifier: Apache-2.0
"""MoveIt's kinematics services, if moveit_msgs is installed. They do not move the arm."""

from __future__ import annotations

import math
import time
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any

from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.node import Node
from rclpy.task import Future

from ik_node.control.controller.arm_state import NO_MODEL
from ik_node.control.robot.robot_models import Models
from ik_node.ros.conversions import seconds
from ik_node.ros.goals.frames import Frames
from ik_node.ros.interfaces import COMPUTE_FK, COMPUTE_IK, SOLVE_IK, Service
from ik_node.ros.moveit.answers import Code, Query, RejectedError, forward, inverse
from ik_node.ros.tools.tool_interface import ToolInterface
from ik_node.steady import steady

MOST = 64  # maximum number of queued requests
CHANGE = 1.0  # [s] to wait while the node changes from one robot to another

RequestHandler = Callable[[Any, Any, Query], str]  # fills the response to a request, and returns a sentence


class MoveItServices:
    """Provides solve_ik, ~/compute_ik and ~/compute_fk, processed by a thread of their own.

    They delay neither goals nor measurements. solve_ik is the default name of MoveIt's SrvKinematicsPlugin,
    which always sets avoid_collisions; MoveIt checks collisions itself.
    """

    def __init__(
        self, node: Node, tools: Sequence[ToolInterface], models: Callable[[], Models], frames: Frames
    ) -> None:
        """models: returns the models of the robot."""
        self._node, self._tools, self._models, self._frames = node, tools, models, frames
        self._worker = ThreadPoolExecutor(1, thread_name_prefix='kinematics')
        self._waiting = 0
        node.context.on_shutdown(self.close)
        if COMPUTE_IK.type is None:
            node.get_logger().debug(
                'compute_ik and compute_fk are not available: moveit_msgs is not installed; the topics '
                '~/project_pose and ~/fk_joint_states serve the same queries'
            )
            return
        group = ReentrantCallbackGroup()  # requests may arrive while one is processed
        services: dict[Service, RequestHandler] = {
            COMPUTE_IK: partial(self._inverse, True),
            SOLVE_IK: partial(self._inverse, False),
            COMPUTE_FK: self._forward,
        }
        for service, answer in services.items():
            service.provide(node, self._served(answer), group=group)

    def close(self) -> None:
        """End the thread; queued requests get no response."""
        self._worker.shutdown(wait=False, cancel_futures=True)

    def _served(self, answer: RequestHandler) -> Callable[[Any, Any], Any]:
        async def served(request: Any, response: Any) -> Any:
            if self._waiting >= MOST:
                _say(response, self._node, Code.FAILURE, f'busy: {MOST} requests are queued')
                return response
            done = Future(executor=self._node.executor)
            self._waiting += 1
            try:
                job = self._worker.submit(self._work, answer, request, response, steady())
                job.add_done_callback(lambda _: done.set_result(None))
                done.add_done_callback(lambda _: None)  # this wakes the executor
                await done
            except RuntimeError:  # closed
                _say(response, self._node, Code.FAILURE, 'the node is ending')
            finally:  # also of a request that the executor drops
                self._waiting -= 1
            return response

        return served

    def _work(self, answer: RequestHandler, request: Any, response: Any, arrival: float) -> None:
        """Fill a response, in the thread."""
        try:
            timeout = _timeout(request)
            waited = steady() - arrival
            if waited > timeout:
                raise RejectedError(Code.TIMED_OUT, f'waited {waited:.3g} s, timeout {timeout:g} s')
            _say(response, self._node, Code.SUCCESS, answer(request, response, self._query(timeout - waited)))
        except RejectedError as rejection:
            _say(response, self._node, rejection.code, str(rejection))
        except Exception as error:
            _say(response, self._node, Code.FAILURE, f'unexpected error: {error}')
            self._node.get_logger().error(
                f'unexpected error, please report it: {traceback.format_exc()}', throttle_duration_sec=10.0
            )

    def _query(self, timeout: float) -> Query:
        """Return the context, once all tools have the same robot. Raises RejectedError without one."""
        end = steady() + CHANGE
        while True:
            models = self._models()
            arms = {tool.tool: tool.snapshot() for tool in self._tools}
            known = {tool: arm for tool, arm in arms.items() if arm is not None}
            texts = {model.text for model in models.values()} | {arm.model.text for arm in known.values()}
            if models and len(known) == len(arms) and len(texts) == 1:
                return Query(known, models, self._frames, timeout=timeout)
            if not known or steady() > end:
                raise RejectedError(Code.FAILURE, NO_MODEL if not known else 'the robot is being changed')
            time.sleep(0.01)

    def _inverse(self, check_needed: bool, request: Any, response: Any, query: Query) -> str:
        query = replace(query, check_needed=check_needed)
        response.solution.joint_state, sentence = inverse(query, request.ik_request)
        response.solution.joint_state.header.stamp = self._node.get_clock().now().to_msg()
        return sentence

    def _forward(self, request: Any, response: Any, query: Query) -> str:
        response.pose_stamped, response.fk_link_names, unknown = forward(query, request)
        now = self._node.get_clock().now().to_msg()
        for pose in response.pose_stamped:
            pose.header.stamp = now
        if unknown:
            raise RejectedError(Code.INVALID_LINK_NAME, unknown)
        return 'solved'


def _timeout(request: Any) -> float:
    """Return the timeout of a request [s], infinite if it has none."""
    wanted = getattr(request, 'ik_request', None)
    timeout = 0.0 if wanted is None else seconds(wanted.timeout)
    return timeout if timeout > 0.0 else math.inf


def _say(response: Any, node: Node, code: Code, sentence: str) -> None:
    """Set the error code of a response; Humble's has neither message nor source."""
    said = response.error_code
    said.val = int(code)
    for name, text in (('message', sentence), ('source', node.get_fully_qualified_name())):
        if hasattr(said, name):
            setattr(said, name, text)
