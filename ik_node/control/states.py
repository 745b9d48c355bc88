"""What an arm may do at the moment: its states and every way from one to another."""

from __future__ import annotations

import enum


class State(enum.Enum):
    """A state of an arm. Its value is the word for people, code the number for programs."""

    UNCONFIGURED = 'unconfigured'  # no arm: nothing goes out
    INACTIVE = 'inactive'  # an arm, but no leave to command it: nothing goes out
    WAITING = 'waiting'  # some joint of the arm has not been measured yet: nothing goes out
    HOLDING = 'holding'  # at rest where it was sent: the same command again and again
    MOVING = 'moving'  # on the way, within all limits
    STOPPING = 'stopping'  # braking, within all limits
    STOPPED = 'stopped'  # at rest, goals are refused until resume
    HAND_GUIDED = 'hand-guided'  # commands follow what is measured, slowly
    FAULTED = 'faulted'  # brakes, then nothing goes out; goals are refused until resume

    @property
    def code(self) -> int:
        """The place of the state in this list."""
        return list(State).index(self)


class Event(enum.Enum):
    """What may happen to an arm."""

    CONFIGURE = 'configure'
    ACTIVATE = 'activate'
    DEACTIVATE = 'deactivate'
    PLACED = 'every joint is placed'
    LOST = 'measurements are expected from now on'
    GOAL = 'goal'
    ARRIVED = 'arrived'
    STOP = 'stop'
    RESTED = 'rested'
    RESUME = 'resume'
    GUIDE = 'hand guiding begins'
    RELEASE = 'hand guiding ends'
    FAULT = 'fault'


# Whoever is not mentioned stays where it is: a stop of an arm at rest that is stopped already, for example.
TRANSITIONS: dict[State, dict[Event, State]] = {
    State.UNCONFIGURED: {Event.CONFIGURE: State.INACTIVE},
    State.INACTIVE: {Event.ACTIVATE: State.WAITING},
    State.WAITING: {
        Event.PLACED: State.HOLDING,
        Event.STOP: State.STOPPED,
        Event.DEACTIVATE: State.INACTIVE,
    },
    State.HOLDING: {
        Event.CONFIGURE: State.WAITING,
        Event.LOST: State.WAITING,
        Event.GOAL: State.MOVING,
        Event.GUIDE: State.HAND_GUIDED,
        Event.STOP: State.STOPPED,
        Event.FAULT: State.FAULTED,
        Event.DEACTIVATE: State.INACTIVE,
    },
    State.MOVING: {
        Event.CONFIGURE: State.WAITING,
        Event.LOST: State.WAITING,
        Event.GOAL: State.MOVING,
        Event.ARRIVED: State.HOLDING,
        Event.STOP: State.STOPPING,
        Event.FAULT: State.FAULTED,
        Event.DEACTIVATE: State.STOPPING,
    },
    State.STOPPING: {
        Event.CONFIGURE: State.STOPPED,
        Event.LOST: State.STOPPED,
        Event.RESTED: State.STOPPED,
        Event.FAULT: State.FAULTED,
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
        Event.DEACTIVATE: State.STOPPING,
    },
    State.FAULTED: {
        Event.RESUME: State.WAITING,
        Event.DEACTIVATE: State.INACTIVE,
    },
}

# States in which commands go out. A faulted arm brakes before it falls silent.
COMMANDING = frozenset({State.HOLDING, State.MOVING, State.STOPPING, State.STOPPED, State.HAND_GUIDED})
# States in which a goal is taken.
READY = frozenset({State.HOLDING, State.MOVING})
