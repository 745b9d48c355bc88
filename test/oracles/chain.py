# SPDX-License-Identifier: Apache-2.0
"""An FK that shares nothing with ik_node's: it reads the URDF by itself and multiplies link frames."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

SLACK = 1e-6  # [rad or m] by which an answer may miss a limit; it is clipped before it is judged
ROUNDING = 1e-12  # added to tolerances, for the last bits in which two FKs differ


class Chain:
    """The joints of a URDF from base to tip with a tool, for any number of configurations at once.

    names: the independent joints, in order. mounts (m + 1, 4, 4): fixed transform before each
    movable joint and the one from the last joint to the tip; axes (m, 3); slides (m,) bool;
    driver, ratio, shift (m,): value = ratio * q[driver] + shift.
    """

    def __init__(self, xml: str | bytes, base: str | None, tip: str, axis: Array, point: Array) -> None:
        """base: None for the root."""
        joints = ET.fromstring(xml).findall('joint')
        by_child = {joint.find('child').get('link'): joint for joint in joints}
        by_name = {joint.get('name'): joint for joint in joints}
        path = []
        while tip in by_child and tip != base:
            path.append(by_child[tip])
            tip = path[-1].find('parent').get('link')
        self.tool_axis, self.tool_point = np.asarray(axis, float), np.asarray(point, float)
        self.names: list[str] = []
        mounts, axes, slides, drives = [np.eye(4)], [], [], []
        for joint in reversed(path):
            mounts[-1] = mounts[-1] @ origin(joint)
            if joint.get('type') not in ('revolute', 'continuous', 'prismatic'):
                continue
            axes.append(numbers(joint.find('axis'), 'xyz', (1, 0, 0)))
            slides.append(joint.get('type') == 'prismatic')
            name, ratio, shift = driver(joint.get('name'), by_name)
            if name not in self.names:
                self.names.append(name)
            drives.append((self.names.index(name), ratio, shift))
            mounts.append(np.eye(4))
        self.mounts = np.array(mounts)
        self.axes = np.array([axis / np.linalg.norm(axis) for axis in axes]).reshape(-1, 3)
        self.slides = np.array(slides, bool)
        self.driver = np.array([drive[0] for drive in drives], int)
        self.ratio, self.shift = np.array([drive[1:] for drive in drives]).reshape(-1, 2).T
        self.n = len(self.names)

    @property
    def first(self) -> Array:
        """Where the first joint is at zero (3,)."""
        return self.mounts[0, :3, 3]

    def fk(self, q: Array) -> tuple[Array, Array]:
        """Return tool points (N, 3) and tool axes (N, 3) at q (N, n)."""
        turn, place, _, _ = self.frames(q)
        return place + turn @ self.tool_point, turn @ self.tool_axis

    def frames(self, q: Array) -> tuple[Array, Array, Array, Array]:
        """Return tip rotation (N, 3, 3) and place (N, 3), joint axes and points (N, m, 3) at q (N, n)."""
        q = np.atleast_2d(q)
        count = len(q)
        turn, place = np.broadcast_to(np.eye(3), (count, 3, 3)), np.zeros((count, 3))
        axes, points = np.empty((2, count, len(self.axes), 3))
        for i, axis in enumerate(self.axes):
            place = place + turn @ self.mounts[i, :3, 3]
            turn = turn @ self.mounts[i, :3, :3]
            axes[:, i], points[:, i] = turn @ axis, place
            value = self.ratio[i] * q[:, self.driver[i]] + self.shift[i]
            if self.slides[i]:
                place = place + axes[:, i] * value[:, None]
            else:
                turn = turn @ rotations(axis, value)
        place = place + turn @ self.mounts[-1, :3, 3]
        return turn @ self.mounts[-1, :3, :3], place, axes, points


def numbers(element: ET.Element | None, name: str, default: tuple[float, ...]) -> Array:
    """Return an attribute's numbers, or the default where element or attribute is missing."""
    text = None if element is None else element.get(name)
    return np.array(default if text is None else text.split(), float)


def rotations(axis: Array, angle: Array) -> Array:
    """Return Rot(axis, angle) (N, 3, 3) for one unit axis (3,) and angles (N,). Rodrigues' formula."""
    x, y, z = axis
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    sine, versine = np.sin(angle)[:, None, None], (1 - np.cos(angle))[:, None, None]
    return np.eye(3) + sine * cross + versine * (cross @ cross)


def origin(joint: ET.Element) -> Array:
    """Return the (4, 4) pose that a joint's <origin> gives."""
    element = joint.find('origin')
    pose = np.eye(4)
    pose[:3, 3] = numbers(element, 'xyz', (0, 0, 0))
    for axis, angle in zip(np.eye(3), numbers(element, 'rpy', (0, 0, 0)), strict=True):
        pose[:3, :3] = rotations(axis, np.array([angle]))[0] @ pose[:3, :3]
    return pose


def driver(name: str, by_name: dict[str, ET.Element]) -> tuple[str, float, float]:
    """Follow <mimic> elements to (independent joint, ratio, shift)."""
    mimic = by_name[name].find('mimic')
    if mimic is None:
        return name, 1.0, 0.0
    first, ratio, shift = driver(mimic.get('joint'), by_name)
    multiplier, offset = float(mimic.get('multiplier', 1)), float(mimic.get('offset', 0))
    return first, multiplier * ratio, multiplier * shift + offset


def angle_between(a: Array, b: Array) -> Array:
    """Return the angles [rad] between unit vectors (..., 3); exact near 0 and near pi (Kahan)."""
    return 2 * np.arctan2(np.linalg.norm(a - b, axis=-1), np.linalg.norm(a + b, axis=-1))


def into_limits(q: Array, limits: Array, slides: Array) -> tuple[Array, Array]:
    """Bring q (..., n) into limits (2, n) by whole turns; return it, clipped, and whether it fits (...)."""
    lower, upper = limits
    with np.errstate(invalid='ignore'):
        turns = np.ceil((lower - SLACK - q) / (2 * math.pi))
    turned = q + 2 * math.pi * np.where(np.isfinite(turns), turns, 0.0)
    q = np.where(((q < lower - SLACK) | (q > upper + SLACK)) & ~slides, turned, q)
    inside = ((q >= lower - SLACK) & (q <= upper + SLACK)).all(-1)
    return np.clip(q, lower, upper), inside


def within(errors: Array, tolerance: float) -> NDArray[np.bool_]:
    """Whether errors are within tolerance; NaN never is."""
    return errors <= tolerance + ROUNDING
