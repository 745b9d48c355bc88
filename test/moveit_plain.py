# SPDX-License-Identifier: Apache-2.0
"""The messages and services of moveit_msgs that ik_node uses, for tests where it is not installed.

rclpy creates the services, with the type support of another one: requests and answers do not cross DDS.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from builtin_interfaces.msg import Duration
from geometry_msgs.msg import PoseStamped
from sensor_msgs.msg import JointState, MultiDOFJointState
from std_msgs.msg import Header
from std_srvs.srv import Trigger


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


@dataclass
class MoveItErrorCodes:
    val: int = 0
    message: str = ''
    source: str = ''


@dataclass
class IkRequest:
    ik_request: PositionIKRequest = field(default_factory=PositionIKRequest)


@dataclass
class IkResponse:
    solution: RobotState = field(default_factory=RobotState)
    error_code: MoveItErrorCodes = field(default_factory=MoveItErrorCodes)


@dataclass
class FkResponse:
    pose_stamped: list[PoseStamped] = field(default_factory=list)
    fk_link_names: list[str] = field(default_factory=list)
    error_code: MoveItErrorCodes = field(default_factory=MoveItErrorCodes)


class GetPositionIK(metaclass=type(Trigger)):
    Request, Response = IkRequest, IkResponse


class GetPositionFK(metaclass=type(Trigger)):
    Request, Response = FkRequest, FkResponse


srv = SimpleNamespace(GetPositionIK=GetPositionIK, GetPositionFK=GetPositionFK)
