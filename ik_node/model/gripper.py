# SPDX-License-Identifier: Apache-2.0
"""Gripper: the joints behind an arm that open and close its hand, as one number from 0, closed, to 1, open."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np

from ik_node.errors import InputError, join_names, quoted

from .arm import FINGER, Arm, carries
from .joint import Joint

NONE = 'none'  # the name of the joint of an arm whose gripper is not to be used
LARGEST_SPAN = 1.5 * math.pi  # [rad]: wider limits of a jaw are placeholders
SLACK = 1e-4  # [rad or m] by which a position may be beyond an end: those of files are rounded
APART = 1e-3  # [m] by which fingers must move apart to tell open from closed


@dataclass(frozen=True, eq=False)
class Gripper:
    """joint: that reports its position. ends: by joint that it moves, position when closed and when open [rad or m].

    guessed: nothing but the limits says which end is open, so the upper one is taken.
    """

    joint: Joint
    ends: Mapping[str, tuple[float, float]]
    guessed: bool = False

    def positions(self, opening: float) -> dict[str, float]:
        """Return positions [rad or m] by joint at an opening from 0, closed, to 1, open."""
        return {name: closed + opening * (opened - closed) for name, (closed, opened) in self.ends.items()}

    def opening(self, position: float) -> float:
        """Return the opening at a position of its joint [rad or m]; below 0 or above 1 beyond the ends."""
        closed, opened = self.ends[self.joint.name]
        return (position - closed) / (opened - closed)

    def clipped(self, position: float) -> float:
        """Return a position of its joint [rad or m]; that of an end, if it is beyond by no more than SLACK."""
        low, high = sorted(self.ends[self.joint.name])
        end = min(max(position, low), high)
        return end if abs(end - position) <= SLACK else position

    def describe(self) -> str:
        """Return one sentence for the log."""
        closed, opened = self.ends[self.joint.name]
        unit = 'm' if self.joint.type == 'prismatic' else 'rad'
        guess = '; if that is the wrong way round, set gripper_positions' if self.guessed else ''
        return f'gripper: joint {quoted(self.joint.name)}, closed at {closed:.4g} {unit}, open at {opened:.4g}{guess}'


def gripper_of(arm: Arm, name: str = '', positions: Sequence[float] = (0.0, 0.0)) -> Gripper | None:
    """Return the gripper that an arm carries; None without one, or if nothing says how far it opens.

    name: of its joint; empty: it is found, 'none': it is not to be used. positions: when closed and when open [rad
    or m]; if they are equal, those of the description. Of several joints, the first is taken that others mimic, then
    the first with the name of a gripper, then the first of all. A twin of the same kind on the same link, which
    mimics nothing, moves along. Raises InputError for a name or positions that the arm does not have.
    """
    if name == NONE:
        return None
    carried = [
        joint
        for joint in arm.robot.joints.values()
        if joint.movable and joint.mimic is None and joint.name not in arm.joint_names and carries(arm, joint)
    ]
    if name:
        found = [joint for joint in carried if joint.name == name]
        if not found:
            have = join_names([joint.name for joint in carried], name) if carried else 'none'
            raise InputError(
                f'gripper_joint: the arm carries no joint {quoted(name)} that moves by itself, it has {have}'
            )
    else:
        found = sorted(filter(_bounded, carried), key=lambda joint: _rank(arm, joint))
    closed, opened = (float(position) for position in positions)
    if closed != opened and found:
        joint = found[0]
        for position in (closed, opened):
            if not joint.lower <= position <= joint.upper:
                raise InputError(
                    f'gripper_positions must be within the limits of joint {quoted(joint.name)}, {joint.lower:.4g} to '
                    f'{joint.upper:.4g}, got {position:.4g}'
                )
        return _between(arm, joint, carried, closed, opened)
    if not found or not _bounded(found[0]):
        return None
    return _whole(arm, found[0], carried)


def _whole(arm: Arm, joint: Joint, carried: Sequence[Joint]) -> Gripper:
    """Return the gripper of a joint with limits and of its twin, if it has one."""
    return _oriented(arm, [joint, *(twin for twin in carried if _twins(arm, joint, twin))][:2])


def _between(arm: Arm, joint: Joint, carried: Sequence[Joint], closed: float, opened: float) -> Gripper:
    """Return the gripper of a joint that is closed and open at these positions; its twin moves by the same shares."""
    if not _bounded(joint):
        return Gripper(joint, {joint.name: (closed, opened)})
    whole = _whole(arm, joint, carried)
    first, last = whole.positions(whole.opening(closed)), whole.positions(whole.opening(opened))
    return Gripper(joint, {name: (first[name], last[name]) for name in whole.ends} | {joint.name: (closed, opened)})


def _bounded(joint: Joint) -> bool:
    """Whether the limits of a joint say how far it opens."""
    span = joint.upper - joint.lower
    return 0.0 < span < (math.inf if joint.type == 'prismatic' else LARGEST_SPAN)


def _followers(arm: Arm, joint: Joint) -> list[str]:
    """Return the links that a joint moves, itself or by joints that mimic it, and that move none further."""
    robot = arm.robot
    moved = [one.child for one in robot.joints.values() if one.movable and robot.driver(one.name).joint == joint.name]
    inner = {one.parent for child in moved for one in robot.path(child)}
    return [link for link in moved if link not in inner]


def _rank(arm: Arm, joint: Joint) -> tuple[bool, bool]:
    mimicked = any(other.mimic is not None and other.mimic.joint == joint.name for other in arm.robot.joints.values())
    return not mimicked, not (FINGER.search(joint.name) or FINGER.search(joint.child))


def _twins(arm: Arm, joint: Joint, other: Joint) -> bool:
    """Whether another joint is the second finger: of the same kind and span on the same link, and both drive none."""
    alike = other is not joint and (other.type, other.parent) == (joint.type, joint.parent) and _bounded(other)
    spans = [one.upper - one.lower for one in (joint, other)]
    return alike and math.isclose(*spans, rel_tol=1e-3) and all(_rank(arm, one)[0] for one in (joint, other))


def _oriented(arm: Arm, joints: Sequence[Joint]) -> Gripper:
    """Return the gripper of one or two joints: it is open where the links that they move are farthest apart."""
    links = [link for joint in joints for link in _followers(arm, joint)]

    def apart(values: Sequence[float]) -> float:
        poses = arm.robot.link_poses({joint.name: value for joint, value in zip(joints, values, strict=True)})
        return max(
            (float(np.linalg.norm((poses[a] - poses[b])[:3, 3])) for a, b in combinations(links, 2)), default=0.0
        )

    upper = [joint.upper for joint in joints]
    ends = sorted(product(*((joint.upper, joint.lower) for joint in joints)), key=apart)  # stable
    guessed = apart(ends[-1]) < apart(ends[0]) + APART
    opened = upper if guessed else list(ends[-1])
    closed = [joint.lower if value == joint.upper else joint.upper for joint, value in zip(joints, opened, strict=True)]
    pairs = zip(closed, opened, strict=True)
    return Gripper(joints[0], {joint.name: pair for joint, pair in zip(joints, pairs, strict=True)}, guessed)
