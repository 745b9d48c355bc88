# SPDX-License-Identifier: Apache-2.0
"""<ball> elements: the limits of ball joints, which URDF cannot express. See model/ball.py."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ik_node.errors import ElementError, join_names, quoted
from ik_node.model.ball import ANY, LARGEST_CONE, Ball, Order, Span, find_balls, nothing_left
from ik_node.model.joint import Joint
from ik_node.model.urdf.elements import Element, place, tag_of

EXTENSION = 'ik_node'
ATTRIBUTES = ('joints', 'twist_joint', 'swing', 'twist_lower', 'twist_upper')
EXAMPLE = '<ball joints="yaw pitch roll" twist_joint="yaw" swing="1.2" twist_lower="-2" twist_upper="2"/>'


def read_balls(root: Element, joints: Mapping[str, Joint]) -> tuple[dict[str, Joint], tuple[Ball, ...]]:
    """Return joints, with limits narrowed by those of the balls, and the balls of a <robot>.

    Balls without an element are returned as found, without limits of their own. Raises ElementError for an
    element that names no ball of the robot, or limits that cannot be kept: a limit is never ignored.
    """
    balls = {ball.joints: ball for ball in find_balls(joints)}
    narrowed = dict(joints)
    for element in root.iter('ball', '{*}ball'):
        above = element.getparent()
        if element.get('joints') is None:
            continue  # of another program
        if above is None or above.tag != EXTENSION or above.getparent() is not root:
            raise ElementError(
                f'{place(element)}: <ball> must be in an element <{EXTENSION}> of <{root.tag}>, '
                f'such as <{EXTENSION}>{EXAMPLE}</{EXTENSION}>'
            )
    for extension in root.iterchildren(EXTENSION):
        for element in extension.iterchildren('*'):
            if element.tag != 'ball':
                raise ElementError(
                    f'{place(element)}: unknown element <{tag_of(element)}> in <{EXTENSION}>; allowed: <ball>'
                )
            ball = _read(element, balls, joints)
            balls[ball.joints] = ball
            for name, (low, high) in _spans(ball).items():
                narrowed[name] = _narrow(narrowed[name], low, high, element)
            why = nothing_left(ball, narrowed)
            if why is not None:
                raise ElementError(f'{place(element)}: {why}')
    return narrowed, tuple(balls.values())


def _read(element: Element, balls: Mapping[tuple[str, str, str], Ball], joints: Mapping[str, Joint]) -> Ball:
    """Return the ball that an element describes, with its limits."""
    unknown = [name for name in element.attrib if name not in ATTRIBUTES]
    if unknown:
        raise ElementError(
            f'{place(element, unknown[0])}: unknown attribute {quoted(unknown[0])}; '
            f'attributes of <ball>: {join_names(ATTRIBUTES, unknown[0])}'
        )
    names = tuple((element.get('joints') or '').split())
    for name in names:
        if name not in joints:
            raise ElementError(
                f'{place(element, "joints")}: unknown joint {quoted(name)}; joints: '
                f'{join_names(joints, name)}'
            )
    ball = balls.get(names) if len(names) == 3 else None
    if ball is None:
        known = '; '.join(' '.join(names) for names in balls) or 'none'
        raise ElementError(
            f'{place(element, "joints")}: these joints do not form a ball joint. Name three revolute joints, '
            'base to tip, in one point (origins of no length between them) with perpendicular axes and '
            f'without mimics; ball joints of this robot: {known}'
        )
    if ball.declared:
        raise ElementError(f'{place(element, "joints")}: duplicate <ball> for these joints')
    ball = _with_twist_joint(element, ball)
    swing = _angle(element, 'swing', math.inf)
    low, high = (_angle(element, f'twist_{end}', ANY[k]) for k, end in enumerate(('lower', 'upper')))
    largest = math.pi if ball.order is Order.PROPER else LARGEST_CONE
    if not (0.0 < swing <= largest or swing == math.inf):
        raise ElementError(
            f'{place(element, "swing")}: the swing must be greater than 0 and at most {largest:.4g} rad '
            + ('for joints of this order' if ball.order is Order.PROPER else f'for a pair of {_pair(ball)}')
        )
    if low > high:
        raise ElementError(
            f'{place(element)} has twist_lower="{low:g}" above twist_upper="{high:g}" [rad]; '
            'lower must not exceed upper'
        )
    return replace(ball, swing=swing, twist=(low, high), declared=True)


def _pair(ball: Ball) -> str:
    return f'{" and ".join(ball.swing_joints)}, which lock at a right angle'


def _with_twist_joint(element: Element, ball: Ball) -> Ball:
    """Return the ball with the twist joint of the element; the other order of joints is a ball as well."""
    name = element.get('twist_joint')
    allowed: Sequence[str] = (ball.joints[0], ball.joints[2])
    if name is None:
        return ball
    if name not in allowed:
        raise ElementError(
            f'{place(element, "twist_joint")}: the twist joint must be the first or the last joint of the '
            f'ball, {join_names(allowed)}'
        )
    if ball.order is Order.PROPER:
        return ball
    return replace(ball, order=Order.TWIST_FIRST if name == ball.joints[0] else Order.TWIST_LAST)


def _angle(element: Element, attribute: str, default: float) -> float:
    text = element.get(attribute)
    if text is None:
        return default
    try:
        value = float('' if '_' in text else text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ElementError(
            f'{place(element, attribute)} must be a finite number in rad; an example: {EXAMPLE}'
        )
    return value


def _spans(ball: Ball) -> dict[str, Span]:
    """Return by joint what the limits of a ball allow at most."""
    spans = dict.fromkeys(ball.swing_joints, (-ball.swing, ball.swing))
    if ball.order is not Order.PROPER:
        spans[ball.twist_joints[0]] = ball.twist
    return spans


def _narrow(joint: Joint, low: float, high: float, element: Element) -> Joint:
    """Return a joint with limits of at least low and at most high [rad]."""
    lower, upper = max(joint.lower, low), min(joint.upper, high)
    if lower > upper:
        raise ElementError(
            f'{place(element)}: it allows {low:.4g} to {high:.4g} rad for joint {quoted(joint.name)}, '
            f'whose own limits are {joint.lower:.4g} to {joint.upper:.4g} rad: nothing is left'
        )
    if (lower, upper) == (joint.lower, joint.upper):
        return joint
    # A continuous joint with one limit gets a second one, far away.
    lower, upper = (lower if math.isfinite(lower) else upper - 4 * math.pi), upper
    upper = upper if math.isfinite(upper) else lower + 4 * math.pi
    return replace(joint, lower=lower, upper=upper, type='revolute')
