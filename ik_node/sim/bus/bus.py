# SPDX-License-Identifier: Apache-2.0
"""Bus: servos that carry out instructions, and their answers with all that may go wrong."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate
from operator import and_
from types import ModuleType
from typing import cast

from ik_node.servos.bus import dynamixel, feetech
from ik_node.servos.bus.packets import (
    BROADCAST,
    PING,
    READ,
    SYNC_READ,
    SYNC_WRITE,
    WRITE,
    Instruction,
    Status,
)
from ik_node.sim.bus.dynamixel_servo import DynamixelServo
from ik_node.sim.bus.faults import Faults, Kind
from ik_node.sim.bus.servo import Servo
from ik_node.sim.bus.sts_servo import StsServo

LOGGED = 400_000  # entries of a log
WEIGHED = 0.01  # [s] after which the gravity of the motors is set anew
INSTRUCTION_ERROR = 2  # Dynamixel: an unknown instruction
NAMES = {PING: 'ping', READ: 'read', WRITE: 'write', SYNC_READ: 'sync_read', SYNC_WRITE: 'sync_write'}
# Bytes of parameters that an instruction has at least.
LEAST_FEETECH = {READ: 2, WRITE: 2, SYNC_READ: 2, SYNC_WRITE: 2}
LEAST_DYNAMIXEL = {READ: 4, WRITE: 3, SYNC_READ: 4, SYNC_WRITE: 4}


class Bus:
    """Takes bytes at a time [s], and returns what comes back, in pieces and when.

    goals: every goal that was written, as (time, id, ticks). answered: every position that was measured for
    an answer. posed: positions of answers that bore a wrong id, by that id. torques: every change of torque,
    as (time, id, on). baud: speed of the driver's line, to which
    only servos of this speed listen; None: all do. weigh: called from time to time to set the gravity of the
    motors.
    """

    def __init__(self, servos: Sequence[Servo], protocol: str, seed: int = 0) -> None:
        self.servos, self.faults = list(servos), Faults(seed)
        self._feetech = protocol == 'feetech'
        self._codec: ModuleType = feetech if self._feetech else dynamixel
        self._parser = self._codec.Parser(Instruction)
        self.baud: int | None = None
        self.goals: deque[tuple[float, int, int]] = deque(maxlen=LOGGED)
        self.answered: deque[tuple[float, int, int]] = deque(maxlen=LOGGED)
        self.posed: deque[tuple[float, int, int]] = deque(maxlen=LOGGED)
        self.torques: deque[tuple[float, int, bool]] = deque(maxlen=LOGGED)
        self.weigh: Callable[[], None] = lambda: None
        self._weighed = -math.inf

    def advance(self, time: float) -> None:
        """Let time pass for all servos."""
        if time - self._weighed > WEIGHED:
            self._weighed = time
            self.weigh()
        for servo in self.servos:
            had = servo.torque
            servo.advance(time)
            if had and not servo.torque:  # it has shut down
                self.torques.append((time, servo.ids[0], False))

    def feed(self, data: bytes, time: float) -> list[tuple[float, bytes]]:
        """Return the pieces that come back for data received at time [s], each with when."""
        back: list[tuple[float, bytes]] = []
        packets = self._parser.feed(data)
        if packets:
            self.faults.request = self._request(packets[0])
        if self.faults.hit(Kind.ECHO):
            back.append((time, data))
        for packet in packets:
            self.faults.request = self._request(packet)
            self.advance(time)
            if not self.faults.hit(Kind.LOST):
                for servo in self.servos:
                    if isinstance(servo, DynamixelServo) and self._hears(servo):
                        servo.heard()
                back += _in_order(self._carried_out(packet, time))
        return back

    def _request(self, packet: Instruction) -> str:
        """Return the name of an instruction and the address that it concerns."""
        wide = 1 if self._feetech else 2
        address = int.from_bytes(packet.parameters[:wide], 'little')
        return f'{NAMES.get(packet.code, packet.code)} {address}'

    def _hears(self, servo: Servo) -> bool:
        return servo.powered and self.baud in (None, servo.baud)

    def _carried_out(self, packet: Instruction, time: float) -> list[tuple[float, bytes]]:
        if len(packet.parameters) < (LEAST_FEETECH if self._feetech else LEAST_DYNAMIXEL).get(packet.code, 0):
            return []  # no servo answers what it does not understand
        if packet.code == SYNC_READ:
            return self._sync_read(packet.parameters, time)
        if packet.code == SYNC_WRITE:
            self._sync_write(packet.parameters, time)
            return []
        answers: dict[int, list[Status]] = {}
        for servo in self.servos:
            if (packet.id != BROADCAST and packet.id not in servo.ids) or not self._hears(servo):
                continue
            status = self._single(servo, packet, time)
            asked = packet.id == servo.ids[0] or (packet.id == BROADCAST and packet.code == PING)
            if status is not None and asked:
                answers.setdefault(status.id, []).append(status)
        return [piece for same in answers.values() for piece in self._sent(same, time)]

    def _single(self, servo: Servo, packet: Instruction, time: float) -> Status | None:
        """Carry out an instruction for one servo; return its status, None if it does not answer."""
        id, error, level = servo.ids[0], servo.condition, self._level(servo)
        data = packet.parameters
        if packet.code == PING:
            found = b'' if self._feetech else bytes(servo.registers[0:2]) + bytes(servo.registers[6:7])
            return Status(id, error, found)
        if packet.code == READ:
            address, size = self._span(data)
            return Status(id, error, self._read(servo, address, size, time)) if level else None
        if packet.code == WRITE:
            wide = 1 if self._feetech else 2
            address = int.from_bytes(data[:wide], 'little')
            wrong = self._write(servo, address, data[wide:], time)
            return Status(id, servo.condition | wrong) if self._acknowledges(servo) else None
        if packet.code == dynamixel.REBOOT and isinstance(servo, DynamixelServo):
            with self.noting_torque(servo, time):
                servo.reboot()
            return Status(id, servo.condition)
        return None if self._feetech else Status(id, error | INSTRUCTION_ERROR)

    def _level(self, servo: Servo) -> int:
        return 1 if isinstance(servo, StsServo) else servo.registers[68]

    def _acknowledges(self, servo: Servo) -> bool:
        return servo.registers[8] == 1 if isinstance(servo, StsServo) else servo.registers[68] == 2

    def _span(self, data: bytes) -> tuple[int, int]:
        if self._feetech:
            return data[0], data[1]
        return int.from_bytes(data[:2], 'little'), int.from_bytes(data[2:4], 'little')

    def _write(self, servo: Servo, address: int, data: bytes, time: float) -> int:
        goal, size = servo.GOAL_AT
        with self.noting_torque(servo, time):
            error = servo.write(address, data)
        if not error and address <= goal and goal + size <= address + len(data):
            self.goals.append((time, servo.ids[0], servo.ticks(servo.GOAL_AT)))
        servo.advance(time)
        return error

    @contextmanager
    def noting_torque(self, servo: Servo, time: float) -> Iterator[None]:
        """Log whether what is done within changes the torque of a servo."""
        before = servo.torque
        yield
        if servo.torque != before:
            self.torques.append((time, servo.ids[0], servo.torque))

    def _read(self, servo: Servo, address: int, size: int, time: float) -> bytes:
        servo.measure()
        data = bytearray(servo.registers[address : address + size])
        place, wide = servo.PRESENT_AT
        if address <= place and place + wide <= address + size:
            self.answered.append((time, servo.ids[0], servo.ticks(servo.PRESENT_AT)))
            wrong = self.faults.hit(Kind.WRONG, servo.ids[0])
            if wrong is not None:
                false = servo.get(place, wide) + wrong.ticks & (1 << 8 * wide) - 1
                data[place - address : place - address + wide] = false.to_bytes(wide, 'little')
        return bytes(data)

    def _sync_read(self, data: bytes, time: float) -> list[tuple[float, bytes]]:
        address, size = self._span(data)
        back: list[tuple[float, bytes]] = []
        for id in data[2 if self._feetech else 4 :]:
            same = [
                Status(id, servo.condition, self._read(servo, address, size, time))
                for servo in self.servos
                if id == servo.ids[0] and self._hears(servo)
            ]
            sent = self._sent(same, time) if same else []
            if not sent and self.faults.hit(Kind.SILENCE, id):
                break
            back += sent
        return back

    def _sync_write(self, data: bytes, time: float) -> None:
        address, size = self._span(data)
        body = data[2 if self._feetech else 4 :]
        for begin in range(0, len(body) - size, size + 1):
            for servo in self.servos:
                if body[begin] in servo.ids and self._hears(servo):
                    self._write(servo, address, body[begin + 1 : begin + 1 + size], time)

    def _sent(self, same: Sequence[Status], time: float) -> list[tuple[float, bytes]]:
        """Return the pieces of a status, with the faults of its servo; none if it is missing.

        same: the statuses of all servos with that id; they answer at the same time.
        """
        status, *others = same
        faults, id = self.faults, status.id
        if faults.hit(Kind.MISSING, id):
            return []
        bits = faults.hit(Kind.STATUS, id)
        if bits is not None:
            status = Status(id, status.error | bits.bits, status.data)
        if faults.hit(Kind.FOREIGN, id):
            status = Status(id % self._codec.LARGEST_ID + 1, status.error, status.data)
            if self.answered:
                self.posed.append((time, status.id, self.answered[-1][2]))
        if status.data and faults.hit(Kind.SHORT, id):
            status = Status(id, status.error, status.data[:-1])
        frame = cast(bytes, self._codec.encode(status))
        for other in others:  # a line is low if one of them pulls it down
            frame = bytes(map(and_, frame, self._codec.encode(other)))
        if faults.hit(Kind.CORRUPT, id):
            frame = faults.damaged(frame)
        late = faults.hit(Kind.LATE, id)
        begin = time if late is None else time + late.delay
        pieces = [(begin, faults.junk())] if faults.hit(Kind.JUNK, id) else []
        split = faults.hit(Kind.SPLIT, id)
        if split is None:
            return [*pieces, (begin, frame)]
        middle = len(frame) // 2
        return [*pieces, (begin, frame[:middle]), (begin + split.delay, frame[middle:])]


def _in_order(pieces: list[tuple[float, bytes]]) -> list[tuple[float, bytes]]:
    """Return the answers to one instruction, each not before the one that it follows on the line."""
    times = accumulate((when for when, _ in pieces), max)
    return [(when, piece) for when, (_, piece) in zip(times, pieces, strict=True)]
