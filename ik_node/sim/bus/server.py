# SPDX-License-Identifier: Apache-2.0
"""The process of an emulated bus: a pseudo-terminal for the driver, JSON lines on stdin for the test.

Each line is a call such as {"do": "plug", "on": false}; the answer is a line on stdout. The process ends with
its stdin. Times are those of time.monotonic, which all processes of a computer share.
"""

from __future__ import annotations

import contextlib
import heapq
import itertools
import json
import os
import pty
import select
import sys
import time
import tty
from pathlib import Path
from typing import Any

from ik_node.sim.bus.bus import Bus
from ik_node.sim.bus.faults import Fault, Kind
from ik_node.sim.bus.sts_servo import StsServo

MOST = 4096  # [bytes] read at once
IDLE = 0.05  # [s] between two looks at the motors while nothing is asked


class Server:
    """One bus behind the link at path, which points to the terminal while the bus is plugged in."""

    def __init__(self, bus: Bus, path: Path) -> None:
        self._bus, self._path = bus, path
        self._terminal: int | None = None
        self._line: int | None = None
        self._due: list[tuple[float, int, bytes]] = []  # pieces to send, by time
        self._order = itertools.count()
        self.plug(True)

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

    def close(self) -> None:
        """Remove the link."""
        self.plug(False)

    def run(self) -> None:
        """Serve until stdin ends."""
        pending = b''
        while True:
            now = time.monotonic()
            wait = min(max(self._due[0][0] - now, 0.0), IDLE) if self._due else IDLE
            watched = [sys.stdin.fileno(), *([] if self._terminal is None else [self._terminal])]
            ready, _, _ = select.select(watched, [], [], wait)
            now = time.monotonic()
            if sys.stdin.fileno() in ready:
                read = os.read(sys.stdin.fileno(), MOST)
                if not read:
                    return
                *lines, pending = (pending + read).split(b'\n')
                for line in lines:
                    self._answer(line)
            if self._terminal is not None and self._terminal in ready:
                with contextlib.suppress(OSError):
                    data = os.read(self._terminal, MOST)
                    for when, piece in self._bus.feed(data, now):
                        heapq.heappush(self._due, (when, next(self._order), piece))
            elif not ready:
                self._bus.advance(now)
            self._send(time.monotonic())

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
        """Plug the adapter in or out."""
        self.plug(on)

    def do_power(self, on: bool, id: int | None = None) -> None:
        """Switch the power of a servo, None: of all."""
        self._bus.advance(time.monotonic())
        for servo in self._bus.servos:
            if id is None or id == servo.ids[0]:
                before = servo.torque
                servo.power(on)
                if servo.torque != before:
                    self._bus.torques.append((time.monotonic(), servo.ids[0], servo.torque))

    def do_volts(self, volts: float) -> None:
        """Set the supply of all Feetech servos."""
        for servo in self._bus.servos:
            if isinstance(servo, StsServo):
                servo.volts = volts

    def do_faults(self, faults: list[dict[str, Any]]) -> None:
        """Have these faults instead of those before."""
        self._bus.faults.set([Fault(Kind(fault.pop('kind')), **fault) for fault in faults])

    def do_motor(self, id: int, **values: Any) -> None:
        """Set attributes of the motor of a servo, such as actual, weight or blocked."""
        self._bus.advance(time.monotonic())
        motor = self._servo(id).motor
        for name, value in values.items():
            if not hasattr(motor, name):
                raise AttributeError(name)
            setattr(motor, name, tuple(value) if isinstance(value, list) else value)
        self._servo(id).drive(0.0)

    def do_put(self, id: int, address: int, size: int, value: int, keep: bool = False) -> None:
        """Write to registers whatever the servo thinks of it; keep: it survives the power."""
        servo = self._servo(id)
        servo.put(address, size, value)
        if keep:
            kept = bytearray(servo.memory)
            kept[address : address + size] = servo.registers[address : address + size]
            servo.memory = bytes(kept[: servo.EEPROM])

    def do_get(self, id: int, address: int, size: int) -> int:
        """Read registers."""
        self._bus.advance(time.monotonic())
        return self._servo(id).get(address, size)

    def do_state(self) -> dict[int, dict[str, Any]]:
        """Return what is true now of every servo, by id."""
        self._bus.advance(time.monotonic())
        found = {}
        for servo in self._bus.servos:
            goal, position = servo.GOAL_AT, servo.PRESENT_AT
            found[servo.ids[0]] = {
                'actual': servo.motor.actual,
                'velocity': servo.motor.velocity,
                'present': servo.get(*position),
                'goal': servo.get(*goal),
                'torque': servo.torque,
                'powered': servo.powered,
                'load': servo.motor.load,
            }
        return found

    def do_log(self, name: str, since: float = 0.0) -> list[Any]:
        """Return the entries of goals, answered or torques since a time."""
        if name not in ('goals', 'answered', 'torques'):
            raise AttributeError(name)
        return [entry for entry in getattr(self._bus, name) if entry[0] >= since]

    def do_hits(self) -> int:
        """Return how many packets faults have hit."""
        return self._bus.faults.hits

    def _servo(self, id: int) -> Any:
        return next(servo for servo in self._bus.servos if servo.ids[0] == id)
