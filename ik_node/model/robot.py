"""Robot: a validated tree of links and joints, and what can be asked of it."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ik_node.errors import LISTED_NAMES, ChainError, InputError, listed

MOVABLE = ('revolute', 'continuous', 'prismatic')  # the joint types with one value
TOOL_FRAME = 'tool0'  # the tip of an arm by the convention of ROS-Industrial
SHOWN_TIPS = 5  # ends of chains that a note names
_FINGER = re.compile('grip|jaw|finger|claw', re.IGNORECASE)


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
    joint frame. lower, upper [rad or m]: -inf and inf for continuous; such that joints that mimic this one
    keep theirs too. velocity [rad/s or m/s] > 0.
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

    @property
    def movable(self) -> bool:
        """Whether the joint has a value: neither fixed nor planar nor floating."""
        return self.type in MOVABLE

    @property
    def rest(self) -> float:
        """Value [rad or m] where nothing is known: zero, or mid-range where zero is outside the limits."""
        return 0.0 if self.lower <= 0.0 <= self.upper else (self.lower + self.upper) / 2

    def pose(self, value: float) -> NDArray[np.float64]:
        """Return the child link's pose (4, 4) in the parent link at value [rad or m]. Rodrigues' formula.

        A joint that is not movable stays at its origin.
        """
        if not self.movable:
            return self.origin
        motion = np.eye(4)
        if self.type == 'prismatic':
            motion[:3, 3] = value * self.axis
        else:
            x, y, z = self.axis
            cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
            motion[:3, :3] += math.sin(value) * cross + (1.0 - math.cos(value)) * (cross @ cross)
        return self.origin @ motion


class Driver(NamedTuple):
    """value = ratio * value of joint + shift, where joint follows no other."""

    joint: str
    ratio: float
    shift: float


class Robot:
    """A validated tree of links and joints.

    name, root (link name), links (names), joints (by name, parents before children),
    warnings (one sentence each, for the log), faults (by joint name, a sentence on why no arm can have
    this joint; joints without a fault are not in it).
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
    ) -> None:
        """Take what read_urdf has checked: one tree, parents before children, mimics without circles."""
        self.name = name
        self.root = root
        self.links = links
        self.joints: Mapping[str, Joint] = MappingProxyType(dict(joints))
        self.warnings = warnings
        self.faults: Mapping[str, str] = MappingProxyType(dict(faults or {}))
        self._drivers = dict(drivers)
        self._above = {joint.child: joint for joint in self.joints.values()}

    @property
    def movable(self) -> tuple[Joint, ...]:
        """All joints that have a value (revolute, continuous, prismatic), mimic joints included."""
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
        fault (planar, floating, limits NaN or crossed, following a fixed joint) or driven by one.
        """
        base = self.root if base_link is None else base_link
        self._check_link(tip_link, 'tip_link')
        self._check_link(base, 'base_link')
        path = self._path(tip_link)
        above = [self.root, *(joint.child for joint in path)]
        if base not in above:
            raise ChainError(
                f'base_link "{base}" is not on the way from the root to tip_link "{tip_link}"; '
                f'links on that way: {listed(above)}'
            )
        chain = tuple(path[above.index(base) :])
        if not any(joint.movable or joint.name in self.faults for joint in chain):
            raise ChainError(
                f'there is no movable joint between base_link "{base}" and tip_link "{tip_link}"; '
                f'movable joints by leaf: {self._leaves_text()}'
            )
        for joint in chain:
            for name in (joint.name, self._drivers[joint.name].joint):
                if name in self.faults:
                    raise ChainError(
                        f'the arm from "{base}" to "{tip_link}" needs joint "{name}": {self.faults[name]}'
                    )
        return chain

    def default_tip(self) -> str:
        """Return tool0 if joints move it, else the frame between fingers, else the end of the longest chain.

        Fingers: every longest chain ends in a link that its last joint moves, and has one independent joint
        more than the only leaf that is fixed to the link they all hang off. That leaf is the frame. The end
        of the longest chain must be one leaf; mimic joints count. Raises ChainError that lists the leaves if
        there are several, or nothing can move.
        """
        if TOOL_FRAME in self.links and any(joint.movable for joint in self._path(TOOL_FRAME)):
            return TOOL_FRAME
        leaves = self._leaves()
        most = max(leaves.values())
        longest = [leaf for leaf, count in leaves.items() if count == most]
        if most == 0:
            raise ChainError('the robot has no movable joint: every joint is fixed, planar or floating')
        if frame := self._frame_between(longest, leaves):
            return frame
        if len(longest) > 1:
            raise ChainError(
                f'the longest movable chain has {len(longest)} ends, so tip_link must say which is meant; '
                f'movable joints by leaf: {self._leaves_text()}'
            )
        return longest[0]

    def default_tip_note(self) -> str | None:
        """Say what default_tip chose among, None where nothing else could have been meant."""
        tip, leaves = self.default_tip(), self._leaves()
        others = [f'"{leaf}" ({count})' for leaf, count in leaves.items() if count and leaf != tip]
        last = self._path(tip)[-1]
        parts = [f'other ends: {", ".join(others[:SHOWN_TIPS])}'] if others else []
        if len(others) > SHOWN_TIPS:
            parts[0] += f' and {len(others) - SHOWN_TIPS} more'
        if last.movable and _FINGER.search(f'{last.name} {last.child}'):
            parts.append(
                f'joint "{last.name}" looks like a gripper\'s, tip_link "{last.parent}" leaves it out'
            )
        if tip == TOOL_FRAME or not parts:
            return None
        return (
            f'tip_link is not given, "{tip}" ({leaves[tip]} movable joints) is taken; {"; ".join(parts)}; '
            'tip_link chooses'
        )

    def joint_values(self, values: Mapping[str, float]) -> dict[str, float]:
        """Return the value [rad or m] of every movable joint, in the order of movable.

        values: by joint name. A mimic joint follows its driver whatever values says of it; a joint
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
        for joint in self._path(link):
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

    def _path(self, link: str) -> list[Joint]:
        """Return the joints from the root to link."""
        path = []
        while link != self.root:
            path.append(self._above[link])
            link = path[-1].parent
        return path[::-1]

    def _frame_between(self, fingers: list[str], leaves: Mapping[str, int]) -> str | None:
        """Return the frame between fingers (the leaves of the longest chains) as default_tip has it."""
        paths = [self._path(finger) for finger in fingers]
        if not all(path[-1].movable for path in paths):
            return None
        hand = paths[0][-1].parent
        if len(paths) > 1:
            shared = [joints[0] for joints in zip(*paths, strict=False) if len(set(joints)) == 1]
            hand = shared[-1].child if shared else self.root
        body = {self.root: self.root}  # by link, the first of the links that are fixed to each other
        for joint in self.joints.values():
            body[joint.child] = body[joint.parent] if joint.type == 'fixed' else joint.child
        frames = [leaf for leaf in leaves if body[leaf] == body[hand]]
        if len(frames) != 1 or leaves[frames[0]] == 0:
            return None
        own = self._independent(self._path(frames[0]))
        return frames[0] if all(self._independent(path) == own + 1 for path in paths) else None

    def _independent(self, path: Sequence[Joint]) -> int:
        return len({self._drivers[joint.name].joint for joint in path if joint.movable})

    def _leaves(self) -> dict[str, int]:
        """Return by leaf link the number of movable joints above it."""
        count = {self.root: 0}
        for joint in self.joints.values():
            count[joint.child] = count[joint.parent] + joint.movable
        parents = {joint.parent for joint in self.joints.values()}
        return {link: number for link, number in count.items() if link not in parents}

    def _leaves_text(self) -> str:
        leaves = self._leaves()
        shown = [f'"{leaf}" ({count})' for leaf, count in leaves.items()][:LISTED_NAMES]
        more = f' and {len(leaves) - len(shown)} more' if len(leaves) > len(shown) else ''
        return ', '.join(shown) + more

    def _check_link(self, link: str, role: str) -> None:
        if link not in self.links:
            raise ChainError(f'{role} "{link}" does not exist; links: {listed(self.links, link)}')

    def _check_joint(self, name: str) -> None:
        if name not in self.joints:
            raise InputError(f'there is no joint "{name}"; joints: {listed(self.joints, name)}')

    def _check_values(self, values: Mapping[str, float]) -> None:
        for name, value in values.items():
            self._check_joint(name)
            if not isinstance(value, (int, float, np.number)) or not math.isfinite(value):
                raise InputError(f'the value of joint "{name}" must be a finite number, got {value!r}')
