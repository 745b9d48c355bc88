# SPDX-License-Identifier: Apache-2.0
"""Volumes as NetCDF files, which xarray and many other programs open."""

from __future__ import annotations

from importlib.metadata import version
from io import BytesIO
from typing import Any

import numpy as np

from ik_node.checks import Array
from ik_node.extras import load
from ik_node.model.arm import Arm
from ik_node.reach.volume import Volume

AXES = 'z', 'y', 'x'


def as_netcdf(
    volume: Volume, arm: Arm, directions: int, within: float, self_collision: bool = False
) -> bytes:
    """Return the volume of an arm as a NetCDF 3 file with the axes z, y, x, as the CF conventions recommend.

    directions: how many were tried at each position. within [rad]: of the tool axis, for a direction to
    count. self_collision: whether it was checked. Raises MissingError without scipy.
    """
    netcdf = load('scipy.io', 'ik_reach --volume')
    content = BytesIO()
    with netcdf.netcdf_file(content, 'w', version=2) as out:
        for name, value in _attributes(arm, directions, within, self_collision).items():
            setattr(out, name, value.encode() if isinstance(value, str) else value)  # else only ASCII
        for name, positions in (('x', volume.x), ('y', volume.y), ('z', volume.z)):
            out.createDimension(name, len(positions))
            _add(out, name, 'f8', (name,), positions, 'm', f'{name} in the base frame')
        for name, (values, unit, said) in _values(volume).items():
            _add(out, name, 'f4', AXES, values.T, unit, said)
        _add(out, 'surveyed', 'i1', AXES, volume.surveyed.T, '1', '0 where the values are interpolated')
        out.flush()
        return content.getvalue()  # closed at the end of this block


def _values(volume: Volume) -> dict[str, tuple[Array, str, str]]:
    """Return values, units and long names of the variables."""
    found = {
        'share': (volume.share, '1', 'share of all directions that the tool axis can take'),
        'to_limits': (
            volume.to_limits,
            'rad',
            'distance to the joint limits (m for prismatic joints), mean over these directions',
        ),
        'least_singular_value': (
            volume.singular,
            '1',
            'least singular value of the Jacobian, lengths in reaches, mean over these directions',
        ),
    }
    if volume.solutions is not None:
        said = 'number of solutions, mean over the directions that are met exactly'
        found['solutions'] = volume.solutions, '1', said
    return found


def _add(out: Any, name: str, kind: str, axes: tuple[str, ...], values: Any, unit: str, said: str) -> None:
    variable = out.createVariable(name, kind, axes)
    variable[:] = values
    variable.units, variable.long_name = unit, said


def _attributes(arm: Arm, directions: int, within: float, self_collision: bool) -> dict[str, Any]:
    return {
        'Conventions': 'CF-1.8',
        'title': f'Reach of {arm.name}',
        'source': f'ik_node {version("ik_node")}',
        'arm': arm.name,
        'base_link': arm.base_link,
        'tip_link': arm.tip_link,
        'tool_axis': np.array(arm.tool_axis),
        'tool_point': np.array(arm.tool_point),
        'joint_names': ' '.join(arm.joint_names),
        'directions': np.int32(directions),
        'within': np.float64(within),  # of a float scipy keeps half
        'self_collision': 'checked' if self_collision else 'not checked',
    }
