# SPDX-License-Identifier: Apache-2.0
"""Pursuit: one step after a moving target, within velocity, acceleration and jerk limits.

The target can be followed exactly as long as it stays within the limits. Near and beyond them a time-optimal
pursuit oscillates. A blend does not: the joints follow r = m + k (p - m), where p is the target and m a slow
point, which starts at the joints and drifts towards the target. The share k grows from 0 as fast as the
limits allow, up to 1 or to what the demand of the target allows. With k = 1 the joints are at the target,
without lag; with less they are on a smaller copy of its curve, in phase with it. If a limit is reached
nevertheless, m is reset so that r equals the joint positions, and k is lowered. Thus nothing winds up, and r
stays between the target and the initial joint positions. Distant joints approach by a time-optimal plan
first. If goals were missing for a moment, so that the joints braked, they catch up with a target that leaves
room in the limits by a time-optimal plan relative to it: with the blend they would need seconds.
"""

from __future__ import annotations

from collections import deque
from typing import TypeAlias

import numpy as np
from ruckig import InputParameter, Result, Ruckig, RuckigError, Synchronization
from ruckig import Trajectory as RuckigTrajectory

from ik_node import kernels
from ik_node.checks import Array
from ik_node.kernels.tracking import MAX_ROOM, MIN_ROOM, SHARE_AFTER_HIT

from .trajectory import MotionState

PIECE = 0.02  # [s] of which only the largest demand is stored
LATELY = 100  # pieces that are stored, so that a curve is known after its first lap
BRIEF = 6  # largest pieces that are ignored: single corners and changes of speed
NOW = 15  # pieces that give the present speed
SLOWER = 0.78  # share of the largest speed below which the target slows down


class Demand:
    """The demand of a moving target of n joints, as shares of the limits.

    peaks: of velocity and acceleration (2, n); they decay. worst: the largest recent share that lasted.
    """

    def __init__(self, n: int) -> None:
        self.peaks = np.zeros((2, n))
        self.worst = 0.0
        self._smooth: Array | None = None  # acceleration (n,)
        self._pieces: deque[tuple[float, float]] = deque(maxlen=LATELY)  # largest share, and speed
        self._share = self._speed = self._time = 0.0  # of the piece that has begun

    def note(self, target: Array, limits: Array, dt: float) -> None:
        """Note the state (3, n) of the target, dt [s] after the last time. limits (3, n)."""
        if self._smooth is None:
            self._smooth = target[2].copy()
        share, speed = kernels.note_demand(target, limits, self.peaks, self._smooth, dt)
        self._share, self._speed = max(self._share, share), max(self._speed, speed)
        self._time += dt
        if self._time >= PIECE:
            self._pieces.append((self._share, self._speed))
            self._share = self._speed = self._time = 0.0
            self._judge()

    def _judge(self) -> None:
        """Find the worst; if the target has slowed down, scale its acceleration with the square of speed."""
        shares, speeds = zip(*self._pieces, strict=True)
        slower = max(speeds[-NOW:]) / max(*speeds, 1e-9)
        self.worst = sorted(shares)[max(0, len(shares) - 1 - BRIEF)] * min(1.0, slower / SLOWER) ** 2


EXTREMES = 300  # pieces that are stored
FRESH = 10  # newest pieces that do not count, so that a target which goes on is not expected to turn
BEYOND = 0.02  # share of the range by which the target must leave it to be expected to go on
ROOM = 0.08  # share of the range beyond it, so that a target within the limits is not hindered


class TurningPoints:
    """The range within which each of n joints of a target moved in the last seconds.

    Joints that are too slow for a turn would otherwise brake only after the target has turned, and overshoot.
    """

    def __init__(self, n: int) -> None:
        self._nowhere = np.array([np.full(n, np.inf), np.full(n, -np.inf)])
        self._piece, self._time = self._nowhere.copy(), 0.0  # lowest and highest positions (2, n), and age
        self._fresh: deque[Array] = deque()
        self._pieces: Array | None = None  # (LATELY, 2, n)
        self._oldest = 0
        self._known = False  # whether any joint turned
        self._range = self._ends = -self._nowhere  # where it may turn, and beyond which it goes on

    def between(self, position: Array, dt: float) -> Array:
        """Note a position (n,) of the target, dt [s] after the last one; return where it may turn.

        The lowest and highest positions (2, n), with some room; infinite where no turn is known, or where the
        target goes on.
        """
        np.minimum(self._piece[0], position, out=self._piece[0])
        np.maximum(self._piece[1], position, out=self._piece[1])
        self._time += dt
        if self._time >= PIECE:
            self._fresh.append(self._piece)
            self._piece, self._time = self._nowhere.copy(), 0.0
            if len(self._fresh) > FRESH:
                self._store(self._fresh.popleft())
        if not self._known:
            return -self._nowhere
        goes_on = np.array([position < self._ends[0], position > self._ends[1]])
        return np.where(goes_on, -self._nowhere, self._range)

    def _store(self, piece: Array) -> None:
        """Store a piece, and find the extreme positions; where the memory begins there was no turn."""
        if self._pieces is None:
            self._pieces = np.tile(piece, (EXTREMES, 1, 1))
        self._pieces[self._oldest] = piece
        self._oldest = (self._oldest + 1) % EXTREMES
        first_low, first_high = self._pieces[self._oldest]
        low, high = self._pieces[:, 0].min(axis=0), self._pieces[:, 1].max(axis=0)
        size = high - low
        turns = np.array([np.where(low < first_low, low, -np.inf), np.where(high > first_high, high, np.inf)])
        self._known = bool(np.isfinite(turns).any())
        outwards = np.array([-size, size])
        self._range, self._ends = turns + ROOM * outwards, turns + BEYOND * outwards


LARGEST_GAIN = 0.4  # of the poles per period: faster ones would not be stable with constant jerk in a period
USED = 0.93  # share of the limits that the target's part of the blend may need
MIN_SHARE = 0.3  # for any target: corners cannot be followed, but what is between them can
FALL, RISE = 8.0, 2.0  # [1/s] rates at which limits lower the aim of the share, and at which it recovers
FASTEST_BLEND = 4.0  # [1/s]
NEAR_BY, LAG = (
    0.15,
    0.25,
)  # [rad or m, s]: up to this distance, plus the motion of the target in this time, is near
FAR = 9.0  # times that distance: the target has jumped
CATCHING, CAUGHT = 0.9, 0.5  # shares of the jerk limit: of catching up, and at which it has ended

ALL = np.array([1.0, 0.0, 0.0])  # the share at which the target itself is chased

Limits: TypeAlias = tuple[Array, Array, Array]  # velocity, acceleration and jerk, each (n,)


class Pursuit:
    """Follows a moving target with n joints that share the blend."""

    def __init__(self, n: int) -> None:
        self.n = n
        self._approach, self._ruckig = Ruckig(n), Ruckig(1)
        self.restart()

    def restart(self) -> None:
        """Restart with the next step, from the joint positions then."""
        self._calm: Array | None = None  # state (3, n) of the slow point
        self._share = np.zeros(3)  # k, with its rate and the rate of that
        self._aim = 1.0  # of the share
        self._demand, self._turning_points = Demand(self.n), TurningPoints(self.n)
        self._gap = np.zeros(self.n)  # largest recent distances between target and slow point
        self._missing = np.zeros(self.n)  # of acceleration, because of limits
        self._catching_up = False

    def step(self, now: MotionState, target: MotionState, limits: Limits, smoothing: float, dt: float) -> MotionState:
        """Return the state dt [s] after now; target: at that time. smoothing: time constant [s].

        If the target is not finite, the joints come to rest.
        """
        if not np.isfinite(np.sum(target)):  # comparisons with NaN would pass every limit
            target = MotionState(now.position, np.zeros(self.n), np.zeros(self.n))
        near = NEAR_BY + LAG * np.abs(target.velocity)
        if (np.abs(target.position - now.position) > (near if self._calm is None else FAR * near)).any():
            self.restart()
            return self._approached(now, target.position, limits, dt)
        joints, goal, bounds = np.array(now), np.array(target), np.array(limits)
        self._demand.note(goal, bounds, dt)
        turns = self._turning_points.between(target.position, dt)
        pole = min(1.0 / smoothing, LARGEST_GAIN / dt)
        if self._catching_up:
            jerk = self._catching(joints, goal, bounds, pole, dt)
            if jerk is not None:
                kernels.chase(
                    joints,
                    joints,
                    _target_for(joints, jerk, pole, dt),
                    bounds,
                    turns,
                    ALL,
                    pole,
                    self._missing,
                    dt,
                )
                return MotionState(*joints)
        if self._calm is None:
            self._calm = joints.copy()
        kernels.drift(self._calm, goal, bounds, float(self._share[0]), dt)
        self._blend(goal, bounds, dt)
        if kernels.chase(joints, self._calm, goal, bounds, turns, self._share, pole, self._missing, dt):
            if self._share[0] == 1.0 and self._demand.worst <= USED:
                self._catching_up = True
            else:
                self._yield(joints, goal, dt)
        return MotionState(*joints)

    def _approached(
        self, now: MotionState, position: Array, limits: Limits, dt: float, together: bool = False
    ) -> MotionState:
        """Return the state dt [s] after now of a time-optimal motion to rest at position (n,)."""
        request = InputParameter(self.n)
        request.current_position, request.current_velocity, request.current_acceleration = (x.tolist() for x in now)
        request.target_position = position.tolist()
        request.max_velocity, request.max_acceleration, request.max_jerk = (x.tolist() for x in limits)
        request.synchronization = Synchronization.Time if together else Synchronization.No
        plan = calculated(self._approach, request)
        if plan is None:  # end the acceleration
            return advanced(now, np.clip(-now.acceleration / dt, -limits[2], limits[2]), dt)
        return MotionState(*(np.array(x) for x in plan.at_time(dt)[:3]))

    def _catching(self, joints: Array, target: Array, limits: Array, pole: float, dt: float) -> Array | None:
        """Return the jerks (n,) of the next dt [s] that bring the joints to the target; None at its end.

        It ends where the chase itself needs no more than a part of the jerk limit, or without room.
        """
        before = _back(target, dt)
        gap = joints - before
        needed = np.abs(np.array([pole**3, 3.0 * pole**2, 3.0 * pole]) @ gap)
        close = bool((needed <= CAUGHT * limits[2]).all())
        if close or self._demand.worst > USED:
            self._catching_up, self._missing, self._calm = False, np.zeros(self.n), joints.copy()
            self._share, self._aim = np.array([float(close), 0.0, 0.0]), 1.0
            return None
        room = np.clip(1.0 - self._demand.peaks, MIN_ROOM, MAX_ROOM)
        free = room[0] * limits[0], room[1] * limits[1], CATCHING * limits[2]
        after = self._approached(MotionState(*gap), np.zeros(self.n), free, dt, True)
        jerk: Array = (target[2] + after.acceleration - joints[2]) / dt
        return jerk

    def _blend(self, target: Array, limits: Array, dt: float) -> None:
        """Move the share towards its aim. target, limits: (3, n)."""
        share, demand = self._share, self._demand
        highest = max(MIN_SHARE, USED / max(demand.worst, USED))
        self._aim = min(self._aim + RISE * dt, highest)
        speed, brake, jerk = kernels.blend_limits(
            self._calm, target, limits, demand.peaks, self._gap, float(share[0]), dt
        )
        request = InputParameter(1)
        request.current_position, request.current_velocity, request.current_acceleration = ([x] for x in share.tolist())
        request.target_position = [self._aim]
        request.max_velocity = [max(min(speed, FASTEST_BLEND), 0.05)]
        brake = max(brake, 0.2)
        request.max_acceleration, request.min_acceleration = [0.5 * brake], [-brake]
        request.max_jerk = [max(jerk, 5.0)]
        plan = calculated(self._ruckig, request)
        if plan is not None:
            share[:] = [x[0] for x in plan.at_time(dt)[:3]]

    def _yield(self, after: Array, target: Array, dt: float) -> None:
        """Continue from after with a lower share: a limit was reached. after, target: (3, n)."""
        lower = max(float(self._share[0]) - FALL * dt, 0.0)
        self._aim, k = min(self._aim, lower), min(lower, SHARE_AFTER_HIT)
        self._share, self._missing = np.array([k, 0.0, 0.0]), np.zeros(self.n)
        self._calm = (after - k * target) / (1.0 - k)


def _back(target: Array, dt: float) -> Array:
    """Return the state (3, n) of a target dt [s] before, at its acceleration."""
    velocity = target[1] - target[2] * dt
    return np.array([target[0] - (velocity + 0.5 * target[2] * dt) * dt, velocity, target[2]])


def _target_for(now: Array, jerk: Array, pole: float, dt: float) -> Array:
    """Return the target (3, n) for which the chase with all of the share asks for a jerk (n,)."""
    acceleration = now[2] + jerk / (3.0 * pole)
    return np.array([now[0] + (now[1] + 0.5 * acceleration * dt) * dt, now[1] + acceleration * dt, acceleration])


def calculated(ruckig: Ruckig, request: InputParameter) -> RuckigTrajectory | None:
    """Return Ruckig's plan for a request; None if it finds none."""
    plan = RuckigTrajectory(ruckig.degrees_of_freedom)
    try:
        found = ruckig.calculate(request, plan) in (Result.Working, Result.Finished)
    except (RuckigError, ValueError):  # ValueError: a result that its enum does not list
        return None
    return plan if found else None


def admissible(state: MotionState, limits: Limits) -> MotionState:
    """Return the state with an acceleration within limits, now and while it ends.

    A velocity beyond a limit that was lowered during the motion must not grow.
    """
    fastest, hardest, jerkiest = limits
    fastest = np.maximum(fastest, np.abs(state.velocity))
    gains = fastest + state.velocity, fastest - state.velocity
    low, high = (np.minimum(np.sqrt(2.0 * jerkiest * gain), hardest) for gain in gains)
    return MotionState(state.position, state.velocity, np.clip(state.acceleration, -low, high))


def admissible_jerk(state: MotionState, limits: Limits, present: Array) -> Array:
    """Return the jerk limits, raised where a joint speeds up too hard to end that within its speed limit.

    Ending an acceleration a takes the speed towards a up by a^2 / (2 jerk). So a jerk limit that was lowered
    in mid-motion from present (n,) is kept as soon as the speed limit allows, and at once otherwise.
    """
    velocity, _, jerk = limits
    gain = state.acceleration**2 / 2.0
    room = np.maximum(velocity - np.sign(state.acceleration) * state.velocity, gain / present)
    return np.maximum(jerk, np.divide(gain, room, out=np.zeros(gain.size), where=gain > 0.0))


def advanced(now: MotionState, jerk: Array, dt: float | Array) -> MotionState:
    """Return the state after dt [s] of constant jerk (n,); for times (k, n) the states (k, n)."""
    return MotionState(
        now.position + (now.velocity + (now.acceleration / 2.0 + jerk * (dt / 6.0)) * dt) * dt,
        now.velocity + (now.acceleration + jerk * (dt / 2.0)) * dt,
        now.acceleration + jerk * dt,
    )
