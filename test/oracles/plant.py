# SPDX-License-Identifier: Apache-2.0
"""Random goals on a simulated arm, through the outputs to both controllers of ros2_control."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from control_harness import Asked

from ik_node import Goal
from ik_node.control.controller.controller import ArmController
from ik_node.control.outputs.joint_trajectory import JointTrajectory
from ik_node.control.outputs.outputs import Output
from ik_node.control.outputs.setpoint import Setpoint
from ik_node.control.robot.arm_model import ArmModel
from ik_node.control.robot.motion_limits import limits_of_motion
from ik_node.control.settings.arm import ArmSettings
from ik_node.control.state.report import Report
from ik_node.control.state.states import State
from ik_node.sim.dynamics import TIMESTEP
from ik_node.sim.plant import Plant
from ik_node.sim.settings import PlantSettings
from oracles.arms import Task
from oracles.chain import Array, angle_between

REAL = {'noise': 3e-4, 'latency': 0.005, 'droop': 5e-4}  # [rad], [s], [rad]
NEAR = 1e-3, np.radians(0.5)  # [m], [rad] from what was promised
EVERY = 4  # goals: before each of these another goal is sent, which this one replaces in motion
SETTLE = 0.5  # [s] after the last command, for the servos
LONGEST = 120.0  # [s] for one goal
BEYOND = 1e-6  # [rad, m, and per second] by which a sample may exceed a limit
BETWEEN = 1.01  # share of its velocity limit that what the controller makes of a trajectory may reach


@dataclass
class Limits:
    """Counts samples, those beyond a limit, and the largest shares of the limits of motion."""

    model: ArmModel
    settings: ArmSettings
    samples: int = 0
    beyond: int = 0
    shares: Array = field(default_factory=lambda: np.zeros(3))
    steps: int = 0  # of the controller

    def __post_init__(self) -> None:
        limits = limits_of_motion(self.model, self.model.index, self.settings)
        self.lower, self.upper = limits.lower, limits.upper
        self.velocity, self.acceleration, self.jerk = limits.velocity, limits.acceleration, limits.jerk

    def look(self, positions: Array, velocities: Array) -> None:
        """Check positions and velocities (k, n) that go out."""
        outside = (positions > self.upper + BEYOND) | (positions < self.lower - BEYOND)
        fast = np.abs(velocities) > self.velocity + BEYOND
        self.samples += len(positions)
        self.beyond += int((outside | fast).any(axis=-1).sum())

    def look_between(self, position: Array, velocity: Array, before: Array, dt: float) -> None:
        """Check what the controller wants: position, velocity (n,), and the velocity dt [s] before."""
        shares = np.abs(velocity) / self.velocity, np.abs(velocity - before) / dt / self.acceleration
        self.shares[:2] = np.maximum(self.shares[:2], [share.max() for share in shares])
        outside = (position > self.upper + 1e-4) | (position < self.lower - 1e-4)
        self.steps += 1
        self.beyond += int(outside.any() or bool((shares[0] > BETWEEN).any()))

    def look_jerk(self, jerk: Array) -> None:
        """Note jerks (k, n)."""
        self.shares[2] = max(self.shares[2], float((np.abs(jerk) / self.jerk).max(initial=0.0)))


class Overlaps:
    """Counts places at which parts of the arm overlap, by the distances of coal. None: no geometry."""

    def __init__(self, model: ArmModel) -> None:
        self._collision, self._index = model.collision, model.index
        self._values = model.joints.filled({})
        self._seen, self._free = self._values, -np.inf
        self.count: int | None = None if model.collision is None else 0

    def look(self, position: Array) -> None:
        """Check positions (n,) of the arm; those that no collision can be near to are skipped."""
        if self._collision is None or self.count is None:
            return
        self._values[self._index] = position
        if np.abs(self._values - self._seen) @ self._collision.sweep.max(axis=0) < self._free:
            return
        self._free, _ = self._collision.distance(self._values)
        self._seen = self._values.copy()
        self.count += self._free < 0.0


class TrajectoryLink(Output):
    """From the arm's plans to the trajectory controller of the plant, without DDS."""

    runs_plans = True

    def __init__(self, limits: Limits) -> None:
        self.plant: Plant
        self._limits = limits
        self._time = 0.0

    def take(self, sample: Setpoint) -> None:
        """Send the trajectory that is due."""
        self._time = sample.time
        if sample.trajectory is not None:
            self._send(sample.trajectory)

    def _send(self, trajectory: JointTrajectory) -> None:
        self._limits.look(trajectory.positions, trajectory.velocities)
        sent = trajectory.times.tolist(), *(row.tolist() for row in trajectory.rows)
        motion = trajectory.motion
        times = np.arange(trajectory.times[0], trajectory.duration, TIMESTEP)
        self._limits.look_jerk(motion.sampled(times)[3])
        stamp = trajectory.begins
        self.plant.command(lambda c, now: c.follow(now, trajectory.names, *sent, stamp=stamp), self._time)


class PositionsLink(Output):
    """From the arm's samples to the position controller of the plant, without DDS."""

    def __init__(self, limits: Limits) -> None:
        self.plant: Plant
        self._limits = limits
        # Time, positions, and their first and second change per second.
        self._last: tuple[float, Array, Array, Array] | None = None

    def take(self, sample: Setpoint) -> None:
        """Send a list of positions."""
        positions = sample.listed()
        place = np.array(positions)
        change, second = np.zeros((2, len(positions)))
        self._limits.look(place[None], sample.velocities[None])
        if self._last is not None:
            dt = sample.time - self._last[0]
            change = (place - self._last[1]) / dt
            second = (change - self._last[2]) / dt
            self._limits.look_between(place, change, self._last[2], dt)
            self._limits.look_jerk((second - self._last[3])[None] / dt)
        self._last = sample.time, place, change, second
        self.plant.command(lambda c, _: c.forward(positions), sample.time)


LINKS = {'joint_trajectory': TrajectoryLink, 'position_commands': PositionsLink}


class Campaign:
    """One simulated arm behind one output."""

    def __init__(self, task: Task, output: str) -> None:
        self.task = task
        self.settings = ArmSettings(
            base_link=task.base, tip_link=task.tip, tool_axis=task.axis, tool_point=task.point, output=output
        )
        model = ArmModel.build(task.xml, self.settings)
        names = model.arm.joint_names
        self.time = 0.0
        self.plant = Plant(task.xml, PlantSettings(controller_joints=names, **REAL), self.time)
        self.rows = np.array([self.plant.names.index(name) for name in names])
        self.variables = model.index
        self.limits, self.overlaps = Limits(model, self.settings), Overlaps(model)
        link = LINKS[output](self.limits)
        link.plant = self.plant
        self.between = output == 'joint_trajectory'
        self.reports: list[Report] = []
        self.collisions = 0  # goals that were rejected because parts of the arm would collide
        self.controller = ArmController(self.reports.append, [link])
        self.controller.expect_measured(True)
        self.controller.activate()
        self.controller.configure(model, self.settings)

    def run(self, count: int) -> Iterable[object]:
        """Go to count goals; return the cells of the row."""
        self._pass(0.1)
        positions, directions, _ = self.task.goals(4 * count, seed=7)
        near, worst, stopped, done = 0, np.zeros(2), 0, 0
        for i, (position, direction) in enumerate(zip(positions, directions, strict=True)):
            if done == count:
                break
            if i % EVERY == EVERY - 1:  # another goal first, which is replaced in motion
                self.controller.submit(Asked(Goal(positions[i - 2], directions[i - 2]), received=self.time))
                self._pass(0.05 * (1 + i % 13))
            self.controller.submit(Asked(Goal(position, direction), received=self.time))
            report = next(r for r in reversed(self.reports) if r.request is not None)
            begin = self.time
            if report.status == 'rejected' and 'link "' in report.message:
                self.collisions += 1  # on the way there: another goal counts
                self._pass(1.0)
                continue
            done += 1
            self._pass(0.05)
            while self.controller.state is State.MOVING and self.time < begin + LONGEST:
                self._pass(0.05)
            self._pass(SETTLE)
            if self.controller.state is not State.HOLDING or report.solution is None:
                stopped += 1
                print('stopped:', self.controller.condition()[1], report.message)
                self.controller.resume()
                self._pass(0.5)
                continue
            q = np.array([report.solution.q, self.plant.position[self.rows]])
            (promised, place), axes = self.task.chain.fk(q)
            off = np.array([np.linalg.norm(place - promised), angle_between(*axes)])
            near += bool((off <= NEAR).all())
            worst = np.maximum(worst, off)
        shares = [f'{share:.3f}' for share in self.limits.shares]
        samples = self.limits.samples + self.limits.steps
        worst_off = f'{1e3 * worst[0]:.3f}', f'{np.degrees(worst[1]):.3f}'
        overlaps = '-' if self.overlaps.count is None else self.overlaps.count
        return done, near, *worst_off, stopped, samples, self.limits.beyond, overlaps, *shares

    def _pass(self, seconds: float) -> None:
        """Let time pass."""
        end = self.time + seconds
        period = 1.0 / self.settings.publish_rate
        while self.time < end:
            for _ in range(round(period / TIMESTEP)):
                self.time += TIMESTEP
                _, before = self.plant.targets
                for rejection in self.plant.advance(self.time):
                    raise RuntimeError(rejection)
                if self.between:
                    place, velocity = self.plant.targets
                    rows = self.variables
                    self.limits.look_between(place[rows], velocity[rows], before[rows], TIMESTEP)
            self.overlaps.look(self.plant.position[self.rows])
            measured = dict(zip(self.plant.names, self.plant.measured()[0].tolist(), strict=True))
            self.controller.on_measured(measured, self.time)
            self.controller.tick(self.time)
