# SPDX-License-Identifier: Apache-2.0
"""The plot of ik_reach --volume: slices of its values."""

from __future__ import annotations

import math

import numpy as np
from matplotlib.figure import Figure

from ik_node.checks import Array
from ik_node.cli.reach_picture import draw_slice
from ik_node.cli.slices import Slice, planes_of
from ik_node.model.arm import Arm
from ik_node.reach.volume import Volume


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
