# SPDX-License-Identifier: Apache-2.0
"""Why: shows why the goal of a listing cannot be met."""

from __future__ import annotations

import numpy as np
import viser

from ik_node.checks import Array
from ik_node.model.arm import Arm
from ik_node.solver.goal import Goal
from ik_node.solver.reachable_directions import fibonacci_sphere
from ik_node.solver.solver import IkSolver
from ik_node.steady import steady
from ik_node.viewer.scene.visuals import extent_of
from ik_node.viewer.solutions.listing import REACHED, Listing
from ik_node.viewer.solutions.panel import shortfalls
from ik_node.viewer.solutions.why_scene import SAMPLES, WhyScene
from ik_node.viewer.worker import Worker

PERIOD = 0.4  # [s] from one set of directions to the next: they take up to 0.2 s
MOVED = 1e-4  # [m] from where the directions were asked for
BUDGET = 2e-3  # [s] for a direction


class Why:
    """The line, the distance and the directions of one arm; the directions are computed in a thread."""

    def __init__(self, server: viser.ViserServer, arm: Arm, worker: Worker[tuple[Array, Array]]) -> None:
        """worker: for the directions."""
        self._arm, self._worker = arm, worker
        self._scene = WhyScene(server, extent_of(arm.robot, arm.tip_link))
        self._asked: Array | None = None  # the position of the directions that were asked for
        self._due = 0.0
        worker.drop()

    def show(self, solver: IkSolver, listing: Listing, T_root_base: Array) -> None:
        """Show why the goal of a listing cannot be met, nothing if it can. T_root_base: (4, 4)."""
        nearest, goal = listing.nearest, listing.goal
        self._scene.place(T_root_base)
        if nearest is None:
            self._hide()
            return
        position = goal.position
        missed = nearest.position_error > REACHED
        words = shortfalls(nearest)[0] if missed else ''
        self._scene.show_miss(position, self._arm.fk(nearest.q)[0], words)
        if missed:
            self._hide_directions()
            return
        now = steady()
        moved = self._asked is None or np.abs(position - self._asked).max() > MOVED
        if moved and now >= self._due:
            self._asked, self._due = position.copy(), now + PERIOD
            place, seed = self._asked, nearest.q
            self._worker.submit(lambda: (place, possible_directions(solver, place, seed)))
        answer = self._worker.take()
        if answer is not None:
            self._scene.show_directions(*answer)

    def _hide(self) -> None:
        self._scene.show_miss(np.zeros(3), np.zeros(3), '')
        self._hide_directions()

    def _hide_directions(self) -> None:
        if self._asked is not None:
            self._asked = None
            self._worker.drop()
        self._scene.show_directions(np.zeros(3), np.zeros((0, 3)))

    def remove(self) -> None:
        """Remove everything from the scene."""
        self._worker.drop()
        self._scene.remove()


def possible_directions(solver: IkSolver, position: Array, seed: Array) -> Array:
    """Return directions (k, 3) of the tool axis that are possible at position (3,) [m].

    The nearest possible one to each of evenly spread directions: all over a cap where the direction is free,
    on its edge, and along a curve where the position ties the direction.
    """
    found = []
    for direction in fibonacci_sphere(SAMPLES):
        solution = solver.solve(Goal(position, direction), seed, BUDGET)
        if solution.position_error < REACHED:
            found.append(solver.arm.fk(solution.q)[1])
    return np.array(found).reshape(-1, 3)
