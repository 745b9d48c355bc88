# SPDX-License-Identifier: Apache-2.0
"""Report: the result of a request, or the state of an arm."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ik_node.control.state.requests import Request
from ik_node.control.state.states import State
from ik_node.solver.goal import Goal, Solution

RESUME = 'call ~/resume to continue'


class Level(enum.Enum):
    """Severity of a report."""

    OK = 0
    WARN = 1
    ERROR = 2


@dataclass(frozen=True, eq=False)
class Report:
    """One sentence and the same as data.

    status: 'solved', 'unreachable', 'not found' or 'rejected' for a request, else the name of the state.
    phase: 'moving', 'arrived' or 'held' for a request that was not rejected, else as status.
    number: counts the requests, 0 without one. goal and solution: None for joint targets. solve_time in s.
    logged: False for what another controller reports to the log as well.
    """

    level: Level
    message: str
    status: str
    phase: str
    state: State
    request: Request | None = None
    number: int = 0
    goal: Goal | None = None
    solution: Solution | None = None
    solve_time: float = 0.0
    logged: bool = True


def condition(
    state: State, fault: str, without_position: Sequence[str], instead: str, describe: Callable[[], str]
) -> tuple[Level, str]:
    """Return the condition of an arm in state as a sentence: what it waits for, or why it does not move.

    fault: the reason of the last fault. without_position: joints that have not been measured; instead: what
    was, as the end of a sentence. describe: of the arm.
    """
    match state:
        case State.FAULTED:
            return Level.ERROR, f'{fault}; {RESUME}'
        case State.WAITING:
            return Level.WARN, f'waiting for measured joints: {", ".join(without_position)}{instead}'
        case State.STOPPING:
            return Level.WARN, 'stopping; call ~/resume once the arm is at rest'
        case State.STOPPED:
            return Level.WARN, f'stopped; {RESUME}'
        case State.INACTIVE:
            return Level.WARN, 'inactive: commands are disabled'
        case State.HAND_GUIDED:
            return Level.WARN, 'hand-guided: the commands follow the measured joints'
        case _:
            return Level.OK, describe()
