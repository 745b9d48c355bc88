# SPDX-License-Identifier: Apache-2.0
"""The sheet on which the arm stands: where its crosses are, and the outline of the base, as a PDF to print."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ik_node.checks import Array
from ik_node.errors import InputError
from ik_node.model.arm import Arm
from ik_node.model.urdf.elements import Reading, named, parse_xml
from ik_node.tools.export.shapes import place_of, shape_of

from .estimator import ANYWHERE, ON_OUTLINE, TouchModel
from .poses import FEW_SEEDS, Poses

PAPERS = {'A4': (0.297, 0.210), 'Letter': (0.2794, 0.2159)}  # [m] length and width; x of the sheet is along its length
EDGE = 0.02  # [m] that crosses keep from the edges of the paper, which printers leave white
FREE = 0.03  # [m] from the base to the first crosses
ON_PAPER = 0.05  # [m] of the base, if the crosses can be touched then
FOOT = 0.01  # [m] above the table: what of the base is lower counts for its outline
SHIFTS = np.arange(0.0, 0.31, 0.05)  # [m] of the paper away from the base, for arms that cannot touch so near to it
ENOUGH = 3  # poses at each cross
BAR = 0.2  # [m]
WORST_SCALE = 0.02  # beyond it the print is rejected
MM = 1e-3


@dataclass(frozen=True)
class Sheet:
    """A printed sheet. Its frame is in the middle of the paper, x away from the base, z up.

    places (c, 3) [m]: crosses. pose (4, 4): of the frame in that of the base. paper: one of PAPERS. outlined: the
    outline of the base is on it, and says where the base stands. outline (k, 2) [m]: to draw, in the sheet's frame.
    """

    places: Array
    pose: Array
    paper: str = 'A4'
    outlined: bool = False
    outline: Array = field(default_factory=lambda: np.empty((0, 2)))

    @property
    def known(self) -> tuple[float, ...]:
        """Deviations of the pose, see TouchModel."""
        return ON_OUTLINE if self.outlined else ANYWHERE

    def model(self, arm: Arm, bar: float = BAR) -> TouchModel:
        """Return the model of touches by an arm; bar [m]: what the bar measures. Raises InputError beyond 2 %."""
        scale = bar / BAR
        if not abs(scale - 1.0) <= WORST_SCALE:
            raise InputError(
                f'the bar measures {bar / MM:.4g} mm instead of {BAR / MM:.0f} mm: print the sheet at 100 %, without '
                '"fit to page"'
            )
        pose = self.pose.copy()
        if self.outlined:  # the base stands on the outline, at this edge: it stays, and the middle moves
            pose[:3, 3] += (scale - 1.0) * (0.5 * PAPERS[self.paper][0] - EDGE) * pose[:3, 0]
        return TouchModel(arm, self.places * scale, pose, self.known)

    @classmethod
    def of(cls, arm: Arm, text: str = '', mesh_path: str = '', paper: str = 'A4') -> Sheet:
        """Return the sheet for an arm on a table: the nearest to the base of which all crosses can be touched.

        text: of the URDF, for the outline; mesh_path: as for find_mesh. Raises InputError if there is none.
        """
        outline, floor = outline_of(arm, text, mesh_path) if text else (np.empty((0, 2)), 0.0)
        length, width = PAPERS[paper]
        best: tuple[int, Sheet] | None = None
        for shift in SHIFTS:
            for quarter in range(4):  # the arm may work to any side of its base
                forward = np.round([math.cos(0.5 * math.pi * quarter), math.sin(0.5 * math.pi * quarter)])
                front = float((outline @ forward).max(initial=0.0)) if len(outline) else ON_PAPER
                near = front - ON_PAPER + shift
                pose = np.eye(4)
                pose[:2, :2] = np.column_stack([forward, [-forward[1], forward[0]]])
                pose[:3, 3] = [*(forward * (near + 0.5 * length)), floor]
                first = max(front + FREE, near + EDGE) - near - 0.5 * length
                x, y = np.linspace(first, 0.5 * length - EDGE, 3), 0.5 * width - EDGE
                places = np.array([[one, side, 0.0] for one in x for side in (-y, y)])
                local = (outline - pose[:2, 3]) @ pose[:2, :2]
                printed = (np.abs(local) < 0.5 * np.array([length, width]) - 0.5 * EDGE).all(axis=1)
                sheet = cls(places, pose, paper, bool(printed.sum() >= 2), local)
                try:
                    poses = Poses(TouchModel(arm, places, pose), FEW_SEEDS)
                except InputError:
                    continue
                least = int(np.bincount(poses.crosses, minlength=len(places)).min())
                if best is None or least > best[0]:
                    best = least, sheet
            if best is not None and best[0] >= ENOUGH:
                break
        if best is None:
            raise InputError(f'{arm.name} can touch no sheet of {paper} on the plane of its base')
        return best[1]

    def draw(self, path: Path, title: str) -> None:
        """Write the PDF."""
        from matplotlib.figure import Figure  # takes a second to load

        length, width = PAPERS[self.paper]
        figure = Figure(figsize=(width / 0.0254, length / 0.0254))  # portrait: x of the sheet is up
        page: Any = figure.add_axes((0.0, 0.0, 1.0, 1.0))
        page.set(xlim=(0.5 * width, -0.5 * width), ylim=(-0.5 * length, 0.5 * length))
        page.axis('off')
        for number, (x, y, _) in enumerate(self.places, 1):
            page.plot([y - 0.008, y + 0.008], [x, x], color='black', linewidth=0.5)
            page.plot([y, y], [x - 0.008, x + 0.008], color='black', linewidth=0.5)
            page.annotate(str(number), (y, x), (7, 7), textcoords='offset points', fontsize=12)
        if len(self.outline):
            closed = np.vstack([self.outline, self.outline[:1]])
            page.plot(closed[:, 1], closed[:, 0], color='black', linewidth=1.0)
        low, high = 0.5 * length - EDGE - BAR, 0.5 * length - EDGE
        page.plot([0.0, 0.0], [low, high], color='black', linewidth=0.8)
        for end in (low, high):
            page.plot([-0.004, 0.004], [end, end], color='black', linewidth=0.8)
        words = 'print at 100 %; this bar must measure 200.0 mm'
        page.text(0.002, high - 0.5 * BAR, words, rotation=90, fontsize=8, va='center', ha='right')
        page.text(-0.002, high - 0.5 * BAR, title, rotation=90, fontsize=8, va='center', ha='left')
        figure.savefig(path, format='pdf')


def outline_of(arm: Arm, text: str, mesh_path: str) -> tuple[Array, float]:
    """Return the convex outline (k, 2) [m] of what stands on the table, in the base frame, and the table's z [m].

    Of the links that no joint moves against the base link; empty, and the base's own plane, if none is shown.
    """
    import trimesh  # takes half a second to load
    from scipy.spatial import ConvexHull, QhullError

    def moving(link: str) -> list[str]:
        return [joint.name for joint in arm.robot.path(link) if joint.movable]

    corners = []
    for link, element in named(parse_xml(text, Reading()), 'link').items():
        if moving(link) != moving(arm.base_link):
            continue  # of this arm, or of another one
        _, place = place_of(arm, link)
        for visual in element.findall('visual') or element.findall('collision'):
            try:
                shape, mesh = shape_of(visual, {}, mesh_path)
            except Exception:  # a mesh that is missing or cannot be read shows no outline
                continue
            if mesh is not None:
                points = mesh[0]
            elif shape['kind'] == 'box':
                points = trimesh.creation.box(shape['size']).vertices
            elif shape['kind'] == 'cylinder':
                points = trimesh.creation.cylinder(*shape['size']).vertices
            else:
                continue  # a sphere stands on a point
            pose = place @ shape['pose']
            corners.append(points @ pose[:3, :3].T + pose[:3, 3])
    points = np.vstack(corners) if corners else np.empty((0, 3))
    floor = float(points[:, 2].min(initial=0.0)) if len(points) else 0.0
    feet = points[points[:, 2] < floor + FOOT, :2]
    try:
        return feet[ConvexHull(feet).vertices], floor
    except (QhullError, ValueError):
        return np.empty((0, 2)), floor
