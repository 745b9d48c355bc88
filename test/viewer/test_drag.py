# SPDX-License-Identifier: Apache-2.0
"""Who may move a goal that is dragged in RViz, over time."""

from __future__ import annotations

import pytest

from ik_node.ros.rviz.drag import OTHERS, SETTLED, SILENCE, Drag, Shown


@pytest.fixture
def drag() -> Drag:
    """A goal that is dragged since 10 s."""
    drag = Drag()
    drag.press(10.0)
    assert drag.shown is Shown.TOOL, 'a click moves nothing'
    assert drag.pull(10.0)
    assert drag.dragged
    return drag


def test_a_goal_is_shown_until_the_arm_has_come_to_rest(drag):
    drag.release(10.1)
    drag.update(10.2)
    assert drag.shown is Shown.GOAL
    drag.moved(10.4)
    drag.update(10.4 + 0.9 * SETTLED)
    assert drag.shown is Shown.GOAL
    drag.update(10.4 + 1.1 * SETTLED)
    assert drag.shown is Shown.TOOL


def test_a_mouse_that_is_held_still_keeps_the_goal_and_one_that_is_gone_does_not(drag):
    for k in range(20):
        drag.hold(10.0 + 0.25 * k)
        drag.update(10.0 + 0.25 * k)
    assert drag.dragged
    drag.update(14.75 + 1.1 * SILENCE)
    assert not drag.dragged


def test_a_foreign_goal_ends_a_drag_until_the_mouse_is_pressed_again(drag):
    assert not drag.foreign(10.0 + 0.5 * OTHERS), 'the last goals of a track'
    assert drag.dragged
    assert drag.foreign(10.0 + 1.5 * OTHERS)
    assert drag.shown is Shown.GOAL
    assert not drag.pull(12.0)
    assert not drag.dragged
    drag.press(12.5)
    assert drag.pull(12.5)


def test_a_button_ends_a_drag(drag):
    drag.drop()
    assert drag.shown is Shown.TOOL
    assert not drag.pull(10.1)
    drag.release(10.2)
    assert drag.shown is Shown.TOOL


def test_a_drag_whose_press_was_lost_counts(drag):
    drag.release(10.5)
    drag.update(20.0)
    assert drag.pull(20.0)
    assert not drag.foreign(20.5)
    assert drag.dragged
