# SPDX-License-Identifier: Apache-2.0
"""Feedback: measured joint positions and their times."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ik_node.errors import closest_name, join_names, quoted
from ik_node.model.joint_set import JointSet
from ik_node.model.plausibility import Span, measured_leap, measured_outside

MOST_JOINTS = 1000  # stored at most: measurements may also name joints of other robots
RECENT = 0.1  # [s]: a moving joint is still near a measurement that is not older
LEAP = 0.3  # [rad or m] between two measurements: more than joints can move
SHOWN_NAMES = 6  # of joints that are not of the robot
HELD = 0.6  # [s] for which slow hardware repeats a value with new stamps; longer, and the joint is at rest
SKIPPED = 0.2  # [s] of that in which the joint may have moved
CALM = 0.5  # [s] for which measurements must be believable after one that cannot be true
SLOW = 'the computer or the driver is too slow, or their clocks differ'


@dataclass
class Measured:
    """The last position of a joint [rad or m], and when it was measured [s].

    received, stamp: when the last message arrived, and when that was measured: earlier, if it was outdated.
    changed: when the position arrived first [s]. forgotten: the joint may have moved since. steady: the last
    position that was not a leap, and when it was received. leapt: it differs by more than LEAP from that, or
    from the previous one if that is not RECENT.
    """

    position: float
    time: float
    received: float
    stamp: float
    changed: float
    forgotten: bool
    steady: tuple[float, float]
    leapt: bool


class Feedback:
    """The newest measurement of each joint, from any publisher and in any order.

    expected: whether the joints are measured at all. alone: no other node publishes joints of this robot.
    topic: where measurements come from; offered: whether it has a publisher; rejected: why its messages are
    ignored.
    """

    def __init__(self) -> None:
        self.expected = False
        self.alone = True
        self.topic, self.offered, self.rejected = '', True, ''
        self._joints: dict[str, Measured] = {}
        self._spans: dict[str, Span] = {}
        self._own: frozenset[str] = frozenset()  # joints of the robot
        self._doubts: dict[str, tuple[str, float]] = {}  # by joint: a question, and the last time for it [s]
        self._now = -math.inf  # the newest time
        self._forgot = -math.inf  # older measurements are outdated

    def expect(self, expected: bool, alone: bool) -> tuple[bool, bool]:
        """Set both; return what they were."""
        before = self.expected, self.alone
        self.expected, self.alone = expected, alone
        return before

    def missing(self, names: Sequence[str]) -> str:
        """Return what has arrived instead of measurements of joints, for a message, '' if nothing."""
        if not self.topic or all(name in self._joints for name in names):
            return ''
        if not self.offered:
            return f'; {self.topic} has no publisher'
        if self.rejected:
            return f'; messages on {self.topic} are ignored: {self.rejected}'
        if not self._joints:
            return f'; {self.topic} has a publisher, but no message has arrived'
        others = [name for name in self._joints if name not in self._own]
        if not others:
            return ''
        shown = join_names(others[:SHOWN_NAMES])
        more = f' and {len(others) - SHOWN_NAMES} more' if len(others) > SHOWN_NAMES else ''
        which = 'none of which is a joint' if len(others) == len(self._joints) else 'which are no joints'
        found = ((name, _alike(name, others)) for name in names if name not in self._joints)
        pairs = [(name, meant) for name, meant in found if meant]
        remedy = f' (did you mean {quoted(pairs[0][0])} by {quoted(pairs[0][1])}?)' if pairs else ''
        return f'; {self.topic} has {shown}{more}, {which} of the arm{remedy}: the names must be the same'

    def judge(self, joints: JointSet) -> None:
        """Doubt measurements that cannot be true of these joints, from now on."""
        self._spans, self._doubts = {span.name: span for span in joints.spans}, {}
        self._own = frozenset(joints.names)
        for name, joint in self._joints.items():
            self._doubt(name, joint.position, joint.time, joint.received)

    def doubt(self, names: Iterable[str]) -> str:
        """Return why measurements of joints cannot be true, or could not until just now, as one sentence.

        It names the first joint, with a question; '' if they are believable. The sentence stays the same.
        """
        names = set(names)
        return next((why for name, (why, _) in self._doubts.items() if name in names), '')

    def _doubt(
        self, name: str, position: float, time: float, received: float, before: Measured | None = None
    ) -> None:
        """Doubt a position measured at a time [s], or end a doubt. before: the measurement before."""
        span = self._spans.get(name)
        if span is None:
            return
        why = measured_outside(span, position)
        if not why and before is not None:  # messages may come in bursts, and stamps may stand still
            seconds = max(time - before.time, received - before.received)
            held = received - before.changed
            seconds = max(seconds, min(held, SKIPPED) if held <= HELD else 0.0)
            why = measured_leap(span, before.position, position, seconds)
        known = self._doubts.get(name)
        if why:
            self._doubts[name] = known[0] if known else why, received
        elif known and received - known[1] >= CALM:
            del self._doubts[name]

    def take(self, positions: Mapping[str, float], time: float, received: float) -> dict[str, float]:
        """Store finite positions by joint name, measured at time [s]; return those that are not outdated."""
        self._now = max(self._now, received)
        newest = {}
        for name, position in positions.items():
            before = self._joints.get(name)
            if before is not None and time < before.time:
                before.received, before.stamp = received, time  # a copy that came late, or a clock set back
                continue
            newest[name] = position
            self._doubt(name, position, time, received, before)
            leapt = before is not None and abs(position - _likely(before, received)) > LEAP
            steady = before.steady if before is not None and leapt else (position, received)
            self._joints.pop(name, None)  # the order is that of the last measurements
            if len(self._joints) >= MOST_JOINTS:
                del self._joints[next(iter(self._joints))]
            same = before is not None and position == before.position
            changed = before.changed if before is not None and same else received
            forgotten = time < self._forgot
            self._joints[name] = Measured(position, time, received, time, changed, forgotten, steady, leapt)
        return newest

    def advance(self, time: float) -> bool:
        """Advance to time [s]; return whether the clock was set back. Then all times are limited to it."""
        back = time < self._now
        self._now = time
        if back:
            self._forgot = min(self._forgot, time)
            for joint in self._joints.values():
                joint.time, joint.stamp = min(joint.time, time), min(joint.stamp, time)
                joint.received, joint.changed = min(joint.received, time), min(joint.changed, time)
                joint.steady = joint.steady[0], min(joint.steady[1], time)
            self._doubts = {name: (why, min(at, time)) for name, (why, at) in self._doubts.items()}
        return back

    def position(self, name: str) -> float | None:
        """Return the newest position of a joint, None if it was never measured."""
        measured = self._joints.get(name)
        return None if measured is None else measured.position

    def recent(self) -> dict[str, float]:
        """Return believable positions not older than RECENT, forgotten or not, except leaps."""
        joints = dict(self._joints).items()
        return {
            name: j.position
            for name, j in joints
            if self._now - j.time <= RECENT and not j.leapt and name not in self._doubts
        }

    def fresh(self, timeout: float) -> dict[str, float]:
        """Return believable positions measured since forget() and, unless it is 0, within timeout [s]."""
        return {
            name: joint.position
            for name, joint in self._joints.items()
            if not joint.forgotten
            and name not in self._doubts
            and (timeout == 0.0 or self._now - joint.time <= timeout)
        }

    def age(self, names: Iterable[str]) -> float:
        """Return the age [s] of the oldest measurement of joints; infinite if one is missing.

        NaN if no joint is expected to be measured.
        """
        if not self.expected:
            return math.nan
        times = [self._joints[name].time if name in self._joints else -math.inf for name in names]
        return self._now - min(times)

    def forget(self) -> None:
        """Mark everything measured so far as outdated."""
        self._forgot = self._now
        for joint in self._joints.values():
            joint.forgotten = True

    def silent(self, names: Iterable[str], timeout: float) -> str | None:
        """Return which joint was last measured more than timeout [s] ago, as a sentence; None: none.

        None also if the timeout is 0, or if no measurements are expected.
        """
        if not self.expected or timeout == 0.0:
            return None
        for name in names:
            joint = self._joints.get(name)
            if joint is None or self._now - joint.time <= timeout:
                continue
            if self._now - joint.received < joint.received - joint.stamp:
                return late(self._now - joint.stamp)
            return f'joint "{name}" has not been measured for {timeout:g} s'
        return None


def _alike(name: str, others: Sequence[str]) -> str | None:
    """Return which of other names may be meant for a joint: with a prefix, in another case, or similar."""
    bare = re.split('[^0-9a-z]+', name.lower())
    parts = ((other, re.split('[^0-9a-z]+', other.lower())) for other in others)
    found = (other for other, its in parts if its[-len(bare) :] == bare or its[: len(bare)] == bare)
    return next(found, None) or closest_name(others, name)


def _likely(last: Measured, time: float) -> float:
    """Return where a joint is near at a time [s]: not at a leap, unless it has stayed there."""
    position, when = last.steady
    return position if time - when <= RECENT else last.position


def late(seconds: float) -> str:
    """Return the latency of measurements as a sentence."""
    return f'measurements are {seconds:.1f} s late: {SLOW}'
