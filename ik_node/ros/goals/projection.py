# SPDX-License-Identifier: Apache-2.0
"""Queries by topics, without motion of the arm: the nearest reachable pose, and the pose at given joints."""

from __future__ import annotations

from geometry_msgs.msg import PoseStamped
from rclpy.node import Node
from sensor_msgs.msg import JointState

from ik_node.checks import Array
from ik_node.control.controller.inbox import Inbox
from ik_node.control.state.report import Level
from ik_node.control.state.requests import Wanted
from ik_node.control.state.snapshot import Snapshot
from ik_node.ros.conversions import joint_values, matrix_pose
from ik_node.ros.goals.goal_requests import GoalContext, GoalRequest, PoseRequest
from ik_node.ros.goals.reports import diagnostic
from ik_node.ros.interfaces import FK_JOINT_STATES, FK_POSE, PROJECT_POSE, PROJECTED_POSE, PROJECTION
from ik_node.solver.goal import Solution


class Projection:
    """Responds to poses on ~/project_pose with ~/projected_pose and, with the same stamp, ~/projection.

    Responds to joints on ~/fk_joint_states with the pose of the tip on ~/fk_pose, with their stamp.
    """

    def __init__(self, node: Node, prefix: str, context: GoalContext, inbox: Inbox) -> None:
        """prefix: of the topics."""
        self._name, self._prefix = node.get_name(), prefix
        self._pose = PROJECTED_POSE.publisher(node, prefix)
        self._status = PROJECTION.publisher(node, prefix)
        PROJECT_POSE.subscription(node, self._ask, prefix)
        self._tip = FK_POSE.publisher(node, prefix)
        FK_JOINT_STATES.subscription(node, self._ask_joints, prefix)
        self._context, self._inbox = context, inbox

    def _ask(self, message: PoseStamped) -> None:
        query = _Query(PROJECT_POSE.named(self._prefix), message, self._context)
        query.projection = self
        self._inbox.put(query)

    def _ask_joints(self, message: JointState) -> None:
        query = _JointsQuery(FK_JOINT_STATES.named(self._prefix), message, self._context)
        query.projection = self
        self._inbox.put(query)

    def answer(self, query: _Query, arm: Snapshot, solution: Solution) -> None:
        """Publish the pose of the tip at a solution, and its result."""
        values = arm.values.copy()
        values[arm.model.index] = solution.q
        names = (f'joint {name}' for name in arm.model.arm.joint_names)
        said = {
            'status': solution.status.value,
            'position_error': solution.position_error,
            'direction_error': solution.direction_error,
            'roll_error': '' if solution.lateral_error is None else solution.lateral_error,
            'reason': solution.reason or '',
            'goal_stamp': query.stamp,
            'frame': query.frame,
            **dict(zip(names, solution.q.tolist(), strict=True)),
        }
        level = Level.OK if solution.solved else Level.WARN
        message = 'solved' if solution.solved else f'{solution.status.value}: {solution.reason}'
        self._pose.publish(_tip_pose(query, arm, values))
        self._status.publish(diagnostic(level, self._name, message, said))

    def answer_joints(self, query: _JointsQuery, arm: Snapshot, values: Array) -> None:
        """Publish the pose of the tip at the variables (n,)."""
        self._tip.publish(_tip_pose(query, arm, values))


class _Query(PoseRequest):
    """A query for a pose of the tip frame, roll about the tool axis free."""

    moves = False
    projection: Projection

    def _wanted(self, arm: Snapshot) -> Wanted:
        goal = self.goal(arm)
        self.projection.answer(self, arm, arm.model.solver.solve(goal, arm.position))
        return None


class _JointsQuery(GoalRequest):
    """A query for positions of some joints; all others keep their position."""

    moves = False
    projection: Projection

    def _wanted(self, arm: Snapshot) -> Wanted:
        joints = arm.model.joints
        named = joint_values(self.message, joints.names)
        values = joints.filled({**joints.named(arm.values), **named})
        self.projection.answer_joints(self, arm, values)
        return None


def _tip_pose(query: GoalRequest, arm: Snapshot, values: Array) -> PoseStamped:
    """Return the pose of the tip in the base link at the variables (n,), with the stamp of a query."""
    tip = arm.model.arm
    pose = PoseStamped(pose=matrix_pose(arm.model.link_in_base(tip.tip_link, values)))
    pose.header.frame_id = tip.base_link
    pose.header.stamp = query.message.header.stamp
    return pose
