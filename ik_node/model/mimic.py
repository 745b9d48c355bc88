"""Mimic joints: who follows whom in the end, and what room the followers leave."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from ik_node.errors import ElementError, TreeError, listed
from ik_node.model.robot import Driver, Joint
from ik_node.model.urdf_xml import Element, Notes, place

WHOLE_TURN = 2 * math.pi - 1e-2  # [rad] limits this far apart, 2 pi rounded, shut out no angle
ROUNDING = 1e-9  # [rad or m] limits that miss each other by this meet
SURPRISE = 0.01  # share of a joint's range that goes without a word


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


def narrowed(
    joints: Mapping[str, Joint],
    drivers: Mapping[str, Driver],
    elements: Mapping[str, Element],
    notes: Notes,
    faults: dict[str, str],
) -> dict[str, Joint]:
    """Return joints by name, drivers only as far as every joint that follows them may go.

    Only limits as written count, and none of a whole turn. A continuous driver with limits becomes
    revolute. Where no value serves a driver and its followers, its own limits stay and it has a fault.
    """
    found = dict(joints)
    for name, (driver, ratio, shift) in drivers.items():
        own = found[driver]
        if name == driver or ratio == 0.0 or not own.movable or driver in faults:
            continue
        low, high = sorted((limit - shift) / ratio + 0.0 for limit in _written(joints[name], elements[name]))
        lower, upper = max(low, own.lower), min(high, own.upper)
        if lower > upper + ROUNDING:
            where = f'{place(elements[driver])} and {place(elements[name])}'
            faults[driver] = (
                f'{where} share no value: following it, "{name}" keeps its limits only while "{driver}" is '
                f'between {low:.6g} and {high:.6g}, but its own are {own.lower:.6g} and {own.upper:.6g}; '
                'correct one of the limits, or the multiplier or offset of the mimic'
            )
            notes.add('no value is within the limits of both (an error on the arm)', where)
            found[driver] = joints[driver]
        elif lower > own.lower or upper < own.upper:
            upper = max(lower, upper)
            if upper - lower < (1.0 - SURPRISE) * (own.upper - own.lower):
                notes.add(
                    'a joint that follows another narrows its limits',
                    f'{place(elements[name])} leaves "{driver}" {lower:.6g} to {upper:.6g}',
                )
            kind = 'revolute' if own.type == 'continuous' else own.type
            found[driver] = replace(own, type=kind, lower=lower, upper=upper)
    return found


def _written(joint: Joint, element: Element) -> tuple[float, float]:
    """Return the limits [rad or m] that stand in the file; infinite where they were assumed or corrected."""
    limit = element.find('limit')
    if limit is None or (limit.get('lower') is None and limit.get('upper') is None):
        return -math.inf, math.inf
    if joint.type != 'prismatic' and joint.upper - joint.lower >= WHOLE_TURN:
        return -math.inf, math.inf
    lower, upper = float(limit.get('lower', 0.0)), float(limit.get('upper', 0.0))
    return (
        joint.lower if lower == joint.lower else -math.inf,
        joint.upper if upper == joint.upper else math.inf,
    )
