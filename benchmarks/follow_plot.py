# SPDX-License-Identifier: Apache-2.0
"""How far behind and beside a moving goal the tool is, by its speed: docs/explanation/following.png."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np

from benchmarks.arms import ROOT, Task
from benchmarks.follow import PERIOD, SEED_PLACE, joints_along, judged, packages
from benchmarks.tables import heading
from ik_node.tracks.curves import TRACKS, Track

mpl.use('agg')
from matplotlib import pyplot

FILE = ROOT / 'docs' / 'explanation' / 'following.png'
STEP = 1.06  # between two speeds
SPEEDS = 0.05 * STEP ** np.arange(52)  # [m/s]
ROWS = {'behind [mm]': 0, 'off the curve [mm]': 2}  # of what judged returns, each with the worst after it


def run(tasks: list[Task], scale: float) -> None:
    """Draw the distances of the tool of the seed arm along each curve."""
    task = next(task for task in tasks if task.name == 'seed_arm')
    speeds = SPEEDS[:: max(1, round(1.0 / scale))]
    heading('Moving goals, plotted', f'{FILE.name}: the seed arm, medians (lines) and worst (dotted).')
    modes = packages()
    figure, axes = pyplot.subplots(len(ROWS), len(TRACKS), figsize=(14, 6), sharex=True, squeeze=False)
    for curve, column in zip(TRACKS, axes.T, strict=True):
        tracks = [
            Track(curve, SEED_PLACE.centre, SEED_PLACE.size, float(speed), SEED_PLACE.direction)
            for speed in speeds
        ]
        for mode, package in modes.items():
            found = joints_along(task, tracks, SEED_PLACE, mode != 'places', package)
            rows = np.array(
                [
                    judged(task, track, PERIOD * np.arange(1, len(joints) + 1), np.array(joints))
                    for track, joints in zip(tracks, found, strict=True)
                ]
            )
            for (title, row), axis in zip(ROWS.items(), column, strict=True):
                line = axis.semilogx(speeds, rows[:, row], label=mode)[0]
                axis.semilogx(speeds, rows[:, row + 1], ':', color=line.get_color(), linewidth=0.8)
                axis.set_ylabel(title)
                axis.grid(visible=True, alpha=0.3)
        column[0].set_title(curve)
        column[-1].set_xlabel('speed of the goal [m/s]')
    axes[0, 0].legend()
    figure.tight_layout()
    figure.savefig(FILE, dpi=80)
    print(f'wrote {FILE.relative_to(ROOT)}')
