# SPDX-License-Identifier: Apache-2.0
"""GoalMarkers: keeps the markers of the newest goal up to date at 10 Hz."""

from __future__ import annotations

from collections import deque

from geometry_msgs.msg import Point
from rclpy.publisher import Publisher
from visualization_msgs.msg import Marker, MarkerArray

from ik_node.control.state.snapshot import Snapshot
from ik_node.ros.conversions import array_point
from ik_node.ros.rviz.markers import goal_markers
from ik_node.solver.goal import Goal, Status
from ik_node.steady import steady

PERIOD = 0.1  # seconds from one drawing to the next
TRAIL = 100  # points: ten seconds of motion


class GoalMarkers:
    """set() stores the goal to show, draw() publishes it when it is due; only one thread may draw.

    Without a subscriber nothing is drawn; the first one gets the markers of the goal at the next draw().
    """

    def __init__(self, publisher: Publisher) -> None:
        """publisher: of MarkerArray."""
        self._publisher = publisher
        self._goal: tuple[Goal, Status] | None = None
        self._trail: deque[Point] = deque(maxlen=TRAIL)
        self._stale = False
        self._drawn = 0.0

    def set(self, goal: Goal, status: Status) -> None:
        """Show goal in the colour of status."""
        self._goal = (goal, status)
        self._stale = True

    def clear(self) -> None:
        """Remove all markers."""
        if self._goal is not None:
            self._publisher.publish(MarkerArray(markers=[Marker(action=Marker.DELETEALL)]))
        self._goal = None
        self._trail.clear()
        self._stale = False

    @property
    def wait(self) -> float | None:
        """Seconds until draw() is due; None if nothing has changed."""
        due = self._stale and self._goal is not None  # set and clear run in different threads
        return max(0.0, self._drawn + PERIOD - steady()) if due else None

    def draw(self, state: Snapshot | None) -> None:
        """Draw the goal and the tool of state if it is due; repeatedly while the arm moves."""
        shown = self._goal  # other threads may clear it
        if state is None or shown is None or self.wait != 0.0:
            return
        goal, status = shown
        arm = state.model.arm
        position, direction = arm.fk(state.position)
        self._drawn = steady()
        point = array_point(position)
        trail = [*self._trail]
        if not trail or point != trail[-1]:
            self._trail.append(point)
            trail.append(point)
        if not self._publisher.get_subscription_count():
            return
        markers = goal_markers(arm.base_link, goal, status, position, direction, arm.reach, trail)
        self._publisher.publish(markers)
        self._stale = state.moving
