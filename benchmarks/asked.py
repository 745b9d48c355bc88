"""Asked: a goal for an ArmController without ROS."""

from __future__ import annotations

from dataclasses import dataclass

from ik_node import Goal
from ik_node.control.state.snapshot import Snapshot

AFTER = 1e9  # [s]: later than all stops of a benchmark


@dataclass(frozen=True)
class Asked:
    """A goal at a time [s] of the simulation; a moving one has a stamp."""

    goal: Goal
    received: float
    goal_time: float | None = None
    tool: str = ''
    source: str = 'bench'
    moves: bool = True
    stamp: str = ''
    frame: str = ''

    @property
    def arrival(self) -> float:
        """When it arrived, for an ArmController, which compares that with the clock of this computer [s]."""
        return AFTER + self.received

    def wanted(self, _: Snapshot) -> Goal:
        """Return the goal."""
        return self.goal
