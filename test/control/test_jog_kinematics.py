# SPDX-License-Identifier: Apache-2.0
"""JogKinematics: steps of the tool that no joint limit, reach or singularity turns into jumps."""

from __future__ import annotations

import numpy as np
import pytest
from cases import shipped_cases
from control_harness import PERIOD

from ik_node import Arm, Goal, IkSolver
from ik_node.control.state.states import State
from ik_node.control.teleop.jog_kinematics import JogKinematics, limited_to_cone, rotation_about

SHIPPED = {case.label: case for case in shipped_cases()}
ARMS = ('seed_arm', 'so101_like', 'xarm5_like', 'moveo_like', 'prismatic_arm')
NO_TURN = np.zeros(3)


def hand_on(name: str) -> tuple[JogKinematics, Arm, np.ndarray]:
    """A teleoperation of a shipped arm somewhere inside its limits, and its speed limits."""
    arm = SHIPPED[name].arm()
    solver = IkSolver(arm, position_tolerance=1e-4, direction_tolerance=1e-3)
    q = np.clip(arm.middle + 0.3 * np.where(arm.prismatic, 0.1, 1.0), arm.lower, arm.upper)
    return JogKinematics(solver, q), arm, 0.5 * arm.velocity


@pytest.mark.parametrize('name', ARMS)
def test_a_slow_twist_moves_the_tool_along_a_line_and_back(name):
    hand, arm, fastest = hand_on(name)
    start, axis = arm.fk(hand.q)
    velocity = np.array([0.0, 0.0, -0.03])
    for sign in (1.0, -1.0):
        for k in range(100):
            hand.twist(sign * velocity, NO_TURN, PERIOD, fastest)
            point, _ = arm.fk(hand.q)
            height = velocity[2] * PERIOD * (k + 1 if sign > 0 else 99 - k)
            assert point == pytest.approx(np.add(start, [0.0, 0.0, height]), abs=3e-4)
    assert not hand.held_back
    assert arm.fk(hand.q)[1] == pytest.approx(axis, abs=2e-2)


@pytest.mark.parametrize('name', ARMS)
def test_beyond_the_reach_nothing_jumps_and_the_way_back_is_immediate(name):
    hand, arm, fastest = hand_on(name)
    for _ in range(300):
        before = hand.q
        hand.twist(np.array([1.0, 0.3, 0.0]), NO_TURN, PERIOD, fastest)
        assert (np.abs(hand.q - before) <= fastest * PERIOD + 1e-9).all()
        assert (hand.q >= arm.lower - 1e-9).all()
        assert (hand.q <= arm.upper + 1e-9).all()
    assert hand.held_back
    point, _ = arm.fk(hand.q)
    for _ in range(10):
        hand.twist(np.array([-0.1, -0.03, 0.0]), NO_TURN, PERIOD, fastest)
    moved = arm.fk(hand.q)[0] - point
    assert moved @ [-1.0, -0.3, 0.0] > 0.0005  # of 0.0109: near a stretched pose the joints limit it


@pytest.mark.parametrize('name', ['so101_like', 'xarm5_like'])
def test_the_turn_about_the_tool_axis_rolls_the_tool(name):
    hand, arm, fastest = hand_on(name)
    point, axis = arm.fk(hand.q)
    lateral = arm.frames(hand.q)[-1]
    for _ in range(50):
        hand.twist(NO_TURN, 0.4 * axis, PERIOD, fastest)
    turned = rotation_about(0.2 * axis) @ lateral
    assert arm.frames(hand.q)[-1] == pytest.approx(turned, abs=1e-2)
    assert arm.fk(hand.q)[0] == pytest.approx(point, abs=1e-3)


def test_the_direction_turns_as_the_hand_does_where_the_arm_can():
    hand, arm, fastest = hand_on('seed_arm')
    point, axis = arm.fk(hand.q)
    turn = np.cross(axis, [0.0, 0.0, 1.0])
    turn /= np.linalg.norm(turn)
    for _ in range(50):
        hand.twist(NO_TURN, 0.2 * turn, PERIOD, fastest)
    assert arm.fk(hand.q)[0] == pytest.approx(point, abs=1e-3)
    assert arm.fk(hand.q)[1] == pytest.approx(rotation_about(0.1 * turn) @ axis, abs=2e-2)


def test_joint_velocities_end_at_the_limits():
    hand, arm, _ = hand_on('seed_arm')
    for _ in range(2000):
        hand.jog(np.array([0.0, 0.5, 0.0, 0.0, 0.0]), PERIOD)
    assert hand.q[1] == arm.upper[1]
    assert hand.held_back


def test_a_hand_is_followed_and_another_configuration_taken_only_if_it_stays_better():
    hand, arm, fastest = hand_on('so101_like')
    point, axis = arm.fk(hand.q)
    for k in range(50):
        hand.reach(Goal(np.add(point, [0.0, 0.0, 0.0005 * k]), axis), PERIOD, fastest, hand.q)
    assert arm.fk(hand.q)[0] == pytest.approx(np.add(point, [0.0, 0.0, 0.0245]), abs=1e-4)
    far = Goal([-point[0], -point[1], point[2]], axis)  # behind the arm
    steps = []
    for _ in range(60):
        before = hand.q
        hand.reach(far, PERIOD, fastest, hand.q)
        steps.append(np.abs(hand.q - before).max())
    best = IkSolver(arm).solve(far).position_error
    assert np.linalg.norm(arm.fk(hand.q)[0] - far.position) == pytest.approx(best, abs=2e-3)
    assert np.count_nonzero(np.array(steps) > 0.5) <= 2


def test_of_configurations_that_are_as_close_the_arm_takes_the_one_that_it_reaches_first():
    arm = SHIPPED['seed_arm'].arm()
    assert (np.abs(arm.lower[0]), arm.upper[0]) == pytest.approx((np.pi, np.pi))
    solver, fastest = IkSolver(arm, position_tolerance=1e-4, direction_tolerance=1e-3), 0.5 * arm.velocity
    start, beyond = np.array([3.0, 1.2, 0.0, 0.0, 0.0]), np.array([-3.0, 1.2, 0.0, 0.0, 0.0])
    hand = JogKinematics(solver, start)
    point, axis = arm.fk(beyond)
    goal = Goal(2.0 * point, axis)  # the base would have to turn back almost once
    for _ in range(60):
        hand.reach(goal, PERIOD, fastest, start)
    assert hand.held_back
    assert solver.errors(goal, hand.q)[0] == pytest.approx(solver.solve(goal).position_error, abs=2e-3)
    assert (np.abs(hand.q - start) / fastest)[:4].max() < 0.5 * (np.abs(beyond - start) / fastest).max()


def test_a_wanted_direction_is_kept_on_a_leash():
    axis, wanted = np.array([0.0, 0.0, 1.0]), np.array([1.0, 0.0, 0.0])
    near = limited_to_cone(wanted, axis)
    assert np.arccos(near @ axis) == pytest.approx(0.1)
    assert near @ wanted > 0.0
    np.testing.assert_array_equal(limited_to_cone(axis, axis), axis)


# The controller


def test_a_controller_follows_a_hand_and_comes_to_rest_when_it_falls_silent(picture):
    start = picture.controller.snapshot().position
    for k in range(100):
        q = np.add(start, [0.003 * k, 0.0, 0.0, 0.0, 0.0])
        assert picture.controller.steer(q, picture.time)
        picture.tick()
    assert picture.state is State.TELEOPERATED
    assert picture.position('yaw') == pytest.approx(0.297, abs=0.01)
    picture.tick(300)
    assert picture.state is State.HOLDING
    assert picture.position('yaw') == pytest.approx(0.297, abs=1e-6)


def test_a_stopped_arm_does_not_follow_a_hand(picture):
    picture.controller.stop()
    start = picture.controller.snapshot().position
    assert not picture.controller.steer(start + 0.1, picture.time)
    picture.tick(50)
    assert picture.position('yaw') == 0.0
