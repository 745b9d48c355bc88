# SPDX-License-Identifier: Apache-2.0
"""TrajectoryStreamer: trajectories for controllers that interpolate on their own, from an arm's motion."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from ik_node.checks import Array

from .motion import POINT_GAP, MotionAhead, halt
from .trajectory import JointTrajectory, MotionState, Setpoint, Trajectory

# Trajectories for controllers that interpolate on their own, from the plans of an arm.
#
# A controller executes the setpoints a DELAY later. Each trajectory has a start time, begins with the
# setpoints that the controller has yet to execute, and continues with the plan. A replacement is therefore
# identical at first, and it does not matter when, or in which of its periods, the controller takes it,
# within the DELAY. Between the points it follows quintics, which are exact at the setpoints and the knots
# of a plan. A controller that does not receive a plan in time continues the previous one; the motion is
# then replanned from its state.
#
# A trajectory that arrives after that time makes the controller jump to where it is by then. So where the
# controller reports its reference, a motion from rest begins when it arrives, its true start is read from
# the reference, and while messages from or to the controller are late the DELAY grows by a reserve. A
# trajectory that would not arrive within it is not sent. A reference that is on no trajectory is a fault.

DELAY = 0.04  # [s] by which a controller lags behind the setpoints
MARGIN = 0.015  # [s] of that for transmission and one period of the controller
UNLIMITED = np.array([1e3, 1e4, 1e6])  # of joints whose limits are not known
DIVERGED = 0.05  # [rad or m] from the end of its trajectory: a controller has not carried it out
HOLDS = 0.2, 1.0  # [s] least and largest time in which such a controller is brought to rest
WINDOW = 0.02  # [s] minimum time between two trajectories, unless the arm brakes
STALE = 0.3  # [s]: an older reference says nothing about the present of a moving controller
PATIENCE = 1.0  # [s] within which a controller must begin a trajectory
MOVED = 1e-4  # [rad or m] from rest: a controller has begun to move
NEAR = 1e-3, 2e-3  # [rad or m, s of motion] between a reference and the trajectory that it is on
ELSEWHERE = 0.02  # [rad or m] from all trajectories: a controller is elsewhere
JUMP = 0.005  # [rad or m] between two trajectories where one replaces the other
PUNCTUAL = 0.015  # [s] from a setpoint to the start at the controller, of a computer that is not overloaded
REMEMBERED = 60.0  # [s] for which a message as late is expected again
SPARE = 0.25  # [s]: the most by which the reserve exceeds that
MAX_RESERVE = 1.0  # [s]
UNKNOWN = 0.5  # [s] for which a hold may be on its way, even if no message has been late
MAX_IN_FLIGHT = 99  # trajectories on their way to the controller
CHECK = 'the computer is overloaded, or another program commands the controller'


class TrajectoryStreamer:
    """Decides when to replace the trajectory of a controller, and by which.

    time: of the last setpoint [s].
    """

    def __init__(self) -> None:
        self._halt: JointTrajectory | None = None  # the last
        self._reference: tuple[float, Mapping[str, float]] = -math.inf, {}  # of the controller, and its time
        self._last_moved = -math.inf  # when the reference last changed [s]
        self._starts: deque[tuple[float, float]] = deque()  # times, and how late motions have started
        self._ages: deque[tuple[float, float]] = deque()  # times, and how old references were on arrival
        self._forget()

    def _forget(self) -> None:
        self.time = -math.inf
        self._passed = 0.0  # between the last two setpoints [s of motion]
        self._delay = DELAY  # of the controller behind the setpoints [s]
        self._setpoints: deque[tuple[float, Array]] = deque()  # when they are carried out, and states (3, n)
        self._due = False  # the plan has changed since the last trajectory
        self._urgent = False
        self._running: JointTrajectory | None = None
        self._undone: tuple[JointTrajectory | None, bool] = None, False  # before the last one was sent
        self._off_plan = False  # the controller did not receive the plan of the setpoints
        self._late = 0.0  # how late the next trajectory will be [s]
        self._limits: dict[str, Array] = {}  # of velocity, acceleration and jerk (3,)
        self._flight: list[JointTrajectory] = []  # that the controller may be on, oldest first
        self._waiting = False  # for the start of the last one
        self._off = 0  # how many references in a row were on none
        self._rates: Mapping[str, float] = {}  # of the reference [1/s]

    @property
    def ends(self) -> float:
        """When the last trajectory ends [s]."""
        return -math.inf if self._running is None else self._running.ends

    @property
    def slack(self) -> float:
        """How late [s] after its setpoint a trajectory may be sent that replaces another."""
        return self._delay - MARGIN - self._expected

    @property
    def diverged(self) -> bool:
        """Whether the controller deviates from the setpoints."""
        return self._running is not None and (self._off_plan or (self.time < self.ends and self.slack < 0.0))

    @property
    def replaces(self) -> bool:
        """Whether the last trajectory replaces one that is under way."""
        before = self._undone[0]
        return before is not None and self.time < before.ends

    @property
    def lag(self) -> float:
        """How much later than after the DELAY [s] the controller executes the setpoints, as far as known."""
        if not (self._waiting and self._running):
            return max(self._delay - DELAY, 0.0)
        return self._delay - DELAY + min(self.time - self._running.begins, PATIENCE)

    def under_way(self, time: float) -> bool:
        """Whether the controller moves at time [s]."""
        return self._running is not None and self._running.begins <= time < self.ends

    def note(self, setpoint: Setpoint, states: Array, passed: float, coasted: bool = False) -> None:
        """Note the states (3, n) of the joints sent, passed [s] of motion after the last setpoint.

        coasted: the controller has, after a moving target; the plan of the setpoints has stopped at once.
        """
        now, since = setpoint.time, setpoint.time - self.time
        if coasted:
            self.skip()
        if self._due and since > self.slack:
            self._off_plan = True  # the controller did not receive the present plan
        if since < 0.0:  # the clock was set back, also that of the controller
            self._setpoints = deque((time + since, row) for time, row in self._setpoints)
            if self._running is not None:
                self._running = replace(self._running, begins=self._running.begins + since)
        elif now >= self.ends and not self._waiting:
            self._delay = DELAY + self.reserve
            if since > passed:
                self._setpoints.clear()  # no setpoints were sent: the arm may have been reinitialised
        elif since > passed:
            self._delay -= since - passed  # the motion has paused, the controller has not
        self.time, self._passed = now, passed
        while self._setpoints and self._setpoints[-1][0] > now + self._delay - POINT_GAP:
            self._setpoints.pop()
        self._setpoints.append((now + self._delay, states))
        while len(self._setpoints) > 1 and self._setpoints[1][0] <= now and not self._waiting:
            self._setpoints.popleft()

    def due(self, setpoint: Setpoint, moving: bool, braking: bool) -> bool:
        """Whether a new trajectory has to be sent: for each new plan, at most once per WINDOW.

        A motion that only brakes is sent at once.
        """
        if setpoint.replanned:
            self._due, self._urgent = True, braking
        running = self._running
        early = running is not None and setpoint.time < running.begins + WINDOW
        if self._waiting and running and setpoint.time > running.begins + running.joined + PATIENCE + STALE:
            self._waiting = False  # the controller reports nothing any more
        return self._due and not (moving and early and not self._urgent) and not self._waiting

    def next(self, setpoint: Setpoint, motion: MotionAhead) -> JointTrajectory:
        """Return the trajectory from the state of the controller to the end of a motion."""
        self._limits.update(zip(motion.names, motion.limits.T, strict=True))
        on_arrival = self._reported(setpoint.controller, REMEMBERED) and setpoint.time >= self.ends
        if on_arrival:
            self._delay_by(self._join(setpoint.controller) - self._delay)
        times, states = self._past()
        if on_arrival and len(times) == 1 and self._passed > POINT_GAP:  # it left rest at constant jerk
            times = np.append(times, self._delay - self._passed)
            states = np.repeat(states, 2, axis=0)
            states[:, 0] -= self._setpoints[-1][1][1] * self._passed / 3.0
        rows = np.concatenate([states, _controller_states(setpoint, motion)])
        rows[-1, 1:] = 0.0
        points = np.append(times, self._delay + motion.times)
        columns = rows[:, 0], rows[:, 1], rows[:, 2]
        return JointTrajectory(
            setpoint.controller, points, *columns, setpoint.time, self._delay, motion.braking, on_arrival
        )

    def _past(self) -> tuple[Array, Array]:
        """Return times (k,) from now, and states (k, 3, n), that the controller has yet to execute."""
        times = np.array([time for time, _ in self._setpoints]) - self.time
        states = np.array([row for _, row in self._setpoints])
        if len(times) == 1 or times[0] > 0.0:  # it was at rest there
            first = states[0] * [[1.0], [0.0], [0.0]]
        else:
            motion = Trajectory(times - times[0], *np.moveaxis(states, 1, 0))
            first = motion.sampled(-times[:1])[:3, 0]
        between = (times > POINT_GAP) & (times < self._delay - POINT_GAP)
        return np.append(0.0, times[between]), np.concatenate([first[None], states[between]])

    def resume(self) -> Mapping[str, tuple[float, float, float]]:
        """Return the state from which the motion continues: position, velocity, acceleration by joint name.

        The controller will be in this state a DELAY after the last setpoint, on the last trajectory; later if
        the next one will be late.
        """
        self._delay, self._off_plan = DELAY + self._late + self.reserve, False
        running = self._running
        if running is None:
            return {}
        times = np.linspace(self.time, self.time + self._delay, 1 + 4 * math.ceil(self._delay / DELAY))
        states = running.states(times)
        self._setpoints = deque(zip(times.tolist(), states, strict=True))
        return dict(zip(running.names, map(tuple, states[-1].T.tolist()), strict=True))

    def sent(self, trajectory: JointTrajectory) -> None:
        """Note that a trajectory is sent with the last setpoint."""
        self._undone = self._running, self._urgent
        self._due = self._urgent = False
        self._running, self._halt = trajectory, None
        self._waiting, self._off = trajectory.on_arrival, 0
        self._flight = [*([] if self._waiting else self._flight[-MAX_IN_FLIGHT:]), trajectory]

    def undo(self, late: float = 0.0) -> None:
        """Forget the last trajectory, which was not sent; the next one will be late [s]."""
        self._running, self._urgent = self._undone
        self._late, self._waiting, self._flight = late, False, self._flight[:-1]
        self.skip()

    def skip(self) -> None:
        """Note that no trajectory is sent: the controller continues the last one."""
        self._due = self._off_plan = True

    def delayed(self, late: float) -> JointTrajectory | None:
        """Return the last trajectory, for a controller at rest that gets it late [s] after its setpoint."""
        self._delay_by(max(late, 0.0))
        return self._shifted(max(late, 0.0))

    def _delay_by(self, late: float) -> None:
        """Note that the controller carries the setpoints out late [s] later."""
        self._delay += late
        self._setpoints = deque((time + late, row) for time, row in self._setpoints)

    def _shifted(self, late: float) -> JointTrajectory | None:
        """Return the last trajectory, now begun late [s] later."""
        if self._running is not None:
            self._running = replace(self._running, begins=self._running.begins + late)
            self._flight = [*self._flight[:-1], self._running]
        return self._running

    def _reported(self, names: Sequence[str], within: float = STALE) -> bool:
        """Whether the controller has reported its reference of all these joints within a time [s]."""
        time, reported = self._reference
        return time >= self.time - within and reported.keys() >= {*names}

    @property
    def _expected(self) -> float:
        """How late [s] the next message must be expected to reach the controller, 0 if all were punctual."""
        return max(self._worst(self._starts), self._worst(self._ages))

    @property
    def reserve(self) -> float:
        """What is added to the DELAY [s], because messages were late.

        Four times the excess of the latest start, because there are few of them; references are many.
        """
        several = max(4.0 * (self._worst(self._starts) - PUNCTUAL), self._worst(self._ages), 0.0)
        return min(several, self._expected + SPARE, MAX_RESERVE)

    def _worst(self, notes: deque[tuple[float, float]]) -> float:
        now = max(self.time, self._reference[0])
        while notes and not now - REMEMBERED <= notes[0][0] <= now:
            notes.popleft()
        return notes[0][1] if notes else 0.0

    def _join(self, names: Sequence[str]) -> float:
        """Return the time [s] in which a controller at rest moves to the first setpoint within the limits."""
        start, reference = self._setpoints[0][1][0], self._reference[1]
        gap = np.abs([reference.get(name, place) - place for name, place in zip(names, start, strict=True)])
        fastest, hardest, _ = np.transpose([self._limits.get(name, UNLIMITED) for name in names])
        return float(max(self._delay, (2.0 * gap / fastest).max(), np.sqrt(6.0 * gap / hardest).max()))

    def behind(self, time: float) -> bool:
        """Whether the controller, if it reports its reference, has yet to end its trajectory at time [s]."""
        running = self._running
        reports = running is not None and self._reported(running.names, REMEMBERED)
        return reports and (self._waiting or time < self.ends)

    def at_reference(self, measured: Mapping[str, float], tolerance: float) -> bool:
        """Whether joints are measured within a tolerance [rad or m] of a recent reference."""
        reported = self._reference[1]
        near = all(abs(place - reported.get(name, math.inf)) <= tolerance for name, place in measured.items())
        return near and self._reported(tuple(measured))

    def settled(self) -> bool:
        """Whether the reference of the controller, if it reports that, is at the end of its trajectory."""
        running = self._running
        if running is None or not self._reported(running.names):
            return True
        ends = zip(running.names, running.positions[-1].tolist(), strict=True)
        reported = self._reference[1]
        return not self._waiting and all(abs(reported.get(name, end) - end) <= NEAR[0] for name, end in ends)

    def on_reference(self, time: float, positions: Mapping[str, float], age: float = 0.0) -> str:
        """Note the reference of the controller at time [s], by joint name, and its age [s] on arrival.

        Return why the arm must stop: a trajectory was late or lost, or the controller is elsewhere.
        """
        (before, last), self._reference = self._reference, (time, positions)
        if self._running is not None:  # while the node starts, references wait for it
            _remember(self._ages, time, age)
        if any(abs(place - last.get(name, place)) > MOVED / 10.0 for name, place in positions.items()):
            self._last_moved = time
        running = self._running
        if running is None or not before < time or not positions.keys() >= {*running.names}:
            return ''
        if not self._flight:  # the last trajectory from rest was not sent
            return ''
        self._rates = {name: (place - last.get(name, place)) / (time - before) for name, place in positions.items()}
        reported = np.array([positions[name] for name in running.names])
        leap = self._leap(running.names, reported, time - before, last)
        if leap > 0.0:
            return f'the controller jumped by at least {leap:.3f}: a trajectory arrived late: {CHECK}'
        if time < self._flight[0].begins:
            return ''
        if self._waiting:
            return self._begun(running, time, reported)
        return self._located(running.names, time, reported, before, last)

    def _leap(self, names: Sequence[str], reported: Array, passed: float, last: Mapping[str, float]) -> float:
        """Return by how much [rad or m] a joint moved more than at twice its speed; 0: no joint by JUMP."""
        moved = np.abs([place - last.get(name, place) for name, place in zip(names, reported, strict=True)])
        if moved.max() <= JUMP:
            return 0.0
        fastest = np.array([self._limits.get(name, UNLIMITED)[0] for name in names])
        for each in self._flight:  # some were planned at another speed_scaling
            fastest = np.maximum(fastest, np.abs(each.velocities).max(axis=0))
        leap = float((moved - 2.0 * fastest * passed).max())
        return leap if leap > JUMP else 0.0

    def _begun(self, running: JointTrajectory, time: float, reported: Array) -> str:
        """Find out when a motion from rest has begun."""
        if np.abs(reported - running.positions[0]).max() >= MOVED:
            rates = np.array([self._rates[name] for name in running.names])
            late = _lateness(running, time, reported, rates)
            if late is not None:
                self._waiting = False
                _remember(self._starts, time, late)
                self._delay_by(late)
                self._shifted(late)
                if self._due:  # meanwhile: the controller may have passed where that plan leaves this one
                    self.skip()
        elif np.abs(running.positions - reported).max() < 2.0 * MOVED:
            self._waiting = False
        if self._waiting and time > running.begins + running.joined + PATIENCE:
            return f'the controller has not begun its trajectory within {PATIENCE:g} s: {CHECK}'
        return ''

    def _located(
        self, names: Sequence[str], time: float, reported: Array, before: float, last: Mapping[str, float]
    ) -> str:
        """Find out which trajectory the controller is on. before, last: its previous reference."""
        flight, nearest, gap, oldest = self._flight, math.inf, np.zeros(0), 0
        for k, each in enumerate(flight):  # mostly the first one, and each costs time
            position, velocity, _ = each.states(np.array([time]))[0]
            gap = np.abs(position - reported)
            nearest = min(nearest, gap.max())
            if gap.max() <= NEAR[0] + NEAR[1] * np.abs(velocity).max():
                oldest = k
                break
        else:
            self._off += 1
            if self._off < 2 or nearest <= ELSEWHERE:
                return ''
            worst = int(gap.argmax())
            return f'the controller is elsewhere: joint "{names[worst]}" at {reported[worst]:.3f}: {CHECK}'
        self._off = 0
        self._flight = flight[oldest:]
        if oldest and before > flight[oldest].begins + flight[oldest].joined:
            was = np.array([last[name] for name in names])
            jump = _gap(flight[oldest], before, was)
            if jump > JUMP:
                return f'the controller jumped by at least {jump:.3f}: a trajectory arrived late: {CHECK}'
        if oldest + 1 < len(flight):
            following = flight[oldest + 1]
            late = time - following.begins
            if late > following.joined and _gap(following, time, reported) > JUMP:
                _remember(self._starts, time, late)
                return f'a trajectory has not reached the controller within {late:.2f} s: {CHECK}'
        return ''

    def halted(self, measured: Mapping[str, float], late: float, faulted: bool = False) -> JointTrajectory | None:
        """Return the trajectory that holds the joints as measured, None if they are at rest there.

        The controller moves there within its limits. Joints that are not measured stop. late: how
        long ago [s] the last setpoint was. faulted: a controller that should be at rest elsewhere has not
        carried out the last trajectory, so that its motion is not known: a point some time ahead holds it.
        """
        running, now, limits = self._running, self.time + max(late, 0.0), self._limits
        flight, rates, reference = self._flight, self._rates, self._reference
        overdue = len(flight) > 1 and now >= flight[1].begins + flight[1].joined
        unsure = running is not None and self._reported(running.names, REMEMBERED)
        unsure = unsure and (self._waiting or self._off > 0 or overdue)
        expected, leave = self._expected, now + DELAY / 2.0 + self.reserve
        self._forget()
        if running is None:
            return None
        bounds = np.transpose([limits.get(name, UNLIMITED) for name in running.names])
        if unsure:  # which trajectory the controller is on: it is stopped from where it was reported
            self._halt = _stop(flight, reference, rates, bounds, now, expected)
            return self._halt
        if now >= running.ends:
            if not (faulted and _diverged(running, measured, now)):
                return None
            self._halt = _hold(running, measured, bounds, now)
            return self._halt
        knots = running.begins + running.times
        knots = knots[(knots > now + POINT_GAP) & (knots < min(leave, running.ends) - POINT_GAP)]
        times = np.array([now, *knots, min(leave, running.ends)]) - now
        rows = running.states(now + times)
        if leave < running.ends:
            stops = np.array([measured.get(name, math.nan) for name in running.names])
            leaving = MotionState(*rows[-1])
            end = halt(leaving, stops, bounds) or halt(leaving, np.full(len(stops), math.nan), bounds)
            if end is None:  # without another trajectory the controller would carry out this one to its end
                self._halt = _hold(running, measured, bounds, now)
                return self._halt
            ahead = end[0] >= POINT_GAP  # none: it hardly moves
            rows = np.concatenate([rows, end[1][ahead]])
            times = np.append(times, leave - now + end[0][ahead])
        rows[-1, 1:] = 0.0
        columns = rows[:, 0], rows[:, 1], rows[:, 2]
        self._halt = JointTrajectory(running.names, times, *columns, now, leave - now, braking=True)
        return self._halt

    def halting(self, time: float) -> bool:
        """Whether a controller is still moving at a time [s] to where it was halted, or may yet begin to."""
        if self._halt is None or time < self._halt.begins:
            return False
        if time < self._halt.ends + MARGIN:
            return True
        reports = self._reference[0] >= self._halt.begins - STALE
        arrived = time >= self._halt.ends + max(self.reserve, UNKNOWN)
        return reports and not (arrived and not 0.0 <= time - self._last_moved < STALE)


def _lateness(running: JointTrajectory, time: float, reported: Array, rates: Array) -> float | None:
    """Return how much later [s] than planned a controller has begun that reports positions (n,) at time [s].

    None if it is not on the trajectory, because it is still on its way to the start. rates: theirs.
    """
    times = np.arange(running.begins, time + PUNCTUAL, 0.002)
    at = times[np.abs(running.states(times)[:, 0] - reported).max(axis=1).argmin()]
    for _ in range(4):
        position, velocity, _ = running.states(np.array([at]))[0]
        at += (reported - position) @ velocity / max(velocity @ velocity, 1e-12)
    position, velocity, _ = running.states(np.array([at]))[0]
    there = np.abs(position - reported).max() < MOVED / 2.0 and velocity @ rates > 0.0
    return float(time - at) if there else None


def _gap(trajectory: JointTrajectory, time: float, reported: Array) -> float:
    """Return the largest distance of a trajectory at a time [s] from reported (n,)."""
    return float(np.abs(trajectory.states(np.array([time]))[0, 0] - reported).max())


def _stop(
    flight: Sequence[JointTrajectory],
    reference: tuple[float, Mapping[str, float]],
    rates: Mapping[str, float],
    limits: Array,
    now: float,
    late: float,
) -> JointTrajectory:
    """Return the trajectory that stops a controller on any of those in flight, whenever it arrives.

    From its reference, with the rates of that, or from where it is on a trajectory when this one arrives up
    to late [s] from now. The controller joins its motion to one point, in the middle of where it could stop.
    """
    names, (time, positions) = flight[-1].names, reference
    reported = np.array([positions[name] for name in names])
    rate = np.clip([rates.get(name, 0.0) for name in names], -limits[0], limits[0])
    times = np.linspace(min(time, now), now + late, 8)
    states = np.concatenate([each.states(times) for each in flight])
    starts = np.vstack([reported, reported + rate * max(now - time, 0.0), states[:, 0]])
    speeds = np.vstack([rate, rate, states[:, 1]])
    duration = max(HOLDS[0], float((2.0 * np.abs(speeds) / limits[1]).max()))
    for _ in range(2):
        ends = starts + speeds * min(duration, HOLDS[1]) / 2.0
        low, high = ends.min(axis=0), ends.max(axis=0)
        duration = max(duration, float(np.sqrt(6.0 * (high - low) / limits[1]).max()))
    planned = np.concatenate([reported[None], *(each.positions for each in flight)])
    end = np.clip((low + high) / 2.0, planned.min(axis=0), planned.max(axis=0))
    return _rest_at(names, end, min(duration, HOLDS[1]), now)


def _remember(notes: deque[tuple[float, float]], time: float, late: float) -> None:
    """Note how late [s] a message was, if it was; less late ones before it carry no information."""
    if late > PUNCTUAL:
        while notes and notes[-1][1] <= late:
            notes.pop()
        notes.append((time, min(late, MAX_RESERVE)))


def _positions(last: JointTrajectory, measured: Mapping[str, float], now: float) -> Array:
    """Return where joints are (n,), those that are not measured where the last trajectory has them."""
    expected = last.states(np.array([now]))[0, 0].tolist()
    return np.array([measured.get(name, there) for name, there in zip(last.names, expected, strict=True)])


def _diverged(last: JointTrajectory, measured: Mapping[str, float], now: float) -> bool:
    """Whether joints are not where the last trajectory has ended."""
    return bool(np.abs(_positions(last, measured, now) - last.positions[-1]).max() > DIVERGED)


def _hold(last: JointTrajectory, measured: Mapping[str, float], limits: Array, now: float) -> JointTrajectory:
    """Return the trajectory that holds joints where they are now, although their motion is not known.

    limits (3, n): of velocity, acceleration and jerk.
    """
    positions = _positions(last, measured, now)
    # A controller joins its motion to the first point: back to the same place, from full speed, that takes
    # 1.5 times the acceleration limit.
    time = min(max(HOLDS[0], *(4.0 * limits[0] / limits[1]).tolist()), HOLDS[1])
    return _rest_at(last.names, positions, time, now)


def _rest_at(names: tuple[str, ...], positions: Array, time: float, now: float) -> JointTrajectory:
    rest = np.zeros((2, len(positions)))
    times, positions = np.array([time, time + POINT_GAP]), np.array([positions, positions])
    return JointTrajectory(names, times, positions, rest, rest, now, 0.0, braking=True, on_arrival=True)


def _controller_states(setpoint: Setpoint, motion: MotionAhead) -> Array:
    """Return position, velocity and acceleration (k, 3, n) of the joints of the controller in a motion."""
    names = motion.names
    pairs = [(i, names.index(name)) for i, name in enumerate(setpoint.controller) if name in names]
    columns, moved = np.array(pairs, dtype=np.intp).reshape(-1, 2).T
    states = np.zeros((len(motion.times), 3, len(setpoint.controller)))
    states[:, 0] = setpoint.listed()
    states[:, :, columns] = motion.states[:, :, moved]
    return states
