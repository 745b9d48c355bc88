"""What takes the commands of an arm: every output is one of these."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from ik_node.checks import Vector


@dataclass(frozen=True, eq=False)
class Sample:
    """Positions and velocities (m,) [rad or m, per second] of the joints called names at time [s].

    arrival: when the goal came that this is the first sample of (time.perf_counter), else None.
    """

    time: float
    names: tuple[str, ...]
    positions: Vector
    velocities: Vector
    arrival: float | None = None


@dataclass(frozen=True, eq=False)
class Plan:
    """A motion of the joints called names to rest.

    at(t) gives position and velocity, n numbers each, for t from 0 to duration [s].
    """

    names: tuple[str, ...]
    duration: float
    at: Callable[[float], tuple[Sequence[float], Sequence[float]]]


class Output(Protocol):
    """Takes plans, samples, or both; what it has no use for it ignores."""

    def planned(self, plan: Plan) -> None:
        """Take a new plan: it replaces the one before."""

    def sampled(self, sample: Sample) -> None:
        """Take the next sample of the motion."""
