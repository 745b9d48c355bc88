# SPDX-License-Identifier: Apache-2.0
"""Good messages for every input."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from geometry_msgs.msg import Point, PointStamped, Pose, PoseArray, PoseStamped, Quaternion, TwistStamped
from sensor_msgs.msg import JointState
from std_msgs.msg import Bool
from transforms3d.quaternions import mat2quat

from faults.arena import Arena
from faults.extras import JointJog
from faults.robots import BASE, Robot

Make = Callable[[Robot, np.random.Generator], Any]


def tip_pose(robot: Robot, joints: dict[str, float]) -> Pose:
    """Return the pose of the tip in BASE with the joints there."""
    T = robot.arm.tip(joints)
    w, x, y, z = mat2quat(T[:3, :3]).tolist()
    return Pose(position=_point(T), orientation=Quaternion(x=x, y=y, z=z, w=w))


def _point(T: np.ndarray) -> Point:
    x, y, z = T[:3, 3].tolist()
    return Point(x=x, y=y, z=z)


def pose(robot: Robot, joints: dict[str, float]) -> PoseStamped:
    """Return the pose of the tip with the joints there."""
    message = PoseStamped(pose=tip_pose(robot, joints))
    message.header.frame_id = BASE
    return message


def random_pose(robot: Robot, rng: np.random.Generator) -> PoseStamped:
    """Return a pose that can be reached."""
    return pose(robot, robot.joints(rng))


def random_point(robot: Robot, rng: np.random.Generator) -> PointStamped:
    """Return a point that can be reached."""
    message = PointStamped(point=_point(robot.arm.tip(robot.joints(rng))))
    message.header.frame_id = BASE
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
    message.header.frame_id = BASE
    for _ in range(int(rng.integers(1, 4))):
        joints = {name: value + rng.uniform(-0.1, 0.1) for name, value in start.items()}
        message.poses.append(tip_pose(robot, joints))
    return message


def twist(_: Robot, rng: np.random.Generator) -> TwistStamped:
    """Return a velocity of the tool, unitless."""
    message = TwistStamped()
    message.header.frame_id = BASE
    linear, angular = rng.uniform(-1.0, 1.0, (2, 3)).tolist()
    for part, values in ((message.twist.linear, linear), (message.twist.angular, angular)):
        part.x, part.y, part.z = values
    return message


def jog(robot: Robot, rng: np.random.Generator) -> Any:
    """Return velocities of the joints, unitless."""
    names = list(robot.arm.joint_names)
    velocities = rng.uniform(-1.0, 1.0, len(names)).tolist()
    if JointJog is not None:
        return JointJog(joint_names=names, velocities=velocities)
    return JointState(name=names, velocity=velocities)


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
        message.header.stamp = arena.driver.stamp()
    return message
