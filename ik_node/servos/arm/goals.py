# SPDX-License-Identifier: Apache-2.0
"""Goals of the servos in each cycle, and the lead that compensates sag."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, MutableMapping
from dataclasses import dataclass, field

from ik_node.errors import join_names
from ik_node.servos.bus.models import RADIANS_PER_TICK
from ik_node.servos.calibration.zeros import JointCalibration

from .registers import JointMeasurement, ServoSurvey

# Sag: by how much the goals of servos are ahead of where joints are to be, because they yield to their
# load.
#
# A position controller without an integral rests where its error makes the torque that the load takes. The
# lead is that error: the torque of gravity by the description, times the compliance of the servo, times
# one factor for each joint, learned at rest. A small trim at rest removes what is left: friction, and what
# the arm carries. An integral instead would hunt around friction, and push against whatever the arm
# touches.

Torques = Callable[[Mapping[str, float]], Mapping[str, float]]  # of gravity [Nm] at positions, by joint
MAX_LEAD = 0.1  # [rad]
WARN_SHARE = 0.8  # share of it from which there is a warning
IMPLAUSIBLE = 0.3  # [rad] of lead that no servo would need: the masses are wrong, and none counts
NOT_CARRIED = (
    'its servo is too weak for the load of the description, so its sag is not compensated. Are the masses in kg?'
)
MAX_TRIM = math.radians(1.0)
MAX_PUSH = 0.9  # [Nm] beyond what the load takes, at which a trim grows no more: it may be contact
RATE = 0.3  # [rad/s] at which a lead changes
MOVED = 1e-3  # [rad] after which the torques are computed anew
SLOW = 0.05  # [rad/s] of commands that count as resting
PERIOD, SHARE = 0.15, 0.5  # of the trim [s]; of the error that it takes at once
DEADBAND = 2.01 * RADIANS_PER_TICK  # [rad] of error that it leaves
STILL, STILL_TICKS = 0.04, 1  # [s] for which a joint at rest has moved by no more than these ticks
FADE = 0.3  # share of the trim that a motion leaves
FAR = 0.1  # [rad] of error at which a joint does not just sag
LEARNT = 0.004  # [rad] of lead from which a factor is learned: less is lost in friction and ticks
PLAUSIBLE = 0.5, 2.5  # times the lead, what a load takes; otherwise it is contact
OUTLIERS = 3  # rests in a row that are unlikely, after which these are believed
MAX_FACTOR = 5.0
FORGETTING, PRIOR = 0.9, 1.8e-5  # per rest; [rad^2], the weight of the factor before


@dataclass
class _Joint:
    """compliance [rad/Nm]. nominal [rad]: lead at a factor of 1. ahead [rad]: lead and trim now in force."""

    compliance: float
    factor: float
    nominal: float = 0.0
    trim: float = 0.0
    ahead: float = 0.0
    weight: float = PRIOR
    outliers: list[tuple[float, float]] = field(default_factory=list)  # nominal leads, and what it took [rad]
    tick: int = 0
    still: float = 0.0  # [s]
    learned: bool = False  # in this rest

    @property
    def lead(self) -> float:
        """The lead that is aimed at [rad]."""
        return _clamped(self.factor * self.nominal, MAX_LEAD)

    def learn(self, taken: float) -> None:
        """Take it that the load took a lead [rad]."""
        nominal, before = self.nominal, self.lead
        low, high = sorted(share * self.factor * nominal for share in PLAUSIBLE)
        if low <= taken <= high:
            self.outliers.clear()
            total = FORGETTING * self.weight + nominal**2
            self.factor = (FORGETTING * self.weight * self.factor + taken * nominal) / total
            self.weight = total
        else:
            self.outliers.append((nominal, taken))
            if len(self.outliers) == OUTLIERS:
                self.weight = sum(x * x for x, _ in self.outliers)
                self.factor = sum(x * y for x, y in self.outliers) / self.weight
                self.outliers.clear()
        self.factor = min(max(self.factor, 0.0), MAX_FACTOR)
        self.trim = _clamped(self.trim + before - self.lead, MAX_TRIM)  # it stays where it is

    def correct(self, error: float) -> None:
        """Trim a joint that rests away from its command by an error [rad]."""
        if abs(error) > DEADBAND:
            limit = min(max(MAX_PUSH * self.compliance - abs(error), abs(self.trim)), MAX_TRIM)
            self.trim = _clamped(self.trim + SHARE * error, limit)

    @property
    def warning(self) -> str:
        """What its owner should look at."""
        if self.factor == 0.0:
            return 'its load is not that of the description, so its sag is not compensated. Is the base upright?'
        need = abs(self.factor * self.nominal)
        if need < WARN_SHARE * MAX_LEAD:
            return ''
        return (
            f'sags by {math.degrees(need):.1f} degrees, of which at most {math.degrees(MAX_LEAD):.1f} are '
            'compensated: raise its P gain (ik_servo_check --protect), or take load off'
        )


class Sag:
    """The leads of an arm. factors: what was learned, by joint; kept up to date.

    A factor is the lead that a load takes, as a share of what its torque and the compliance make of it.
    """

    def __init__(
        self, torques: Torques | None, compliances: Mapping[str, float], factors: MutableMapping[str, float]
    ) -> None:
        """torques: None to lead nothing. compliances [rad/Nm]: by joint; others are left alone."""
        self._torques, self._factors = torques, factors
        turning = {} if torques is None else torques({})
        self._joints = {
            name: _Joint(compliance, min(max(factors.get(name, 1.0), 0.0), MAX_FACTOR))
            for name, compliance in compliances.items()
            if name in turning
        }
        self._positions: dict[str, float] = {}
        self._commands: dict[str, float] = {}
        self._rests = self._trimmed = 0.0  # [s] since the commands moved, and since the last trim
        self._implausible: dict[str, str] = {}  # what the owner should look at, by joint

    def begin(self, positions: Mapping[str, float], held: Collection[str]) -> None:
        """Begin with joints at positions [rad]; held: those with torque, whose goals are ahead already."""
        self._commands.clear()
        self._implausible.clear()
        for joint in self._joints.values():
            joint.trim = joint.ahead = 0.0
            joint.learned = False
        self.move(positions, 0.0)
        for name in held:
            if name in self._joints:
                self._joints[name].ahead = self._joints[name].lead

    def ahead(self, name: str) -> float:
        """By how much the goal of a joint is ahead now [rad]."""
        return self._joints[name].ahead if name in self._joints else 0.0

    @property
    def leads(self) -> dict[str, tuple[float, float]]:
        """Lead and trim [rad] by joint."""
        return {name: (joint.lead, joint.trim) for name, joint in self._joints.items()}

    @property
    def warnings(self) -> dict[str, str]:
        """What the owner should look at, by joint."""
        return self._implausible or {name: joint.warning for name, joint in self._joints.items() if joint.warning}

    def move(self, positions: Mapping[str, float], dt: float) -> None:
        """Move the leads for dt [s] to what gravity takes with the joints at positions [rad]."""
        if self._torques is None:
            return
        if any(abs(position - self._positions.get(name, math.inf)) > MOVED for name, position in positions.items()):
            self._positions = dict(positions)
            torques = self._torques(positions)
            for name, joint in self._joints.items():
                joint.nominal = -joint.compliance * torques.get(name, 0.0)
                if not abs(joint.nominal) < IMPLAUSIBLE:  # also if it is not a number
                    self._implausible[name] = NOT_CARRIED
            if self._implausible:
                for joint in self._joints.values():
                    joint.nominal = 0.0
        for joint in self._joints.values():
            joint.ahead += _clamped(joint.lead + joint.trim - joint.ahead, RATE * dt)

    def settle(
        self,
        commands: Mapping[str, float],
        measured: Mapping[str, JointMeasurement],
        sent: Mapping[str, float],
        free: Collection[str],
        dt: float,
    ) -> None:
        """Learn and trim once the arm rests. sent: goals of the servos. free: joints nothing obstructs."""
        known = [name for name in self._joints if name in commands]
        moves = any(abs(commands[name] - self._commands.get(name, math.inf)) > SLOW * dt for name in known)
        self._commands = dict(commands)
        if moves:
            for joint in self._joints.values():
                joint.learned = False
                joint.trim *= FADE if self._rests > PERIOD else 1.0
            self._rests = self._trimmed = 0.0
        else:
            self._rests += dt
            self._trimmed += dt
        for name, joint in self._joints.items():
            tick = measured[name].tick if name in measured else None
            if tick is None or abs(tick - joint.tick) > STILL_TICKS:
                joint.still, joint.tick = 0.0, joint.tick if tick is None else tick
            joint.still += dt
        if self._trimmed < PERIOD:
            return
        self._trimmed = 0.0
        for name in known:
            joint = self._joints[name]
            if name not in free or name not in measured or joint.still < STILL:
                continue
            position = measured[name].position
            if abs(commands[name] - position) > FAR:
                continue
            if not joint.learned and abs(joint.nominal) > LEARNT:
                joint.learn(sent[name] - position)
                self._factors[name], joint.learned = joint.factor, True
            joint.correct(commands[name] - position)


def compliances(servos: Iterable[ServoSurvey]) -> dict[str, float]:
    """Return by how much joints yield to a torque [rad/Nm], by name; without grippers, which hold things."""
    return {
        servo.joint.name: servo.model.compliance(servo.p_gain) * servo.joint.scale**2 / (1 + len(servo.joint.shadows))
        for servo in servos
        if not servo.joint.gripper
    }


def _clamped(value: float, limit: float) -> float:
    return min(max(value, -limit), limit)


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
STANDING = 0.05  # [rad/s]: a joint that pushes and is slower than that does not move


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
            found.append(f'{join_names(yielding)} gave way: it was pushed, or its load is too heavy')
        if blocked := [name for name, goal in self._goals.items() if goal.blocked is not None]:
            found.append(f'something blocks {join_names(blocked)}')
        return found + [
            f'{name} is at its limit {limit:.2f}, because its command is beyond it'
            for name, (limit, _) in self.limited.items()
        ]

    @property
    def limited(self) -> dict[str, tuple[float, float]]:
        """The joints whose commands are beyond a limit: that limit and the command [rad or m]."""
        return {name: goal.limit for name, goal in self._goals.items() if goal.limit is not None}

    def begin(self, ticks: Mapping[str, int], held: Collection[str] = ()) -> None:
        """Have goals at these ticks, by joint; those of held joints are ahead of where they are to be."""
        positions = {name: self._calibration[name].position(tick) for name, tick in ticks.items()}
        self.sag.begin(positions, held)
        self._goals = {name: _Goal(position - self.sag.ahead(name)) for name, position in positions.items()}

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
            braking = joint.velocity * abs(joint.velocity) / (2.0 * ACCELERATION * profile.unit)
            place, goal = self._inside(name, joint, joint.position + braking), self._goals.get(name)
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
            step = FASTER * self._calibration[name].profile.fastest * dt
            goal.position = min(max(goal.position, before - step), before + step)
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
        target = min(max(command, calibration.lower), calibration.upper)
        if abs(command - target) > BEYOND * scale:
            goal.limit = target, command
        speed = profile.fastest if goal.caught_up else min(APPROACH * scale, profile.fastest)
        step = min(max(target - goal.position, -speed * dt), speed * dt)
        ahead = self._near(name, goal.position + step, joint)
        goal.position = min(max(ahead, min(calibration.lower, joint.position)), max(calibration.upper, joint.position))
        goal.caught_up |= abs(goal.position - target) < NEAR * scale

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
        stuck = pushes and abs(joint.velocity) < STANDING * scale and abs(ahead) > SAG * scale
        goal.pushed = goal.pushed + dt if stuck else max(goal.pushed - dt, 0.0)
        if goal.pushed > STALL_TIME:
            goal.pushed, goal.blocked = 0.0, (joint.position, math.copysign(1.0, ahead))
