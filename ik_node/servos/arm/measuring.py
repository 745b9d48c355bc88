# SPDX-License-Identifier: Apache-2.0
"""Measuring: from the answers of one cycle to joints; what is missing or implausible is not a number."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from ik_node.errors import join_names
from ik_node.servos.arm.snapshot import Counts, JointMeasurement
from ik_node.servos.arm.survey import ServoSurvey
from ik_node.servos.bus.dynamixel import ALERT
from ik_node.servos.bus.models import TICKS_PER_TURN
from ik_node.servos.bus.transport import Answer, Reply, Transport
from ik_node.servos.calibration.zeros import JointCalibration

RETRIES = 2  # single reads per cycle, after a sync read with faults
SLACK = 40  # [ticks] beyond the fastest motion that a position may have changed
PUSHED = 1.5  # times the fastest speed without load: pushed by hand or by gravity
SETTLED = 3  # readings that agree with each other are believed, even after a jump


class Measuring:
    """Reads all servos once per cycle.

    last: when each servo answered [s], by joint. lasting: conditions that a joint reports again.
    """

    def __init__(
        self, servos: Sequence[ServoSurvey], calibration: Mapping[str, JointCalibration], counts: Counts
    ) -> None:
        self._servos, self._counts = servos, counts
        self.calibration = calibration
        self.last: dict[str, float] = {}
        self.lasting: dict[str, list[str]] = {}
        self._reported: dict[str, tuple[str, ...]] = {}  # conditions
        self._ticks: dict[str, int] = {}
        self._doubted: dict[str, list[int]] = {}
        self._beyond: dict[str, int] = {}  # ticks of joints that count beyond one turn

    def know(self, ticks: Mapping[str, int], time: float) -> None:
        """Take it that joints were at these ticks at time [s]: what comes next must be near."""
        self._ticks.update(ticks)
        self.last.update(dict.fromkeys(ticks, time))
        self._doubted.clear()

    def read(self, transport: Transport, time: float) -> dict[str, JointMeasurement]:
        """Return the joints that answered at time [s]."""
        address, size = self._servos[0].model.measured
        ids = [servo.joint.id for servo in self._servos]
        replies = transport.sync_read(ids, address, size)
        retries = RETRIES
        found = {}
        for servo in self._servos:
            reply = replies[servo.joint.id]
            if not isinstance(reply, Answer):
                self._counts.add(reply.value)
                if retries:
                    retries -= 1
                    self._counts.retries += 1
                    reply = transport.read(servo.joint.id, address, size)
                    if not isinstance(reply, Answer):
                        self._counts.add(reply.value)
            measured = self._measured(servo, reply, address, time, transport)
            if measured is not None:
                found[servo.joint.name] = measured
        before, self._reported = self._reported, {name: joint.conditions for name, joint in found.items()}
        both = {name: [c for c in now if c in before.get(name, ())] for name, now in self._reported.items()}
        self.lasting = {name: conditions for name, conditions in both.items() if conditions}
        return found

    def _measured(
        self, servo: ServoSurvey, reply: Reply, address: int, time: float, transport: Transport
    ) -> JointMeasurement | None:
        if not isinstance(reply, Answer):
            return None
        model, joint = servo.model, servo.joint
        counts = model.decode(address, reply.data)
        tick = counts['present_position']
        if not self._plausible(servo, tick, time):
            self._counts.add('implausible position')
            return None
        quantity = {
            name: model[name].quantity(counts[name])
            for name in ('present_velocity', 'present_voltage', 'present_temperature')
        }
        load = counts.get('present_load')
        if load is not None:
            share = model['present_load'].quantity(load)
        else:  # a share of the largest current is near enough to tell a stall
            share = counts['present_current'] / max(servo.most_current, 1)
        self._ticks[joint.name], self.last[joint.name] = tick, time
        return JointMeasurement(
            tick,
            self.calibration[joint.name].position(tick),
            joint.sign * joint.unit * quantity['present_velocity'],
            joint.sign * share,
            quantity['present_voltage'],
            quantity['present_temperature'],
            tuple(model.conditions_of(self._status(servo, reply, transport))),
        )

    def _status(self, servo: ServoSurvey, reply: Answer, transport: Transport) -> int:
        """Return the bits of the register status: in each answer, or, of a Dynamixel, announced by a bit."""
        if servo.model.homing_sign < 0:
            return reply.error
        if not reply.error & ALERT:
            return 0
        register = servo.model['status']
        found = transport.read(servo.joint.id, register.address, register.size)
        return register.decode(found.data) if isinstance(found, Answer) else 0

    def _plausible(self, servo: ServoSurvey, tick: int, time: float) -> bool:
        """Whether a joint can have moved to a tick since it was measured last."""
        joint = servo.joint
        self._beyond.pop(joint.name, None)
        if servo.model.homing_sign < 0 and not 0 <= tick < TICKS_PER_TURN:
            self._beyond[joint.name] = tick
            return False
        if joint.name not in self._ticks:
            return True
        way = abs(tick - self._ticks[joint.name])
        if joint.full_turn:
            way = min(way, abs(TICKS_PER_TURN - way))
        most = SLACK + PUSHED * joint.fastest / joint.unit * (time - self.last[joint.name])
        doubted = self._doubted.setdefault(joint.name, [])
        if way <= most:
            doubted.clear()
            return True
        doubted.append(tick)
        del doubted[:-SETTLED]
        return len(doubted) == SETTLED and max(doubted) - min(doubted) <= SLACK

    def silent(self, time: float, patience: float) -> list[str]:
        """Return the joints that have not answered for longer than patience [s]."""
        return [
            servo.joint.name
            for servo in self._servos
            if time - self.last.get(servo.joint.name, -math.inf) > patience
        ]

    def why_not(self, silent: Sequence[str]) -> str:
        """Why there is no measurement of joints that have been silent for too long, and what helps."""
        found = []
        if mute := [name for name in silent if name not in self._beyond]:
            found.append(f'no answer from {join_names(mute)}: check the cables')
        found += [
            f'"{name}" is at tick {self._beyond[name]}, beyond its turn of 0 to {TICKS_PER_TURN - 1}: '
            'clear bit 4 of its phase, and calibrate it again'
            for name in silent
            if name in self._beyond
        ]
        return '; '.join(found)
