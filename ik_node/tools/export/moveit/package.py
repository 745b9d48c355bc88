# SPDX-License-Identifier: Apache-2.0
"""One arm as a package with a kinematics plugin of MoveIt, around its header."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

from ik_node.checks import Array
from ik_node.errors import InputError, path_text
from ik_node.kernels.arrays import AXIS, C1, D0, P0, W1, U
from ik_node.model.arm import Arm
from ik_node.solver.closed_form import Family, recognise
from ik_node.solver.spare_roll import spare_roll

from ..header import arm_header, filled

TEMPLATES = Path(__file__).parent
PLACES = {  # of templates: folders of the package
    'CMakeLists.txt': '',
    'README.md': '',
    'package.xml': '',
    'plugin.xml': '',
    'kinematics.yaml': 'config',
    'answers.hpp': 'src',
    'plugin.cpp': 'src',
}


def add_moveit(group: argparse._ArgumentGroup) -> None:
    """Add the option of a package for MoveIt."""
    group.add_argument(
        '--moveit',
        metavar='FOLDER',
        help='write an ament_cmake package NAME_kinematics with a kinematics plugin of MoveIt',
    )


def moveit_files(arm: Arm, name: str, arguments: argparse.Namespace) -> dict[Path, str]:
    """Return the files of the package that the arguments ask for. Raises InputError."""
    folder = Path(arguments.moveit)
    if folder.exists() and not folder.is_dir():
        raise InputError(f'--moveit: "{path_text(folder)}" must be a folder')
    return {folder / place: text for place, text in moveit_package(arm, name).items()}


def moveit_package(arm: Arm, name: str) -> dict[str, str]:
    """Return the files of the package by their places in it. name: what identifier returns.

    Raises InputError for an arm that is not supported.
    """
    if np.any(arm.tool_point):
        raise InputError('--tool-point: MoveIt solves for the tip link: add a link at the tool point to the URDF')
    values = {'package': f'{name}_kinematics', **_values(arm)}
    files = {f'include/{name}_ik.h': arm_header(arm, name)}
    for template, place in PLACES.items():
        files[Path(place, template).as_posix()] = filled(TEMPLATES / template, name, 'double', values)
    return files


def _values(arm: Arm) -> dict[str, str]:
    """Return what the templates say of the arm, beyond its header."""
    roll = spare_roll(arm)
    sign = float(np.sign(arm.joints[-1, AXIS] @ arm.tool[3:6])) if roll >= 0 else 0.0
    form = recognise(arm)
    planar = form is not None and form.family is Family.PARALLEL_ROLL
    rows = form.constants if form is not None and planar else np.zeros((14, 3))
    return {
        'base': json.dumps(arm.base_link),  # strings of JSON are strings of C++, too
        'tip': json.dumps(arm.tip_link),
        'joints': ', '.join(map(json.dumps, arm.joint_names)),
        'tool_axis': _axis_text(arm.tool_axis),
        'roll_joint': str(roll),
        'roll_sign': repr(sign),
        'planar': str(planar).lower(),
        'axis': _numbers(rows[W1]),
        'point': _numbers(rows[C1]),
        'normal': _numbers(rows[U]),
        'height': repr(float((rows[P0] - rows[C1]) @ rows[U])),
        'slope': repr(float(rows[D0] @ rows[U])),
    }


def _numbers(vector: Array) -> str:
    return ', '.join(repr(float(value)) for value in vector)


def _axis_text(axis: Array) -> str:
    for sign, minus in ((1.0, ''), (-1.0, '-')):
        for k, name in enumerate('xyz'):
            if np.array_equal(axis, sign * np.eye(3)[k]):
                return minus + name
    return f'({_numbers(axis)})'
