# SPDX-License-Identifier: Apache-2.0
"""The plot of ik_place: from above, how many goals are met where the base is."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from ik_node.checks import Array
from ik_node.placement.search import Placement

BASE = '#d62728'
ARROW = 0.06  # share of the region: length of the arrow for yaw


def draw(title: str, coarse: Sequence[Placement], best: Sequence[Placement], positions: Array) -> Figure:
    """Draw the most goals that are met over all heights and angles, the best placements and the goals."""
    most: dict[tuple[float, float], int] = {}
    for one in coarse:
        place = float(one.base[0]), float(one.base[1])
        most[place] = max(most.get(place, 0), len(positions) - len(one.unmet))
    x, y = (sorted({place[k] for place in most}) for k in range(2))
    values = np.array([[most[u, v] for u in x] for v in y])
    figure = Figure(figsize=(8, 6.8), layout='constrained')
    panel = figure.subplots()
    figure.suptitle(title, fontweight='bold')
    mesh = panel.pcolormesh(x, y, values, shading='nearest', cmap='viridis', vmin=0, vmax=len(positions))
    panel.plot(*positions[:, :2].T, 'X', color='white', markeredgecolor='black', markersize=7, label='goals')
    length = ARROW * max(np.ptp([*x, *positions[:, 0]]), np.ptp([*y, *positions[:, 1]]), 1e-9)
    for rank, one in enumerate(best, 1):
        u, v, _, yaw = one.base
        along = length * np.array([np.cos(yaw), np.sin(yaw)])
        panel.annotate(
            '',
            (u + along[0], v + along[1]),
            (u, v),
            arrowprops={'arrowstyle': '->', 'color': BASE, 'lw': 1.5},
        )
        panel.plot(u, v, 'o', color=BASE, markersize=5, label='best placements' if rank == 1 else None)
        panel.annotate(str(rank), (u, v), (3, 3), textcoords='offset points', color=BASE, fontweight='bold')
    panel.set_xlabel('x [m]')
    panel.set_ylabel('y [m]')
    panel.set_aspect('equal')
    figure.legend(loc='outside lower center', ncols=2, frameon=False)
    figure.colorbar(mesh, ax=panel, shrink=0.85, label='goals that are met, at the best height and angle')
    return figure
