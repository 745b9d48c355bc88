# SPDX-License-Identifier: Apache-2.0
"""Trajectory: a timed motion of joints; JointTrajectory and Setpoint: what an arm is commanded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ik_node.checks import Array


class MotionState(NamedTuple):
    """Position, velocity and acceleration of joints, each (n,) [rad or m, and per second]."""

    position: Array
    velocity: Array
    acceleration: Array


PATH_STEP = 0.01  # [s] between the knots of a motion along a path

# The quintic on [0, 1] from position, velocity and acceleration at both ends: its powers (rows) by these.
QUINTIC = np.array(
    [
        [1.0, 0.0, 0.0, 0.0, 0.0, 0.0],
        [0.0, 1.0, 0.0, 0.0, 0.0, 0.0],
        [0.0, 0.0, 0.5, 0.0, 0.0, 0.0],
        [-10.0, -6.0, -1.5, 10.0, -4.0, 0.5],
        [15.0, 8.0, 1.5, -15.0, 7.0, -1.0],
        [-6.0, -3.0, -0.5, 6.0, -3.0, 0.5],
    ]
)


@dataclass(frozen=True, eq=False)
class Trajectory:
    """A motion of n joints from rest to rest; quintics between nodes keep its acceleration continuous.

    times (m,) [s] from 0; positions, velocities, accelerations (m, n) [rad or m, per second].
    """

    times: Array
    positions: Array
    velocities: Array
    accelerations: Array

    @property
    def duration(self) -> float:
        """Time from the first to the last node [s]."""
        return float(self.times[-1])

    def at_time(self, time: float) -> Array:
        """Return position, velocity and acceleration (3, n) at time [s]."""
        return self.sampled(np.array([time]))[:3, 0]

    def at_times(self, times: Sequence[float]) -> Array:
        """Return the same at times (k,) [s]: (k, 3, n)."""
        return np.moveaxis(self.sampled(np.array(times))[:3], 0, 1)

    def knots(self) -> list[float]:
        """Return times [s] between which a quintic is exact enough: the jerk along a path is continuous."""
        return [*np.arange(0.0, self.duration, PATH_STEP).tolist(), self.duration]

    def sampled(self, times: Array) -> Array:
        """Return position, velocity, acceleration and jerk (4, p, n) at times (p,) [s]."""
        inside = np.clip(times, 0.0, self.duration)
        k = np.clip(np.searchsorted(self.times, inside, side='right') - 1, 0, len(self.times) - 2)
        span = (self.times[k + 1] - self.times[k])[:, None]
        x = (inside - self.times[k])[:, None] / span
        ends = np.array(
            [
                self.positions[k],
                self.velocities[k] * span,
                self.accelerations[k] * span**2,
                self.positions[k + 1],
                self.velocities[k + 1] * span,
                self.accelerations[k + 1] * span**2,
            ]
        )
        # Relative to the first node, so that rounding does not grow with the position.
        ends[3] -= ends[0]
        start, ends[0] = ends[0].copy(), 0.0
        power = np.tensordot(QUINTIC, ends, axes=1)
        rows = []
        for order in range(4):
            value = np.zeros_like(start)
            for term in power[::-1]:
                value = value * x + term
            rows.append(value / span**order)
            power = power[1:] * np.arange(1.0, len(power)).reshape(-1, 1, 1)
        rows[0] += start
        return np.array(rows)

    def positions_every(self, spacing: float) -> Array:
        """Return positions (p, n) from the start to the end, at most spacing [s] apart."""
        count = int(np.ceil(self.duration / spacing)) + 1
        return np.asarray(self.sampled(np.linspace(0.0, self.duration, max(count, 2)))[0])

    def slowed(self, factor: float) -> Trajectory:
        """Return the same motion in factor times the time."""
        return Trajectory(factor * self.times, self.positions, self.velocities / factor, self.accelerations / factor**2)

    def excess(self, velocity: Array, acceleration: Array, jerk: Array) -> float:
        """Return the factor of the duration with which the limits (n,) hold at all times.

        Below 1 the motion may be faster. A polynomial stays inside the hull of its Bezier points.
        """
        h = np.diff(self.times)[:, None]
        q, v, a = self.positions, h * self.velocities[:-1], h**2 * self.accelerations[:-1]
        v_end, a_end = h * self.velocities[1:], h**2 * self.accelerations[1:]
        points = np.array(
            [
                q[:-1],
                q[:-1] + v / 5.0,
                q[:-1] + 0.4 * v + a / 20.0,
                q[1:] - 0.4 * v_end + a_end / 20.0,
                q[1:] - v_end / 5.0,
                q[1:],
            ]
        )
        shares = []
        for degree, limit in ((5, velocity), (4, acceleration), (3, jerk)):
            points = degree * np.diff(points, axis=0) / h
            shares.append(float((np.abs(points) / limit).max()))
        return max(shares[0], shares[1] ** 0.5, shares[2] ** (1.0 / 3.0))

    def followed_by(self, other: Trajectory) -> Trajectory:
        """Return this motion and then the other, which starts where this one ends."""
        return Trajectory(
            np.concatenate([self.times, self.times[-1] + other.times[1:]]),
            np.concatenate([self.positions, other.positions[1:]]),
            np.concatenate([self.velocities, other.velocities[1:]]),
            np.concatenate([self.accelerations, other.accelerations[1:]]),
        )


@dataclass(frozen=True, eq=False)
class JointTrajectory:
    """Positions, velocities, accelerations (k, n) of named joints at times (k,) [s] from 0; the last is rest.

    begins: when time 0 is, by the clock of the setpoints [s]. joined: the time [s] until which the trajectory
    repeats what the controller was sent before. braking: it only ends an earlier motion. on_arrival: begins
    when it arrives, however late; the controller moves to its first point by itself.
    """

    names: tuple[str, ...]
    times: Array
    positions: Array
    velocities: Array
    accelerations: Array
    begins: float
    joined: float
    braking: bool = False
    on_arrival: bool = False

    @property
    def duration(self) -> float:
        """Time from 0 to the end [s]."""
        return float(self.times[-1])

    @property
    def ends(self) -> float:
        """When it ends, by the clock of the setpoints [s]."""
        return self.begins + self.duration

    @property
    def starts(self) -> int:
        """The first point that a controller needs: the last one at rest if the trajectory begins on arrival.

        An earlier one would be where the controller jumps to, a later one would be joined by a detour. None
        at time 0, which leaves no time to move there.
        """
        if not self.on_arrival:
            return 0
        last = max(int(np.searchsorted(self.times, self.joined)) - 1, 0)
        return last if self.times[last] > 0.0 else last + 1

    @property
    def rows(self) -> tuple[Array, Array, Array]:
        """Positions, velocities and accelerations."""
        return self.positions, self.velocities, self.accelerations

    @cached_property
    def motion(self) -> Trajectory:
        """The interpolation of the controller: quintics between the points."""
        return Trajectory(self.times, *self.rows)

    def states(self, times: Array) -> Array:
        """Return positions, velocities, accelerations (p, 3, n) at times (p,) on the setpoint clock."""
        return np.moveaxis(self.motion.sampled(np.asarray(times) - self.begins)[:3], 0, 1)


@dataclass(frozen=True, eq=False)
class Setpoint:
    """Positions and velocities (m,) [rad or m, per second] of the joints called names at time [s].

    controller: joints of the controller, in its order. replanned: it starts another motion than the previous
    setpoint. trajectory: the rest of the motion, if an interpolating controller needs a new one.
    arrival: if this is the first setpoint for a goal, when that was received (steady), else None.
    """

    time: float
    names: tuple[str, ...]
    positions: Array
    velocities: Array
    controller: tuple[str, ...] = ()
    replanned: bool = False
    trajectory: JointTrajectory | None = None
    arrival: float | None = None

    def named(self) -> dict[str, tuple[float, float]]:
        """Return position and velocity by joint name."""
        pairs = zip(self.positions.tolist(), self.velocities.tolist(), strict=True)
        return dict(zip(self.names, pairs, strict=True))

    def listed(self) -> list[float]:
        """Return the positions of the joints of the controller."""
        positions = dict(zip(self.names, self.positions.tolist(), strict=True))
        return [positions[name] for name in self.controller]
