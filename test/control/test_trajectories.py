# SPDX-License-Identifier: Apache-2.0
"""Trajectories for controllers: what is sent, when, and what happens where something is late or fails."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from control_harness import PERIOD, SETTINGS, Driven, Rig, arm_model
from small_arm import ARM_JOINTS, FOLDING, arm_urdf, folding_urdf

from ik_node.control import arm_motion, streaming
from ik_node.control.checks import Violation
from ik_node.control.models import ArmModel
from ik_node.control.motion import MotionAhead, halt, motion_ahead, point_times
from ik_node.control.outputs import MAX_DELAY
from ik_node.control.paths import ToolPath
from ik_node.control.states import State
from ik_node.control.streaming import DELAY, WINDOW
from ik_node.control.trajectory import JointTrajectory
from ik_node.errors import InputError

SHARED = (*ARM_JOINTS[::-1], 'finger')


def path_of(trajectory: JointTrajectory, spacing: float = 1e-3) -> np.ndarray:
    """Positions, velocities and accelerations (N, 3, n) of a controller that expects this trajectory."""
    times = np.append(np.arange(0.0, trajectory.duration, spacing), trajectory.duration)
    return np.moveaxis(trajectory.motion.sampled(times)[:3], 0, 1)


def valid(trajectory: JointTrajectory) -> bool:
    """Whether a joint_trajectory_controller takes it."""
    increasing = trajectory.times[0] >= 0.0 and (np.diff(trajectory.times) > 0.0).all()
    return bool(increasing and not trajectory.velocities[-1].any() and np.isfinite(trajectory.positions).all())


@pytest.mark.slow
def test_a_move_is_one_trajectory_within_the_limits_between_its_points_too(rig: Driven) -> None:
    rig.go(yaw=1.5, elbow=-0.3)
    start = rig.output.samples[-1].positions
    rig.tick(300)
    assert rig.state is State.HOLDING
    ((time, trajectory),) = rig.output.sent
    assert valid(trajectory)
    assert trajectory.names == ARM_JOINTS
    assert trajectory.positions[-1] == pytest.approx([1.5, 0.0, -0.3, 0.0, 0.0])
    assert len(trajectory.times) < 40
    path = path_of(trajectory)
    assert path[0] == pytest.approx(np.array([start, np.zeros(5), np.zeros(5)]))
    assert np.abs(path[:, 1]).max() <= 0.5 * 2.0 + 1e-6
    assert np.abs(path[:, 2]).max() <= 5.0 * 1.01
    for sample in rig.output.samples:  # the controller runs DELAY behind the samples
        after = sample.time - time + DELAY
        if 0.0 < after < trajectory.times[-1]:
            place = trajectory.motion.sampled(np.array([after]))[0, 0]
            assert place == pytest.approx(sample.positions, abs=1e-6)


@pytest.mark.slow
def test_a_straight_line_is_straight_between_the_points_of_its_trajectory_too(rig: Driven) -> None:
    rig.go(yaw=0.3, shoulder=0.6, elbow=0.9, wrist=0.7)
    rig.tick(400)
    arm = rig.model.first.arm
    begin, direction = arm.fk(rig.output.samples[-1].positions)
    end = np.add(begin, [0.0, 0.06, 0.03])
    count = len(rig.output.sent)
    report = rig.ask(ToolPath([end], [direction]))
    assert report.phase == 'moving', report.message
    rig.tick(400)
    assert rig.state is State.HOLDING
    ((_, trajectory),) = rig.output.sent[count:]
    assert valid(trajectory)
    path = path_of(trajectory, 0.003)
    assert np.abs(path[:, 2]).max() <= 5.0 * 1.02
    points = np.array([arm.fk(q)[0] for q in path[:, 0]])
    share = np.clip((points - begin) @ (end - begin) / ((end - begin) @ (end - begin)), 0.0, 1.0)
    assert np.linalg.norm(points - begin - share[:, None] * (end - begin), axis=1).max() <= 2e-4
    assert points[-1] == pytest.approx(end, abs=1e-5)


@pytest.mark.slow
def test_moving_goals_replace_the_trajectory_at_a_bounded_rate(rig: Driven) -> None:
    for k in range(60):
        rig.go(yaw=0.21 + 0.01 * k)
        rig.tick()
    rig.settle()
    times = [time for time, _ in rig.output.sent]
    assert 8 <= len(times) <= 60 * PERIOD / WINDOW + 2
    assert all(b - a >= WINDOW - 1e-9 for a, b in itertools.pairwise(times))
    assert all(valid(trajectory) for _, trajectory in rig.output.sent)
    assert rig.output.sent[-1][1].positions[-1] == pytest.approx([0.8, 0.0, 0.0, 0.0, 0.0])


def test_a_following_error_halts_the_controller_where_the_arm_is(rig: Driven) -> None:
    rig.go(yaw=1.5)
    while rig.state is not State.FAULTED:
        Rig.tick(rig, 1)
        rig.measure_all(yaw=min(rig.position('yaw'), 0.3))  # it is stuck
    rig.tick(1)
    _, trajectory = rig.output.sent[-1]
    assert trajectory.positions[-1] == pytest.approx([0.3, 0.0, 0.0, 0.0, 0.0])
    assert not trajectory.velocities[-1].any()
    speed, acceleration = np.abs(trajectory.motion.sampled(np.linspace(0.0, trajectory.duration, 99))[1:3, :, 0])
    assert speed.max() <= 1.0 + 1e-9
    assert acceleration.max() <= 5.0
    count = len(rig.output.sent), len(rig.output.samples)
    rig.tick(50)
    assert count == (len(rig.output.sent), len(rig.output.samples))


@pytest.mark.slow
@pytest.mark.parametrize(
    ('ticks', 'off', 'count'),
    [(8, 0.4, 1), (16, 2.0, 2), (20, 50.0, 3), (220, 50.0, 1)],
)
def test_bad_measurements_halt_the_controller_within_all_limits(rig: Driven, ticks: int, off: float, count: int):
    rig.go(yaw=2.45, elbow=-1.0, wrist=-2.4)
    rig.tick(ticks)
    places = {name: rig.position(name) for name in ARM_JOINTS}
    for _ in range(count):
        rig.measure_all(**places | {'yaw': rig.position('yaw') + off})
    rig.tick(1)
    _, halt = rig.output.sent[-1]
    assert halt.braking
    position, speed, acceleration = halt.motion.sampled(np.linspace(0.0, halt.duration, 499))[:3]
    assert np.abs(speed).max() <= 1.0 + 1e-6
    assert np.abs(acceleration).max() <= 5.0
    assert np.abs(position).max() <= 2.5 + 1e-9
    assert abs(off) < 1.0 or np.ptp(position, axis=0).max() < 0.25  # such a leap is no place to go to


@pytest.mark.slow
def test_an_arm_goes_on_only_once_its_controller_has_come_to_rest(rig: Driven) -> None:
    rig.go(yaw=1.5)
    rig.tick(100)
    rig.measure_all(yaw=rig.position('yaw') - 0.6)
    rig.tick(1)
    (time, halt) = rig.output.sent[-1]
    assert halt.duration > 0.2
    while rig.time < time + halt.duration:
        rig.measure_all(yaw=float(halt.states([rig.time])[0, 0, 0]))
        assert rig.tick(1) is None
        with pytest.raises(InputError, match='still coming to rest'):
            rig.controller.resume()
    rig.rest_at(yaw=float(halt.positions[-1, 0]))
    rig.controller.resume()
    assert rig.controller.resuming
    rig.rest_at(yaw=float(halt.positions[-1, 0]))
    assert rig.state is State.HOLDING
    assert rig.position('yaw') == pytest.approx(halt.positions[-1, 0])


def test_a_gripper_of_the_same_controller_is_held_where_it_was_measured_until_a_goal_moves_it(
    model: ArmModel,
) -> None:
    rig = Driven(model, controller_joints=SHARED)
    rig.measure_all()
    rig.tick(3)
    assert not rig.output.samples
    assert rig.controller.condition()[1] == 'waiting for measured joints: finger'
    rig.measure(finger=0.01)
    rig.tick(1)
    rig.measure(finger=0.012)  # it sags: its command must not follow
    rig.tick(1)
    assert rig.output.samples[-1].listed() == [0.0, 0.0, 0.0, 0.0, 0.0, 0.01]
    rig.go(yaw=0.5)
    rig.tick(1)
    assert rig.output.sent[-1][1].names == SHARED
    assert (rig.output.sent[-1][1].positions[:, 5] == 0.01).all()
    rig.go(finger=0.03)
    rig.tick(20)
    assert rig.output.sent[-1][1].positions[-1, 5] == pytest.approx(0.03)
    assert rig.output.sent[-1][1].positions[-1, 4] == pytest.approx(0.5)
    assert rig.output.samples[-1].listed()[5] > 0.01


def test_the_joints_of_the_controller_are_checked() -> None:
    with pytest.raises(InputError, match='different names'):
        replace(SETTINGS, controller_joints=('yaw', 'yaw'))
    with pytest.raises(InputError, match='must have every joint of the arm, missing: "shoulder", "elbow"'):
        arm_model(arm_urdf(), replace(SETTINGS, controller_joints=('yaw', 'roll', 'wrist')))


@pytest.mark.parametrize('late', [0.0, DELAY / 2.0 + 1e-6, DELAY / 2.0 + 1e-5])
def test_a_controller_that_has_hardly_moved_is_halted_where_it_stands(rig: Driven, late: float):
    rig.go(yaw=rig.position('yaw') + 0.5)
    rig.tick(1)
    rig.output.delay = late
    rig.controller.halt()
    _, (_, stand) = rig.output.sent
    assert (np.diff(stand.times) > 5e-5).all()
    assert stand.positions[-1] == pytest.approx(stand.positions[0], abs=1e-3)
    assert not stand.velocities[-1].any()


def test_a_controller_at_rest_begins_when_it_gets_its_trajectory(rig: Driven) -> None:
    rig.go(yaw=1.5)
    rig.output.delay = 0.3
    rig.tick()
    rig.output.delay = 0.0
    assert len(rig.output.sent) == 1
    rig.tick(1, dt=0.3)  # while it is sent, nothing moves
    assert rig.position('yaw') < 0.201
    rig.tick(1, dt=0.3)  # but then the controller goes on without samples
    assert rig.position('yaw') > 0.25
    assert rig.state is State.MOVING


@pytest.mark.parametrize(
    ('knots', 'times'),
    [
        ((0.1, 0.10005, 3.0, 3.00004, 3.1), (0.0, 0.10005, 3.0, 3.1)),
        ((1e-11,), (1e-11,)),
        ((0.00003, 2.0), (0.0, 2.0)),
    ],
)
def test_points_that_are_too_near_leave_long_pieces_as_they_are(
    knots: tuple[float, ...], times: tuple[float, ...]
) -> None:
    assert point_times(knots, knots[-1]) == pytest.approx(times)


def test_a_controller_that_did_not_get_its_halt_is_held_by_the_fault(rig: Driven) -> None:
    rig.go(yaw=2.0)
    rig.tick(60)
    rig.output.lost = 1
    rig.controller.stop()
    before = rig.output.sent[-1][1]
    while rig.state is not State.FAULTED:
        Rig.tick(rig)
        yaw = float(before.states(np.array([rig.time]))[0, 0, 0])  # the controller goes on with it
        rig.measure_all(yaw=yaw)
    Rig.tick(rig)
    assert yaw < 1.5
    (hold,) = [trajectory for _, trajectory in rig.output.sent if trajectory.begins > before.begins]
    assert hold.positions[-1, 0] == pytest.approx(yaw, abs=1e-6)
    assert hold.duration >= 4.0 * 0.5 * 2.0 / 5.0  # so that its acceleration is at most 1.5 times the limit


def test_a_command_that_could_not_be_sent_faults_the_arm_and_is_not_counted_as_sent(rig: Driven) -> None:
    rig.go(yaw=2.0)
    rig.tick(60)
    at = rig.position('yaw')
    rig.output.error = ValueError('no room')
    rig.controller.stop()
    with pytest.raises(ValueError, match='no room'):
        Rig.tick(rig)
    assert rig.state is State.FAULTED
    assert 'no room' in rig.reports[-1].message
    rig.measure_all(yaw=at)
    Rig.tick(rig)
    hold = rig.output.sent[-1][1]
    assert hold.braking
    assert at < hold.positions[-1, 0] < at + 0.4 or hold.positions[-1, 0] == pytest.approx(at, abs=0.1)


def test_an_arm_rests_only_once_its_halted_controller_does(rig: Driven) -> None:
    rig.go(yaw=2.0)
    rig.tick(60)
    for behind in (0.25, 0.5):
        rig.measure_all(yaw=rig.position('yaw') - behind)
    assert rig.state is State.FAULTED
    Rig.tick(rig)
    rig.controller.deactivate()
    hold = rig.output.sent[-1][1]
    assert not rig.controller.resting
    while rig.time < hold.ends + 0.03:
        assert not rig.controller.resting or rig.time >= hold.ends
        Rig.tick(rig)
    assert rig.controller.resting


Broken = Callable[[float, np.ndarray, np.ndarray, np.ndarray], tuple[np.ndarray, ...]]
YAW = np.array([1.0, 0.0, 0.0, 0.0, 0.0])


def break_plans(monkeypatch: pytest.MonkeyPatch, broken: Broken, braking: bool = False) -> None:
    """Spoil all plans from now on, those that brake only on request."""

    def spoilt(groups: object) -> MotionAhead:
        ahead = motion_ahead(groups)
        if ahead.braking and not braking:
            return ahead
        pairs = zip(ahead.times.tolist(), ahead.states, strict=True)
        return ahead._replace(states=np.array([broken(time, *row) for time, row in pairs]))

    monkeypatch.setattr(arm_motion, 'motion_ahead', spoilt)


def too_far(t: float, p: np.ndarray, v: np.ndarray, a: np.ndarray) -> tuple[np.ndarray, ...]:
    return p + 3.0 * YAW * (t > 1.2), v, a


def too_hard(_: float, p: np.ndarray, v: np.ndarray, a: np.ndarray) -> tuple[np.ndarray, ...]:
    return p, v, 1.3 * a


def unknown(_: float, p: np.ndarray, v: np.ndarray, a: np.ndarray) -> tuple[np.ndarray, ...]:
    return p, v * np.nan, a


@pytest.mark.parametrize(
    ('broken', 'words'),
    [
        (too_far, 's after its start, joint "yaw": '),
        (too_hard, 's after its start, joint "yaw": '),
        (unknown, 'its points are not finite'),
    ],
)
def test_a_plan_that_breaks_a_limit_is_not_sent_and_stops_the_arm(
    rig: Driven, monkeypatch: pytest.MonkeyPatch, broken: Broken, words: str
) -> None:
    rig.go(yaw=0.8)
    rig.tick(20)
    break_plans(monkeypatch, broken)
    rig.go(yaw=1.9)
    rig.tick(1)
    assert rig.state is State.FAULTED
    message = rig.reports[-1].message
    assert message.startswith('trajectory dropped: ')
    assert words in message
    rig.tick(100)
    (_, brake) = rig.output.sent[1]
    assert brake.braking
    assert brake.positions[-1, 0] == pytest.approx(rig.position('yaw'))
    assert rig.position('yaw') < 0.6


def test_where_the_trajectory_that_brakes_breaks_a_limit_too_the_joints_are_halted_where_they_are(
    rig: Driven, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig.go(yaw=0.8)
    rig.tick(20)
    break_plans(monkeypatch, unknown, braking=True)
    rig.go(yaw=1.9)
    rig.tick(1)
    at = rig.position('yaw')
    rig.tick(1)
    assert rig.state is State.FAULTED
    _, (_, halt) = rig.output.sent
    assert np.isfinite(halt.positions).all()
    assert halt.positions[-1, 0] == pytest.approx(at, abs=0.05)
    count = len(rig.output.samples)
    rig.tick(20)
    assert len(rig.output.samples) == count


def test_a_plan_on_which_the_tool_is_too_fast_is_not_sent(model: ArmModel) -> None:
    rig = Driven(model, replace(SETTINGS, max_tool_speed=0.2))
    rig.measure_all()
    rig.tick(2)
    rig.controller._motion.group.motion._pace = None
    rig.go(yaw=1.5)
    rig.tick(1)
    assert rig.state is State.FAULTED
    assert ' s after its start, tool speed 0.2' in rig.reports[-1].message
    assert not rig.output.sent


def test_a_plan_on_which_the_arm_would_collide_is_not_sent() -> None:
    pytest.importorskip('coal')
    model = arm_model(folding_urdf(), FOLDING)
    rig = Driven(model, FOLDING)
    rig.measure(**{**dict.fromkeys(model.first.arm.joint_names, 0.0), 'yaw': 0.8})
    rig.tick(3)
    assert rig.state is State.HOLDING
    rig.controller._motion.choose = lambda plan, *_: plan  # or the goal is rejected before it starts
    rig.go(yaw=-0.8)
    rig.tick(1)
    assert rig.state is State.FAULTED
    assert 'trajectory dropped: ' in rig.reports[-1].message
    assert 'link "base" and link ' in rig.reports[-1].message
    assert not rig.output.sent


@pytest.mark.slow
def test_an_arm_beyond_a_limit_that_overlaps_there_comes_back() -> None:
    """The way back to the limit ends where parts still overlap, but less."""
    pytest.importorskip('coal')
    model = arm_model(folding_urdf(), FOLDING)
    rig = Driven(model, FOLDING)
    rig.measure(**{**dict.fromkeys(model.first.arm.joint_names, 0.0), 'yaw': 1.5, 'elbow': 3.14})
    rig.tick(3)
    report = rig.go(elbow=1.0)
    assert report.phase == 'moving', report.message
    rig.settle()
    assert rig.state is State.HOLDING, rig.reports[-1].message
    assert rig.position('elbow') == pytest.approx(1.0)


def fall_behind(rig: Driven) -> None:
    """Nothing is measured, and each trajectory would come later than the one before."""
    for _ in range(round(MAX_DELAY / PERIOD) + 2):
        rig.output.delay += 0.03
        Rig.tick(rig)


def goes_on_to_rest(rig: Driven, first: JointTrajectory, brake: JointTrajectory) -> np.ndarray:
    """Check that brake goes on from where first has the controller, and ends the motion; return its start."""
    begin = brake.states([brake.begins])[0]
    assert first.states([brake.begins])[0][:2] == pytest.approx(begin[:2], abs=2e-3)
    rig.tick(100)
    assert rig.state is State.STOPPED
    assert brake.positions[-1, 0] == pytest.approx(rig.position('yaw'))
    return begin


@pytest.mark.slow
def test_a_stall_at_the_end_of_a_trajectory_does_not_hide_where_the_controller_is(model: ArmModel) -> None:
    rig = Driven(model)
    rig.measure_all(yaw=2.7)  # beyond the limit: it returns first, and that is a trajectory of its own
    rig.tick(2)
    rig.go(yaw=2.0)
    rig.tick(200)
    assert len(rig.output.sent) == 1
    rig.tick(1, dt=0.2)
    rig.settle()
    assert rig.state is State.HOLDING, rig.reports[-1].message
    assert rig.output.sent[1][1].positions[0, 0] == pytest.approx(2.5, abs=1e-3)


def test_a_joint_outside_its_limits_is_halted_there(model: ArmModel) -> None:
    """It returns slowly: a halt must not send it to its limit at full speed."""
    rig = Driven(model)
    rig.measure_all(yaw=2.7)
    rig.tick(2)
    rig.go(yaw=2.0)
    rig.tick(60)
    at = rig.position('yaw')
    assert 2.55 < at < 2.69
    rig.controller.deactivate()
    rig.tick(60)
    assert rig.state is State.INACTIVE
    *_, (_, stand) = rig.output.sent
    assert stand.positions[-1, 0] == pytest.approx(at, abs=0.02)


def test_a_trajectory_that_would_come_too_late_is_left_to_the_next_sample(rig: Driven) -> None:
    """The controller would be elsewhere by then, and would have to jump."""
    rig.go(yaw=1.5)
    rig.tick(30)
    rig.go(yaw=0.0)
    for delay, count in ((DELAY, 1), (0.0, 2)):
        rig.output.delay = delay
        rig.tick()
        assert (len(rig.output.sent), rig.state) == (count, State.MOVING)


def test_one_late_trajectory_is_sent_anew_from_where_the_controller_is(rig: Driven) -> None:
    rig.go(yaw=1.5)
    rig.tick(60)
    rig.controller.stop()
    rig.output.delay = 0.3
    rig.tick()
    assert len(rig.output.sent) == 1
    rig.output.delay = 0.0
    rig.tick()
    (_, first), (_, brake) = rig.output.sent
    assert brake.braking
    goes_on_to_rest(rig, first, brake)


@pytest.mark.slow
def test_a_stop_of_a_computer_that_is_always_late_is_delayed_but_not_lost(rig: Driven) -> None:
    rig.go(yaw=1.5)
    rig.tick(60)
    rig.output.delay = 0.2
    rig.controller.stop()
    rig.tick(3)
    (_, first), (time, brake) = rig.output.sent
    assert brake.braking
    assert brake.begins >= time - 1e-9
    later = brake.begins + brake.times[brake.times >= rig.output.delay][0]
    assert first.states([later])[0][:2] == pytest.approx(brake.states([later])[0][:2], abs=2e-3)
    rig.tick(200)
    assert rig.state is State.STOPPED


@pytest.mark.slow
@pytest.mark.parametrize('failures', [0, 1, 2])
def test_a_controller_is_halted_even_if_ruckig_finds_no_plan(rig: Driven, failures: int, monkeypatch) -> None:
    """Without a trajectory it would carry out the last one to its end, whatever the fault is."""
    attempts = []

    def failing(*given):
        attempts.append(given)
        return None if len(attempts) <= failures else halt(*given)

    rig.go(yaw=2.4)
    rig.tick(30)
    rig.go(yaw=0.0)
    monkeypatch.setattr(streaming, 'halt', failing)
    fall_behind(rig)
    assert rig.state is State.FAULTED
    (_, first), (_, stand) = rig.output.sent
    at = first.states([stand.begins])[0][0, 0]
    assert at < 2.35
    assert stand.braking
    if failures == 2:
        assert stand.positions[-1, 0] == pytest.approx(at)
    assert len(attempts) == min(failures + 1, 2)
    assert 'overloaded' in rig.reports[-1].message


@pytest.mark.parametrize('stall', [0.05, 0.4])
def test_after_a_stall_the_next_trajectory_goes_on_with_the_one_that_was_sent_last(rig: Driven, stall: float):
    """Shortly before the stall the goal moved: that plan was still to be sent."""
    rig.go(yaw=1.5)
    rig.tick(60)
    rig.go(yaw=1.6)
    rig.tick(1)
    rig.go(yaw=-1.5)
    rig.tick(1)
    assert len(rig.output.sent) == 2
    rig.tick(1, dt=stall)
    rig.tick(3)
    (_, before), (_, after) = rig.output.sent[1:3]
    assert after.states([after.begins + 0.04])[0, :2] == pytest.approx(
        before.states([after.begins + 0.04])[0, :2], abs=2e-3
    )


@pytest.mark.slow
def test_an_arm_that_hangs_below_its_trajectory_is_not_held_lower_when_it_is_deactivated(rig: Driven) -> None:
    rig.go(yaw=0.3)
    rig.tick(200)
    rig.measure_all(yaw=0.22)
    count = len(rig.output.sent)
    rig.controller.deactivate()
    Rig.tick(rig, 3)
    assert rig.controller.resting
    assert len(rig.output.sent) == count


def test_a_controller_at_rest_elsewhere_is_only_held_there(rig: Driven) -> None:
    """As when the clock has jumped: the time of the last trajectory is over, the arm is still on its way."""
    rig.go(yaw=1.5)
    rig.tick(40)
    at = rig.position('yaw')
    Rig.tick(rig, 1, dt=0.9)  # not measured: it stands still
    Rig.tick(rig, 1, dt=0.9)
    rig.measure_all(yaw=at)
    count = len(rig.output.sent)
    rig.go(yaw=-0.5)
    for _ in range(3):
        Rig.tick(rig)
    assert rig.state is State.FAULTED
    (hold,) = [trajectory for _, trajectory in rig.output.sent[count:]]
    assert hold.positions[:, 0] == pytest.approx(at)
    assert not hold.velocities.any()
    assert hold.braking


@pytest.mark.slow
def test_old_measurements_do_not_turn_a_controller_back(rig: Driven) -> None:
    rig.go(yaw=1.5)
    rig.tick(60)
    for _ in range(25):
        Rig.tick(rig)  # nothing is measured
    rig.go(yaw=0.0)
    at = rig.position('yaw')
    fall_behind(rig)
    assert rig.state is State.FAULTED
    assert rig.output.sent[-1][1].positions[-1, 0] > at


def test_a_node_that_was_suspended_goes_on_where_the_controller_is(rig: Driven) -> None:
    rig.go(yaw=1.5)
    rig.tick(40)
    at = rig.position('yaw')
    rig.tick(1, dt=0.3)
    assert rig.position('yaw') - at > 0.25  # at 1 rad/s
    assert rig.state is State.MOVING
    rig.tick(1, dt=0.9)
    assert rig.position('yaw') == pytest.approx(1.5, abs=1e-3)
    assert len(rig.output.sent) == 1
    rig.go(yaw=0.0)
    rig.tick(40)
    rig.tick(1, dt=30.0)  # so long that the measurements are stale: the controller has arrived
    assert rig.state is State.FAULTED
    assert rig.output.sent[-1][1].positions[-1, 0] == pytest.approx(0.0)


@pytest.mark.slow
def test_a_clock_that_is_set_back_does_not_change_where_the_controller_is(rig: Driven) -> None:
    rig.go(yaw=1.5)
    rig.tick(60)
    at = rig.position('yaw')
    rig.tick(1, dt=-50.0)
    rig.go(yaw=0.3)
    rig.tick(1)
    assert rig.state is State.MOVING, rig.reports[-1].message
    _, (_, trajectory) = rig.output.sent
    assert trajectory.positions[0, 0] == pytest.approx(at, abs=0.05)
    rig.settle()
    assert rig.state is State.HOLDING


def test_a_motion_that_ended_during_a_stall_goes_on_from_where_the_controller_is(rig: Driven) -> None:
    """The controller was not sent the stop, and has moved on while the node was suspended."""
    rig.go(yaw=2.0)
    rig.tick(60)
    rig.controller.stop()
    rig.output.delay = 0.3
    rig.tick()
    rig.output.delay = 0.0
    (_, first), at = rig.output.sent[0], rig.position('yaw')
    Rig.tick(rig, 1, dt=0.9)
    _, (_, brake) = rig.output.sent
    assert goes_on_to_rest(rig, first, brake)[0, brake.names.index('yaw')] > at + 0.5


@pytest.mark.slow
def test_a_controller_that_moves_on_for_too_long_is_halted(rig: Driven) -> None:
    rig.go(yaw=2.4)
    rig.tick(30)
    rig.go(yaw=0.0)
    fall_behind(rig)
    assert rig.state is State.FAULTED
    assert 'the computer is overloaded' in rig.reports[-1].message
    _, (_, halt) = rig.output.sent
    assert halt.braking


def test_joints_faster_than_a_new_limit_slow_down_after_a_stall_too(rig: Driven) -> None:
    """The controller is as fast as it was: where the motion goes on, its velocity must be that."""
    rig.go(yaw=1.5)
    rig.tick(60)
    rig.go(yaw=1.6)
    rig.tick(1)
    rig.controller.set_limits(replace(rig.controller._settings, speed_scaling=0.05))
    rig.tick(1)
    rig.tick(1, dt=0.2)
    rig.tick(3)
    (_, before), (_, after) = rig.output.sent[-2:]
    yaw = after.names.index('yaw')
    times = after.begins + np.arange(0.0, 0.2, 0.001)
    velocity = after.states(times)[:, 1, yaw]
    assert velocity[0] == pytest.approx(before.states(times[:1])[0, 1, yaw], abs=1e-6)
    assert velocity[0] > 0.3
    hardest = rig.controller._motion.group.motion.limits[1][0]
    assert np.abs(np.diff(velocity) / 0.001).max() < 1.1 * hardest


def test_a_stop_is_sent_at_once(rig: Driven) -> None:
    rig.go(yaw=1.5)
    rig.tick(40)
    rig.go(yaw=1.6)
    rig.tick(1)
    rig.controller.stop()
    rig.tick(1)
    (_, (before, _), (time, trajectory)) = rig.output.sent
    assert time - before == pytest.approx(PERIOD)
    assert valid(trajectory)
    rig.tick(100)
    assert rig.state is State.STOPPED
    assert trajectory.positions[-1, 0] == pytest.approx(rig.position('yaw'))
    assert trajectory.positions[-1, 0] < 1.0


def test_an_output_that_fails_stops_the_arm_and_says_why(rig: Driven) -> None:
    rig.go(yaw=1.5)
    rig.tick(40)
    rig.controller.fault('the controller has gone')
    rig.tick(100)
    assert rig.reports[-1].message == 'the controller has gone; run ik_resume or call ~/resume, then give a goal'
    assert rig.state is State.FAULTED
    assert rig.position('yaw') < 1.0


def test_a_gripper_that_no_description_has_is_held_too(model: ArmModel) -> None:
    rig = Driven(model, controller_joints=(*ARM_JOINTS, 'jaw'))
    rig.measure_all(yaw=0.1)
    rig.tick(1)
    assert not rig.output.samples
    rig.measure(jaw=0.7)
    rig.tick(1)
    rig.measure(jaw=0.8)
    rig.tick(1)
    assert rig.output.samples[-1].listed() == [0.1, 0.0, 0.0, 0.0, 0.0, 0.7]


def test_a_bad_sample_halts_the_controller(rig: Driven, monkeypatch: pytest.MonkeyPatch) -> None:
    rig.go(yaw=1.5)
    rig.tick(40)
    rig.measure_all(yaw=0.35)
    bad = Violation(0, 'made up')
    monkeypatch.setattr(rig.controller._motion.check, 'violation', lambda *_: bad)
    rig.tick(1)
    assert rig.state is State.FAULTED
    assert rig.output.sent[-1][1].positions[-1, 0] == pytest.approx(0.35)
