# SPDX-License-Identifier: Apache-2.0
"""Ball joints: three revolute joints in one point taken as one, with a cone for the swing.

URDF has no ball joint. It is written as three revolute joints with massless links of zero length between
them. The limits of the whole ball joint are a custom element at robot level:

    <ik_node>
      <ball joints="yaw pitch roll" twist_joint="yaw" swing="1.2" twist_lower="-2.9" twist_upper="2.9"/>
    </ik_node>

urdfdom and yourdfpy look up the tags that they know among the children of <robot> and skip all others
silently, MuJoCo does the same, urdf_parser_py skips them with a line on stderr. None of them looks inside.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from .joint import Joint

POINT_TOLERANCE = 1e-6  # [m] between the three joints
ANGLE_TOLERANCE = 1e-4  # [rad] off perpendicular, or off parallel
LARGEST_CONE = math.pi / 2 - 0.01  # [rad] of a universal pair: at a right angle its joints lock

Three = tuple[float, float, float]
Span = tuple[float, float]
ANY: Span = (-math.inf, math.inf)


class Order(enum.IntEnum):
    """The sequence of a ball's joints. The numbers are those of the kernels."""

    TWIST_LAST = 0  # a universal pair, then the twist joint: x, y, z
    TWIST_FIRST = 1  # the twist joint, then a universal pair: z, y, x
    PROPER = 2  # outer axes in one line at rest, swing by the middle joint: z, y, z


@dataclass(frozen=True)
class Ball:
    """Three revolute joints in one point.

    joints: their names, base to tip. hand: of the rotation about the third axis in the right-handed basis of
    the first axis x, the second y, and z: +1 or -1. swing [rad]: largest angle between the rest axis, which
    is the twist axis at zero, and where it is; infinite without a limit. twist (lower, upper) [rad].
    given: limits of the joints before those of the ball. declared: by <ball>; others are only described.

    The swing s of a universal pair p, r has cos s = cos p cos r, and the twist is the angle of the twist
    joint. Of proper Euler angles the swing is |q2| and the twist q1 + hand * q3. Below a right angle all
    allowed joint positions together are convex, so that straight joint motions between two of them stay
    among them: log cos is concave.
    """

    joints: tuple[str, str, str]
    order: Order
    hand: float
    swing: float = math.inf
    twist: Span = ANY
    given: tuple[Span, Span, Span] = (ANY, ANY, ANY)
    declared: bool = False

    @property
    def limited(self) -> bool:
        """Whether there is a limit that those of its joints do not have."""
        if self.order is Order.PROPER:
            return self.twist != ANY
        return math.isfinite(self.swing)

    @property
    def swing_joints(self) -> tuple[str, ...]:
        """The joints that swing it."""
        first, middle, last = self.joints
        return {Order.TWIST_LAST: (first, middle), Order.TWIST_FIRST: (middle, last)}.get(self.order, (middle,))

    @property
    def twist_joints(self) -> tuple[str, ...]:
        """The joints that twist it."""
        return tuple(name for name in self.joints if name not in self.swing_joints)

    def describe(self) -> str:
        """Return one sentence: its joints, how swing and twist are measured, and their limits."""
        swung = ' and '.join(f'"{name}"' for name in self.swing_joints)
        turned = ' and '.join(f'"{name}"' for name in self.twist_joints)
        swing, twist = 'within their limits', 'within its limits'
        if math.isfinite(self.swing):
            swing = f'up to {self.swing:.4g} rad'
        if self.twist != ANY:
            twist = f'from {self.twist[0]:.4g} to {self.twist[1]:.4g} rad'
        return f'joints {", ".join(self.joints)} form a ball joint: swing by {swung} {swing}, twist by {turned} {twist}'

    def with_margins(self, margins: Mapping[str, float]) -> Ball:
        """Return it with limits moved inwards by the largest of margins [rad], by name, of their joints."""
        swing, twist = (
            max(margins.get(name, 0.0) for name in names) for names in (self.swing_joints, self.twist_joints)
        )
        return replace(self, swing=self.swing - swing, twist=(self.twist[0] + twist, self.twist[1] - twist))

    def swing_twist(self, q: Three) -> Three:
        """Return (swing x, swing y, twist) [rad] at the positions q of its joints.

        swing x, swing y: rotation vector of the swing about the first swing joint's axis and the one
        perpendicular to it; their length is the swing. With the twist joint first, these axes turn with it.
        """
        q1, q2, q3 = q
        if self.order is Order.PROPER:
            return q2 * math.cos(q1), q2 * math.sin(q1), q1 + self.hand * q3
        a, b, twist = (q1, q2, q3) if self.order is Order.TWIST_LAST else (q2, q3, q1)
        swing = swing_angle(a, b)
        size = swing / math.sin(swing) if swing > 1e-9 else 1.0
        return size * math.sin(a) * math.cos(b), size * math.sin(b), twist

    def joint_positions(self, swing_x: float, swing_y: float, twist: float, near: Three) -> Three:
        """Return the positions of its joints for (swing x, swing y, twist) [rad]: inverse of swing_twist.

        near: present positions. Proper Euler angles have two solutions, and at no swing any number: the
        nearest is returned. Limits are ignored.
        """
        swing = math.hypot(swing_x, swing_y)
        if self.order is Order.PROPER:
            if swing < 1e-9:
                return near[0], 0.0, self.hand * (twist - near[0])
            found = []
            for angle, tilt in ((0.0, swing), (math.pi, -swing)):
                q1 = near[0] + math.remainder(math.atan2(swing_y, swing_x) + angle - near[0], 2 * math.pi)
                found.append((q1, tilt, self.hand * (twist - q1)))
            return min(found, key=lambda q: max(abs(a - b) for a, b in zip(q, near, strict=True)))
        share = math.sin(swing) / swing if swing > 1e-9 else 1.0
        b = math.asin(max(-1.0, min(1.0, share * swing_y)))
        a = math.atan2(share * swing_x, math.cos(swing))
        return (a, b, twist) if self.order is Order.TWIST_LAST else (twist, a, b)


def swing_angle(a: float, b: float) -> float:
    """Return the swing [rad] of a universal pair at a and b [rad]: cos s = cos a cos b, exact near zero."""
    return 2.0 * math.asin(math.sqrt(math.sin(a / 2) ** 2 + math.cos(a) * math.sin(b / 2) ** 2))


def nothing_left(ball: Ball, joints: Mapping[str, Joint]) -> str | None:
    """Return why the limits of its joints and of a ball joint exclude each other, None if they do not."""
    chain = [joints[name] for name in ball.joints]
    if ball.order is Order.PROPER:
        ends = sorted((ball.hand * chain[2].lower, ball.hand * chain[2].upper))
        low, high = chain[0].lower + ends[0], chain[0].upper + ends[1]
        if low <= ball.twist[1] and high >= ball.twist[0]:
            return None
        return (
            f'the limits of joints {chain[0].name} and {chain[2].name} allow a twist of {low:.4g} to '
            f'{high:.4g} rad, none of which is within {ball.twist[0]:.4g} to {ball.twist[1]:.4g} rad'
        )
    pair = [joints[name] for name in ball.swing_joints]
    smallest = swing_angle(*(min(max(0.0, joint.lower), joint.upper) for joint in pair))
    if smallest < ball.swing:
        return None
    return (
        f'the limits of joints {pair[0].name} and {pair[1].name} allow no swing below {smallest:.4g} rad, '
        f'but their ball joint has a swing of at most {ball.swing:.4g} rad'
    )


def find_balls(joints: Mapping[str, Joint]) -> tuple[Ball, ...]:
    """Return the balls among joints (parents before children): three revolute ones in one point.

    Each axis is perpendicular to the next at zero; first and third are perpendicular too, or in one line.
    Joints that mimic others, or are mimicked, are part of none.
    """
    below: dict[str, list[Joint]] = {}
    for joint in joints.values():
        below.setdefault(joint.parent, []).append(joint)
    mimics = [joint for joint in joints.values() if joint.mimic is not None]
    bound = {joint.name for joint in mimics} | {joint.mimic.joint for joint in mimics if joint.mimic is not None}
    balls: list[Ball] = []
    taken: set[str] = set()
    for first in joints.values():
        for second in below.get(first.child, ()):
            for third in below.get(second.child, ()):
                names = {first.name, second.name, third.name}
                if names & (taken | bound):
                    continue
                ball = _ball(first, second, third, below.get(third.child, []))
                if ball is not None:
                    balls.append(ball)
                    taken |= names
    return tuple(balls)


def _ball(first: Joint, second: Joint, third: Joint, following: list[Joint]) -> Ball | None:
    """Return these joints as a ball joint, None if they do not form one."""
    chain = (first, second, third)
    if any(joint.type not in ('revolute', 'continuous') for joint in chain):
        return None
    if max(float(np.linalg.norm(joint.origin[:3, 3])) for joint in chain[1:]) > POINT_TOLERANCE:
        return None
    x, y, z = axes_at_zero(chain)
    outer = float(x @ z)
    if max(abs(float(x @ y)), abs(float(y @ z))) > ANGLE_TOLERANCE:
        return None
    if abs(outer) > 1.0 - ANGLE_TOLERANCE**2:
        order, hand = Order.PROPER, math.copysign(1.0, outer)
    elif abs(outer) <= ANGLE_TOLERANCE:
        hand = math.copysign(1.0, float(np.cross(x, y) @ z))
        turned = second.origin[:3, :3] @ third.origin[:3, :3]
        link = sum((turned @ joint.origin[:3, 3] for joint in following), np.zeros(3))
        order = Order.TWIST_FIRST if abs(link @ x) > abs(link @ z) + POINT_TOLERANCE else Order.TWIST_LAST
    else:
        return None
    spans = tuple((joint.lower, joint.upper) for joint in chain)
    return Ball((first.name, second.name, third.name), order, hand, given=(spans[0], spans[1], spans[2]))


def axes_at_zero(chain: tuple[Joint, Joint, Joint]) -> tuple[NDArray[np.float64], ...]:
    """Return the axes (3,) of the joints of a ball in the frame of the first, every joint at zero."""
    first, second, third = chain
    turned = second.origin[:3, :3]
    return first.axis, turned @ second.axis, turned @ third.origin[:3, :3] @ third.axis
