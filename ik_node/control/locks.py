# SPDX-License-Identifier: Apache-2.0
"""The locks of a running arm, in the one order in which a thread may take them.

A thread that holds a lock may only take locks further down in Rank, or the same lock again, so threads never
deadlock. Code of other packages is called without locks, except that outputs are called under OUTPUT,
publishers of reports under REPORTS, tf2 is subscribed to under FRAMES, and cards of programs are published
under CARD.
"""

from __future__ import annotations

import enum
import os
import threading

CHECKED = os.environ.get('IK_NODE_CHECK_LOCKS', '0') != '0'  # set in tests: a wrong order raises LockOrderError


class Rank(enum.IntEnum):
    """What a lock guards, outermost first."""

    REPORTS = 0  # one thread at a time publishes the reports of a tool, with a snapshot of the arm
    OUTPUT = 1  # one thread at a time sends setpoints, and none after a stop
    TELEOP = 2  # teleoperation commands
    ROBOT = 3  # the state of all arms of a robot
    CLUTCH = 4
    REPORT_QUEUE = 5  # reports that have not been delivered yet
    ACTION = 6  # the goals of an output by action
    GOAL = 7  # one of these goals, until it is noted
    INBOX = 8
    STATISTICS = 9
    FRAMES = 10  # one thread subscribes to tf2, for all
    CARD = 11  # one thread at a time tells other programs about this one


class LockOrderError(RuntimeError):
    """A thread takes a lock while it holds one further down in Rank."""


class _HeldLocks(threading.local):
    """The locks that the present thread holds, in the order in which it took them."""

    def __init__(self) -> None:
        self.locks: list[OrderedLock] = []


_held = _HeldLocks()


class OrderedLock:
    """A reentrant lock that knows its rank, and in which order it may be taken."""

    def __init__(self, rank: Rank) -> None:
        self.rank = rank
        self._lock = threading.RLock()

    def acquire(self, blocking: bool = True, timeout: float = -1.0) -> bool:
        """Take the lock, as threading.RLock.acquire does."""
        if self not in _held.locks:
            wrong = [lock.rank.name for lock in _held.locks if lock.rank >= self.rank]
            if wrong:
                raise LockOrderError(f'{self.rank.name} is taken under {", ".join(wrong)}')
        taken = self._lock.acquire(blocking, timeout)
        if taken:
            _held.locks.append(self)
        return taken

    __enter__ = acquire

    def release(self, *_: object) -> None:
        """Release the lock."""
        _held.locks.remove(self)
        self._lock.release()

    __exit__ = release

    def _is_owned(self) -> bool:  # as threading.Condition asks
        return self in _held.locks


def ordered_lock(rank: Rank) -> threading.RLock:
    """Return a reentrant lock; where the order of locks is checked, an OrderedLock."""
    return OrderedLock(rank) if CHECKED else threading.RLock()  # type: ignore[return-value]
