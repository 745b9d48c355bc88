# SPDX-License-Identifier: Apache-2.0
"""The default tip link of an arm."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ik_node.errors import ChainError, quoted
from ik_node.model.joint import Joint
from ik_node.model.robot import Robot

TOOL_FRAME = 'tool0'  # the tip of an arm by the convention of ROS-Industrial
MOST_FINGERS = 50  # ends of longest chains that are considered
SHOWN_TIPS = 5  # other links that the note names
MOST_JAW_TRAVEL = 0.1  # [m]
ROLLS = 0.8  # cosine between an axis and the arm before it, from which the joint rolls the tool
SAME_PLACE = 1e-3  # [m] between two joints in one place
_FINGER = re.compile('grip|jaw|finger|claw', re.IGNORECASE)
_MOVING = re.compile('jaw|finger|claw|mov', re.IGNORECASE)  # a part of a gripper, not the gripper as a whole
_WRIST = re.compile('wrist|roll|rot|pitch|yaw|twist|flex|tilt', re.IGNORECASE)
WHOLE_ARM = 5  # joints: fewer do not lose one that moves a link called gripper


class DefaultTip(NamedTuple):
    """The link, and a sentence that lists the alternatives, None if there are none."""

    link: str
    note: str | None


def default_tip(robot: Robot) -> DefaultTip:
    """Return the first of these that exists; mimic joints count as joints.

    1. tool0, if a joint moves it.
    2. The frame between the fingers: every longest chain ends in a link that its last joint moves, and has
       one independent joint more than the only leaf that is fixed to the link where they branch. That leaf.
    3. The link that carries a single jaw, where the longest chain ends with one (see _jaw): a frame that is
       fixed to it and bears the name of a gripper, else the link itself.
    4. The end of the longest chain.
    5. If there are several: the link where they branch into separate joints, if more joints lead to it than
       from it to their ends (it carries the fingers of a gripper, not the arms of a torso).
    Raises ChainError that lists the candidates if none of these exists, or no joint can move.
    """
    if TOOL_FRAME in robot.links and any(joint.movable for joint in robot.path(TOOL_FRAME)):
        return DefaultTip(TOOL_FRAME, None)
    leaves = robot.leaves()
    most = max(leaves.values())
    if most == 0:
        raise ChainError('the robot has no movable joint: every joint is fixed, planar or floating')
    longest = [leaf for leaf, count in leaves.items() if count == most]
    if len(longest) > MOST_FINGERS:
        raise ChainError(_ambiguous(robot, longest))
    paths = [robot.path(leaf) for leaf in longest]
    hand = _hand(robot, paths)
    tip, jaw = _frame_between(robot, paths, hand, leaves), None
    if tip is None and len(longest) == 1:
        tip, jaw = longest[0], _jaw(robot, paths[0])
        if jaw is not None:
            tip = _hand_frame(robot, jaw.parent, leaves)
    if tip is None and _carries_fingers(robot, hand, paths):
        tip = hand
    if tip is None:
        raise ChainError(_ambiguous(robot, longest, f' they branch at {quoted(hand)};'))
    return DefaultTip(tip, _note(robot, tip, leaves, jaw))


def _ambiguous(robot: Robot, longest: Sequence[str], branch: str = '') -> str:
    return (
        f'the longest movable chain has {len(longest)} ends, so tip_link must be given;{branch} '
        f'movable joints by leaf: {robot.leaves_text()}'
    )


def _hand(robot: Robot, paths: Sequence[Sequence[Joint]]) -> str:
    """Return the last link that all paths share, the one before the end where there is only one path."""
    if len(paths) == 1:
        return paths[0][-1].parent
    shared = [joints[0] for joints in zip(*paths, strict=False) if len(set(joints)) == 1]
    return shared[-1].child if shared else robot.root


def _frame_between(
    robot: Robot, paths: Sequence[Sequence[Joint]], hand: str, leaves: Mapping[str, int]
) -> str | None:
    """Return the frame between the fingers at the ends of paths, as in default_tip."""
    if not all(path[-1].movable for path in paths):
        return None
    frames = _frames_on(robot, hand, leaves)
    if len(frames) != 1 or leaves[frames[0]] == 0:
        return None
    own = _independent(robot, robot.path(frames[0]))
    return frames[0] if all(_independent(robot, path) == own + 1 for path in paths) else None


def _frames_on(robot: Robot, hand: str, leaves: Mapping[str, int]) -> list[str]:
    """Return the leaves that are fixed to a link."""
    body = {robot.root: robot.root}  # by link, the first of the links that are fixed to each other
    for joint in robot.joints.values():
        body[joint.child] = body[joint.parent] if joint.type == 'fixed' else joint.child
    return [leaf for leaf in leaves if body[leaf] == body[hand]]


def _jaw(robot: Robot, path: Sequence[Joint]) -> Joint | None:
    """Return the last movable joint of a path if it is the jaw of a gripper and no joint of the arm.

    It bears the name of a gripper and not that of a wrist, the arm has at least two more joints, WHOLE_ARM
    where only a link is called so, and it does not roll the tool: its axis is not along the arm. A prismatic
    one travels at most MOST_JAW_TRAVEL.
    """
    moved = [k for k, joint in enumerate(path) if joint.movable]
    jaw = path[moved[-1]]
    named = _FINGER.search(jaw.name) or _MOVING.search(jaw.child)
    if not (named or _FINGER.search(jaw.child)) or _WRIST.search(jaw.name):
        return None
    if _independent(robot, path[: moved[-1]]) < (2 if named else WHOLE_ARM):
        return None
    if jaw.type == 'prismatic':
        return jaw if jaw.upper - jaw.lower <= MOST_JAW_TRAVEL else None
    pose = np.eye(4)  # of the jaw in a link before it, with the joints between at zero
    for k in range(moved[-1], -1, -1):
        pose = path[k].origin @ pose
        length = float(np.linalg.norm(pose[:3, 3]))
        if length > SAME_PLACE and (k == 0 or path[k - 1].movable):
            along = abs(float(pose[:3, 3] @ pose[:3, :3] @ jaw.axis)) / length
            return jaw if along < ROLLS else None
    return jaw


def _hand_frame(robot: Robot, hand: str, leaves: Mapping[str, int]) -> str:
    """Return the only frame on a link that bears the name of a gripper, else the link."""
    frames = [leaf for leaf in _frames_on(robot, hand, leaves) if _FINGER.search(leaf)]
    return frames[0] if len(frames) == 1 else hand


def _carries_fingers(robot: Robot, hand: str, paths: Sequence[Sequence[Joint]]) -> bool:
    """Whether each path leaves hand by separate joints, fewer than those that lead to hand."""
    first = len(robot.path(hand))
    own = _independent(robot, robot.path(hand))
    beyond = [_independent(robot, path[first:]) for path in paths]
    return min(beyond) > 0 and max(beyond) < own


def _independent(robot: Robot, path: Sequence[Joint]) -> int:
    return len({robot.driver(joint.name).joint for joint in path if joint.movable})


def _note(robot: Robot, tip: str, leaves: Mapping[str, int], jaw: Joint | None) -> str | None:
    """Return the alternatives to tip as a sentence, the links with the most joints first.

    jaw: which the arm leaves out.
    """
    others = sorted(
        (leaf for leaf, count in leaves.items() if count and leaf != tip), key=lambda x: -leaves[x]
    )
    parts = []
    if others:
        more = f' and {len(others) - SHOWN_TIPS} more' if len(others) > SHOWN_TIPS else ''
        first = ', '.join(f'{quoted(leaf)} ({leaves[leaf]})' for leaf in others[:SHOWN_TIPS])
        parts.append(f'other ends: {first}{more}')
    if jaw is not None:
        parts.append(
            f'joint {quoted(jaw.name)} is taken for the jaw of a gripper, so the arm does not use it; '
            f'use tip_link {quoted(jaw.child)} to include it'
        )
    if not parts:
        return None
    count = robot.movable_above()[tip]
    return (
        f'tip_link is not set, using {quoted(tip)} ({count} movable joints); {"; ".join(parts)}; '
        'set tip_link to choose another'
    )
