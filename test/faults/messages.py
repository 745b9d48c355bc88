"""Good messages for every input."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from geometry_msgs.msg import PointStamped, PoseArray, PoseStamped, TwistStamped
from sensor_msgs.msg import JointState
from std_msgs.msg import Bool
from transforms3d.axangles import axangle2mat

from faults.arena import Arena
from faults.robots import Robot
from ik_node.ros.conversions import array_point, matrix_pose

Make = Callable[[Robot, np.random.Generator], Any]


def tip(robot: Robot, joints: dict[str, float]) -> np.ndarray:
    """Return T_base_tip (4, 4)."""
    q = np.array([joints[name] for name in robot.arm.joint_names])
    position, direction = robot.arm.fk(q)
    axis = robot.arm.tool_axis
    T = np.eye(4)
    cross = np.cross(axis, direction)
    sine, cosine = float(np.linalg.norm(cross)), float(axis @ direction)
    if sine > 1e-9:
        T[:3, :3] = axangle2mat(cross, np.arctan2(sine, cosine))
    elif cosine < 0.0:
        T[:3, :3] = axangle2mat(np.cross(axis, np.eye(3)[int(np.abs(axis).argmin())]), np.pi)
    T[:3, 3] = position - T[:3, :3] @ robot.arm.tool_point
    return T


def pose(robot: Robot, joints: dict[str, float]) -> PoseStamped:
    """Return the pose of the tip with the joints there."""
    message = PoseStamped(pose=matrix_pose(tip(robot, joints)))
    message.header.frame_id = robot.arm.base_link
    return message


def random_pose(robot: Robot, rng: np.random.Generator) -> PoseStamped:
    """Return a pose that can be reached."""
    return pose(robot, robot.joints(rng))


def random_point(robot: Robot, rng: np.random.Generator) -> PointStamped:
    """Return a point that can be reached."""
    message = PointStamped(point=array_point(tip(robot, robot.joints(rng))[:3, 3]))
    message.header.frame_id = robot.arm.base_link
    return message


def random_joints(robot: Robot, rng: np.random.Generator) -> JointState:
    """Return a joint goal."""
    return joints_message(robot.joints(rng))


def joints_message(values: dict[str, float]) -> JointState:
    """Return positions by name as a message."""
    return JointState(name=list(values), position=list(values.values()))


def random_path(robot: Robot, rng: np.random.Generator) -> PoseArray:
    """Return poses near one another."""
    start = robot.joints(rng)
    return path(robot, start, rng)


def path(robot: Robot, start: dict[str, float], rng: np.random.Generator) -> PoseArray:
    """Return poses near where the joints are."""
    message = PoseArray()
    message.header.frame_id = robot.arm.base_link
    for _ in range(int(rng.integers(1, 4))):
        joints = {name: value + rng.uniform(-0.1, 0.1) for name, value in start.items()}
        message.poses.append(pose(robot, joints).pose)
    return message


def twist(robot: Robot, rng: np.random.Generator) -> TwistStamped:
    """Return a velocity of the tool, unitless."""
    message = TwistStamped()
    message.header.frame_id = robot.arm.base_link
    linear, angular = rng.uniform(-1.0, 1.0, (2, 3)).tolist()
    for part, values in ((message.twist.linear, linear), (message.twist.angular, angular)):
        part.x, part.y, part.z = values
    return message


def jog(robot: Robot, rng: np.random.Generator) -> JointState:
    """Return velocities of the joints, unitless."""
    names = robot.arm.joint_names
    return JointState(name=list(names), velocity=rng.uniform(-1.0, 1.0, len(names)).tolist())


def enable(_: Robot, rng: np.random.Generator) -> Bool:
    """Return an open or closed clutch."""
    return Bool(data=bool(rng.random() < 0.8))


MAKE: dict[str, Make] = {
    'goal_pose': random_pose,
    'goal_point': random_point,
    'goal_path': random_path,
    'goal_joints': random_joints,
    'ik_node/delta_twist_cmds': twist,
    'ik_node/delta_joint_cmds': jog,
    'ik_node/pose_target_cmds': random_pose,
    'ik_node/enable': enable,
}


def stamped(arena: Arena, message: Any) -> Any:
    """Give a message the stamp of this moment, where it has one."""
    if hasattr(message, 'header'):
        message.header.stamp = arena.stamp()
    return message
