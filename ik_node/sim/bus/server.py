# SPDX-License-Identifier: Apache-2.0
"""The process of an emulated bus: a pseudo-terminal for the driver, JSON lines on stdin for the test.

Each line is a call such as {"do": "plug", "on": false}; the answer is a line on stdout. Times are those of
time.monotonic, which all processes of a computer share.
"""

from __future__ import annotations

import contextlib
import fcntl
import heapq
import itertools
import json
import os
import pty
import select
import struct
import sys
import termios
import tty
from pathlib import Path
from typing import Any

from ik_node.sim.bus.bus import Bus
from ik_node.sim.bus.faults import Fault, Kind
from ik_node.sim.bus.servo import Servo
from ik_node.steady import steady

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
