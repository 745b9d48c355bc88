# SPDX-License-Identifier: Apache-2.0
"""Requests to an arm."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from ik_node.control.paths.tool_path import ToolPath
from ik_node.control.state.snapshot import Snapshot
from ik_node.solver.goal import Goal
from ik_node.steady import steady

Aim = Goal | ToolPath | Mapping[str, float]  # a goal of the tool, a path of it, or joint positions by name
Wanted = Aim | None  # None: nothing new


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

    def wanted(self, arm: Snapshot) -> Wanted:
        """Return the goal for arm. Raises InputError for an invalid request."""


@dataclass(frozen=True, eq=False)
class HomeRequest:
    """Move the joints of the arm to their home position."""

    tool: str = ''
    source: str = '~/home'
    moves: bool = True
    arrival: float = field(default_factory=steady)
    received: float = 0.0
    goal_time: float | None = None
    stamp: str = ''
    frame: str = ''

    def wanted(self, arm: Snapshot) -> Wanted:
        """Return the home position of each joint of the arm; all others stay."""
        return dict(zip(arm.model.arm.joint_names, arm.model.home.tolist(), strict=True))
