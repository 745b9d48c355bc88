"""TrajectoryJudge: what a joint_trajectory_controller would make of the trajectories that it is sent.

Between the points it follows cubics. The cubic to the first point depends on when a message arrives, so only
what the first point promises is judged: that it continues the motion before.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

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

BETWEEN = 1.02  # share of the velocity limit that cubics between the points of a plan may reach
HARDER = 1.1  # the same of accelerations
JOINED = 2.0  # times what the acceleration limit allows until the first point
STEP = 2e-3  # [s] between two places at which a motion is compared


@dataclass
class TrajectoryJudge:
    """Looks at trajectories in their order."""

    bounds: dict[str, JointBounds]
    record: Record
    rates: Rates = field(default_factory=Rates)
    _last: SeenTrajectory | None = None

    def judge(self, seen: SeenTrajectory) -> Iterator[Violation]:
        """Yield what is wrong with a trajectory."""
        for kind, what in self._look(seen):
            yield Violation(kind, seen.when, f'trajectory: {what}')

    def _look(self, seen: SeenTrajectory) -> Iterator[tuple[str, str]]:
        last, self._last = self._last, None
        count = len(seen.names)
        rows = [*seen.positions, *seen.velocities]
        if not rows or any(len(row) != count for row in rows) or not all(map(self.bounds.get, seen.names)):
            yield INFINITE, f'{seen.names}: {seen.positions}, {seen.velocities}'
            return
        t, p, v = np.array(seen.times), np.array(seen.positions), np.array(seen.velocities)
        if not (np.isfinite(p).all() and np.isfinite(v).all()):
            yield INFINITE, f'{p.tolist()}, {v.tolist()}'
            return
        if not (np.diff(t, prepend=0.0) > 0.0).all() or largest(v[-1]) > ROUNDING:
            yield RATE, f'times {t.tolist()}, last velocities {v[-1].tolist()}'
            return
        self._last = seen
        yield from self._joined(last, seen, p[0], v[0], float(t[0]))
        yield from self._within(seen, t, p, v)

    def _within(
        self, seen: SeenTrajectory, t: np.ndarray, p: np.ndarray, v: np.ndarray
    ) -> Iterator[tuple[str, str]]:
        h = np.diff(t)[:, None]
        mean = np.diff(p, axis=0) / h
        begin = (6.0 * mean - 4.0 * v[:-1] - 2.0 * v[1:]) / h
        end = (2.0 * v[:-1] + 4.0 * v[1:] - 6.0 * mean) / h
        middle = 1.5 * mean - 0.25 * (v[:-1] + v[1:])
        for i, name in enumerate(seen.names):
            bounds = self.bounds[name]
            low, high = min(bounds.lower, p[0, i]), max(bounds.upper, p[0, i])
            if (p[:, i] < low - ROUNDING).any() or (p[:, i] > high + ROUNDING).any():
                yield POSITION, f'joint "{name}": {p[:, i].tolist()}, allowed {low:.6g} to {high:.6g}'
            fastest = self.rates.speed * bounds.velocity * BETWEEN
            if max(largest(v[:, i]), largest(middle[:, i])) > fastest + ROUNDING:
                yield RATE, f'joint "{name}": {max(largest(v[:, i]), largest(middle[:, i])):.6g}'
            hardest = HARDER * (
                self.rates.linear_acceleration if bounds.prismatic else self.rates.acceleration
            )
            # Points 1 ms apart make a cubic of rounding.
            beyond = (np.maximum(np.abs(begin), np.abs(end)) > hardest + 10.0 * ROUNDING / h)[:, i]
            if beyond.any():
                k = int(beyond.argmax())
                yield HARD, f'joint "{name}": {begin[k, i]:.6g} to {end[k, i]:.6g} at {t[k]:.4f} s'

    def _joined(
        self,
        last: SeenTrajectory | None,
        seen: SeenTrajectory,
        place: np.ndarray,
        speed: np.ndarray,
        first: float,
    ) -> Iterator[tuple[str, str]]:
        """Compare the first point with the motion before, and with where the joints were measured."""
        bounds = [self.bounds[name] for name in seen.names]
        rates = self.rates
        hardest = np.array([rates.linear_acceleration if b.prismatic else rates.acceleration for b in bounds])
        fastest = rates.speed * np.array([b.velocity for b in bounds])
        reborn = last is not None and any(last.when <= life <= seen.when for life in self.record.lives)
        off = np.full(len(bounds), np.inf)
        if last is not None and not reborn and list(last.names) == list(seen.names):
            passed = seen.when - last.when, seen.clock - last.clock
            times = np.arange(max(min(passed) - LATE, 0.0), max(max(passed), 0.0) + LATE + STEP, STEP)
            times = times[times <= last.times[-1] + LATE] if times[0] <= last.times[-1] else times[:1]
            before = np.array(
                [
                    [np.interp(x, last.times, row) for x in times + first]
                    for row in zip(*last.positions, strict=True)
                ]
            )
            off = np.abs(before - place[:, None]).min(axis=1)
        room = np.minimum(JOINED * hardest * first**2, fastest * first) + NEAR
        rest = np.abs(speed) <= hardest * first + ROUNDING
        for i, name in enumerate(seen.names):
            if off[i] <= room[i]:
                continue
            found = self.record.recent_measurements(name, seen.when + LATE, seen.when - MEMORY)
            near = [value for value in found if abs(value - place[i]) <= room[i]]
            if not near or not rest[i]:
                begin = f'joint "{name}": {place[i]:.6g} after {first:.3f} s, {off[i]:.3g} off'
                before = (
                    'the first' if last is None else f'{seen.when - last.when:.3f} s after {last.brief(i)}'
                )
                measured = f'measured {min(found, default=0):.6g} to {max(found, default=0):.6g}'
                yield SNAP, f'{begin}, {before}; {measured}; {seen.brief(i)}'
