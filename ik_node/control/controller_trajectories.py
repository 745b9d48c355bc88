"""Trajectories for controllers that interpolate on their own, from the plans of an arm.

A controller that replaces one trajectory by another joins the first point of the new one by a cubic from
where it is then. It always runs LAG behind the samples, so that it is still where both plans agree when the
new one arrives. The time that messages take varies, so the first point must not be too near nevertheless.
Between the points it follows cubics too: at the knots of a plan, these are the plan.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ik_node.checks import Array
from ik_node.control.outputs import Plan, Sample

LAG = (
    0.02  # [s] of a controller behind the samples: a new plan begins up to this long before its first sample
)
JOIN = 0.08  # [s] from a moving arm to the first point of a trajectory
START = 0.02  # [s] from an arm at rest to the first point
SPACING = 1e-3  # [s] at least between two points
WINDOW = 0.05  # [s] at least between two trajectories, unless the arm brakes
HALT = 0.3  # [s] within which a controller ends a motion that is void


@dataclass(frozen=True, eq=False)
class JointTrajectory:
    """Positions and velocities (k, n) of the named joints at times (k,) > 0 [s]; the last is rest."""

    names: tuple[str, ...]
    times: Array
    positions: Array
    velocities: Array


def point_times(plan: Plan, join: float) -> list[float]:
    """Return the times [s] of the points of a trajectory: LAG behind those of the plan, and join at least."""
    knots = [knot + LAG for knot in plan.knots()]
    end = max(plan.duration + LAG, join)
    times = [join] if end > join else []
    for knot in knots:
        if (times[-1] if times else join) + SPACING <= knot <= end - SPACING:
            times.append(knot)
    return [*times, end]


class Trajectories:
    """Decides when the trajectory of a controller is replaced, and by which.

    ends: when the last one ends [s]. due: the plan has changed since.
    """

    def __init__(self) -> None:
        self.due = False
        self._urgent = False
        self._sent = self.ends = -np.inf  # when the last trajectory was sent, and when it ends [s]
        self._last: Sample | None = None

    def planned(self, plan: Plan) -> None:
        """Note that the plan has changed."""
        self.due = True
        self._urgent = plan.braking

    def sampled(self, sample: Sample) -> JointTrajectory | None:
        """Return the trajectory to send now, if any: each new plan, at most one per WINDOW.

        A motion that only brakes is sent at once.
        """
        now, plan = sample.time, sample.plan
        if now < self._sent:  # the clock was set back
            self._sent = self.ends = now - WINDOW
        self._last = sample
        if not self.due or (plan is not None and now < self._sent + WINDOW and not self._urgent):
            return None
        if plan is None:  # the motion has ended in the meantime
            return self._stand(JOIN, sample.listed())
        held = sample.named()
        times = point_times(plan, JOIN if now < self.ends else START)
        states = [{**held, **plan.named(time - LAG)} for time in times]
        rows = np.array([[state[name] for name in sample.controller] for state in states])
        rows[-1, :, 1] = 0.0
        return self._keep(np.array(times), rows)

    def halted(self, measured: Mapping[str, float]) -> JointTrajectory | None:
        """Return the trajectory that holds the joints as measured, None if none is under way.

        Joints that are not measured stop on their way.
        """
        last = self._last
        if last is None or last.time >= self.ends:
            return None
        places = {} if last.plan is None else last.plan.named(HALT / 2.0)
        stops = {name: place for name, (place, _) in {**last.named(), **places}.items()}
        return self._stand(HALT, [measured.get(name, stops[name]) for name in last.controller])

    def _stand(self, duration: float, places: Sequence[float]) -> JointTrajectory:
        return self._keep(np.array([duration]), np.array([[(place, 0.0) for place in places]]))

    def _keep(self, times: Array, rows: Array) -> JointTrajectory:
        assert self._last is not None
        self.due = self._urgent = False
        self._sent, self.ends = self._last.time, self._last.time + float(times[-1])
        return JointTrajectory(self._last.controller, times, rows[:, :, 0], rows[:, :, 1])
