# SPDX-License-Identifier: Apache-2.0
"""Robot: a validated tree of links and joints."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ik_node.checks import Array
from ik_node.errors import LISTED_NAMES, ChainError, InputError, join_names, quoted, safe_repr
from ik_node.model.ball import Ball
from ik_node.model.plausibility import Span, spans_of

from .joint import Joint


class Driver(NamedTuple):
    """value = ratio * value of joint + shift, where joint follows no other."""

    joint: str
    ratio: float
    shift: float


class Robot:
    """A validated tree of links and joints.

    name, root (link name), links (names), joints (by name, parents before children),
    warnings (one sentence each, for the log), faults (by joint name, a sentence on why no arm can have
    this joint; joints without a fault are not in it), balls (its ball joints).
    """

    def __init__(
        self,
        name: str,
        root: str,
        links: tuple[str, ...],
        joints: Mapping[str, Joint],
        drivers: Mapping[str, Driver],
        warnings: tuple[str, ...] = (),
        faults: Mapping[str, str] | None = None,
        balls: tuple[Ball, ...] = (),
    ) -> None:
        """Arguments as checked by read_urdf: one tree, parents before children, no circular mimics."""
        self.name = name
        self.root = root
        self.links = links
        self.joints: Mapping[str, Joint] = MappingProxyType(dict(joints))
        self.warnings = warnings
        self.faults: Mapping[str, str] = MappingProxyType(dict(faults or {}))
        self.balls = balls
        self._drivers = dict(drivers)
        self._known = frozenset(links)
        self._above = {joint.child: joint for joint in self.joints.values()}

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and unpickle by the constructor: mapping proxies cannot be pickled."""
        joints, faults = dict(self.joints), dict(self.faults)
        named = self.name, self.root, self.links, joints, self._drivers
        return Robot, (*named, self.warnings, faults, self.balls)

    def with_joints(
        self,
        joints: Mapping[str, Joint],
        warnings: Sequence[str] = (),
        balls: tuple[Ball, ...] | None = None,
    ) -> Robot:
        """Return this robot with other limits of the same joints, and balls, and further warnings."""
        every = (*self.warnings, *warnings)
        named = self.name, self.root, self.links, joints, self._drivers
        return Robot(*named, every, self.faults, self.balls if balls is None else balls)

    @property
    def movable(self) -> tuple[Joint, ...]:
        """All movable joints (revolute, continuous, prismatic), including mimic joints."""
        return tuple(joint for joint in self.joints.values() if joint.movable)

    def driver(self, name: str) -> Driver:
        """Follow mimics from joint name to the joint that drives it: (joint, ratio, shift).

        value = ratio * value of the driver + shift; a joint that mimics nothing drives itself (1, 0).
        Raises InputError for an unknown joint.
        """
        self._check_joint(name)
        return self._drivers[name]

    def chain(self, tip_link: str, base_link: str | None = None) -> Sequence[Joint]:
        """Return the joints from base_link (default: the root) to tip_link, fixed ones included.

        Raises ChainError: unknown link, base_link not above tip_link, no movable joint, a joint with a
        fault (planar, floating, limits NaN or crossed, a mimic that cannot be followed) or driven by one;
        InputError for a link that is not str.
        """
        base = self.root if base_link is None else base_link
        self._check_link(tip_link, 'tip_link')
        self._check_link(base, 'base_link')
        path = self.path(tip_link)
        above = [self.root, *(joint.child for joint in path)]
        if base not in above:
            raise ChainError(
                f'base_link {quoted(base)} is not between the root and tip_link {quoted(tip_link)}; '
                f'links between them: {join_names(above)}'
            )
        chain = tuple(path[above.index(base) :])
        if not any(joint.movable or joint.name in self.faults for joint in chain):
            raise ChainError(
                f'no movable joint is between base_link {quoted(base)} and tip_link '
                f'{quoted(tip_link)}; movable joints by leaf: {self.leaves_text()}'
            )
        for joint in chain:
            for name in (joint.name, self._drivers[joint.name].joint):
                if name in self.faults:
                    raise ChainError(
                        f'the arm from {quoted(base)} to {quoted(tip_link)} needs joint {quoted(name)}: '
                        f'{self.faults[name]}'
                    )
        return chain

    def joint_values(self, values: Mapping[str, float]) -> dict[str, float]:
        """Return the value [rad or m] of every movable joint, in the order of movable.

        values: by joint name. A mimic joint follows its driver even if it is in values; a joint
        without a value is at its rest. Raises InputError for an unknown joint or a value not finite.
        """
        self._check_values(values)
        return {joint.name: self._value(joint, values) for joint in self.movable}

    def link_pose(self, link: str, values: Mapping[str, float]) -> NDArray[np.float64]:
        """Return T_root_link (4, 4) at joint values as in joint_values; planar and floating at their origin.

        Raises ChainError for an unknown link, InputError for an unknown joint or a value not finite.
        """
        self._check_link(link, 'link')
        self._check_values(values)
        pose: NDArray[np.float64] = np.eye(4)
        for joint in self.path(link):
            pose = pose @ joint.pose(self._value(joint, values))
        return pose

    def link_poses(self, values: Mapping[str, float]) -> dict[str, NDArray[np.float64]]:
        """Return link_pose of every link by its name, in one pass through the tree."""
        self._check_values(values)
        poses: dict[str, NDArray[np.float64]] = {self.root: np.eye(4)}
        for joint in self.joints.values():
            poses[joint.child] = poses[joint.parent] @ joint.pose(self._value(joint, values))
        return poses

    def _value(self, joint: Joint, values: Mapping[str, float]) -> float:
        if not joint.movable:
            return 0.0
        name, ratio, shift = self._drivers[joint.name]
        driver = self.joints[name]
        value = float(values[name]) if name in values else driver.rest
        return ratio * (value if driver.movable else 0.0) + shift

    def path(self, link: str) -> list[Joint]:
        """Return the joints from the root to a link of the robot."""
        path = []
        while link != self.root:
            path.append(self._above[link])
            link = path[-1].parent
        return path[::-1]

    def movable_above(self) -> dict[str, int]:
        """Return by link the number of movable joints between the root and it, mimic joints included."""
        count = {self.root: 0}
        for joint in self.joints.values():
            count[joint.child] = count[joint.parent] + joint.movable
        return count

    def leaves(self) -> dict[str, int]:
        """Return movable_above of the links that carry no other."""
        parents = {joint.parent for joint in self.joints.values()}
        return {link: count for link, count in self.movable_above().items() if link not in parents}

    def leaves_text(self) -> str:
        """Return the leaves with their numbers of movable joints, for a message."""
        leaves = self.leaves()
        first = [f'{quoted(leaf)} ({count})' for leaf, count in leaves.items()][:LISTED_NAMES]
        more = f' and {len(leaves) - len(first)} more' if len(leaves) > len(first) else ''
        return ', '.join(first) + more

    def _check_link(self, link: str, role: str) -> None:
        if not isinstance(link, str):
            raise InputError(
                f'{role} must be the name of a link, got {safe_repr(link)}; links: {join_names(self.links)}'
            )
        if link not in self._known:
            raise ChainError(f'{role} {quoted(link)} does not exist; links: {join_names(self.links, link)}')

    def _check_joint(self, name: str) -> None:
        if name not in self.joints:
            known = f'joints: {join_names(self.joints, str(name))}'
            raise InputError(f'unknown joint {quoted(str(name))}; {known}')

    def _check_values(self, values: Mapping[str, float]) -> None:
        if not isinstance(values, Mapping):
            raise InputError(f'values must be numbers by the names of joints, got {safe_repr(values)}')
        for name, value in values.items():
            self._check_joint(name)
            if not _is_finite(value):
                raise InputError(f'the value of joint {quoted(name)} must be a finite number, got {safe_repr(value)}')


def _is_finite(value: Any) -> bool:
    try:
        return isinstance(value, numbers.Real) and math.isfinite(value)
    except OverflowError:  # an integer without a float
        return False


class JointSet:
    """The m movable joints of a robot, driven by n <= m independent ones.

    names (m): all of them, including mimic joints. variables (n): the independent ones; prismatic (n,)
    bool; lower, upper, velocity (n,): their limits, the velocity such that mimic joints also keep theirs.
    """

    def __init__(self, robot: Robot) -> None:
        joints = robot.movable
        drivers = [robot.driver(joint.name) for joint in joints]
        free = dict.fromkeys(driver.joint for driver in drivers if robot.joints[driver.joint].movable)
        self.names = tuple(joint.name for joint in joints)
        self.variables = tuple(free)
        self.n = len(self.variables)
        variables = [robot.joints[name] for name in self.variables]
        self.lower = np.array([joint.lower for joint in variables])
        self.upper = np.array([joint.upper for joint in variables])
        self.rest = np.array([joint.rest for joint in variables])
        self.prismatic = np.array([joint.type == 'prismatic' for joint in variables], dtype=bool)
        # By joint (m,): value = ratio * value of variable + shift; fixed joints count as one more, at zero.
        place = {name: index for index, name in enumerate(self.variables)}
        self._variable = np.array([place.get(driver.joint, self.n) for driver in drivers], dtype=np.int64)
        self._ratio = np.array([driver.ratio for driver in drivers])
        self._shift = np.array([driver.shift for driver in drivers])
        velocity = np.full(self.n + 1, np.inf)
        moves = self._ratio != 0.0
        speeds = np.array([joint.velocity for joint in joints])[moves] / np.abs(self._ratio[moves])
        np.minimum.at(velocity, self._variable[moves], speeds)
        self.velocity = velocity[: self.n]

    @property
    def spans(self) -> list[Span]:
        """The limits of the variables."""
        return spans_of(self.variables, self.lower, self.upper, self.velocity, self.prismatic)

    def expand(self, values: Array, velocities: Array) -> tuple[Array, Array]:
        """Return values and velocities (m,) of all joints from those of the variables (n,)."""
        q, qd = np.append(values, 0.0), np.append(velocities, 0.0)
        return self._ratio * q[self._variable] + self._shift, self._ratio * qd[self._variable]

    def indices(self, names: Sequence[str]) -> NDArray[np.int64]:
        """Return where in variables each of names is."""
        return np.array([self.variables.index(name) for name in names], dtype=np.int64)

    def named(self, values: Array) -> dict[str, float]:
        """Return the variables (n,) by name."""
        return dict(zip(self.variables, values.tolist(), strict=True))

    def filled(self, values: Mapping[str, float]) -> Array:
        """Return (n,): the given values, and Joint.rest for the others."""
        return np.array([values.get(name, rest) for name, rest in zip(self.variables, self.rest, strict=True)])
