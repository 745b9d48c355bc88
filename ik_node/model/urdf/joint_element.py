# SPDX-License-Identifier: Apache-2.0
"""JointElement: one <joint> of a URDF as written, with its numbers parsed."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from ik_node.errors import LARGEST, ElementError, join_names, quoted
from ik_node.model.joint import MOVABLE, Mimic
from ik_node.model.urdf.elements import Element, attribute_of, place
from ik_node.model.urdf.findings import Reading

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


@dataclass(frozen=True, eq=False)
class JointElement:
    """The contents of a <joint>, with URDF's defaults for origin and axis; nothing is corrected.

    xyz [m], rpy [rad]: origin in the parent link, finite. axis: finite, of any length. lower, upper
    [rad or m], velocity [rad/s or m/s]: None if they are absent or not used by the type, else any float.
    """

    name: str
    type: str
    parent: str
    child: str
    xyz: Three
    rpy: Three
    axis: Three
    lower: float | None
    upper: float | None
    velocity: float | None
    mimic: Mimic | None
    source: Element

    def place(self, tag: str | None = None, attribute: str | None = None) -> str:
        """Return the location of the joint, or of the first <tag> in it, for a message."""
        found = None if tag is None else self.source.find(tag)
        return place(self.source if found is None else found, attribute)


def read_joint(source: Element, links: Collection[str], reading: Reading) -> JointElement:
    """Return the contents of a <joint>.

    Raises ElementError unless type, parent and child exist and are known, and for text that is not a number
    and origins, axes and mimics that are not finite. What the type does not use is ignored.
    """
    kind = attribute_of(source, 'type')
    if kind not in JOINT_TYPES:
        raise ElementError(
            f'{place(source, "type")}, joint {quoted(source.get("name"))}: unknown joint type; '
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
    bounds = limit if kind in LIMITED else None
    return JointElement(
        attribute_of(source, 'name'),
        kind,
        parent,
        child,
        _three(origin, 'xyz') or (0.0, 0.0, 0.0),
        _three(origin, 'rpy') or (0.0, 0.0, 0.0),
        _three(axis, 'xyz') or (1.0, 0.0, 0.0),
        _number(bounds, 'lower'),
        _number(bounds, 'upper'),
        _number(limit, 'velocity'),
        None if mimic is None else _mimic(mimic),
        source,
    )


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
    wanted = 'one number' if count == 1 else f'{count} numbers separated by blanks'
    example = _EXAMPLES.get((element.tag, attribute), f'{attribute}="1.5"')
    values = []
    for word in text.split():
        try:
            values.append(float('' if '_' in word else word))
        except ValueError:
            raise ElementError(
                f'{place(element, attribute)}: {quoted(word)} is not a number; '
                f'give {wanted}, such as {example}'
            ) from None
    if len(values) != count:
        raise ElementError(
            f'{place(element, attribute)}: got {len(values)} numbers; give {wanted}, such as {example}'
        )
    if finite and not all(abs(value) <= LARGEST for value in values):
        raise ElementError(
            f'{place(element, attribute)}: NaN, infinite or beyond {LARGEST:g}; give {wanted} that '
            f'{"is" if count == 1 else "are"} finite, such as {example}'
        )
    return values
