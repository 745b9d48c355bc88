# SPDX-License-Identifier: Apache-2.0
"""Goals: where the servos go in each cycle. A goal that follows commands stays near its measured joint.

So a servo whose driver is killed comes to rest close by, and a blocked joint is not pushed harder and harder.
What a servo is sent is ahead of that by the lead against sag, so that its joint is where its goal is.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from ik_node.errors import join_names
from ik_node.servos.arm.sag import Sag
from ik_node.servos.arm.snapshot import JointMeasurement
from ik_node.servos.calibration.zeros import JointCalibration

ACCELERATION = 25_400.0  # [ticks/s^2] of all servos: 39 rad/s^2
LEAD = 0.12  # [rad] by which a goal may be ahead of a joint at rest, more while it moves:
LEAD_TIME = 0.15  # [s] of its motion
FASTER = 1.2  # times the speed of a joint without load that its goal may have while it follows or yields
APPROACH = 1.0  # [rad/s] of a goal that is still far from its command, such as the first one
NEAR = 0.05  # [rad] from the command: then it is followed as fast as the joint is
STALLED, STALL_TIME = 0.6, 1.0  # share of the allowed torque, and time [s], of a joint that is blocked
RELIEF = 0.02  # [rad] by which the goal of a blocked joint stays ahead
SAG = 0.06  # [rad] from its goal at which a joint may hang under a load that no lead carries
YIELD_TIME = 0.2  # [s] for which a held joint is measured too far away until its goal follows
BEYOND = 1e-3  # [rad] by which a command is beyond a limit
HALF_TURN = 2048  # [ticks]
STILL = 0.05  # [rad/s]: a joint that pushes and is slower than that does not move


@dataclass
class _Goal:
    position: float
    caught_up: bool = False  # the goal has been at its command since commands began
    pushed: float = 0.0  # [s] for which the joint has pushed without moving
    blocked: tuple[float, float] | None = None  # where something blocks it, and in which direction (1 or -1)
    limit: tuple[float, float] | None = None  # that its command is beyond, and the command
    away: float = 0.0  # [s] for which a held joint has been too far from it
    yields: bool = False  # the joint gave way while it was held


class Goals:
    """The goals of an arm [rad or m], by joint. sag: by how much its servos are sent ahead of them."""

    def __init__(self, calibration: Mapping[str, JointCalibration], sag: Sag | None = None) -> None:
        self._calibration, self.sag = calibration, sag or Sag(None, {}, {})
        self._goals: dict[str, _Goal] = {}

    @property
    def sent(self) -> dict[str, float]:
        """Where the servos are sent, by joint [rad or m]: no lead goes beyond a limit."""
        found = {}
        for name, goal in self._goals.items():
            low, high = self._calibration[name].lower, self._calibration[name].upper
            aim = goal.position + self.sag.ahead(name)
            found[name] = min(max(aim, min(low, goal.position)), max(high, goal.position))
        return found

    @property
    def obstacles(self) -> list[str]:
        """What keeps joints from where they are to be, in words: loads, obstacles and limits."""
        found = []
        if yielding := [name for name, goal in self._goals.items() if goal.yields]:
            found.append(f'{join_names(yielding)} gave way: pushed, or the load is too heavy')
        if blocked := [name for name, goal in self._goals.items() if goal.blocked is not None]:
            found.append(f'something blocks {join_names(blocked)}')
        return found + [
            f'{name} is at its limit {limit:.2f}, its command is beyond it'
            for name, (limit, _) in self.limited.items()
        ]

    @property
    def limited(self) -> dict[str, tuple[float, float]]:
        """The joints whose commands are beyond a limit: that limit and the command [rad or m]."""
        return {name: goal.limit for name, goal in self._goals.items() if goal.limit is not None}

    def begin(self, ticks: Mapping[str, int], held: Collection[str] = ()) -> None:
        """Have goals at these ticks, by joint; those of held joints are ahead of where they are to be."""
        places = {name: self._calibration[name].position(tick) for name, tick in ticks.items()}
        self.sag.begin(places, held)
        self._goals = {name: _Goal(place - self.sag.ahead(name)) for name, place in places.items()}

    def forget(self) -> None:
        """Have no goals: the arm is not commanded."""
        self._goals.clear()
        self.sag.begin({}, ())

    def hold(self, measured: Mapping[str, JointMeasurement]) -> None:
        """Hold these joints where they are, or where they can stop; others keep their goals.

        A joint up to SAG from its goal keeps that: held where it hangs under a load that no lead carries, it
        would sag again, and sink with every hold.
        """
        for name, joint in measured.items():
            profile = self._calibration[name].profile
            scale = profile.scale
            way = joint.velocity * abs(joint.velocity) / (2.0 * ACCELERATION * profile.unit)
            place, goal = self._inside(name, joint, joint.position + way), self._goals.get(name)
            if goal is not None and abs(goal.position - joint.position) <= SAG * scale:
                place = goal.position
            self._goals[name] = _Goal(place)

    def follow(
        self,
        commands: Mapping[str, float],
        measured: Mapping[str, JointMeasurement],
        dt: float,
        torque: float,
        grown: bool = True,
    ) -> None:
        """Move the goals towards commands for dt [s]; torque: share that the servos may use.

        Joints that were not measured in this cycle keep their goals. grown: the torque grows no more.
        """
        for name, joint in measured.items():
            goal = self._goals.setdefault(name, _Goal(joint.position))
            if abs(goal.position - joint.position) > HALF_TURN * self._calibration[name].profile.unit:
                # It was pushed across the step of its servo, which would turn all the way back.
                goal = self._goals[name] = _Goal(joint.position)
            goal.limit, before = None, goal.position
            if name in commands:
                goal.yields = False
                self._approach(name, goal, commands[name], joint, dt)
                self._relieve(name, goal, joint, dt, torque)
            else:
                self._yield(name, goal, joint, dt)
            most = FASTER * self._calibration[name].profile.fastest * dt
            goal.position = min(max(goal.position, before - most), before + most)
        self.sag.move({name: goal.position for name, goal in self._goals.items()}, dt)
        free = [
            name
            for name, goal in self._goals.items()
            if grown and goal.caught_up and goal.blocked is None and goal.limit is None
        ]
        self.sag.settle(commands, measured, self.sent, free, dt)

    def _approach(self, name: str, goal: _Goal, command: float, joint: JointMeasurement, dt: float) -> None:
        calibration = self._calibration[name]
        profile = calibration.profile
        scale = profile.scale
        wanted = min(max(command, calibration.lower), calibration.upper)
        if abs(command - wanted) > BEYOND * scale:
            goal.limit = wanted, command
        speed = profile.fastest if goal.caught_up else min(APPROACH * scale, profile.fastest)
        step = min(max(wanted - goal.position, -speed * dt), speed * dt)
        ahead = self._near(name, goal.position + step, joint)
        goal.position = min(
            max(ahead, min(calibration.lower, joint.position)), max(calibration.upper, joint.position)
        )
        goal.caught_up |= abs(goal.position - wanted) < NEAR * scale

    def _yield(self, name: str, goal: _Goal, joint: JointMeasurement, dt: float) -> None:
        """Let the goal of a held joint follow it that is pushed away, or falls: it must not spring back."""
        near = self._near(name, goal.position, joint)
        goal.away = goal.away + dt if near != goal.position else 0.0
        if goal.away > YIELD_TIME:
            goal.position, goal.yields = near, True

    def _near(self, name: str, position: float, joint: JointMeasurement) -> float:
        """Return position, or what is nearest to it of the positions that are near enough to a joint."""
        scale = self._calibration[name].profile.scale
        lead = LEAD * scale + LEAD_TIME * abs(joint.velocity)
        return min(max(position, joint.position - lead), joint.position + lead)

    def _inside(self, name: str, joint: JointMeasurement, position: float) -> float:
        """Return position within the limits, or on the way back to them."""
        calibration = self._calibration[name]
        low, high = min(calibration.lower, joint.position), max(calibration.upper, joint.position)
        return min(max(position, low), high)

    def _relieve(self, name: str, goal: _Goal, joint: JointMeasurement, dt: float, torque: float) -> None:
        """Take the goal of a joint back that commands push against something.

        A joint up to SAG from its goal may as well carry a load; relieved, it would sink.
        """
        profile = self._calibration[name].profile
        scale = profile.scale
        ahead = goal.position - joint.position
        if goal.blocked is not None:
            place, side = goal.blocked
            if abs(joint.position - place) > 2.0 * RELIEF * scale or ahead * side < 0.0:
                goal.blocked = None  # it moves, or turns back
            else:
                goal.position = joint.position + side * min(RELIEF * scale, abs(ahead))
            return
        pushes = abs(joint.load) >= STALLED * torque * profile.torque
        stuck = pushes and abs(joint.velocity) < STILL * scale and abs(ahead) > SAG * scale
        goal.pushed = goal.pushed + dt if stuck else max(goal.pushed - dt, 0.0)
        if goal.pushed > STALL_TIME:
            goal.pushed, goal.blocked = 0.0, (joint.position, math.copysign(1.0, ahead))
