"""Output: the interface of everything that receives the commands of an arm."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ik_node.checks import Array


@dataclass(frozen=True, eq=False)
class Plan:
    """The rest of a motion, from the sample that has this plan to rest.

    at(t) gives positions and velocities (n,) of the named joints t [s] after that sample; from duration on
    they are at rest. knots: times between which every joint moves by a cubic.
    braking: the motion goes nowhere, it only ends an earlier one.
    """

    names: tuple[str, ...]
    duration: float
    at: Callable[[float], tuple[Array, Array]]
    knots: Callable[[], Sequence[float]]
    braking: bool = False

    def named(self, t: float) -> dict[str, tuple[float, float]]:
        """Return position and velocity by joint name, t [s] after the sample."""
        return dict(zip(self.names, np.transpose(self.at(t)).tolist(), strict=True))


@dataclass(frozen=True, eq=False)
class Sample:
    """Positions and velocities (m,) [rad or m, per second] of the joints called names at time [s].

    controller: joints of the controller, in its order. plan: the rest of the motion, None at rest.
    replanned: the plan is new. arrival: if this is the first sample for a goal, when that
    was received (time.perf_counter), else None.
    """

    time: float
    names: tuple[str, ...]
    positions: Array
    velocities: Array
    controller: tuple[str, ...] = ()
    plan: Plan | None = None
    replanned: bool = False
    arrival: float | None = None

    def named(self) -> dict[str, tuple[float, float]]:
        """Return position and velocity by joint name."""
        pairs = zip(self.positions.tolist(), self.velocities.tolist(), strict=True)
        return dict(zip(self.names, pairs, strict=True))

    def listed(self) -> list[float]:
        """Return the positions of the joints of the controller."""
        places = dict(zip(self.names, self.positions.tolist(), strict=True))
        return [places[name] for name in self.controller]


class Output:
    """Receives plans and samples; may ignore any of them.

    runs_plans: what is connected carries on with a plan when no samples follow.
    """

    runs_plans = False

    def carries_on(self, time: float) -> bool:  # noqa: ARG002
        """Whether what is connected moves on at time [s] without samples."""
        return self.runs_plans

    def planned(self, plan: Plan) -> None:
        """Receive a new plan, that of the next sample: it replaces the previous one."""

    def sampled(self, sample: Sample) -> None:
        """Receive the next sample of the motion."""

    def halted(self, measured: Mapping[str, float]) -> None:
        """End whatever still moves: no sample follows, and the last plan is void.

        measured: the newest measured positions by joint name.
        """


class Outputs:
    """All outputs of an arm."""

    def __init__(self, outputs: Sequence[Output]) -> None:
        self._outputs = tuple(outputs)
        self._halted = True
        self.runs_plans = any(output.runs_plans for output in self._outputs)

    def carry_on(self, time: float) -> bool:
        """Whether a controller moves on at time [s] without samples."""
        return any(output.carries_on(time) for output in self._outputs)

    def emit(self, sample: Sample | None, measured: Callable[[], Mapping[str, float]]) -> Sample | None:
        """Pass on a sample and return it. None: commands end, with the joints as measured."""
        for output in self._outputs:
            if sample is None:
                if not self._halted:
                    output.halted(measured())
                continue
            if sample.replanned and sample.plan is not None:
                output.planned(sample.plan)
            output.sampled(sample)
        self._halted = sample is None
        return sample
