# SPDX-License-Identifier: Apache-2.0
"""Random goals on a simulated arm, through the outputs to both controllers of ros2_control, without DDS."""

from __future__ import annotations

import numpy as np
from control_harness import Asked, arm_model

from ik_node import Goal
from ik_node.control.controller import ArmController
from ik_node.control.models import ArmModel
from ik_node.control.outputs import Output
from ik_node.control.paths import limits_of_motion
from ik_node.control.requests import Report
from ik_node.control.settings import ArmSettings
from ik_node.control.states import State
from ik_node.control.trajectory import Setpoint
from ik_node.sim.plant import TIMESTEP, Plant, PlantSettings
from oracles.arms import Task
from oracles.chain import Array, angle_between

REAL = {'noise': 3e-4, 'latency': 0.005, 'droop': 5e-4}  # [rad], [s], [rad]
NEAR = 1e-3, np.radians(0.5)  # [m], [rad] from what was promised
EVERY = 4  # goals: before each of these another goal is sent, which this one replaces in motion
SETTLE = 0.5  # [s] after the last command, for the servos
LONGEST = 120.0  # [s] for one goal
BEYOND, BETWEEN = 1e-6, 1.01  # [rad, m, and per second] of what goes out; share of a limit between the points
LINKS = 'joint_trajectory', 'position_commands'


class Link(Output):
    """From the arm to a controller of the plant; counts what goes out, and what of it is beyond a limit."""

    def __init__(self, model: ArmModel, settings: ArmSettings, plant: Plant) -> None:
        self.runs_plans = settings.output == LINKS[0]
        self._limits, self._plant = limits_of_motion(model, model.index, settings), plant
        self.samples = self.beyond = 0

    def take(self, sample: Setpoint) -> None:
        """Send the trajectory that is due, or a list of positions."""
        trajectory = sample.trajectory
        if not self.runs_plans:
            listed = sample.listed()
            self.judge(np.array(listed)[None], sample.velocities[None])
            self._plant.command(lambda c, _: c.forward(listed), sample.time)
        elif trajectory is not None:
            self.judge(trajectory.positions, trajectory.velocities)
            sent = trajectory.times.tolist(), *(row.tolist() for row in trajectory.rows)
            names, stamp = trajectory.names, trajectory.begins
            self._plant.command(lambda c, now: c.follow(now, names, *sent, stamp=stamp), sample.time)

    def judge(self, positions: Array, velocities: Array, share: float = 1.0, slack: float = BEYOND) -> None:
        """Count positions and velocities (k, n)."""
        low, high = self._limits.lower - slack, self._limits.upper + slack
        wrong = (positions < low) | (positions > high)
        wrong |= np.abs(velocities) > share * self._limits.velocity + BEYOND
        self.samples += len(positions)
        self.beyond += int(wrong.any(axis=-1).sum())


class Campaign:
    """One simulated arm behind one output."""

    def __init__(self, task: Task, output: str) -> None:
        self.task = task
        self.settings = ArmSettings(
            base_link=task.base, tip_link=task.tip, tool_axis=task.axis, tool_point=task.point, output=output
        )
        model = arm_model(task.xml, self.settings)
        names = model.first.arm.joint_names
        self.time = 0.0
        self.plant = Plant(task.xml, PlantSettings(controller_joints=names, **REAL), self.time)
        self.rows = np.array([self.plant.names.index(name) for name in names])
        self.variables = model.index
        self.link = Link(model, self.settings, self.plant)
        self.reports: list[Report] = []
        self.controller = ArmController(self.reports.append, [self.link])
        self.controller.expect_measured(True)
        self.controller.activate()
        self.controller.configure(model, self.settings)

    def run(self, count: int) -> tuple[int, int, int, int, int]:
        """Go to count goals; return how many, how many near and stopped, samples, and those beyond limits."""
        self._pass(0.1)
        positions, directions, _ = self.task.goals(4 * count, seed=7)
        goals = list(map(Goal, positions, directions))
        near = stopped = done = 0
        for i, goal in enumerate(goals):
            if done == count:
                break
            if i % EVERY == EVERY - 1:  # another goal first, which is replaced in motion
                self.controller.submit(Asked(goals[i - 2], received=self.time))
                self._pass(0.05 * (1 + i % 13))
            self.controller.submit(Asked(goal, received=self.time))
            report = next(r for r in reversed(self.reports) if r.request is not None)
            if report.status == 'rejected' and 'link "' in report.message:  # parts of the arm would collide
                self._pass(1.0)
                continue
            done, end = done + 1, self.time + LONGEST
            self._pass(0.05)
            while self.controller.state is State.MOVING and self.time < end:
                self._pass(0.05)
            self._pass(SETTLE)
            if self.controller.state is not State.HOLDING or report.solution is None:
                stopped += 1
                self.controller.resume()
                self._pass(0.5)
                continue
            (promised, place), axes = self.task.chain.fk(np.array([report.solution.q, self.plant.position[self.rows]]))
            off = np.linalg.norm(place - promised), angle_between(*axes)
            near += bool(off[0] <= NEAR[0] and off[1] <= NEAR[1])
        return done, near, stopped, self.link.samples, self.link.beyond

    def _pass(self, seconds: float) -> None:
        """Let time pass."""
        end, period = self.time + seconds, 1.0 / self.settings.publish_rate
        while self.time < end:
            for _ in range(round(period / TIMESTEP)):
                self.time += TIMESTEP
                assert not list(self.plant.advance(self.time))  # rejections
                if self.link.runs_plans:  # what the controller makes of the points
                    place, velocity = (row[self.variables][None] for row in self.plant.targets)
                    self.link.judge(place, velocity, BETWEEN, 1e-4)
            measured = dict(zip(self.plant.names, self.plant.measured()[0].tolist(), strict=True))
            self.controller.on_measured(measured, self.time)
            self.controller.tick(self.time)
