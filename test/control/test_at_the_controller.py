# SPDX-License-Identifier: Apache-2.0
"""What a trajectory controller commands, from trajectories that replace each other in motion."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
from control_harness import PERIOD, Driven, Rig
from limit_judge import Judge
from small_arm import ARM_JOINTS

from ik_node.control.models import ArmModel
from ik_node.control.states import State
from ik_node.errors import InputError
from ik_node.sim.plant import Controllers

pytestmark = pytest.mark.slow

FASTEST, HARDEST = 1.0, 5.0  # [rad/s, rad/s^2] limits of the joint yaw


class Behind:
    """An arm behind a simulated controller, each with a clock of its own and messages between them."""

    def __init__(self, model: ArmModel, rate: float, seed: int, latest: float = 0.0) -> None:
        """latest: messages arrive up to this late [s], in order, and the controller reports its reference."""
        self.rig = Driven(model)
        self._latest, self._arrival, self.sag, self.age = latest, 0.0, 0.0, 0.0
        self.rig.measure_all(yaw=0.2)
        self.rig.tick(2)
        self._random = np.random.default_rng(seed)
        self._period = 1.0 / rate
        start = np.array([0.2, 0.0, 0.0, 0.0, 0.0])
        self._controllers = Controllers(ARM_JOINTS, ARM_JOINTS, start, self._period)
        self._time = self.rig.time + self._random.uniform(0.0, self._period)
        self._sent = 0
        self._reference = dict(zip(ARM_JOINTS, start.tolist(), strict=True))
        self._coming: list[tuple[float, object]] = []
        self.commands: list[float] = []

    def tick(self, count: int = 1, dt: float = PERIOD) -> None:
        for _ in range(count):
            if self._latest:  # the arm is where its controller has commanded it to, or hangs below
                self.rig.measure(**{**self._reference, 'yaw': self._reference['yaw'] - self.sag})
                Rig.tick(self.rig, 1, dt)
            else:
                self.rig.tick(1, dt)
            for _, each in self.rig.output.sent[self._sent :]:
                late = self._random.uniform(0.0005, 0.004) + self._random.uniform(0.0, self._latest)
                late += self.rig.output.delay
                self._arrival = max(self._arrival, self.rig.time + late)
                self._coming.append((self._arrival, each))
            self._sent = len(self.rig.output.sent)
            while self._time < self.rig.time + PERIOD:
                while self._coming and self._coming[0][0] <= self._time:
                    at, each = self._coming.pop(0)
                    rows = [row[each.starts :].tolist() for row in each.rows]
                    stamp = None if each.on_arrival else each.begins
                    self._take(at, each.names, each.times[each.starts :].tolist(), *rows, stamp=stamp)
                if self._latest:  # what was commanded one period ago is for now
                    self.rig.controller.on_reference(self._reference, self._time, self.age)
                places = self._controllers.targets(self._time)
                self._reference = dict(zip(ARM_JOINTS, places.tolist(), strict=True))
                self.commands.append(float(places[0]))
                self._time += self._period

    def _take(self, *trajectory: object, stamp: float | None) -> None:
        with contextlib.suppress(InputError):  # it ends in the past
            self._controllers.follow(*trajectory, stamp=stamp)

    def judge(self) -> None:
        commands = np.array(self.commands)[:, None]
        velocity = np.diff(commands, axis=0, prepend=commands[:1]) / self._period
        judge = Judge(velocity=1.02 * FASTEST, acceleration=1.2 * HARDEST)
        judge.all(self._period, commands, velocity)
        assert self.commands[-1] == pytest.approx(self.rig.position('yaw'), abs=1e-9)


def test_stops_keep_the_limits_at_the_controller(model: ArmModel) -> None:
    arm = Behind(model, 100.0, seed=1)
    random = np.random.default_rng(2)
    for _ in range(8):
        goal = random.choice([-1.5, 1.5])
        arm.rig.go(yaw=goal)
        arm.tick(int(random.integers(3, 90)))
        arm.rig.controller.stop()
        arm.tick(90)
        arm.rig.controller.resume()
    arm.judge()


def test_goals_as_a_stream_keep_the_limits_at_the_controller(model: ArmModel) -> None:
    arm = Behind(model, 100.0, seed=3)
    for k in range(200):
        if k % 2 == 0:
            time = 0.01 * k + 0.3
            arm.rig.go(yaw=0.2 + 0.5 * (1.0 - np.cos(1.5 * time)))
        arm.tick()
        assert arm.rig.state is State.MOVING, arm.rig.reports[-1].message
    arm.tick(150)
    arm.judge()


def test_a_controller_that_was_sent_nothing_in_time_is_joined_where_it_is(model: ArmModel) -> None:
    arm = Behind(model, 100.0, seed=4)
    arm.rig.go(yaw=1.5)
    arm.tick(40)
    arm.rig.go(yaw=0.4)
    arm.rig.output.delay = 0.06
    arm.tick(1)
    arm.rig.output.delay = 0.0
    arm.tick(250)
    assert arm.rig.state is State.HOLDING, arm.rig.reports[-1].message
    arm.judge()


def test_a_controller_that_coasted_while_the_computer_stood_still_is_joined_where_it_is(
    model: ArmModel,
) -> None:
    arm = Behind(model, 500.0, seed=5)
    for k in range(200):
        place = 0.2 + 0.5 * (1.0 - np.cos(0.015 * k))
        assert arm.rig.controller.steer(np.array([place, 0.0, 0.0, 0.0, 0.0]), arm.rig.time)
        arm.tick()
        if k % 100 == 99:
            arm.tick(1, 0.43)
    arm.tick(250)
    assert arm.rig.state is State.HOLDING, arm.rig.reports[-1].message
    arm.judge()


def test_motions_from_rest_keep_the_limits_however_late_they_arrive(model: ArmModel) -> None:
    arm = Behind(model, 100.0, seed=6, latest=0.5)
    arm.tick()
    for k in range(3):
        arm.rig.go(yaw=(-1.0, 1.0)[k % 2])
        arm.tick(360)
        assert arm.rig.state is State.HOLDING, arm.rig.reports[-1].message
    arm.judge()


def test_stops_keep_the_limits_on_a_computer_that_is_always_late(model: ArmModel) -> None:
    arm = Behind(model, 100.0, seed=7, latest=0.5)
    arm.tick()
    arm.rig.go(yaw=1.0)
    arm.tick(360)
    for k in range(3):
        arm.rig.go(yaw=(-1.5, 1.5)[k % 2])
        arm.tick((10, 60, 150)[k])  # also before the controller has begun
        arm.rig.controller.stop()
        arm.tick(40)  # the commands are at rest, the controller is not
        with pytest.raises(InputError, match='stopping'):
            arm.rig.controller.resume()
        arm.tick(210)
        assert arm.rig.state is State.STOPPED, arm.rig.reports[-1].message
        arm.rig.controller.resume()
    arm.judge()


@pytest.mark.parametrize('how', ['stop', 'fault'])
def test_late_messages_of_a_computer_that_is_busy_itself_keep_the_limits(model: ArmModel, how: str) -> None:
    arm = Behind(model, 100.0, seed=7, latest=0.5)
    arm.tick()
    arm.rig.go(yaw=1.5)
    arm.tick(75)
    if how == 'stop':
        arm.rig.controller.stop()
        arm.rig.output.delay = 0.4
        arm.tick(1)
        arm.rig.output.delay = 0.0
    else:
        arm.rig.controller.fault('a driver fails')
    arm.tick(300)
    velocity = np.diff(arm.commands) * 100.0
    assert np.abs(velocity).max() <= 1.02 * FASTEST
    assert np.abs(np.diff(velocity)).max() * 100.0 <= 1.2 * HARDEST
    assert arm.commands[-1] == arm.commands[-2] < 1.4


def test_a_first_late_stop_keeps_the_limits_where_references_have_been_as_late(model: ArmModel) -> None:
    arm = Behind(model, 500.0, seed=9, latest=1e-6)
    arm.age = 0.75
    arm.tick()
    arm.rig.go(yaw=1.5)
    arm._arrival = arm.rig.time + 0.6
    arm.tick(200)
    arm.rig.controller.stop()
    arm._arrival = arm.rig.time + 0.7
    arm.tick(250)
    assert arm.rig.state is State.STOPPED, arm.rig.reports[-1].message
    arm.judge()


def test_a_start_after_a_pause_leaves_the_controller_time_to_move_to_its_first_point(model: ArmModel) -> None:
    arm = Behind(model, 500.0, seed=9, latest=1e-6)
    arm.tick()
    arm.rig.go(yaw=0.5)
    arm.tick(1, 0.5)
    arm.tick(200)
    (start,) = (each for _, each in arm.rig.output.sent if each.on_arrival)
    assert start.times[start.starts] > 0.0
    assert start.positions[start.starts, 0] == pytest.approx(0.2, abs=1e-9)
    arm.judge()


def test_a_reference_that_leaps_from_one_trajectory_to_another_is_a_fault(model: ArmModel) -> None:
    arm = Behind(model, 100.0, seed=9, latest=1e-6)
    arm.tick()
    arm.rig.go(yaw=1.5)
    arm.tick(90)
    arm.rig.controller.on_reference({**arm._reference, 'yaw': arm._reference['yaw'] + 0.1}, arm._time)
    assert arm.rig.state is State.FAULTED
    assert 'jumped' in arm.rig.reports[-1].message


def test_a_stop_that_alone_is_late_is_a_fault_and_the_arm_goes_on_from_where_its_controller_is(
    model: ArmModel,
) -> None:
    """Nothing told that it would be late, and the controller jumps; but nobody is told that it stopped."""
    arm = Behind(model, 500.0, seed=9, latest=1e-6)
    arm.tick()
    arm.rig.go(yaw=1.5)
    arm.tick(90)
    arm.rig.controller.stop()
    arm._arrival = arm.rig.time + 0.3
    arm.tick(200)
    assert arm.rig.state is State.FAULTED
    assert 'has not reached the controller' in arm.rig.reports[-1].message
    assert not any(report.message.startswith('stopped') for report in arm.rig.reports)
    place = arm.commands[-1]
    del arm.commands[:-2]
    arm.sag = 0.31
    for yaw in (place - 0.3, place - 0.31):  # the arm hangs below its commands
        arm.rig.measure_all(yaw=yaw)
        arm.rig.tick(1)
    arm.rig.controller.resume()
    arm.rig.measure_all(yaw=place - 0.31)
    arm.tick(2)
    arm.rig.go(yaw=-1.5)
    arm.tick(500)
    assert arm.rig.state is State.HOLDING, arm.rig.reports[-1].message
    arm.judge()
