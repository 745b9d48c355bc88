# SPDX-License-Identifier: Apache-2.0
"""Good messages for every input, and copies of messages with garbage in a field."""

from __future__ import annotations

import copy
import importlib
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from geometry_msgs.msg import Point, PointStamped, Pose, PoseArray, PoseStamped, Quaternion, TwistStamped
from scipy.spatial.transform import Rotation
from sensor_msgs.msg import JointState
from std_msgs.msg import Bool

from campaigns.faults.robots import BASE, Robot

try:
    from control_msgs.msg import JointJog
except ImportError:  # the node takes JointState then
    JointJog = None

Rng = np.random.Generator
Path = tuple[str, ...]


def tip_pose(robot: Robot, joints: dict[str, float]) -> Pose:
    """Return the pose of the tip with the joints there."""
    turn, place = robot.tip(joints)
    x, y, z, w = Rotation.from_matrix(turn).as_quat().tolist()
    return Pose(position=_point(place), orientation=Quaternion(x=x, y=y, z=z, w=w))


def _point(place: np.ndarray) -> Point:
    return Point(**dict(zip('xyz', place.tolist(), strict=True)))


def _in_base(message: Any) -> Any:
    message.header.frame_id = BASE
    return message


def pose(robot: Robot, joints: dict[str, float]) -> PoseStamped:
    return _in_base(PoseStamped(pose=tip_pose(robot, joints)))


def random_point(robot: Robot, rng: Rng) -> PointStamped:
    return _in_base(PointStamped(point=_point(robot.tip(robot.joints(rng))[1])))


def joints_message(values: dict[str, float]) -> JointState:
    return JointState(name=list(values), position=[float(value) for value in values.values()])


def path(robot: Robot, start: dict[str, float], rng: Rng) -> PoseArray:
    """Return poses near where the joints are."""
    steps = [{name: start[name] + rng.uniform(-0.1, 0.1) for name in robot.names} for _ in range(3)]
    return _in_base(PoseArray(poses=[tip_pose(robot, joints) for joints in steps[: rng.integers(1, 4)]]))


def twist(_: Robot, rng: Rng) -> TwistStamped:
    """Return a velocity of the tool, unitless."""
    message = _in_base(TwistStamped())
    for part in (message.twist.linear, message.twist.angular):
        part.x, part.y, part.z = rng.uniform(-1.0, 1.0, 3).tolist()
    return message


def jog(robot: Robot, rng: Rng) -> Any:
    """Return velocities of the joints, unitless."""
    velocities = rng.uniform(-1.0, 1.0, len(robot.names)).tolist()
    if JointJog is None:
        return JointState(name=robot.names, velocity=velocities)
    return JointJog(joint_names=robot.names, velocities=velocities)


MAKE: dict[str, Callable[[Robot, Rng], Any]] = {
    'goal_pose': lambda robot, rng: pose(robot, robot.joints(rng)),
    'goal_point': random_point,
    'goal_path': lambda robot, rng: path(robot, robot.joints(rng), rng),
    'goal_joints': lambda robot, rng: joints_message(robot.joints(rng)),
    'ik_node/delta_twist_cmds': twist,
    'ik_node/delta_joint_cmds': jog,
    'ik_node/pose_target_cmds': lambda robot, rng: pose(robot, robot.joints(rng)),
    'ik_node/enable': lambda _, rng: Bool(data=bool(rng.random() < 0.8)),
}

FLOATS = (math.nan, math.inf, -math.inf, 1e300, -1e300, 1e9, 1e4, 5e-324, -0.0, 1e-200, 7.0)
LONG = 'x' * 2000
TEXTS = ('', 'base_lnk', '/base_link', 'world', LONG, 'a\nb\x1b[31m', 'ünïcode ☃', 'base_link ', '0', '..')
LARGE = {8: 127, 16: 2**15 - 1, 32: 2**31 - 1, 64: 2**63 - 1}


def leaves(message: Any, path: Path = ()) -> Iterator[Path]:
    """Yield the path of every field that is not a message itself; sequences are fields."""
    for name in message.get_fields_and_field_types():
        value = getattr(message, name)
        if hasattr(value, 'get_fields_and_field_types'):
            yield from leaves(value, (*path, name))
        else:
            yield (*path, name)


def spoil(message: Any, path: Path, rng: Rng) -> Any:
    """Return a copy of a message with garbage in one field."""
    message = copy.deepcopy(message)
    part = message
    for name in path[:-1]:
        part = getattr(part, name)
    kind, value = part.get_fields_and_field_types()[path[-1]], getattr(part, path[-1])
    try:
        setattr(part, path[-1], _garbage(kind, value, rng))
    except (AssertionError, ValueError, OverflowError, KeyError, TypeError):  # DDS cannot carry it
        return message
    return message


def spoilt(message: Any, rng: Rng) -> Any:
    """Return a copy with garbage in one field, and now and then in a second."""
    paths = list(leaves(message))
    for _ in range(1 + int(rng.random() < 0.2)):
        message = spoil(message, paths[int(rng.integers(len(paths)))], rng)
    return message


def _garbage(kind: str, value: Any, rng: Rng) -> Any:
    if kind.startswith('sequence'):
        return _sequence(kind, list(value), rng)
    if kind.endswith(']'):  # of a fixed length: no message of another can be made
        return rng.integers(0, 256, len(value)).astype(value.dtype)
    if kind in ('double', 'float'):
        return float(rng.choice(FLOATS))
    if kind == 'string':
        return TEXTS[int(rng.integers(len(TEXTS)))]
    if kind == 'boolean':
        return not value
    bits = int(''.join(c for c in kind if c.isdigit()))
    if kind.startswith('uint'):
        return int(rng.choice([0, 1, 2 * LARGE[bits] + 1, 2**29])) if bits < 64 else 0
    return int([0, -1, LARGE[bits], -LARGE[bits] - 1][int(rng.integers(4))])


def _sequence(kind: str, values: list[Any], rng: Rng) -> list[Any]:
    if '/' in kind:
        package, name = kind.removeprefix('sequence<').rstrip('>').partition(',')[0].split('/')
        values = values or [getattr(importlib.import_module(f'{package}.msg'), name)()]
        i, choice = int(rng.integers(len(values))), int(rng.integers(20))
        if choice < 2:  # more than is read
            return [values * (2000 // len(values)), []][choice]
        return [*values[:i], spoilt(values[i], rng), *values[i + 1 :]]
    new = TEXTS[int(rng.integers(len(TEXTS)))] if 'string' in kind else float(rng.choice(FLOATS))
    some = [values[0]] * len(values) if values else [new]
    other = list(values) or [new]
    other[int(rng.integers(len(other)))] = new
    return [[], values[:-1], [*values, new], [new] * (100 if new == LONG else 10000), some, other][
        int(rng.choice(6, p=(0.2, 0.2, 0.19, 0.02, 0.19, 0.2)))
    ]
