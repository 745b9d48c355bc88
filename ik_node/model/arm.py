# SPDX-License-Identifier: Apache-2.0
"""Arm: one chain of a robot with a tool at its end, as frozen arrays; its default tip and its zero pose."""

from __future__ import annotations

import math
import os
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ik_node import kernels
from ik_node.checks import Array, read_axis, real_array, unit_vector, vector3, whole
from ik_node.errors import ChainError, InputError, escaped, quoted, safe_repr, titled
from ik_node.kernels import arrays
from ik_node.model.ball import nothing_left
from ik_node.model.plausibility import (
    Span,
    doubtful_lengths,
    doubtful_limits,
    given_outside,
    goal_too_far,
    spans_of,
)
from ik_node.model.robot import Robot
from ik_node.model.urdf.reader import read_file, read_urdf
from ik_node.share import robot_file

from .joint import Joint


def zero_pose(
    chain: Sequence[Joint],
    drivers: Mapping[str, tuple[str, float, float]],
    joint_names: Sequence[str],
    tool_point: Array,
    tool_axes: Array,
) -> tuple[Array, Array]:
    """Return the arrays (joints, tool) of kernels/arrays.py for a chain, base to tip.

    drivers: the joint that moves each movable one, with ratio and shift; joint_names: those joints, in order.
    tool_point (3,) [m], tool_axes (3, 2), main and lateral axis: in the last link's frame.
    """
    pose = np.eye(4)
    rows: list[Array] = []
    last: Array = np.zeros(3)
    for joint in chain:
        pose = pose @ joint.origin
        if joint.type == 'fixed':
            continue
        driver, ratio, shift = drivers[joint.name]
        row = np.empty(arrays.SHIFT + 1)
        row[arrays.AXIS] = pose[:3, :3] @ joint.axis
        row[arrays.OFFSET] = pose[:3, 3] - last
        row[arrays.PRISMATIC] = joint.type == 'prismatic'
        row[arrays.VARIABLE] = joint_names.index(driver)
        row[arrays.RATIO], row[arrays.SHIFT] = ratio, shift
        rows.append(row)
        last = pose[:3, 3]
    point = pose[:3, :3] @ tool_point + pose[:3, 3] - last
    turned = pose[:3, :3] @ tool_axes
    return np.array(rows), np.concatenate([point, turned[:, 0], turned[:, 1]])


TOOL_FRAME = 'tool0'  # the tip of an arm by the convention of ROS-Industrial
MAX_FINGERS = 50  # ends of longest chains that are considered
SHOWN_TIPS = 5  # other links that the note names
MAX_JAW_TRAVEL = 0.1  # [m]
ROLLS = 0.8  # cosine between an axis and the arm before it, from which the joint rolls the tool
SAME_PLACE = 1e-3  # [m] between two joints in one place
FINGER = re.compile('grip|jaw|finger|claw', re.IGNORECASE)
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
    if len(longest) > MAX_FINGERS:
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


def _frame_between(robot: Robot, paths: Sequence[Sequence[Joint]], hand: str, leaves: Mapping[str, int]) -> str | None:
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
    one travels at most MAX_JAW_TRAVEL.
    """
    moved = [k for k, joint in enumerate(path) if joint.movable]
    jaw = path[moved[-1]]
    named = FINGER.search(jaw.name) or _MOVING.search(jaw.child)
    if not (named or FINGER.search(jaw.child)) or _WRIST.search(jaw.name):
        return None
    if _independent(robot, path[: moved[-1]]) < (2 if named else WHOLE_ARM):
        return None
    if jaw.type == 'prismatic':
        return jaw if jaw.upper - jaw.lower <= MAX_JAW_TRAVEL else None
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
    frames = [leaf for leaf in _frames_on(robot, hand, leaves) if FINGER.search(leaf)]
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
    others = sorted((leaf for leaf, count in leaves.items() if count and leaf != tip), key=lambda x: -leaves[x])
    parts = []
    if others:
        more = f' and {len(others) - SHOWN_TIPS} more' if len(others) > SHOWN_TIPS else ''
        first = ', '.join(f'{quoted(leaf)} ({leaves[leaf]})' for leaf in others[:SHOWN_TIPS])
        parts.append(f'other ends: {first}{more}')
    if jaw is not None:
        parts.append(
            f'joint {quoted(jaw.name)} looks like the jaw of a gripper, so the arm does not use it; '
            f'set tip_link to {quoted(jaw.child)} to include it'
        )
    if not parts:
        return None
    count = robot.movable_above()[tip]
    return (
        f'tip_link is not set, using {quoted(tip)} ({count} movable joints); {"; ".join(parts)}; '
        'set tip_link to choose another'
    )


RANK_TOLERANCE = 1e-6  # singular values below this share of the largest count as zero


def random_jacobians(jacobian: Callable[[Array], Array], prismatic: NDArray[np.bool_], reach: float) -> list[Array]:
    """Return Jacobians (6, n) at random configurations, lengths as shares of the reach [m]."""
    rng = np.random.default_rng(0)
    scale = np.array([1 / reach, 1 / reach, 1 / reach, 1.0, 1.0, 1.0])[:, None]
    span = np.where(prismatic, reach, 1.0)
    configurations = rng.uniform(-np.pi, np.pi, (16, prismatic.size)) * span
    return [jacobian(q) * scale * span for q in configurations]


def generic_rank(jacobians: Sequence[Array]) -> int:
    """Return the largest rank of these Jacobians."""
    ranks = []
    for jacobian in jacobians:
        values = np.linalg.svd(jacobian, compute_uv=False)
        ranks.append(int((values > RANK_TOLERANCE * values[0]).sum()))
    return max(ranks)


def median_condition(jacobians: Sequence[Array], reach: float) -> float:
    """Return the median condition number of Jacobians (6, n) of rank 5, positions as shares of reach [m]."""
    scale = np.repeat([1.0 / reach, 1.0], 3)[:, None]
    values = [np.linalg.svd(scale * jacobian, compute_uv=False) for jacobian in jacobians]
    return float(1.0 / np.median([value[4] / value[0] for value in values]))


def describe_dof(effective: int, practical: int, condition: float) -> str:
    """Return effective DoF as text, with their meaning for goals."""
    count = f'{effective} effective DoF'
    if effective < 4:
        return f'at most positions the tool can point in one direction only, so use goals without a direction ({count})'
    if practical < effective:
        count = f'{count}, in practice 4: condition number {condition:.0f}'
    if practical == 4:
        return f'at one position the tool can point in few directions; for others the closest one is used ({count})'
    return f'at one position the tool can point in many directions, but not in all ({count})'


def least_singular_values(jacobians: Array, reach: float, rank: int) -> Array:
    """Return the rank-th largest singular values (N,) of Jacobians (N, 6, n), lengths in reaches of the arm.

    reach [m]. rank: the effective degrees of freedom, so that 0 means a singular configuration.
    """
    scale = np.repeat([max(reach, 1e-3), 1.0], 3)[:, None]
    values: Array = np.linalg.svd(jacobians / scale, compute_uv=False)[:, rank - 1]
    return values


MAX_JOINTS = 64  # movable joints of a chain: its Jacobians grow with the square
MAX_SAMPLES = 10**7  # configurations drawn at once: more would fill the memory
CONDITION_SAMPLES = 200  # configurations
MAX_CONDITION = 100.0  # real arms with a fifth DoF from a small offset have 170 to 1000, others up to 56
CONTINUOUS_SPAN = np.pi  # a continuous joint is sampled from -pi to pi


class Arm:
    """The joints from base link to tip link and a tool fixed to the tip.

    joint_names (n names), lower, upper (n,) [rad or m], infinite for continuous joints,
    velocity (n,) [rad/s or m/s], continuous and prismatic (n,) bool,
    tool_axis, tool_point, tool_lateral (3,) in the tip link's frame; tool_lateral is a unit axis
    perpendicular to tool_axis. A joint that mimics another is not a variable of the arm.
    warnings: those of the robot, questions about its units, and the candidates for a tip_link not given.
    balls: the ball joints of the robot whose joints the arm has; those with limits have rows in limits.
    joints, tool, limits, period: see kernels/arrays.py. All arrays are read-only.
    """

    def __init__(
        self,
        robot: Robot,
        tip_link: str | None = None,
        tool_axis: ArrayLike | str | None = None,
        tool_point: ArrayLike = (0.0, 0.0, 0.0),
        base_link: str | None = None,
    ) -> None:
        """Build from a robot read by read_urdf.

        tip_link: default as in default_tip. base_link: default the root. tool_axis: of any length, or a name such as
        'x' or '-z'; None: z, with a Python warning unless the tip link is tool0, whose z axis is the approach axis
        by convention (ROS-Industrial). Raises UrdfError for links or joints
        that do not form an arm, or more than MAX_JOINTS joints, InputError for arguments of a wrong type, a
        tool_axis that is not of unit length and a tool_point that is not finite or beyond LARGEST.
        """
        if not isinstance(robot, Robot):
            raise InputError(f'robot must be a Robot, as read_urdf returns it, got {safe_repr(robot)}')
        self.robot = robot
        self.name = robot.name
        self.base_link = robot.root if base_link is None else base_link
        self.tip_link, note = default_tip(robot) if tip_link is None else (tip_link, None)
        guessed, tool_axis = tool_axis is None, 'z' if tool_axis is None else tool_axis
        axis = read_axis('tool_axis', tool_axis, '(0, 0.6, 0.8)') if isinstance(tool_axis, str) else tool_axis
        self.tool_axis = frozen(unit_vector('tool_axis', axis))
        self.tool_point = frozen(vector3('tool_point', tool_point))
        self.tool_lateral = frozen(_lateral_of(self.tool_axis))
        chain = robot.chain(self.tip_link, self.base_link)
        if guessed and self.tip_link != 'tool0':
            where = f'the z axis of link {quoted(self.tip_link)} is taken as the direction of the tool'
            warnings.warn(f"{where}; if it is another one, say so: tool_axis='x'", stacklevel=2)
        drivers = {joint.name: robot.driver(joint.name) for joint in chain if joint.type != 'fixed'}
        if len(drivers) > MAX_JOINTS:
            raise ChainError(
                f'{len(drivers)} movable joints are between base_link {quoted(self.base_link)} and tip_link '
                f'{quoted(self.tip_link)}, an arm may have at most {MAX_JOINTS}; choose closer links'
            )
        self.joint_names = tuple(dict.fromkeys(driver for driver, _, _ in drivers.values()))
        variables = [robot.joints[name] for name in self.joint_names]
        self.n = len(variables)
        self.prismatic = frozen(np.array([joint.type == 'prismatic' for joint in variables]))
        self.continuous = frozen(np.array([joint.type == 'continuous' for joint in variables]))
        self.lower = frozen(np.array([joint.lower for joint in variables]))
        self.upper = frozen(np.array([joint.upper for joint in variables]))
        self.velocity = frozen(np.array([joint.velocity for joint in variables]))
        axes = np.column_stack([self.tool_axis, self.tool_lateral])
        self.joints, self.tool = map(frozen, zero_pose(chain, drivers, self.joint_names, self.tool_point, axes))
        doubts = doubtful_limits(self.spans) + doubtful_lengths(self._lengths(list(drivers)))
        self.warnings = (*robot.warnings, *doubts, *((note,) if note else ()))
        self.balls = tuple(ball for ball in robot.balls if set(ball.joints) <= set(self.joint_names))
        self.limits = frozen(np.vstack([self.lower, self.upper, *self._ball_rows(chain)]))
        ratios = self.joints[:, arrays.RATIO]
        odd = set(self.joints[ratios != np.round(ratios), arrays.VARIABLE].astype(int))
        self.period = frozen(np.array([0.0 if self.prismatic[i] or i in odd else 2 * np.pi for i in range(self.n)]))

    @classmethod
    def from_urdf(cls, xml_text: str, tip_link: str | None = None, **tool: Any) -> Arm:
        """Read URDF text; further arguments as for Arm."""
        return cls(read_urdf(xml_text), tip_link, **tool)

    @classmethod
    def from_file(
        cls,
        path: str | os.PathLike[str],
        tip_link: str | None = None,
        *,
        xacro_args: Mapping[str, object] | str | None = None,
        **tool: Any,
    ) -> Arm:
        """Read a .urdf or .xacro file, or a shipped robot by its name.

        xacro_args: such as {'dof': 5} or 'dof:=5'; further ones as for Arm.
        """
        named = isinstance(path, str) and path.isidentifier() and not Path(path).exists()
        given = robot_file(str(path)) if named else path
        return cls(read_file(given, xacro_args), tip_link, **tool)

    def __repr__(self) -> str:
        axis = ', '.join(f'{value:g}' for value in self.tool_axis)
        return f'<Arm {self.name}: {self.n} joints from {self.base_link} to {self.tip_link}, tool axis ({axis})>'

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore a copied or unpickled state: numpy does not keep the read-only flag."""
        self.__dict__.update(state)
        for value in state.values():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False

    def _ball_rows(self, chain: Sequence[Joint]) -> list[Array]:
        """Return three rows (n,) of limits for each declared ball. Raises ChainError for one without room."""
        rows = []
        names = [joint.name for joint in chain if joint.type != 'fixed']
        for ball in self.balls:
            if not ball.declared:
                continue
            why = nothing_left(ball, self.robot.joints)
            if why is not None:
                raise ChainError(why)
            block = np.zeros((kernels.BALL_ROWS, self.n))
            first = self.joint_names.index(ball.joints[0])
            block[0, :3] = names.index(ball.joints[0]), first, float(ball.order)
            block[1, :2] = ball.hand, ball.swing
            block[2, :2] = ball.twist
            rows.append(block)
        return rows

    @property
    def spans(self) -> list[Span]:
        """The limits of the joints."""
        return spans_of(self.joint_names, self.lower, self.upper, self.velocity, self.prismatic)

    def doubt(self, q: ArrayLike, name: str = 'q') -> str:
        """Return a question about joint positions (n,) that a user gave, '' if they may be meant.

        Raises InputError unless q is n finite numbers.
        """
        values = zip(self.spans, self.checked(q, name).tolist(), strict=True)
        return next((why for span, value in values if (why := given_outside(span, value))), '')

    def too_far(self, position: ArrayLike) -> str:
        """Return a question about a goal (3,) [m] many reaches away, '' if it may be meant.

        Raises InputError unless position is three numbers up to LARGEST.
        """
        away = vector3('position', position) - self.joints[0, arrays.OFFSET]
        return goal_too_far(math.hypot(*away.tolist()), self.reach)

    def _lengths(self, names: Sequence[str]) -> dict[str, float]:
        """Return the length [m] of each link after the first joint, by its end; names: of all joints."""
        offsets = [*self.joints[1:, arrays.OFFSET], self.tool[:3]]
        ends = [*(f'joint {quoted(name)}' for name in names[1:]), 'the tool point']
        return {end: float(np.linalg.norm(offset)) for end, offset in zip(ends, offsets, strict=True)}

    @cached_property
    def is_plain(self) -> bool:
        """Whether each joint of the chain is a variable of its own: none mimics another."""
        drives = self.joints[:, arrays.VARIABLE : arrays.SHIFT + 1]
        return np.array_equal(drives, [(variable, 1.0, 0.0) for variable in range(self.n)])

    @cached_property
    def has_cones(self) -> bool:
        """Whether a ball joint has limits of its own."""
        return any(ball.limited for ball in self.balls)

    @cached_property
    def middle(self) -> Array:
        """Mid-range configuration (n,); 0 for a continuous joint."""
        middle = np.where(self.continuous, 0.0, (self._finite[0] + self._finite[1]) / 2)
        if self.has_cones:
            kernels.clip(middle, self.limits)
        return frozen(middle)

    @cached_property
    def _finite(self) -> Array:
        """Limits (2, n) with one turn instead of infinite ones."""
        return np.where(self.continuous, [[-CONTINUOUS_SPAN], [CONTINUOUS_SPAN]], [self.lower, self.upper])

    @cached_property
    def reach(self) -> float:
        """Upper bound [m] of the distance from the first joint to the tool point, for all joint positions."""
        offsets = np.linalg.norm(self.joints[1:, arrays.OFFSET], axis=1).sum() + np.linalg.norm(self.tool[:3])
        row = self.joints[self.joints[:, arrays.PRISMATIC] != 0]
        driver = row[:, arrays.VARIABLE].astype(int)
        ends = row[:, arrays.RATIO] * self.limits[:2, driver] + row[:, arrays.SHIFT]
        return float(offsets + np.abs(ends).max(axis=0).sum()) if len(row) else float(offsets)

    def sample(self, rng: np.random.Generator, count: int) -> Array:
        """Return configurations (count, n), uniform within the limits, those of balls too.

        Raises InputError.
        """
        if not isinstance(rng, np.random.Generator):
            raise InputError(f'rng must be a numpy.random.Generator, got {safe_repr(rng)}')
        count = whole('count', count, 0, MAX_SAMPLES)
        rows = rng.uniform(self._finite[0], self._finite[1], (count, self.n))
        outside = [k for k in range(count) if self.has_cones and self.ball_excess(rows[k]) > 0.0]
        while outside:
            rows[outside] = rng.uniform(self._finite[0], self._finite[1], (len(outside), self.n))
            outside = [k for k in outside if self.ball_excess(rows[k]) > 0.0]
        return rows

    def ball_excess(self, q: Array) -> float:
        """Return by how much [rad] q (n,) exceeds cone or twist limits of any ball joint, 0 inside all."""
        return float(kernels.excess_of_balls(self.checked(q), self.limits))

    def checked(self, q: ArrayLike, name: str = 'q') -> Array:
        """Return q as a new array (n,). Raises InputError unless it is n finite numbers."""
        return joint_array(name, q, self.joint_names)

    def frames(self, q: ArrayLike) -> Array:
        """Return the kernels' frames (2 m + 3, 3) at q (n,) in the base link's frame."""
        out = np.empty((2 * len(self.joints) + 3, 3))
        kernels.forward(self.joints, self.tool, self.checked(q), out)
        return out

    def fk(self, q: ArrayLike) -> tuple[Array, Array]:
        """Forward kinematics: (tool point (3,) [m], tool axis (3,) unit) in the base link's frame.

        Raises InputError unless q is n finite numbers.
        """
        frames = self.frames(q)
        return frames[-3], frames[-2]

    def skeleton(self, q: ArrayLike) -> Array:
        """Return the positions (m + 1, 3) [m] of the chain's joints and the tool point in the base frame."""
        count = len(self.joints)
        return self.frames(q)[count : 2 * count + 1]

    def link_in_base(self, link: str, values: Mapping[str, float]) -> Array:
        """Return T_base_link (4, 4) of any link of the robot, at joint values as for Robot.link_pose."""
        T_root_base, T_root_link = (self.robot.link_pose(name, values) for name in (self.base_link, link))
        return np.asarray(np.linalg.solve(T_root_base, T_root_link), dtype=np.float64)

    def jacobian(self, q: ArrayLike) -> Array:
        """Return (6, n): rows 0-2 d(tool point)/dq [m/rad or 1], rows 3-5 d(tool axis)/dq [1/rad or 1/m]."""
        out = np.empty((self.n, 6))
        kernels.jacobian(self.joints, self.frames(q), out)
        return out.T

    @property
    def _random_jacobians(self) -> list[Array]:
        return random_jacobians(self.jacobian, self.prismatic, max(self.reach, 1e-9))

    @cached_property
    def effective_dof(self) -> int:
        """Generic rank of the Jacobian of (tool point, tool axis): at most 5."""
        return generic_rank(self._random_jacobians)

    @cached_property
    def position_dof(self) -> int:
        """Generic rank of the Jacobian of the tool point alone: at most 3."""
        return generic_rank([jacobian[:3] for jacobian in self._random_jacobians])

    @cached_property
    def idle(self) -> NDArray[np.bool_]:
        """Which joints (n,) move neither tool point nor tool axis, in any configuration."""
        columns = np.abs(self._random_jacobians).max(axis=(0, 1))
        return frozen(columns <= RANK_TOLERANCE)

    @cached_property
    def turning_period(self) -> Array:
        """Period (n,) as in the kernels, 0 for idle joints too: their turns are one self-motion."""
        return frozen(np.where(self.idle, 0.0, self.period))

    @cached_property
    def condition(self) -> float:
        """Median condition number of the task (tool point, tool axis), infinite below 5 effective DoF.

        Positions count as shares of the reach.
        """
        if self.effective_dof < 5:
            return math.inf
        samples = self.sample(np.random.default_rng(0), CONDITION_SAMPLES)
        return median_condition([self.jacobian(q) for q in samples], self.reach)

    @property
    def practical_dof(self) -> int:
        """The effective DoF, but 4 if the fifth comes from a small offset of the tool only."""
        return 4 if self.effective_dof >= 5 and self.condition > MAX_CONDITION else self.effective_dof

    @property
    def freedom(self) -> str:
        """Effective DoF as text, with their meaning for goals."""
        return describe_dof(self.effective_dof, self.practical_dof, self.condition)

    def with_robot(self, robot: Robot) -> Arm:
        """Return the arm with the same links and tool in another robot, for example one with other limits."""
        return Arm(robot, self.tip_link, self.tool_axis, self.tool_point, self.base_link)

    def describe(self) -> str:
        """Return one sentence on what this arm can do with this tool."""
        text = f'{self.name}: {self.n} joints from {self.base_link} to {self.tip_link}; {self.freedom}'
        return '; '.join([text, *(ball.describe() for ball in self.balls)])


def tool_at(arm: Arm, T: Array) -> tuple[Array, Array]:
    """Return tool point (3,) [m] and tool axis (3,) in the frame in which the tip has pose T (4, 4)."""
    return T[:3, :3] @ arm.tool_point + T[:3, 3], T[:3, :3] @ arm.tool_axis


def carries(arm: Arm, joint: Joint) -> bool:
    """Whether a joint is behind the last joint of an arm."""
    return any(before.name == arm.joint_names[-1] for before in arm.robot.path(joint.child))


def joint_array(name: str, q: ArrayLike, joint_names: Sequence[str]) -> Array:
    """Return q as a new array (n,), one finite number per joint. Raises InputError for anything else."""
    count = len(joint_names)
    values = np.empty(count)
    if kernels.read_finite(q, values):
        return values
    try:
        values = real_array(q)
    except (TypeError, ValueError, OverflowError):
        values = np.empty(0)
    # A sum is finite only if every entry is, at a tenth of the cost of isfinite().all().
    if values.shape != (count,) or not math.isfinite(sum(values.tolist())):
        joints = ', '.join(map(escaped, joint_names))
        given = f'{values.size} numbers: ' if values.ndim == 1 and 0 < values.size != count else ''
        raise InputError(f'{titled(name)} must be {count} finite numbers ({joints}), got {given}{safe_repr(q)}')
    return values


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    array = np.ascontiguousarray(array)
    array.flags.writeable = False
    return array


def _lateral_of(axis: Array) -> Array:
    """Return the axis after the main one (z -> x, x -> y, y -> z), made perpendicular to axis."""
    following = np.eye(3)[(int(np.abs(axis).argmax()) + 1) % 3]
    lateral = following - axis * (axis @ following)
    return lateral / float(np.linalg.norm(lateral))
