# SPDX-License-Identifier: Apache-2.0
"""Markers: what RViz is given to draw for a goal and for a track."""

from __future__ import annotations

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest
from control_harness import SETTINGS, Rig, arm_model
from interleaved import at_step
from small_arm import arm_urdf
from visualization_msgs.msg import Marker

from ik_node.ros.tool_interface import GoalMarkers, goal_markers, track_marker
from ik_node.solver.goal import Goal, Status

TOOL, DOWN = np.array([0.3, 0.1, 0.2]), np.array([0.0, 0.0, -1.0])
Y = np.array([0.0, 1.0, 0.0])


def markers(goal: Goal, status: Status = Status.SOLVED, trail=()) -> dict[str, Marker]:
    """The markers to draw, by name, with the tool at TOOL, pointing DOWN."""
    given = goal_markers('base_link', goal, status, TOOL, DOWN, 0.8, trail).markers
    assert len({marker.id for marker in given}) == len(given)
    return {marker.ns: marker for marker in given if marker.action == Marker.ADD}


def points(marker: Marker) -> np.ndarray:
    return np.array([[p.x, p.y, p.z] for p in marker.points])


def test_the_wanted_axis_is_seen_where_the_tool_meets_it():
    drawn = markers(Goal(TOOL, DOWN))
    wanted, present = points(drawn['wanted']), points(drawn['present'])
    assert wanted[0] == pytest.approx(TOOL)
    assert present[0] == pytest.approx(TOOL)
    # In front of the tool, not in the gripper behind it, and beyond the arrow of the present axis.
    assert (wanted[1] - TOOL) @ DOWN > (present[1] - TOOL) @ DOWN + drawn['present'].scale.z / 2 > 0.1
    assert drawn['wanted'].scale.x < drawn['present'].scale.x


@pytest.mark.parametrize(
    ('goal', 'status', 'words'),
    [
        (Goal(TOOL, DOWN), Status.SOLVED, 'solved\n0.0 mm  0.0°'),
        (
            Goal(TOOL + 0.05 * Y, (0.0, math.sin(0.1), -math.cos(0.1))),
            Status.UNREACHABLE,
            'unreachable\n50.0 mm  5.7°',
        ),
        (Goal(TOOL - 0.002 * DOWN), Status.NOT_FOUND, 'not found\n2.0 mm'),
    ],
)
def test_the_status_stands_above_the_goal_in_words(goal, status, words):
    text = markers(goal, status)['status']
    assert (text.type, text.text) == (Marker.TEXT_VIEW_FACING, words)
    assert text.pose.position.z > goal.position[2]
    assert text.scale.z > 0.0


@pytest.mark.slow
def test_markers_that_another_thread_clears_at_any_step_of_a_drawing_do_no_harm():
    state = Rig(arm_model(arm_urdf(), SETTINGS)).controller.snapshot()
    publisher = SimpleNamespace(publish=lambda _: None, get_subscription_count=lambda: 1)
    for number in itertools.count(1):
        shown = GoalMarkers(publisher)
        shown.set(Goal(TOOL), Status.SOLVED)
        if not at_step(number, shown.clear, lambda: shown.draw(state)):  # noqa: B023
            break
    assert number > 100


def test_a_track_is_drawn_and_taken_away():
    curve = [np.array([math.cos(t), math.sin(t), 0.0]) for t in (0.0, 0.1, 0.2)]
    (drawn,) = track_marker('table', curve, 0.1).markers
    assert (drawn.header.frame_id, drawn.action) == ('table', Marker.ADD)
    assert points(drawn) == pytest.approx(np.array(curve))
    (gone,) = track_marker('table', [], 0.1).markers
    assert (gone.id, gone.ns, gone.action) == (drawn.id, drawn.ns, Marker.DELETE)
