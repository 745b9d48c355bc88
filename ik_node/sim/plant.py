# SPDX-License-Identifier: Apache-2.0
"""Plant: a simulated arm with its controllers, its delays and its sensors. No ROS, no clock."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np

from ik_node.checks import Array
from ik_node.errors import InputError
from ik_node.model.joint_set import JointSet
from ik_node.model.urdf.reader import read_urdf
from ik_node.sim.controllers import Controllers
from ik_node.sim.dynamics import TIMESTEP, Dynamics
from ik_node.sim.settings import PlantSettings

MOST_CATCH_UP = 0.25  # [s] of motion at once: after a stall the arm continues from its last position


class Plant:
    """A simulated arm. Times are seconds of one clock of the caller.

    names: all joints (m), including mimic joints. settings.start must fit the robot, else InputError.
    """

    def __init__(self, text: str, settings: PlantSettings, time: float) -> None:
        robot = read_urdf(text)
        self._settings = settings
        start = np.array(settings.start)
        variables = JointSet(robot).variables
        if start.size not in (1, len(variables)):
            raise InputError(
                f'parameter start must be one number or {len(variables)} ({", ".join(variables)}), '
                f'got {start.tolist()}'
            )
        start = np.broadcast_to(start, (len(variables),)).copy()
        self._dynamics = Dynamics(robot, text, start, settings.droop)
        self.names = self._dynamics.joints.names
        listed = settings.controller_joints
        controlled = variables if listed == ('',) else listed
        self._controllers = Controllers(variables, controlled, start, 1.0 / settings.update_rate)
        self._motors = start  # before the backlash
        self._time = time  # of the simulation
        self._commands: deque[tuple[float, Callable[[Controllers, float], None]]] = deque()
        self._states: deque[tuple[float, Array, Array]] = deque()
        self._generator = np.random.default_rng(0)

    def command(self, command: Callable[[Controllers, float], None], time: float) -> None:
        """Take a command at time [s]: a function of the controllers and the time when it gets there."""
        self._commands.append((time + self._settings.latency, command))

    def advance(self, time: float) -> list[str]:
        """Simulate until time [s]; return why commands were rejected."""
        rejections = []
        if not time - MOST_CATCH_UP <= self._time <= time:
            self._time = time - TIMESTEP  # a stall, or the clock was set back
            self._states.clear()
            self._commands = deque((min(then, time), command) for then, command in self._commands)
        while self._time + TIMESTEP <= time:
            self._time += TIMESTEP
            while self._commands and self._commands[0][0] <= self._time:
                try:
                    self._commands.popleft()[1](self._controllers, self._time)
                except InputError as error:
                    rejections.append(str(error))
            half = self._settings.backlash / 2.0
            targets = self._controllers.targets(self._time)
            self._motors = np.clip(self._motors, targets - half, targets + half)
            self._dynamics.step(self._motors)
            self._states.append((self._time, self._dynamics.position, self._dynamics.velocity))
        while len(self._states) > 1 and self._states[1][0] <= time - self._settings.latency:
            self._states.popleft()
        return rejections

    def measured(self) -> tuple[Array, Array]:
        """Return positions and velocities (m,) as the sensors report them."""
        if not self._states:
            position, velocity = self._dynamics.position, self._dynamics.velocity
        else:
            _, position, velocity = self._states[0]
        return position + self._settings.noise * self._generator.standard_normal(position.size), velocity

    @property
    def targets(self) -> tuple[Array, Array]:
        """Positions and velocities (n,) of the independent joints that the controllers want now."""
        return self._controllers.targets(self._time), self._controllers.velocity

    @property
    def position(self) -> Array:
        """True positions (m,) of all joints."""
        return self._dynamics.position
