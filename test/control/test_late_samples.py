# SPDX-License-Identifier: Apache-2.0
"""Controllers after stalls, and samples and measurements that come late."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from control_harness import PERIOD, Rig
from driven_rig import Driven

from ik_node.control.motion.halt import halt
from ik_node.control.outputs import trajectory_streamer
from ik_node.control.outputs.joint_trajectory import JointTrajectory
from ik_node.control.outputs.outputs import MAX_DELAY
from ik_node.control.outputs.trajectory_streamer import DELAY
from ik_node.control.robot.arm_model import ArmModel
from ik_node.control.state.states import State


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


def test_a_controller_that_moves_on_for_too_long_is_halted(rig: Driven) -> None:
    rig.go(yaw=2.4)
    rig.tick(30)
    rig.go(yaw=0.0)
    fall_behind(rig)
    assert rig.state is State.FAULTED
    assert 'the computer is overloaded' in rig.reports[-1].message
    _, (_, halt) = rig.output.sent
    assert halt.braking


@pytest.mark.parametrize('failures', [1, 2])
def test_a_controller_is_halted_even_if_ruckig_finds_no_plan(rig: Driven, failures: int, monkeypatch) -> None:
    """Without a trajectory it would carry out the last one to its end, whatever the fault is."""
    attempts = []

    def failing(*given):
        attempts.append(given)
        return None if len(attempts) <= failures else halt(*given)

    rig.go(yaw=2.4)
    rig.tick(30)
    rig.go(yaw=0.0)
    monkeypatch.setattr(trajectory_streamer, 'halt', failing)
    fall_behind(rig)
    assert rig.state is State.FAULTED
    (_, first), (_, stand) = rig.output.sent
    at = first.states([stand.begins])[0][0, 0]
    assert at < 2.35
    assert stand.braking
    if failures == 2:
        assert stand.positions[-1, 0] == pytest.approx(at)
    assert len(attempts) == 2


@pytest.mark.parametrize('stall', [0.05, 0.2, 0.4])
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
    hardest = rig.controller._joints.arm.motion.limits[1][0]
    assert np.abs(np.diff(velocity) / 0.001).max() < 1.1 * hardest


def test_a_slow_computer_keeps_the_plan_with_the_controller(rig: Driven) -> None:
    """Each trajectory comes late, and takes the place of one that the next goal has made wrong."""
    rig.output.delay = 0.04
    worst = 0.0
    for k in range(40):
        rig.go(yaw=0.3 + 0.04 * k)
        rig.tick(1, dt=0.06)
        _, trajectory = rig.output.sent[-1]
        at = rig.output.samples[-1].time - rig.output.delay
        controller = trajectory.states([at])[0, 0, trajectory.names.index('yaw')]
        worst = max(worst, abs(rig.position('yaw') - controller))
        assert rig.state is State.MOVING, rig.reports[-1].message
    assert worst < 0.15
    rig.output.delay = 0.0
    rig.settle()
    assert rig.state is State.HOLDING
