# SPDX-License-Identifier: Apache-2.0
"""An emulated servo bus: Bus carries out instructions, Server puts it behind a pseudo-terminal."""

from __future__ import annotations

import contextlib
import fcntl
import heapq
import itertools
import math
import os
import pty
import select
import struct
import termios
import tty
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from operator import and_
from pathlib import Path

from ik_node.errors import InputError
from ik_node.servos.bus.dynamixel import REBOOT
from ik_node.servos.bus.models import model_named
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
from ik_node.servos.calibration.profile import PROTOCOLS, ArmProfile, JointProfile
from ik_node.steady import steady

from .dynamixel_servo import DRIVE_MODE, P_GAIN, POSITION, REVERSE, SECONDARY, DynamixelServo
from .dynamixel_servo import HIGH as DXL_HIGH
from .dynamixel_servo import LOW as DXL_LOW
from .motor import Motor, Servo
from .sts_servo import HIGH, LOW, MAX_TORQUE, OFFSET, OVERLOAD, PROTECTION_CURRENT, StsServo

MIDDLE = 2048.0  # tick of zero of every emulated joint
MAX_SHARE = 0.95  # of the torque that gravity takes


def servos_of(profile: ArmProfile) -> list[Servo]:
    """Return the servos of an arm whose zeros are at MIDDLE, calibrated from stop to stop."""
    servos = [servo for joint in profile.joints for servo in _servos(profile, joint)]
    for servo in servos:
        if profile.baud not in servo.BAUDS:
            raise InputError(f'no servo of {profile.name} has {profile.baud} baud, but {servo.BAUDS}')
        _keep(servo, servo.BAUD_AT, 1, servo.BAUDS.index(profile.baud))
    return servos


def _servos(profile: ArmProfile, joint: JointProfile) -> list[Servo]:
    fastest = joint.fastest / joint.unit
    stops = joint.stops
    if stops is None:
        low, high = (-1e9, 1e9) if joint.full_turn else (MIDDLE - 1900, MIDDLE + 1900)
    else:
        low, high = sorted(MIDDLE + joint.sign * stop / joint.unit for stop in stops)
    if profile.protocol == 'feetech':
        offset = 1 if joint.full_turn else 0  # without offset and range it would be as delivered
        motor = Motor(MIDDLE + offset, low=low, high=high, fastest=fastest, play=6.0)
        servo: Servo = StsServo(joint.id, motor)
        _keep(servo, OFFSET, 2, offset)
        if not joint.full_turn:
            _keep(servo, LOW, 2, round(low))
            _keep(servo, HIGH, 2, round(high))
        if joint.gripper:  # as LeRobot sets it
            for address, size, value in (
                (MAX_TORQUE, 2, 500),
                (PROTECTION_CURRENT, 2, 250),
                (OVERLOAD, 1, 25),
            ):
                _keep(servo, address, size, value)
        return [servo]
    mode = POSITION if joint.mode is None else joint.mode
    found: list[Servo] = []
    ends = (2 * MIDDLE - high, 2 * MIDDLE - low) if joint.reversed else (low, high)
    for id in (joint.id, *joint.shadows):
        motor = Motor(MIDDLE, low=ends[0], high=ends[1], fastest=fastest)
        servo = DynamixelServo(id, joint.model, motor, mode)
        if id != joint.id:
            _keep(servo, SECONDARY, 1, joint.id)
        if joint.reversed:
            _keep(servo, DRIVE_MODE, 1, REVERSE)
        if mode == POSITION:
            _keep(servo, DXL_LOW, 4, round(low))
            _keep(servo, DXL_HIGH, 4, round(high))
        found.append(servo)
    return found


def weighing(
    profile: ArmProfile, servos: Sequence[Servo], weight: Callable[[Mapping[str, float]], Mapping[str, float]]
) -> Callable[[], None]:
    """Return what sets the gravity of servos_of a profile; weight: torques [Nm] at positions, by joint.

    A servo without torque lies on something: it does not fall.
    """
    by_id = {servo.ids[0]: servo for servo in servos}
    joints = [(joint, model_named(joint.model), -1 if joint.reversed else 1) for joint in profile.joints]
    for joint, model, _ in joints:
        for id in (joint.id, *joint.shadows):
            if isinstance(servo := by_id[id], DynamixelServo):
                servo.motor.stiffness = model.stiffness * servo.get(P_GAIN, 2)

    def weigh() -> None:
        torques = weight(
            {
                joint.name: joint.sign * direction * joint.unit * (by_id[joint.id].motor.actual - MIDDLE)
                for joint, _, direction in joints
            }
        )
        for joint, model, direction in joints:
            stall = model.stall * (1 + len(joint.shadows)) / joint.scale
            share = joint.sign * direction * torques.get(joint.name, 0.0) / stall
            for id in (joint.id, *joint.shadows):
                by_id[id].motor.gravity = min(max(share, -MAX_SHARE), MAX_SHARE)

    return weigh


def _keep(servo: Servo, address: int, size: int, value: int) -> None:
    servo.put(address, size, value)
    servo.keep(address, size)


WEIGHED = 0.01  # [s] after which the gravity of the motors is set anew
INSTRUCTION_ERROR = 2  # Dynamixel: an unknown instruction

# Bytes of parameters that an instruction has at least.
MIN_FEETECH = {READ: 2, WRITE: 2, SYNC_READ: 2, SYNC_WRITE: 2}
MIN_DYNAMIXEL = {READ: 4, WRITE: 3, SYNC_READ: 4, SYNC_WRITE: 4}


class Bus:
    """Takes bytes at a time [s], and returns what comes back, in pieces and when.

    baud: speed of the driver's line, to which only servos of this speed listen; None: all do. weigh: called
    from time to time to set the gravity of the motors.
    """

    def __init__(self, servos: Sequence[Servo], protocol: str) -> None:
        self.servos = list(servos)
        self._feetech = protocol == 'feetech'
        self._codec = PROTOCOLS[protocol]
        self._parser = self._codec.parser(Instruction)
        self.baud: int | None = None
        self.weigh: Callable[[], None] = lambda: None
        self._weighed = -math.inf

    def advance(self, time: float) -> None:
        """Let time pass for all servos."""
        if time - self._weighed > WEIGHED:
            self._weighed = time
            self.weigh()
        for servo in self.servos:
            servo.advance(time)

    def feed(self, data: bytes, time: float) -> list[tuple[float, bytes]]:
        """Return the pieces that come back for data received at time [s], each with when."""
        return [piece for packet in self._parser.feed(data) for piece in self.receive(packet, time)]

    def receive(self, packet: Instruction, time: float) -> list[tuple[float, bytes]]:
        """Carry out an instruction; return the pieces of the answers, each not before the one it follows."""
        self.advance(time)
        for servo in self.servos:
            if isinstance(servo, DynamixelServo) and self._matches(servo):
                servo.feed_watchdog()
        pieces = self._carried_out(packet, time)
        times = accumulate((when for when, _ in pieces), max)
        return [(when, piece) for when, (_, piece) in zip(times, pieces, strict=True)]

    def _matches(self, servo: Servo) -> bool:
        return servo.powered and self.baud in (None, servo.baud)

    def _carried_out(self, packet: Instruction, time: float) -> list[tuple[float, bytes]]:
        if len(packet.parameters) < (MIN_FEETECH if self._feetech else MIN_DYNAMIXEL).get(packet.code, 0):
            return []  # no servo answers what it does not understand
        if packet.code == SYNC_READ:
            return self._sync_read(packet.parameters, time)
        if packet.code == SYNC_WRITE:
            self._sync_write(packet.parameters, time)
            return []
        answers: dict[int, list[Status]] = {}
        for servo in self.servos:
            if (packet.id != BROADCAST and packet.id not in servo.ids) or not self._matches(servo):
                continue
            status = self._single(servo, packet, time)
            answers_it = packet.id == servo.ids[0] or (packet.id == BROADCAST and packet.code == PING)
            if status is not None and answers_it:
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
            word = self._codec.WORD
            wrong = self._write(servo, int.from_bytes(data[:word], 'little'), data[word:], time)
            return Status(id, servo.condition | wrong) if self._acknowledges(servo) else None
        if packet.code == REBOOT and isinstance(servo, DynamixelServo):
            servo.reboot()
            return Status(id, servo.condition)
        return None if self._feetech else Status(id, error | INSTRUCTION_ERROR)

    def _level(self, servo: Servo) -> int:
        return 1 if isinstance(servo, StsServo) else servo.registers[68]

    def _acknowledges(self, servo: Servo) -> bool:
        return servo.registers[8] == 1 if isinstance(servo, StsServo) else servo.registers[68] == 2

    def _span(self, data: bytes) -> tuple[int, int]:
        word = self._codec.WORD
        return int.from_bytes(data[:word], 'little'), int.from_bytes(data[word : 2 * word], 'little')

    def _write(self, servo: Servo, address: int, data: bytes, time: float) -> int:
        error = servo.write(address, data)
        servo.advance(time)
        return error

    def _read(self, servo: Servo, address: int, size: int, time: float) -> bytes:  # noqa: ARG002
        servo.measure()
        return bytes(servo.registers[address : address + size])

    def _sync_read(self, data: bytes, time: float) -> list[tuple[float, bytes]]:
        address, size = self._span(data)
        back: list[tuple[float, bytes]] = []
        for id in data[2 * self._codec.WORD :]:
            same = [
                Status(id, servo.condition, self._read(servo, address, size, time))
                for servo in self.servos
                if id == servo.ids[0] and self._matches(servo)
            ]
            if same:
                back += self._sent(same, time)
        return back

    def _sync_write(self, data: bytes, time: float) -> None:
        address, size = self._span(data)
        body = data[2 * self._codec.WORD :]
        for begin in range(0, len(body) - size, size + 1):
            for servo in self.servos:
                if body[begin] in servo.ids and self._matches(servo):
                    self._write(servo, address, body[begin + 1 : begin + 1 + size], time)

    def _sent(self, same: Sequence[Status], time: float) -> list[tuple[float, bytes]]:
        """Return the pieces of a status and when they come.

        same: the statuses of all servos with that id; they answer at the same time, and a line is low if one
        of them pulls it down.
        """
        frame, *others = (self._codec.encode(status) for status in same)
        for other in others:
            frame = bytes(map(and_, frame, other))
        return [(time, frame)]


READ_SIZE = 4096  # [bytes] read at once
IDLE = 0.05  # [s] between two looks at the motors while nothing arrives
TCGETS2 = 0x802C542A  # Linux: the settings of a terminal, with its speed as a number


class Server:
    """One bus behind the link at path, which points to the terminal while the bus is plugged in.

    Times are those of time.monotonic, which all processes of a computer share.
    """

    def __init__(self, bus: Bus, path: Path) -> None:
        self._bus, self._path = bus, path
        self._parent = os.getppid()
        self._terminal: int | None = None
        self._line: int | None = None
        self._due: list[tuple[float, int, bytes]] = []  # pieces to send, by time
        self._order = itertools.count()
        self.plug(True)

    def run(self) -> None:
        """Serve until the process that started this one ends."""
        while os.getppid() == self._parent:
            self._serve(self._ready())

    def _ready(self, *others: int) -> list[int]:
        """Wait until a piece is due, or there is something to read; return from where."""
        wait = min(max(self._due[0][0] - steady(), 0.0), IDLE) if self._due else IDLE
        watched = others if self._terminal is None else (*others, self._terminal)
        return select.select(watched, [], [], wait)[0]

    def _serve(self, ready: Sequence[int]) -> None:
        if self._terminal is not None and self._terminal in ready:
            with contextlib.suppress(OSError):
                data = os.read(self._terminal, READ_SIZE)
                self._bus.baud = self._baud()
                for when, piece in self._bus.feed(data, steady()):  # after all that has been read was sent
                    heapq.heappush(self._due, (when, next(self._order), piece))
        elif not ready:
            self._bus.advance(steady())
            self._share()
        self._send(steady())

    def _share(self) -> None:
        """Let others open the line: it is open here too, so a driver that was killed leaves it locked."""
        if self._line is not None:
            fcntl.ioctl(self._line, termios.TIOCNXCL)

    def _baud(self) -> int | None:
        """Return the speed that the driver has set, None if this system does not tell."""
        assert self._line is not None
        try:
            settings = fcntl.ioctl(self._line, TCGETS2, bytes(44))
        except OSError:
            return None
        return int(struct.unpack_from('=I', settings, 40)[0])

    def _send(self, now: float) -> None:
        while self._due and self._due[0][0] <= now:
            _, _, piece = heapq.heappop(self._due)
            if self._terminal is not None:
                with contextlib.suppress(OSError):
                    os.write(self._terminal, piece)

    def plug(self, on: bool) -> None:
        """Plug the adapter in or out; what was on its way is lost."""
        if on == (self._terminal is not None):
            return
        self._due.clear()
        if on:
            self._terminal, self._line = pty.openpty()
            tty.setraw(self._line)
            link = self._path.with_name(self._path.name + '.new')
            link.unlink(missing_ok=True)
            link.symlink_to(os.ttyname(self._line))
            link.replace(self._path)
        else:
            self._path.unlink(missing_ok=True)
            for descriptor in (self._terminal, self._line):
                if descriptor is not None:
                    os.close(descriptor)
            self._terminal = self._line = None
