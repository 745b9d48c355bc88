# SPDX-License-Identifier: Apache-2.0
"""What a trajectory controller commands, from trajectories that replace each other in motion."""

from __future__ import annotations

import numpy as np
import pytest
from control_harness import PERIOD
from driven_rig import Driven
from small_arm import ARM_JOINTS

from ik_node.control.robot.arm_model import ArmModel
from ik_node.control.state.states import State
from ik_node.sim.controllers import Controllers

FASTEST, HARDEST = 1.0, 5.0  # [rad/s, rad/s^2] limits of the joint yaw


class Behind:
    """An arm behind a simulated controller, each with a clock of its own and messages between them."""

    def __init__(self, model: ArmModel, rate: float, seed: int) -> None:
        self.rig = Driven(model)
        self.rig.measure_all(yaw=0.2)
        self.rig.tick(2)
        self._random = np.random.default_rng(seed)
        self._period = 1.0 / rate
        start = np.array([0.2, 0.0, 0.0, 0.0, 0.0])
        self._controllers = Controllers(ARM_JOINTS, ARM_JOINTS, start, self._period)
        self._time = self.rig.time + self._random.uniform(0.0, self._period)
        self._sent = 0
        self._coming: list[tuple[float, object]] = []
        self.commands: list[float] = []

    def tick(self, count: int = 1, dt: float = PERIOD) -> None:
        for _ in range(count):
            self.rig.tick(1, dt)
            late = self.rig.time + self._random.uniform(0.0005, 0.004)
            self._coming += [(late, each) for _, each in self.rig.output.sent[self._sent :]]
            self._sent = len(self.rig.output.sent)
            while self._time < self.rig.time + PERIOD:
                while self._coming and self._coming[0][0] <= self._time:
                    at, each = self._coming.pop(0)
                    rows = [row.tolist() for row in each.rows]
                    self._controllers.follow(at, each.names, each.times.tolist(), *rows, stamp=each.begins)
                self.commands.append(float(self._controllers.targets(self._time)[0]))
                self._time += self._period

    def judge(self) -> None:
        velocity = np.diff(self.commands) / self._period
        acceleration = np.diff(velocity) / self._period
        assert np.abs(velocity).max() <= 1.02 * FASTEST
        assert np.abs(acceleration).max() <= 1.2 * HARDEST
        assert self.commands[-1] == pytest.approx(self.rig.position('yaw'), abs=1e-9)


@pytest.mark.parametrize('rate', [100.0, 500.0])
def test_stops_keep_the_limits_at_the_controller(model: ArmModel, rate: float) -> None:
    arm = Behind(model, rate, seed=1)
    random = np.random.default_rng(2)
    for _ in range(40):
        goal = random.choice([-1.5, 1.5])
        arm.rig.go(yaw=goal)
        arm.tick(int(random.integers(3, 90)))
        arm.rig.controller.stop()
        arm.tick(90)
        arm.rig.controller.resume()
    arm.judge()


@pytest.mark.parametrize('rate', [100.0, 500.0])
def test_goals_as_a_stream_keep_the_limits_at_the_controller(model: ArmModel, rate: float) -> None:
    arm = Behind(model, rate, seed=3)
    for k in range(500):
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


@pytest.mark.parametrize('rate', [100.0, 500.0])
def test_a_controller_that_coasted_while_the_computer_stood_still_is_joined_where_it_is(
    model: ArmModel, rate: float
) -> None:
    arm = Behind(model, rate, seed=5)
    for k in range(600):
        place = 0.2 + 0.5 * (1.0 - np.cos(0.015 * k))
        assert arm.rig.controller.steer(np.array([place, 0.0, 0.0, 0.0, 0.0]), arm.rig.time)
        arm.tick()
        if k % 100 == 99:
            arm.tick(1, 0.43)
    arm.tick(250)
    assert arm.rig.state is State.HOLDING, arm.rig.reports[-1].message
    arm.judge()
