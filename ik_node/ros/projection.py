"""Projection: the nearest pose that the arm can reach, without moving it."""

from __future__ import annotations

from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import PoseStamped
from rclpy.node import Node

from ik_node.control.inbox import Inbox
from ik_node.control.report import Level
from ik_node.control.requests import Wanted
from ik_node.control.snapshot import Snapshot
from ik_node.ros.conversions import matrix_pose
from ik_node.ros.goal_requests import GoalContext, PoseRequest
from ik_node.ros.qos import STREAM
from ik_node.ros.reports import diagnostic
from ik_node.solver.goal import Solution


class Projection:
    """Answers poses on ~/project_pose with ~/projected_pose and, with the same stamp, ~/projection."""

    def __init__(self, node: Node, prefix: str, context: GoalContext, inbox: Inbox) -> None:
        """prefix: of the topics."""
        self._name, self._topic = node.get_name(), f'~/{prefix}project_pose'
        self._pose = node.create_publisher(PoseStamped, f'~/{prefix}projected_pose', STREAM)
        self._status = node.create_publisher(DiagnosticStatus, f'~/{prefix}projection', STREAM)
        node.create_subscription(PoseStamped, self._topic, self._ask, STREAM)
        self._context, self._inbox = context, inbox

    def _ask(self, message: PoseStamped) -> None:
        question = _Question(self._topic, message, self._context)
        question.projection = self
        self._inbox.put(question)

    def answer(self, question: _Question, arm: Snapshot, solution: Solution) -> None:
        """Publish the pose of the tip at a solution and what became of it."""
        values = arm.values.copy()
        values[arm.model.index] = solution.q
        pose = PoseStamped(pose=matrix_pose(arm.model.link_in_base(arm.model.arm.tip_link, values)))
        pose.header.frame_id = arm.model.arm.base_link
        pose.header.stamp = question.message.header.stamp
        names = (f'joint {name}' for name in arm.model.arm.joint_names)
        said = {
            'status': solution.status.value,
            'position_error': solution.position_error,
            'direction_error': solution.direction_error,
            'reason': solution.reason or '',
            'goal_stamp': question.stamp,
            'frame': question.frame,
            **dict(zip(names, solution.q.tolist(), strict=True)),
        }
        level = Level.OK if solution.solved else Level.WARN
        message = 'solved' if solution.solved else f'{solution.status.value}: {solution.reason}'
        self._pose.publish(pose)
        self._status.publish(diagnostic(level, self._name, message, said))


class _Question(PoseRequest):
    """A pose of the tip frame, roll about the tool axis free, to which the arm is not to move."""

    moves = False
    projection: Projection

    def _wanted(self, arm: Snapshot) -> Wanted:
        goal = self.goal(arm)
        self.projection.answer(self, arm, arm.model.solver.solve(goal, arm.position))
        return None
