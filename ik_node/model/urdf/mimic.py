# SPDX-License-Identifier: Apache-2.0
"""Mimic joints: the joint that finally drives each one, and the range that they leave to it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from ik_node.errors import join_names, quoted
from ik_node.model.joint import Joint
from ik_node.model.robot import Driver
from ik_node.model.urdf.findings import Reading
from ik_node.model.urdf.joint_element import JointElement

WHOLE_TURN = 2 * math.pi - 1e-2  # [rad] limits this far apart, 2 pi rounded, exclude no angle
ROUNDING = 1e-9  # [rad or m] limits that miss each other by this meet
SURPRISE = 0.01  # share of the range of a joint that may be lost without a warning


def drivers_of(elements: Mapping[str, JointElement], reading: Reading) -> dict[str, Driver]:
    """Return for every joint the one that finally drives it, with ratio and shift.

    elements: by joint name. A joint whose mimic cannot be followed (of an unknown joint, of itself, of a
    planar or floating joint, in a circle, overflowing) drives itself and has a fault; one that follows a
    fixed joint is held at its offset and has a fault.
    """
    drivers: dict[str, Driver] = {}
    for start in elements:
        path: dict[str, None] = {}  # followers, upwards to a joint whose driver is known
        name = start
        while name not in drivers:
            mimic = elements[name].mimic
            if name in path:
                members = list(path)[list(path).index(name) :]
                for member in members:
                    del path[member]
                    _reject(member, _circle([elements[each] for each in members]), elements, drivers, reading)
            elif mimic is None:
                drivers[name] = Driver(name, 1.0, 0.0)
            elif reason := _wrong_master(elements, name, mimic.joint):
                _reject(
                    name, f'{elements[name].place("mimic", "joint")}: {reason}', elements, drivers, reading
                )
            else:
                path[name] = None
                name = mimic.joint
        for follower in reversed(path):
            _follow(elements[follower], elements, drivers, reading)
    return drivers


def _follow(
    element: JointElement,
    elements: Mapping[str, JointElement],
    drivers: dict[str, Driver],
    reading: Reading,
) -> None:
    """Set the driver of element, from the driver of the joint that it mimics."""
    name, mimic = element.name, element.mimic
    assert mimic is not None
    joint, ratio, shift = drivers[mimic.joint]
    ratio, shift = mimic.multiplier * ratio, mimic.multiplier * shift + mimic.offset
    where = element.place('mimic', 'joint')
    if not (math.isfinite(ratio) and math.isfinite(shift)):
        reason = (
            f'{where}: multipliers and offsets up to joint {quoted(joint)} overflow; give multipliers near 1'
        )
        _reject(name, reason, elements, drivers, reading)
        return
    drivers[name] = Driver(joint, ratio, shift)
    if elements[joint].type == 'fixed':
        reading.note('a joint that mimics a fixed joint is held at its offset', element.place())
        reading.faults[name] = f'{where} mimics a fixed joint; make it fixed too, or name another joint'


def _reject(
    name: str,
    fault: str,
    elements: Mapping[str, JointElement],
    drivers: dict[str, Driver],
    reading: Reading,
) -> None:
    drivers[name] = Driver(name, 1.0, 0.0)
    reading.faults[name] = fault
    reading.note(
        'a mimic that cannot be followed is ignored (an error on the arm)',
        elements[name].place('mimic', 'joint'),
    )


def _wrong_master(elements: Mapping[str, JointElement], name: str, master: str) -> str | None:
    """Return why no joint can follow master, None if one can."""
    if master == name:
        return 'a joint cannot mimic itself; name another joint'
    if master not in elements:
        return f'unknown joint; joints: {join_names(elements, master)}'
    kind = elements[master].type
    if kind in ('planar', 'floating'):
        return (
            f'a {kind} joint has no single position to follow; name a revolute, continuous or prismatic joint'
        )
    return None


def _circle(members: list[JointElement]) -> str:
    places = ', '.join(each.place('mimic', 'joint') for each in members[:20])
    return f'the mimic joints form a loop: {places}; one of these joints must not mimic another'


def narrowed(
    joints: Mapping[str, Joint],
    drivers: Mapping[str, Driver],
    elements: Mapping[str, JointElement],
    reading: Reading,
) -> dict[str, Joint]:
    """Return joints by name, with the limits of drivers narrowed to those of their mimic joints.

    Only limits as written count, and none of a whole turn. A continuous driver with limits becomes
    revolute. If no position is within the limits of all, a driver keeps its own limits and has a fault.
    """
    found = dict(joints)
    for name, (driver, ratio, shift) in drivers.items():
        own = found[driver]
        if name == driver or ratio == 0.0 or not own.movable or driver in reading.faults:
            continue
        low, high = sorted((limit - shift) / ratio + 0.0 for limit in _written(joints[name], elements[name]))
        lower, upper = max(low, own.lower), min(high, own.upper)
        if lower > upper + ROUNDING:
            where = f'{elements[driver].place()} and {elements[name].place()}'
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
                    f'{elements[name].place()} leaves {quoted(driver)} {lower:.6g} to {upper:.6g}',
                )
            kind = 'revolute' if own.type == 'continuous' else own.type
            found[driver] = replace(own, type=kind, lower=lower, upper=upper)
    return found


def _written(joint: Joint, element: JointElement) -> tuple[float, float]:
    """Return the limits [rad or m] as written in the file; infinite if they were assumed or corrected."""
    if element.lower is None and element.upper is None:
        return -math.inf, math.inf
    if joint.type != 'prismatic' and joint.upper - joint.lower >= WHOLE_TURN:
        return -math.inf, math.inf
    lower, upper = element.lower or 0.0, element.upper or 0.0
    return (
        joint.lower if lower == joint.lower else -math.inf,
        joint.upper if upper == joint.upper else math.inf,
    )
