# SPDX-License-Identifier: Apache-2.0
"""FollowingError: compares measured joints with their commands at the time of the measurement.

A late measurement does not show the present position. Therefore two distances have the same tolerance: from
the measured position to the commands at that time, an error of the joint, and from these commands to the
newest one, caused by the computer or the driver.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ik_node.checks import Array
from ik_node.control.joints.feedback import late

TURN = 2.0 * np.pi
KEPT = 5.0  # [s] for which commands are kept
UNKNOWN = 0.1  # [s] after the newest command: later, the position of a controller is unknown
GAP = 0.05  # [s] between two measurements, beyond the delay, after which a driver may have to catch up
RECENT = 1.0  # [s] for which late measurements explain an error; maximum time for a driver to catch up


class FollowingError:
    """Recent commands and times of measurements of joints (n,), on one clock [s]."""

    def __init__(
        self, names: Sequence[str], continuous: NDArray[np.bool_], prismatic: NDArray[np.bool_]
    ) -> None:
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
        patience = np.clip(time - last, delay, max(RECENT, delay))
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

    def elsewhere(self, measured: Array, places: Array) -> str | None:
        """Return which joint is measured (n,), NaN: not, farther than its tolerance from positions (n,)."""
        return self._beyond(self.apart(measured, places), self._tolerance)

    def apart(self, measured: Array, places: Array) -> Array:
        """Return how far joints measured (n,) are from positions (n,), NaN where they are not measured."""
        gap = measured - places
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
        return seconds if self._newest <= when + RECENT else 0.0

    def _between(self, begin: float, end: float) -> Array:
        """Return the commands (k, n) that were in force between two times, one at least."""
        first = max(bisect_right(self._times, begin) - 1, 0)
        return np.array(self._commands[first : max(bisect_right(self._times, end), first + 1)])

    def _turns(self, gap: Array) -> Array:
        return np.where(self._continuous, TURN * np.round(gap / TURN), 0.0)


def _distance(values: Array, commands: Array) -> Array:
    """Return the distances (n,) of values (n,) from commands (k, n), 0 between them."""
    return np.maximum(np.maximum(commands.min(axis=0) - values, values - commands.max(axis=0)), 0.0)
