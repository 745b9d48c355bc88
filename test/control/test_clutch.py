# SPDX-License-Identifier: Apache-2.0
"""The clutch and the poses of a hand: open until it is closed, and open again whatever goes wrong."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from control_harness import SETTINGS, arm_model
from interleaved import at_step
from small_arm import arm_urdf

from ik_node.control.requests import Snapshot
from ik_node.control.states import State
from ik_node.control.teleop import DROPPED, TURNED, Clutch, PoseSmoother, rotation_about

Q = np.array([0.2, 0.3, 0.4, 0.1, 0.2])
REQUIRED = replace(SETTINGS, position_scale=2.0)
NONE = replace(SETTINGS, clutch='none')


def at(model, q=Q, interruptions: int = 0) -> Snapshot:
    """The arm at rest at q (n,)."""
    values = model.joints.filled(dict(zip(model.joint_names, q.tolist(), strict=True)))
    return Snapshot(model, model.first, State.HOLDING, values, q, 0.0, np.nan, np.nan, interruptions=interruptions)


def tip_at(model, offset=(0.0, 0.0, 0.0), turn=(0.0, 0.0, 0.0)) -> np.ndarray:
    """The pose of the tip, which is the tool point, at Q; moved by offset, and turned in its own frame."""
    T = model.link_in_base('tool0', at(model).values)
    T[:3, 3] += offset
    T[:3, :3] = T[:3, :3] @ rotation_about(np.array(turn, float))
    return T


def pose_at(point) -> np.ndarray:
    hand = np.eye(4)
    hand[:3, 3] = point
    return hand


def test_a_clutch_is_open_until_it_is_closed(model):
    clutch, hand = Clutch(), pose_at(model.first.arm.fk(Q)[0])
    for time in (0.0, 0.02, 5.0):
        assert clutch.goal(hand, at(model), time, REQUIRED) is None
        assert 'the clutch is open' in clutch.why
        assert not clutch.engaged(time, REQUIRED)


def test_a_clutch_makes_hand_poses_relative(model):
    clutch, hand = Clutch(), np.eye(4)
    clutch.enable(True, 0.0, 0.5, 0)
    point, axis = model.first.arm.fk(Q)
    assert clutch.goal(hand, at(model), 0.1, REQUIRED).position == pytest.approx(point)
    assert clutch.why == ''
    hand[:3, 3] = 0.01, 0.0, 0.0
    goal = clutch.goal(hand, at(model), 0.2, REQUIRED)
    assert goal.position == pytest.approx(np.add(point, [0.02, 0.0, 0.0]))
    assert goal.direction == pytest.approx(axis)
    assert clutch.goal(hand, at(model), 0.6, REQUIRED) is None  # nobody has confirmed it
    clutch.enable(True, 0.7, 0.5, 0)
    hand[:3, 3] = 1.0, 1.0, 1.0
    assert clutch.goal(hand, at(model), 0.8, REQUIRED).position == pytest.approx(point)  # relative anew
    hand[:3, 3] = 2.0, 1.0, 1.0
    assert clutch.goal(hand, at(model), 0.85, REQUIRED).position == pytest.approx(point)  # a jump is no motion
    clutch.enable(False, 0.9, 0.5, 0)
    assert clutch.goal(hand, at(model), 0.9, REQUIRED) is None


@pytest.mark.parametrize('later', [-3600.0, -1.0, 1.0])
def test_a_clock_that_jumps_opens_a_clutch(model, later):
    clutch = Clutch()
    clutch.enable(True, 5000.0, 0.5, 0)
    assert clutch.goal(np.eye(4), at(model), 5000.1, REQUIRED) is not None
    assert not clutch.engaged(5000.1 + later, REQUIRED)
    assert clutch.goal(np.eye(4), at(model), 5000.1 + later, REQUIRED) is None


def test_a_hand_that_was_silent_counts_from_where_the_tool_is(model):
    clutch, moved = Clutch(), Q + 0.3
    for time in (0.0, 0.4, 0.8, 1.2, 1.6):
        clutch.enable(True, time, 0.5, 0)
        if time == 0.0:
            clutch.goal(np.eye(4), at(model), time, REQUIRED)
    goal = clutch.goal(pose_at([0.05, 0.0, 0.0]), at(model, moved), 1.7, REQUIRED)
    assert goal.position == pytest.approx(model.first.arm.fk(moved)[0])


def test_without_a_clutch_only_a_pose_near_the_tool_is_a_first_one(model):
    clutch, point = Clutch(), model.first.arm.fk(Q)[0]
    offsets = np.outer([0.5, 0.11, 0.09, 0.3, 0.5], [0.0, 0.0, 1.0])
    goals = []
    for k, offset in enumerate(offsets):
        goals.append(clutch.goal(tip_at(model, offset), at(model), 0.02 * k, NONE))
        assert (goals[-1] is None) == ('tool' in clutch.why)
        assert clutch.engaged(0.02 * k, NONE) is (goals[-1] is not None)
    assert [goal is None for goal in goals] == [True, True, False, False, False]
    np.testing.assert_allclose([goal.position for goal in goals[2:]], point + offsets[2:], atol=1e-12)
    assert clutch.goal(tip_at(model, offsets[-1]), at(model), 3.0, NONE) is None  # after a silence
    assert clutch.goal(tip_at(model), at(model), 3.02, NONE) is not None
    assert clutch.goal(tip_at(model, [0.0, 0.3, 0.0]), at(model), 3.04, NONE) is None  # a leap


@pytest.mark.slow
@pytest.mark.parametrize('settings', [REQUIRED, NONE], ids=['required', 'none'])
def test_a_clutch_that_opens_while_a_pose_is_taken_is_open(model, settings):
    """At every step: callbacks open it while a thread takes a pose."""
    arm, hand = at(model), tip_at(model)
    for number in range(1, 5000):
        clutch = Clutch()
        if settings is REQUIRED:
            clutch.enable(True, 0.0, 0.5, 0)
        clutch.goal(hand, arm, 0.0, settings)
        if not at_step(
            number,
            lambda clutch=clutch: clutch.enable(False, 0.1, 0.5, 0),
            lambda clutch=clutch: clutch.goal(hand, arm, 0.1, settings),
        ):
            break
        assert not clutch.engaged(0.1, settings), f'step {number}'
        clutch.enable(True, 0.2, 0.5, 0)
        assert not clutch.engaged(0.2, settings), 'before a pose'
        assert clutch.goal(pose_at([1.0, 1.0, 1.0]), arm, 0.2, settings).position == pytest.approx(
            model.first.arm.fk(Q)[0]
        ), f'step {number}: not where the tool is'
    assert 100 < number < 4999


def repeated(clutch: Clutch, times, interruptions: int, closed: bool = True) -> None:
    for time in times:
        clutch.enable(closed, time, 0.5, interruptions)


@pytest.mark.parametrize('gap', [0.1, 2.0])
def test_only_a_false_lets_go_of_a_button_whose_false_was_heard_before(model, gap):
    """A gap in the trues during a stop is no release: the network may have failed with the button held."""
    clutch, hand = Clutch(), pose_at([0.0, 0.0, 0.0])
    clutch.enable(False, -1.0, 0.5, 0)
    repeated(clutch, (0.0, 0.1), interruptions=0)
    assert clutch.goal(hand, at(model), 0.1, REQUIRED) is not None
    repeated(clutch, (0.1 + gap, 0.2 + gap), interruptions=1)
    assert clutch.goal(hand, at(model, interruptions=1), 0.2 + gap, REQUIRED) is None
    assert clutch.why == DROPPED
    repeated(clutch, (1.1 + 2.0 * gap,), interruptions=1)  # and the gap after it
    assert clutch.goal(hand, at(model, interruptions=1), 1.1 + 2.0 * gap, REQUIRED) is None
    clutch.enable(False, 6.0, 0.5, 1)
    clutch.enable(True, 6.1, 0.5, 1)
    assert clutch.goal(hand, at(model, interruptions=1), 6.1, REQUIRED) is not None


def test_silence_lets_go_of_a_button_from_which_no_false_ever_came(model):
    clutch, hand = Clutch(), pose_at([0.0, 0.0, 0.0])
    repeated(clutch, (0.0, 0.4), interruptions=0)
    repeated(clutch, (0.8, 1.2), interruptions=1)
    assert clutch.goal(hand, at(model, interruptions=1), 1.2, REQUIRED) is None
    assert clutch.why == DROPPED
    clutch.enable(True, -3600.0, 0.5, 1)  # the clock is set back
    assert clutch.goal(hand, at(model, interruptions=1), -3600.0, REQUIRED) is None
    clutch.enable(True, -3599.4, 0.5, 1)
    assert clutch.goal(hand, at(model, interruptions=1), -3599.4, REQUIRED) is not None


@pytest.mark.parametrize('falses', [True, False])
def test_the_first_press_after_a_stop_counts_without_a_pose_in_between(model, falses):
    clutch, hand = Clutch(), pose_at([0.0, 0.0, 0.0])
    repeated(clutch, (0.0, 0.1), interruptions=0)
    assert clutch.goal(hand, at(model), 0.1, REQUIRED) is not None
    if falses:
        clutch.enable(False, 0.2, 0.5, 1)
    clutch.enable(True, 2.0, 0.5, 2)
    assert clutch.goal(hand, at(model, interruptions=2), 2.1, REQUIRED) is not None
    clutch.enable(True, 2.2, 0.5, 3)  # still held
    assert not clutch.engaged(2.2, REQUIRED)


@pytest.mark.parametrize('turn', [(1.0, 0.0, 0.0), (0.0, -1.0, 0.0)])
def test_without_a_clutch_a_first_pose_is_turned_as_the_tool_is(model, turn):
    for angle in (0.35, np.pi):
        clutch = Clutch()
        assert clutch.goal(tip_at(model, turn=angle * np.array(turn)), at(model), 0.0, NONE) is None
        assert clutch.why == TURNED
        assert not clutch.engaged(0.0, NONE)
        assert clutch.goal(tip_at(model, turn=0.25 * np.array(turn)), at(model), 0.02, NONE) is not None
        assert clutch.goal(tip_at(model, turn=0.7 * np.array(turn)), at(model), 0.04, NONE) is not None
        assert clutch.goal(tip_at(model, turn=-0.6 * np.array(turn)), at(model), 0.06, NONE) is None  # a leap


def test_without_a_clutch_only_turns_that_a_joint_serves_count(model):
    assert Clutch().goal(tip_at(model, turn=(0.0, 0.0, np.pi)), at(model), 0.0, NONE) is not None  # no roll
    rolling = arm_model(arm_urdf(), replace(SETTINGS, tip_link='l4', tool_axis=(1.0, 0.0, 0.0)))
    q, across = (
        Q[:4],
        rolling.first.arm.tool_lateral,
    )  # three joints place the tool, and the fourth one rolls it
    hand = rolling.link_in_base('l4', at(rolling, q).values)
    for turn, accepted in (
        (np.pi * across, True),
        ((0.35, 0.0, 0.0), False),
        ((-np.pi, 0.0, 0.0), False),
        ((0.25, 0.0, 0.0), True),
    ):
        turned = hand.copy()
        turned[:3, :3] = hand[:3, :3] @ rotation_about(np.array(turn))
        assert (Clutch().goal(turned, at(rolling, q), 0.0, NONE) is not None) is accepted
    clutch, lateral = Clutch(), rolling.first.arm.frames(q)[-1]
    clutch.enable(True, 0.0, 0.5, 0)
    for time, turn in ((0.0, 0.0), (0.02, 1.5)):
        turned = np.eye(4)
        turned[:3, :3] = rotation_about(np.array([turn, 0.0, 0.0]))
        goal = clutch.goal(turned, at(rolling, q), time, REQUIRED)
        assert goal.lateral == pytest.approx(lateral)  # a leap is no motion


EVERY = 0.02
TIMES = EVERY * np.arange(20)


def hand_at(time: float) -> np.ndarray:
    """A calm motion with some acceleration."""
    return np.array([0.2 * time, 0.1 - 0.3 * time, 0.1 * time**2])


def smoothed(noise: float = 0.0, late: float = 0.0, stamped: bool = True) -> PoseSmoother:
    rng, motion = np.random.default_rng(0), PoseSmoother()
    for time in TIMES.tolist():
        motion.add(hand_at(time) + noise * rng.normal(size=3), time + late, time if stamped else None)
    return motion


@pytest.mark.parametrize('stamped', [True, False])
def test_a_motion_is_carried_on_between_poses(stamped):
    motion = smoothed(stamped=stamped)
    for ahead in (0.0, 0.01, 0.03):
        assert motion.at(TIMES[-1] + ahead) == pytest.approx(hand_at(TIMES[-1] + ahead), abs=1e-4)


def test_a_stamp_makes_up_for_a_short_delay_only():
    time = TIMES[-1] + 0.01
    assert smoothed(late=0.01).at(time) == pytest.approx(hand_at(time), abs=1e-4)
    assert smoothed(late=0.2).at(time + 0.2) == pytest.approx(hand_at(time), abs=1e-4)


def test_the_noise_of_few_poses_is_no_motion():
    rng, motion = np.random.default_rng(1), PoseSmoother()
    for k in range(4):
        motion.add(4e-4 * rng.normal(size=3), EVERY * k, EVERY * k)
    assert np.abs(motion.at(0.1) - motion.at(0.06)).max() < 1e-3


@pytest.mark.parametrize('stamped', [True, False])
@pytest.mark.parametrize(('leap', 'gap'), [(0.1, EVERY), (0.0, 0.3)])
def test_after_a_leap_or_a_gap_the_hand_starts_at_rest_elsewhere(leap, gap, stamped):
    motion, time = smoothed(stamped=stamped), TIMES[-1] + gap
    there = hand_at(time) + leap
    motion.add(there, time, time if stamped else None)
    assert motion.at(time + 0.02) == pytest.approx(there, abs=1e-9)


def test_a_silent_hand_is_carried_on_for_a_moment_only():
    motion = smoothed()
    np.testing.assert_array_equal(motion.at(TIMES[-1] + 0.2), motion.at(TIMES[-1] + 5.0))
    motion.clear()
    assert not motion.known
