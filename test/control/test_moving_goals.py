# SPDX-License-Identifier: Apache-2.0
"""Moving goals: where they are at any time, and how the joints follow them within all limits."""

from __future__ import annotations

import itertools
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from control_harness import AFTER, SETTINGS, Asked, Rig, arm_model

from ik_node import Goal
from ik_node.control.motion import JointMotion
from ik_node.control.pursuit import Pursuit
from ik_node.control.settings import ArmSettings
from ik_node.control.solving import BRIDGED, RETURN, GoalSolver, GoalStream, regularised_stamps
from ik_node.control.trajectory import MotionState
from ik_node.model.urdf.description import load_description
from ik_node.steady import steady
from ik_node.tracks import Track

ROOT = Path(__file__).resolve().parents[2]
STEP = 0.02  # [s] between goals
FASTEST = np.array([2.0, 2.0])


def parabola(time: float) -> np.ndarray:
    return np.array([0.3 * time + 0.5 * time**2, -0.2 * time])


def stream(times: np.ndarray, *, stamped: bool = True, late: float = 0.002) -> GoalStream:
    goals = GoalStream(FASTEST)
    for time in times:
        goals.add(parabola(time), time + late, time if stamped else None)
    return goals


@pytest.mark.parametrize('stamped', [True, False])
def test_a_stream_tells_position_velocity_and_acceleration(stamped):
    goals = stream(np.arange(12) * STEP, stamped=stamped, late=0.0)
    found = goals.at(0.24)
    assert found is not None
    assert found.position == pytest.approx(parabola(0.24))
    assert found.velocity == pytest.approx([0.54, -0.2])
    assert found.acceleration == pytest.approx([1.0, 0.0])


@pytest.mark.parametrize(
    ('times', 'at'),
    [
        ([0.0, *(0.1 + 1e-9 * np.arange(3))], 0.1 + 3e-9),  # a burst after a pause, without stamps
        (np.arange(6) * 0.2, 1.0),  # a slow stream is a row of places
        (np.arange(3) * STEP, 0.05),  # too few
        ([], 0.0),
    ],
)
def test_goals_that_tell_no_motion(times, at):
    assert stream(np.array(times), stamped=False, late=0.0).at(at) is None


def test_a_stream_that_has_ended_or_stands_still_has_no_velocity():
    goals = stream(np.arange(6) * STEP)
    assert goals.at(0.1 + 2.4 * STEP) is not None
    assert goals.at(0.1 + BRIDGED * STEP + RETURN + 0.001) is None
    still = GoalStream(FASTEST)
    for time in np.arange(6) * STEP:
        still.add(parabola(1.0), time, time)
    assert still.at(0.1) is None


def test_a_jump_begins_a_new_stream():
    goals = stream(np.arange(6) * STEP)
    goals.add(parabola(0.12) + 0.5, 0.12, 0.12)
    assert goals.at(0.13) is None


@pytest.mark.parametrize('stamp', [0.1, 0.05])
def test_a_goal_that_comes_twice_or_after_a_newer_one_does_not_disturb_the_stream(stamp):
    goals = stream(np.arange(6) * STEP)
    before = goals.at(0.11)
    goals.add(parabola(stamp), 0.106, stamp)
    assert before is not None
    np.testing.assert_array_equal(goals.at(0.11), before)


def test_older_stamps_begin_a_new_stream_when_no_newer_ones_come():
    """The clock of the sender was set back."""
    goals = stream(np.arange(6) * STEP)
    for time in 0.7 + np.arange(6) * STEP:
        goals.add(parabola(time), time, time - 10.0)
    found = goals.at(0.81)
    assert found is not None
    assert found.position == pytest.approx(parabola(0.81), abs=1e-6)


@pytest.mark.parametrize('late', [0.2, -0.3])
def test_goals_that_come_late_or_with_another_clock_are_taken_for_new(late):
    """Else the arm would be sent ahead, where nobody knows what the goal does."""
    goals = stream(np.arange(6) * STEP, late=late)
    found = goals.at(0.1 + late)
    assert found is not None
    assert found.position == pytest.approx(parabola(0.1), abs=1e-9)


def wave(time: float) -> np.ndarray:
    return 0.3 * np.array([np.sin(4.0 * time), np.cos(4.0 * time)])


def test_the_jitter_of_arrival_does_not_count_where_goals_are_sent_at_an_even_rate():
    rng = np.random.default_rng(2)
    errors = []
    for _ in range(50):
        goals = GoalStream(FASTEST)
        for k in range(14):
            if k != 9:  # one is lost
                goals.add(wave(k * STEP), k * STEP + abs(rng.normal(0.0, 0.0015)), None)
        found = goals.at(14 * STEP)
        assert found is not None
        errors.append(found.velocity - 1.2 * np.array([np.cos(56.0 * STEP), -np.sin(56.0 * STEP)]))
    assert np.abs(errors).max() < 0.05


@pytest.mark.parametrize(('late', 'even'), [(0.014, False), (0.009, True)])  # too late to be jitter
def test_a_goal_that_is_late_and_the_next_beside_it_are_spread(late, even):
    sent = 0.02 * np.arange(8) + np.where(np.arange(8) == 3, late, 0.0)
    times, found = regularised_stamps(sent)
    assert found is even
    expected = 0.02 * np.arange(8) + times[0] if even else sent
    assert times == pytest.approx(expected, abs=1e-3 if even else 0.0)


def test_a_stream_that_misses_goals_goes_on_and_then_returns_gently_to_the_newest():
    goals = stream(np.arange(6) * STEP)
    went_on = goals.at(0.1 + 3.0 * STEP)  # two are lost
    assert went_on is not None
    assert went_on.position == pytest.approx(parabola(0.1 + 3.0 * STEP), abs=1e-6)
    times = np.arange(0.1, 0.0999 + BRIDGED * STEP + RETURN, 0.001)
    places, rates, _ = np.array([goals.at(time) for time in times]).transpose(1, 0, 2)
    np.testing.assert_allclose(np.gradient(places, 0.001, axis=0)[5:-5], rates[5:-5], atol=0.02)
    assert places[-1] == pytest.approx(parabola(0.1), abs=1e-4)
    assert np.abs(rates[-1]).max() < 0.02


@pytest.mark.slow
def test_a_moving_target_is_met_without_lag_and_its_end_without_a_jump():
    motion = JointMotion([-3.0], [3.0], [0.0])
    motion.set_limits([2.0], [5.0], [50.0])
    for k in range(1, 400):
        time = 0.01 * k
        target = MotionState(*(np.array([x]) for x in (np.sin(time), np.cos(time), -np.sin(time))))
        motion.track(target, 0.04)
        position, _ = motion.step(0.01)
        if time > 1.5:
            assert position[0] == pytest.approx(np.sin(time), abs=1e-3)
    motion.go_to([0.2])
    for _ in range(300):
        motion.step(0.01)
    assert motion.position == pytest.approx([0.2])
    assert not motion.moving


def chased_round(rates: list[float], seconds: float, start: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Follow a target round a circle of 0.3 rad, for some seconds at each rate [rad/s].

    Returns the targets and the joints (k, 2), a sample every 10 ms.
    """
    motion = JointMotion([-3.0, -3.0], [3.0, 3.0], [0.3 + start, start])
    motion.set_limits([1.5, 1.5], [5.0, 5.0], [50.0, 50.0])
    targets, joints, turn = [], [], 0.0
    for rate in rates:
        for _ in range(round(100 * seconds)):
            turn += 0.01 * rate
            around = 0.3 * np.array([[np.cos(turn), np.sin(turn)], [-np.sin(turn), np.cos(turn)]])
            target = MotionState(around[0], rate * around[1], -(rate**2) * around[0])
            motion.track(target, 0.04)
            joints.append(motion.step(0.01)[0])
            targets.append(target.position)
    return np.array(targets), np.array(joints)


@pytest.mark.slow
@pytest.mark.parametrize('rate', [4.2, 7.0, 12.0])
def test_a_target_beyond_the_limits_does_not_make_the_joints_swing(rate):
    """4.08 rad/s need the whole acceleration limit: the joints stay on a smaller circle."""
    targets, joints = chased_round([rate], 8.0, 0.3)
    assert np.abs(joints[200:]).max() < 0.3 + 0.2 * 0.6
    assert np.linalg.norm(joints[300:] - targets[300:], axis=1).max() < 0.5
    radius = np.linalg.norm(joints[600:], axis=1)
    if rate < 10.0:
        assert np.ptp(radius) < 0.015
        assert radius.mean() > 0.65 * 0.3 * (4.08 / rate) ** 2  # what the acceleration limit allows


def chased_along(positions: np.ndarray, rates: np.ndarray) -> np.ndarray:
    """Follow a target of one joint, with constant velocity between the samples; return the joint (k,)."""
    motion = JointMotion([-3.0], [3.0], [positions[0]])
    motion.set_limits([1.5], [5.0], [50.0])
    joint = []
    for position, rate in zip(positions, rates, strict=True):
        motion.track(MotionState(np.array([position]), np.array([rate]), np.zeros(1)), 0.04)
        joint.append(motion.step(0.01)[0][0])
    return np.array(joint)


@pytest.mark.slow
def test_joints_brake_in_time_where_the_target_turned_before():
    """To and fro at 0.9 rad/s with turns at once. From that speed a joint needs 0.13 rad to stop."""
    turns = 0.3 * np.where(np.arange(16) % 2, -1.0, 1.0)
    ways = [np.linspace(a, b, 67)[1:] for a, b in pairwise(turns)]
    joint = chased_along(np.concatenate(ways), np.repeat(0.9 * np.sign(np.diff(turns)), 66))
    assert np.abs(joint[200:]).max() < 0.3 + 0.1 * 0.6


@pytest.mark.slow
def test_a_target_that_goes_on_where_it_turned_before_is_followed():
    """A feasible swing, and then on to the far side at constant speed."""
    time = 0.01 * np.arange(1400)
    swing, turning = 0.3 * np.sin(2.0 * time), time > 4.0 * np.pi
    start = 4.0 * np.pi
    positions = np.where(turning, 0.6 * (time - start), swing)
    rates = np.where(turning, 0.6, 0.6 * np.cos(2.0 * time))
    joint = chased_along(positions, rates)
    assert np.abs(joint - positions)[200:].max() < 0.03


def follow_circle(
    model, *, follow: bool, laps: float = 1.5, missing: tuple[float, float] = (0.0, 0.0)
) -> tuple[Rig, float]:
    """Send goals along a circle at 0.1 m/s; return the largest distance of the tool from the goal [m].

    missing: from when to when [s] after the beginning no goal arrives.
    """
    rig = Rig(model)
    rig.controller.set_limits(ArmSettings(**{**vars(SETTINGS), 'follow_goals': follow}))
    track = Track('circle', (0.4, 0.1, -0.2), 0.05, 0.1, (0.0, 0.0, -1.0))
    begin, distances = rig.time, []
    for k in range(round(100 * laps * track.lap)):
        if k % 2 == 0 and not missing[0] < rig.time - begin < missing[1]:
            now = rig.time
            goal = Goal(track.position(now - begin))
            rig.controller.submit(Asked(goal, arrival=AFTER + now, received=now, goal_time=now))
        rig.tick()
        q = rig.controller.snapshot().position
        distances.append(np.linalg.norm(model.first.arm.fk(q)[0] - track.position(rig.time - begin)))
    return rig, max(distances[250:], default=0.0)  # after it has caught up


@pytest.mark.slow
def test_a_goal_on_a_circle_is_followed_not_chased(model):
    rig, distance = follow_circle(model, follow=True)
    assert distance < 0.0005
    rig.settle()
    assert rig.reports[-1].phase == 'arrived'
    _, chased = follow_circle(model, follow=False)
    assert chased > 0.005


@pytest.mark.slow
@pytest.mark.parametrize(('gap', 'most'), [(0.05, 0.0005), (0.2, 0.035)])
def test_an_arm_catches_up_with_a_circle_whose_goals_were_missing_for_a_moment(model, gap, most):
    """The goal moves by 0.1 m/s; with a new blend the arm would be behind for seconds."""
    _, distance = follow_circle(model, follow=True, missing=(3.0, 3.0 + gap))
    assert distance < most


def test_a_target_that_is_no_number_brings_the_joints_to_rest():
    limits = np.full(2, 2.0), np.full(2, 8.0), np.full(2, 80.0)
    pursuit, now = Pursuit(2), MotionState(np.zeros(2), np.full(2, 0.3), np.zeros(2))
    target = np.zeros((3, 2))
    target[1, 1] = np.nan
    places = [now.position]
    for _ in range(300):
        now = pursuit.step(now, MotionState(*target), limits, 0.05, 0.01)
        places.append(now.position)
    assert np.abs(now.velocity).max() < 1e-3
    assert np.abs(places).max() < 0.3
    assert np.abs(np.diff(places, 2, axis=0)).max() < 1.01 * 8.0 * 0.01**2


@pytest.mark.slow
@pytest.mark.parametrize(('edge', 'swing', 'period'), [(-1e-4, 0.06, 2.0), (2e-2, 0.13, 3.0)])
def test_what_a_controller_is_sent_ahead_stays_within_the_limits_where_a_joint_turns(swing, period, edge):
    """The target turns at the upper limit, or a little beyond it."""
    upper, rate = 1.69, 2.0 * np.pi / period
    motion = JointMotion([-upper], [upper], [upper - 2.0 * swing])
    motion.set_limits([1.0], [5.0], [50.0])
    coasted = 0
    for time in np.arange(0.0, 4.0, 0.01):
        place = swing * np.array([np.sin(rate * time), rate * np.cos(rate * time), -(rate**2) * np.sin(rate * time)])
        place[0] += upper + edge - swing
        motion.track(MotionState(*place[:, None]), 0.04)
        motion.step(0.01)
        coasted += motion.coasting(0.15) is not None
        if motion.moving:
            ahead = motion.ahead()
            states = ahead.at_times(np.arange(0.0, ahead.duration + 0.01, 0.01))
            assert states[:, 0, 0].max() <= upper + 5e-6
    assert coasted > 10


@pytest.mark.slow
def test_the_blend_continues_from_joints_that_a_limit_has_taken_off_it():
    limits = np.full(2, 1.0), np.full(2, 8.0), np.full(2, 80.0)
    pursuit, now = Pursuit(2), MotionState(*np.zeros((3, 2)))
    yielded, before = 0, np.zeros(3)
    for time in np.arange(0.0, 12.0, 0.01):
        rate = 0.5 * time  # ever faster
        target = np.array([0.5 * np.sin(rate * time), rate * np.cos(rate * time), np.sin(rate * time)])
        goal = np.column_stack([target, target])
        now = pursuit.step(now, MotionState(*goal), limits, 0.05, 0.01)
        share, calm = pursuit._share, pursuit._calm
        if calm is not None and 0.0 < share[0] < before[0] and not share[1:].any():
            yielded += 1
            np.testing.assert_allclose((1.0 - share[0]) * calm + share[0] * goal, np.array(now), atol=1e-9)
        before = share.copy()
    assert yielded > 10


@pytest.mark.slow
@pytest.mark.parametrize('whole', [True, False])
def test_positions_of_all_joints_are_a_moving_goal_too(model, whole):
    """Those of some joints are places to go to, one after the other."""
    rig = Rig(model)
    names = model.joint_names if whole else model.joint_names[:2]
    errors = []
    for k in range(200):
        now = rig.time
        if k % 2 == 0:
            there = dict.fromkeys(names, 0.3 * np.sin(2.0 * now))
            rig.controller.submit(Asked(there, arrival=AFTER + now, received=now, goal_time=now))
        rig.tick()
        errors.append(rig.position(names[0]) - 0.3 * np.sin(2.0 * rig.time))
    assert bool(np.abs(errors[150:]).max() < 2e-3) is whole


def test_a_goal_on_its_own_has_more_time_on_a_slow_computer_and_one_of_a_stream_has_not(monkeypatch):
    looks = itertools.count(1)
    monkeypatch.setattr(steady, 'read', lambda: 0.02 * next(looks))  # a look at the clock takes so long
    settings = ArmSettings(tip_link='tool0')
    model = arm_model(load_description(ROOT / 'urdf' / 'so101_like.urdf.xacro'), settings)
    solver, goal = GoalSolver(model), Goal((0.25, 0.0, 0.15), (0.0, 0.0, -1.0))
    alone = solver.find(goal, '', 1.0, model.home, settings)
    assert alone.message.startswith('unreachable: the tool cannot point that way here: ')
    solver.accept(alone, Asked(goal, arrival=1.0))
    assert 'took over 0.05 s' in solver.find(goal, '', 1.1, model.home, settings).message
