# SPDX-License-Identifier: Apache-2.0
"""Masses and inertias of the links of a URDF, estimated where the file has none, and their weight."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from transforms3d.euler import euler2mat

from ik_node.checks import Array
from ik_node.model.robot import Robot
from ik_node.model.urdf.elements import Element, Reading, named, parse_xml

MASS_PER_LENGTH = 1.5  # [kg/m] of a link without a mass
SHORTEST = 0.03  # [m]: a made-up link is as long as this at least
MIN_MASS = 1e-3  # [kg]
MIN_INERTIA = 1e-7  # [kg m^2]
GRAVITY = 9.81  # [m/s^2], along -z of the root link


@dataclass(frozen=True, eq=False)
class Inertia:
    """Mass [kg], centre of mass (3,) [m] and inertia (3, 3) [kg m^2] about it, both in the link's frame."""

    mass: float
    centre: Array
    tensor: Array


def link_inertias(robot: Robot, text: str) -> dict[str, Inertia]:
    """Return the inertia of every link of robot, whose description is text."""
    return {link: given or _made_up(robot, link) for link, given in _all_given(text).items()}


class Weight:
    """The torques of gravity about the joints of a robot whose root link stands upright.

    Links without a mass weigh nothing, such as frames; if no moving link has one, all masses are made up.
    """

    def __init__(self, robot: Robot, text: str) -> None:
        """text: the description of robot."""
        given = _all_given(text)
        if not any(given.get(joint.child) for joint in robot.joints.values()):
            given = dict(link_inertias(robot, text))
        self._joints = []
        for joint in robot.joints.values():
            inertia, driver = given.get(joint.child), robot.driver(joint.name)
            moment = np.append(inertia.mass * inertia.centre, inertia.mass) if inertia else np.zeros(4)
            self._joints.append((joint, driver, joint.terms, moment))
        self._rest = {joint.name: joint.rest for joint in robot.movable}
        self._turning = [
            joint.name
            for joint in robot.movable
            if joint.type != 'prismatic' and robot.driver(joint.name).joint == joint.name
        ]

    def __call__(self, positions: Mapping[str, float]) -> dict[str, float]:
        """Return the torque [Nm] about each joint that turns and follows no other, positive as the joint.

        positions [rad or m]: by joint; joints without one are at their rest.
        """
        poses: dict[str, Array] = {}
        moments: dict[str, Array] = {}  # (4,) of a link and all that it carries: mass times centre, mass
        for joint, driver, (linear, square), moment in self._joints:
            pose = poses.get(joint.parent, np.eye(4)) @ joint.origin
            if joint.movable:
                value = driver.ratio * positions.get(driver.joint, self._rest.get(driver.joint, 0.0))
                value += driver.shift
                turn = (value, 0.0) if joint.type == 'prismatic' else (math.sin(value), 1.0 - math.cos(value))
                pose = pose @ (np.eye(4) + turn[0] * linear + turn[1] * square)
            poses[joint.child], moments[joint.child] = pose, pose @ moment
        found = dict.fromkeys(self._turning, 0.0)
        for joint, driver, *_ in reversed(self._joints):
            pose, moment = poses[joint.child], moments[joint.child]
            if joint.parent in moments:
                moments[joint.parent] = moments[joint.parent] + moment
            if joint.movable and driver.joint in found:
                axis = pose[:3, :3] @ joint.axis
                x, y = moment[:2] - moment[3] * pose[:2, 3]
                torque = -moment[3] * axis[2] if joint.type == 'prismatic' else axis[1] * x - axis[0] * y
                found[driver.joint] += GRAVITY * driver.ratio * torque
        return {name: float(torque) for name, torque in found.items()}


def _all_given(text: str) -> dict[str, Inertia | None]:
    """Return the inertia of every link in a description, None where it has none that a body can have."""
    return {link: _given(element) for link, element in named(parse_xml(text, Reading()), 'link').items()}


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
    if not all(map(math.isfinite, numbers)) or mass < MIN_MASS:
        return None
    R = euler2mat(*rpy, axes='sxyz')
    tensor = R @ np.array([[ixx, ixy, ixz], [ixy, iyy, iyz], [ixz, iyz, izz]]) @ R.T
    return Inertia(mass, np.array(xyz), _physical(tensor))


def _physical(tensor: Array) -> Array:
    """Return the tensor with principal inertias greater than 0."""
    principal, axes = np.linalg.eigh(tensor)
    result: Array = axes @ np.diag(np.maximum(principal, MIN_INERTIA)) @ axes.T
    return result


def _made_up(robot: Robot, link: str) -> Inertia:
    """Return the inertia of a ball on the way to the joints that the link carries."""
    ends = [joint.origin[:3, 3] for joint in robot.joints.values() if joint.parent == link]
    centre = np.mean(ends, axis=0) / 2.0 if ends else np.zeros(3)
    length = max(2.0 * float(np.linalg.norm(centre)), SHORTEST)
    mass = MASS_PER_LENGTH * length
    return Inertia(mass, centre, np.eye(3) * max(mass * length**2 / 12.0, MIN_INERTIA))


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
