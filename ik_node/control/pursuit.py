"""Pursuit: one step after a moving target, within velocity, acceleration and jerk limits.

Following the target exactly is right as long as it stays within the limits. Near and beyond them every
time-optimal chase swings, further the harder the target is to follow. What does not swing is a blend: the
joints follow r = m + k (p - m), where p is the target and m a calm point: it starts where the joints are and
drifts after the target, slowly. The share k grows from 0 as fast as the limits leave room, up to 1 or to what
the demand of the target allows. With k = 1 the joints are at the target, without lag; with less they are on a
smaller copy of its curve, in phase with it. Where a limit is hit nevertheless, m is placed anew so that r is
where the joints are, and k is lowered. Nothing can wind up that way, and r stays among the positions of the
target and of the joints at the start. From far away, the joints come near by a time-optimal plan first.
"""

from __future__ import annotations

import math

import numpy as np
from ruckig import InputParameter, Result, Ruckig, RuckigError, Synchronization, Trajectory

from ik_node.checks import Array
from ik_node.control.demand import Demand, Limits
from ik_node.control.goal_stream import JointState

LARGEST_GAIN = 0.4  # of the poles per period: faster ones would not be stable with constant jerk in a period
DRIFT, CALM = 2.0, 0.3  # [1/s] of the distance, and share of the velocity limits: speed of the calm point
STEADYING = 8.0  # [1/s] two poles with which the calm point takes that speed
HIT = 0.15  # share of the acceleration limit that must be lacking for a limit to be hit: noise takes less
LACKING = 0.04  # [s] for which what was lacking counts
USED = 0.93  # share of the limits that the target's part of the blend may need
LEAST_SHARE = 0.3  # whatever the target needs: corners cannot be followed, what is between them can
KEPT = 0.9  # largest share after a hit
FALL, RISE = 8.0, 2.0  # [1/s] at which hits lower the share that is aimed at, and at which it recovers
NEAR = 0.3  # [s] for which the largest distance between the target and the calm point counts
BLENDING = 0.4  # share of the free acceleration, and of the jerk limit, that a change of the share may use
CROSSING = 0.6  # share of the free acceleration that the rate of the share may use
LEAST_ROOM, MOST_ROOM = 0.1, 0.9  # shares of the limits that count as free for it
FASTEST_BLEND = 4.0  # [1/s]
NEAR_BY, LAG = 0.15, 0.25  # [rad or m, s]: that far from the target, plus its way in that time, is near
FAR = 9.0  # times that: the target was moved to another place
SMALLEST = 1e-3  # [rad or m] distance between target and calm point, for quotients


class Pursuit:
    """Follows a moving target with n joints that share the blend."""

    def __init__(self, n: int) -> None:
        self.n = n
        self._approach, self._ruckig = Ruckig(n), Ruckig(1)
        self.restart()

    def restart(self) -> None:
        """Begin anew with the next step, from where the joints are then."""
        self._calm: JointState | None = None
        self._share = 0.0, 0.0, 0.0  # k, with its rate and the rate of that
        self._aim = 1.0  # of the share
        self._demand = Demand(self.n)
        self._gap = np.zeros(self.n)
        self._lack = np.zeros(self.n)  # of acceleration, because of limits

    def step(
        self, now: JointState, target: JointState, limits: Limits, smoothing: float, dt: float
    ) -> JointState:
        """Return the state dt [s] after now; target: at that time.

        limits: velocity, acceleration and jerk, each (n,). smoothing: time constant [s].
        """
        near = NEAR_BY + LAG * np.abs(target.velocity)
        if (np.abs(target.position - now.position) > (near if self._calm is None else FAR * near)).any():
            self.restart()
            return self._approached(now, target.position, limits, dt)
        self._demand.note(target, limits, dt)
        self._calm = calm = self._drifted(now if self._calm is None else self._calm, target, limits, dt)
        gap = JointState(*(p - m for p, m in zip(target, calm, strict=True)))
        k, rate, bend = self._blend(calm, gap, limits, dt)
        wanted = JointState(
            calm.position + k * gap.position,
            calm.velocity + k * gap.velocity + rate * gap.position,
            calm.acceleration + k * gap.acceleration + 2.0 * rate * gap.velocity + bend * gap.position,
        )
        asked = _jerk_towards(wanted, now, min(1.0 / smoothing, LARGEST_GAIN / dt), dt)
        jerk = _kept(now, asked, limits, dt)
        after = advanced(now, jerk, dt)
        self._lack = self._lack * math.exp(-dt / LACKING) + (asked - jerk) * dt
        if (np.abs(self._lack) > HIT * limits[1]).any():
            self._yield(after, target, dt)
        return after

    def _approached(self, now: JointState, position: Array, limits: Limits, dt: float) -> JointState:
        """Return the state dt [s] after now of a time-optimal motion to rest at position (n,)."""
        request = InputParameter(self.n)
        request.current_position, request.current_velocity, request.current_acceleration = (
            x.tolist() for x in now
        )
        request.target_position = position.tolist()
        request.max_velocity, request.max_acceleration, request.max_jerk = (x.tolist() for x in limits)
        request.synchronization = Synchronization.No
        plan = calculated(self._approach, request)
        if plan is None:  # end the acceleration
            return advanced(now, np.clip(-now.acceleration / dt, -limits[2], limits[2]), dt)
        return JointState(*(np.array(x) for x in plan.at_time(dt)[:3]))

    def _drifted(self, calm: JointState, target: JointState, limits: Limits, dt: float) -> JointState:
        """Return the calm point dt [s] after it was at calm. It goes straight to the target, slowly."""
        fastest, _, jerkiest = limits
        velocity = DRIFT * (target.position - calm.position)
        velocity *= min(1.0, float((CALM * fastest / np.maximum(np.abs(velocity), SMALLEST * fastest)).min()))
        jerk = STEADYING**2 * (velocity - calm.velocity) - 2.0 * STEADYING * calm.acceleration
        most = jerkiest / (1.0 - min(self._share[0], KEPT))  # the joints do 1 - k of it
        return advanced(calm, np.clip(jerk, -most, most), dt)

    def _blend(
        self, calm: JointState, gap: JointState, limits: Limits, dt: float
    ) -> tuple[float, float, float]:
        """Move the share towards its aim, and return it with its first and second derivative."""
        fastest, hardest, jerkiest = limits
        own = np.abs(np.array([calm.velocity / fastest, calm.acceleration / hardest]))
        size = np.maximum(np.abs(gap.position), SMALLEST)
        self._gap = size = np.maximum(size, self._gap * math.exp(-dt / NEAR))
        most = max(LEAST_SHARE, USED / max(self._demand.worst, USED))
        self._aim = min(self._aim + RISE * dt, most)
        used = self._share[0] * self._demand.peaks + (1.0 - self._share[0]) * own
        free = np.clip(1.0 - used, LEAST_ROOM, MOST_ROOM)
        crossing = np.maximum(2.0 * np.abs(gap.velocity), SMALLEST)
        speed = min(
            FASTEST_BLEND,
            float((free[0] * fastest / size).min()),
            float((CROSSING * free[1] * hardest / crossing).min()),
        )
        request = InputParameter(1)
        request.current_position, request.current_velocity, request.current_acceleration = (
            [x] for x in self._share
        )
        request.target_position = [self._aim]
        request.max_velocity = [max(speed, 0.05)]
        brake = max(float((BLENDING * free[1] * hardest / size).min()), 0.2)
        request.max_acceleration, request.min_acceleration = [0.5 * brake], [-brake]
        request.max_jerk = [max(float((BLENDING * jerkiest / size).min()), 5.0)]
        plan = calculated(self._ruckig, request)
        if plan is not None:
            k, rate, bend = (float(x[0]) for x in plan.at_time(dt)[:3])
            self._share = k, rate, bend
        return self._share

    def _yield(self, after: JointState, target: JointState, dt: float) -> None:
        """Go on from after with a lower share: a limit was hit."""
        lower = max(self._share[0] - FALL * dt, 0.0)
        self._aim, k = min(self._aim, lower), min(lower, KEPT)
        self._share, self._lack = (k, 0.0, 0.0), np.zeros(self.n)
        self._calm = JointState(*((q - k * p) / (1.0 - k) for q, p in zip(after, target, strict=True)))


def _jerk_towards(wanted: JointState, now: JointState, w: float, dt: float) -> Array:
    """Return the jerk (n,) of a linear law with three poles at -w [1/s]; wanted: the aim dt [s] from now.

    It has no lag behind a motion of constant acceleration.
    """
    goal = advanced(wanted, np.zeros_like(wanted.position), -dt)
    return np.asarray(
        w**3 * (goal.position - now.position)
        + 3.0 * w**2 * (goal.velocity - now.velocity)
        + 3.0 * w * (goal.acceleration - now.acceleration)
    )


def _kept(now: JointState, jerk: Array, limits: Limits, dt: float) -> Array:
    """Return jerk (n,), changed where a limit would be exceeded in the next dt [s], or while it ends."""
    fastest, hardest, jerkiest = limits
    jerk = np.clip(jerk, -jerkiest, jerkiest)
    # The largest acceleration after dt that can end, at the jerk limit, before the speed exceeds its limit:
    # v + (a + x) dt / 2 + x^2 / (2 j) = limit, solved for x.
    half = 0.5 * dt * jerkiest
    fastest = np.maximum(fastest - jerkiest * dt**2 / 8.0, 0.9 * fastest)  # within dt it may be faster
    coming = now.velocity + 0.5 * dt * now.acceleration
    high, low = (
        np.sqrt(np.maximum(half**2 + 2.0 * jerkiest * (fastest - sign * coming), 0.0)) - half
        for sign in (1.0, -1.0)
    )
    acceleration = np.clip(now.acceleration + jerk * dt, -np.minimum(hardest, low), np.minimum(hardest, high))
    return np.clip((acceleration - now.acceleration) / dt, -jerkiest, jerkiest)


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
