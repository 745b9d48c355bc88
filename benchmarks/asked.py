"""Asked: a goal for an ArmController without ROS."""

from __future__ import annotations

from dataclasses import dataclass

from ik_node import Goal
from ik_node.control.state.snapshot import Snapshot


@dataclass(frozen=True)
class Asked:
    """A goal at a time [s] of the simulation; a moving one has a stamp."""

    goal: Goal
    arrival: float
    goal_time: float | None = None
    tool: str = ''
    source: str = 'bench'
    moves: bool = True
    stamp: str = ''
    frame: str = ''

    @property
    def received(self) -> float:
        """When it was received, on the clock of the simulation [s]."""
        return self.arrival

    def wanted(self, _: Snapshot) -> Goal:
        """Return the goal."""
        return self.goal
