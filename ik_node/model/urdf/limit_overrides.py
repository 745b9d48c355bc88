# SPDX-License-Identifier: Apache-2.0
"""Joint limits besides those of the URDF: a joint_limits.yaml as MoveIt writes it, and margins."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ik_node.errors import InputError, join_names, quoted
from ik_node.files import anything, fields, located, mapping_of, number, read_file, switch
from ik_node.model.robot import Robot

OUTER = 'robot_description_planning'  # MoveIt's parameter files have the limits in this block
BLOCK = 'joint_limits'
FACTORS = ('default_velocity_scaling_factor', 'default_acceleration_scaling_factor')
POSITIVE = number(0.0, above=True)
# By flag: the numbers that it switches on.
NUMBERS = {
    'has_position_limits': {'min_position': number(), 'max_position': number()},
    'has_velocity_limits': {'max_velocity': POSITIVE},
    'has_acceleration_limits': {'max_acceleration': POSITIVE},
    'has_jerk_limits': {'max_jerk': POSITIVE},
}
# Fields of the same files that say nothing about positions and their derivatives, or that are not supported.
UNUSED = (
    'angle_wraparound',
    'has_deceleration_limits',
    'max_deceleration',
    'has_effort_limits',
    'max_effort',
    'has_soft_limits',
    'k_position',
    'k_velocity',
    'soft_lower_limit',
    'soft_upper_limit',
)


@dataclass(frozen=True)
class JointLimits:
    """Limits of one joint in rad or m and seconds; infinite where there is none."""

    lower: float = -math.inf
    upper: float = math.inf
    velocity: float = math.inf
    acceleration: float = math.inf
    jerk: float = math.inf


def read_joint_limits(path: str | os.PathLike[str]) -> tuple[dict[str, JointLimits], list[str]]:
    """Read a joint_limits.yaml; return the limits by joint, and one sentence per thing that is not used.

    The scaling factors are defaults for requests to MoveIt and not used. Raises InputError for a file that
    cannot be read, unknown fields and impossible values.
    """

    def content(name: str, value: Any) -> Any:
        if isinstance(value, Mapping) and OUTER in value:
            name, value = OUTER, value[OUTER]
        return CONTENT(name, value)[BLOCK]

    joints = read_file(path, 'joint_limits_file', content)
    limits = {name: limit for name, (limit, _) in joints.items()}
    unused = sorted({key for _, keys in joints.values() for key in keys})
    return limits, [f'fields of joint_limits_file that are not used: {", ".join(unused)}'] if unused else []


def _limits(name: str, value: Any) -> tuple[JointLimits, list[str]]:
    """Return the limits of a joint, and its fields that are not used."""
    entries = FIELDS(name, value)
    with located(value):
        found = {
            key: check(f'{name}.{key}', entries.get(key))
            for flag, checks in NUMBERS.items()
            for key, check in checks.items()
            if entries.get(flag)
        }
        lower, upper = found.get('min_position', -math.inf), found.get('max_position', math.inf)
        if lower > upper:
            raise InputError(f'{name}.min_position {lower:g} must not exceed max_position {upper:g}')
    rates = (found.get(key, math.inf) for key in ('max_velocity', 'max_acceleration', 'max_jerk'))
    return JointLimits(lower, upper, *rates), [key for key in entries if key in UNUSED]


FIELDS = fields(
    {
        **dict.fromkeys(NUMBERS, switch),
        **{key: anything for checks in NUMBERS.values() for key in checks},  # counts only with its flag
        **dict.fromkeys(UNUSED, anything),
    }
)
CONTENT = fields({BLOCK: mapping_of(_limits), **dict.fromkeys(FACTORS, anything)}, required=(BLOCK,))


def limits_of_drivers(robot: Robot, limits: Mapping[str, JointLimits]) -> dict[str, JointLimits]:
    """Return the limits by driving joint: those of a mimic joint are those of its driver, converted.

    Raises InputError for joints that the robot does not have or that cannot move, and for position limits of
    continuous joints.
    """
    driving: dict[str, JointLimits] = {}
    names = [joint.name for joint in robot.movable]
    for name, limit in limits.items():
        if name not in names:
            raise InputError(
                f'joint_limits_file names {quoted(name)}, which is not a movable joint of this robot; '
                f'movable joints: {join_names(names, name)}'
            )
        bounded = math.isfinite(limit.lower) or math.isfinite(limit.upper)
        if robot.joints[name].type == 'continuous' and bounded:
            raise InputError(
                f'joint_limits_file gives position limits to {quoted(name)}, which is continuous: '
                'make it revolute in the URDF'
            )
        driver, ratio, shift = robot.driver(name)
        if ratio == 0.0 or not robot.joints[driver].movable:
            continue
        low, high = sorted(((limit.lower - shift) / ratio, (limit.upper - shift) / ratio))
        rates = (rate / abs(ratio) for rate in (limit.velocity, limit.acceleration, limit.jerk))
        mine = JointLimits(low, high, *rates)
        driving[driver] = _tighter(driving.get(driver, JointLimits()), mine)
    return driving


def _tighter(one: JointLimits, other: JointLimits) -> JointLimits:
    return JointLimits(
        max(one.lower, other.lower),
        min(one.upper, other.upper),
        min(one.velocity, other.velocity),
        min(one.acceleration, other.acceleration),
        min(one.jerk, other.jerk),
    )


def limited(robot: Robot, limits: Mapping[str, JointLimits]) -> Robot:
    """Return the robot with position and velocity limits (by driving joint) no wider than these.

    A value that is wider than that of the URDF is not used and becomes a warning: a file next to the URDF
    must not unlock what its maker forbids. Raises InputError if no position is left.
    """
    joints, warnings = dict(robot.joints), []
    for name, limit in limits.items():
        joint = joints[name]
        own = JointLimits(joint.lower, joint.upper, joint.velocity)
        tight = _tighter(own, limit)
        if tight.lower > tight.upper:
            raise InputError(
                f'joint_limits_file allows {quoted(name)} {limit.lower:g} to {limit.upper:g}, '
                f'the URDF {joint.lower:g} to {joint.upper:g}: no position is left'
            )
        for what, given, used in (
            ('min_position', limit.lower, tight.lower),
            ('max_position', limit.upper, tight.upper),
            ('max_velocity', limit.velocity, tight.velocity),
        ):
            if math.isfinite(given) and given != used:
                warnings.append(
                    f'joint {quoted(name)}: {what} {given:g} of joint_limits_file is wider than '
                    f'{used:g} of the URDF or its default, {used:g} is used'
                )
        joints[name] = replace(joint, lower=tight.lower, upper=tight.upper, velocity=tight.velocity)
    return robot.with_joints(joints, warnings)


def with_margins(robot: Robot, names: Sequence[str], margins: Sequence[float]) -> Robot:
    """Return the robot with the position limits of names, and of their balls, moved inwards [rad or m].

    margins: one, or one for each of names.
    Continuous joints keep none. Raises InputError for margins that leave no position.
    """
    if len(margins) not in (1, len(names)):
        raise InputError(
            f'parameter joint_limit_margins must be one number or {len(names)} ({", ".join(names)}), '
            f'got {list(margins)}'
        )
    joints = dict(robot.joints)
    every = margins if len(margins) > 1 else [margins[0]] * len(names)
    for name, margin in zip(names, every, strict=True):
        joint = joints[name]
        room = (joint.upper - joint.lower) / 2
        if margin < 0.0 or not margin <= room:
            raise InputError(
                f'the margin of joint {quoted(name)} in joint_limit_margins must be from 0 to {room:g}, half '
                f'of its range, got {margin:g}'
            )
        joints[name] = replace(joint, lower=joint.lower + margin, upper=joint.upper - margin)
    by_name = dict(zip(names, every, strict=True))
    return robot.with_joints(joints, balls=tuple(ball.with_margins(by_name) for ball in robot.balls))
