"""URDF text -> Robot, with validation.

yourdfpy reads the values, from a copy that holds kinematics alone: visuals, meshes and plugins never
reach it, so none can trip it. What it accepts without a word (cycles, unknown mimics, NaN, crossed
limits) is checked here, before and after.
"""

from __future__ import annotations

import io
import math
import os

import numpy as np
import yourdfpy
from lxml import etree
from numpy.typing import NDArray

from ik_node.errors import ElementError, TreeError
from ik_node.model.description import load_description, missing_meshes, read_from
from ik_node.model.mimic import drivers_of, narrowed
from ik_node.model.robot import MOVABLE, Joint, Mimic, Robot
from ik_node.model.urdf_xml import (
    Element,
    Notes,
    attribute_of,
    check_joint,
    named,
    numbers,
    only_child,
    parse_xml,
    place,
)

__all__ = ['Joint', 'Mimic', 'Robot', 'load_description', 'read_file', 'read_urdf']

DEFAULT_LIMIT = {'revolute': math.pi, 'prismatic': 1.0}  # [rad], [m] either side of zero, where none is given
DEFAULT_VELOCITY = {'revolute': 1.0, 'continuous': 1.0, 'prismatic': 0.1}  # [rad/s], [m/s]
UNIT = {'revolute': 'rad', 'continuous': 'rad', 'prismatic': 'm'}
PLACEHOLDER = 1000.0  # a limit this large [rad, m, rad/s, m/s] was never meant as one
ZERO_AXIS = 1e-6  # an axis shorter than this has no direction
AXIS_TOLERANCE = 1e-3  # a length this near to 1 is rounding and not worth a word


def read_urdf(text: str) -> Robot:
    """Parse and validate URDF text.

    Raises UrdfError (XmlError, XacroError, ElementError, TreeError) for what cannot be read, with element,
    attribute and line, and InputError if text is no str. What is merely untidy is read, with one of
    Robot.warnings for each matter: missing limits (DEFAULT_LIMIT, DEFAULT_VELOCITY), axes not of unit
    length, ignored blocks, missing meshes. A joint that others mimic goes only as far as all of them may.
    Limits that are NaN, crossed or shut out by such followers are read as none, swapped or left as they are
    off the arm and are a fault on it: see Robot.chain.
    """
    notes = Notes()
    root = parse_xml(text, notes)
    name = root.get('name')
    if not name:
        notes.add('<robot> needs a name, "robot" is assumed', place(root))
    links = named(root, 'link')
    if not links:
        raise ElementError(f'{place(root)} has no <link>: a robot has at least one')
    elements = named(root, 'joint')
    for element in elements.values():
        check_joint(element, links, notes)
    top, order = _tree(links, elements)
    values = _values(name or 'robot', links, elements, notes)
    faults: dict[str, str] = {}
    joints = {key: _joint(values[key], elements[key], notes, faults) for key in order}
    drivers = drivers_of(joints, elements, notes, faults)
    joints = narrowed(joints, drivers, elements, notes, faults)
    for missing in missing_meshes(links):
        notes.add('meshes are not on this machine, kinematics does without', missing)
    return Robot(name or 'robot', top, tuple(links), joints, drivers, notes.sentences(), faults)


def read_file(path: str | os.PathLike[str]) -> Robot:
    """Read a .urdf or .xacro file as load_description and read_urdf do; errors name the file."""
    text = load_description(path)
    with read_from(path):
        return read_urdf(text)


def _tree(links: dict[str, Element], joints: dict[str, Element]) -> tuple[str, list[str]]:
    """Return the root link and the joints' names, parents before children, else raise TreeError."""
    above: dict[str, Element] = {}
    below: dict[str, list[tuple[str, str]]] = {link: [] for link in links}
    for name, joint in joints.items():
        parent, child = joint.find('parent').get('link'), joint.find('child').get('link')
        if child in above:
            raise TreeError(
                f'link "{child}" has two parents: {place(above[child])} and {place(joint)}; '
                'a link can be the child of one joint only'
            )
        above[child] = joint
        below[parent].append((name, child))
    roots = [link for link in links if link not in above]
    if len(roots) > 1:
        raise TreeError(
            f'the links make {len(roots)} trees, with roots '
            f'{", ".join(place(links[link]) for link in roots[:20])}; join them by joints to one'
        )
    order: list[str] = []
    reached = set(roots)
    ahead = [pair for link in roots for pair in reversed(below[link])]
    while ahead:
        name, link = ahead.pop()
        order.append(name)
        reached.add(link)
        ahead += reversed(below[link])
    lost = [link for link in links if link not in reached]
    if lost:
        raise TreeError(_cycle(lost[0], above))
    return roots[0], order


def _cycle(link: str, above: dict[str, Element]) -> str:
    """Say which joints make the circle that is met upwards from link."""
    passed: list[str] = []
    while link not in passed:
        passed.append(link)
        link = above[link].find('parent').get('link')
    circle = [above[name] for name in reversed(passed[passed.index(link) :])]
    return (
        f'the links make a circle through {", ".join(map(place, circle[:20]))}; '
        'take out one of these joints, so that one root is above all links'
    )


def _values(
    name: str, links: dict[str, Element], joints: dict[str, Element], notes: Notes
) -> dict[str, yourdfpy.Joint]:
    """Return what yourdfpy reads of the joints, by name."""
    copy = etree.Element('robot', name=name)
    for link in links:
        etree.SubElement(copy, 'link', name=link)
    for element in joints.values():
        copy.append(_kinematics_of(element, notes))
    model = yourdfpy.URDF.load(io.BytesIO(etree.tostring(copy)), build_scene_graph=False, load_meshes=False)
    return {joint.name: joint for joint in model.robot.joints}


def _kinematics_of(joint: Element, notes: Notes) -> Element:
    """Return a copy of a <joint> with nothing but numbers that were checked and that its type has a use for.

    Raises ElementError for text that is no number, and for origins, axes and mimics that are not finite.
    """
    kind = joint.get('type')
    copy = etree.Element('joint', name=joint.get('name'), type=kind)
    for tag in ('parent', 'child'):
        etree.SubElement(copy, tag, link=joint.find(tag).get('link'))
    wanted: dict[str, dict[str, int]] = {'origin': {'xyz': 3, 'rpy': 3}}
    if kind in MOVABLE:
        wanted |= {'axis': {'xyz': 3}, 'mimic': {'multiplier': 1, 'offset': 1}, 'limit': {'velocity': 1}}
    if kind in DEFAULT_LIMIT:
        wanted['limit'] = {'lower': 1, 'upper': 1, 'velocity': 1}
    for tag, attributes in wanted.items():
        element = only_child(joint, tag, notes)
        if element is None:
            continue
        target = etree.SubElement(copy, tag)
        for attribute, count in attributes.items():
            if numbers(element, attribute, count, finite=tag != 'limit') is not None:
                target.set(attribute, element.get(attribute))
        if tag == 'mimic':
            target.set('joint', attribute_of(element, 'joint'))
    return copy


def _joint(read: yourdfpy.Joint, element: Element, notes: Notes, faults: dict[str, str]) -> Joint:
    """Return the checked Joint of what was read; faults gains a sentence if no arm can have it."""
    lower, upper, velocity = -math.inf, math.inf, DEFAULT_VELOCITY['revolute']
    mimic = None
    if read.type in MOVABLE:
        velocity = _velocity(read, element, notes)
        if read.mimic is not None:
            mimic = Mimic(read.mimic.joint, read.mimic.multiplier, read.mimic.offset)
    else:
        if element.find('mimic') is not None:
            notes.add('<mimic> on a joint without a value of its own is ignored', place(element))
        if read.type != 'fixed':
            notes.add(f'{read.type} joints are held at their origin', place(element))
            faults[read.name] = (
                f'{place(element, "type")}: an arm can have only revolute, continuous, prismatic and '
                'fixed joints'
            )
    if read.type in DEFAULT_LIMIT:
        lower, upper = _limits(read, element, notes, faults)
    elif read.type == 'continuous':
        limit = element.find('limit')
        if limit is not None and (limit.get('lower') or limit.get('upper')):
            notes.add('position limits of a continuous joint are ignored', place(element))
    origin = np.eye(4) if read.origin is None else np.asarray(read.origin, dtype=np.float64)
    axis = _axis(read, element, notes)
    for array in (origin, axis):
        array.flags.writeable = False
    return Joint(read.name, read.type, read.parent, read.child, origin, axis, lower, upper, velocity, mimic)


def _axis(read: yourdfpy.Joint, element: Element, notes: Notes) -> NDArray[np.float64]:
    """Return the unit axis (3,); x for joints that have no use for one. Raises ElementError if it is zero."""
    if read.type not in MOVABLE:
        return np.array([1.0, 0.0, 0.0])
    length = math.hypot(*read.axis)
    if length < ZERO_AXIS:
        raise ElementError(
            f'{place(element.find("axis"), "xyz")}: an axis of length zero has no direction; '
            'give one such as xyz="0 0 1"'
        )
    if abs(length - 1.0) > AXIS_TOLERANCE:
        notes.add('the axis is not of unit length, its direction counts', place(element))
    return np.array([part / length for part in read.axis])


def _velocity(read: yourdfpy.Joint, element: Element, notes: Notes) -> float:
    """Return the velocity limit [rad/s or m/s], the default where none is usable."""
    given = read.limit.velocity if read.limit is not None else None
    if given is not None and 0.0 < given < PLACEHOLDER:
        return float(given)
    default = DEFAULT_VELOCITY[read.type]
    notes.add(
        'the velocity limit is missing, not positive or a placeholder, '
        f'{default:g} {UNIT[read.type]}/s is assumed',
        place(element),
    )
    return default


def _limits(
    read: yourdfpy.Joint, element: Element, notes: Notes, faults: dict[str, str]
) -> tuple[float, float]:
    """Return (lower, upper) [rad or m], finite and in order; what an arm must not have becomes a fault."""
    span, unit = DEFAULT_LIMIT[read.type], UNIT[read.type]
    lower = read.limit.lower if read.limit is not None else None
    upper = read.limit.upper if read.limit is not None else None
    if lower is None and upper is None:
        notes.add(f'position limits are missing, {-span:g} to {span:g} {unit} is assumed', place(element))
        return -span, span
    limit = element.find('limit')
    if lower is None or upper is None:
        notes.add('one position limit is missing and is 0, as URDF has it', place(element))
        lower, upper = lower or 0.0, upper or 0.0
    if math.isnan(lower) or math.isnan(upper):
        attribute = 'lower' if math.isnan(lower) else 'upper'
        faults[read.name] = f'{place(limit, attribute)} must be a number in {unit}'
        notes.add(
            f'a position limit is NaN (an error on the arm), {-span:g} to {span:g} {unit} is assumed',
            place(element),
        )
        return -span, span
    if lower > upper:
        faults[read.name] = (
            f'{place(limit)} has lower="{lower:g}" above upper="{upper:g}" [{unit}]; '
            'lower must not exceed upper'
        )
        notes.add('lower is above upper (an error on the arm), read the other way round', place(element))
        lower, upper = upper, lower
    no_lower, no_upper = abs(lower) >= PLACEHOLDER, abs(upper) >= PLACEHOLDER
    if no_lower or no_upper:
        notes.add(
            f'position limits of {PLACEHOLDER:g} {unit} and more are placeholders, '
            f'{span:g} {unit} is assumed',
            place(element),
        )
        if no_lower:
            lower = -span if no_upper else min(-span, upper - span)
        if no_upper:
            upper = max(span, lower + span)
    if lower == upper:
        notes.add('lower equals upper, so the joint cannot move', place(element))
    return float(lower), float(upper)
