# SPDX-License-Identifier: Apache-2.0
"""Shared by the console scripts: an arm and a goal from the command line."""

from __future__ import annotations

import argparse
import math
import re
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from ik_node.checks import AXES, Array, read_axis
from ik_node.console import say
from ik_node.errors import InputError
from ik_node.model.arm import Arm

XACRO_ARGUMENT = re.compile(r'[A-Za-z_][\w.-]*:=.*', re.DOTALL)
NUMBERS = re.compile(r'-(\d|\.\d|inf|nan)[-+.,\dinfaty]*(e[-+.,\de]*)?', re.IGNORECASE)  # negative, or a list


def tool_axis(text: str) -> tuple[float, float, float]:
    """Read an axis, as an argparse type."""
    try:
        return read_axis('tool_axis', text)
    except InputError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


class PlainParser(argparse.ArgumentParser):
    """Parses -1e-3 as a number; before Python 3.14 argparse parses it as an option.

    takes_xacro_args: words like name:=value are put into the namespace as the mapping xacro_args.
    """

    takes_xacro_args = False

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        given = list(sys.argv[1:] if args is None else args)
        pairs = [word for word in given if self.takes_xacro_args and XACRO_ARGUMENT.fullmatch(word)]
        # Text with a leading space is not an option, and is ignored before a number.
        known, rest = super().parse_known_args(
            [f' {word}' if NUMBERS.fullmatch(word) else word for word in given if word not in pairs],
            namespace,
        )
        if self.takes_xacro_args:
            known.xacro_args = dict(word.split(':=', 1) for word in pairs)
        return known, rest


def add_goal(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of a goal."""
    for axis in 'xyz':
        parser.add_argument(axis, type=float, help='position of the tool point [m], base frame')
    parser.add_argument(
        '--direction',
        type=float,
        nargs=3,
        metavar=('DX', 'DY', 'DZ'),
        help='direction of the tool axis, any length (default: free)',
    )


def unit_direction(direction: Sequence[float]) -> Array:
    """Return three numbers of any length as a unit vector (3,). Raises InputError for zero, NaN and inf."""
    largest = max(map(abs, direction))
    if largest == 0.0 or not all(map(math.isfinite, direction)):
        given = ' '.join(f'{value:g}' for value in direction)
        raise InputError(f'--direction must be three finite numbers that are not all zero, got {given}')
    scaled = np.array(direction) / largest  # the squares of the given numbers might overflow or vanish
    return scaled / math.sqrt(scaled @ scaled)


def arm_parser(description: str) -> argparse.ArgumentParser:
    """Return a parser with the arguments of an arm."""
    parser = PlainParser(description=description)
    parser.takes_xacro_args = True
    parser.add_argument(
        'description_file',
        help='.urdf or .xacro file of the robot; arguments of a .xacro follow it as name:=value',
    )
    parser.add_argument(
        '--tip-link',
        help='link that carries the tool (default: tool0, a frame between fingers, the end of the longest '
        'chain or the link that carries the fingers)',
    )
    parser.add_argument('--base-link', help='reference link of goals (default: the root link)')
    parser.add_argument(
        '--tool-axis',
        type=tool_axis,
        default=AXES['z'],
        metavar='AXIS',
        help='axis of the tool in the tip frame: x, y, z, --tool-axis=-x or like 0,0.6,0.8 (default: z)',
    )
    parser.add_argument(
        '--tool-point',
        type=float,
        nargs=3,
        default=(0.0, 0.0, 0.0),
        metavar=('X', 'Y', 'Z'),
        help='tool point in the tip frame [m]',
    )
    return parser


def read_arm(arguments: argparse.Namespace) -> Arm:
    """Return the arm that the arguments name. Raises IkError."""
    return Arm.from_file(
        arguments.description_file,
        arguments.tip_link,
        tool_axis=arguments.tool_axis,
        tool_point=arguments.tool_point,
        base_link=arguments.base_link,
        xacro_args=arguments.xacro_args,
    )


def warn(arm: Arm) -> None:
    """Print the warnings of the arm to stderr."""
    for warning in arm.warnings:
        say(f'note: {warning}', sys.stderr)
