# SPDX-License-Identifier: Apache-2.0
"""What is known of an arm of servos at one time, and what it is commanded."""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from ik_node.errors import InputError, join_names
from ik_node.steady import steady


class ArmState(Enum):
    """The states of ServoArm.

    CLOSED: the port is not open. SILENT: it is, and the servos have not all answered. PASSIVE: they are
    measured, without torque, or the reason says which have some. HOLDING: with torque, at their goals.
    FOLLOWING: commands move the goals. FAULTED: with torque as before, and no command is taken. LOWERING: the
    torque vanishes, and is switched off.
    """

    CLOSED = 'closed'
    SILENT = 'silent'
    PASSIVE = 'passive'
    HOLDING = 'holding'
    FOLLOWING = 'following'
    FAULTED = 'faulted'
    LOWERING = 'lowering'


POWERED = frozenset({ArmState.HOLDING, ArmState.FOLLOWING})
WITH_GOALS = POWERED | {ArmState.FAULTED}


@dataclass(frozen=True)
class JointMeasurement:
    """One joint, as its servo answered in this cycle.

    tick, position [rad or m], velocity [rad/s or m/s], load: share of the largest torque, its sign that
    of the motion that it drives. voltage [V], temperature [degrees C]. conditions: what the servo reports.
    """

    tick: int
    position: float
    velocity: float
    load: float
    voltage: float
    temperature: float
    conditions: tuple[str, ...] = ()


@dataclass
class Counts:
    """What has happened since the arm was opened: faults of the bus by kind, retries, and how often a command
    went beyond a limit."""

    retries: int = 0
    limited: int = 0
    faults: dict[str, int] = field(default_factory=dict)

    def add(self, fault: str) -> None:
        """Count a fault."""
        self.faults[fault] = self.faults.get(fault, 0) + 1


@dataclass(frozen=True)
class ArmSnapshot:
    """The arm at time [s] of steady(), when the cycle began to measure.

    reason: why it is in its state, empty if nothing is wrong. joints: by name, those that were measured in
    this cycle. ticks: of them, and of all joints while a zero is not known. limited: limit and command
    [rad or m] of joints that are commanded beyond a limit. powered: joints with torque, as far as is known.
    latched: it was told to hold, and takes no commands. rate [Hz]: of the cycles lately. retries, beyond,
    faults: since the start, see Counts. leads: lead and trim [rad] against sag by joint, see Sag. doubts:
    what the owner should look at of them, by joint.
    """

    time: float
    state: ArmState
    reason: str = ''
    joints: Mapping[str, JointMeasurement] = field(default_factory=dict)
    ticks: Mapping[str, int] = field(default_factory=dict)
    limited: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    powered: frozenset[str] = frozenset()
    latched: bool = False
    rate: float = 0.0
    retries: int = 0
    beyond: int = 0
    faults: Mapping[str, int] = field(default_factory=dict)
    leads: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    doubts: Mapping[str, str] = field(default_factory=dict)


DRAIN = 0.1  # [s] after a pause in which commands that waited meanwhile are received


class Commands:
    """Positions [rad or m] by joint, and whether the arm is to hold, or to be without torque.

    These wishes outlast the connection to the servos, and the newer one counts. Safe to use from several
    threads.
    """

    def __init__(self, names: tuple[str, ...]) -> None:
        self._names, self._lock = names, threading.Lock()
        self._positions: dict[str, float] = {}
        self._given = self._taken_from = -math.inf  # [s] of steady
        self._latched = False
        self._asked = self._held = self._off = 0  # number of the newest wish, and of those; 0: none

    @property
    def latched(self) -> bool:
        """Whether no positions are taken."""
        return self._latched

    @property
    def torque_off(self) -> bool:
        """Whether the arm is to be without torque."""
        return self._off > self._held

    @property
    def asked(self) -> int:
        """The number of the newest wish."""
        return self._asked

    def latch(self) -> None:
        """Forget all positions, and take none until release: the arm is to hold."""
        with self._lock:
            self._latched = True
            self._asked += 1
            self._held = self._asked
            self._positions.clear()

    def lower(self) -> int:
        """Note that the arm is to be without torque; return the number of that wish."""
        with self._lock:
            self._asked += 1
            self._off = self._asked
            return self._asked

    def held_since(self, asked: int) -> bool:
        """Whether the arm is to hold by a wish that is newer than asked."""
        return self._held > asked

    def reject_hold(self) -> None:
        """Let an older wish for no torque count again: there was nothing to hold."""
        with self._lock:
            self._held = 0

    def lowered(self) -> None:
        """Note that the arm is without torque."""
        with self._lock:
            self._off = 0

    def release(self, asked: int) -> None:
        """Take positions again, and forget what was wished for, unless by wishes newer than asked."""
        with self._lock:
            if self._held <= asked:
                self._latched, self._held = False, 0
            if self._off <= asked:
                self._off = 0

    def checked(self, positions: Mapping[str, float]) -> dict[str, float]:
        """Return the positions of joints of the arm.

        Raises InputError for numbers that are not finite, and if no joint of the arm is named.
        """
        own = {name: float(positions[name]) for name in self._names if name in positions}
        if not own:
            raise InputError(f'the command names no joint of this arm; joints: {join_names(self._names)}')
        for name, value in own.items():
            if not math.isfinite(value):
                raise InputError(f'the command of joint {name} is {value}')
        return own

    def put(self, positions: Mapping[str, float]) -> None:
        """Ask for checked positions; joints that are not named keep theirs.

        Raises InputError just after the program has stood still.
        """
        with self._lock:
            if steady() < self._taken_from:
                raise InputError('the driver stood still until just now, so the command may be out of date')
            if not self._latched:
                self._positions.update(positions)
                self._given = steady()

    def fresh(self, timeout: float) -> dict[str, float]:
        """Return the positions if the newest ones are not older than timeout [s]; else forget them."""
        with self._lock:
            if steady() - self._given > timeout:
                self._positions.clear()
            return dict(self._positions)

    def paused(self) -> None:
        """Note that the program has stood still: what it finds waiting after that is of unknown age."""
        with self._lock:
            self._taken_from = steady() + DRAIN
        self.clear()

    def clear(self) -> None:
        """Forget all."""
        with self._lock:
            self._positions.clear()
            self._given = -math.inf
