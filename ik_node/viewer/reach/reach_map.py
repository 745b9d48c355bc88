# SPDX-License-Identifier: Apache-2.0
"""ReachMap: computes a map of the workspace while users want to see one, ever finer."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import viser

from ik_node.checks import Array
from ik_node.model.arm import Arm
from ik_node.solver.reachable_directions import fibonacci_sphere, reachable_directions
from ik_node.steady import steady
from ik_node.viewer.reach.grid import Cube, Grid, horizontal, vertical, whole
from ik_node.viewer.reach.panel import AT_HEIGHT, AT_TOOL, THROUGH_TOOL, WHOLE, ReachPanel, Wanted
from ik_node.viewer.reach.picture import Map, MapPicture
from ik_node.viewer.room import Moment, Room, Shown
from ik_node.viewer.worker import Worker

SIZES = (12, 24, 48)  # cells in a row, one after the other; half as many of the whole workspace
DIRECTIONS = 60
WITHIN = 0.25  # [rad] of a direction within which it counts as possible
REST = 0.4  # [s] without a change after which a map is computed
MOVED = 0.01  # [m] of the tool after which another one is
PATIENCE = 2.0  # [s] without a frame, as without a page, after which a computation ends
GIVEN_UP = 'given up'  # the result of such a one


class ReachMap(Room):
    """Computes on one core in a thread of its own."""

    def __init__(self, server: viser.ViserServer) -> None:
        self._panel = ReachPanel(server.gui)
        self._picture = MapPicture(server)
        self._found: Map | None = None
        self._least = 0.0  # share of directions, of the points that are shown
        self._worker: Worker[Map | str] = Worker('reach map')
        self._arm: Arm | None = None
        self._shown: Shown | None = None
        self._alive = 0.0  # when the last frame was (steady)
        self._run = 0  # of the computation that counts
        self._asked: tuple[Wanted, Array] | None = None  # of the newest map, and where the tool was
        self._level = 0  # of SIZES, that is computed next
        self._changed = 0.0  # when what is wanted last changed (steady)

    def show(self, shown: Shown | None) -> None:
        """Show another robot, after the scene was cleared, or none."""
        self._shown, self._arm = shown, None
        self._picture.forget()
        self._end()

    def update(self, moment: Moment) -> None:
        """Begin another map if one is wanted, and draw what there is."""
        self._panel.show_controls()
        self._alive = now = steady()
        wanted, shown = self._panel.wanted, self._shown
        if wanted is None or shown is None or not moment.values:
            self._remove()
            return
        arm = moment.tool.arm
        if arm is None:
            return
        if arm is not self._arm:
            self._remove()
            self._arm = arm
            base = float(arm.joints[0, 5])
            self._panel.set_range(base - arm.reach, base + arm.reach)
        q = np.array([moment.values.get(name, 0.0) for name in arm.joint_names])
        point = arm.fk(q)[0]
        if self._is_new(wanted, point):
            self._end()
            self._asked, self._changed = (wanted, point), now
        answer = self._worker.take()
        if isinstance(answer, str):
            self._run = 0  # to be computed again
        elif answer is not None:
            self._found = answer
            self._level += 1
        least = self._panel.least
        if self._found is not None and (answer is not None or least != self._least):
            self._picture.draw(self._found, least, arm.robot.link_pose(arm.base_link, moment.values))
        self._least = least
        if self._level < len(SIZES) and now >= self._changed + REST and self._run != self._level + 1:
            self._begin(arm, wanted, point)

    def _is_new(self, wanted: Wanted, point: Array) -> bool:
        if self._asked is None:
            return True
        before, place = self._asked
        if wanted.plane in (AT_HEIGHT, WHOLE):
            return wanted != before
        return wanted.plane != before.plane or float(np.linalg.norm(point - place)) > MOVED

    def _begin(self, arm: Arm, wanted: Wanted, point: Array) -> None:
        size = SIZES[self._level]
        self._run = self._level + 1
        cells: Grid | Cube
        if wanted.plane == WHOLE:
            cells = whole(arm, size // 2)
        elif wanted.plane == THROUGH_TOOL:
            cells = vertical(arm, point, size)
        else:
            cells = horizontal(arm, float(point[2]) if wanted.plane == AT_TOOL else wanted.height, size)
        asked = self._asked

        def wanted_still() -> bool:
            return self._asked is asked and steady() < self._alive + PATIENCE

        self._worker.submit(lambda: computed(arm, cells, wanted_still) or GIVEN_UP)

    def _end(self) -> None:
        """End the computation and forget what it found."""
        self._worker.drop()
        self._asked, self._found, self._level, self._run = None, None, 0, 0

    def _remove(self) -> None:
        if self._asked is not None:
            self._end()
        self._picture.remove()

    def close(self) -> None:
        """End the thread."""
        self._end()
        self._worker.close()


def computed(arm: Arm, cells: Grid | Cube, wanted: Callable[[], bool]) -> Map | None:
    """Return the map of cells, None as soon as it is no longer wanted."""
    shares = np.full(len(cells.places), np.nan)
    directions = fibonacci_sphere(DIRECTIONS)
    for rows, there, reached in reachable_directions(arm, cells.places, directions, WITHIN, cores=1):
        shares[rows] = np.where(there, reached.mean(axis=1), np.nan)
        if not wanted():
            return None
    return Map(cells, shares)
