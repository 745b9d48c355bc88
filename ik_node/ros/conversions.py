# SPDX-License-Identifier: Apache-2.0
"""Conversion between messages and arrays. Invalid contents of a message raise InputError."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Container, Iterable, Sequence

import numpy as np
from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import Point, Pose, Quaternion
from sensor_msgs.msg import JointState
from transforms3d.quaternions import mat2quat, quat2mat

from ik_node.checks import UNIT_TOLERANCE, Array
from ik_node.errors import LARGEST, InputError, join_names

NS_PER_S = 1_000_000_000


def point_array(point: Point) -> Array:
    """Return (3,) [m]. Raises InputError for NaN or inf."""
    values = [point.x, point.y, point.z]
    if not all(map(math.isfinite, values)):
        raise InputError(f'the position must be finite, got {values}')
    return np.array(values)


def pose_matrix(pose: Pose) -> Array:
    """Return the pose as T (4, 4).

    Raises InputError for NaN, inf, or a quaternion that is not of length 1 within UNIT_TOLERANCE.
    """
    quat = pose.orientation
    quat_xyzw = [quat.x, quat.y, quat.z, quat.w]
    if not all(map(math.isfinite, quat_xyzw)):
        raise InputError(f'the quaternion must be finite, got {quat_xyzw}')
    length = math.hypot(*quat_xyzw)
    if abs(length - 1.0) > UNIT_TOLERANCE:
        raise InputError(
            f'the quaternion must have length 1 (within {UNIT_TOLERANCE}), got {quat_xyzw} of length {length:.6g}'
        )
    T = np.eye(4)
    T[:3, 3] = point_array(pose.position)
    T[:3, :3] = quat2mat([quat.w / length, quat.x / length, quat.y / length, quat.z / length])
    return T


def matrix_pose(T: Array) -> Pose:
    """Return the pose message of T (4, 4)."""
    w, x, y, z = map(float, mat2quat(T[:3, :3]))
    return Pose(position=array_point(T[:3, 3]), orientation=Quaternion(x=x, y=y, z=z, w=w))


def array_point(values: Array) -> Point:
    """Return the point message of (3,)."""
    x, y, z = map(float, values)
    return Point(x=x, y=y, z=z)


def seconds(stamp: Time) -> float:
    """Return the stamp in seconds."""
    return stamp.sec + stamp.nanosec / NS_PER_S


def stamp_text(stamp: Time) -> str:
    """Return a time [s] exactly: so reports name the stamp of their goal."""
    return f'{stamp.sec}.{stamp.nanosec:09d}'


def report_values(status: DiagnosticStatus) -> dict[str, str]:
    """Return the message of a report, under that name, and its values by key."""
    return {'message': status.message, **{item.key: item.value for item in status.values}}


def age_of(stamp: Time, now: int) -> float:
    """Return the age [s] of a stamp at now [ns], 0 for a zero stamp, which means now."""
    then = stamp.sec * NS_PER_S + stamp.nanosec  # rclpy's Time raises for negative seconds
    return (now - then) / NS_PER_S if then else 0.0


def check_stamp(stamp: Time, now: int, timeout: float) -> None:
    """Raise InputError for a stamp more than timeout [s] away from now [ns]. A zero stamp means now."""
    age = age_of(stamp, now)
    if abs(age) <= timeout:
        return
    where = f'{age:.3g} s old' if age > 0.0 else f'{-age:.3g} s in the future'
    clocks = '; is use_sim_time the same everywhere?' if abs(age) > 1e8 else ''
    raise InputError(f'the stamp is {where}, but goal_timeout allows {timeout:g} s{clocks}')


def joint_values(message: JointState, known: Iterable[str]) -> dict[str, float]:
    """Return position by joint name. Raises InputError unless all are known, finite and given once."""
    values = values_by_name(message)
    known = set(known)
    unknown = [name for name in values if name not in known]
    if unknown:
        raise InputError(f'unknown joints: {join_names(unknown)}; joints: {join_names(sorted(known), unknown[0])}')
    infinite = [name for name, value in values.items() if not math.isfinite(value)]
    if infinite:
        raise InputError(f'positions must be finite, but are not finite: {join_names(infinite)}')
    return values


def measured_values(message: JointState) -> dict[str, float]:
    """Return measured position by joint name, without those that are not finite.

    Raises InputError for a message that does not give one position for each name.
    """
    return {name: value for name, value in values_by_name(message).items() if math.isfinite(value)}


def values_by_name(message: JointState) -> dict[str, float]:
    """Return positions by joint name, finite or not.

    Raises InputError for a message that does not give one position for each name.
    """
    names, positions = list(message.name), list(message.position)
    if not names or len(names) != len(positions):
        raise InputError(f'one position per name is needed, got {len(positions)} positions for {len(names)} names')
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise InputError(f'every joint may be given only once; given twice: {join_names(twice)}')
    return dict(zip(names, positions, strict=True))


def finite_positions(message: JointState, joints: Container[str]) -> dict[str, float]:
    """Return positions by name of known joints, without those that are not finite or beyond LARGEST."""
    pairs = zip(message.name, message.position, strict=False)
    return {name: value for name, value in pairs if name in joints and abs(value) <= LARGEST}


def joint_state(stamp: Time, names: Sequence[str], positions: Array, velocities: Array) -> JointState:
    """Return the message for positions and velocities, each (m,)."""
    message = JointState(name=list(names), position=positions.tolist(), velocity=velocities.tolist())
    message.header.stamp = stamp
    return message
