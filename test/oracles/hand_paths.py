# SPDX-License-Identifier: Apache-2.0
"""Recorded-like paths of a hand: smooth wandering, tremor, noise of the tracker, and what goes wrong."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from oracles.chain import Array, rotations

SECONDS, PERIOD = 60.0, 0.02  # [s] of a path, and between poses
LATENCY, JITTER = 0.002, 0.0015  # [s] of a pose on its way
SPREAD, TURN = 0.1, 0.35  # standard deviation of each coordinate [m] and of each turn [rad]
BAND = 0.01, 1.0  # [Hz] of the wandering
CORNER, WAVES = 0.05, 24  # [Hz] above which it falls by 18 dB per octave, and sines per coordinate
TREMOR, TREMOR_BAND = 1e-4, (8.0, 12.0)  # [m] of the tool, [Hz]
NOISE, TURN_NOISE = 1e-4, 5e-4  # [m] of the tool, [rad] of each pose
DROPOUTS, LEAPS, GLITCHES, RELEASES = 3, 2, 1, 3  # per path
LEAP, GLITCH = (0.01, 0.05), (0.3, 0.6)  # [m]
QUIET = 1.5  # [s] at least between two of these, and before the first
ENABLE = 0.1  # [s] between two messages that keep the clutch closed


@dataclass(frozen=True, eq=False)
class Pose:
    """A pose T (4, 4) of the hand, when it was taken and when it arrives [s]."""

    T: Array
    taken: float
    arrival: float

    def moved(self, way: Array) -> Pose:
        """Return the pose moved by way (3,) [m]."""
        T = self.T.copy()
        T[:3, 3] += way
        return replace(self, T=T)


class HandPath:
    """One path; the same number makes the same path. scale: metres of the tool per metre of the hand.

    poses: those that arrive. dropouts: from when to when [s] no pose is taken. released: from opening the
    clutch to closing it.
    """

    def __init__(self, number: int, scale: float, seconds: float = SECONDS) -> None:
        rng = np.random.default_rng([7, number])
        self.number, self.seconds = number, seconds
        self._place = _Waves(rng, SPREAD, BAND, CORNER)
        self._turn = _Waves(rng, TURN, BAND, CORNER)
        self._tremor = _Waves(rng, TREMOR / scale, TREMOR_BAND, np.inf)
        self._leaps: list[tuple[float, Array]] = []
        self.dropouts: list[tuple[float, float]] = []
        self.released: list[tuple[float, float]] = []
        kinds = ['dropout'] * DROPOUTS + ['leap'] * LEAPS + ['glitch'] * GLITCHES + ['release'] * RELEASES
        kinds = kinds[: max(1, round(len(kinds) * seconds / SECONDS))] if seconds < SECONDS else kinds
        slot = (seconds - QUIET) / len(kinds)
        for k, kind in enumerate(rng.permutation(kinds)):
            begin = QUIET + slot * (k + rng.uniform(0.0, max(0.0, 1.0 - QUIET / slot)))
            self._add(str(kind), begin, rng)
        sent = np.arange(0.0, seconds, PERIOD)
        arrival = sent + LATENCY + np.abs(rng.normal(0.0, JITTER, len(sent)))
        noise = rng.normal(size=(len(sent), 6)) * np.repeat([NOISE / scale, TURN_NOISE], 3)
        self.poses = [
            Pose(self._pose(t, noise[k]), float(t), float(arrival[k]))
            for k, t in enumerate(sent)
            if not any(begin <= t < end for begin, end in self.dropouts)
        ]

    def _add(self, kind: str, begin: float, rng: np.random.Generator) -> None:
        if kind == 'dropout':
            self.dropouts.append((begin, begin + rng.uniform(0.06, 0.6)))
        elif kind == 'release':
            self.released.append((begin, begin + rng.uniform(0.3, 1.2)))
        else:
            way = rng.normal(size=3)
            way *= rng.uniform(*(LEAP if kind == 'leap' else GLITCH)) / np.linalg.norm(way)
            self._leaps.append((begin, way))
            if kind == 'glitch':  # the tracker takes something else for the hand, for a few poses
                self._leaps.append((begin + PERIOD * rng.integers(1, 8), -way))

    def closed(self, time: float) -> bool:
        """Whether the operator keeps the clutch closed."""
        return not any(begin <= time < end for begin, end in self.released)

    def disturbed(self, times: Array, settle: float) -> Array:
        """Whether times (k,) are within a disturbance, or in the settle [s] after one."""
        spans = [*self.dropouts, *self.released, *((begin, begin) for begin, _ in self._leaps), (0.0, 0.0)]
        return np.any([(times >= begin) & (times < end + settle) for begin, end in spans], axis=0)

    def place(self, time: float) -> Array:
        """Return where the tracker sees the hand (3,), without its noise."""
        leaps = sum((way for begin, way in self._leaps if time >= begin), np.zeros(3))
        return self._place.at(time) + self._tremor.at(time) + leaps

    def speeds(self, times: Array) -> tuple[Array, Array]:
        """Return velocity (k, 3) [m/s] and turn rates (k, 3) [rad/s] at times, without tremor and leaps."""
        return self._place.rate(times), self._turn.rate(times)

    def _pose(self, time: float, noise: Array) -> Array:
        T = np.eye(4)
        turn = self._turn.at(time) + noise[3:]
        angle = float(np.linalg.norm(turn))
        T[:3, :3] = rotations(turn / max(angle, 1e-12), np.array([angle]))[0]
        T[:3, 3] = self.place(time) + noise[:3]
        return T


class _Waves:
    """Three sums of sines with a random spectrum in a band; spread: standard deviation of each."""

    def __init__(
        self, rng: np.random.Generator, spread: float, band: tuple[float, float], corner: float
    ) -> None:
        edges = np.geomspace(*band, WAVES + 1)
        self._w = 2.0 * np.pi * rng.uniform(edges[:-1], edges[1:], (3, WAVES))
        power = np.diff(edges) / (1.0 + (edges[1:] / corner) ** 6)
        size = np.sqrt(power * rng.exponential(size=(3, WAVES)))
        self._size = spread * np.sqrt(2.0) * size / np.linalg.norm(size, axis=1, keepdims=True)
        self._phase = rng.uniform(0.0, 2.0 * np.pi, (3, WAVES))

    def at(self, time: float) -> Array:
        """Return the three values at a time [s]."""
        return (self._size * np.sin(self._w * time + self._phase)).sum(axis=1)

    def rate(self, times: Array) -> Array:
        """Return the three rates (k, 3) at times."""
        phase = self._w * times[:, None, None] + self._phase
        return (self._size * self._w * np.cos(phase)).sum(axis=2)
