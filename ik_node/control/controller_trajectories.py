"""Trajectories for controllers that interpolate on their own, from the plans of an arm.

A controller that replaces one trajectory by another joins the first point of the new one from where it is
then. It runs LAG behind the samples, so that it is still where both plans agree when the new one arrives, if
it is the next one; of a stream of goals not every plan is sent. The time that messages take varies, so the
first point must not be too near nevertheless. Between the points it follows quintics: at the knots of a plan,
these are the plan. The join is not: it skips the knots of both plans, so that it may exceed the limits that
both keep. Hence several joins are compared, and the controller may fall back farther if none does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ik_node.checks import Array
from ik_node.control.gate import PLANNED
from ik_node.control.joint_trajectory import JointTrajectory
from ik_node.control.motion_ahead import Plan
from ik_node.control.trajectory import Trajectory

if TYPE_CHECKING:
    from ik_node.control.outputs import Sample

LAG = (
    0.02  # [s] of a controller behind the samples: a new plan begins up to this long before its first sample
)
JOINS = (0.08, 0.07, 0.09, 0.06, 0.1, 0.05, 0.12)  # [s] from a moving arm to the first point, best first
WAITS = (0.0, 0.01, 0.02, 0.03, 0.05)  # [s] that a controller may fall back farther, to join within limits
START = 0.02  # [s] from an arm at rest to the first point
SPACING = 1e-4  # [s] at least between two points
WINDOW = 0.02  # [s] at least between two trajectories, unless the arm brakes
HALT = 0.3  # [s] within which a controller ends a motion that is void
LOOKS = np.linspace(0.0, 1.0, 17)[1:]  # shares of a join at which its velocity and acceleration are compared
GOOD = 1.0 + 1e-3  # share of their limits that is good enough


def point_times(plan: Plan, join: float, lag: float) -> list[float]:
    """Return the times [s] of the points of a trajectory: lag behind those of the plan, and join at least."""
    knots = [knot + lag for knot in plan.knots()]
    end = max(plan.duration + lag, join)
    times = [join] if end > join else []
    for knot in knots:
        if (times[-1] if times else join) + SPACING <= knot <= end - SPACING:
            times.append(knot)
    return [*times, end]


class Trajectories:
    """Decides when the trajectory of a controller is replaced, and by which.

    ends: when the last one ends [s].
    """

    def __init__(self) -> None:
        self._forget()

    def _forget(self) -> None:
        self._due = False  # the plan has changed since the last trajectory
        self._urgent = False
        self._sent = self.ends = -np.inf  # when the last trajectory was sent, and when it ends [s]
        self._running: JointTrajectory | None = None  # that one
        self._last: Sample | None = None
        # The same before the last one was sent.
        self._undone: tuple[float, float, JointTrajectory | None, bool] = -np.inf, -np.inf, None, False
        self._before: Mapping[str, tuple[float, float]] = {}  # the sample before the last one

    def due(self, sample: Sample, moving: bool, braking: bool) -> bool:
        """Whether a new trajectory has to be sent: for each new plan, at most once per WINDOW.

        A motion that only brakes is sent at once.
        """
        now = sample.time
        if self._last is not None:
            back = max(self._last.time - now, 0.0)  # the clock was set back: the controller's was not
            self._sent, self.ends = self._sent - back, self.ends - back
            self._before = self._last.named()
        self._last = sample
        if sample.replanned:
            self._due, self._urgent = True, braking
        return self._due and not (moving and now < self._sent + WINDOW and not self._urgent)

    def next(self, sample: Sample, plan: Plan) -> JointTrajectory:
        """Return the trajectory from where the controller is to the end of a plan."""
        start = self._expected(sample)
        if plan.duration <= 0.0:  # the motion has ended in the meantime
            return _stand(sample, JOINS[0], start, sample.named())
        pairs = [(join, LAG + wait) for wait in WAITS for join in JOINS]
        if sample.time >= self.ends:
            pairs = [(START, LAG), *pairs]
        join, lag = _best_join(sample, plan, start, pairs)
        times = point_times(plan, join, lag)
        states = np.array([_state(sample, plan, time - lag) for time in times])
        states[-1, 1:] = 0.0
        return JointTrajectory(
            sample.controller, np.array(times), states[:, 0], states[:, 1], states[:, 2], start, plan.braking
        )

    def sent(self, trajectory: JointTrajectory) -> None:
        """Note that a trajectory goes out with the last sample."""
        assert self._last is not None
        self._undone = self._sent, self.ends, self._running, self._urgent
        self._due = self._urgent = False
        self._running = trajectory
        self._sent, self.ends = self._last.time, self._last.time + trajectory.duration

    @property
    def replaces(self) -> bool:
        """Whether the last trajectory replaces one that is under way."""
        return self._last is not None and self._last.time < self._undone[1]

    def withdraw(self) -> None:
        """Forget the last trajectory, which was not sent."""
        self._sent, self.ends, self._running, self._urgent = self._undone
        self._due = True

    def delivered(self, late: float) -> None:
        """Note that the controller has got the last trajectory late [s] after its sample."""
        self._sent, self.ends = self._sent + max(late, 0.0), self.ends + max(late, 0.0)

    def under_way(self, time: float) -> bool:
        """Whether the controller moves at time [s]."""
        return self._sent <= time < self.ends

    def halted(self, measured: Mapping[str, float]) -> JointTrajectory | None:
        """Return the trajectory that holds the joints as measured, None if none is under way.

        Joints that are not measured stop on their way.
        """
        last, running = self._last, self._running
        if last is None or running is None or last.time >= self.ends:
            self._forget()
            return None
        start = self._expected(last)
        half = np.array([last.time - self._sent + HALT / 2.0])
        places = dict(zip(running.names, running.motion.sampled(half)[0, 0].tolist(), strict=True))
        stops = {name: (places.get(name, place), 0.0) for name, (place, _) in last.named().items()}
        stops.update({name: (place, 0.0) for name, place in measured.items()})
        stand = replace(_stand(last, HALT, start, stops), braking=True)
        self._forget()
        return stand

    def _expected(self, sample: Sample) -> Array:
        """Return position, velocity and acceleration (3, n) of the controller when a message arrives."""
        running = self._running
        if running is not None and running.names == sample.controller:  # it stays where that ends
            return np.asarray(running.motion.sampled(np.array([sample.time - self._sent]))[:3, 0])
        places = {**sample.named(), **self._before}
        rest = np.zeros((3, len(sample.controller)))
        rest[0] = [places[name][0] for name in sample.controller]
        return rest


def _state(sample: Sample, plan: Plan, time: float) -> Array:
    """Return position, velocity and acceleration (3, n) of the joints sent, at a time of a plan [s]."""
    states = {name: (place, 0.0, 0.0) for name, (place, _) in sample.named().items()}
    states.update(zip(plan.names, np.transpose(plan.at(time)).tolist(), strict=True))
    return np.transpose([states[name] for name in sample.controller])


def _best_join(
    sample: Sample, plan: Plan, start: Array, pairs: Sequence[tuple[float, float]]
) -> tuple[float, float]:
    """Return when [s] a controller joins a plan and how far behind it: the first of pairs within the limits.

    If there is none, that which exceeds them least.
    """
    limits = dict(
        zip(plan.names, np.transpose([plan.velocity, plan.acceleration / PLANNED]).tolist(), strict=True)
    )
    most = np.transpose([limits.get(name, (np.inf, np.inf)) for name in sample.controller])[:, None]
    shares = []
    for join, lag in pairs:
        ends = np.stack([start, _state(sample, plan, join - lag)], axis=1)
        piece = Trajectory(np.array([0.0, join]), *ends).sampled(LOOKS * join)[1:3]
        shares.append(float((np.abs(piece) / most).max()))
        if shares[-1] <= GOOD:
            break
    return pairs[int(np.argmin(shares))]


def _stand(
    sample: Sample, duration: float, start: Array, places: Mapping[str, tuple[float, float]]
) -> JointTrajectory:
    """Return the trajectory that rests at places by name after a duration [s]."""
    row = np.array([[places[name][0] for name in sample.controller]])
    rest = np.zeros_like(row)
    return JointTrajectory(sample.controller, np.array([duration]), row, rest, rest, start)
