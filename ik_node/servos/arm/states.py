# SPDX-License-Identifier: Apache-2.0
"""The states of an arm of servos and the transitions between them, and what is known of it at one time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from .registers import JointMeasurement


class ArmState(Enum):
    """The states of ServoArm."""

    CLOSED = 'closed'  # the port is not open
    SILENT = 'silent'  # the port is open, and the servos have not all answered
    PASSIVE = 'passive'  # measured; without torque, or the reason says which servos have some
    HOLDING = 'holding'  # with torque, at their goals
    FOLLOWING = 'following'  # commands move the goals
    FAULTED = 'faulted'  # with torque as before; no command is taken
    LOWERING = 'lowering'  # the torque vanishes, and is switched off


class Event(Enum):
    """Events that may change the state of an arm. How the servos are written to, see ServoArm."""

    PORT_LOST = 'the port cannot be opened, or is gone'
    SERVOS_LOST = 'no servo answers, or one is not as it should be'
    FOUND = 'all servos have answered'
    POWERED = 'all servos have torque'
    COMMANDED = 'commands come'
    COMMANDS_ENDED = 'no command came for a while'
    HOLD = 'hold'
    FAULT = 'a servo is silent or has lost its torque, or another program has changed it'
    RECOVERED = 'the servo that was silent answers again'
    RELEASE = 'the torque is to be switched off'
    RELEASED = 'the torque is off, or could not be switched off'


_LOST = {Event.PORT_LOST: ArmState.CLOSED, Event.SERVOS_LOST: ArmState.SILENT}

# Events that are not listed do not change the state. On the way to HOLDING and FAULTED commands are
# forgotten, and the goals are where the joints are or can stop. A hold that ends a lowering brings the state
# before back.
TRANSITIONS: dict[ArmState, dict[Event, ArmState]] = {
    ArmState.CLOSED: _LOST | {Event.FOUND: ArmState.PASSIVE},
    ArmState.SILENT: _LOST | {Event.FOUND: ArmState.PASSIVE},
    ArmState.PASSIVE: _LOST
    | {
        Event.POWERED: ArmState.HOLDING,
        Event.FAULT: ArmState.PASSIVE,
        Event.RELEASE: ArmState.LOWERING,
        Event.RELEASED: ArmState.PASSIVE,
    },
    ArmState.HOLDING: _LOST
    | {
        Event.POWERED: ArmState.HOLDING,
        Event.COMMANDED: ArmState.FOLLOWING,
        Event.HOLD: ArmState.HOLDING,
        Event.FAULT: ArmState.FAULTED,
        Event.RELEASE: ArmState.LOWERING,
    },
    ArmState.FOLLOWING: _LOST
    | {
        Event.POWERED: ArmState.HOLDING,
        Event.COMMANDS_ENDED: ArmState.HOLDING,
        Event.HOLD: ArmState.HOLDING,
        Event.FAULT: ArmState.FAULTED,
        Event.RELEASE: ArmState.LOWERING,
    },
    ArmState.FAULTED: _LOST
    | {
        Event.POWERED: ArmState.HOLDING,
        Event.RECOVERED: ArmState.HOLDING,
        Event.RELEASE: ArmState.LOWERING,
    },
    ArmState.LOWERING: _LOST | {Event.RELEASED: ArmState.PASSIVE},
}

# States in which the servos are not measured.
NOT_MEASURED = frozenset({ArmState.CLOSED, ArmState.SILENT})

# States in which commands are taken, and in which the servos have goals.
POWERED = frozenset({ArmState.HOLDING, ArmState.FOLLOWING})
WITH_GOALS = POWERED | {ArmState.FAULTED}


@dataclass(frozen=True)
class ArmSnapshot:
    """The arm at time [s] of steady(), when the cycle began to measure.

    reason: why it is in its state, empty if nothing is wrong. joints: by name, those that were measured in
    this cycle. ticks: of them, and of all joints while a zero is not known. limited: limit and command
    [rad or m] of joints that are commanded beyond a limit. powered: joints with torque, as far as is known.
    latched: a hold was requested, and commands are rejected. rate [Hz]: of the latest cycles.
    retries, beyond, faults: since the start, see Counts. leads: lead and trim [rad] against sag by joint, see
    Sag. warnings: what the owner should check about them, by joint.
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
    warnings: Mapping[str, str] = field(default_factory=dict)
