# SPDX-License-Identifier: Apache-2.0
"""Maps of the workspace in the scene."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import viser
from numpy.typing import NDArray

from ik_node.checks import Array
from ik_node.model.arm import Arm
from ik_node.solver.reachable_directions import fibonacci_sphere, reachable_directions
from ik_node.steady import steady

from . import panel
from .events import Worker
from .panel import update
from .scene import move
from .section import Frame, Page, RobotView, Section


@dataclass(frozen=True, eq=False)
class Grid:
    """size x size cells around centre (3,) [m] in the base frame; right, up (3,): unit vectors. cell [m]."""

    centre: Array
    right: Array
    up: Array
    size: int
    cell: float

    @property
    def width(self) -> float:
        """The length of a side [m]."""
        return self.size * self.cell

    @property
    def places(self) -> Array:
        """The middles (size^2, 3) [m] of the cells, row by row from the top left."""
        along = (np.arange(self.size) + 0.5) * self.cell - 0.5 * self.width
        across, down = np.meshgrid(along, -along)
        return self.centre + across.reshape(-1, 1) * self.right + down.reshape(-1, 1) * self.up

    @property
    def pose(self) -> Array:
        """T_base_image (4, 4) of viser's images, whose x is to the right and whose y is down."""
        T = np.eye(4)
        T[:3, 0], T[:3, 1], T[:3, 2] = self.right, -self.up, np.cross(self.right, -self.up)
        T[:3, 3] = self.centre
        return T


@dataclass(frozen=True, eq=False)
class Cube:
    """Cubic cells [m] whose middles are places (k, 3) [m] in the base frame."""

    places: Array
    cell: float


def whole(arm: Arm, size: int) -> Cube:
    """Return size cells along each axis, around the first joint, without those beyond the reach."""
    cell = 2.0 * arm.reach / size
    along = (np.arange(size) + 0.5) * cell - arm.reach
    places = np.stack(np.meshgrid(along, along, along, indexing='ij'), axis=-1).reshape(-1, 3)
    return Cube(arm.joints[0, 3:6] + places[np.linalg.norm(places, axis=1) <= arm.reach], cell)


def horizontal(arm: Arm, height: float, size: int) -> Grid:
    """Return the grid at a height [m] above the base that has all that the arm can reach."""
    shoulder = arm.joints[0, 3:6]
    centre = np.array([shoulder[0], shoulder[1], height])
    return Grid(centre, np.array([1.0, 0.0, 0.0]), np.array([0.0, 1.0, 0.0]), size, 2.0 * arm.reach / size)


def vertical(arm: Arm, point: Array, size: int) -> Grid:
    """Return the vertical grid through the first joint and a point (3,) [m] as wide as the reach."""
    shoulder = arm.joints[0, 3:6]
    turn = math.atan2(point[1] - shoulder[1], point[0] - shoulder[0])
    right = np.array([math.cos(turn), math.sin(turn), 0.0])
    return Grid(shoulder.copy(), right, np.array([0.0, 0.0, 1.0]), size, 2.0 * arm.reach / size)


# Of the shares 0, 0.25, 0.5, 0.75 and 1: dark blue to yellow, ever lighter, so that it reads in grey too.
ANCHORS = np.array([(68, 1, 84), (59, 82, 139), (33, 145, 140), (94, 201, 98), (253, 231, 37)])
OPACITY = 190


def image(shares: Array, size: int) -> NDArray[np.uint8]:
    """Return an image (size, size, 4) of shares (size^2,) from 0 to 1; NaN is transparent."""
    known = np.isfinite(shares)
    pixels = np.column_stack([colours(np.where(known, shares, 0.0)), np.where(known, OPACITY, 0)])
    return pixels.reshape(size, size, 4).astype(np.uint8)


def colours(shares: Array) -> NDArray[np.uint8]:
    """Return the colours (k, 3) of shares (k,) from 0 to 1."""
    places = np.linspace(0.0, 1.0, len(ANCHORS))
    return np.column_stack([np.interp(shares, places, channel) for channel in ANCHORS.T]).astype(np.uint8)


def legend(sentence: str) -> str:
    """Return the scale of colours with a sentence, as HTML."""
    stops = ', '.join(f'rgb({r}, {g}, {b})' for r, g, b in ANCHORS.tolist())
    bar = f'<div style="height:0.7em;border-radius:0.2em;background:linear-gradient(90deg, {stops})"></div>'
    ends = panel.row('0 %', '100 %')
    return panel.box(bar + ends + panel.paragraph(sentence, faint=True))


DOT = 0.1  # size of a point, in cells: so small that the arm is seen among them


class Map(NamedTuple):
    """The shares (k,) of directions that are possible in cells, NaN out of reach."""

    cells: Grid | Cube
    shares: Array


class MapPicture:
    """What is drawn; nothing at first."""

    def __init__(self, server: viser.ViserServer) -> None:
        self._server = server
        self._base: viser.FrameHandle | None = None
        self._drawn: viser.ImageHandle | viser.PointCloudHandle | None = None

    def draw(self, found: Map, least: float, T_root_base: Array) -> None:
        """Draw a map in place of the last one; least: share below which a point in space is left out."""
        if self._base is None:
            self._base = self._server.scene.add_frame('/map', show_axes=False)
        move(self._base, T_root_base)
        if isinstance(found.cells, Grid):
            self._draw_plane(found.cells, found.shares)
        else:
            self._draw_points(found.cells, found.shares, least)

    def _draw_plane(self, grid: Grid, shares: Array) -> None:
        pixels = image(shares, grid.size)
        if isinstance(self._drawn, viser.ImageHandle):
            self._drawn.image = pixels
        else:
            self._clear()
            self._drawn = self._server.scene.add_image(
                '/map/plane',
                pixels,
                grid.width,
                grid.width,
                format='png',
                cast_shadow=False,
                receive_shadow=False,
            )
        move(self._drawn, grid.pose)

    def _draw_points(self, cube: Cube, shares: Array, least: float) -> None:
        shown = shares >= least  # not NaN
        self._clear()
        self._drawn = self._server.scene.add_point_cloud(
            '/map/points',
            cube.places[shown].astype(np.float32),
            colours(shares[shown]),
            point_size=DOT * cube.cell,
            point_shape='circle',
        )

    def _clear(self) -> None:
        if self._drawn is not None:
            self._drawn.remove()
        self._drawn = None

    def remove(self) -> None:
        """Remove what is drawn."""
        if self._base is not None:
            self._base.remove()
        self.forget()

    def forget(self) -> None:
        """The scene was cleared."""
        self._base = self._drawn = None


ORDER = 0.95e6  # of the folder: below the solutions
AT_TOOL, THROUGH_TOOL, AT_HEIGHT, WHOLE = PLANES = (
    'horizontal, at the tool',
    'vertical, through the tool',
    'horizontal, at a height',
    'the whole workspace',
)
WORDS = 'Share of the directions of the tool axis that are possible at a position. Self-collision is ignored.'


class Wanted(NamedTuple):
    """What users want to see; height [m] for AT_HEIGHT."""

    plane: str
    height: float


class ReachPanel:
    """The controls in the folder of a section."""

    def __init__(self, section: Section) -> None:
        gui = section.gui
        with section.folder:
            self._show = gui.add_checkbox('Show a map', False, hint='A map of the workspace in the scene.')
            self._plane = gui.add_dropdown('Where', PLANES, visible=False)
            self._height = gui.add_slider('Height (mm)', -1000.0, 1000.0, 1.0, 0.0, visible=False)
            self._least = gui.add_slider(
                'At least (%)', 0, 100, 1, 0, hint='Hides positions with fewer directions.', visible=False
            )
            self._legend = gui.add_html(legend(WORDS), visible=False)

    @property
    def wanted(self) -> Wanted | None:
        """What users want to see, None for nothing."""
        if not self._show.value:
            return None
        return Wanted(self._plane.value, 1e-3 * self._height.value)

    @property
    def least(self) -> float:
        """The least share of directions for which a position of the whole workspace is shown."""
        return float(self._least.value) / 100.0

    def set_range(self, low: float, high: float) -> None:
        """Set the heights [m] that can be chosen."""
        self._height.min, self._height.max = round(1e3 * low), round(1e3 * high)
        self._height.value = min(max(self._height.value, self._height.min), self._height.max)  # type: ignore[misc]

    def show_controls(self) -> None:
        """Show what belongs to the present choice."""
        on = self._show.value
        for control, visible in (
            (self._plane, on),
            (self._height, on and self._plane.value == AT_HEIGHT),
            (self._least, on and self._plane.value == WHOLE),
            (self._legend, on),
        ):
            update(control, visible=visible)


SIZES = (12, 24, 48)  # cells in a row, one after the other; half as many of the whole workspace
DIRECTIONS = 60
WITHIN = 0.25  # [rad] of a direction within which it counts as possible
REST = 0.4  # [s] without a change after which a map is computed
MOVED = 0.01  # [m] of the tool after which another one is
PATIENCE = 2.0  # [s] without a frame, as without a page, after which a computation ends
GIVEN_UP = 'given up'  # the result of such a one


class ReachMap(Section):
    """Computes on one core in a thread of its own."""

    def __init__(self, page: Page) -> None:
        super().__init__(page, 'Reach', ORDER)
        self._panel = ReachPanel(self)
        self._picture = MapPicture(self.server)
        self._found: Map | None = None
        self._least = 0.0  # share of directions, of the points that are shown
        self._worker: Worker[Map | str] = Worker(self.events, 'reach map')
        self._arm: Arm | None = None
        self._redraw = False  # another map was found
        self._alive = 0.0  # when the last frame was (steady)
        self._run = 0  # of the computation that counts
        self._asked: tuple[Wanted, Array] | None = None  # of the newest map, and where the tool was
        self._level = 0  # of SIZES, that is computed next
        self._changed = 0.0  # when what is wanted last changed (steady)

    def show(self, robot: RobotView | None) -> None:
        """Show another robot, after the scene was cleared, or none."""
        super().show(robot)
        self._arm = None
        self._picture.forget()
        self._end()

    def update(self, frame: Frame) -> None:
        """Begin another map if one is wanted, and draw what there is."""
        self._panel.show_controls()
        self._alive = now = steady()
        wanted = self._panel.wanted
        if wanted is None or self.robot is None or not frame.values:
            self._remove()
            return
        arm = frame.tool.arm
        if arm is None:
            return
        if arm is not self._arm:
            self._remove()
            self._arm = arm
            base = float(arm.joints[0, 5])
            self._panel.set_range(base - arm.reach, base + arm.reach)
        q = np.array([frame.values.get(name, 0.0) for name in arm.joint_names])
        point = arm.fk(q)[0]
        if self._is_new(wanted, point):
            self._end()
            self._asked, self._changed = (wanted, point), now
        least = self._panel.least
        if self._found is not None and (self._redraw or least != self._least):
            self._picture.draw(self._found, least, arm.robot.link_pose(arm.base_link, frame.values))
        self._least, self._redraw = least, False
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

        self._worker.submit(lambda: computed(arm, cells, wanted_still) or GIVEN_UP, self._take)

    def _take(self, found: Map | str) -> None:
        if isinstance(found, str):
            self._run = 0  # to be computed again
        else:
            self._found, self._redraw = found, True
            self._level += 1

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
