# SPDX-License-Identifier: Apache-2.0
"""TimedArm: measurements and ticks to setpoints.

Measured positions change the command only while the arm waits for measurements and while it is hand-guided.
joint_gate.py checks every setpoint.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from ik_node.control.controller.arm_state import ArmState
from ik_node.control.outputs.setpoint import Setpoint
from ik_node.control.state.states import COMMANDING, ON_ITS_WAY, Event, State

SETTLING = 1.0  # [s] within which a controller must come to rest where its commands have ended
MOST_PERIODS = 2.0  # of motion per setpoint: after a stall the arm continues without a jump


class TimedArm(ArmState):
    """Takes measurements and returns a setpoint per tick."""

    def on_measured(self, positions: Mapping[str, float], received: float, time: float = math.inf) -> None:
        """Store finite measured positions by joint name, in any order; older ones than before are ignored.

        received, time [s]: when they arrived and when they were measured, inf: on arrival.
        """
        time = min(time, received)
        with self._change():
            positions = self._feedback.take(positions, time, received)
            if not positions or self._model is None or not self._feedback.expected:
                return
            doubt = self._feedback.doubt(self._joints.needed)
            if self._state is State.WAITING:
                self._initialise_from_measurement()
            elif doubt and self._state in COMMANDING:
                self._fault(doubt, void=self._outputs.runs_plans)
            elif self._state is State.HAND_GUIDED:
                self._joints.follow(positions)
            elif self._state in COMMANDING:
                error = self._joints.following_error(positions, time, received, self._outputs.lag)
                trajectories = self._outputs.trajectories
                if error is not None and trajectories is not None:
                    # Where a plan leaves another one later, commands skip what the controller has yet to do.
                    tolerance = float(self._model.following_tolerance(self._settings).min())
                    error = None if trajectories.followed(positions, tolerance) else error
                if error is not None:
                    self._fault(
                        error, void=self._outputs.runs_plans
                    )  # no plan starts at the present position

    def on_reference(self, positions: Mapping[str, float], time: float, age: float = 0.0) -> None:
        """Compare where the controller commands joints at time [s], by name, with its trajectories.

        age [s]: of the message on arrival.
        """
        trajectories = self._outputs.trajectories
        with self._change():
            lost = '' if trajectories is None else trajectories.heard(time, positions, age)
            if lost and self._state in COMMANDING:
                self._fault(lost, void=True)

    def fault(self, reason: str) -> None:
        """Stop until resume, because an output cannot command the arm."""
        with self._robot.sending(), self._change():
            if self._state in COMMANDING:
                self._fault(reason)

    def halt(self) -> None:
        """End all commands for good; joints that still move stop."""
        with self._robot.sending():
            self._ended = True
            with self._lock:
                hold_trajectory = self._outputs.hold_trajectory(dict)
            self._outputs.emit(None, hold_trajectory)

    def tick(self, time: float) -> Setpoint | None:
        """Advance to time [s]; return the setpoint to publish, None if nothing may be published."""
        with self._robot.sending():
            if self._ended:
                return None
            with self._change():
                setpoint, lost = self._outputs.in_time(self._advance(time))
                if lost:
                    self._fault(lost, void=True)
                epoch = self._epoch
            with self._lock:
                if setpoint is not None and epoch != self._epoch:
                    self._outputs.drop(setpoint)
                    return None
                hold_trajectory = None
                if setpoint is None:
                    hold_trajectory = self._outputs.hold_trajectory(
                        lambda: self._joints.within(self._feedback.recent()), self._state is State.FAULTED
                    )
            try:
                return self._outputs.emit(setpoint, hold_trajectory)
            except Exception as error:
                self._not_sent(setpoint, error)
                raise

    def _not_sent(self, setpoint: Setpoint | None, error: Exception) -> None:
        """Stop until resume: what the outputs were to send may not have been sent."""
        with self._change():
            if setpoint is not None:
                self._outputs.drop(setpoint)
            if self._state in COMMANDING:
                self._fault(f'a command could not be sent: {error!r}', void=True)

    def _advance(self, time: float) -> Setpoint | None:
        last, self._ticked = self._ticked, time
        back = self._feedback.advance(time)
        if self._model is None:
            return None
        if back:
            self._guided_until = min(self._guided_until, time + self._settings.hand_guiding_timeout)
        self._initialise_from_measurement()
        self._guard(time)
        braking = self._state is State.FAULTED and self._joints.moving
        if self._joints.without_position or not (self._state in COMMANDING or braking):
            return None
        passed = 0.0 if last == -math.inf else max(time - last, 0.0)
        dt = min(passed, MOST_PERIODS / self._settings.publish_rate)
        missed = passed - dt if self._outputs.carry_on(last) else 0.0
        if self._state in ON_ITS_WAY:
            follows = self._state is State.TELEOPERATED or self._settings.follow_goals
            target = self._targets.moving(time) if follows else None
            self._joints.chase(target, self._targets.smoothing(self._settings))
        setpoint, rejection = self._joints.step(time, dt, self._feedback, missed, self._outputs.trajectories)
        if rejection is not None:
            self._fault(rejection, void=setpoint is None)
        if setpoint is not None:
            setpoint, self._tracker.arrival = replace(setpoint, arrival=self._tracker.arrival), None
            if not (self._joints.moving or self._joints.waiting):
                self._rest()
        return setpoint

    def _rest(self) -> None:
        if self._outputs.behind(self._ticked):
            return
        if self._state in ON_ITS_WAY:
            inexact = lacking = self._lacking() if self._tracker.pursues else None
            if inexact is not None:
                if not self._tracker.waited(self._ticked):
                    return
                if self._outputs.done():
                    lacking = self._joints.hanging(self._feedback)
            self._on(Event.ARRIVED)
            if lacking is None:
                self._tracker.arrive(inexact)
            else:
                self._tracker.end(self._state, lacking)
            return
        if self._state is State.STOPPING and not self._outputs.settled:
            self._unsettled = min(self._unsettled, self._ticked)
            if self._ticked >= self._unsettled + SETTLING:
                self._fault('the controller is not at rest where it was stopped', void=True)
            return
        self._unsettled = math.inf
        self._on(Event.RESTED if self._active else Event.DEACTIVATE)

    def _lacking(self) -> str | None:
        """Return why an arm with constant commands has not arrived yet, None if it has."""
        if not self._outputs.done():
            return 'the controller has not ended its trajectory'
        return self._joints.inexact(self._feedback) if self._feedback.expected else None

    def _guard(self, time: float) -> None:
        """Check hand guiding, conflicts with other arms, and whether measurements are late or missing."""
        if self._state is State.HAND_GUIDED and time >= self._guided_until:
            self._release()
        if self._state in ON_ITS_WAY and (blocked := self._joints.blocked()):
            self._brake(blocked)
        silent = self._feedback.silent(self._joints.commanded, self._settings.measured_timeout)
        if silent is not None and self._state in COMMANDING:
            self._fault(silent)
        if self._state in ON_ITS_WAY:
            waited = self._joints.waiting
            if (stopped := self._joints.keep_back(self._feedback)) is not None:
                self._brake(stopped)
            elif self._joints.waiting != waited:
                self._reports.state('continuing' if waited else 'late', self._state, self.condition())
