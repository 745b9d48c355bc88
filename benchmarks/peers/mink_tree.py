# SPDX-License-Identifier: Apache-2.0
"""Mink: a frame task per tool that leaves out the turn about the tool axis."""

from __future__ import annotations

from typing import Any

import mink
import mujoco
import numpy as np

from benchmarks.chain import Array
from benchmarks.peers.stepping import WITHOUT_ROLL, Stepping

TITLE = 'mink'
# Links without mass get a little: MuJoCo rejects them. Nothing is simulated.
COMPILER = '<mujoco><compiler fusestatic="false" boundmass="1e-3" boundinertia="1e-6"/></mujoco>'


class Peer(Stepping):
    """Steps of 1 s, so that each goes the whole way, within the position limits; no limits of velocity."""

    def __init__(self, robot: dict[str, Any]) -> None:
        super().__init__(robot)
        model = mujoco.MjModel.from_xml_string(robot['xml'].replace('</robot>', f'{COMPILER}</robot>'))
        self.order = [int(model.joint(name).qposadr[0]) for name in self.names]
        self.configuration = mink.Configuration(model)
        self.limits = [mink.ConfigurationLimit(model)]
        self.range = model.jnt_range.T
        self.tasks = {
            tool: mink.FrameTask(tip, 'body', 1.0, np.array(WITHOUT_ROLL), lm_damping=1e-2)
            for tool, tip in self.tips.items()
        }

    def pose(self, tool: str) -> Array:
        """Return the pose of a tip (4, 4)."""
        return self.configuration.get_transform_frame_to_world(self.tips[tool], 'body').as_matrix()

    def step(self, goals: dict[str, Array]) -> None:
        """Make one step; the target has the roll of the tip, as the task leaves that out."""
        for tool, goal in goals.items():
            self.tasks[tool].set_target(mink.SE3.from_matrix(self.target(tool, goal)))
        velocity = mink.solve_ik(
            self.configuration, list(self.tasks.values()), 1.0, 'daqp', limits=self.limits
        )
        self.configuration.update(np.clip(self.configuration.integrate(velocity, 1.0), *self.range))
