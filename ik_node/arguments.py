# SPDX-License-Identifier: Apache-2.0
"""What the console scripts share: an arm and goals from the command line, progress, names of outputs."""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any

from ik_node.checks import AXES, read_axis
from ik_node.console import say
from ik_node.errors import InputError, path_text
from ik_node.model.arm import Arm
from ik_node.share import robot_file, shipped_robots
from ik_node.usage import beginning, examples

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

    Its help begins with what the program does and ends with examples, both from ik_node.usage.
    """

    def __init__(self, program: str, *, takes_xacro_args: bool = False) -> None:
        """takes_xacro_args: words like name:=value are put into the namespace as the mapping xacro_args."""
        super().__init__(prog=program)
        self._takes_xacro_args = takes_xacro_args

    def format_help(self) -> str:
        return f'{beginning(self.prog)}\n\n{super().format_help()}\n{examples(self.prog)}\n'

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        positional = [(action.nargs, str(action.metavar or action.dest)) for action in self._get_positional_actions()]
        words = [f'[{name}]' if count == '?' else name for count, name in positional]
        pairs_too = ['[NAME:=VALUE ...]'] * self._takes_xacro_args
        self.usage = ' '.join([self.prog, *words, *pairs_too, '[options]'])  # the list of options follows anyway
        given = list(sys.argv[1:] if args is None else args)
        pairs = [word for word in given if self._takes_xacro_args and XACRO_ARGUMENT.fullmatch(word)]
        # Text with a leading space is not an option, and is ignored before a number.
        known, rest = super().parse_known_args(
            [f' {word}' if NUMBERS.fullmatch(word) else word for word in given if word not in pairs],
            namespace,
        )
        if self._takes_xacro_args:
            known.xacro_args = dict(word.split(':=', 1) for word in pairs)
        return known, rest


def add_goal(parser: argparse.ArgumentParser, optional: bool = False) -> None:
    """Add the arguments of a goal; optional: its position may be left out."""
    for axis in 'xyz':
        nargs = '?' if optional else None
        parser.add_argument(axis, type=float, nargs=nargs, help=f'{axis} of the tool point in the base link [m]')
    parser.add_argument(
        '--direction',
        type=float,
        nargs=3,
        metavar=('DX', 'DY', 'DZ'),
        help='direction in which the tool points, of any length: 0 0 -1 is down (default: any direction)',
    )


def arm_parser(program: str) -> argparse.ArgumentParser:
    """Return the parser of a program with the arguments of an arm."""
    parser = PlainParser(program, takes_xacro_args=True)
    parser.add_argument(
        'description_file',
        type=robot_file,
        help='.urdf or .xacro file of the robot, or the name of one that comes with ik_node '
        f'({", ".join(shipped_robots())}); NAME:=VALUE sets an argument of a .xacro file',
    )
    arm = parser.add_argument_group('tool of the arm')
    arm.add_argument(
        '--tip-link',
        metavar='LINK',
        help='link that carries the tool (default: the first that exists of: tool0, a frame between '
        'the fingers, the end of the longest chain, the link that carries the fingers)',
    )
    arm.add_argument('--base-link', metavar='LINK', help='link in whose frame goals are (default: the root link)')
    arm.add_argument(
        '--tool-axis',
        type=tool_axis,
        default=AXES['z'],
        metavar='AXIS',
        help='direction in which the tool points, in the frame of the tip link: x, y, z, --tool-axis=-x, or numbers '
        'such as 0,0.6,0.8 (default: z)',
    )
    arm.add_argument(
        '--tool-point',
        type=float,
        nargs=3,
        default=(0.0, 0.0, 0.0),
        metavar=('X', 'Y', 'Z'),
        help='tool point in the frame of the tip link [m] (default: its origin)',
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


LINE_EVERY = 10.0  # s


class ProgressBar:
    """Counts up to total and shows it on stderr, with the rate and the time that is left.

    total: None where it is not known before. about: it is an estimate.
    """

    def __init__(self, total: int | None, unit: str, *, about: bool = False) -> None:
        from tqdm import tqdm

        self._bar = tqdm(total=total, unit=f' {unit}', disable=None)
        self._total, self._unit, self._about, self._done = total, unit, about, 0
        self._start = self._next = self._last = time.monotonic()
        self._done_before = 0  # at the last line

    def add(self, count: int) -> None:
        """Add to the count."""
        self._bar.update(count)
        self._done += count
        now = time.monotonic()
        if self._bar.disable and (now >= self._next or self._done == self._total):
            self._next = now + LINE_EVERY
            say(self._line(now), sys.stderr)
            self._last, self._done_before = now, self._done

    def _line(self, now: float) -> str:
        # Since the last line: a run that continues another finds much done at its start.
        rate = (self._done - self._done_before) / max(now - self._last, 1e-9)
        text = f'{now - self._start:.0f} s passed, {rate:.{0 if rate >= 10.0 else 2}f} {self._unit}/s'
        if self._total is None or self._done > self._total:
            return f'{self._done} {self._unit}, {text}'
        total = f'{"about " * self._about}{self._total}'
        left = (self._total - self._done) / max(rate, 1e-9)
        return f'{100 * self._done // self._total} % of {total} {self._unit}, {text}, {left:.0f} s left'

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._bar.close()


FILE_SUFFIX = re.compile(r'\.([A-Za-z]{2,7}|h5|mp4|7z|Z)')  # not .2 or .v2, which may end any name


def add_overwrite(parser: argparse.ArgumentParser) -> None:
    """Add the option without which no program replaces a file."""
    parser.add_argument('--overwrite', action='store_true', help='replace files that exist already')


def check_outputs(paths: Iterable[Path], inputs: Iterable[str | Path], overwrite: bool) -> None:
    """Raise InputError for outputs that are an input, a folder or special file, or exist already.

    overwrite: files may be replaced, inputs never.
    """
    sources = [Path(source) for source in inputs]
    for path in paths:
        given = f'"{path_text(path)}"'
        if not os.path.lexists(path):
            continue
        if any(source.exists() and path.exists() and path.samefile(source) for source in sources):
            raise InputError(f'{given} is the input and would be overwritten: name another output')
        if path.is_dir() or (path.exists() and not path.is_file()):
            raise InputError(f'cannot write {given}: it is a {"folder" if path.is_dir() else "device or pipe"}')
        if not overwrite:
            raise InputError(f'{given} exists already: name another output, or add --overwrite to replace it')


def output_name(name: str, *suffixes: str) -> str:
    """Return the output name without one of suffixes.

    Raises InputError for a folder that is not writable, and for the suffix of a kind that is not written.
    """
    path = Path(name)
    if path.suffix in suffixes:
        path = path.with_suffix('')
    elif FILE_SUFFIX.fullmatch(path.suffix):
        raise InputError(
            f'--output: "{path_text(path)}" ends with {path.suffix}, but the program writes '
            f'{" and ".join(suffixes)} files: leave the suffix out'
        )
    if not path.name or path.name == '..' or not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise InputError(f'--output: cannot write to the folder "{path.parent}"')
    return str(path)
