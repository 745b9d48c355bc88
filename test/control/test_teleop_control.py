# SPDX-License-Identifier: Apache-2.0
"""A hand that steers an arm: twists, joint velocities and poses, with a clutch."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from cases import shipped_cases
from control_harness import PERIOD, SETTINGS, Rig, arm_model, positions
from small_arm import ARM_JOINTS, arm_urdf

from ik_node import Arm, Goal, IkSolver
from ik_node.control.paths import ToolPath
from ik_node.control.requests import Level
from ik_node.control.states import State
from ik_node.control.teleop import DROPPED, FAR, OPEN, JogKinematics, TeleopController, rotation_about
from ik_node.errors import InputError

pytestmark = pytest.mark.slow

SHIPPED = {case.label: case for case in shipped_cases()}
ARMS = ('seed_arm', 'so101_like', 'prismatic_arm')
NO_TURN = np.zeros(3)


def hand_on(name: str) -> tuple[JogKinematics, Arm, np.ndarray]:
    """A teleoperation of a shipped arm somewhere inside its limits, and its speed limits."""
    arm = SHIPPED[name].arm()
    solver = IkSolver(arm, position_tolerance=1e-4, direction_tolerance=1e-3)
    q = np.clip(arm.middle + 0.3 * np.where(arm.prismatic, 0.1, 1.0), arm.lower, arm.upper)
    return JogKinematics(solver, q), arm, 0.5 * arm.velocity


class Hand:
    """Poses for the arm of a rig, every other sample. measured: the joints of the arm are measured."""

    def __init__(self, rig: Rig) -> None:
        self.rig, self.teleop = rig, TeleopController(rig.controller)
        self.measured = False
        self.T = rig.model.link_in_base('tool0', rig.controller.snapshot().values)

    def move(self, way: np.ndarray, count: int, closed: bool | None = None) -> None:
        """Move the hand by way (3,) in count samples, with the clutch closed or open."""
        for k in range(count):
            self.T[:3, 3] += np.asarray(way) / count
            self.tick()
            now, settings = self.rig.time, self.rig.settings
            if closed is not None:
                self.teleop.enable(closed, now, settings)
            arm = self.teleop.ready()
            if k % 2 == 0:
                self.teleop.take(arm, self.T, now, now, settings)
            self.teleop.follow(arm, now, settings)

    def tick(self, count: int = 1) -> None:
        """Let time pass; an arm that is measured is where it is commanded."""
        for _ in range(count):
            sample = self.rig.tick()
            if self.measured and sample is not None:
                self.rig.measure_all(**{name: positions(sample)[name] for name in ARM_JOINTS})

    def press(self, *closed: bool) -> None:
        for one in closed:
            self.teleop.enable(one, self.rig.time, self.rig.settings)

    @property
    def q(self) -> np.ndarray:
        return self.rig.controller.snapshot().position

    @property
    def point(self) -> np.ndarray:
        return self.rig.model.first.arm.fk(self.rig.controller.snapshot().position)[0]


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


def test_the_turn_about_the_tool_axis_rolls_the_tool():
    hand, arm, fastest = hand_on('so101_like')
    point, axis = arm.fk(hand.q)
    lateral = arm.frames(hand.q)[-1]
    for _ in range(50):
        hand.twist(NO_TURN, 0.4 * axis, PERIOD, fastest)
    turned = rotation_about(0.2 * axis) @ lateral
    assert arm.frames(hand.q)[-1] == pytest.approx(turned, abs=1e-2)
    assert arm.fk(hand.q)[0] == pytest.approx(point, abs=1e-3)


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


def test_the_arm_stops_as_soon_as_a_hand_in_motion_has_gone(hand):
    hand.move([0.0, 0.0, 0.0], 10, closed=True)
    hand.move([-0.3, 0.4, 0.0], 2, closed=True)  # far, and at once
    hand.move([0.0, 0.0, 0.0], 60, closed=True)
    at = hand.rig.controller.snapshot().position
    hand.teleop.end()
    hand.rig.tick(300)
    assert hand.rig.state is State.HOLDING
    assert np.abs(hand.rig.controller.snapshot().position - at).max() < 0.3


def test_a_path_after_a_hand_does_not_lead_to_where_the_hand_was(hand):
    rig, home = hand.rig, hand.rig.controller.snapshot().position
    for k in range(30):
        rig.controller.steer(home + 0.02 * k, rig.time)
        rig.tick(1)
    rig.controller.fault('the controller is gone')
    rig.tick(300)
    rig.controller.resume()
    rig.tick(3)
    position, direction = rig.model.first.arm.fk(rig.controller.snapshot().position)
    end = position + np.array([0.0, 0.0, 0.02])
    report = rig.ask(ToolPath([end], [direction]))
    assert report.phase == 'moving', report.message
    rig.settle()
    assert hand.point == pytest.approx(end, abs=5e-4)


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


def test_a_hand_out_of_reach_is_followed_calmly_at_the_best_place(hand):
    arm, solver = hand.rig.model.first.arm, IkSolver(hand.rig.model.first.arm, restarts=20)
    hand.move((0.0, 0.0, 0.0), 10, closed=True)
    hand.move(0.8 * hand.point, 150, closed=True)
    joints, excess = [], []
    for k in range(30):
        turn = 2.0 * np.pi * k / 30.0
        hand.move((0.0, -0.02 * np.sin(turn), 0.02 * np.cos(turn)), 10, closed=True)
        joints.append(hand.q)
        goal = Goal(hand.T[:3, 3], hand.T[:3, 2])
        excess.append(solver.errors(goal, hand.q)[0] - solver.solve(goal, hand.q).position_error)
    assert arm.reach < np.linalg.norm(hand.T[:3, 3])
    assert np.median(excess) < 0.01
    assert max(excess) < 0.05
    steps = np.diff(joints, axis=0)
    back = steps[1:] * steps[:-1] < -1e-5
    assert back.sum(axis=0).max() <= 4  # the hand turns twice


def test_after_a_stop_the_operator_has_to_close_the_clutch_again(hand):
    controller = hand.rig.controller
    hand.move((0.0, 0.05, 0.0), 50, closed=True)
    controller.stop()
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
    assert 'publish false, then true, on ~/enable' in hand.teleop.ignored
    hand.move((0.0, 0.0, 0.0), 2, closed=False)
    hand.move((0.0, -0.03, 0.0), 100, closed=True)
    hand.rig.settle()
    assert hand.point - before == pytest.approx((0.0, -0.03, 0.0), abs=3e-3)


def test_a_step_just_ahead_of_a_setpoint_does_not_end_the_motion(hand):
    hand.move((0.0, 0.1, 0.0), 100, closed=True)
    targets, time = hand.rig.controller._goal_solver, hand.rig.time
    for early in (0.0, 5e-4, 5e-3):
        state = targets.moving(time - early)
        assert state is not None
        assert np.abs(state.velocity).max() > 0.01
    assert targets.moving(time - 0.2) is None  # the clock was set back


STILL, WAY = (0.0, 0.0, 0.0), (-0.03, 0.0, 0.02)


@pytest.fixture
def closed(picture) -> Hand:
    """A hand whose clutch is closed: the arm follows it."""
    picture.go(yaw=0.3, shoulder=0.4, elbow=0.5, roll=0.2, wrist=0.3)
    picture.settle()
    closed = Hand(picture)
    closed.move(STILL, 10, closed=True)
    assert picture.state is State.TELEOPERATED
    return closed


def place(closed: Hand, **places: float) -> None:
    """A driver begins to publish the joints of the arm, which is elsewhere."""
    closed.rig.controller.expect_measured(True)
    closed.rig.measure_all(**places)
    closed.measured = True
    assert closed.rig.state is State.HOLDING


def held(closed: Hand, count: int) -> None:
    """Hold the clutch without a pose, for count samples."""
    for _ in range(count):
        closed.tick()
        closed.press(True)


def check_dropped(closed: Hand) -> None:
    """A button that is held moves nothing; pressed again, the closed moves the tool from where it is."""
    before, point = closed.q, closed.point
    closed.move(STILL, 60, closed=True)
    assert closed.q == pytest.approx(before, abs=1e-6)
    assert closed.teleop.ignored == DROPPED
    closed.press(False)
    closed.move(WAY, 100, closed=True)
    closed.move(STILL, 200, closed=True)
    assert closed.point - point == pytest.approx(WAY, abs=3e-3)


def check_related_anew(closed: Hand) -> None:
    """The closed still moves the tool, from where that is."""
    point = closed.point
    closed.move(STILL, 60, closed=True)
    assert closed.point == pytest.approx(point, abs=1e-3)
    closed.move(WAY, 100, closed=True)
    closed.move(STILL, 200, closed=True)
    assert closed.point - point == pytest.approx(WAY, abs=3e-3)


def test_an_arm_that_is_placed_elsewhere_does_not_go_back(closed):
    place(closed, yaw=-0.6, shoulder=0.5, elbow=0.6)
    check_dropped(closed)


def test_a_press_before_the_arm_is_placed_does_not_count(closed):
    closed.rig.controller.expect_measured(True)
    closed.press(False, True)
    closed.rig.measure_all(yaw=-0.6, shoulder=0.5, elbow=0.6)
    closed.measured = True
    check_dropped(closed)


def test_another_robot_opens_the_clutch(closed):
    held(closed, 60)
    assert closed.rig.state is State.HOLDING
    assert closed.rig.controller.configure(arm_model(arm_urdf(lower=-2.4), SETTINGS), SETTINGS)
    check_dropped(closed)


def test_an_arm_that_was_guided_by_hand_stays_where_it_was_brought(model):
    rig = Rig(model, measured=True)
    rig.measure_all(shoulder=0.5, elbow=0.6)
    closed = Hand(rig)
    closed.measured = True
    closed.move(STILL, 10, closed=True)
    closed.tick(10)
    rig.controller.guide(True, rig.time)
    closed.press(True)
    for _ in range(45):
        rig.measure_all(yaw=0.1, shoulder=0.5, elbow=0.6)
        rig.tick()
    closed.press(False, True)  # during the guiding, which is too early
    rig.controller.guide(False, rig.time)
    closed.tick(30)
    assert rig.position('yaw') > 0.02
    check_dropped(closed)


def test_a_goal_that_moves_the_arm_in_a_pause_of_the_poses_is_not_undone(closed):
    closed.rig.go(yaw=0.1)
    held(closed, 80)
    assert closed.rig.position('yaw') == pytest.approx(0.1, abs=1e-3)
    check_related_anew(closed)


def test_velocities_that_move_the_arm_between_poses_are_not_undone(closed):
    rig, before = closed.rig, closed.q
    for _ in range(30):
        held(closed, 1)
        arm, velocity = closed.teleop.ready(), np.array([0.0, 0.0, 0.0, 0.0, 0.4])
        closed.teleop.jog(arm, velocity, rig.time, rig.settings)
    held(closed, 100)  # the stream counts as ended after 0.5 s
    assert np.abs(closed.q - before).max() > 0.05
    check_related_anew(closed)


def test_a_goal_of_the_gripper_leaves_the_hand_related_as_it_is(closed):
    start = closed.point
    for _ in range(10):
        closed.rig.go(finger=0.02)
        closed.move((-0.004, 0.002, 0.002), 10, closed=True)
    closed.move(STILL, 100, closed=True)
    assert closed.point - start == pytest.approx((-0.04, 0.02, 0.02), abs=1e-3)


def test_another_tool_on_the_same_arm_moves_nothing(closed):
    model, longer = closed.rig.model, replace(SETTINGS, tool_point=(0.0, 0.0, 0.1))
    other = arm_model(arm_urdf(), longer, model)
    assert other.moves_as(model)
    before = closed.q
    assert closed.rig.controller.configure(other, longer)
    held(closed, 60)
    closed.move(STILL, 60, closed=True)
    assert closed.q == pytest.approx(before, abs=1e-3)
    assert closed.rig.state is State.TELEOPERATED


@pytest.mark.parametrize('step', ['follow', 'take'])
def test_a_step_that_began_before_the_arm_was_placed_moves_nothing(closed, step):
    """The thread of a closed is held up after it has read the state of the arm."""
    rig, teleop, arm = closed.rig, closed.teleop, closed.teleop.ready()
    place(closed, yaw=-0.6, shoulder=0.5, elbow=0.6)
    closed.tick()
    before = closed.q
    if step == 'take':
        closed.press(False, True)
        teleop.take(arm, closed.T, rig.time, rig.time, rig.settings)
    assert not teleop.follow(arm, rig.time, rig.settings)
    closed.move(STILL, 60, closed=True)
    assert closed.q == pytest.approx(before, abs=1e-6)
