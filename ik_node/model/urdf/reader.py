# SPDX-License-Identifier: Apache-2.0
"""URDF text -> Robot, with validation."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from ik_node.errors import ElementError, TreeError, quoted
from ik_node.model.joint import MOVABLE, Joint, Mimic
from ik_node.model.robot import Robot
from ik_node.model.urdf.ball_element import read_balls
from ik_node.model.urdf.description import load_description, read_from
from ik_node.model.urdf.elements import Element, named, parse_xml, place
from ik_node.model.urdf.findings import Reading
from ik_node.model.urdf.joint_element import INSTEAD, LIMITED, JointElement, read_joint
from ik_node.model.urdf.mimic import drivers_of, narrowed
from ik_node.model.urdf.missing_meshes import missing_meshes

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
    elements = {key: read_joint(source, links, reading) for key, source in named(root, 'joint').items()}
    top, order = _tree(links, elements)
    elements = {key: elements[key] for key in order}
    drivers = drivers_of(elements, reading)
    joints = {key: _joint(element, drivers[key].joint != key, reading) for key, element in elements.items()}
    joints, balls = read_balls(root, narrowed(joints, drivers, elements, reading))
    for missing in missing_meshes(links):
        reading.note('meshes are not found; kinematics does not need them', missing)
    named_parts = name or 'robot', top, tuple(links), joints, drivers
    return Robot(*named_parts, reading.warnings(), reading.faults, balls)


def read_file(path: str | os.PathLike[str], arguments: Mapping[str, object] | str | None = None) -> Robot:
    """Read a .urdf or .xacro file as load_description and read_urdf do; errors name the file."""
    text = load_description(path, arguments)
    with read_from(path):
        return read_urdf(text)


def _tree(links: Mapping[str, Element], joints: Mapping[str, JointElement]) -> tuple[str, list[str]]:
    """Return the root link and the joints' names, parents before children, else raise TreeError."""
    above: dict[str, JointElement] = {}
    below: dict[str, list[JointElement]] = {link: [] for link in links}
    for joint in joints.values():
        if joint.child in above:
            raise TreeError(
                f'link {quoted(joint.child)} has two parents: {above[joint.child].place()} and '
                f'{joint.place()}; a link can be the child of one joint only'
            )
        above[joint.child] = joint
        below[joint.parent].append(joint)
    roots = [link for link in links if link not in above]
    if len(roots) > 1:
        raise TreeError(
            f'the links form {len(roots)} trees, with roots '
            f'{", ".join(place(links[link]) for link in roots[:20])}; connect them by joints to one tree'
        )
    order: list[str] = []
    ahead = [joint for link in roots for joint in reversed(below[link])]
    while ahead:
        joint = ahead.pop()
        order.append(joint.name)
        ahead += reversed(below[joint.child])
    lost = set(above) - {joints[name].child for name in order}
    if lost:
        raise TreeError(_cycle(next(link for link in links if link in lost), above))
    return roots[0], order


def _cycle(link: str, above: Mapping[str, JointElement]) -> str:
    """Describe the circle of joints that is found upwards from link."""
    passed: dict[str, None] = {}
    while link not in passed:
        passed[link] = None
        link = above[link].parent
    path = list(passed)
    circle = [above[name].place() for name in reversed(path[path.index(link) :])]
    return (
        f'the links form a loop through {", ".join(circle[:20])}; '
        'remove one of these joints, so that one root is above all links'
    )


def _joint(element: JointElement, follows: bool, reading: Reading) -> Joint:
    """Return the checked Joint of an element; a joint that no arm can contain gets a fault."""
    kind = element.type
    lower, upper, velocity = -math.inf, math.inf, DEFAULT_VELOCITY['revolute']
    if kind in MOVABLE:
        velocity = _velocity(element, reading)
    else:
        if element.source.find('mimic') is not None:
            reading.note('<mimic> on a joint without a position is ignored', element.place())
        if kind != 'fixed':
            reading.note(f'{kind} joints are held at their origin', element.place())
            reading.faults[element.name] = (
                f'{place(element.source, "type")}: an arm can contain only revolute, continuous, '
                f'prismatic and fixed joints; {INSTEAD[kind]}'
            )
    if kind in LIMITED:
        lower, upper = _limits(element, reading)
    elif kind == 'continuous':
        limit = element.source.find('limit')
        if limit is not None and (limit.get('lower') or limit.get('upper')):
            reading.note('position limits of a continuous joint are ignored', element.place())
    origin = np.eye(4)
    origin[:3, :3] = rotation(*element.rpy)
    origin[:3, 3] = element.xyz
    return Joint(
        name=element.name,
        type=kind,
        parent=element.parent,
        child=element.child,
        origin=origin,
        axis=_axis(element, reading),
        lower=lower,
        upper=upper,
        velocity=velocity,
        mimic=element.mimic if follows else None,
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


def _axis(element: JointElement, reading: Reading) -> NDArray[np.float64]:
    """Return the unit axis (3,); x for joints without an axis. Raises ElementError if it is zero."""
    length = math.hypot(*element.axis)
    if length < ZERO_AXIS:
        raise ElementError(
            f'{element.place("axis", "xyz")}: an axis of length zero has no direction; '
            'give one such as xyz="0 0 1"'
        )
    if abs(length - 1.0) > AXIS_TOLERANCE:
        reading.note('the axis is not of unit length, only its direction is used', element.place())
    return np.array([part / length for part in element.axis])


def _velocity(element: JointElement, reading: Reading) -> float:
    """Return the velocity limit [rad/s or m/s], the default if none is usable."""
    if element.velocity is not None and 0.0 < element.velocity < PLACEHOLDER:
        return element.velocity
    default = DEFAULT_VELOCITY[element.type]
    reading.note(
        'the velocity limit is missing, not positive or a placeholder, '
        f'{default:g} {UNIT[element.type]}/s is assumed',
        element.place(),
    )
    return default


def _limits(element: JointElement, reading: Reading) -> tuple[float, float]:
    """Return (lower, upper) [rad or m], finite and in order; values invalid for an arm become a fault."""
    span, unit = DEFAULT_LIMIT[element.type], UNIT[element.type]
    lower, upper = element.lower, element.upper
    if lower is None and upper is None:
        reading.note(
            f'position limits are missing, {-span:g} to {span:g} {unit} are assumed; {TRUE_LIMITS}',
            element.place(),
        )
        return -span, span
    if lower is None or upper is None:
        reading.note('one position limit is missing, it is 0 by the URDF specification', element.place())
        lower, upper = lower or 0.0, upper or 0.0
    if math.isnan(lower) or math.isnan(upper):
        attribute = 'lower' if math.isnan(lower) else 'upper'
        reading.faults[element.name] = f'{element.place("limit", attribute)} must be a number in {unit}'
        reading.note(
            f'a position limit is NaN (an error on the arm), {-span:g} to {span:g} {unit} is assumed',
            element.place(),
        )
        return -span, span
    if lower > upper:
        reading.faults[element.name] = (
            f'{element.place("limit")} has lower="{lower:g}" above upper="{upper:g}" [{unit}]; '
            'lower must not exceed upper'
        )
        reading.note('lower is above upper (an error on the arm), limits swapped', element.place())
        lower, upper = upper, lower
    no_lower, no_upper = abs(lower) >= PLACEHOLDER, abs(upper) >= PLACEHOLDER
    if no_lower or no_upper:
        reading.note(
            f'position limits of {PLACEHOLDER:g} {unit} and more are placeholders, '
            f'{span:g} {unit} is assumed; {TRUE_LIMITS}',
            element.place(),
        )
        if no_lower:
            lower = -span if no_upper else min(-span, upper - span)
        if no_upper:
            upper = max(span, lower + span)
    if lower == upper:
        reading.note('lower equals upper, so the joint cannot move', element.place())
    return lower, upper
