# SPDX-License-Identifier: Apache-2.0
"""A driver and an emulated bus in one process, on a clock that only they advance.

The code of both is the same as behind a pseudo-terminal; the operating system between them is not there, nor
is a busy computer. What a test waits for takes the time of its computation, and happens alike every time.
"""

from __future__ import annotations

import contextlib
import errno
import heapq
import itertools
import json
import random
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from threading import Event, Lock
from types import SimpleNamespace
from typing import Any

import pytest
from faulty_bus import CalledServer, FaultyBus

from ik_node.servos.arm import arm as arm_module
from ik_node.servos.bus import serial_transport
from ik_node.servos.bus.serial_transport import explain, gone
from ik_node.servos.calibration.profile import read_profile
from ik_node.servos.emulator.bus import servos_of
from ik_node.steady import steady

TURN_ROUND = 0.0003  # [s] from a request to the first byte of its answer
LOOK = 1e-6  # [s]
BITS = 10  # per byte on the wire


class Clock:
    """What steady goes by: monotonic and sleep."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.buses: dict[str, VirtualBus] = {}  # by port
        self._events: list[tuple[float, int, Callable[[], object]]] = []
        self._order = itertools.count()

    def monotonic(self) -> float:
        """Return the time [s], which does not stand still for those who look at it."""
        self.now += LOOK
        return self.now

    def sleep(self, seconds: float) -> None:
        """Let time pass, and whatever happens meanwhile."""
        self.advance(self.now + seconds)

    def at(self, when: float, act: Callable[[], object]) -> None:
        """Act at a time [s]; what waits for something then goes on waiting."""
        heapq.heappush(self._events, (when, next(self._order), act))

    def advance(self, until: float) -> None:
        """Let time pass until a time [s]."""
        while self._events and self._events[0][0] <= until:
            when, _, act = heapq.heappop(self._events)
            self.now = max(self.now, when)
            act()
        self.now = max(self.now, until)

    def until(self, condition: Callable[[], object], latest: float) -> None:
        """Let time pass until condition is true, at most until a time [s]."""
        while not condition() and self._events and self._events[0][0] <= latest:
            self.advance(self._events[0][0])
        if not condition():
            self.advance(latest)


class VirtualServer(CalledServer):
    """A bus without a terminal."""

    plugged = False

    def plug(self, on: bool) -> None:
        self.plugged = on
        self._due.clear()


class KnownBus:
    """What can be known of an emulated bus and asked of it, by way of its calls."""

    def call(self, do: str, **arguments: Any) -> Any:
        """Call what CalledServer.do_... does."""
        raise NotImplementedError

    def state(self) -> dict[int, dict[str, Any]]:
        """Return what is true now of every servo, by id.

        actual, velocity, load: of its motor; lowest, highest: actual positions since the call watch, or since
        it was carried. present, goal: in its registers [ticks]. torque, powered.
        """
        return {int(id): values for id, values in self.call('state').items()}

    def faults(self, *faults: dict[str, Any]) -> None:
        """Have these faults instead of those before, see Fault."""
        self.call('faults', faults=list(faults))

    def log(self, name: str, since: float = 0.0) -> list[tuple[float, int, int]]:
        """Return the entries (time, id, ticks) of a log of FaultyBus since a time."""
        return [tuple(entry) for entry in self.call('log', name=name, since=since)]


class VirtualBus(KnownBus):
    """A bus on a virtual clock. busy: share of the requests before which the driver stalls."""

    def __init__(self, clock: Clock, profile: str = 'so101', seed: int = 0) -> None:
        found = read_profile(profile)
        self.clock, self.port, self.busy = clock, f'/dev/virtual{len(clock.buses)}', 0.0
        clock.buses[self.port] = self
        self.wire = FaultyBus(servos_of(found), found.protocol, seed)
        self.server = VirtualServer(self.wire, Path(self.port))
        self._random = random.Random(seed)

    def call(self, do: str, **arguments: Any) -> Any:
        """Call what CalledServer.do_... does, as through JSON."""
        result = getattr(self.server, f'do_{do}')(**json.loads(json.dumps(arguments)))
        return json.loads(json.dumps(result))

    def stall(self) -> None:
        """Stand still, if the computer of the driver is busy."""
        if self.busy and self._random.random() < self.busy:
            self.clock.sleep(self._random.choice([0.003, 0.01, 0.03, 0.08]))


class VirtualLine(serial_transport.SerialLine):
    """The driver's end of a virtual bus."""

    def __init__(self, bus: VirtualBus, baud: int) -> None:
        if not bus.server.plugged:
            raise explain(bus.port, OSError(errno.ENOENT, 'not plugged in'))
        self._bus, self._clock, self._port, self._closed = bus, bus.clock, bus.port, False
        self._byte = BITS / baud
        bus.wire.baud = baud
        self._due: list[tuple[float, int, bytes]] = []
        self._order = itertools.count()

    def send(self, data: bytes) -> None:
        """Send data."""
        self._bus.stall()
        self._look()
        arrived = self._clock.now + len(data) * self._byte
        end = arrived + TURN_ROUND
        for when, piece in self._bus.wire.feed(data, arrived):
            end = max(when, end) + len(piece) * self._byte
            heapq.heappush(self._due, (end, next(self._order), piece))

    def receive(self, deadline: float) -> bytes:
        """Return what comes next, b'' if nothing came until the deadline."""
        self._look()
        if self._due and self._due[0][0] <= max(deadline, self._clock.now):
            self._clock.advance(self._due[0][0])
        else:
            self._clock.advance(deadline)
        self._look()
        found = b''
        while self._due and self._due[0][0] <= self._clock.now:
            found += heapq.heappop(self._due)[2]
        return found

    def close(self) -> None:
        """Close the port."""
        self._closed = True

    def _look(self) -> None:
        self._check()
        if not self._bus.server.plugged:
            raise gone(self._port)


class Turns:
    """Takes the place of the thread of a ServoArm: its turns are events of a clock."""

    def __init__(self, arm: arm_module.ServoArm, clock: Clock) -> None:
        self._arm, self._clock, self._due, self._alive = arm, clock, clock.now, False

    def start(self) -> None:
        """Begin with the turns."""
        self._alive, self._due = True, self._clock.now
        self._clock.at(self._due, self._turn)

    def is_alive(self) -> bool:
        """Whether there will be turns."""
        return self._alive

    def join(self, _: float) -> None:
        """End as the thread does."""
        if self._alive:
            self._alive = False
            self._arm._end()

    def _turn(self) -> None:
        if self._alive and not self._arm._ending.is_set():
            self._due = max(self._due + self._arm.step(), self._clock.now)
            self._clock.at(self._due, self._turn)


@contextlib.contextmanager
def virtual_time(clock: Clock | None = None) -> Iterator[Clock]:
    """Yield a clock by which the drivers and the emulated servos of this process go."""
    clock = clock or Clock()

    class VirtualFuture(Future[Any]):
        """The answer to a request; whoever waits for it lets time pass."""

        def result(self, timeout: float | None = None) -> Any:
            clock.until(self.done, clock.now + (timeout or 0.0))
            return super().result(0.0)

    def thread(target: Callable[[], object], **_: object) -> Turns:
        return Turns(target.__self__, clock)  # type: ignore[attr-defined]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(steady, 'read', clock.monotonic)
        patch.setattr(steady, 'sleep', clock.sleep)
        patch.setattr(arm_module, 'Future', VirtualFuture)
        patch.setattr(arm_module, 'threading', SimpleNamespace(Event=Event, Lock=Lock, Thread=thread))
        patch.setattr(serial_transport, 'SerialLine', lambda port, baud: VirtualLine(clock.buses[port], baud))
        yield clock
