# SPDX-License-Identifier: Apache-2.0
"""The messages of moveit_msgs that ik_node uses, with their fields, for tests where it is not installed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from builtin_interfaces.msg import Duration
from geometry_msgs.msg import PoseStamped
from sensor_msgs.msg import JointState, MultiDOFJointState
from std_msgs.msg import Header


@dataclass
class RobotState:
    joint_state: JointState = field(default_factory=JointState)
    multi_dof_joint_state: MultiDOFJointState = field(default_factory=MultiDOFJointState)
    attached_collision_objects: list[Any] = field(default_factory=list)
    is_diff: bool = False


@dataclass
class Constraints:
    name: str = ''
    joint_constraints: list[Any] = field(default_factory=list)
    position_constraints: list[Any] = field(default_factory=list)
    orientation_constraints: list[Any] = field(default_factory=list)
    visibility_constraints: list[Any] = field(default_factory=list)


@dataclass
class PositionIKRequest:
    group_name: str = ''
    robot_state: RobotState = field(default_factory=RobotState)
    constraints: Constraints = field(default_factory=Constraints)
    avoid_collisions: bool = False
    ik_link_name: str = ''
    pose_stamped: PoseStamped = field(default_factory=PoseStamped)
    ik_link_names: list[str] = field(default_factory=list)
    pose_stamped_vector: list[PoseStamped] = field(default_factory=list)
    timeout: Duration = field(default_factory=Duration)


@dataclass
class FkRequest:
    header: Header = field(default_factory=Header)
    fk_link_names: list[str] = field(default_factory=list)
    robot_state: RobotState = field(default_factory=RobotState)
