"""Mimic joints: who follows whom in the end."""

from __future__ import annotations

import math
from collections.abc import Mapping

from ik_node.kinematics.errors import ElementError, TreeError, listed
from ik_node.kinematics.robot import Driver, Joint
from ik_node.kinematics.urdf_xml import Element, Notes, place


def drivers_of(
    joints: Mapping[str, Joint], elements: Mapping[str, Element], notes: Notes, faults: dict[str, str]
) -> dict[str, Driver]:
    """Return for every joint the one that drives it in the end, with ratio and shift.

    joints, and their <joint> elements, by name. Raises ElementError for a mimic of itself, of an unknown
    joint or of a planar or floating one, TreeError for a circle. Following a fixed joint becomes a fault.
    """
    drivers: dict[str, Driver] = {}
    for start in joints:
        path: dict[str, None] = {}
        name = start
        while name not in drivers:
            if name in path:
                raise TreeError(_circle(list(path), name, elements))
            path[name] = None
            mimic = joints[name].mimic
            if mimic is None:
                drivers[name] = Driver(name, 1.0, 0.0)
            else:
                _check(joints, name, mimic.joint, elements[name])
                name = mimic.joint
        for follower in reversed(path):
            mimic = joints[follower].mimic
            if mimic is not None:
                above = drivers[mimic.joint]
                drivers[follower] = Driver(
                    above.joint, mimic.multiplier * above.ratio, mimic.multiplier * above.shift + mimic.offset
                )
                _note(drivers[follower], joints, elements[follower], notes, faults)
    return drivers


def _check(joints: Mapping[str, Joint], name: str, master: str, element: Element) -> None:
    mimic = element.find('mimic')
    if master == name:
        raise ElementError(f'{place(mimic, "joint")}: a joint cannot follow itself; name another joint')
    if master not in joints:
        raise ElementError(
            f'{place(mimic, "joint")}: there is no such joint; joints: {listed(joints, master)}'
        )
    kind = joints[master].type
    if kind in ('planar', 'floating'):
        raise ElementError(
            f'{place(mimic, "joint")}: a {kind} joint has no single value to follow; '
            'name a revolute, continuous or prismatic joint'
        )


def _note(
    driver: Driver, joints: Mapping[str, Joint], element: Element, notes: Notes, faults: dict[str, str]
) -> None:
    where = place(element.find('mimic'), 'joint')
    if not (math.isfinite(driver.ratio) and math.isfinite(driver.shift)):
        raise ElementError(
            f'{where}: multipliers and offsets up to joint "{driver.joint}" grow beyond all numbers; '
            'give multipliers near 1'
        )
    if joints[driver.joint].type == 'fixed':
        notes.add('a joint that follows a fixed one is held at its offset', place(element))
        faults[element.get('name')] = f'{where} follows a fixed joint; make it fixed too, or name another'


def _circle(path: list[str], name: str, elements: Mapping[str, Element]) -> str:
    circle = path[path.index(name) :]
    places = [place(elements[each].find('mimic'), 'joint') for each in circle[:20]]
    return f'the mimics go in a circle: {", ".join(places)}; one of these joints must follow none'
