# SPDX-License-Identifier: Apache-2.0
"""GoalStream: position and velocity of the joint targets of a moving goal at any time."""

from __future__ import annotations

import statistics
from collections import deque
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ik_node import kernels
from ik_node.checks import Array
from ik_node.control.motion.motion_state import MotionState
from ik_node.control.motion.stamps import plausible_stamps, regularised_stamps

STREAM_GAP = 0.5  # [s] between goals: a shorter gap makes them one moving goal
FOLLOWED_GAP = 0.13  # [s] between goals from which a velocity can be estimated: 10 Hz with some jitter
AHEAD = 0.25  # [s] maximum extrapolation after the newest goal
BRIDGED = 3.5  # intervals after which the stream may have ended: two goals may be lost
RETURN = 0.4  # [s] in which the extrapolated motion then comes to rest at the newest goal
STAMPED, RECEIVED = 4, 8  # goals in an estimate, by stamps and by times of arrival, which have more jitter
JUMP = 0.1  # [rad or m] beyond what the speed limits allow: the goal has jumped


@dataclass(frozen=True, eq=False)
class _Target:
    position: Array
    received: float
    stamp: float | None


class _Motion(NamedTuple):
    """A parabola: at newest [s], with the interval of the targets [s]; place, rate and half the bend (n,)."""

    newest: float
    interval: float
    place: Array
    rate: Array
    bend: Array


class GoalStream:
    """The newest joint targets of one stream of goals; all times are seconds of one clock.

    velocity (n,): the speed limits, which distinguish a jump of the goal from its motion.
    """

    def __init__(self, velocity: Array) -> None:
        self._velocity = velocity
        self._targets: deque[_Target] = deque(maxlen=RECEIVED)
        self._motion: _Motion | None = None

    def clear(self) -> None:
        """Forget all targets."""
        self._targets.clear()
        self._motion = None

    def add(self, position: Array, received: float, stamp: float | None) -> None:
        """Add a target (n,), received at a time; stamp: the time of the goal if it has one.

        Duplicate and outdated goals are ignored.
        """
        last = self._targets[-1] if self._targets else None
        if last is not None and _older(stamp, last.stamp) and 0.0 <= received - last.received < STREAM_GAP:
            return
        if last is not None and not self._continues(last, position, received, stamp):
            self.clear()
        self._targets.append(_Target(position, received, stamp))
        self._motion = self._fitted()

    def _continues(self, last: _Target, position: Array, received: float, stamp: float | None) -> bool:
        if (last.stamp is None) != (stamp is None) or not 0.0 <= received - last.received < STREAM_GAP:
            return False
        if _older(stamp, last.stamp):
            return False
        expected = self.at(received)
        before = last.position if expected is None else expected.position
        room = JUMP + self._velocity * (received - last.received)
        return bool((np.abs(position - before) <= room).all())

    def _estimated_times(self) -> tuple[Array, bool]:
        """Return the times of the targets, and whether they are free of jitter."""
        received = np.array([target.received for target in self._targets])
        if self._targets[-1].stamp is None:
            return regularised_stamps(received)
        return plausible_stamps(np.array([target.stamp for target in self._targets], float), received), True

    def _fitted(self) -> _Motion | None:
        """Return a parabola through the newest targets, by least squares; None if they do not move."""
        if len(self._targets) < STAMPED:
            return None
        times, exact = self._estimated_times()
        count = min(len(times), STAMPED if exact else RECEIVED)
        times = times[-count:]
        interval = statistics.median(np.diff(times).tolist())  # much faster than numpy's for a few
        positions = np.array([target.position for target in self._targets])[-count:]
        if not 0.0 < interval <= FOLLOWED_GAP or not np.ptp(positions, axis=0).any():
            return None
        parabola = np.empty((3, positions.shape[1]))
        known = kernels.fit_parabola(times, positions, parabola)
        return _Motion(float(times[-1]), interval, *parabola) if known else None

    def at(self, time: float) -> MotionState | None:
        """Return the state of the targets at a time; None if they rest, or if their motion is unknown."""
        if self._motion is None:
            return None
        newest, interval, place, rate, bend = self._motion
        ahead, known = time - newest, min(BRIDGED * interval, AHEAD)
        if not -STREAM_GAP < ahead < known + RETURN:
            return None
        t = min(ahead, known)
        position, velocity = place + (rate + bend * t) * t, rate + 2.0 * bend * t
        if ahead <= known:
            return MotionState(position, velocity, 2.0 * bend)
        # A cubic, gentle so that an arm for which goals come again has little to catch up; without the
        # acceleration, which is no demand of the goal.
        s, beyond = (ahead - known) / RETURN, position - place
        return MotionState(
            place + (1.0 - s) ** 2 * ((1.0 + 2.0 * s) * beyond + s * RETURN * velocity),
            (1.0 - s) * ((1.0 - 3.0 * s) * velocity - 6.0 * s / RETURN * beyond),
            np.zeros(len(place)),
        )


def _older(stamp: float | None, last: float | None) -> bool:
    return stamp is not None and last is not None and stamp <= last
