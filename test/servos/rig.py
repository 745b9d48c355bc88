# SPDX-License-Identifier: Apache-2.0
"""An arm of emulated servos on a virtual clock."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from virtual_time import VirtualBus, virtual_time

from ik_node.servos.arm.arm import ArmOptions, ServoArm
from ik_node.servos.arm.goals import Torques
from ik_node.servos.arm.states import ArmSnapshot, ArmState
from ik_node.servos.bus.serial_transport import SerialTransport
from ik_node.servos.calibration.profile import PROTOCOLS, read_profile
from ik_node.servos.calibration.zeros import calibrate

TORQUE_ENABLE = 40  # the address in an STS3215
TORQUE_LIMIT = {'address': 48, 'size': 2}
LONGEST = 15.0  # [s] for a request


class WaitingArm(ServoArm):
    """An arm whose requests can be waited for; they raise ArmError."""

    def set_torque(self, on: bool) -> None:
        self.request_torque(on).result(LONGEST)

    def hold(self) -> None:
        self.request_hold().result(LONGEST)

    def clear(self) -> None:
        self.request_clear().result(LONGEST)


class Rig:
    """bus: the emulated one. arm: driven. seen: all snapshots, published: when each was [s]."""

    def __init__(
        self, bus: VirtualBus, profile: str, options: ArmOptions | None, torques: Torques | None = None
    ) -> None:
        self.bus, self.profile = bus, read_profile(profile)
        self.clock = bus.clock
        self.seen: list[ArmSnapshot] = []
        self.published: list[float] = []
        self.arm = WaitingArm(
            lambda: SerialTransport(bus.port, self.profile.baud, PROTOCOLS[self.profile.protocol]),
            self.profile,
            lambda recorded: calibrate(self.profile, recorded),
            options,
            self._see,
            torques,
        )

    def _see(self, snapshot: ArmSnapshot) -> None:
        self.published.append(self.clock.monotonic())
        self.seen.append(snapshot)

    def until(self, *states: ArmState, seconds: float = 60.0) -> ArmSnapshot:
        """Wait until the arm is in one of states."""
        self.wait(lambda: self.arm.snapshot.state in states, seconds)
        return self.arm.snapshot

    def wait(self, condition: Callable[[], object], seconds: float = 60.0) -> None:
        """Wait until condition is true."""
        end = self.clock.monotonic() + seconds
        while not condition():
            assert self.clock.monotonic() < end, self.arm.snapshot
            self.clock.sleep(0.005)

    def switch_on(self) -> None:
        """Switch the torque on."""
        self.arm.set_torque(True)

    def stream(self, positions: dict[str, float], seconds: float) -> None:
        """Command positions for a while."""
        end = self.clock.monotonic() + seconds
        while self.clock.monotonic() < end:
            self.arm.command(positions)
            self.clock.sleep(0.01)

    def sampled(self, what: Callable[[], Any], count: int, period: float) -> list[Any]:
        """What is returned every period [s] from now on, in a list that fills as virtual time passes."""
        seen: list[Any] = []
        for step in range(count):
            self.clock.at(self.clock.now + period * step, lambda: seen.append(what()))
        return seen

    def torque_limits(self, count: int, period: float) -> list[Any]:
        """The torque limits of servo 2, every period [s] from now on, as sampled."""
        return self.sampled(lambda: self.bus.call('get', id=2, **TORQUE_LIMIT), count, period)

    def load_shoulder(self) -> None:
        """Put a load on the shoulder, and let the arm come to rest."""
        self.clock.sleep(2.0)
        self.bus.call('motor', id=2, weight=0.5)
        self.clock.sleep(1.0)

    def dip(self, id: int) -> None:
        """Have a servo lose its power for a moment, and its torque."""
        self.bus.call('power', id=id, on=False)
        self.bus.call('power', id=id, on=True)

    def tick(self, name: str) -> float:
        """Return where a joint really is."""
        (joint,) = [joint for joint in self.profile.joints if joint.name == name]
        return self.bus.state()[joint.id]['actual']


@contextlib.contextmanager
def emulated(profile: str = 'so101') -> Iterator[VirtualBus]:
    """Yield a bus on a virtual clock."""
    with virtual_time() as clock:
        yield VirtualBus(clock, profile)


@contextlib.contextmanager
def started(
    bus: VirtualBus,
    profile: str = 'so101',
    options: ArmOptions | None = None,
    torques: Torques | None = None,
) -> Iterator[Rig]:
    """Yield a rig that looks for the servos of a bus; torques: of gravity, against which it leads."""
    rig = Rig(bus, profile, options, torques)
    rig.arm.start()
    try:
        yield rig
    finally:
        rig.arm.stop()


@contextlib.contextmanager
def driven(profile: str = 'so101', options: ArmOptions | None = None) -> Iterator[Rig]:
    """Yield a rig whose servos were found."""
    with emulated(profile) as bus, started(bus, profile, options) as rig:
        rig.until(ArmState.PASSIVE)
        yield rig


@pytest.fixture
def rig() -> Iterator[Rig]:
    """An arm with torque."""
    with driven() as rig:
        rig.switch_on()
        yield rig
