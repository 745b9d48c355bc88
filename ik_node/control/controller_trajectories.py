"""Trajectories for controllers that interpolate on their own, from the plans of an arm.

A controller that replaces one trajectory by another joins the first point of the new one from where it is
then. It runs LAG behind the samples, so that it is still where both plans agree when the new one arrives, if
it is the next one; of a stream of goals not every plan is sent. The time that messages take varies, so the
first point must not be too near nevertheless. Between the points it follows quintics: at the knots of a plan,
these are the plan. The join is not: it skips the knots of both plans, so that it may exceed the limits that
both keep. Hence several joins are compared. If none is within the limits, the controller has fallen behind:
then the plan is made anew, from where the controller is.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

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
START = 0.02  # [s] from an arm at rest to the first point
SPACING = 1e-4  # [s] at least between two points
WINDOW = 0.02  # [s] at least between two trajectories, unless the arm brakes
# [s] to end a motion that is void: the first that keeps the limits
HALTS = (0.3, 0.4, 0.5, 0.65, 0.8, 1.0, 1.25, 1.6, 2.0, 2.5, 3.2, 4.0, 5.0)
LOOKS = np.linspace(0.0, 1.0, 17)[1:]  # shares of a join at which its velocity and acceleration are compared
GOOD = 1.0 + 1e-3  # share of their limits that is good enough
REFUSED = 0.5  # [s] for which joins may be refused: the controller follows its last trajectory meanwhile


def point_times(plan: Plan, join: float) -> list[float]:
    """Return the times [s] of the points of a trajectory: LAG behind those of the plan, and join at least.

    Of knots that are nearer than SPACING, that next to the longer piece stays: an acceleration that ends at
    the other one would count for as long as that piece lasts.
    """
    knots = [knot + LAG for knot in plan.knots()]
    end = max(plan.duration + LAG, join)
    times = [join]
    for knot, following in itertools.pairwise([*knots, end]):
        if times[-1] + SPACING <= knot <= end - SPACING:
            times.append(knot)
        elif times[-1] < knot <= end - SPACING and following - knot > times[-1] - ([0.0, *times])[-2]:
            times[-1] = knot
    return [*(time for time in times if time <= end - SPACING), end]


class _Sent(NamedTuple):
    """A trajectory and the time [s] at which its controller began it."""

    trajectory: JointTrajectory
    time: float

    @property
    def ends(self) -> float:
        return self.time + self.trajectory.duration


def _end(sent: _Sent | None) -> float:
    return -np.inf if sent is None else sent.ends


class Trajectories:
    """Decides when the trajectory of a controller is replaced, and by which.

    alone: the samples themselves do not go out.
    """

    def __init__(self, alone: bool = True) -> None:
        self._alone = alone
        self._forget()

    def _forget(self) -> None:
        self._due = False  # the plan has changed since the last trajectory
        self._urgent = False
        self._running: _Sent | None = None
        self._late = 0.0  # how long it took to send that [s]: so long may the next one take
        self._limits: dict[str, tuple[float, float]] = {}  # of velocity and acceleration
        self._refused: float | None = None  # since when no trajectory can be joined [s]
        self._last: Sample | None = None
        self._undone: tuple[_Sent | None, bool] = None, False  # _running and _urgent before that was sent
        self._before: Mapping[str, tuple[float, float]] = {}  # the sample before the last one

    @property
    def ends(self) -> float:
        """When the last trajectory ends [s]."""
        return _end(self._running)

    def due(self, sample: Sample, moving: bool, braking: bool) -> bool:
        """Whether a new trajectory has to be sent: for each new plan, at most once per WINDOW.

        A motion that only brakes is sent at once.
        """
        now = sample.time
        if self._last is not None:
            self._shift(-max(self._last.time - now, 0.0))  # the clock was set back: the controller's was not
            self._before = self._last.named()
        self._last = sample
        if sample.replanned:
            self._due, self._urgent = True, braking
        early = self._running is not None and now < self._running.time + WINDOW
        return self._due and not (moving and early and not self._urgent)

    def next(self, sample: Sample, plan: Plan) -> tuple[JointTrajectory, bool]:
        """Return the trajectory from where the controller is to the end of a plan.

        And whether it can be joined within the limits.
        """
        start = self._expected(sample)
        limits = zip(plan.velocity, plan.acceleration / PLANNED, strict=True)
        self._limits.update(zip(plan.names, limits, strict=True))
        join, share = self._best_join(sample, plan, start)
        times = point_times(plan, join)
        states = _states(sample, plan, times)
        states[-1, 1:] = 0.0
        rows = states[:, 0], states[:, 1], states[:, 2]
        found = JointTrajectory(sample.controller, np.array(times), *rows, start, plan.braking)
        return found, share <= GOOD

    def _best_join(self, sample: Sample, plan: Plan, start: Array) -> tuple[float, float]:
        """Return when [s] a controller joins a plan, and the largest share of a limit that this takes.

        That is the first of the joins within the limits; if there is none, that which exceeds them least.
        """
        joins, shares = JOINS if sample.time < self.ends else (START, *JOINS), []
        most = self._most(sample)
        for join in joins:
            shares.append(_share(start, _states(sample, plan, [join])[0], join, most))
            if shares[-1] <= GOOD:
                break
        return joins[int(np.argmin(shares))], min(shares)

    def _most(self, sample: Sample) -> Array:
        """Return the limits of velocity and acceleration (2, n) of the joints sent."""
        return np.transpose([self._limits.get(name, (np.inf, np.inf)) for name in sample.controller])

    def ahead(self, sample: Sample) -> dict[str, tuple[float, float, float]]:
        """Return where a plan would be, by joint name, that the controller can join without any effort.

        That is its position, velocity and acceleration LAG after the trajectory of the sample arrives. Empty
        if the samples themselves go out too.
        """
        if not self._alone:
            return {}
        states = self._expected(sample, LAG).T.tolist()
        return {name: tuple(state) for name, state in zip(sample.controller, states, strict=True)}

    def sent(self, trajectory: JointTrajectory) -> None:
        """Note that a trajectory goes out with the last sample."""
        assert self._last is not None
        self._undone = self._running, self._urgent
        self._due = self._urgent = False
        self._refused = None
        self._running = _Sent(trajectory, self._last.time)

    def refused(self) -> bool:
        """Note that the trajectory of the last sample cannot be joined; return whether others may be yet."""
        assert self._last is not None
        if self._refused is None or self._refused > self._last.time:
            self._refused = self._last.time
        return self._last.time <= self._refused + REFUSED

    @property
    def replaces(self) -> bool:
        """Whether the last trajectory replaces one that is under way."""
        return self._last is not None and self._last.time < _end(self._undone[0])

    def withdraw(self) -> None:
        """Forget the last trajectory, which was not sent."""
        self._running, self._urgent = self._undone
        self._due = True

    def delivered(self, late: float) -> None:
        """Note that the controller has got the last trajectory late [s] after its sample."""
        self._late = max(late, 0.0)
        self._shift(self._late)

    def _shift(self, seconds: float) -> None:
        if self._running is not None:
            self._running = self._running._replace(time=self._running.time + seconds)

    def under_way(self, time: float) -> bool:
        """Whether the controller moves at time [s]."""
        return self._running is not None and self._running.time <= time < self._running.ends

    def halted(self, measured: Mapping[str, float]) -> JointTrajectory | None:
        """Return the trajectory that holds the joints as measured, None if none is under way.

        The controller goes there within its limits if it is where the last trajectory leads, and also if it
        is at rest where the joints are. Joints that are not measured stop on their way.
        """
        last, running = self._last, self._running
        if last is None or running is None or last.time >= self.ends:
            self._forget()
            return None
        start = self._expected(last)
        half = np.array([last.time - running.time + HALTS[0] / 2.0])
        stops = {name: place for name, (place, _) in last.named().items()}
        stops.update(
            zip(running.trajectory.names, running.trajectory.motion.sampled(half)[0, 0].tolist(), strict=True)
        )
        stops.update(measured)
        rest = np.zeros((3, len(last.controller)))
        rest[0] = [stops[name] for name in last.controller]
        most = self._most(last)
        duration = next((time for time in HALTS if _share(start, rest, time, most) <= 1.0), HALTS[-1])
        self._forget()
        place, still = rest[:1], rest[1:2]
        return JointTrajectory(
            last.controller, np.array([duration]), place, still, still, start, braking=True
        )

    def _expected(self, sample: Sample, after: float = 0.0) -> Array:
        """Return position, velocity and acceleration (3, n) of the controller after [s] a message arrives."""
        running = self._running
        if running is not None and running.trajectory.names == sample.controller:  # it stays where that ends
            passed = sample.time + self._late + after - running.time
            return np.asarray(running.trajectory.motion.sampled(np.array([passed]))[:3, 0])
        places = {**sample.named(), **self._before}
        rest = np.zeros((3, len(sample.controller)))
        rest[0] = [places[name][0] for name in sample.controller]
        return rest


def _states(sample: Sample, plan: Plan, times: Sequence[float]) -> Array:
    """Return position, velocity and acceleration (k, 3, n) of the joints sent, by a plan, LAG behind it."""
    moved = [(i, plan.names.index(name)) for i, name in enumerate(sample.controller) if name in plan.names]
    columns, mine = np.array(moved, dtype=np.intp).reshape(-1, 2).T
    states = np.zeros((len(times), 3, len(sample.controller)))
    states[:, 0] = sample.listed()
    states[:, :, columns] = np.array([plan.at(time - LAG) for time in times])[:, :, mine]
    return states


def _share(start: Array, end: Array, duration: float, most: Array) -> float:
    """Return the largest share of most (2, n) that a quintic from start to end (3, n) takes.

    most: limits of velocity and acceleration.
    """
    rows = np.stack([start, end], axis=1)
    found = Trajectory(np.array([0.0, duration]), *rows).sampled(LOOKS * duration)[1:3]
    return float((np.abs(found) / most[:, None]).max())
