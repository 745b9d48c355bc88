# SPDX-License-Identifier: Apache-2.0
"""Masses and inertias of the links of a URDF, estimated where the file has none."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from transforms3d.euler import euler2mat

from ik_node.checks import Array
from ik_node.model.robot import Robot
from ik_node.model.urdf.elements import Element, named, parse_xml
from ik_node.model.urdf.findings import Reading

MASS_PER_LENGTH = 1.5  # [kg/m] of a link without a mass
SHORTEST = 0.03  # [m]: a made-up link is as long as this at least
LEAST_MASS = 1e-3  # [kg]
LEAST_INERTIA = 1e-7  # [kg m^2]


@dataclass(frozen=True, eq=False)
class Inertia:
    """Mass [kg], centre of mass (3,) [m] and inertia (3, 3) [kg m^2] about it, both in the link's frame."""

    mass: float
    centre: Array
    tensor: Array


def link_inertias(robot: Robot, text: str) -> dict[str, Inertia]:
    """Return the inertia of every link of robot, whose description is text."""
    links = named(parse_xml(text, Reading()), 'link')
    return {link: _given(element) or _made_up(robot, link) for link, element in links.items()}


def _given(link: Element) -> Inertia | None:
    """Return the inertia in a <link>, None unless a body can have it."""
    element = link.find('inertial')
    if element is None:
        return None
    try:
        mass = _number(element.find('mass'), 'value')
        origin = element.find('origin')
        xyz, rpy = (_vector(origin, name) for name in ('xyz', 'rpy'))
        ixx, iyy, izz, ixy, ixz, iyz = (
            _number(element.find('inertia'), name) for name in ('ixx', 'iyy', 'izz', 'ixy', 'ixz', 'iyz')
        )
    except ValueError:
        return None
    numbers = (mass, *xyz, *rpy, ixx, iyy, izz, ixy, ixz, iyz)
    if not all(map(math.isfinite, numbers)) or mass < LEAST_MASS:
        return None
    R = euler2mat(*rpy, axes='sxyz')
    tensor = R @ np.array([[ixx, ixy, ixz], [ixy, iyy, iyz], [ixz, iyz, izz]]) @ R.T
    return Inertia(mass, np.array(xyz), _physical(tensor))


def _physical(tensor: Array) -> Array:
    """Return the tensor with principal inertias greater than 0."""
    principal, axes = np.linalg.eigh(tensor)
    result: Array = axes @ np.diag(np.maximum(principal, LEAST_INERTIA)) @ axes.T
    return result


def _made_up(robot: Robot, link: str) -> Inertia:
    """Return the inertia of a ball on the way to the joints that the link carries."""
    ends = [joint.origin[:3, 3] for joint in robot.joints.values() if joint.parent == link]
    centre = np.mean(ends, axis=0) / 2.0 if ends else np.zeros(3)
    length = max(2.0 * float(np.linalg.norm(centre)), SHORTEST)
    mass = MASS_PER_LENGTH * length
    return Inertia(mass, centre, np.eye(3) * max(mass * length**2 / 12.0, LEAST_INERTIA))


def _number(element: Element | None, name: str) -> float:
    if element is None:
        raise ValueError(name)
    return float(element.get(name, 'nan'))


def _vector(element: Element | None, name: str) -> list[float]:
    text = '0 0 0' if element is None else element.get(name, '0 0 0')
    values = [float(part) for part in text.split()]
    if len(values) != 3:
        raise ValueError(name)
    return values
