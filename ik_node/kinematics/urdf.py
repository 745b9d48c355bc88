"""URDF or xacro text -> Robot, with validation."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Mimic:
    """value = multiplier * value of joint + offset."""

    joint: str
    multiplier: float
    offset: float


@dataclass(frozen=True, eq=False)
class Joint:
    """One URDF joint, already checked.

    type: revolute, continuous, prismatic, fixed (planar and floating only off every arm).
    origin: (4, 4) pose of the joint frame in the parent link at zero. axis: (3,) unit, in the
    joint frame. lower, upper [rad or m]: -inf and inf for continuous. velocity [rad/s or m/s] > 0.
    """

    name: str
    type: str
    parent: str
    child: str
    origin: NDArray[np.float64]
    axis: NDArray[np.float64]
    lower: float
    upper: float
    velocity: float
    mimic: Mimic | None = None


class Robot:
    """A validated tree of links and joints.

    name, root (link name), links (names), joints (by name, parents before children),
    warnings (one sentence each, for the log).
    """

    name: str
    root: str
    links: tuple[str, ...]
    joints: Mapping[str, Joint]
    warnings: tuple[str, ...]

    @property
    def movable(self) -> tuple[Joint, ...]:
        """All joints that are not fixed, mimic joints included."""
        raise NotImplementedError

    def driver(self, name: str) -> tuple[str, float, float]:
        """Follow mimics from joint name to the joint that drives it: (driver, ratio, shift).

        value = ratio * value of driver + shift; a joint that mimics nothing drives itself (1, 0).
        """
        raise NotImplementedError

    def chain(self, tip_link: str, base_link: str | None = None) -> Sequence[Joint]:
        """Return the joints from base_link (default: the root) to tip_link."""
        raise NotImplementedError

    def default_tip(self) -> str:
        """Return the only leaf that ends the longest movable chain; ambiguous is an error that lists the leaves."""
        raise NotImplementedError

    def link_pose(self, link: str, values: Mapping[str, float]) -> NDArray[np.float64]:
        """Return T_root_link (4, 4) at the given joint values (missing joints at zero, mimics followed)."""
        raise NotImplementedError


def read_urdf(text: str) -> Robot:
    """Parse and validate URDF text. Raises UrdfError."""
    raise NotImplementedError


def load_description(path: str | os.PathLike[str]) -> str:
    """Return the URDF text of a .urdf or .xacro file (xacro expanded). Raises UrdfError."""
    raise NotImplementedError
