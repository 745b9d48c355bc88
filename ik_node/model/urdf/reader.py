# SPDX-License-Identifier: Apache-2.0
"""URDF text -> Robot, with validation."""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ik_node.errors import LARGEST, ElementError, TreeError, escaped, join_names, quoted
from ik_node.model.ball import ANY, LARGEST_CONE, Ball, Order, Span, find_balls, nothing_left
from ik_node.model.joint import MOVABLE, Joint, Mimic
from ik_node.model.meshes import is_missing
from ik_node.model.robot import Driver, Robot

from .description import load_description, read_from
from .elements import Element, Reading, attribute_of, named, parse_xml, place, tag_of

JOINT_TYPES = (*MOVABLE, 'fixed', 'planar', 'floating')
_BALL = 'write a ball joint as three revolute joints in one point (docs/how_to/ball_joints.md)'
INSTEAD = {  # of joint types with several degrees of freedom
    'floating': _BALL,
    'planar': 'write a planar joint as two prismatic joints and a revolute one',
    'ball': _BALL,
    'spherical': _BALL,
}
LIMITED = ('revolute', 'prismatic')  # the joint types with position limits
_EXAMPLES = {
    ('axis', 'xyz'): 'xyz="0 0 1"',
    ('origin', 'xyz'): 'xyz="0 0 0.1"',
    ('origin', 'rpy'): 'rpy="0 0 1.5708"',
}

Three = tuple[float, float, float]


def read_joint(source: Element, links: Collection[str], reading: Reading) -> tuple[Joint, Span]:
    """Return the joint of a <joint>, and its limits as the file has them [rad or m].

    Limits that are assumed, corrected or of a whole turn are infinite there. A joint that no arm can contain
    gets a fault. Raises ElementError unless type, parent and child exist and are known, and for text that is
    not a number and origins, axes and mimics that are not finite. What the type does not use is ignored.
    """
    name, kind = attribute_of(source, 'name'), attribute_of(source, 'type')
    if kind not in JOINT_TYPES:
        raise ElementError(
            f'{place(source, "type")}, joint {quoted(name)}: unknown joint type; '
            f'types: {join_names(JOINT_TYPES, kind.strip().lower())}'
            + (f'; {INSTEAD[kind]}' if kind in INSTEAD else '')
        )
    parent, child = (_link(source, tag, links, reading) for tag in ('parent', 'child'))
    if parent == child:
        raise ElementError(
            f'{place(source)} joins link {quoted(parent)} to itself; parent and child must be different links'
        )
    origin = _only(source, 'origin', reading)
    axis = limit = mimic = None
    if kind in MOVABLE:
        axis, limit, mimic = (_only(source, tag, reading) for tag in ('axis', 'limit', 'mimic'))
    pose = np.eye(4)
    pose[:3, 3] = _three(origin, 'xyz') or (0.0, 0.0, 0.0)
    pose[:3, :3] = rotation(*(_three(origin, 'rpy') or (0.0, 0.0, 0.0)))
    direction = _three(axis, 'xyz') or (1.0, 0.0, 0.0)
    given = (_number(limit, 'lower'), _number(limit, 'upper')) if kind in LIMITED else (None, None)
    speed = _number(limit, 'velocity')
    follows = None if mimic is None else _mimic(mimic)
    # What can be read is checked from here on.
    if kind in MOVABLE:
        speed = _velocity(name, kind, speed, reading)
    else:
        speed = DEFAULT_VELOCITY['revolute']
        _check_fixed(name, kind, reading)
    lower, upper = used = _limits(name, kind, given, reading) if kind in LIMITED else ANY
    if kind == 'continuous' and limit is not None and (limit.get('lower') or limit.get('upper')):
        reading.note('position limits of a continuous joint are ignored', place(source))
    unit = _unit_axis(name, direction, reading)
    joint = Joint(name, kind, parent, child, pose, unit, lower, upper, speed, follows)
    return joint, _as_written(kind, given, used)


def _link(joint: Element, tag: str, links: Collection[str], reading: Reading) -> str:
    end = _only(joint, tag, reading)
    if end is None:
        raise ElementError(f'{place(joint)} needs <{tag} link="...">')
    link = attribute_of(end, 'link')
    if link not in links:
        raise ElementError(f'{place(end, "link")}: unknown link; links: {join_names(links, link)}')
    return link


def _only(joint: Element, tag: str, reading: Reading) -> Element | None:
    """Return the first <tag> in a joint or None; duplicates are noted."""
    children = joint.findall(tag)
    if len(children) > 1:
        reading.note(f'<{tag}> is given more than once, the first is used', place(joint))
    return children[0] if children else None


def _mimic(element: Element) -> Mimic:
    multiplier = _number(element, 'multiplier', finite=True)
    offset = _number(element, 'offset', finite=True)
    return Mimic(
        attribute_of(element, 'joint'),
        1.0 if multiplier is None else multiplier,
        0.0 if offset is None else offset,
    )


def _three(element: Element | None, attribute: str) -> Three | None:
    values = _numbers(element, attribute, 3, finite=True)
    return None if values is None else (values[0], values[1], values[2])


def _number(element: Element | None, attribute: str, *, finite: bool = False) -> float | None:
    values = _numbers(element, attribute, 1, finite)
    return None if values is None else values[0]


def _numbers(element: Element | None, attribute: str, count: int, finite: bool) -> list[float] | None:
    """Return the numbers of an attribute, None if it is absent.

    Raises ElementError unless there are count of them, finite and at most LARGEST if finite is asked.
    """
    text = None if element is None else element.get(attribute)
    if element is None or text is None:
        return None
    allowed = 'one number' if count == 1 else f'{count} numbers separated by blanks'
    example = _EXAMPLES.get((element.tag, attribute), f'{attribute}="1.5"')
    values = []
    for word in text.split():
        try:
            values.append(float('' if '_' in word else word))
        except ValueError:
            raise ElementError(
                f'{place(element, attribute)}: {quoted(word)} is not a number; give {allowed}, such as {example}'
            ) from None
    if len(values) != count:
        raise ElementError(f'{place(element, attribute)}: got {len(values)} numbers; give {allowed}, such as {example}')
    if finite and not all(abs(value) <= LARGEST for value in values):
        raise ElementError(
            f'{place(element, attribute)}: NaN, infinite or beyond {LARGEST:g}; give {allowed} that '
            f'{"is" if count == 1 else "are"} finite, such as {example}'
        )
    return values


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
                f'{place(element, "joints")}: unknown joint {quoted(name)}; joints: {join_names(joints, name)}'
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
    angles = [_number(element, name, finite=True) for name in ('swing', 'twist_lower', 'twist_upper')]
    swing, low, high = (free if angle is None else angle for angle, free in zip(angles, (math.inf, *ANY), strict=True))
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


WHOLE_TURN = 2 * math.pi - 1e-2  # [rad] limits this far apart, 2 pi rounded, exclude no angle
ROUNDING = 1e-9  # [rad or m] limits that miss each other by this meet
SURPRISE = 0.01  # share of the range of a joint that may be lost without a warning


def drivers_of(joints: Mapping[str, Joint], reading: Reading) -> dict[str, Driver]:
    """Return for every joint the one that finally drives it, with ratio and shift.

    A joint whose mimic cannot be followed (of an unknown joint, of itself, of a planar or floating joint, in
    a circle, overflowing) drives itself and has a fault; one that follows a fixed joint is held at its offset
    and has a fault.
    """
    drivers: dict[str, Driver] = {}

    def reject(name: str, reason: str) -> None:
        drivers[name] = Driver(name, 1.0, 0.0)
        reading.faults.setdefault(name, reason)
        where = reading.place(name, 'mimic', 'joint')
        reading.note('a mimic that cannot be followed is ignored (an error on the arm)', where)

    def follow(name: str, mimic: Mimic) -> None:
        driver, ratio, shift = drivers[mimic.joint]
        ratio, shift = mimic.multiplier * ratio, mimic.multiplier * shift + mimic.offset
        where = reading.place(name, 'mimic', 'joint')
        if not (math.isfinite(ratio) and math.isfinite(shift)):
            what = f'multipliers and offsets up to joint {quoted(driver)} overflow; give multipliers near 1'
            reject(name, f'{where}: {what}')
            return
        drivers[name] = Driver(driver, ratio, shift)
        if joints[driver].type == 'fixed':
            reading.note('a joint that mimics a fixed joint is held at its offset', reading.place(name))
            fault = f'{where} mimics a fixed joint; make it fixed too, or name another joint'
            reading.faults.setdefault(name, fault)

    for start in joints:
        path: dict[str, Mimic] = {}  # followers, upwards to a joint whose driver is known
        name = start
        while name not in drivers:
            mimic = joints[name].mimic
            if name in path:
                members = list(path)[list(path).index(name) :]
                locations = ', '.join(reading.place(each, 'mimic', 'joint') for each in members[:20])
                for member in members:
                    del path[member]
                    reject(
                        member,
                        f'the mimic joints form a loop: {locations}; one of these joints must not mimic another',
                    )
            elif mimic is None:
                drivers[name] = Driver(name, 1.0, 0.0)
            elif reason := _wrong_master(joints, name, mimic.joint):
                reject(name, f'{reading.place(name, "mimic", "joint")}: {reason}')
            else:
                path[name] = mimic
                name = mimic.joint
        for follower, mimic in reversed(path.items()):
            follow(follower, mimic)
    return drivers


def _wrong_master(joints: Mapping[str, Joint], name: str, master: str) -> str | None:
    """Return why no joint can follow master, None if one can."""
    if master == name:
        return 'a joint cannot mimic itself; name another joint'
    if master not in joints:
        return f'unknown joint; joints: {join_names(joints, master)}'
    kind = joints[master].type
    if kind in ('planar', 'floating'):
        return f'a {kind} joint has no single position to follow; name a revolute, continuous or prismatic joint'
    return None


def narrowed(
    joints: Mapping[str, Joint],
    written: Mapping[str, Span],
    drivers: Mapping[str, Driver],
    reading: Reading,
) -> dict[str, Joint]:
    """Return joints by name, with the limits of drivers narrowed to those of their mimic joints.

    written: the limits as the file has them, which alone count. A continuous driver with limits becomes
    revolute. If no position is within the limits of all, a driver keeps its own limits and has a fault.
    """
    found = dict(joints)
    for name, (driver, ratio, shift) in drivers.items():
        own = found[driver]
        if name == driver or ratio == 0.0 or not own.movable or driver in reading.faults:
            continue
        low, high = sorted((limit - shift) / ratio + 0.0 for limit in written[name])
        lower, upper = max(low, own.lower), min(high, own.upper)
        if lower > upper + ROUNDING:
            where = f'{reading.place(driver)} and {reading.place(name)}'
            reading.faults[driver] = (
                f'the limits of {where} contradict each other: {quoted(name)} keeps its limits only while '
                f'{quoted(driver)} is between {low:.6g} and {high:.6g}, but its own are {own.lower:.6g} and '
                f'{own.upper:.6g}; correct one of the limits, or the multiplier or offset of the mimic'
            )
            reading.note('no position is within the limits of both (an error on the arm)', where)
            found[driver] = joints[driver]
        elif lower > own.lower or upper < own.upper:
            upper = max(lower, upper)
            if upper - lower < (1.0 - SURPRISE) * (own.upper - own.lower):
                reading.note(
                    'a mimic joint narrows the limits of its driver',
                    f'{reading.place(name)} leaves {quoted(driver)} {lower:.6g} to {upper:.6g}',
                )
            kind = 'revolute' if own.type == 'continuous' else own.type
            found[driver] = replace(own, type=kind, lower=lower, upper=upper)
    return found


def missing_meshes(links: Mapping[str, Element]) -> Iterator[str]:
    """Yield where meshes are missing on this machine, once for each package and once for all other files.

    links: <link> elements by name. A relative name counts as missing: load_description has made names
    absolute if it found the file, and others cannot resolve them. Files are never opened.
    """
    missing: dict[str, list[str]] = {}
    for name, link in links.items():
        for mesh in link.iter('mesh'):
            filename = mesh.get('filename', '')
            package = filename.partition('://')[2].partition('/')[0] if '://' in filename else ''
            if is_missing(filename):
                missing.setdefault(package, []).append(f'{escaped(filename)} of link {quoted(name)}')
    for locations in missing.values():
        yield locations[0] + (f' and {len(locations) - 1} more' if len(locations) > 1 else '')


__all__ = ['Joint', 'Mimic', 'Robot', 'load_description', 'read_file', 'read_urdf']

DEFAULT_LIMIT = {'revolute': math.pi, 'prismatic': 1.0}  # [rad], [m] either side of zero, where none is given
DEFAULT_VELOCITY = {'revolute': 1.0, 'continuous': 1.0, 'prismatic': 0.1}  # [rad/s], [m/s]
UNIT = {'revolute': 'rad', 'continuous': 'rad', 'prismatic': 'm'}
PLACEHOLDER = 1000.0  # a limit this large [rad, m, rad/s, m/s] is a placeholder
TRUE_LIMITS = 'give the true ones in the URDF, or with the parameter joint_limits_file of ik_node'
ZERO_AXIS = 1e-6  # an axis shorter than this counts as zero
AXIS_TOLERANCE = 1e-3  # a length this close to 1 is rounding and causes no warning


def read_urdf(text: str) -> Robot:
    """Parse and validate URDF text.

    Raises UrdfError (XmlError, XacroError, ElementError, TreeError) for what cannot be read, with element,
    attribute and line, and InputError if text is not str. Lesser issues become Robot.warnings: missing
    limits (DEFAULT_LIMIT, DEFAULT_VELOCITY), axes not of unit length, ignored elements, missing meshes. The
    limits of a joint that others mimic are narrowed to theirs. Limits that are NaN, crossed or contradict
    those of mimic joints, and mimics that cannot be followed, are warnings off the arm and errors on it: see
    Robot.chain.
    """
    reading = Reading()
    root = parse_xml(text, reading)
    name = root.get('name')
    if not name:
        reading.note('<robot> needs a name, "robot" is assumed', place(root))
    links = named(root, 'link')
    if not links:
        raise ElementError(f'{place(root)} has no <link>: a robot needs at least one')
    reading.sources = named(root, 'joint')
    read = {key: read_joint(source, links, reading) for key, source in reading.sources.items()}
    top, joints = _tree(links, [joint for joint, _ in read.values()], reading)
    drivers = drivers_of(joints, reading)
    joints = {key: joint if drivers[key].joint != key else replace(joint, mimic=None) for key, joint in joints.items()}
    written = {key: limits for key, (_, limits) in read.items()}
    joints, balls = read_balls(root, narrowed(joints, written, drivers, reading))
    for missing in missing_meshes(links):
        reading.note('meshes are not found; kinematics does not need them', missing)
    named_parts = name or 'robot', top, tuple(links), joints, drivers
    return Robot(*named_parts, reading.warnings(), reading.faults, balls)


def read_file(path: str | os.PathLike[str], arguments: Mapping[str, object] | str | None = None) -> Robot:
    """Read a .urdf or .xacro file as load_description and read_urdf do; errors name the file."""
    text = load_description(path, arguments)
    with read_from(path):
        return read_urdf(text)


def _tree(links: Mapping[str, Element], joints: Iterable[Joint], reading: Reading) -> tuple[str, dict[str, Joint]]:
    """Return the root link and the joints by name, parents before children, else raise TreeError."""
    above: dict[str, Joint] = {}
    below: dict[str, list[Joint]] = {link: [] for link in links}
    for joint in joints:
        if joint.child in above:
            raise TreeError(
                f'link {quoted(joint.child)} has two parents: {reading.place(above[joint.child].name)} and '
                f'{reading.place(joint.name)}; a link can be the child of one joint only'
            )
        above[joint.child] = joint
        below[joint.parent].append(joint)
    roots = [link for link in links if link not in above]
    if len(roots) > 1:
        raise TreeError(
            f'the links form {len(roots)} trees, with roots '
            f'{", ".join(place(links[link]) for link in roots[:20])}; connect them by joints to one tree'
        )
    ordered: dict[str, Joint] = {}
    ahead = [joint for link in roots for joint in reversed(below[link])]
    while ahead:
        joint = ahead.pop()
        ordered[joint.name] = joint
        ahead += reversed(below[joint.child])
    lost = set(above) - {joint.child for joint in ordered.values()}
    if lost:
        raise TreeError(_cycle(next(link for link in links if link in lost), above, reading))
    return roots[0], ordered


def _cycle(link: str, above: Mapping[str, Joint], reading: Reading) -> str:
    """Describe the circle of joints that is found upwards from link."""
    passed: dict[str, None] = {}
    while link not in passed:
        passed[link] = None
        link = above[link].parent
    path = list(passed)
    circle = [reading.place(above[name].name) for name in reversed(path[path.index(link) :])]
    return (
        f'the links form a loop through {", ".join(circle[:20])}; '
        'remove one of these joints, so that one root is above all links'
    )


def _check_fixed(name: str, kind: str, reading: Reading) -> None:
    """Note what is wrong with a joint that is held at its origin."""
    if reading.sources[name].find('mimic') is not None:
        reading.note('<mimic> on a joint without a position is ignored', reading.place(name))
    if kind != 'fixed':
        reading.note(f'{kind} joints are held at their origin', reading.place(name))
        reading.faults[name] = (
            f'{place(reading.sources[name], "type")}: an arm can contain only revolute, continuous, '
            f'prismatic and fixed joints; {INSTEAD[kind]}'
        )


def rotation(roll: float, pitch: float, yaw: float) -> NDArray[np.float64]:
    """Return Rz(yaw) Ry(pitch) Rx(roll) (3, 3): URDF's rpy [rad] turns about fixed x, then y, then z."""
    (cr, sr), (cp, sp), (cy, sy) = ((math.cos(angle), math.sin(angle)) for angle in (roll, pitch, yaw))
    return np.array(
        [
            [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
            [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
            [-sp, cp * sr, cp * cr],
        ]
    )


def _unit_axis(name: str, axis: Three, reading: Reading) -> NDArray[np.float64]:
    """Return the unit axis (3,). Raises ElementError if it is zero."""
    length = math.hypot(*axis)
    if length < ZERO_AXIS:
        raise ElementError(
            f'{reading.place(name, "axis", "xyz")}: an axis of length zero has no direction; '
            'give one such as xyz="0 0 1"'
        )
    if abs(length - 1.0) > AXIS_TOLERANCE:
        reading.note('the axis is not of unit length, only its direction is used', reading.place(name))
    return np.array([part / length for part in axis])


def _velocity(name: str, kind: str, given: float | None, reading: Reading) -> float:
    """Return the velocity limit [rad/s or m/s], the default if none is usable."""
    if given is not None and 0.0 < given < PLACEHOLDER:
        return given
    default = DEFAULT_VELOCITY[kind]
    reading.note(
        f'the velocity limit is missing, not positive or a placeholder, {default:g} {UNIT[kind]}/s is assumed',
        reading.place(name),
    )
    return default


def _as_written(kind: str, given: tuple[float | None, float | None], used: Span) -> Span:
    """Return those of the used limits [rad or m] that the file has; infinite for others and a whole turn."""
    if given == (None, None) or (kind != 'prismatic' and used[1] - used[0] >= WHOLE_TURN):
        return ANY
    lower, upper = (limit or 0.0 for limit in given)
    return used[0] if lower == used[0] else -math.inf, used[1] if upper == used[1] else math.inf


def _limits(name: str, kind: str, given: tuple[float | None, float | None], reading: Reading) -> Span:
    """Return (lower, upper) [rad or m], finite and in order; values invalid for an arm become a fault."""
    span, unit, where = DEFAULT_LIMIT[kind], UNIT[kind], reading.place(name)
    lower, upper = given
    if lower is None and upper is None:
        reading.note(
            f'position limits are missing, {-span:g} to {span:g} {unit} are assumed; {TRUE_LIMITS}',
            where,
        )
        return -span, span
    if lower is None or upper is None:
        reading.note('one position limit is missing, it is 0 by the URDF specification', where)
        lower, upper = lower or 0.0, upper or 0.0
    if math.isnan(lower) or math.isnan(upper):
        attribute = 'lower' if math.isnan(lower) else 'upper'
        reading.faults[name] = f'{reading.place(name, "limit", attribute)} must be a number in {unit}'
        reading.note(
            f'a position limit is NaN (an error on the arm), {-span:g} to {span:g} {unit} is assumed',
            where,
        )
        return -span, span
    if lower > upper:
        reading.faults[name] = (
            f'{reading.place(name, "limit")} has lower="{lower:g}" above upper="{upper:g}" [{unit}]; '
            'lower must not exceed upper'
        )
        reading.note('lower is above upper (an error on the arm), limits swapped', where)
        lower, upper = upper, lower
    no_lower, no_upper = abs(lower) >= PLACEHOLDER, abs(upper) >= PLACEHOLDER
    if no_lower or no_upper:
        reading.note(
            f'position limits of {PLACEHOLDER:g} {unit} and more are placeholders, '
            f'{span:g} {unit} is assumed; {TRUE_LIMITS}',
            where,
        )
        if no_lower:
            lower = -span if no_upper else min(-span, upper - span)
        if no_upper:
            upper = max(span, lower + span)
    if lower == upper:
        reading.note('lower equals upper, so the joint cannot move', where)
    return lower, upper
