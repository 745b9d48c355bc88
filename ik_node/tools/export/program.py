# SPDX-License-Identifier: Apache-2.0
"""ik_export: the solver of one arm for other programs, as C, and for people, as a page."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

from ik_node.arguments import add_overwrite, arm_parser, check_outputs, read_arm, warn
from ik_node.console import run, say
from ik_node.errors import InputError, path_text, quoted
from ik_node.files import write_file
from ik_node.model.arm import Arm

from .header import add_header, header_files, identifier
from .html import add_html, html_files
from .moveit.package import add_moveit, moveit_files

Add: TypeAlias = Callable[[argparse._ArgumentGroup], None]
Files: TypeAlias = Callable[[Arm, str, argparse.Namespace], dict[Path, str]]
# What can be written: functions that add the options of an output, the first of which has its name, and that
# return its files by path, from the arm, its name in C and the arguments.
OUTPUTS: dict[str, tuple[Add, Files]] = {
    'header': (add_header, header_files),
    'html': (add_html, html_files),
    'moveit': (add_moveit, moveit_files),
}


def main(given: Sequence[str] | None = None) -> int:
    """Write what was asked for; return 0, or 2 with the reason on stderr."""
    parser = arm_parser('ik_export')
    outputs = parser.add_argument_group('outputs, at least one of them')
    for add, _ in OUTPUTS.values():
        add(outputs)
    parser.add_argument(
        '--name', help='what the names in C begin with (default: the name of the robot; others become identifiers)'
    )
    add_overwrite(parser)
    return run(_export, parser.parse_args(given))


def _export(arguments: argparse.Namespace) -> int:
    asked = [output for output in OUTPUTS if getattr(arguments, output)]
    if not asked:
        raise InputError(f'nothing to export: add {" or ".join(f"--{output}" for output in OUTPUTS)}')
    if arguments.float and asked != ['header']:
        raise InputError('--float is for --header alone: export plugin and page, which compute in double, separately')
    arm = read_arm(arguments)
    warn(arm)
    if arm.idle.all():
        moved = f'tool point or tool axis of link {quoted(arm.tip_link)}'
        raise InputError(f'no arm found: no joint moves the {moved}; choose another --tip-link')
    name = identifier(arm.name if arguments.name is None else arguments.name)
    files = {path: text for output in asked for path, text in OUTPUTS[output][1](arm, name, arguments).items()}
    check_outputs(files, [arguments.description_file], arguments.overwrite)
    for path, text in files.items():
        write_file(path, text)
        say(f'wrote {path_text(path)}')
    return 0
