# SPDX-License-Identifier: Apache-2.0
"""TrajectoryJudge: what a joint_trajectory_controller would make of the trajectories that it is sent.

Between the points it follows quintics. That to the first point depends on when a message arrives, so only
what the first point promises is judged: that it continues the motion before.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from scipy.interpolate import BPoly

from faults.judge import (
    HARD,
    INFINITE,
    LATE,
    MEMORY,
    NEAR,
    POSITION,
    RATE,
    ROUNDING,
    SNAP,
    Rates,
    Violation,
    largest,
)
from faults.record import Record, SeenTrajectory
from faults.robots import JointBounds

BETWEEN = 1.02  # share of the velocity limit that a motion between the points may reach
HARDER = 1.1  # the same of accelerations
JOINED = 2.0  # times what the acceleration limit allows until the first point
LAG = 1.0  # [s] by which the clock of a busy node may be behind /clock, which the controllers go by
RECENT = 1.0  # [s] before a trajectory, within which a stall of its controller counts
STEP = 2e-3  # [s] between two places at which a motion is compared


@dataclass(frozen=True, eq=False)
class _Last:
    """The last trajectory, and its motion from the first point on."""

    seen: SeenTrajectory
    motion: BPoly


@dataclass
class TrajectoryJudge:
    """Looks at trajectories in their order.

    On simulated time a node whose callbacks wait knows neither the time nor how late it is, so it may replace
    a trajectory from where that was LAG before. A controller that has stalled receives one that much later.
    """

    bounds: dict[str, JointBounds]
    record: Record
    simulated: bool = False
    rates: Rates = field(default_factory=Rates)
    _last: _Last | None = None

    def judge(self, seen: SeenTrajectory) -> Iterator[Violation]:
        """Yield what is wrong with a trajectory."""
        for kind, what in self._look(seen):
            yield Violation(kind, seen.when, f'trajectory: {what}')

    def _look(self, seen: SeenTrajectory) -> Iterator[tuple[str, str]]:
        last, self._last = self._last, None
        shape = len(seen.times), len(seen.names)
        rows = [np.array(row, dtype=object) for row in (seen.positions, seen.velocities, seen.accelerations)]
        if (
            not seen.times
            or any(row.shape != shape for row in rows)
            or not self.bounds.keys() >= set(seen.names)
        ):
            yield INFINITE, f'{seen.names}: {seen.positions}, {seen.velocities}, {seen.accelerations}'
            return
        t, points = np.array(seen.times), np.stack(rows, axis=1).astype(np.float64)
        if not np.isfinite(points).all():
            yield INFINITE, f'{points.tolist()}'
            return
        if t[0] < 0.0 or not (np.diff(t) > 0.0).all() or largest(points[-1, 1:]) > ROUNDING:
            yield RATE, f'times {t.tolist()}, last velocities and accelerations {points[-1, 1:].tolist()}'
            return
        # At rest after the end.
        t = np.append(t, t[-1] + 1.0)
        points = np.concatenate([points, points[-1:]])
        motion = BPoly.from_derivatives(t, points)
        yield from self._joined(last, seen, motion)
        yield from self._within(seen, t, motion)
        self._last = _Last(seen, motion)

    def _within(self, seen: SeenTrajectory, t: np.ndarray, motion: BPoly) -> Iterator[tuple[str, str]]:
        looks = np.union1d(np.arange(t[0], t[-2], STEP), t[:-1])
        p, v, a = (motion(looks, nu=order) for order in range(3))
        for i, name in enumerate(seen.names):
            bounds = self.bounds[name]
            low, high = min(bounds.lower, p[0, i]), max(bounds.upper, p[0, i])
            if (p[:, i] < low - ROUNDING).any() or (p[:, i] > high + ROUNDING).any():
                least, most = p[:, i].min(), p[:, i].max()
                yield POSITION, f'joint "{name}": {least:.6g} to {most:.6g}, allowed {low:.6g} to {high:.6g}'
            fastest = self.rates.speed * bounds.velocity * BETWEEN
            if largest(v[:, i]) > fastest + ROUNDING:
                yield RATE, f'joint "{name}": {largest(v[:, i]):.6g}, allowed {fastest:.6g}'
            hardest = HARDER * (
                self.rates.linear_acceleration if bounds.prismatic else self.rates.acceleration
            )
            if largest(a[:, i]) > hardest:
                yield HARD, f'joint "{name}": {largest(a[:, i]):.6g}, allowed {hardest:.6g}; {seen.brief(i)}'

    def _joined(self, last: _Last | None, seen: SeenTrajectory, motion: BPoly) -> Iterator[tuple[str, str]]:
        """Compare the first point with the motion before, and with where the joints were measured."""
        first = seen.times[0]
        place, speed = motion(first), motion(first, nu=1)
        bounds = [self.bounds[name] for name in seen.names]
        rates = self.rates
        hardest = np.array([rates.linear_acceleration if b.prismatic else rates.acceleration for b in bounds])
        fastest = rates.speed * np.array([b.velocity for b in bounds])
        off, early, joining = np.full(len(bounds), np.inf), 0.0, False
        if (
            last is not None
            and list(last.seen.names) == list(seen.names)
            and not self._reborn(last.seen, seen)
        ):
            passed = seen.when - last.seen.when, seen.clock - last.seen.clock
            late = (LAG if self.simulated else LATE) + self.record.longest_stall(seen.when - RECENT)
            times = np.arange(max(min(passed) - late, 0.0), max(*passed, 0.0) + late + STEP, STEP) + first
            between = seen.begins - last.seen.begins + first
            times = np.append(times, np.arange(between - late, between + late, STEP))
            before = last.motion(np.clip(times, last.seen.times[0], last.seen.times[-1]))
            off = np.abs(before - place).min(axis=0)
            # Before the first point of the last one only that is known: where it joined, and how, is not.
            begin = max(min(*passed, between - first) - late, 0.0) + first
            early = max(last.seen.times[0] - begin, 0.0)
            joining = early > 0.0
        room = np.minimum(JOINED * hardest * first**2, fastest * first) + fastest * early + NEAR
        rest = np.abs(speed) <= hardest * first + ROUNDING
        for i, name in enumerate(seen.names):
            if off[i] <= room[i]:
                continue
            found = self.record.recent_measurements(name, seen.when + LATE, seen.when - MEMORY)
            near = [value for value in found if abs(value - place[i]) <= room[i]]
            if not near or not (rest[i] or joining):
                place_then = f'{place[i]:.6g} at {speed[i]:.3g}/s after {first:.3f} s'
                begin = f'joint "{name}": {place_then}, {off[i]:.3g} off'
                ago = (
                    'at first'
                    if last is None
                    else f'{seen.when - last.seen.when:.3f} s after {last.seen.brief(i)}'
                )
                measured = f'measured {min(found, default=0):.6g} to {max(found, default=0):.6g}'
                yield SNAP, f'{begin}, {ago}; {measured}; {seen.brief(i)}'

    def _reborn(self, last: SeenTrajectory, seen: SeenTrajectory) -> bool:
        return any(last.when <= life <= seen.when for life in self.record.lives)
