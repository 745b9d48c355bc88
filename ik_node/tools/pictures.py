# SPDX-License-Identifier: Apache-2.0
"""Pictures of ik_reach and ik_place, by matplotlib, which takes a second to load."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator, PercentFormatter

from ik_node.checks import Array
from ik_node.model.arm import Arm
from ik_node.tools.slices import Slice, planes_of

from .placement import (
    COARSE_STARTS,
    Placement,
    PlacementSearch,
    Region,
)
from .reach_volume import Volume

NOTHING = '#eeeeee'  # out of reach
ARM = '#d62728'


def draw(arm: Arm, slices: Sequence[Slice], shares: Array, within: float) -> Figure:
    """Draw slices side by side; shares (N,) of directions at all their positions, NaN out of reach."""
    widths = [len(plane.across_values) for plane in slices]
    figure = Figure(figsize=(13, 6.8), layout='constrained')
    axes = figure.subplots(1, len(slices), gridspec_kw={'width_ratios': widths})
    figure.suptitle(
        f'{arm.name}: tool point of {arm.tip_link}, tool axis '
        f'({", ".join(f"{value:g}" for value in arm.tool_axis)}), {arm.effective_dof} effective DoF',
        fontweight='bold',
    )
    reached = shares[~np.isnan(shares)]
    # On the axis of joint 1 an arm may take all directions, elsewhere few: single positions set no scale.
    vmax = max(min(reached.max(), 2 * np.percentile(reached, 90)), 0.01) if len(reached) else 1.0
    at = 0
    for plane, panel in zip(slices, axes, strict=True):
        shape = len(plane.up_values), len(plane.across_values)
        values = shares[at : at + shape[0] * shape[1]].reshape(shape)
        at += values.size
        mesh = draw_slice(panel, arm, plane, values, vmax)
        panel.set_title(plane.name)
    figure.legend(
        handles=[*axes[0].get_legend_handles_labels()[0], Patch(color=NOTHING, label='out of reach')],
        loc='outside lower center',
        ncols=3,
        frameon=False,
    )
    figure.colorbar(
        mesh,
        ax=axes,
        shrink=0.85,
        extend='max' if len(reached) and reached.max() > vmax else 'neither',
        format=PercentFormatter(1.0, decimals=0 if vmax > 0.06 else 1),
        label=f'share of all directions that the tool axis can take (within {math.degrees(within):g}°)',
    )
    return figure


def draw_volume(arm: Arm, volume: Volume, height: float | None, within: float) -> Figure:
    """Draw all values in the planes of slices_of, each at the nearest positions of the volume.

    height [m]: of the horizontal plane, None: that of joint 2. within [rad]: as surveyed.
    """
    titles = [
        (volume.share, f'share of all directions (within {math.degrees(within):g}°)'),
        (volume.to_limits, 'distance to the joint limits [rad]'),
        (volume.singular, 'least singular value'),
    ]
    if volume.solutions is not None:
        titles.append((volume.solutions, 'number of solutions'))
    figure = Figure(figsize=(13, 6 * len(titles)), layout='constrained')
    figure.suptitle(f'{arm.name}: reach of the tool point of {arm.tip_link}', fontweight='bold')
    axes = volume.x, volume.y, volume.z
    planes = planes_of(arm, height)
    for row, (values, title) in zip(figure.subplots(len(titles), len(planes)), titles, strict=True):
        known = values[np.isfinite(values)]
        # At few positions, such as on the axis of joint 1, values may be far above all others.
        vmax = max(float(np.percentile(known, 99)), 1e-6) if len(known) else 1.0
        for panel, (across, up, level) in zip(row, planes, strict=True):
            third = 3 - across - up
            nearest = int(np.abs(axes[third] - level).argmin())
            plane = Slice(across, up, axes[across], axes[up], float(axes[third][nearest]))
            at: Array = np.moveaxis(values, (up, across, third), (0, 1, 2))[:, :, nearest]
            mesh = draw_slice(panel, arm, plane, at, vmax)
            panel.set_title(plane.name)
        above = 'max' if len(known) and known.max() > vmax else 'neither'
        figure.colorbar(mesh, ax=row, extend=above, label=title)
    return figure


def draw_slice(panel, arm: Arm, plane: Slice, values: Array, vmax: float):  # type: ignore[no-untyped-def]  # matplotlib has no types
    """Draw values (b, a) of a slice in colours up to vmax, grey for NaN, and the arm; return the mesh."""
    mesh = panel.pcolormesh(
        plane.across_values,
        plane.up_values,
        np.ma.masked_invalid(values),
        shading='nearest',
        cmap='viridis',
        vmin=0.0,
        vmax=vmax,
        rasterized=True,
    )
    _draw_arm(panel, arm, plane)
    panel.set_xlabel(f'{"xyz"[plane.across]} [m]')
    panel.set_ylabel(f'{"xyz"[plane.up]} [m]')
    panel.set_aspect('equal')
    panel.set_facecolor(NOTHING)
    return mesh


def _draw_arm(panel, arm: Arm, plane: Slice) -> None:  # type: ignore[no-untyped-def]  # matplotlib has no types
    """Draw the arm in its mid-range configuration as a line through its joints, seen along the third axis."""
    points = arm.skeleton(arm.middle)[:, [plane.across, plane.up]]
    panel.plot(*points.T, '-o', color=ARM, linewidth=2.5, markersize=5, alpha=0.8, label='arm, mid-range')
    panel.plot(*points[-1], 'o', color='white', markeredgecolor=ARM, markersize=6, label='tool point')


BASE = '#d62728'
MET, UNMET = '#1f77b4', '#888888'
ARROW = 0.06  # share of the region: length of the arrow for the base's x axis
ACROSS, TURNS = 32, 16  # positions along the larger side of the map, attitudes at each
MAX_ARMS = 30  # configurations in a picture
VIEWS = (('from above', 0, 1), ('from the side', 0, 2), ('from the front', 1, 2))


def draw_region(
    arm: Arm, region: Region, search: PlacementSearch, best: Sequence[Placement], positions: Array
) -> Figure:
    """Draw from above: how many goals are met at the best height and angle, and the best placements."""
    figure = Figure(figsize=(8, 6.8), layout='constrained')
    panel = figure.subplots()
    figure.suptitle(f'{arm.name}: where the base may be', fontweight='bold')
    if (region.size[:2] > 0.0).all() and np.array_equal(region.axes, np.eye(3)):
        x, y, met = _map(region, search)
        mesh = panel.pcolormesh(x, y, met, shading='nearest', cmap='viridis', vmin=0, vmax=len(positions))
        figure.colorbar(
            mesh,
            ax=panel,
            shrink=0.85,
            ticks=MaxNLocator(integer=True),
            label='goals that are met, at the best height and angle',
        )
    else:
        ends = region.origin + np.array([region.lower[:3], region.upper[:3]]) @ region.axes.T
        panel.plot(*ends[:, :2].T, '-', color='black', linewidth=3, alpha=0.4, label='the base may be here')
    panel.plot(*positions[:, :2].T, 'X', color='white', markeredgecolor='black', markersize=7, label='goals')
    low, high = panel.get_xlim(), panel.get_ylim()
    length = ARROW * max(low[1] - low[0], high[1] - high[0])
    for rank, one in enumerate(best, 1):
        u, v = one.position[:2]
        panel.annotate(
            '',
            (u + length * one.R[0, 0], v + length * one.R[1, 0]),
            (u, v),
            arrowprops={'arrowstyle': '->', 'color': BASE, 'lw': 1.5},
        )
        label = 'best placements, arrow: x axis of the base' if rank == 1 else None
        panel.plot(u, v, 'o', color=BASE, markersize=5, label=label)
        panel.annotate(str(rank), (u, v), (3, 3), textcoords='offset points', color=BASE, fontweight='bold')
    panel.set_xlabel('x [m]')
    panel.set_ylabel('y [m]')
    panel.set_aspect('equal')
    figure.legend(loc='outside lower center', ncols=3, frameon=False)
    return figure


def _map(region: Region, search: PlacementSearch) -> tuple[Array, Array, Array]:
    """Return positions along x and y, and how many goals are met there at the best of some attitudes."""
    step = region.size[:2].max() / ACROSS
    x, y = (
        np.linspace(low, high, max(2, round((high - low) / step) + 1))
        for low, high in zip(region.lower[:2], region.upper[:2], strict=True)
    )
    flat = np.array([*region.lower[:2], *region.upper[:2]])
    turned = replace(
        region,
        lower=np.concatenate([flat[:2], region.lower[2:]]),
        upper=np.concatenate([flat[:2], region.upper[2:]]),
    ).spread(TURNS)
    bases = np.tile(turned, (len(x) * len(y), 1))
    bases[:, :2] = np.repeat(np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2), TURNS, axis=0)
    unmet = search.judged(bases, COARSE_STARTS).unmet.reshape(len(y), len(x), TURNS)
    return x, y, search.count - unmet.min(axis=2)


def draw_placement(arm: Arm, rank: int, placement: Placement, positions: Array) -> Figure:
    """Draw the arm at its goals, seen along three axes of the frame of the goals."""
    figure = Figure(figsize=(13, 5), layout='constrained')
    met = [row for row in range(len(positions)) if row not in set(placement.unmet)]
    figure.suptitle(f'{arm.name}, placement {rank}: {len(met)} of {len(positions)} goals met', fontweight='bold')
    some = met[:: max(1, -(-len(met) // MAX_ARMS))]
    lines = [placement.position + arm.skeleton(placement.joints[row]) @ placement.R.T for row in some]
    for panel, (title, across, up) in zip(figure.subplots(1, 3), VIEWS, strict=True):
        for k, line in enumerate(lines):
            points = np.vstack([placement.position, line])[:, [across, up]]
            label = 'arm at a goal' if k == 0 else None
            panel.plot(*points.T, '-o', color=MET, markersize=2.5, linewidth=1.2, alpha=0.5, label=label)
        for rows, colour, label in ((met, MET, 'goal met'), (list(placement.unmet), UNMET, 'goal not met')):
            if rows:
                at = positions[rows][:, [across, up]]
                panel.plot(*at.T, 'X', color=colour, markeredgecolor='black', markersize=8, label=label)
        panel.plot(*placement.position[[across, up]], 's', color=BASE, markersize=8, label='base')
        panel.set_title(title)
        panel.set_xlabel(f'{"xyz"[across]} [m]')
        panel.set_ylabel(f'{"xyz"[up]} [m]')
        panel.set_aspect('equal', adjustable='datalim')
        panel.grid(alpha=0.3)
    handles = figure.axes[0].get_legend_handles_labels()
    figure.legend(*handles, loc='outside lower center', ncols=4, frameon=False)
    return figure
