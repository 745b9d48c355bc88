# SPDX-License-Identifier: Apache-2.0
"""The hand of an operator, who steers the arm of a rig by poses, with a clutch."""

from __future__ import annotations

import numpy as np
from control_harness import Rig, positions
from small_arm import ARM_JOINTS

from ik_node.control.teleop.teleop_controller import TeleopController


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
        return self.rig.model.arm.fk(self.rig.controller.snapshot().position)[0]
