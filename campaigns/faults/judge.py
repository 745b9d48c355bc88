# SPDX-License-Identifier: Apache-2.0
"""Judges what the node publishes. Bounds follow from the URDF and the widest parameters that were in force.

A sample without a stamp is compared by the time when it was sent, and its acceleration is not judged.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.interpolate import BPoly

from campaigns.faults.arena import Arena, Record, Seen, SeenTrajectory
from campaigns.faults.robots import TIPS, Bounds, bounds, text_of

POSITION, RATE, HARD, INFINITE, SNAP = 'position', 'velocity', 'acceleration', 'NaN', 'snap-back'
STANDSTILL, CRASH = 'standstill', 'crash'
ROUNDING = 1e-5  # [rad, m, and per second]; accelerations and jerks by more, see below
SILENCE = 0.03  # [s] after which a command may begin anew, where the joint was measured
NEAR = 5e-3  # [rad, m] from a measurement
MEMORY, FRESH = (
    3.0,
    0.3,
)  # [s] for which a measurement may be the one that the arm was placed by; without a silence
LATE = 0.1  # [s] by which what the node knows may be old
FASTEST_CLOCK = 5.0  # times the real time, at most, between jumps of a simulated clock
BETWEEN, HARDER = 1.02, 1.1  # shares of limits that a motion between the points of a trajectory may reach
JOINED = 2.0  # times what the acceleration limit allows until the first point
STEP = 2e-3  # [s] between two places at which a motion is compared
PATIENCE = 2.0  # [s] within which an arm moves, or is said not to
MOVING = 1e-7  # [rad/s, m/s]
ON_ITS_WAY = ('moving', 'teleoperated')
Found = Iterator[tuple[str, str]]


@dataclass(frozen=True)
class Rates:
    """The largest parameters that were in force; the slowest and fastest publish_rate."""

    speed: float
    acceleration: float
    jerk: float
    linear_acceleration: float
    linear_jerk: float
    slow: float
    fast: float

    @classmethod
    def of(cls, widest: dict[str, set[float]]) -> Rates:
        """widest: by parameter, all values that were asked for."""

        def most(name: str, default: float, allowed: float) -> float:
            return max([default, *(v for v in widest.get(name, ()) if math.isfinite(v) and v <= allowed)])

        rates = [v for v in widest.get('publish_rate', ()) if 1.0 <= v <= 1000.0]
        return cls(
            most('speed_scaling', 0.5, 1.0),
            most('max_acceleration', 5.0, 1e4),
            most('max_jerk', 50.0, 1e6),
            most('max_linear_acceleration', 1.0, 1e4),
            most('max_linear_jerk', 10.0, 1e6),
            min([100.0, *rates]),
            max([100.0, *rates]),
        )

    def of_joint(self, joint: Bounds) -> tuple[float, float, float]:
        """Return the largest velocity, acceleration and jerk of a joint."""
        linear = (self.linear_acceleration, self.linear_jerk)
        return self.speed * joint.velocity, *(linear if joint.prismatic else (self.acceleration, self.jerk))


@dataclass
class Last:
    """The last sample of a joint on a topic; acceleration: mean since the one before, over dt."""

    seen: Seen
    position: float
    velocity: float
    acceleration: float = 0.0
    dt: float = 0.0


class Judge:
    """Looks at samples and trajectories in their order."""

    def __init__(self, arena: Arena) -> None:
        self.record: Record = arena.record
        self.rates = Rates.of(arena.widest)
        self.simulated = arena.setup.simulated
        # A picture that nobody carries out, beside trajectories: where a controller gets those too late,
        # it goes on from where the controller is, which is a step.
        words = arena.setup.output.split()
        self.picture = 'joint_states' if words == ['joint_trajectory', 'joint_states'] else ''
        self.bounds = {n: b for name in TIPS for n, b in bounds(text_of(name)).items()}
        self.bounds.update(bounds(arena.robot.text))
        self._last: dict[tuple[str, str], Last] = {}
        self._motion: dict[str, tuple[SeenTrajectory, BPoly]] = {}

    def judge(self) -> Found:
        """Yield the kind and a sentence of each violation."""
        for seen in self.record.samples:
            look = self._sample(seen) if isinstance(seen, Seen) else self._trajectory(seen)
            for kind, what in look:
                yield kind, f'{seen.when:.3f} s, {seen.topic}: {what}'

    # Samples

    def _sample(self, seen: Seen) -> Found:
        sizes = {len(seen.names), len(seen.positions)}
        if len(sizes) > 1 or (seen.velocities is not None and len(seen.velocities) not in sizes):
            yield INFINITE, f'{len(seen.names)} names, {seen.positions}'
            return
        speeds = [0.0] * len(seen.names) if seen.velocities is None else seen.velocities
        for name, position, velocity in zip(seen.names, seen.positions, speeds, strict=True):
            for kind, what in self._joint(seen, name, position, velocity):
                yield kind, f'"{name}": {what}'

    def _joint(self, seen: Seen, name: str, position: float, velocity: float) -> Found:
        joint, key = self.bounds.get(name), (seen.topic, name)
        if joint is None or not (math.isfinite(position) and math.isfinite(velocity)):
            yield INFINITE, f'{position}, {velocity} (known joint: {joint is not None})'
            return
        last, this = self._last.get(key), Last(seen, position, velocity)
        self._last[key] = this
        described = any(seen.when - MEMORY <= time <= seen.when for time in self.record.descriptions)
        if last is None or (not self.record.measured and velocity == 0.0 and described):
            yield from self._beginning(this, name, joint)
            return
        found = list(self._continued(last, this, joint))
        silent = max(seen.when - last.seen.when, (seen.time or 0.0) - (last.seen.time or 0.0))
        memory = MEMORY if silent >= SILENCE else FRESH if velocity == 0.0 else 0.0
        if found and memory and self._measured(seen, name, position, memory):
            found = list(self._beginning(this, name, joint))
        yield from found

    def _continued(self, last: Last, this: Last, joint: Bounds) -> Found:
        """Compare a sample of a joint with the one before."""
        low, high = min(joint.lower, last.position), max(joint.upper, last.position)
        fastest, hardest, jerk = self.rates.of_joint(joint)
        if not low - ROUNDING <= this.position <= high + ROUNDING:
            yield POSITION, f'{this.position:.6g} after {last.position:.6g}, allowed {low:.6g} to {high:.6g}'
        if abs(this.velocity) > fastest + ROUNDING:
            yield RATE, f'velocity {this.velocity:.6g}, allowed {fastest:.6g}'
        if this.seen.topic == self.picture:
            return
        dt = self._between(last.seen, this.seen)
        if abs(this.position - last.position) > fastest * dt + ROUNDING:
            yield SNAP, f'{this.position:.6g} {dt:.4f} s after {last.position:.6g}'
            return
        if this.seen.velocities is None:
            return
        this.acceleration, this.dt = (
            (this.velocity - last.velocity) / dt if dt > 0.0 else last.acceleration,
            dt,
        )
        if abs(this.velocity - last.velocity) > hardest * dt * (1.0 + 1e-6) + ROUNDING:
            yield HARD, f'velocity {this.velocity:.6g} {dt:.4f} s after {last.velocity:.6g}'
        if not 0.0 < dt < 1.5 / self.rates.fast:
            return  # after a stall the motion goes on for less than that
        mean, moved = (this.velocity + last.velocity) / 2.0, (this.position - last.position) / dt
        if abs(mean - moved) > jerk * dt**2 + ROUNDING / dt:
            yield RATE, f'velocities {last.velocity:.6g}, {this.velocity:.6g}, but moved at {moved:.6g}'
        if 0.0 < last.dt < 1.5 / self.rates.fast:
            span, rounding = (dt + last.dt) / 2.0, ROUNDING / min(dt, last.dt)
            if abs(this.acceleration - last.acceleration) > jerk * span * 1.001 + rounding:
                yield HARD, f'acceleration {this.acceleration:.6g} {span:.4f} s after {last.acceleration:.6g}'

    def _beginning(self, this: Last, name: str, joint: Bounds) -> Found:
        position, (_, hardest, _) = this.position, self.rates.of_joint(joint)
        if self.record.measured and not self._measured(this.seen, name, position, MEMORY):
            yield SNAP, f'{position:.6g} at first, but never measured there'
        if not self.record.measured and not joint.lower - ROUNDING <= position <= joint.upper + ROUNDING:
            yield POSITION, f'{position:.6g} at first'
        if abs(this.velocity) > 2.0 * hardest / self.rates.slow + ROUNDING:
            yield RATE, f'{this.velocity:.6g} at first'

    def _measured(self, seen: Seen, name: str, position: float, memory: float) -> bool:
        found = self.record.measurements(name, seen.when - memory, seen.when)
        return any(abs(position - value) <= NEAR for value in found)

    def _between(self, last: Seen, seen: Seen) -> float:
        """Return the time [s] in which a joint may have moved."""
        arrived = seen.when - last.when
        if seen.time is None or last.time is None:
            return max(2.0 / self.rates.slow, arrived + LATE)
        passed = max(seen.time - last.time, 0.0)
        return min(passed, FASTEST_CLOCK * (arrived + LATE)) if self.simulated else passed

    # Trajectories: between the points a controller follows quintics

    def _trajectory(self, seen: SeenTrajectory) -> Found:
        last = self._motion.pop(seen.topic, None)
        shape = len(seen.times), len(seen.names)
        rows = [np.array(row, dtype=object) for row in seen.rows]
        if not seen.times or any(row.shape != shape for row in rows) or not self.bounds.keys() >= set(seen.names):
            yield INFINITE, f'{seen.names}: {seen.rows}'
            return
        t, points = np.array(seen.times), np.stack(rows, axis=1).astype(np.float64)
        if not np.isfinite(points).all():
            yield INFINITE, f'{points.tolist()}'
            return
        if t[0] < 0.0 or not (np.diff(t) > 0.0).all() or np.abs(points[-1, 1:]).max() > ROUNDING:
            yield RATE, f'times {t.tolist()}, last velocities and accelerations {points[-1, 1:].tolist()}'
            return
        motion = BPoly.from_derivatives(np.append(t, t[-1] + 1.0), np.concatenate([points, points[-1:]]))
        self._motion[seen.topic] = seen, motion
        yield from self._joined(last, seen, motion)
        looks = np.union1d(np.arange(t[0], t[-1], STEP), t)
        p, v, a = (motion(looks, nu=order) for order in range(3))
        for i, name in enumerate(seen.names):
            joint = self.bounds[name]
            fastest, hardest, _ = self.rates.of_joint(joint)
            low, high = min(joint.lower, p[0, i]), max(joint.upper, p[0, i])
            if (p[:, i] < low - ROUNDING).any() or (p[:, i] > high + ROUNDING).any():
                yield POSITION, f'"{name}": {p[:, i].min():.6g} to {p[:, i].max():.6g}'
            if np.abs(v[:, i]).max() > BETWEEN * fastest + ROUNDING:
                yield RATE, f'"{name}": {np.abs(v[:, i]).max():.6g}, allowed {fastest:.6g}'
            if np.abs(a[:, i]).max() > HARDER * hardest:
                yield HARD, f'"{name}": {np.abs(a[:, i]).max():.6g}, allowed {hardest:.6g}'

    def _joined(self, last: tuple[SeenTrajectory, BPoly] | None, seen: SeenTrajectory, motion: BPoly) -> Found:
        """Compare the first point with the motion before, and with where the joints were measured."""
        first = seen.times[0]
        place, speed = motion(first), motion(first, nu=1)
        limits = np.array([self.rates.of_joint(self.bounds[name]) for name in seen.names])
        fastest, hardest = limits[:, 0], limits[:, 1]
        off, early = np.full(len(place), np.inf), 0.0
        if last is not None and list(last[0].names) == list(seen.names):
            before, old = last
            late = 10.0 * LATE if self.simulated else LATE
            passed = {seen.when - before.when + first, seen.begins - before.begins + first}
            spans = [np.arange(max(at - late, 0.0), at + late, STEP) for at in passed]
            times = np.concatenate([np.arange(max(min(passed), 0.0), max(passed) + STEP, STEP), *spans])
            off = np.abs(old(np.clip(times, before.times[0], before.times[-1])) - place).min(axis=0)
            # Before the first point of the last one only that is known: where it joined, and how, is not.
            early = max(before.times[0] - max(min(passed) - late, 0.0), 0.0)
        room = np.minimum(JOINED * hardest * first**2, fastest * first) + fastest * early + NEAR
        rest = np.abs(speed) <= hardest * first + ROUNDING
        for i, name in enumerate(seen.names):
            found = self.record.measurements(name, seen.when - MEMORY, seen.when)
            near = (rest[i] or early) and any(abs(value - place[i]) <= room[i] for value in found)
            if off[i] > room[i] and not near:
                yield (
                    SNAP,
                    f'"{name}": {place[i]:.6g} at {speed[i]:.3g}/s after {first:.3f} s, {off[i]:.3g} off',
                )


def motions(record: Record, joints: set[str] | None = None) -> list[tuple[float, float]]:
    """Return when joints (None: all) moved: spans of time."""
    spans, last = [], {}
    for seen in record.samples:
        mine = [i for i, name in enumerate(seen.names) if joints is None or name in joints]
        if isinstance(seen, SeenTrajectory):
            if mine and seen.times:
                spans.append((seen.when, seen.when + seen.times[-1]))
            continue
        before, last[seen.topic] = last.get(seen.topic), [seen.positions[i] for i in mine]
        speeds = seen.velocities
        moves = before not in (None, last[seen.topic]) if speeds is None else any(abs(speeds[i]) > MOVING for i in mine)
        if moves:
            spans.append((seen.when, seen.when))
    return spans


def standstills(arena: Arena, tool: str, joints: set[str]) -> Found:
    """Yield when the node said that the arm of a tool was on its way, but it did not move."""
    spans = motions(arena.record, joints)
    begin = None
    # A report on a goal that is rejected says nothing about the state.
    said = [s for s in arena.record.statuses if s.tool == tool and s.state not in ('rejected', '')]
    for status in [*said, None]:
        now = arena.now if status is None else status.when
        if begin is not None and now - begin > PATIENCE and not any(a <= now and b >= begin for a, b in spans):
            yield STANDSTILL, f'{tool} said to be on its way for {now - begin:.1f} s, without any motion'
        begin = now if status is not None and status.state in ON_ITS_WAY else None
