"""GoalMarkers: keeps the markers of the newest goal up to date at 20 Hz."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from visualization_msgs.msg import MarkerArray

from ik_node.control.snapshot import Snapshot
from ik_node.ros.markers import goal_markers, no_markers
from ik_node.solver.goal import Goal, Status

PERIOD = 0.05  # seconds from one drawing to the next
TRAIL = 200  # points: ten seconds of motion


class GoalMarkers:
    """To be used by one thread: set() says what is to be seen, draw() draws it when it is time."""

    def __init__(self, publish: Callable[[MarkerArray], None]) -> None:
        self._publish = publish
        self._goal: tuple[Goal, Status] | None = None
        self._trail: deque[NDArray[np.float64]] = deque(maxlen=TRAIL)
        self._stale = False
        self._drawn = 0.0

    def set(self, goal: Goal, status: Status) -> None:
        """Show goal, in the colour of status."""
        self._goal = (goal, status)
        self._stale = True

    def clear(self) -> None:
        """Show nothing from now on."""
        if self._goal is not None:
            self._publish(no_markers())
        self._goal = None
        self._trail.clear()
        self._stale = False

    @property
    def wait(self) -> float | None:
        """Seconds until draw() has something to do; None if that is not known."""
        return max(0.0, self._drawn + PERIOD - time.monotonic()) if self._stale else None

    def draw(self, state: Snapshot | None) -> None:
        """Draw the goal and the tool as state has it, if it is time to; again and again while it moves."""
        if state is None or self._goal is None or self.wait != 0.0:
            return
        goal, status = self._goal
        arm = state.model.arm
        position, direction = arm.fk(state.position)
        self._trail.append(position)
        self._publish(goal_markers(arm.base_link, goal, status, position, direction, arm.reach, self._trail))
        self._drawn = time.monotonic()
        self._stale = state.moving
