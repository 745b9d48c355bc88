"""Output: the interface of everything that receives the commands of an arm."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from ik_node.checks import Array


@dataclass(frozen=True, eq=False)
class Sample:
    """Positions and velocities (m,) [rad or m, per second] of the joints called names at time [s].

    arrival: if this is the first sample for a goal, when that was received (time.perf_counter), else None.
    """

    time: float
    names: tuple[str, ...]
    positions: Array
    velocities: Array
    arrival: float | None = None


@dataclass(frozen=True, eq=False)
class Plan:
    """A motion of the named joints to rest.

    at(t) gives position and velocity, n numbers each, for t from 0 to duration [s].
    """

    names: tuple[str, ...]
    duration: float
    at: Callable[[float], tuple[Sequence[float], Sequence[float]]]


class Output(Protocol):
    """Receives plans and samples; may ignore either."""

    def planned(self, plan: Plan) -> None:
        """Receive a new plan: it replaces the previous one."""

    def sampled(self, sample: Sample) -> None:
        """Receive the next sample of the motion."""
