# SPDX-License-Identifier: Apache-2.0
"""Feedback: what is measured of the joints; FollowingError: how far they are from their commands."""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ik_node.checks import Array
from ik_node.errors import closest_name, join_names, quoted
from ik_node.model.plausibility import Span, measured_leap, measured_outside
from ik_node.model.robot import JointSet

MAX_JOINTS = 1000  # stored at most: measurements may also name joints of other robots
RECENT = 0.1  # [s]: a moving joint is still near a measurement that is not older
LEAP = 0.3  # [rad or m] between two measurements: more than joints can move
SHOWN_NAMES = 6  # of joints that are not of the robot
MAX_REPEATED = 0.6  # [s] for which slow hardware repeats a value with new stamps; longer, and the joint is at rest
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

    def _doubt(self, name: str, position: float, time: float, received: float, before: Measured | None = None) -> None:
        """Doubt a position measured at a time [s], or end a doubt. before: the measurement before."""
        span = self._spans.get(name)
        if span is None:
            return
        why = measured_outside(span, position)
        if not why and before is not None:  # messages may come in bursts, and stamps may stand still
            seconds = max(time - before.time, received - before.received)
            repeated = received - before.changed
            seconds = max(seconds, min(repeated, SKIPPED) if repeated <= MAX_REPEATED else 0.0)
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
            if len(self._joints) >= MAX_JOINTS:
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


# FollowingError: compares measured joints with their commands at the time of the measurement.
#
# A late measurement does not show the present position. Therefore two distances have the same tolerance:
# from the measured position to the commands at that time, an error of the joint, and from these commands
# to the newest one, caused by the computer or the driver.

TURN = 2.0 * np.pi
KEPT = 5.0  # [s] for which commands are kept
UNKNOWN = 0.1  # [s] after the newest command: later, the position of a controller is unknown
GAP = 0.05  # [s] between two measurements, beyond the delay, after which a driver may have to catch up
LATE = 1.0  # [s] for which late measurements explain an error; maximum time for a driver to catch up


class FollowingError:
    """Recent commands and times of measurements of joints (n,), on one clock [s]."""

    def __init__(self, names: Sequence[str], continuous: NDArray[np.bool_], prismatic: NDArray[np.bool_]) -> None:
        """continuous: (n,), joints that are measured up to whole turns."""
        self._names, self._continuous = names, continuous
        self._units = np.where(prismatic, 'm', 'rad')
        self.set_limits(np.zeros(len(names)), 0.0)
        self.restart()

    def set_limits(self, tolerance: Array, delay: float) -> None:
        """Set the tolerance (n,) between joints and commands, and the delay [s] of measurements."""
        self._tolerance, self._delay = tolerance, delay

    def restart(self) -> None:
        """Forget everything: the arm was reinitialised."""
        n = len(self._names)
        self._times: list[float] = []  # since when each of the commands was in force
        self._commands: list[Array] = []
        self._newest = -np.inf  # time of the last command, new or repeated
        self._measured = np.full(n, np.nan)  # time of the last measurement
        self._missed = np.full(n, np.inf)  # since when the driver may have missed commands
        self._catches_up = np.full(n, -np.inf)  # until when it may catch up with them
        self._behind = np.zeros(n, dtype=np.bool_)  # joints that still have to catch up
        self._slow = 0.0, -np.inf  # how late measurements were [s], and when

    def commanded(self, time: float, position: Array) -> None:
        """Note that position (n,) was commanded at time [s]."""
        if time < self._newest:  # the clock was set back
            self._commands, self._times = self._commands[-1:], [time for _ in self._times[-1:]]
            self._measured = np.minimum(self._measured, time)
            self._catches_up[:], self._slow = -np.inf, (0.0, -np.inf)
        self._newest = time
        if not self._commands or (position != self._commands[-1]).any():
            self._times.append(time)
            self._commands.append(position.copy())
        while len(self._times) > 1 and self._times[1] < time - KEPT:
            del self._times[0], self._commands[0]

    def error(self, measured: Array, time: float, received: float, lag: float = 0.0) -> str | None:
        """Compare joints (n,) measured at a time [s], else NaN; return a sentence on one that fails.

        A joint fails if its distance from all commands since the delay before the measurement exceeds its
        tolerance. After a gap in the measurements a driver may have missed commands: for the same time again,
        and for the delay, commands since before the gap are accepted too, and the arm waits (see late). lag:
        how much later than usual [s] the commands are executed. None if all joints follow, or if unknown.
        """
        tolerance, delay = self._tolerance, self._delay
        known = ~np.isnan(measured)
        if not known.any():
            return None
        last, self._measured = self._measured, np.where(known, time, self._measured)
        missed = known & (time - last > delay + GAP)
        self._missed = np.where(missed, last, self._missed)
        patience = np.clip(time - last, delay, max(LATE, delay))
        self._catches_up = np.where(missed, time + patience, self._catches_up)
        slow = max(received - time, *(time - last[missed]).tolist(), 0.0)
        if slow > delay and slow >= self._just_slow():
            self._slow = slow, received
        if not self._commands or time > self._newest + UNKNOWN:
            return None
        near, newest = measured + self._turns(self._commands[-1] - measured), self._commands[-1]
        errors = _distance(near, self._between(time - delay - lag, np.inf))
        catching_up = known & (errors > tolerance) & (time <= self._catches_up)
        if catching_up.any():
            since = float(np.minimum(self._missed, time - delay)[catching_up].min()) - lag
            errors = np.where(catching_up, _distance(near, self._between(since, np.inf)), errors)
        self._behind = np.where(known, catching_up, self._behind)
        found = self._beyond(errors, tolerance, np.abs(near - newest))
        if found is None:
            return None
        slow = self._just_slow()
        return f'{found} its command' + (f'; {late(slow)}' if slow else '')

    def late(self, share: float) -> str | None:
        """Return the latency of measurements, as a sentence, if the newest command is too far ahead of them.

        That is, by more than a share of the tolerance from all commands until the delay after the measurement
        of a joint; also while a joint still has to catch up. Else None.
        """
        if self._behind.any():
            return late(self._just_slow())
        age, delay, tolerance = self._newest - self._measured, self._delay, share * self._tolerance
        for time in {float(at) for at in self._measured[age > delay]}:
            commands, newest = self._between(time, time + delay), self._commands[-1]
            if (_distance(newest, commands) > tolerance)[self._measured == time].any():
                return late(self._newest - time)
        return None

    def farthest_from(self, measured: Array, positions: Array) -> str | None:
        """Return which joint is measured (n,), NaN: not, farther than its tolerance from positions (n,)."""
        return self._beyond(self.distances(measured, positions), self._tolerance)

    def distances(self, measured: Array, positions: Array) -> Array:
        """Return how far joints measured (n,) are from positions (n,), NaN where they are not measured."""
        gap = measured - positions
        return np.abs(gap + self._turns(-gap))

    def _beyond(self, errors: Array, tolerance: Array, shown: Array | None = None) -> str | None:
        """Return which joint has the greatest of errors (n,) beyond tolerance, with its distance."""
        beyond = np.nan_to_num(errors - tolerance, nan=-np.inf)
        i = int(beyond.argmax())
        if beyond[i] <= 0.0:
            return None
        away = (errors if shown is None else shown)[i]
        return f'joint "{self._names[i]}" is {away:.3g} {self._units[i]} away from'

    def _just_slow(self) -> float:
        """Return how late [s] measurements were just now, 0 if they were not."""
        seconds, when = self._slow
        return seconds if self._newest <= when + LATE else 0.0

    def _between(self, begin: float, end: float) -> Array:
        """Return the commands (k, n) that were in force between two times, one at least."""
        first = max(bisect_right(self._times, begin) - 1, 0)
        return np.array(self._commands[first : max(bisect_right(self._times, end), first + 1)])

    def _turns(self, gap: Array) -> Array:
        return np.where(self._continuous, TURN * np.round(gap / TURN), 0.0)


def _distance(values: Array, commands: Array) -> Array:
    """Return the distances (n,) of values (n,) from commands (k, n), 0 between them."""
    return np.maximum(np.maximum(commands.min(axis=0) - values, values - commands.max(axis=0)), 0.0)
