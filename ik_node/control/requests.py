# SPDX-License-Identifier: Apache-2.0
"""Requests to a controller, and what it returns: snapshots, planned targets, reports."""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np

from ik_node.checks import Array
from ik_node.solver.goal import Goal, Solution, Status
from ik_node.steady import steady

from .states import ON_ITS_WAY, State

if TYPE_CHECKING:  # loads ruckig, which drivers do without
    from .models import ArmModel, ToolModel
    from .paths import ToolPath
    from .trajectory import Trajectory


@dataclass(frozen=True, eq=False)
class Snapshot:
    """The state of an arm and one of its tools: values (n,) of model.joints.variables, target (arm.n,).

    remaining: time left of the motion [s]. share: completed share of the motion to the goal, 1 after the
    arrival, NaN without a goal. measured_age: of the oldest measurement of a joint of the arm [s], infinite
    if there is none, NaN if none is expected. moving_target: joints (arm.n,) for where
    the goal that the arm follows is now, None if it follows none. interruptions: how often it was stopped,
    deactivated or faulted, began to accept commands, and was begun or ended to be guided by hand. goals: how
    many goals moved its joints. rests: whether its joints rest, while one off the arm, such as a gripper, may move.
    """

    model: ArmModel
    tool: ToolModel
    state: State
    values: Array
    target: Array
    remaining: float
    share: float
    measured_age: float
    moving_target: Array | None = None
    interruptions: int = 0
    goals: int = 0
    rests: bool = False

    @property
    def position(self) -> Array:
        """Commanded positions (arm.n,) of the joints of the arm."""
        return self.values[self.tool.index]

    @property
    def behind(self) -> float:
        """Distance of the tool from the moving goal that it follows [m]; NaN without one."""
        if self.moving_target is None:
            return math.nan
        arm = self.tool.arm
        return float(np.linalg.norm(arm.fk(self.moving_target)[0] - arm.fk(self.position)[0]))

    @property
    def margin(self) -> tuple[float, str]:
        """The least distance of a joint of the arm from a position limit [rad or m], and which joint."""
        arm = self.tool.arm
        margins = np.minimum(self.position - arm.lower, arm.upper - self.position)
        joint = int(margins.argmin())
        return float(margins[joint]), arm.joint_names[joint]

    @property
    def moving(self) -> bool:
        """Whether the joints are moving."""
        return self.state in ON_ITS_WAY or self.state in (State.STOPPING, State.HAND_GUIDED)


# a goal of the tool, a path of it, or joint positions by name
Aim: TypeAlias = 'Goal | ToolPath | Mapping[str, float]'


class Request(Protocol):
    """A request.

    tool: the name of the tool, empty if there is only one. source: its topic or service. moves: whether it
    moves the arm, which has to be ready for that. arrival: when it was received (steady).
    received: the same on the clock of the arm [s]. goal_time: the stamp on that clock, None if it has none.
    stamp and frame: of its header, empty where it has none.
    """

    @property
    def tool(self) -> str: ...
    @property
    def source(self) -> str: ...
    @property
    def moves(self) -> bool: ...
    @property
    def arrival(self) -> float: ...
    @property
    def received(self) -> float: ...
    @property
    def goal_time(self) -> float | None: ...
    @property
    def stamp(self) -> str: ...
    @property
    def frame(self) -> str: ...

    def resolve(self, snapshot: Snapshot) -> Aim | None:
        """Return the goal for arm; None: nothing new. Raises InputError for an invalid request."""


@dataclass(frozen=True, eq=False)
class UnstampedRequest:
    """What a request is that came without a header; see Request."""

    tool: str = ''
    source: str = ''
    moves: bool = True
    arrival: float = field(default_factory=steady)
    received: float = 0.0
    goal_time: float | None = None
    stamp: str = ''
    frame: str = ''


@dataclass(frozen=True, eq=False)
class HomeRequest(UnstampedRequest):
    """Move the joints of the arm to their home position."""

    source: str = '~/home'

    def resolve(self, snapshot: Snapshot) -> Aim | None:
        """Return the home position of each joint of the arm; all others stay."""
        return dict(zip(snapshot.tool.arm.joint_names, snapshot.tool.home.tolist(), strict=True))


@dataclass(frozen=True, eq=False)
class JointTargets:
    """The joint targets for a request.

    joints (k,): those of the arm, NaN for joints that keep theirs; None if the arm holds its position.
    others: those of joints off the arm, by name. goal and solution: None for joint targets. arrived: the
    message at the end of the motion. trajectory: to the targets, along a path of the tool; None for the
    fastest motion. partial: only a part of that path can be followed.
    """

    joints: Array | None
    level: Level
    message: str
    arrived: str
    goal: Goal | None = None
    solution: Solution | None = None
    solve_time: float = 0.0
    trajectory: Trajectory | None = None
    partial: bool = False
    others: Mapping[str, float] = field(default_factory=dict)

    @property
    def aside(self) -> bool:
        """Whether only joints off the arm move: the arm continues what it does."""
        return self.joints is not None and bool(np.isnan(self.joints).all())

    def report(self, state: State, request: Request, number: int) -> Report:
        """Return the report on the request, with the arm in state."""
        status = 'unreachable' if self.partial else 'solved'
        if self.solution is not None:
            status = self.solution.status.value
        phase = 'held' if self.joints is None else 'moving'
        return Report(
            self.level,
            self.message,
            status,
            phase,
            state,
            request,
            number,
            self.goal,
            self.solution,
            self.solve_time,
        )

    def arrived_report(self, report: Report) -> Report:
        """Return the report for the end of the motion that report announced."""
        level = Level.OK if report.status == 'solved' else Level.WARN
        return replace(report, level=level, message=self.arrived, phase='arrived', state=State.HOLDING)


def arrival_at(solution: Solution) -> str:
    """Return the message at the end of the motion to a solution."""
    if solution.solved:
        return 'arrived at the goal'
    proven = solution.status is Status.UNREACHABLE
    return f'arrived as near to the goal as {"possible" if proven else "was found"}; {solution.reason}'


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
