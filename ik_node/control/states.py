# SPDX-License-Identifier: Apache-2.0
"""The states of an arm and the transitions between them."""

from __future__ import annotations

import enum
import math

from ik_node.steady import steady


class State(enum.Enum):
    """A state of an arm; value for people, code for programs."""

    UNCONFIGURED = 'unconfigured'  # no arm: nothing is published
    INACTIVE = 'inactive'  # commands are disabled: nothing is published
    WAITING = 'waiting'  # a joint of the arm has not been measured yet: nothing is published
    HOLDING = 'holding'  # at rest: the same command is repeated
    MOVING = 'moving'  # moving within all limits
    STOPPING = 'stopping'  # braking, within all limits
    STOPPED = 'stopped'  # at rest, goals are rejected until resume
    HAND_GUIDED = 'hand-guided'  # commands follow the measured positions, slowly
    FAULTED = 'faulted'  # brakes, then nothing is published; goals are rejected until resume
    TELEOPERATED = 'teleoperated'  # moving as the operator commands, within all limits

    @property
    def code(self) -> int:
        """The index of the state in this list."""
        return list(State).index(self)


class Event(enum.Enum):
    """Events that may change the state of an arm."""

    CONFIGURE = 'configure'
    ACTIVATE = 'activate'
    DEACTIVATE = 'deactivate'  # the caller has brought the arm to rest
    INITIALISED = 'every joint has a position'
    MEASUREMENTS_EXPECTED = 'measurements are expected from now on'
    GOAL = 'goal'
    STEER = 'step of a teleoperation'
    ARRIVED = 'arrived'
    STOP = 'stop'
    RESTED = 'rested'
    RESUME = 'resume'
    GUIDE = 'hand guiding begins'
    RELEASE = 'hand guiding ends'
    FAULT = 'fault'


# Events that are not listed do not change the state, for example a stop of an arm that is stopped.
TRANSITIONS: dict[State, dict[Event, State]] = {
    State.UNCONFIGURED: {Event.CONFIGURE: State.INACTIVE},
    State.INACTIVE: {Event.ACTIVATE: State.WAITING},
    State.WAITING: {
        Event.INITIALISED: State.HOLDING,
        Event.STOP: State.STOPPED,
        Event.DEACTIVATE: State.INACTIVE,
    },
    State.HOLDING: {
        Event.CONFIGURE: State.WAITING,
        Event.MEASUREMENTS_EXPECTED: State.WAITING,
        Event.GOAL: State.MOVING,
        Event.STEER: State.TELEOPERATED,
        Event.GUIDE: State.HAND_GUIDED,
        Event.STOP: State.STOPPED,
        Event.FAULT: State.FAULTED,
        Event.DEACTIVATE: State.INACTIVE,
    },
    State.MOVING: {
        Event.CONFIGURE: State.WAITING,
        Event.MEASUREMENTS_EXPECTED: State.WAITING,
        Event.GOAL: State.MOVING,
        Event.STEER: State.TELEOPERATED,
        Event.ARRIVED: State.HOLDING,
        Event.STOP: State.STOPPING,
        Event.FAULT: State.FAULTED,
        Event.DEACTIVATE: State.INACTIVE,
    },
    State.TELEOPERATED: {
        Event.CONFIGURE: State.WAITING,
        Event.MEASUREMENTS_EXPECTED: State.WAITING,
        Event.GOAL: State.MOVING,
        Event.ARRIVED: State.HOLDING,
        Event.STOP: State.STOPPING,
        Event.FAULT: State.FAULTED,
        Event.DEACTIVATE: State.INACTIVE,
    },
    State.STOPPING: {
        Event.CONFIGURE: State.STOPPED,
        Event.MEASUREMENTS_EXPECTED: State.STOPPED,
        Event.RESTED: State.STOPPED,
        Event.FAULT: State.FAULTED,
        Event.DEACTIVATE: State.INACTIVE,
    },
    State.STOPPED: {
        Event.RESUME: State.WAITING,
        Event.FAULT: State.FAULTED,
        Event.DEACTIVATE: State.INACTIVE,
    },
    State.HAND_GUIDED: {
        Event.CONFIGURE: State.WAITING,
        Event.RELEASE: State.MOVING,
        Event.STOP: State.STOPPING,
        Event.FAULT: State.FAULTED,
        Event.DEACTIVATE: State.INACTIVE,
    },
    State.FAULTED: {
        Event.RESUME: State.WAITING,
        Event.DEACTIVATE: State.INACTIVE,
    },
}

# States in which goals and steps of a teleoperation are accepted.
READY = frozenset({State.HOLDING, State.MOVING, State.TELEOPERATED})

# States in which goals are rejected on purpose: those that came before their end are void.
REJECTING = frozenset({State.STOPPED, State.FAULTED, State.HAND_GUIDED})

# Values of the states in which goals are accepted only after a resume, for those who read them in reports.
NEED_RESUME = frozenset(state.value for state in (State.STOPPING, State.STOPPED, State.FAULTED))

# States in which the arm executes a request.
ON_ITS_WAY = frozenset({State.MOVING, State.TELEOPERATED})

# States in which commands are published. A faulted arm brakes first.
COMMANDING = READY | {State.STOPPING, State.STOPPED, State.HAND_GUIDED}


class StateMachine:
    """The state of an arm, what keeps it from moving, and which requests are void. Times are those of steady.

    active: commands are allowed. stopped: a stop was requested, and no resume since. fault: the reason of the
    last fault. barred: why the arm must not become ready, besides what it waits for. refused: why its driver
    takes no commands. interruptions: as in Snapshot. epoch: a solution found in another epoch is void.
    void_before: a request that arrived before this time is void. resumed: when the arm was last resumed.
    """

    def __init__(self) -> None:
        self.state = State.UNCONFIGURED
        self.active = self.stopped = False
        self.fault = self.barred = self.refused = ''
        self.interruptions = self.epoch = 0
        self.void_before = self.resumed = -math.inf

    def handle(self, event: Event) -> State:
        """Change the state by the table; return the state before."""
        before = self.state
        self.state = TRANSITIONS[before].get(event, before)
        if before in REJECTING and self.state is not before:
            self.void_earlier()
        guided = (before is State.HAND_GUIDED) is not (self.state is State.HAND_GUIDED)
        begins = before is State.WAITING and self.state is State.HOLDING
        self.interruptions += guided or begins
        return before

    @property
    def ready(self) -> bool:
        """Whether goals and steps of a teleoperation are accepted."""
        return self.state in READY and not self.refused

    def void_earlier(self) -> None:
        """Make all requests void that have arrived until now, whenever their turn comes."""
        self.void_before = steady()
