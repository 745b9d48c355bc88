# SPDX-License-Identifier: Apache-2.0
"""The plots of ik_reach, with and without --volume."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import PercentFormatter

from ik_node.checks import Array
from ik_node.cli.slices import Slice, planes_of
from ik_node.model.arm import Arm
from ik_node.reach.volume import Volume

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
    most = max(min(reached.max(), 2 * np.percentile(reached, 90)), 0.01) if len(reached) else 1.0
    at = 0
    for plane, panel in zip(slices, axes, strict=True):
        shape = len(plane.up_values), len(plane.across_values)
        values = shares[at : at + shape[0] * shape[1]].reshape(shape)
        at += values.size
        mesh = draw_slice(panel, arm, plane, values, most)
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
        extend='max' if len(reached) and reached.max() > most else 'neither',
        format=PercentFormatter(1.0, decimals=0 if most > 0.06 else 1),
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
        most = max(float(np.percentile(known, 99)), 1e-6) if len(known) else 1.0
        for panel, (across, up, level) in zip(row, planes, strict=True):
            third = 3 - across - up
            nearest = int(np.abs(axes[third] - level).argmin())
            plane = Slice(across, up, axes[across], axes[up], float(axes[third][nearest]))
            at: Array = np.moveaxis(values, (up, across, third), (0, 1, 2))[:, :, nearest]
            mesh = draw_slice(panel, arm, plane, at, most)
            panel.set_title(plane.name)
        above = 'max' if len(known) and known.max() > most else 'neither'
        figure.colorbar(mesh, ax=row, extend=above, label=title)
    return figure


def draw_slice(panel, arm: Arm, plane: Slice, values: Array, most: float):  # type: ignore[no-untyped-def]  # matplotlib has no types
    """Draw values (b, a) of a slice in colours up to most, grey for NaN, and the arm; return the mesh."""
    mesh = panel.pcolormesh(
        plane.across_values,
        plane.up_values,
        np.ma.masked_invalid(values),
        shading='nearest',
        cmap='viridis',
        vmin=0.0,
        vmax=most,
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
