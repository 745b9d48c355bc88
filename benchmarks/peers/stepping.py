# SPDX-License-Identifier: Apache-2.0
"""Solvers of several tools at once, used as their documents do: steps from a start, then a new start."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from benchmarks.chain import Array
from benchmarks.peers.virtual_roll import least_rotation

STEPS = 200  # from one start
STARTS = 10  # the seed, then uniform random ones; the documents of none of these solvers name a number
TOLERANCE = 1e-6  # m and rad
AXIS = 2  # the tool axis is z of the tip
WITHOUT_ROLL = (1.0, 1.0, 0.0)  # costs of the three turns of a tip: that about its z does not count


class Stepping:
    """A robot in a state that steps change. robot: 'xml', 'tips' by tool, 'joints', 'lower' and 'upper'.

    set and get are for peers whose state is a configuration with the joints in an order of its own.
    """

    configuration: Any
    order: list[int]

    def __init__(self, robot: dict[str, Any]) -> None:
        self.tips: dict[str, str] = robot['tips']
        self.names: list[str] = robot['joints']
        self.lower, self.upper = np.array(robot['lower']), np.array(robot['upper'])
        self.rng = np.random.default_rng(0)

    def set(self, q: Array) -> None:
        """Move to q (n,), in the order of names."""
        values = np.zeros(len(q))
        values[self.order] = q
        self.configuration.update(values)

    def get(self) -> Array:
        """Return where it is (n,)."""
        return self.configuration.q[self.order]

    def pose(self, tool: str) -> Array:
        """Return the pose of a tip (4, 4)."""
        raise NotImplementedError

    def aim(self, goals: dict[str, Array]) -> None:
        """Set the targets; goals: by tool position and direction (6,). Once per goal."""

    def step(self, goals: dict[str, Array]) -> None:
        """Make one step."""
        raise NotImplementedError

    def target(self, tool: str, goal: Array) -> Array:
        """Return the pose (4, 4) that meets goal (6,) with the least turn of the tip from where it is."""
        pose = np.eye(4)
        turn = self.pose(tool)[:3, :3]
        pose[:3, :3] = least_rotation(turn[:, AXIS], goal[3:]) @ turn
        pose[:3, 3] = goal[:3]
        return pose

    def met(self, goals: dict[str, Array]) -> bool:
        """Whether all tools are at their goals."""
        for tool, goal in goals.items():
            pose = self.pose(tool)
            off, turned = pose[:3, 3] - goal[:3], pose[:3, AXIS] - goal[3:]
            if max(off @ off, turned @ turned) > TOLERANCE**2:
                return False
        return True

    def call(self, goals: dict[str, Array], seed: Array, starts: int) -> tuple[Array, int]:
        """Return the configuration that meets goals (or the last one), and the number of starts."""
        for start in range(1, starts + 1):
            self.set(seed if start == 1 else self.rng.uniform(self.lower, self.upper))
            self.aim(goals)
            for _ in range(STEPS):
                if self.met(goals):
                    return self.get(), start
                try:
                    self.step(goals)
                except Exception as error:  # a QP without a solution, NaN: on to the next start
                    print(f'{type(error).__name__}: {error}', file=sys.stderr)
                    break
        return self.get(), starts
