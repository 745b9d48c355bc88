# SPDX-License-Identifier: Apache-2.0
"""Whatever moves or places the arm while the clutch is held: the tool stays there until the hand moves."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from control_harness import SETTINGS, Rig
from operator_hand import Hand
from small_arm import arm_urdf

from ik_node.control.robot.arm_model import ArmModel
from ik_node.control.state.states import State
from ik_node.control.teleop.clutch import DROPPED

STILL, WAY = (0.0, 0.0, 0.0), (-0.03, 0.0, 0.02)


@pytest.fixture
def hand(picture) -> Hand:
    """A hand whose clutch is closed: the arm follows it."""
    picture.go(yaw=0.3, shoulder=0.4, elbow=0.5, roll=0.2, wrist=0.3)
    picture.settle()
    hand = Hand(picture)
    hand.move(STILL, 10, closed=True)
    assert picture.state is State.TELEOPERATED
    return hand


def place(hand: Hand, **places: float) -> None:
    """A driver begins to publish the joints of the arm, which is elsewhere."""
    hand.rig.controller.expect_measured(True)
    hand.rig.measure_all(**places)
    hand.measured = True
    assert hand.rig.state is State.HOLDING


def held(hand: Hand, count: int) -> None:
    """Hold the clutch without a pose, for count samples."""
    for _ in range(count):
        hand.tick()
        hand.press(True)


def check_dropped(hand: Hand) -> None:
    """A button that is held moves nothing; pressed again, the hand moves the tool from where it is."""
    before, point = hand.q, hand.point
    hand.move(STILL, 60, closed=True)
    assert hand.q == pytest.approx(before, abs=1e-6)
    assert hand.teleop.ignored == DROPPED
    hand.press(False)
    hand.move(WAY, 100, closed=True)
    hand.move(STILL, 200, closed=True)
    assert hand.point - point == pytest.approx(WAY, abs=3e-3)


def check_related_anew(hand: Hand) -> None:
    """The hand still moves the tool, from where that is."""
    point = hand.point
    hand.move(STILL, 60, closed=True)
    assert hand.point == pytest.approx(point, abs=1e-3)
    hand.move(WAY, 100, closed=True)
    hand.move(STILL, 200, closed=True)
    assert hand.point - point == pytest.approx(WAY, abs=3e-3)


def test_an_arm_that_is_placed_elsewhere_does_not_go_back(hand):
    place(hand, yaw=-0.6, shoulder=0.5, elbow=0.6)
    check_dropped(hand)


def test_a_press_before_the_arm_is_placed_does_not_count(hand):
    hand.rig.controller.expect_measured(True)
    hand.press(False, True)
    hand.rig.measure_all(yaw=-0.6, shoulder=0.5, elbow=0.6)
    hand.measured = True
    check_dropped(hand)


def test_another_robot_opens_the_clutch(hand):
    held(hand, 60)
    assert hand.rig.state is State.HOLDING
    assert hand.rig.controller.configure(ArmModel.build(arm_urdf(lower=-2.4), SETTINGS), SETTINGS)
    check_dropped(hand)


def test_an_arm_that_was_guided_by_hand_stays_where_it_was_brought(model):
    rig = Rig(model, measured=True)
    rig.measure_all(shoulder=0.5, elbow=0.6)
    hand = Hand(rig)
    hand.measured = True
    hand.move(STILL, 10, closed=True)
    hand.tick(10)
    rig.controller.guide(True, rig.time)
    hand.press(True)
    for _ in range(45):
        rig.measure_all(yaw=0.1, shoulder=0.5, elbow=0.6)
        rig.tick()
    hand.press(False, True)  # during the guiding, which is too early
    rig.controller.guide(False, rig.time)
    hand.tick(30)
    assert rig.position('yaw') > 0.02
    check_dropped(hand)


def test_a_press_while_the_arm_is_stopped_does_not_count(hand):
    hand.rig.controller.stop()
    hand.tick(90)
    hand.press(False, True)
    hand.tick(90)
    hand.press(True)
    hand.rig.controller.resume()
    hand.tick(3)
    check_dropped(hand)


def test_a_goal_that_moves_the_arm_in_a_pause_of_the_poses_is_not_undone(hand):
    hand.rig.go(yaw=0.1)
    held(hand, 80)
    assert hand.rig.position('yaw') == pytest.approx(0.1, abs=1e-3)
    check_related_anew(hand)


@pytest.mark.parametrize('kind', ['twist', 'jog'])
def test_velocities_that_move_the_arm_between_poses_are_not_undone(hand, kind):
    rig, before = hand.rig, hand.q
    for _ in range(30):
        held(hand, 1)
        arm, velocity = hand.teleop.ready(), np.array([0.0, 0.0, 0.0, 0.0, 0.4])
        if kind == 'twist':
            hand.teleop.twist(arm, np.array([0.0, 0.1, 0.0]), np.zeros(3), rig.time, rig.settings)
        else:
            hand.teleop.jog(arm, velocity, rig.time, rig.settings)
    held(hand, 100)  # the stream counts as ended after 0.5 s
    assert np.abs(hand.q - before).max() > 0.05
    check_related_anew(hand)


def test_a_goal_of_the_gripper_leaves_the_hand_related_as_it_is(hand):
    start = hand.point
    for _ in range(10):
        hand.rig.go(finger=0.02)
        hand.move((-0.004, 0.002, 0.002), 10, closed=True)
    hand.move(STILL, 100, closed=True)
    assert hand.point - start == pytest.approx((-0.04, 0.02, 0.02), abs=1e-3)


def test_another_tool_on_the_same_arm_moves_nothing(hand):
    model, longer = hand.rig.model, replace(SETTINGS, tool_point=(0.0, 0.0, 0.1))
    other = ArmModel.build(arm_urdf(), longer, model)
    assert other.moves_as(model)
    before = hand.q
    assert hand.rig.controller.configure(other, longer)
    held(hand, 60)
    hand.move(STILL, 60, closed=True)
    assert hand.q == pytest.approx(before, abs=1e-3)
    assert hand.rig.state is State.TELEOPERATED


@pytest.mark.parametrize('step', ['follow', 'take'])
def test_a_step_that_began_before_the_arm_was_placed_moves_nothing(hand, step):
    """The thread of a hand is held up after it has read the state of the arm."""
    rig, teleop, arm = hand.rig, hand.teleop, hand.teleop.ready()
    place(hand, yaw=-0.6, shoulder=0.5, elbow=0.6)
    hand.tick()
    before = hand.q
    if step == 'take':
        hand.press(False, True)
        teleop.take(arm, hand.T, rig.time, rig.time, rig.settings)
    assert not teleop.follow(arm, rig.time, rig.settings)
    hand.move(STILL, 60, closed=True)
    assert hand.q == pytest.approx(before, abs=1e-6)
