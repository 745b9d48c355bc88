# SPDX-License-Identifier: Apache-2.0
"""ik_reach --volume: the whole workspace as one file, with slices of it as a picture."""

from __future__ import annotations

import argparse

import numpy as np

from ik_node.cli.lattice import lattice
from ik_node.cli.progress_bar import ProgressBar
from ik_node.cli.self_collision import clearance_of
from ik_node.cli.whole_files import write_whole
from ik_node.console import say
from ik_node.model.arm import Arm
from ik_node.reach.file import as_netcdf
from ik_node.reach.survey import Survey
from ik_node.reach.volume import surveyed


def survey_workspace(arm: Arm, arguments: argparse.Namespace, within: float, output: str) -> int:
    """Write output.nc and output.png; return the exit code. arguments: of ik_reach. within [rad]."""
    from ik_node.cli.volume_picture import draw_volume  # matplotlib takes a second to load

    x, y, z = lattice(arm, arguments.resolution)
    say(arm.describe())
    clearance, note = clearance_of(arguments.description_file, arm)
    say(note)
    survey = Survey(arm, arguments.directions, within, clearance, arguments.solutions)
    with ProgressBar(len(x) * len(y) * len(z), 'positions') as progress:
        volume = surveyed(survey, x, y, z, arguments.tolerance, progress.add)
    content = as_netcdf(volume, arm, arguments.directions, within, clearance is not None)
    write_whole(f'{output}.nc', lambda file: file.write(content))
    figure = draw_volume(arm, volume, arguments.height, within)
    write_whole(f'{output}.png', lambda file: figure.savefig(file, format='png', dpi=110))
    reached = volume.share[~np.isnan(volume.share)]
    average = 100.0 * reached.mean() if len(reached) else 0.0
    count = int(volume.surveyed.sum())
    between = '' if count == volume.share.size else f', {count} of them surveyed and the others interpolated'
    say(
        f'{volume.share.size} positions, {1e3 * (x[1] - x[0]):g} mm apart{between}: {len(reached)} reached, '
        f'{average:.1f} % of all directions on average'
    )
    say(f'wrote {output}.nc and {output}.png')
    return 0
