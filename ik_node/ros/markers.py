"""Markers: the wanted and the present tool axis, and the line from one tool point to the other."""

from __future__ import annotations

import numpy as np
from geometry_msgs.msg import Vector3
from numpy.typing import NDArray
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import Marker, MarkerArray

from ik_node.ros.conversions import array_point
from ik_node.solver.goal import Goal, Status

Vector = NDArray[np.float64]

COLOURS = {
    Status.SOLVED: ColorRGBA(r=0.1, g=0.8, b=0.2, a=1.0),
    Status.UNREACHABLE: ColorRGBA(r=0.9, g=0.15, b=0.1, a=1.0),
    Status.NOT_FOUND: ColorRGBA(r=1.0, g=0.6, b=0.0, a=1.0),
}
PRESENT = ColorRGBA(r=0.75, g=0.75, b=0.8, a=1.0)

LENGTH = 0.15  # of an arrow, as a share of the arm's reach
SHAFT, HEAD, TIP = 0.08, 0.18, 0.25  # diameters and length of an arrow's head, as shares of its length


def _marker(number: int, name: str, kind: int, frame: str, colour: ColorRGBA) -> Marker:
    marker = Marker(ns=name, id=number, type=kind, action=Marker.ADD, color=colour)
    marker.header.frame_id = frame  # the stamp stays zero: drawn with the newest transform there is
    marker.pose.orientation.w = 1.0
    return marker


def _arrow(marker: Marker, tip: Vector, direction: Vector, length: float) -> Marker:
    """Make marker an arrow of length [m] along direction (3,) that ends at tip (3,)."""
    marker.points = [array_point(tip - length * direction), array_point(tip)]
    marker.scale = Vector3(x=SHAFT * length, y=HEAD * length, z=TIP * length)
    return marker


def goal_markers(
    frame: str, goal: Goal, status: Status, position: Vector, direction: Vector, reach: float
) -> MarkerArray:
    """Return the markers of a goal while the tool is at position (3,), pointing along direction (3,).

    frame: the base link. reach [m] gives the size. Without a wanted direction a ball marks the place.
    """
    length = LENGTH * reach
    colour = COLOURS[status]
    arrow_wanted = goal.direction is not None
    arrow = _marker(0, 'wanted', Marker.ARROW, frame, colour)
    ball = _marker(1, 'wanted', Marker.SPHERE, frame, colour)
    if goal.direction is not None:
        _arrow(arrow, goal.position, goal.direction, length)
    (ball if arrow_wanted else arrow).action = Marker.DELETE
    ball.pose.position = array_point(goal.position)
    ball.scale = Vector3(x=HEAD * length, y=HEAD * length, z=HEAD * length)
    present = _arrow(_marker(2, 'present', Marker.ARROW, frame, PRESENT), position, direction, length)
    line = _marker(3, 'error', Marker.LINE_STRIP, frame, colour)
    line.points = [array_point(position), array_point(goal.position)]
    line.scale.x = SHAFT * length / 2.0
    return MarkerArray(markers=[arrow, ball, present, line])


def no_markers() -> MarkerArray:
    """Return the message that takes all markers away."""
    return MarkerArray(markers=[Marker(action=Marker.DELETEALL)])
