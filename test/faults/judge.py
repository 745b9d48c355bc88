# SPDX-License-Identifier: Apache-2.0
"""Judge: checks every sample that the node publishes. It shares no code with ik_node.

Bounds follow from the URDF and the parameters in force: where these change, the widest of them count. A
sample without a stamp is compared by the time when it was sent, and its acceleration is not judged.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from faults.record import Record, Seen
from faults.robots import JointBounds

POSITION, RATE, HARD, INFINITE, SNAP = 'position', 'velocity', 'acceleration', 'NaN', 'snap-back'
ROUNDING = 1e-5  # [rad, m, and per second]; accelerations and jerks by more, see below
SILENCE = 0.03  # [s] after which a command may begin anew, where the joint was measured
NEAR = 5e-3  # [rad, m] from a measurement
MEMORY = 3.0  # [s] for which a measurement may be the one that the arm was placed by
FRESH = 0.3  # [s] the same, where the arm was placed anew without a silence
LATE = 0.1  # [s] by which messages may be late on their way here
FASTEST_CLOCK = 5.0  # times the real time, at most, between jumps of a simulated clock


@dataclass(frozen=True)
class Violation:
    """A sample that must not have been published: when, and a sentence."""

    kind: str
    time: float
    what: str


@dataclass
class Rates:
    """The parameters that bound the motion: the largest that were in force; the slowest and fastest rate."""

    speed: float = 0.5
    acceleration: float = 5.0
    jerk: float = 50.0
    linear_acceleration: float = 1.0
    linear_jerk: float = 10.0
    slow: float = 100.0  # [Hz]
    fast: float = 100.0

    # By parameter: the field here, and the largest value that is allowed.
    NAMES: ClassVar[dict[str, tuple[str, float]]] = {
        'speed_scaling': ('speed', 1.0),
        'max_acceleration': ('acceleration', 1e4),
        'max_jerk': ('jerk', 1e6),
        'max_linear_acceleration': ('linear_acceleration', 1e4),
        'max_linear_jerk': ('linear_jerk', 1e6),
    }

    def widen(self, values: Mapping[str, object]) -> None:
        """Take values that parameters may have from now on."""
        for name, value in values.items():
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
                continue
            if name in self.NAMES:
                mine, most = self.NAMES[name]
                if value <= most:
                    setattr(self, mine, max(getattr(self, mine), float(value)))
            elif name == 'publish_rate' and 1.0 <= value <= 1000.0:
                self.slow, self.fast = min(self.slow, float(value)), max(self.fast, float(value))


@dataclass
class Last:
    """The last sample of a joint on a topic; acceleration: mean since the one before, over dt."""

    seen: Seen
    position: float
    velocity: float
    acceleration: float = 0.0
    dt: float = 0.0


@dataclass
class SampleJudge:
    """Looks at samples in their order, joint by joint.

    picture: a topic that nobody carries out, beside trajectories. Where a controller gets those too late, the
    picture goes on from where the controller is, which is a step: only positions and velocities are judged.
    """

    bounds: dict[str, JointBounds]
    record: Record
    simulated: bool
    picture: str = ''
    rates: Rates = field(default_factory=Rates)
    _last: dict[tuple[str, str], Last] = field(default_factory=dict)

    def judge(self, seen: Seen) -> Iterator[Violation]:
        """Yield what is wrong with a sample."""
        sizes = {len(seen.names), len(seen.positions)}
        if len(sizes) > 1 or (seen.velocities is not None and len(seen.velocities) not in sizes):
            yield Violation(INFINITE, seen.when, f'{seen.topic}: {len(seen.names)} names, {seen.positions}')
            return
        speeds = [0.0] * len(seen.names) if seen.velocities is None else seen.velocities
        for name, position, velocity in zip(seen.names, seen.positions, speeds, strict=True):
            for kind, what in self._joint(seen, name, position, velocity):
                yield Violation(kind, seen.when, f'{seen.topic}, joint "{name}": {what}')

    def _joint(self, seen: Seen, name: str, position: float, velocity: float) -> Iterator[tuple[str, str]]:
        bounds, key = self.bounds.get(name), (seen.topic, name)
        if bounds is None or not (math.isfinite(position) and math.isfinite(velocity)):
            yield INFINITE, f'{position}, {velocity} (known joint: {bounds is not None})'
            return
        last = self._last.get(key)
        self._last[key] = Last(seen, position, velocity)
        if last is None or any(last.seen.when <= life <= seen.when for life in self.record.lives):
            yield from self._beginning(seen, name, position, velocity, bounds)
            return
        if not self.record.measured and velocity == 0.0 and self._described(seen):
            yield from self._beginning(seen, name, position, velocity, bounds)  # the picture of another robot
            return
        found = list(self._continued(last, self._last[key], bounds))
        silent = max(seen.when - last.seen.when, (seen.time or 0.0) - (last.seen.time or 0.0))
        memory = MEMORY if silent >= SILENCE else FRESH if velocity == 0.0 else 0.0
        if found and memory and self._measured(seen, name, position, memory):
            found = list(self._beginning(seen, name, position, velocity, bounds))
        yield from found

    def _continued(self, last: Last, this: Last, bounds: JointBounds) -> Iterator[tuple[str, str]]:
        """Compare a sample of a joint with the one before."""
        position, velocity = this.position, this.velocity
        low, high = min(bounds.lower, last.position), max(bounds.upper, last.position)
        if not low - ROUNDING <= position <= high + ROUNDING:
            yield POSITION, f'{position:.6g} after {last.position:.6g}, allowed {low:.6g} to {high:.6g}'
        fastest = self.rates.speed * bounds.velocity
        if abs(velocity) > fastest + ROUNDING:
            yield RATE, f'velocity {velocity:.6g}, allowed {fastest:.6g}'
        if this.seen.topic == self.picture:
            return
        dt = self._between(last.seen, this.seen)
        if abs(position - last.position) > fastest * dt + ROUNDING:
            rates = f'velocities {last.velocity:.6g}, {velocity:.6g}'
            yield SNAP, f'{position:.6g} {dt:.4f} s after {last.position:.6g}, {rates}'
        elif this.seen.velocities is not None:
            this.acceleration = (velocity - last.velocity) / dt if dt > 0.0 else last.acceleration
            this.dt = dt
            yield from self._hard(last, this, bounds)

    def _hard(self, last: Last, this: Last, bounds: JointBounds) -> Iterator[tuple[str, str]]:
        rates, dt = self.rates, this.dt
        hardest = rates.linear_acceleration if bounds.prismatic else rates.acceleration
        jerkiest = rates.linear_jerk if bounds.prismatic else rates.jerk
        gain = this.velocity - last.velocity
        if abs(gain) > hardest * dt * (1.0 + 1e-6) + ROUNDING:
            yield HARD, f'velocity {this.velocity:.6g} {dt:.4f} s after {last.velocity:.6g}'
        if not 0.0 < dt < 1.5 / rates.fast:
            return  # after a stall the motion goes on for less than that
        mean, found = (this.velocity + last.velocity) / 2.0, (this.position - last.position) / dt
        if abs(mean - found) > jerkiest * dt**2 + ROUNDING / dt:
            yield RATE, f'velocities {last.velocity:.6g}, {this.velocity:.6g}, but moved at {found:.6g}'
        if 0.0 < last.dt < 1.5 / rates.fast:
            span = (dt + last.dt) / 2.0
            rounding = ROUNDING / min(dt, last.dt)
            if abs(this.acceleration - last.acceleration) > jerkiest * span * 1.001 + rounding:
                yield HARD, f'acceleration {this.acceleration:.6g} {span:.4f} s after {last.acceleration:.6g}'

    def _beginning(
        self, seen: Seen, name: str, position: float, velocity: float, bounds: JointBounds
    ) -> Iterator[tuple[str, str]]:
        if self.record.measured and not self._measured(seen, name, position):
            yield SNAP, f'{position:.6g} at first, but never measured there'
        if not self.record.measured and not bounds.lower - ROUNDING <= position <= bounds.upper + ROUNDING:
            yield POSITION, f'{position:.6g} at first'
        hardest = self.rates.linear_acceleration if bounds.prismatic else self.rates.acceleration
        if abs(velocity) > 2.0 * hardest / self.rates.slow + ROUNDING:
            yield RATE, f'{velocity:.6g} at first'

    def _measured(self, seen: Seen, name: str, position: float, memory: float = MEMORY) -> bool:
        found = self.record.recent_measurements(name, seen.when + LATE, seen.when - memory)
        return any(abs(position - value) <= NEAR for value in found)

    def _described(self, seen: Seen) -> bool:
        return any(seen.when - MEMORY <= time <= seen.when for time in self.record.descriptions)

    def _between(self, last: Seen, seen: Seen) -> float:
        """Return the time [s] in which a joint may have moved."""
        arrived = seen.when - last.when
        if seen.time is None or last.time is None:
            return max(2.0 / self.rates.slow, arrived + LATE)
        passed = max(seen.time - last.time, 0.0)
        return min(passed, FASTEST_CLOCK * (arrived + LATE)) if self.simulated else passed


def largest(values: np.ndarray) -> float:
    """Return the largest absolute value, 0 of none."""
    return float(np.abs(values).max(initial=0.0))
