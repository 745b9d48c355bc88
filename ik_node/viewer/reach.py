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
    def positions(self) -> Array:
        """The centres (size^2, 3) [m] of the cells, row by row from the top left."""
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
    """Cubic cells [m] whose centres are positions (k, 3) [m] in the base frame."""

    positions: Array
    cell: float


def whole(arm: Arm, size: int) -> Cube:
    """Return size cells along each axis, around the first joint, without those beyond the reach."""
    cell = 2.0 * arm.reach / size
    along = (np.arange(size) + 0.5) * cell - arm.reach
    offsets = np.stack(np.meshgrid(along, along, along, indexing='ij'), axis=-1).reshape(-1, 3)
    return Cube(arm.joints[0, 3:6] + offsets[np.linalg.norm(offsets, axis=1) <= arm.reach], cell)


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
    stops = np.linspace(0.0, 1.0, len(ANCHORS))
    return np.column_stack([np.interp(shares, stops, channel) for channel in ANCHORS.T]).astype(np.uint8)


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

    def draw(self, found: Map, min_share: float, T_root_base: Array) -> None:
        """Draw a map in place of the last one; min_share: below which a point in space is left out."""
        if self._base is None:
            self._base = self._server.scene.add_frame('/map', show_axes=False)
        move(self._base, T_root_base)
        if isinstance(found.cells, Grid):
            self._draw_plane(found.cells, found.shares)
        else:
            self._draw_points(found.cells, found.shares, min_share)

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

    def _draw_points(self, cube: Cube, shares: Array, min_share: float) -> None:
        shown = shares >= min_share  # not NaN
        self._clear()
        self._drawn = self._server.scene.add_point_cloud(
            '/map/points',
            cube.positions[shown].astype(np.float32),
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
LEGEND = 'Share of the directions of the tool axis that are possible at a position. Self-collision is ignored.'


class Choice(NamedTuple):
    """The map that users have chosen; height [m] for AT_HEIGHT."""

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
            self._min_share = gui.add_slider(
                'At least (%)', 0, 100, 1, 0, hint='Hides positions with fewer directions.', visible=False
            )
            self._legend = gui.add_html(legend(LEGEND), visible=False)

    @property
    def choice(self) -> Choice | None:
        """The map that users have chosen, None for none."""
        if not self._show.value:
            return None
        return Choice(self._plane.value, 1e-3 * self._height.value)

    @property
    def min_share(self) -> float:
        """The share of directions below which a position of the whole workspace is not shown."""
        return float(self._min_share.value) / 100.0

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
            (self._min_share, on and self._plane.value == WHOLE),
            (self._legend, on),
        ):
            update(control, visible=visible)


SIZES = (12, 24, 48)  # cells in a row, one after the other; half as many of the whole workspace
DIRECTIONS = 60
WITHIN = 0.25  # [rad] of a direction within which it counts as possible
REST = 0.4  # [s] without a change after which a map is computed
MOVED = 0.01  # [m] of the tool after which another one is
PATIENCE = 2.0  # [s] without a frame, as without a page, after which a computation ends


class ReachMap(Section):
    """Draws maps that one core computes, ever finer ones of SIZES."""

    def __init__(self, page: Page) -> None:
        super().__init__(page, 'Reach', ORDER)
        self._panel = ReachPanel(self)
        self._picture = MapPicture(self.server)
        self._worker: Worker[Map] = Worker(self.events, 'reach map')
        self._arm: Arm | None = None
        self._choice: tuple[Choice, Array] | None = None  # of the map, and the tool point (3,) [m] then
        self._changed = 0.0  # [s], when the choice last changed
        self._sizes: list[int] = []  # of the maps that are still to be computed
        self._computing = False
        self._map: Map | None = None  # the newest one
        self._redraw = False
        self._min_share = 0.0  # of the points that are drawn
        self._last_frame = 0.0  # [s]

    def show(self, robot: RobotView | None) -> None:
        """Show another robot, after the scene was cleared, or none."""
        super().show(robot)
        self._arm = None
        self._picture.forget()
        self._end()

    def update(self, frame: Frame) -> None:
        """Compute another map if users have chosen one, and draw the newest."""
        self._panel.show_controls()
        now = steady()
        if now > self._last_frame + PATIENCE:  # the computation has ended without a result
            self._worker.drop()
            self._computing = False
        self._last_frame = now
        choice = self._panel.choice
        if choice is None or self.robot is None or not frame.values:
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
        point = arm.fk(np.array([frame.values.get(name, 0.0) for name in arm.joint_names]))[0]
        if self._is_new(choice, point):
            self._end()
            self._choice, self._changed, self._sizes = (choice, point), now, list(SIZES)
        min_share = self._panel.min_share
        if self._map is not None and (self._redraw or min_share != self._min_share):
            self._picture.draw(self._map, min_share, arm.robot.link_pose(arm.base_link, frame.values))
        self._min_share, self._redraw = min_share, False
        if self._sizes and not self._computing and now >= self._changed + REST:
            self._compute(arm, choice, point, self._sizes[0])

    def _is_new(self, choice: Choice, point: Array) -> bool:
        if self._choice is None:
            return True
        before, point_before = self._choice
        if choice.plane in (AT_HEIGHT, WHOLE):
            return choice != before
        return choice.plane != before.plane or float(np.linalg.norm(point - point_before)) > MOVED

    def _compute(self, arm: Arm, choice: Choice, point: Array, size: int) -> None:
        self._computing = True
        cells: Grid | Cube
        if choice.plane == WHOLE:
            cells = whole(arm, size // 2)
        elif choice.plane == THROUGH_TOOL:
            cells = vertical(arm, point, size)
        else:
            cells = horizontal(arm, float(point[2]) if choice.plane == AT_TOOL else choice.height, size)
        current = self._choice

        def needed() -> bool:
            return self._choice is current and steady() < self._last_frame + PATIENCE

        self._worker.submit(lambda: computed(arm, cells, needed), self._take)

    def _take(self, found: Map) -> None:
        self._map, self._redraw, self._computing = found, True, False
        self._sizes.pop(0)

    def _end(self) -> None:
        self._worker.drop()
        self._choice, self._map, self._sizes, self._computing = None, None, [], False

    def _remove(self) -> None:
        if self._choice is not None:
            self._end()
        self._picture.remove()

    def close(self) -> None:
        """End the thread."""
        self._end()
        self._worker.close()


def computed(arm: Arm, cells: Grid | Cube, needed: Callable[[], bool]) -> Map | None:
    """Return the map of cells, None as soon as it is no longer needed."""
    shares = np.full(len(cells.positions), np.nan)
    directions = fibonacci_sphere(DIRECTIONS)
    for rows, there, reached in reachable_directions(arm, cells.positions, directions, WITHIN, cores=1):
        shares[rows] = np.where(there, reached.mean(axis=1), np.nan)
        if not needed():
            return None
    return Map(cells, shares)
