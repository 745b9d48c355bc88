# SPDX-License-Identifier: Apache-2.0
"""Bus: servos that carry out instructions, their answers with all that may go wrong, and its socket."""

from __future__ import annotations

import contextlib
import fcntl
import heapq
import itertools
import json
import math
import os
import pty
import random
import select
import struct
import sys
import termios
import tty
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from itertools import accumulate
from operator import and_
from pathlib import Path
from types import ModuleType
from typing import Any, cast

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
from ik_node.sim.bus.sts_servo import StsServo
from ik_node.steady import steady

from .servo import Servo


class Kind(str, Enum):
    """What can be wrong; all but the last three concern answers, of one servo or of all."""

    MISSING = 'missing'  # no answer
    LATE = 'late'  # delay [s]
    CORRUPT = 'corrupt'  # a bit is wrong
    SHORT = 'short'  # the answer is valid, but has too few data
    SPLIT = 'split'  # in two pieces, delay [s] between them
    JUNK = 'junk'  # random bytes before the answer
    STATUS = 'status'  # bits of the error byte
    FOREIGN = 'foreign'  # the answer is valid, but bears the id that follows that of the servo
    WRONG = 'wrong'  # the answer is valid, but the position in it is off by ticks
    LOST = 'lost'  # an instruction that no servo hears
    ECHO = 'echo'  # the adapter sends back what it gets
    SILENCE = 'silence'  # of a sync read: no answers after that of a missing servo


@dataclass
class Fault:
    """A fault of the servo with that id, None: of all.

    share: of the packets that it hits. count: how many it hits at most, None: any number. delay [s], bits,
    ticks: see Kind.
    """

    kind: Kind
    id: int | None = None
    share: float = 1.0
    count: int | None = None
    delay: float = 0.0
    bits: int = 0
    ticks: int = 0


class Faults:
    """active: the faults in force; the same seed gives the same ones.

    request: what is carried out, such as 'read 56'. hits: packets that were hit, by (request, kind).
    """

    def __init__(self, seed: int = 0) -> None:
        self._random = random.Random(seed)
        self.active: list[Fault] = []
        self.request = ''
        self.hits: Counter[tuple[str, str]] = Counter()

    def hit(self, kind: Kind, id: int | None = None) -> Fault | None:
        """Return the fault of a kind that hits the next packet of a servo, None if none does."""
        for fault in self.active:
            if fault.kind is not kind or (fault.id is not None and id is not None and fault.id != id):
                continue
            if fault.count == 0 or self._random.random() >= fault.share:
                continue
            if fault.count is not None:
                fault.count -= 1
            self.hits[self.request, kind.value] += 1
            return fault
        return None

    def junk(self) -> bytes:
        """Return some random bytes."""
        return self._random.randbytes(self._random.randint(1, 12))

    def damaged(self, frame: bytes) -> bytes:
        """Return a frame with one wrong bit."""
        bit = self._random.randrange(8 * len(frame))
        changed = bytearray(frame)
        changed[bit // 8] ^= 1 << bit % 8
        return bytes(changed)


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


# The process of an emulated bus: a pseudo-terminal for the driver, JSON lines on stdin for the test.
#
# Each line is a call such as {"do": "plug", "on": false}; the answer is a line on stdout. Times are those
# of time.monotonic, which all processes of a computer share.

MOST = 4096  # [bytes] read at once
IDLE = 0.05  # [s] between two looks at the motors while nothing is asked
TCGETS2 = 0x802C542A  # Linux: the settings of a terminal, with its speed as a number


class Server:
    """One bus behind the link at path, which points to the terminal while the bus is plugged in.

    calls: take calls on stdin, and end with it; without, end with the process that started this one.
    """

    def __init__(self, bus: Bus, path: Path, calls: bool) -> None:
        self._bus, self._path = bus, path
        self._calls, self._parent = [sys.stdin.fileno()] if calls else [], os.getppid()
        self._terminal: int | None = None
        self._line: int | None = None
        self._due: list[tuple[float, int, bytes]] = []  # pieces to send, by time
        self._order = itertools.count()
        self.do_plug(True)

    def run(self) -> None:
        """Serve until stdin or the parent ends."""
        pending = b''
        while os.getppid() == self._parent:
            now = steady()
            wait = min(max(self._due[0][0] - now, 0.0), IDLE) if self._due else IDLE
            watched = [*self._calls, *([] if self._terminal is None else [self._terminal])]
            ready, _, _ = select.select(watched, [], [], wait)
            if self._calls and self._calls[0] in ready:
                read = os.read(self._calls[0], MOST)
                if not read:
                    return
                *lines, pending = (pending + read).split(b'\n')
                for line in lines:
                    self._answer(line)
            if self._terminal is not None and self._terminal in ready:
                with contextlib.suppress(OSError):
                    data = os.read(self._terminal, MOST)
                    self._bus.baud = self._baud()
                    now = steady()  # after all that has been read was sent
                    for when, piece in self._bus.feed(data, now):
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

    def _answer(self, line: bytes) -> None:
        try:
            call = json.loads(line)
            result = {'ok': getattr(self, f'do_{call.pop("do")}')(**call)}
        except Exception as error:
            result = {'error': repr(error)}
        sys.stdout.write(json.dumps(result) + '\n')
        sys.stdout.flush()

    # Calls

    def do_plug(self, on: bool) -> None:
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

    def do_power(self, on: bool, id: int | None = None) -> None:
        """Switch the power of a servo, None: of all."""
        now = steady()
        self._bus.advance(now)
        for servo in self._servos(id):
            with self._bus.noting_torque(servo, now):
                servo.power(on)

    def do_volts(self, volts: float, id: int | None = None) -> None:
        """Set the supply of a servo, None: of all."""
        self._bus.advance(steady())
        for servo in self._servos(id):
            servo.volts = volts

    def do_alarms(self, bits: int, id: int | None = None) -> None:
        """Let a servo, None: all, report these conditions whatever its state."""
        for servo in self._servos(id):
            servo.alarms = bits

    def do_watch(self) -> None:
        """Count the lowest and highest actual positions from now on."""
        self._bus.advance(steady())
        for servo in self._bus.servos:
            servo.motor.watch()

    def do_faults(self, faults: list[dict[str, Any]]) -> None:
        """Have these faults instead of those before."""
        self._bus.faults.active = [Fault(Kind(fault.pop('kind')), **fault) for fault in faults]

    def do_motor(self, id: int, **values: Any) -> None:
        """Set attributes of the motor of a servo, such as actual, weight or blocked."""
        self._bus.advance(steady())
        motor = self._servo(id).motor
        for name, value in values.items():
            if not hasattr(motor, name):
                raise AttributeError(name)
            setattr(motor, name, tuple(value) if isinstance(value, list) else value)
        if 'actual' in values:
            motor.watch()  # it was carried there
        self._servo(id).drive(0.0)

    def do_put(self, id: int, address: int, size: int, value: int, keep: bool = False) -> None:
        """Write to registers whatever the servo thinks of it; keep: it survives the power."""
        now = steady()
        self._bus.advance(now)
        servo = self._servo(id)
        with self._bus.noting_torque(servo, now):
            servo.put(address, size, value)
        if keep:
            servo.keep(address, size)

    def do_get(self, id: int, address: int, size: int) -> int:
        """Read registers."""
        self._bus.advance(steady())
        servo = self._servo(id)
        servo.measure()
        return servo.get(address, size)

    def do_state(self) -> dict[int, dict[str, Any]]:
        """Return what is true now of every servo, by id."""
        self._bus.advance(steady())
        found = {}
        for servo in self._bus.servos:
            servo.measure()
            found[servo.ids[0]] = {
                'actual': servo.motor.actual,
                'lowest': servo.motor.lowest,
                'highest': servo.motor.highest,
                'velocity': servo.motor.velocity,
                'present': servo.ticks(servo.PRESENT_AT),
                'goal': servo.ticks(servo.GOAL_AT),
                'torque': servo.torque,
                'powered': servo.powered,
                'load': servo.motor.load,
            }
        return found

    def do_log(self, name: str, since: float = 0.0) -> list[Any]:
        """Return the entries of goals, answered, posed or torques since a time."""
        if name not in ('goals', 'answered', 'posed', 'torques'):
            raise AttributeError(name)
        return [entry for entry in getattr(self._bus, name) if entry[0] >= since]

    def do_hits(self) -> list[tuple[str, str, int]]:
        """Return how many packets each kind of fault has hit, as (request, kind, count)."""
        return [(*key, count) for key, count in self._bus.faults.hits.items()]

    def _servos(self, id: int | None) -> list[Servo]:
        found = [servo for servo in self._bus.servos if id in (None, servo.ids[0])]
        if not found:
            raise LookupError(f'no servo has the id {id}')
        return found

    def _servo(self, id: int) -> Servo:
        return self._servos(id)[0]
