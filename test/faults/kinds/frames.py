# SPDX-License-Identifier: Apache-2.0
"""Faults of frames that only tf2 knows: goals and commands are in the frame of a camera on a mount."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import PoseStamped, TransformStamped
from transforms3d.euler import euler2mat
from transforms3d.quaternions import mat2quat, quat2mat

from faults.actions import Action, Draw, Plan
from faults.arena import Arena
from faults.extras import TFMessage
from faults.kinds.garbage import LARGE, leaves, spoil, spoilt
from faults.messages import MAKE
from faults.robots import BASE

CAMERA, MOUNT = 'camera', 'mount'
TOPICS = ('goal_pose', 'goal_point', 'goal_path', 'ik_node/delta_twist_cmds', 'ik_node/pose_target_cmds')
T_BASE_MOUNT = np.array(
    [[0.0, -1.0, 0.0, 0.1], [1.0, 0.0, 0.0, -0.2], [0.0, 0.0, 1.0, 0.3], [0.0, 0.0, 0.0, 1.0]]
)

# Of a time of the run [s] and the number of the message: transforms, and what is added to their stamp [s].
Frames = Callable[[float, int], tuple[list[TransformStamped], float]]


def transform(parent: str, child: str, T: np.ndarray) -> TransformStamped:
    """Return the pose T (4, 4) of a frame in its parent as a message."""
    message = TransformStamped(child_frame_id=child)
    message.header.frame_id = parent
    place, turn = message.transform.translation, message.transform.rotation
    place.x, place.y, place.z = T[:3, 3].tolist()
    turn.w, turn.x, turn.y, turn.z = mat2quat(T[:3, :3]).tolist()
    return message


def random_transform(rng: np.random.Generator) -> np.ndarray:
    """Return T (4, 4) of any rotation, within a metre."""
    T = np.eye(4)
    T[:3, :3] = euler2mat(*rng.uniform(-3.0, 3.0, 3))
    T[:3, 3] = rng.uniform(-0.5, 0.5, 3)
    return T


def shifted(stamp: Time, seconds: float) -> Time:
    """Return a stamp that is later by some seconds, as far as messages can tell."""
    return Time(sec=int(min(max(stamp.sec + round(seconds), 0), LARGE[32])), nanosec=stamp.nanosec)


def publish(
    arena: Arena, transforms: list[TransformStamped], offset: float = 0.0, topic: str = '/tf'
) -> None:
    """Send transforms with the stamp of this moment, or one that is off by some seconds."""
    for message in transforms:
        if message.header.stamp == Time():
            message.header.stamp = shifted(arena.driver.stamp(), offset)
    arena.inject(topic, TFMessage(transforms=transforms))


def in_camera(message: Any, T_base_camera: np.ndarray) -> Any:
    """Return a message in the frame of the camera, at the same place."""
    message.header.frame_id = CAMERA
    T = np.linalg.inv(T_base_camera)
    poses = [message.pose] if isinstance(message, PoseStamped) else getattr(message, 'poses', [])
    for point in [pose.position for pose in poses] or [getattr(message, 'point', None)]:
        if point is not None:
            point.x, point.y, point.z = (T[:3, :3] @ (point.x, point.y, point.z) + T[:3, 3]).tolist()
    for turn in (pose.orientation for pose in poses):
        R = T[:3, :3] @ quat2mat((turn.w, turn.x, turn.y, turn.z))
        turn.w, turn.x, turn.y, turn.z = mat2quat(R).tolist()
    return message


def _goals(draw: Draw, T_base_camera: np.ndarray) -> Plan:
    """Send goals of some kinds in the frame of the camera, with stamps of one kind."""
    rng, plan = draw.rng, []
    age = [None, 0.0, -1.0, 1.0][int(rng.choice(4, p=(0.4, 0.4, 0.1, 0.1)))]

    def send(arena: Arena, topic: str, message: Any) -> None:
        message.header.stamp = Time() if age is None else shifted(arena.driver.stamp(), age)
        arena.send(topic, message)

    for topic in rng.choice(TOPICS, int(rng.integers(1, 4)), replace=False):
        rate = float(rng.choice([3.0, 50.0]))
        for at in draw.times(rate):
            message = in_camera(MAKE[topic](draw.arena.robot, rng), T_base_camera)
            plan.append(Action(at, lambda arena, t=topic, m=message: send(arena, str(t), m)))
    return plan


def _with(draw: Draw, frames: Callable[[np.ndarray], Frames]) -> Plan:
    """Send goals while the frames arrive, good ones before and after."""
    rng = draw.rng
    T = random_transform(rng)
    begin, end = draw.span(0.1, 1.0)
    plan, bad = _goals(draw, T_BASE_MOUNT @ T), frames(T)
    for i, at in enumerate(draw.times(float(rng.choice([10.0, 100.0])))):
        sent, offset = bad(at, i) if begin <= at <= end else (chain(T), 0.0)
        plan.append(Action(at, lambda arena, s=sent, o=offset: publish(arena, s, o)))
    return plan


def chain(T_mount_camera: np.ndarray) -> list[TransformStamped]:
    """Return the good frames."""
    return [transform(BASE, MOUNT, T_BASE_MOUNT), transform(MOUNT, CAMERA, T_mount_camera)]


def good(draw: Draw) -> Plan:
    """Nothing is wrong."""
    return _with(draw, lambda T: lambda *_: (chain(T), 0.0))


def garbage(draw: Draw) -> Plan:
    """Spoil every field in turn, besides the good frames or in place of them."""
    noise, besides = np.random.default_rng(int(draw.rng.integers(2**32))), bool(draw.rng.random() < 0.5)

    def bad(T: np.ndarray) -> Frames:
        def frames(_: float, i: int) -> tuple[list[TransformStamped], float]:
            here = chain(T)
            one = here[i % 2]
            paths = list(leaves(one))
            wrong = spoil(one, paths[i // 2 % len(paths)], noise)
            if noise.random() < 0.2:
                return list(spoilt(TFMessage(transforms=here), noise).transforms), 0.0
            return ([*here, wrong] if besides else [wrong, here[1 - i % 2]]), 0.0

        return frames

    plan = _with(draw, bad)
    for at in draw.times(20.0, *draw.span()):
        wrong = spoilt(transform(BASE, 'stand', random_transform(noise)), noise)
        plan.append(Action(at, lambda arena, w=wrong: publish(arena, [w], topic='/tf_static')))
    return plan


def jumps(draw: Draw) -> Plan:
    """Let the camera be somewhere else in each message."""
    noise = np.random.default_rng(int(draw.rng.integers(2**32)))
    return _with(draw, lambda _: lambda *_: (chain(random_transform(noise)), 0.0))


def loops(draw: Draw) -> Plan:
    """Let the mount be on the camera, which is on the mount, and the camera on itself."""
    back = transform(CAMERA, MOUNT, np.eye(4)), transform(CAMERA, CAMERA, np.eye(4))
    return _with(draw, lambda T: lambda _, i: ([back[i % 5 == 0], chain(T)[1]], 0.0))


def missing(draw: Draw) -> Plan:
    """Send no frames, or only one of them."""
    some = int(draw.rng.integers(0, 2))
    return _with(draw, lambda T: lambda *_: (chain(T)[:some], 0.0))


def old(draw: Draw) -> Plan:
    """Send stamps of the past: of some seconds ago, or of 1970."""
    offset = float(draw.rng.choice([-2.0, -9.0, -100.0, -1e10]))
    return _with(draw, lambda T: lambda *_: (chain(T), offset))


def ahead(draw: Draw) -> Plan:
    """Send stamps of the future, of one frame or both, from which no later one leads back."""
    offset, both = float(draw.rng.choice([2.0, 30.0, 1e5, 1e10])), bool(draw.rng.random() < 0.5)

    def bad(T: np.ndarray) -> Frames:
        def frames(_: float, i: int) -> tuple[list[TransformStamped], float]:
            return (chain(T) if both else [chain(T)[0]], offset) if i % 2 else (chain(T), 0.0)

        return frames

    return _with(draw, bad)
