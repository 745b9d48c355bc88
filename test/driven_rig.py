# SPDX-License-Identifier: Apache-2.0
"""A measured arm behind a controller that carries out trajectories."""

from __future__ import annotations

from dataclasses import replace

from control_harness import PERIOD, SETTINGS, Rig

from ik_node.control.controller.controller import ArmController
from ik_node.control.outputs.joint_trajectory import JointTrajectory
from ik_node.control.outputs.outputs import Output
from ik_node.control.outputs.setpoint import Setpoint
from ik_node.control.robot.arm_model import ArmModel
from ik_node.control.settings.arm import ArmSettings


class Controller(Output):
    """Keeps the trajectories that a controller is sent, with their times."""

    runs_plans = only_listed = True

    def __init__(self) -> None:
        self.sent: list[tuple[float, JointTrajectory]] = []
        self.samples: list[Setpoint] = []
        self.delay = 0.0  # [s] of this computer, which is busy
        self.lost = 0  # how many of the next trajectories do not arrive
        self.error: Exception | None = None  # raised by the next command

    def late(self, _: float) -> float:
        return self.delay

    def take(self, sample: Setpoint) -> None:
        if self.error is not None:
            error, self.error = self.error, None
            raise error
        self.samples.append(sample)
        self._keep(sample.trajectory)

    def halted(self, hold_trajectory: JointTrajectory | None) -> None:
        self._keep(hold_trajectory)

    def _keep(self, trajectory: JointTrajectory | None) -> None:
        if trajectory is not None and self.lost:
            self.lost -= 1
        elif trajectory is not None:
            self.sent.append((self.samples[-1].time, trajectory))


class Driven(Rig):
    """A measured arm behind a controller that carries out trajectories."""

    def __init__(self, model: ArmModel, base: ArmSettings = SETTINGS, **settings: object) -> None:
        super().__init__(model, measured=True)
        self.output = Controller()
        self.settings = replace(base, **settings)
        self.controller = ArmController(self.reports.append, [self.output])
        self.controller.expect_measured(True)
        self.controller.activate()
        assert self.controller.configure(model, self.settings)

    def tick(self, count: int = 1, dt: float = PERIOD) -> Setpoint | None:
        """Let time pass for an arm that is where it was commanded to."""
        sample = None
        for _ in range(count):
            sample = super().tick(1, dt)
            if sample is not None:
                self.measure(**dict(zip(sample.names, sample.positions.tolist(), strict=True)))
        return sample
