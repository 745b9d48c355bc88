# SPDX-License-Identifier: Apache-2.0
"""A hand that steers an arm: poses, the clutch, how it ends, and short paths of the benchmark."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from operator_hand import Hand
from oracles import hand as benchmark
from oracles.arms import chosen
from oracles.hand_paths import HandPath

from ik_node.control.paths.tool_path import ToolPath
from ik_node.control.state.report import Level
from ik_node.control.state.states import State
from ik_node.control.teleop.clutch import OPEN
from ik_node.control.teleop.pose_distance import FAR
from ik_node.errors import InputError

FEW = 12  # changes of sign per joint and minute beyond those of the hand


@pytest.fixture
def hand(picture) -> Hand:
    picture.go(yaw=0.3, shoulder=0.4, elbow=0.5, roll=0.2, wrist=0.3)
    picture.settle()
    return Hand(picture)


def test_the_tool_moves_as_the_hand_does(hand):
    hand.move([0.0, 0.0, 0.0], 10, closed=True)
    start = hand.point
    hand.move([-0.04, 0.02, 0.02], 150, closed=True)
    assert hand.rig.state is State.TELEOPERATED
    hand.move([0.0, 0.0, 0.0], 100, closed=True)
    assert hand.point - start == pytest.approx([-0.04, 0.02, 0.02], abs=1e-3)


@pytest.mark.parametrize('opened', [True, False])
def test_an_arm_on_its_way_stops_when_the_hand_has_gone(hand, opened):
    hand.move([0.0, 0.0, 0.0], 10, closed=True)
    far = hand.rig.controller.snapshot().position - 1.0
    hand.rig.controller.steer(far, hand.rig.time)
    hand.rig.tick(20)
    if opened:
        hand.move([0.0, 0.0, 0.0], 2, closed=False)
    else:
        hand.teleop.end()
    hand.rig.tick(300)
    assert hand.rig.state is State.HOLDING
    assert np.abs(hand.rig.controller.snapshot().position - far).min() > 0.2


def test_the_arm_stops_as_soon_as_a_hand_in_motion_has_gone(hand):
    hand.move([0.0, 0.0, 0.0], 10, closed=True)
    hand.move([-0.3, 0.4, 0.0], 2, closed=True)  # far, and at once
    hand.move([0.0, 0.0, 0.0], 60, closed=True)
    at = hand.rig.controller.snapshot().position
    hand.teleop.end()
    hand.rig.tick(300)
    assert hand.rig.state is State.HOLDING
    assert np.abs(hand.rig.controller.snapshot().position - at).max() < 0.3


@pytest.mark.parametrize('ended', ['stop', 'fault'])
def test_a_path_after_a_hand_does_not_lead_to_where_the_hand_was(hand, ended):
    rig, home = hand.rig, hand.rig.controller.snapshot().position
    for k in range(30):
        rig.controller.steer(home + 0.02 * k, rig.time)
        rig.tick(1)
    if ended == 'stop':
        rig.controller.stop()
    else:
        rig.controller.fault('the controller is gone')
    rig.tick(300)
    rig.controller.resume()
    rig.tick(3)
    position, direction = rig.model.arm.fk(rig.controller.snapshot().position)
    end = position + np.array([0.0, 0.0, 0.02])
    report = rig.ask(ToolPath([end], [direction]))
    assert report.phase == 'moving', report.message
    rig.settle()
    assert hand.point == pytest.approx(end, abs=5e-4)


def test_a_closed_clutch_waits_for_a_pose(hand):
    hand.move([0.0, 0.0, 0.0], 10, closed=True)
    hand.move([-0.2, 0.0, 0.1], 4, closed=True)  # far, and at once
    for closed in (False, True):
        hand.teleop.enable(closed, hand.rig.time, hand.rig.settings)
    hand.rig.tick()
    start = hand.point
    assert not hand.teleop.follow(hand.teleop.ready(), hand.rig.time, hand.rig.settings)
    hand.rig.tick(100)
    assert hand.rig.state is State.HOLDING
    assert np.linalg.norm(hand.point - start) < 0.1


@pytest.mark.parametrize('clutch', ['required', 'none'])
def test_poses_that_do_not_count_move_nothing_and_are_told(hand, clutch):
    rig = hand.rig
    rig.settings = replace(rig.settings, clutch=clutch)
    before, told = rig.controller.snapshot().position, len(rig.reports)
    if clutch == 'none':
        hand.T[:3, 3] += [0.0, 0.2, 0.0]
    hand.move([-0.02, 0.0, 0.0], 50)
    rig.tick(50)
    np.testing.assert_array_equal(rig.controller.snapshot().position, before)
    (report,) = rig.reports[told:]
    assert report.level is Level.WARN
    assert report.message == (OPEN if clutch == 'required' else FAR)
    if clutch == 'none':
        hand.T[:3, 3] -= [0.0, 0.2, 0.0]
    hand.move([-0.02, 0.0, 0.0], 50, closed=True if clutch == 'required' else None)
    assert rig.state is State.TELEOPERATED
    assert [report.message for report in rig.reports[told + 1 :]] == ['the arm follows the operator']


def test_an_open_clutch_leaves_a_goal_alone(hand):
    rig = hand.rig
    rig.go(yaw=-0.3, shoulder=0.2)
    hand.move([-0.02, 0.0, 0.0], 20)
    assert rig.state is State.MOVING
    rig.settle()
    assert rig.position('yaw') == pytest.approx(-0.3)


def test_a_hand_out_of_reach_is_followed_calmly_at_the_best_place(monkeypatch):
    monkeypatch.setattr(benchmark, 'INSTANTS', 200)
    campaign = benchmark.Campaign(chosen('so101_like')[0])
    judged = campaign.judge(benchmark.Ours, HandPath(0, campaign.scale, 12.0))
    assert judged.speed <= 1.0 + 1e-6
    assert judged.acceleration <= 1.0 + 1e-6
    assert judged.excess.min() > -1e-6
    undisturbed = judged.calm & (judged.least > benchmark.OUT)
    assert np.count_nonzero(undisturbed) > 10
    assert np.mean(judged.excess[undisturbed] <= benchmark.NEAR) > 0.85
    turns, hand = judged.turns
    assert turns <= hand + FEW
    assert campaign.latency(benchmark.Ours, HandPath(1, campaign.scale, 1.4)) <= 1.0


@pytest.mark.parametrize('how', ['stop', 'fault'])
def test_after_a_stop_the_operator_has_to_close_the_clutch_again(hand, how):
    controller = hand.rig.controller
    hand.move((0.0, 0.05, 0.0), 50, closed=True)
    controller.stop() if how == 'stop' else controller.fault('for a test')
    hand.T[:3, 3] += (0.0, 0.15, 0.0)
    for _ in range(40):
        hand.rig.tick()
        hand.teleop.enable(True, hand.rig.time, hand.rig.settings)
        with pytest.raises(InputError):
            hand.teleop.ready()
    controller.resume()
    hand.rig.tick(3)
    before = hand.point
    hand.move((0.0, 0.0, 0.0), 100, closed=True)  # the button is still held
    assert hand.point == pytest.approx(before, abs=1e-6)
    assert 'false, then true on ~/enable' in hand.teleop.ignored
    hand.move((0.0, 0.0, 0.0), 2, closed=False)
    hand.move((0.0, -0.03, 0.0), 100, closed=True)
    hand.rig.settle()
    assert hand.point - before == pytest.approx((0.0, -0.03, 0.0), abs=3e-3)


def test_a_step_just_ahead_of_a_setpoint_does_not_end_the_motion(hand):
    hand.move((0.0, 0.1, 0.0), 100, closed=True)
    targets, time = hand.rig.controller._targets, hand.rig.time
    for early in (0.0, 5e-4, 5e-3):
        state = targets.moving(time - early)
        assert state is not None
        assert np.abs(state.velocity).max() > 0.01
    assert targets.moving(time - 0.2) is None  # the clock was set back
