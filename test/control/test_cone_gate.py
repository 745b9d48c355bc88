# SPDX-License-Identifier: Apache-2.0
"""The cone of a ball joint: no sample and no motion leaves it."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from control_harness import Rig, positions

from ik_node.control.checks.cone_gate import SLACK, ConeGate
from ik_node.control.robot.arm_model import ArmModel
from ik_node.control.settings.arm import ArmSettings
from ik_node.control.state.states import State
from ik_node.model.arm import Arm
from ik_node.model.ball import swing_angle
from ik_node.model.urdf.reader import load_description

TEXT = load_description(Path(__file__).resolve().parents[2] / 'urdf' / 'ball_joint_arm.urdf.xacro')
SWING = 1.2
# The twist joint first, so that ball_pitch and ball_roll swing the ball. Each alone may be at 1.2 rad.
ON_EDGE = 0.98 * math.acos(math.sqrt(math.cos(SWING)))  # of both at once


def settings(**changes: object) -> ArmSettings:
    return ArmSettings(tip_link='tool0', self_collision='false', **changes)


class BallRig(Rig):
    """The shipped ball-joint arm."""

    def __init__(self, **changes: object) -> None:
        super().__init__(ArmModel.build(TEXT, settings(**changes)))

    def swing(self) -> float:
        return swing_angle(self.position('ball_pitch'), self.position('ball_roll'))


@pytest.fixture
def rig() -> BallRig:
    rig = BallRig()
    rig.tick(5)
    return rig


@pytest.fixture(scope='module')
def gate() -> ConeGate:
    return gate_of(TEXT)


def gate_of(text: str) -> ConeGate | None:
    arm = Arm.from_urdf(text)
    return ConeGate.of(arm.robot, arm.joint_names)


def test_arms_without_cones_have_no_gate():
    text = TEXT.replace('swing="1.2"', '')
    assert gate_of(text) is None


def test_a_sample_outside_is_rejected(gate):
    gate.restart()
    assert gate.reject(np.array([0.0, 1.1, 0.0, 0.0, 0.0])) is None
    assert gate.reject(np.array([0.0, SWING + 0.9 * SLACK, 0.0, 0.0, 0.0])) is None
    rejection = gate.reject(np.array([0.0, 1.0, 1.0, 0.0, 0.0]))
    assert rejection == 'ball joint ball_yaw, ball_pitch, ball_roll: swing 1.27456 rad, allowed: 1.2'


def test_a_ball_that_starts_outside_may_come_back_but_not_move_farther_out(gate):
    gate.restart()
    for place in (1.0, 1.0, 0.97):
        assert gate.reject(np.array([0.0, 1.0, place, 0.0, 0.0])) is None
    assert gate.reject(np.array([0.0, 1.0, 1.0, 0.0, 0.0])) is not None


def test_of_a_trajectory_the_first_sample_outside_is_named(gate):
    gate.restart()
    rows = np.zeros((20, 5))
    rows[:, 1] = rows[:, 2] = np.linspace(0.0, 1.1, 20)
    k, reason = gate.reject_ahead(rows)
    assert swing_angle(*rows[k, 1:3]) > SWING >= swing_angle(*rows[k - 1, 1:3])
    assert 'allowed: 1.2' in reason


def test_twist_limits_of_proper_angles_are_kept():
    text = TEXT.replace('axis xyz="1 0 0"', 'axis xyz="0 0 1"').replace(
        'swing="1.2" twist_joint="ball_yaw"', 'twist_lower="-1" twist_upper="1"'
    )
    gate = gate_of(text)
    assert gate.reject(np.array([0.9, 0.5, 0.0, 0.0, 0.0])) is None
    assert gate.reject(np.array([1.4, 0.5, -0.5, 0.0, 0.0])) is None
    assert 'twist 1.3 rad, allowed: -1 to 1' in gate.reject(np.array([0.9, 0.5, 0.4, 0.0, 0.0]))


def test_a_joint_goal_outside_the_cone_is_rejected(rig):
    report = rig.go(ball_pitch=1.0, ball_roll=1.0)
    assert report.status == 'rejected'
    assert 'swing 1.27456 rad, allowed: 1.2' in report.message
    rig.tick(20)
    assert rig.state is State.HOLDING


@pytest.mark.parametrize('back', [1.0, -1.0])
def test_motions_between_places_inside_stay_inside(rig, back):
    """Along the edge, with an elbow that needs longer; every third goal is replaced on the way."""
    rng = np.random.default_rng(5)
    (ball,) = rig.model.arm.balls
    for k in range(12):
        angle = back * rng.uniform(0.0, 2.0 * math.pi)
        swing = 1.19 * math.cos(angle), 1.19 * math.sin(angle)
        edge = ball.joint_positions(*swing, 0.0, (0.0, 0.0, 0.0))
        goal = dict(zip(ball.joints, edge, strict=True)) | {'elbow': rng.uniform(-2.0, 2.0)}
        report = rig.go(**goal)
        assert report.status != 'rejected', report
        for tick in range(3000):
            rig.tick()
            assert rig.swing() <= SWING + SLACK
            if rig.state is not State.MOVING or (k % 3 == 2 and tick == 60):
                break
    rig.settle()
    assert rig.state is State.HOLDING


def test_stopping_on_the_way_stays_inside(rig):
    for k in range(8):
        pitch, roll = math.copysign(ON_EDGE, math.cos(0.8 * k)), ON_EDGE * math.sin(0.8 * k)
        rig.go(ball_pitch=pitch, ball_roll=roll)
        rig.tick(20 + 7 * k)
        rig.controller.stop()
        for _ in range(300):
            rig.tick()
            assert rig.swing() <= SWING + SLACK
        assert rig.state is State.STOPPED
        rig.controller.resume()
        rig.tick(3)


def test_a_goal_replaced_on_the_way_is_not_reached_through_the_outside(rig):
    """The pitch is fast when the roll is asked for: braking it as fast as it can would lead outside."""
    rig.controller.set_limits(settings(max_acceleration=1.5, max_jerk=15.0, speed_scaling=0.7))
    most = 0.0
    for ticks in (110, 120, 130):
        rig.go(ball_pitch=-1.0, ball_roll=0.3)
        rig.settle()
        rig.go(ball_pitch=1.15, ball_roll=0.3)
        rig.tick(ticks)
        rig.go(ball_pitch=0.1, ball_roll=1.15)
        while rig.state is State.MOVING:
            rig.tick()
            most = max(most, rig.swing())
        assert rig.state is State.HOLDING, rig.reports[-1]
        assert rig.position('ball_roll') == pytest.approx(1.15)
    assert 0.95 * SWING < most <= SWING + SLACK


def test_home_is_put_inside_the_cone():
    model = ArmModel.build(TEXT, settings(home=(0.0, 1.1, 1.1, 0.0, 0.0)))
    assert model.arm.ball_excess(model.home) == 0.0


def test_the_gate_stops_an_arm_that_is_led_outside(rig):
    """Whatever makes the samples: here the motion itself is broken."""
    motion = rig.controller._joints.arm.motion
    motion.keeps = None
    rig.controller._joints.motion_check._cones = None
    assert rig.go(ball_pitch=1.1, ball_roll=1.1).status != 'rejected'
    for _ in range(400):
        sample = rig.tick()
        if sample is not None and 'ball_pitch' in sample.names:
            there = positions(sample)
            assert swing_angle(there['ball_pitch'], there['ball_roll']) <= SWING + SLACK
    assert rig.state is State.FAULTED
    assert 'swing' in rig.reports[-1].message


def test_margins_of_joints_count_for_the_cone():
    model = ArmModel.build(TEXT, settings(joint_limit_margins=(0.1,)))
    assert model.arm.balls[0].swing == pytest.approx(SWING - 0.1)
    assert model.arm.upper[1] == pytest.approx(SWING - 0.1)
    assert model.arm.ball_excess(np.array([0.0, 0.9, 0.7, 0.0, 0.0])) == 0.0
    assert model.arm.ball_excess(np.array([0.0, 0.9, 0.9, 0.0, 0.0])) > 0.05
