"""Pursuit: one step after a moving target, within velocity, acceleration and jerk limits.

Near the target a linear law with three poles at -1/smoothing sets the jerk: smooth, and without lag for a
target of constant acceleration. A joint that this would take beyond a limit follows a time-optimal plan in
the frame of the target, an inertial frame if the target's velocity is constant.
"""

from __future__ import annotations

import numpy as np
from ruckig import InputParameter, Result, Ruckig, RuckigError, Synchronization, Trajectory

from ik_node.checks import Array
from ik_node.control.goal_stream import JointState

LARGEST_GAIN = 0.4  # of the poles per period: faster ones would not be stable with constant jerk in a period
FASTEST = 0.95  # share of the velocity limits at which a target may move and still be caught
MEMORY = 2.0  # [s] for which a target counts as too hard to follow
TOO_HARD = 1.3  # times the acceleration limit: nothing can keep up with a target that needs more


Limits = tuple[Array, Array, Array]  # velocity, acceleration and jerk


class Pursuit:
    """Follows a moving target with n joints; keeps only a memory of how hard the target was to follow."""

    def __init__(self, n: int) -> None:
        self.n = n
        self._ruckig = Ruckig(n)
        self._demand = 0.0  # largest recent acceleration of the target, as a share of the limit

    def restart(self) -> None:
        """Forget the previous target."""
        self._demand = 0.0

    def step(
        self, now: JointState, target: JointState, limits: Limits, smoothing: float, dt: float
    ) -> JointState | None:
        """Return the state dt [s] after now; target: at that time. None if the limits forbid to keep up.

        limits: velocity, acceleration and jerk, each (n,). smoothing: time constant [s].
        """
        fastest, hardest, jerkiest = limits
        demand = float((np.abs(target.acceleration) / hardest).max())
        self._demand = max(demand, self._demand * float(np.exp(-dt / MEMORY)))
        if self._demand > TOO_HARD:
            return None
        goal = advanced(target, np.zeros(self.n), -dt)
        w = min(1.0 / smoothing, LARGEST_GAIN / dt)
        jerk = (
            w**3 * (goal.position - now.position)
            + 3.0 * w**2 * (goal.velocity - now.velocity)
            + 3.0 * w * (goal.acceleration - now.acceleration)
        )
        near = advanced(now, jerk, dt)
        # where the velocity goes while the acceleration vanishes
        crest = near.velocity + near.acceleration * np.abs(near.acceleration) / (2.0 * jerkiest)
        turns = now.acceleration * near.acceleration < 0.0  # then the velocity is largest within the step
        peak = now.velocity - now.acceleration**2 / (2.0 * np.where(turns, jerk, np.inf))
        speed = np.max(np.abs([peak, near.velocity, crest]), axis=0)
        beyond = (np.abs(jerk) > jerkiest) | (np.abs(near.acceleration) > hardest) | (speed > fastest)
        if not beyond.any():
            return near
        caught = self._caught(now, goal, limits, dt)
        if caught is None:
            return None
        return JointState(*(np.where(beyond, far, close) for far, close in zip(caught, near, strict=True)))

    def _caught(self, now: JointState, goal: JointState, limits: Limits, dt: float) -> JointState | None:
        """Return the state dt [s] after now of a time-optimal motion to rest beside the target."""
        fastest, hardest, jerkiest = limits
        frame = np.clip(goal.velocity, -FASTEST * fastest, FASTEST * fastest)
        request = InputParameter(self.n)
        request.current_position = (now.position - goal.position).tolist()
        request.current_velocity = (now.velocity - frame).tolist()
        request.current_acceleration = now.acceleration.tolist()
        request.target_position = [0.0] * self.n
        request.max_velocity = (fastest - frame).tolist()
        request.min_velocity = (-fastest - frame).tolist()
        request.max_acceleration = hardest.tolist()
        request.max_jerk = jerkiest.tolist()
        request.synchronization = Synchronization.No
        plan = calculated(self._ruckig, request)
        if plan is None:
            return None
        position, velocity, acceleration = (np.array(x) for x in plan.at_time(dt)[:3])
        return JointState(position + goal.position + frame * dt, velocity + frame, acceleration)


def calculated(ruckig: Ruckig, request: InputParameter) -> Trajectory | None:
    """Return Ruckig's plan for a request; None if it finds none."""
    plan = Trajectory(ruckig.degrees_of_freedom)
    try:
        found = ruckig.calculate(request, plan) in (Result.Working, Result.Finished)
    except (RuckigError, ValueError):  # ValueError: a result that its enum does not list
        return None
    return plan if found else None


def admissible(state: JointState, limits: Limits) -> JointState:
    """Return the state with velocity and acceleration within limits, now and while the acceleration ends."""
    fastest, hardest, jerkiest = limits
    velocity = np.clip(state.velocity, -fastest, fastest)
    low, high = (np.minimum(np.sqrt(2.0 * jerkiest * (fastest + x)), hardest) for x in (velocity, -velocity))
    return JointState(state.position, velocity, np.clip(state.acceleration, -low, high))


def advanced(now: JointState, jerk: Array, dt: float) -> JointState:
    """Return the state after dt [s] of constant jerk (n,)."""
    return JointState(
        now.position + (now.velocity + (now.acceleration / 2.0 + jerk * (dt / 6.0)) * dt) * dt,
        now.velocity + (now.acceleration + jerk * (dt / 2.0)) * dt,
        now.acceleration + jerk * dt,
    )
