# SPDX-License-Identifier: Apache-2.0
"""An emulated bus on which everything may go wrong, with logs and calls.

A pseudo-terminal for the driver, JSON lines on stdin for the test: each line is a call such as
{"do": "plug", "on": false}; the answer is a line on stdout.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import sys
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from ik_node.servos.bus.dynamixel import REBOOT
from ik_node.servos.bus.packets import PING, READ, SYNC_READ, SYNC_WRITE, WRITE, Instruction, Status
from ik_node.servos.calibration.profile import read_profile
from ik_node.servos.emulator.bus import READ_SIZE, Bus, Server, servos_of
from ik_node.servos.emulator.motor import Servo
from ik_node.steady import steady


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
NAMES = {PING: 'ping', READ: 'read', WRITE: 'write', SYNC_READ: 'sync_read', SYNC_WRITE: 'sync_write'}


class FaultyBus(Bus):
    """goals: every goal that was written, as (time, id, ticks). answered: every position that was measured
    for an answer. posed: positions of answers that bore a wrong id, by that id. torques: every change of
    torque, as (time, id, on).
    """

    def __init__(self, servos: Sequence[Servo], protocol: str, seed: int = 0) -> None:
        super().__init__(servos, protocol)
        self.faults = Faults(seed)
        self.goals: deque[tuple[float, int, int]] = deque(maxlen=LOGGED)
        self.answered: deque[tuple[float, int, int]] = deque(maxlen=LOGGED)
        self.posed: deque[tuple[float, int, int]] = deque(maxlen=LOGGED)
        self.torques: deque[tuple[float, int, bool]] = deque(maxlen=LOGGED)

    @contextmanager
    def noting_torque(self, servos: Sequence[Servo], time: float) -> Iterator[None]:
        """Log whether what is done within changes the torque of servos."""
        before = [servo.torque for servo in servos]
        yield
        for servo, had in zip(servos, before, strict=True):
            if servo.torque != had:
                self.torques.append((time, servo.ids[0], servo.torque))

    def advance(self, time: float) -> None:
        with self.noting_torque(self.servos, time):
            super().advance(time)

    def feed(self, data: bytes, time: float) -> list[tuple[float, bytes]]:
        packets = self._parser.feed(data)
        if packets:
            self.faults.request = self._request(packets[0])
        back = [(time, data)] if self.faults.hit(Kind.ECHO) else []
        for packet in packets:
            self.faults.request = self._request(packet)
            if self.faults.hit(Kind.LOST):
                self.advance(time)
            else:
                back += self.receive(packet, time)
        return back

    def _request(self, packet: Instruction) -> str:
        """Return the name of an instruction and the address that it concerns."""
        address = int.from_bytes(packet.parameters[: self._codec.WORD], 'little')
        return f'{NAMES.get(packet.code, packet.code)} {address}'

    def _single(self, servo: Servo, packet: Instruction, time: float) -> Status | None:
        if packet.code != REBOOT:
            return super()._single(servo, packet, time)
        with self.noting_torque([servo], time):
            return super()._single(servo, packet, time)

    def _write(self, servo: Servo, address: int, data: bytes, time: float) -> int:
        goal, size = servo.GOAL_AT
        with self.noting_torque([servo], time):
            error = super()._write(servo, address, data, time)
        if not error and address <= goal and goal + size <= address + len(data):
            self.goals.append((time, servo.ids[0], servo.ticks(servo.GOAL_AT)))
        return error

    def _read(self, servo: Servo, address: int, size: int, time: float) -> bytes:
        data = bytearray(super()._read(servo, address, size, time))
        place, wide = servo.PRESENT_AT
        if address <= place and place + wide <= address + size:
            self.answered.append((time, servo.ids[0], servo.ticks(servo.PRESENT_AT)))
            wrong = self.faults.hit(Kind.WRONG, servo.ids[0])
            if wrong is not None:
                false = servo.get(place, wide) + wrong.ticks & (1 << 8 * wide) - 1
                data[place - address : place - address + wide] = false.to_bytes(wide, 'little')
        return bytes(data)

    def _sync_read(self, data: bytes, time: float) -> list[tuple[float, bytes]]:
        head, back = 2 * self._codec.WORD, []
        for id in data[head:]:
            sent = super()._sync_read(data[:head] + bytes((id,)), time)
            if not sent and self.faults.hit(Kind.SILENCE, id):
                break
            back += sent
        return back

    def _sent(self, same: Sequence[Status], time: float) -> list[tuple[float, bytes]]:
        """Return the pieces of a status, with the faults of its servo; none if it is missing."""
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
        ((_, frame),) = super()._sent([status, *others], time)
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


class CalledServer(Server):
    """A server that takes calls on stdin, and ends with it."""

    _bus: FaultyBus

    def run(self) -> None:
        stdin, pending = sys.stdin.fileno(), b''
        while True:
            ready = self._ready(stdin)
            if stdin in ready:
                read = os.read(stdin, READ_SIZE)
                if not read:
                    return
                *lines, pending = (pending + read).split(b'\n')
                for line in lines:
                    self._answer(line)
            self._serve(ready)

    def _answer(self, line: bytes) -> None:
        try:
            call = json.loads(line)
            result = {'ok': getattr(self, f'do_{call.pop("do")}')(**call)}
        except Exception as error:
            result = {'error': repr(error)}
        sys.stdout.write(json.dumps(result) + '\n')
        sys.stdout.flush()

    def do_plug(self, on: bool) -> None:
        """Plug the adapter in or out; what was on its way is lost."""
        self.plug(on)

    def do_power(self, on: bool, id: int | None = None) -> None:
        """Switch the power of a servo, None: of all."""
        now = steady()
        self._bus.advance(now)
        servos = self._servos(id)
        with self._bus.noting_torque(servos, now):
            for servo in servos:
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
        with self._bus.noting_torque([servo], now):
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


def main() -> int:
    """Run the bus of a profile behind a link until stdin closes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('profile', help='profile in config/servos, or the path of one')
    parser.add_argument('link', type=Path, help='path of the port')
    parser.add_argument('--seed', type=int, default=0, help='seed of the random faults')
    given = parser.parse_args()
    profile = read_profile(given.profile)
    bus = FaultyBus(servos_of(profile), profile.protocol, given.seed)
    with contextlib.suppress(KeyboardInterrupt):
        server = CalledServer(bus, given.link)
        try:
            server.run()
        finally:
            server.plug(False)  # removes the link
    return 0


if __name__ == '__main__':
    sys.exit(main())
