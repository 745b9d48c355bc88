# SPDX-License-Identifier: Apache-2.0
"""Markers: goal and present tool axis, the error between them, the status as text, a trail and a track."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from geometry_msgs.msg import Point, Vector3
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import Marker, MarkerArray

from ik_node.checks import Array
from ik_node.ros.conversions import array_point
from ik_node.solver.goal import Goal, Status

COLOURS = {
    Status.SOLVED: ColorRGBA(r=0.1, g=0.65, b=0.2, a=1.0),
    Status.UNREACHABLE: ColorRGBA(r=0.9, g=0.15, b=0.1, a=1.0),
    Status.NOT_FOUND: ColorRGBA(r=1.0, g=0.6, b=0.0, a=1.0),
}
PRESENT = ColorRGBA(r=0.15, g=0.7, b=0.67, a=1.0)
TRACK = ColorRGBA(r=0.45, g=0.47, b=0.52, a=0.8)

# As shares of the arm's reach. Both arrows start at the tool point and leave the gripper in front of it; the
# wanted one is longer and thinner, so that both are seen where they agree.
WANTED_LENGTH, WANTED_SHAFT = 0.32, 0.010
PRESENT_LENGTH, PRESENT_SHAFT = 0.16, 0.018
BALL, LINE, TEXT = 0.028, 0.006, 0.05
TEXT_HEIGHT = 0.15  # of the text above the goal
HEAD = 2.4  # diameter of an arrow's head, in those of its shaft
LINE_MINIMUM = 2  # points; RViz complains about a shorter line
UP = np.array([0.0, 0.0, 1.0])


def _marker(number: int, name: str, kind: int, frame: str, colour: ColorRGBA) -> Marker:
    marker = Marker(ns=name, id=number, type=kind, action=Marker.ADD, color=colour)
    marker.header.frame_id = frame  # the stamp stays zero: drawn with the newest transform there is
    marker.pose.orientation.w = 1.0
    return marker


def _arrow(marker: Marker, tail: Array, direction: Array, length: float, shaft: float) -> Marker:
    """Make marker an arrow from tail (3,) along direction (3,); length, and diameter of the shaft, in m."""
    marker.points = [array_point(tail), array_point(tail + length * direction)]
    marker.scale = Vector3(x=shaft, y=HEAD * shaft, z=2.0 * HEAD * shaft)
    return marker


def _line(marker: Marker, points: Iterable[Point], width: float) -> Marker:
    """Make marker a line through points; with fewer than two it is deleted."""
    marker.points = list(points)
    marker.scale.x = width
    if len(marker.points) < LINE_MINIMUM:
        marker.action = Marker.DELETE
    return marker


def _words(goal: Goal, status: Status, position: Array, direction: Array) -> str:
    """Return the status and the errors of a tool at position along direction, both (3,)."""
    words = f'{status.value}\n{1e3 * math.dist(position, goal.position):.1f} mm'
    if goal.direction is not None:
        cross, dot = np.linalg.norm(np.cross(direction, goal.direction)), direction @ goal.direction
        words += f'  {math.degrees(math.atan2(cross, dot)):.1f}°'
    return words


def goal_markers(
    frame: str,
    goal: Goal,
    status: Status,
    position: Array,
    direction: Array,
    reach: float,
    trail: Iterable[Point] = (),
) -> MarkerArray:
    """Return the markers of a goal while the tool is at position (3,), pointing along direction (3,).

    frame: the base link. reach [m] gives the size. trail: points where the tool has been. Without a
    wanted direction a ball marks the goal.
    """
    colour = COLOURS[status]
    arrow = _marker(0, 'wanted', Marker.ARROW, frame, colour)
    ball = _marker(1, 'wanted', Marker.SPHERE, frame, colour)
    if goal.direction is not None:
        _arrow(arrow, goal.position, goal.direction, WANTED_LENGTH * reach, WANTED_SHAFT * reach)
        ball.action = Marker.DELETE
    else:
        arrow.action = Marker.DELETE
    ball.pose.position = array_point(goal.position)
    ball.scale = Vector3(x=BALL * reach, y=BALL * reach, z=BALL * reach)
    present = _marker(2, 'present', Marker.ARROW, frame, PRESENT)
    _arrow(present, position, direction, PRESENT_LENGTH * reach, PRESENT_SHAFT * reach)
    error = (array_point(position), array_point(goal.position))
    line = _line(_marker(3, 'error', Marker.LINE_STRIP, frame, colour), error, LINE * reach)
    text = _marker(4, 'status', Marker.TEXT_VIEW_FACING, frame, colour)
    text.text = _words(goal, status, position, direction)
    text.pose.position = array_point(goal.position + TEXT_HEIGHT * reach * UP)
    text.scale.z = TEXT * reach
    been = _line(_marker(5, 'trail', Marker.LINE_STRIP, frame, PRESENT), trail, LINE * reach)
    return MarkerArray(markers=[arrow, ball, present, line, text, been])


def track_marker(frame: str, points: Iterable[Array], size: float) -> MarkerArray:
    """Return the line through points (3,) of a track of that size [m] in frame; without points none."""
    line = _marker(0, 'track', Marker.LINE_STRIP, frame, TRACK)
    return MarkerArray(markers=[_line(line, map(array_point, points), 0.02 * size)])
