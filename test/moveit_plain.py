# SPDX-License-Identifier: Apache-2.0
"""The messages and services of MoveIt that ik_node and its documentation use, for tests where they are not installed.

rclpy creates the services, with the type support of another one: requests and answers do not cross DDS.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, ClassVar

from builtin_interfaces.msg import Duration
from geometry_msgs.msg import Pose, PoseStamped, Quaternion, Vector3
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
class SolidPrimitive:
    BOX: ClassVar[int] = 1
    SPHERE: ClassVar[int] = 2
    type: int = 0
    dimensions: list[float] = field(default_factory=list)


@dataclass
class BoundingVolume:
    primitives: list[SolidPrimitive] = field(default_factory=list)
    primitive_poses: list[Pose] = field(default_factory=list)
    meshes: list[Any] = field(default_factory=list)
    mesh_poses: list[Pose] = field(default_factory=list)


@dataclass
class PositionConstraint:
    header: Header = field(default_factory=Header)
    link_name: str = ''
    target_point_offset: Vector3 = field(default_factory=Vector3)
    constraint_region: BoundingVolume = field(default_factory=BoundingVolume)
    weight: float = 0.0


@dataclass
class OrientationConstraint:
    XYZ_EULER_ANGLES: ClassVar[int] = 0
    ROTATION_VECTOR: ClassVar[int] = 1
    header: Header = field(default_factory=Header)
    orientation: Quaternion = field(default_factory=Quaternion)
    link_name: str = ''
    absolute_x_axis_tolerance: float = 0.0
    absolute_y_axis_tolerance: float = 0.0
    absolute_z_axis_tolerance: float = 0.0
    parameterization: int = 0
    weight: float = 0.0


@dataclass
class JointConstraint:
    joint_name: str = ''
    position: float = 0.0
    tolerance_above: float = 0.0
    tolerance_below: float = 0.0
    weight: float = 0.0


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
    SUCCESS: ClassVar[int] = 1
    NO_IK_SOLUTION: ClassVar[int] = -31
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
