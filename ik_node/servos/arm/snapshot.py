# SPDX-License-Identifier: Apache-2.0
"""What is known of an arm of servos at one time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum


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
