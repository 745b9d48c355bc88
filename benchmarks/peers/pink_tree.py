# SPDX-License-Identifier: Apache-2.0
"""Pink: a frame task per tool that leaves out the turn about the tool axis."""

from __future__ import annotations

from typing import Any

import numpy as np
import pinocchio
from pink import Configuration, solve_ik
from pink.limits import ConfigurationLimit
from pink.tasks import FrameTask

from benchmarks.chain import Array
from benchmarks.peers.stepping import WITHOUT_ROLL, Stepping

TITLE = 'pink'


class Peer(Stepping):
    """Steps of 1 s, so that each goes the whole way, within the position limits; no limits of velocity."""

    def __init__(self, robot: dict[str, Any]) -> None:
        super().__init__(robot)
        model = pinocchio.buildModelFromXML(robot['xml'])
        self.order = [model.joints[model.getJointId(name)].idx_q for name in self.names]
        self.configuration = Configuration(model, model.createData(), pinocchio.neutral(model))
        self.limits = [ConfigurationLimit(model)]
        self.tasks = {
            tool: FrameTask(tip, position_cost=1.0, orientation_cost=list(WITHOUT_ROLL), lm_damping=1e-2)
            for tool, tip in self.tips.items()
        }

    def pose(self, tool: str) -> Array:
        """Return the pose of a tip (4, 4)."""
        return self.configuration.get_transform_frame_to_world(self.tips[tool]).homogeneous

    def step(self, goals: dict[str, Array]) -> None:
        """Make one step; the target has the roll of the tip, as the task leaves that out."""
        for tool, goal in goals.items():
            self.tasks[tool].set_target(pinocchio.SE3(self.target(tool, goal)))
        velocity = solve_ik(
            self.configuration,
            list(self.tasks.values()),
            1.0,
            'daqp',
            limits=self.limits,
            safety_break=False,
        )
        q = self.configuration.integrate(velocity, 1.0)
        self.configuration.update(
            np.clip(
                q, self.configuration.model.lowerPositionLimit, self.configuration.model.upperPositionLimit
            )
        )
