# SPDX-License-Identifier: Apache-2.0
"""Sag: by how much the goals of servos are ahead of where joints are to be, because they yield to their load.

A position controller without an integral rests where its error makes the torque that the load takes. The
lead is that error: the torque of gravity by the description, times the compliance of the servo, times one
factor for each joint, learned at rest. A small trim at rest removes what is left: friction, and what the arm
carries. An integral instead would hunt around friction, and push against whatever the arm touches.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, MutableMapping
from dataclasses import dataclass, field

from ik_node.servos.arm.snapshot import JointMeasurement
from ik_node.servos.arm.survey import ServoSurvey
from ik_node.servos.bus.models import RADIANS_PER_TICK

Torques = Callable[[Mapping[str, float]], Mapping[str, float]]  # of gravity [Nm] at positions, by joint
MOST_LEAD = 0.1  # [rad]
NEEDS = 0.8  # share of it from which the owner is told
ABSURD = 0.3  # [rad] of lead that no servo would need: the masses are wrong, and none counts
NOT_CARRIED = (
    'by the description its servo cannot carry its load, so no sag is compensated. Are the masses in kg?'
)
MOST_TRIM = math.radians(1.0)
MOST_PUSH = 0.9  # [Nm] beyond what the load takes, at which a trim grows no more: it may be contact
RATE = 0.3  # [rad/s] at which a lead changes
MOVED = 1e-3  # [rad] after which the torques are computed anew
SLOW = 0.05  # [rad/s] of commands that count as resting
PERIOD, SHARE = 0.15, 0.5  # of the trim [s]; of the error that it takes at once
DEAD = 2.01 * RADIANS_PER_TICK  # [rad] of error that it leaves
STILL, STILL_TICKS = 0.04, 1  # [s] for which a joint at rest has moved by no more than these ticks
FADE = 0.3  # share of the trim that a motion leaves
FAR = 0.1  # [rad] of error at which a joint does not just sag
LEARNT = 0.004  # [rad] of lead from which a factor is learned: less is lost in friction and ticks
LIKELY = 0.5, 2.5  # times the lead, what a load takes; otherwise it is contact
CONTRARY = 3  # rests in a row that are unlikely, after which these are believed
MOST_FACTOR = 5.0
FORGET, PRIOR = 0.9, 1.8e-5  # per rest; [rad^2], the weight of the factor before


@dataclass
class _Joint:
    """compliance [rad/Nm]. nominal [rad]: lead at a factor of 1. ahead [rad]: lead and trim now in force."""

    compliance: float
    factor: float
    nominal: float = 0.0
    trim: float = 0.0
    ahead: float = 0.0
    weight: float = PRIOR
    contrary: list[tuple[float, float]] = field(default_factory=list)  # nominal leads, and what it took [rad]
    tick: int = 0
    still: float = 0.0  # [s]
    learned: bool = False  # in this rest

    @property
    def lead(self) -> float:
        """The lead that is aimed at [rad]."""
        return _bounded(self.factor * self.nominal, MOST_LEAD)

    def learn(self, taken: float) -> None:
        """Take it that the load took a lead [rad]."""
        nominal, before = self.nominal, self.lead
        least, most = sorted(share * self.factor * nominal for share in LIKELY)
        if least <= taken <= most:
            self.contrary.clear()
            total = FORGET * self.weight + nominal**2
            self.factor = (FORGET * self.weight * self.factor + taken * nominal) / total
            self.weight = total
        else:
            self.contrary.append((nominal, taken))
            if len(self.contrary) == CONTRARY:
                self.weight = sum(x * x for x, _ in self.contrary)
                self.factor = sum(x * y for x, y in self.contrary) / self.weight
                self.contrary.clear()
        self.factor = min(max(self.factor, 0.0), MOST_FACTOR)
        self.trim = _bounded(self.trim + before - self.lead, MOST_TRIM)  # it stays where it is

    def correct(self, error: float) -> None:
        """Trim a joint that rests away from its command by an error [rad]."""
        if abs(error) > DEAD:
            most = min(max(MOST_PUSH * self.compliance - abs(error), abs(self.trim)), MOST_TRIM)
            self.trim = _bounded(self.trim + SHARE * error, most)

    @property
    def doubt(self) -> str:
        """What its owner should look at."""
        if self.factor == 0.0:
            return 'its load is not that of the description, so no sag is compensated. Is the base upright?'
        need = abs(self.factor * self.nominal)
        if need < NEEDS * MOST_LEAD:
            return ''
        return (
            f'needs a lead of {math.degrees(need):.1f} degrees, at most {math.degrees(MOST_LEAD):.1f} are '
            'used: raise its P gain (ik_servo_check --protect), or take load off'
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
            name: _Joint(compliance, min(max(factors.get(name, 1.0), 0.0), MOST_FACTOR))
            for name, compliance in compliances.items()
            if name in turning
        }
        self._places: dict[str, float] = {}
        self._commands: dict[str, float] = {}
        self._rests = self._trimmed = 0.0  # [s] since the commands moved, and since the last trim
        self._absurd: dict[str, str] = {}  # what the owner should look at, by joint

    def begin(self, places: Mapping[str, float], held: Collection[str]) -> None:
        """Begin with joints at places [rad]; held: those with torque, whose goals are ahead already."""
        self._commands.clear()
        self._absurd.clear()
        for joint in self._joints.values():
            joint.trim = joint.ahead = 0.0
            joint.learned = False
        self.move(places, 0.0)
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
    def doubts(self) -> dict[str, str]:
        """What the owner should look at, by joint."""
        return self._absurd or {name: joint.doubt for name, joint in self._joints.items() if joint.doubt}

    def move(self, places: Mapping[str, float], dt: float) -> None:
        """Move the leads for dt [s] to what gravity takes with the joints at places [rad]."""
        if self._torques is None:
            return
        if any(abs(place - self._places.get(name, math.inf)) > MOVED for name, place in places.items()):
            self._places = dict(places)
            torques = self._torques(places)
            for name, joint in self._joints.items():
                joint.nominal = -joint.compliance * torques.get(name, 0.0)
                if not abs(joint.nominal) < ABSURD:  # also if it is not a number
                    self._absurd[name] = NOT_CARRIED
            if self._absurd:
                for joint in self._joints.values():
                    joint.nominal = 0.0
        for joint in self._joints.values():
            joint.ahead += _bounded(joint.lead + joint.trim - joint.ahead, RATE * dt)

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
            place = measured[name].position
            if abs(commands[name] - place) > FAR:
                continue
            if not joint.learned and abs(joint.nominal) > LEARNT:
                joint.learn(sent[name] - place)
                self._factors[name], joint.learned = joint.factor, True
            joint.correct(commands[name] - place)


def compliances(servos: Iterable[ServoSurvey]) -> dict[str, float]:
    """Return by how much joints yield to a torque [rad/Nm], by name; without grippers, which hold things."""
    return {
        servo.joint.name: servo.model.compliance(servo.p_gain)
        * servo.joint.scale**2
        / (1 + len(servo.joint.shadows))
        for servo in servos
        if not servo.joint.gripper
    }


def _bounded(value: float, most: float) -> float:
    return min(max(value, -most), most)
