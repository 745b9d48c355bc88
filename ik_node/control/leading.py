# SPDX-License-Identifier: Apache-2.0
"""Leader: an arm that a hand moves leads another one, the follower. It does not use ROS.

An arm of the same geometry leads joint by joint, once both stand alike. Any other one leads the tool: the follower
repeats the motion of the leader's tool from where both were when the operator began. Times are seconds of one clock.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ik_node.checks import Array
from ik_node.errors import InputError, join_names, quoted
from ik_node.model.arm import Arm
from ik_node.model.gripper import Gripper, gripper_of
from ik_node.model.robot import JointSet
from ik_node.settings import check, parameter

from .feedback import Feedback
from .teleop import PoseSmoother, rotation_about

LATE = 0.2  # [s] without a complete message after which the leader is silent; also how old one may be
RECENT = 0.05  # [s] for which a joint that a message lacks is where it was: a servo may miss a cycle
CLOCKS = 5.0  # [s] of age beyond which the clocks differ
LEAP, FASTEST = 0.1, 6.0  # [rad or m], [1/s]: a hand does not move a joint farther from one message to the next
HELD = 1.0  # [s] for which both must stand alike before the leader begins
BLEND = 1.0  # [s] within which the difference at the beginning vanishes
LEASH = 0.5  # [rad or m] by which a goal may be ahead of the follower
TOLD = 1.0  # [s] for which the reason of an end is told
DIGITS = 6  # of goals: a leader at rest repeats them exactly
PICKED, GRIPPED = 0.1, 0.01  # of the stroke: the grippers agree, and by which an opening differs from the last one
POSTURES = 8  # at which two geometries are compared
ALIKE = 0.05  # share of the reach by which joints of the same geometry may be elsewhere
TILT = 0.15  # [rad] by which their axes may point elsewhere
TURN = 2.0 * math.pi
TOPIC = 'leader/joint_states'


@dataclass(frozen=True)
class LeaderSettings:
    """The parameters of ik_leader, all read at start-up."""

    leader_description: str = parameter(
        '', 'description of the leader, a .urdf or .xacro file. Empty: that of the follower', read_only=True
    )
    leader_xacro_args: str = parameter('', "arguments of a .xacro file, such as 'dof:=5 gripper:=true'", read_only=True)
    leader_tip_link: str = parameter(
        '', 'link that carries the tool of the leader. Empty: as for ik_node', read_only=True
    )
    leader_joints: tuple[str, ...] = parameter(
        ('',),
        "joints that the messages of the leader name otherwise than its description, such as 'pan=shoulder_pan'",
        read_only=True,
    )
    tool: str = parameter('', 'name of the tool that follows, where there are several', read_only=True)
    agreement: float = parameter(
        0.1,
        'how far a joint of the leader may be from that of the follower when it begins [rad or m]',
        low=1e-3,
        high=0.5,
        read_only=True,
    )
    scale: float = parameter(
        1.0, 'way of the tool that follows for the way of a leader of another make', low=0.01, high=10.0, read_only=True
    )
    yaw: float = parameter(
        0.0,
        'rotation about the vertical from the base of a leader of another make to that of the follower [rad]',
        low=-TURN,
        high=TURN,
        read_only=True,
    )

    def __post_init__(self) -> None:
        check(self)
        self.renamed()

    def renamed(self) -> dict[str, str]:
        """Return the joints of the description by their names in messages. Raises InputError."""
        pairs = [one.split('=') for one in self.leader_joints if one]
        if any(len(pair) != 2 or not all(pair) for pair in pairs):
            raise InputError(
                "parameter leader_joints must be a list of pairs such as 'pan=shoulder_pan', got "
                f'{list(self.leader_joints)}'
            )
        return dict(pairs)


def difference(one: Arm, other: Arm) -> str:
    """Return why joint positions of one arm do not put another into the same shape; '' if they do.

    Joints and their axes are laid onto each other at the same positions, by a rotation (Kabsch 1976), so that another
    zero or another sense of rotation is another geometry. Frames of bases and what the arms carry do not matter.
    """
    if sorted(one.joint_names) != sorted(other.joint_names) or len(one.joints) != len(other.joints):
        return f'its joints are {join_names(one.joint_names)}, those of the follower {join_names(other.joint_names)}'
    order, m = [other.joint_names.index(name) for name in one.joint_names], len(one.joints)
    for q in other.sample(np.random.default_rng(0), POSTURES):
        rows, others = (
            np.vstack([frames[:m], (frames[m : 2 * m] - frames[m]) / other.reach])
            for frames in (one.frames(q[order]), other.frames(q))
        )
        U, _, V = np.linalg.svd(rows.T @ others)
        U[:, 2] *= np.linalg.det(U @ V)  # else it may be a reflection, which lays mirrored arms onto each other
        off = np.linalg.norm(rows @ U @ V - others, axis=1)
        if off[m:].max() > ALIKE:
            return 'its links or the zeros of its joints differ from those of the follower'
        if off[:m].max() > TILT:
            return 'its axes or the zeros of its joints differ from those of the follower'
    return ''


class Leader:
    """Decides when the follower follows, and where to. Not thread-safe.

    by_joints: joint by joint, else by its tool, for the reason `unlike`. wanted: the operator wants the follower to
    follow. By joints it is so from the beginning; else that is the clutch, which does not wait: it opens if anything is
    in the way. following: it does. condition: a sentence on that. far: by joint, by how much the leader must turn
    [rad or m] before it begins.
    """

    def __init__(
        self, settings: LeaderSettings, follower: Arm, gripper: Gripper | None = None, leader: Arm | None = None
    ) -> None:
        """gripper: of the follower. leader: None for the same arm as the follower."""
        self.follower, self.arm, self._settings = follower, leader or follower, settings
        self._gripper, self._own_gripper = gripper, gripper if leader is None else gripper_of(leader)
        self._grip = math.nan  # the last opening, NaN before the grippers have agreed
        self._target = math.nan  # the opening that the follower was last asked for
        self.unlike = difference(self.arm, follower)
        self.by_joints = self.wanted = not self.unlike
        self.following, self.condition = False, ''
        self.far: dict[str, float] = {}
        self._renamed = settings.renamed()
        self._feedback = Feedback()
        self._feedback.judge(JointSet(self.arm.robot))
        self._feedback.topic = TOPIC
        self._order = [self.arm.joint_names.index(name) for name in follower.joint_names] if self.by_joints else []
        self._smoother = PoseSmoother()
        self._positions: dict[str, float] = {}  # of all joints of the leader, the newest
        self._received = self._measured = -math.inf  # the last complete message: when it came, and was measured
        self._came: dict[str, float] = {}  # when each joint was measured last
        self._missing = self._leap = ''  # why messages do not count, and what was wrong with the motion
        self._since = math.inf  # since when both have stood alike
        self._offset, self._began = np.zeros(follower.n), -math.inf
        self._told = -math.inf  # until when the reason of the end is told
        self._yaw = rotation_about(np.array([0.0, 0.0, settings.yaw]))

    def take(self, positions: Mapping[str, float], received: float, stamp: float | None) -> bool:
        """Take finite positions by joint in a message that was received at a time; return whether it leads.

        stamp: when they were measured, None if unknown.
        """
        positions = {self._renamed.get(name, name): position for name, position in positions.items()}
        time = received if stamp is None else stamp
        if abs(received - time) > LATE:
            self._missing = f'its messages are {abs(received - time):.2g} s {"old" if time < received else "early"}'
            self._missing += ', the clocks of the two computers differ' if abs(received - time) > CLOCKS else ''
            return False
        newest = self._feedback.take(positions, min(time, received), received)
        self._came |= dict.fromkeys(newest, received)
        missing = [name for name in self.arm.joint_names if received - self._came.get(name, -math.inf) > RECENT]
        if missing:
            self._missing = f'its messages lack {join_names(missing)}' + self._feedback.missing(missing)
            if not self._positions:
                self._missing += ', or set leader_joints'
            return False
        if newest.keys().isdisjoint(self.arm.joint_names):  # a copy, one that was overtaken, or of a gripper alone
            return False
        present = {name: self._feedback.position(name) or 0.0 for name in self.arm.joint_names}
        self._missing = ''
        room = LEAP + FASTEST * (received - self._received)
        far = (name for name, old in self._positions.items() if abs(self._turned(name, present[name] - old)) > room)
        if name := next(far, ''):
            self._leap = (
                f'joint {quoted(name)} of the leader leaps from {self._positions[name]:.3g} to {present[name]:.3g}'
            )
        self._positions, self._received, self._measured = present, received, min(time, received)
        self._smoother.add(np.array(list(present.values())), received, stamp)
        return self.following and not self._leap

    def _turned(self, name: str, way: float) -> float:
        """Return a way of a joint without whole turns, which a joint without limits may have."""
        endless = self.arm.continuous[self.arm.joint_names.index(name)]
        return way - TURN * round(way / TURN) if endless else way

    def _silence(self, now: float) -> str:
        if self._feedback.advance(now):
            self._came.clear()
            self._received = self._measured = self._told = -math.inf
            return 'the clock was set back'
        doubt, self._leap = self._feedback.doubt(self.arm.joint_names) or self._leap, ''
        if doubt:
            return doubt
        if self._measured == -math.inf:
            return f'the leader: {self._missing}' if self._missing else 'no message of the leader has arrived'
        age = now - self._measured
        if age > LATE:
            return f'the leader: {self._missing}' if self._missing else 'the leader is silent: is its cable plugged in?'
        return ''

    def lead(self, wanted: bool) -> None:
        """Set whether the operator wants the follower to follow; it begins or ends with the next look."""
        self.wanted = wanted
        if wanted:  # a new grip does not wait
            self._told = -math.inf

    def look(self, now: float, follower: Mapping[str, float], hindrance: str) -> bool:
        """Begin or end; return whether it has ended, so that the follower must be braked.

        follower: positions by joint. hindrance: why it must not follow, '' if nothing is in the way.
        """
        silence = self._silence(now)
        if self.following:
            if why := hindrance or silence:
                self.end(why, now)
            return not self.following
        self.far.clear()
        if now < self._told:
            return False
        why = hindrance or silence or self._disagreement(follower)
        if why:
            self.condition, self._since = why, math.inf
            self.wanted &= self.by_joints
            return False
        self._since = min(self._since, now)
        if self.by_joints and now - self._since < HELD:
            self.condition = 'leader and follower stand alike: hold the leader still'
            return False
        self.following, self._began = True, now
        self._grip = math.nan
        self._offset = self._apart(follower) if self.by_joints else self._offset
        self.condition = 'the follower follows the leader'
        return False

    def end(self, why: str, now: float) -> None:
        """End; the follower follows again once both agree again."""
        self.condition, self._told = f'the follower no longer follows: {why}', now + TOLD
        self.following, self._since = False, math.inf
        self.wanted &= self.by_joints

    def _apart(self, follower: Mapping[str, float]) -> Array:
        """Return by how much the leader must turn (n,) to stand like the follower."""
        leader = np.array([self._positions[name] for name in self.arm.joint_names])[self._order]
        apart = np.array([follower[name] for name in self.follower.joint_names]) - leader
        return apart - self._turns(apart)

    def _turns(self, ways: Array) -> Array:
        """Return the whole turns in ways (n,) of the joints of the follower that have no limits."""
        return np.where(self.follower.continuous, TURN * np.round(ways / TURN), 0.0)

    def _disagreement(self, follower: Mapping[str, float]) -> str:
        if not self.wanted:
            return f'{"the leader waits" if self.by_joints else "the clutch is open"}: call ~/lead with true to begin'
        if not self.by_joints:
            return ''
        if not follower.keys() >= set(self.follower.joint_names):
            return 'the joints of the follower are not known'
        apart = dict(zip(self.follower.joint_names, self._apart(follower).tolist(), strict=True))
        self.far = {name: way for name, way in apart.items() if abs(way) > self._settings.agreement}
        if not self.far:
            return ''
        prismatic = dict(zip(self.follower.joint_names, self.follower.prismatic, strict=True))
        ways = (
            f'{quoted(name)} by {1e3 * way:+.0f} mm'
            if prismatic[name]
            else f'{quoted(name)} by {math.degrees(way):+.0f}°'
            for name, way in self.far.items()
        )
        return f'bring the leader to where the follower is: turn {", ".join(ways)}'

    def goal(self, now: float, follower: Mapping[str, float]) -> Array:
        """Return the joint positions (n,) of the follower at a time."""
        share = min(max((now - self._began) / BLEND, 0.0), 1.0)
        share *= share * (3.0 - 2.0 * share)  # it begins and ends at rest
        there = self._smoother.at(now)[self._order] + (1.0 - share) * self._offset
        present = np.array([follower[name] for name in self.follower.joint_names])
        there -= self._turns(there - present)
        # A follower that cannot keep up does not go on for long if the leader falls silent.
        there = np.clip(there, present - LEASH, present + LEASH)
        return np.clip(np.round(there, DIGITS), self.follower.lower, self.follower.upper)

    def opening(self, follower: Mapping[str, float]) -> float | None:
        """Return the opening of the gripper of the follower, as for ~/gripper; None if nothing is to change.

        It follows once the leader is open as the follower was asked to be: what it holds is not dropped, although that
        keeps it open.
        """
        own, other = self._own_gripper, self._gripper
        position = None if own is None else self._feedback.position(own.joint.name)
        if own is None or other is None or position is None or other.joint.name not in follower:
            return None
        if self._feedback.doubt([own.joint.name]):  # percents, for example
            return None
        opening = min(max(own.opening(position), 0.0), 1.0)
        asked = other.opening(follower[other.joint.name]) if math.isnan(self._target) else self._target
        if math.isnan(self._grip) and abs(opening - asked) > PICKED:
            return None
        if abs(opening - self._grip) < GRIPPED:
            return None
        self._grip = opening
        return opening

    def gripped(self, target: float, outdated: bool) -> None:
        """Take the opening that the gripper of the follower was last asked for, NaN if it was not.

        Of another program, both must agree again. outdated: this leader may have asked for another one since.
        """
        self._target = target
        if not outdated and abs(target - self._grip) > GRIPPED:
            self._grip = math.nan

    def pose(self) -> Array:
        """Return the pose T (4, 4) of the tip of the leader as the operator's in the base link of the follower."""
        T = self.arm.link_in_base(self.arm.tip_link, self._positions)
        out = np.eye(4)
        out[:3, :3] = self._yaw @ T[:3, :3]
        out[:3, 3] = self._settings.scale * self._yaw @ T[:3, 3]
        return out
