# SPDX-License-Identifier: Apache-2.0
"""Output of programs: text that may be piped, tables, errors without a traceback; signals that end them."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import signal
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TextIO

from ik_node.errors import IkError, InputError

if TYPE_CHECKING:
    import queue

ROS_ARGS = '--ros-args'

# Text that a spreadsheet executes when it opens a CSV file, and numbers, which it does not.
FORMULA = re.compile(r'^\s*[=+@-]')
NUMBER = re.compile(r'^\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*$')


def say(text: str, to: TextIO | None = None) -> None:
    """Print text at once (default: to stdout); a closed pipe, as by "| head", or terminal is not an error.

    Raises InputError if stdout takes no text otherwise; text for stderr, of which nobody could be told, is
    dropped then.
    """
    stream = sys.stdout if to is None else to
    try:
        print(text, file=stream, flush=True)
    except OSError as error:
        # The script continues, so that its files and exit code are the same as with a reader.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        if stream is not sys.stderr and error.errno not in (errno.EPIPE, errno.EIO):  # as on a full disk
            raise InputError(f'cannot print: {error.strerror}') from None


def without_ros(arguments: Sequence[str]) -> list[str]:
    """Return the arguments of a command line that are none of ROS: outside of --ros-args ... --."""
    own, ros = [], False
    for word in arguments:
        if word == ROS_ARGS or (ros and word == '--'):
            ros = not ros or word == ROS_ARGS
        elif not ros:
            own.append(word)
    return own


def renamed(now: str) -> Callable[[str], str]:
    """Return the argparse type of an option of earlier versions: its error says what the option is now."""

    import argparse  # here and below: every program loads this module first

    def reject(_: str) -> str:
        raise argparse.ArgumentTypeError(f'renamed to {now}')

    return reject


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows as lines with aligned columns; the first row is the head. Columns without a text vanish."""
    columns = [column for column in zip(*rows, strict=True) if any(column[1:])]
    widths = [max(map(len, column)) for column in columns]
    return [
        '  '.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in zip(*columns, strict=True)
    ]


def run(script: Callable[..., int], *given: Any) -> int:
    """Run a script; an error of ik_node becomes one line and exit code 2, Ctrl-C exit code 130."""
    try:
        return script(*given)
    except IkError as error:
        say(f'error: {error}', sys.stderr)
        return 2
    except KeyboardInterrupt:
        say('stopped', sys.stderr)
        return 130


ENDING = signal.SIGINT, signal.SIGTERM, signal.SIGHUP  # Ctrl-C, kill, and a terminal that is closed


class SignalFlag:
    """A threading.Event for handlers: the lock of an Event would deadlock where one interrupts another."""

    def __init__(self) -> None:
        import queue

        self._queue: queue.SimpleQueue[None] = queue.SimpleQueue()

    def set(self, *_: object) -> None:
        """Set it; also serves as a signal handler."""
        self._queue.put(None)

    def is_set(self) -> bool:
        """Whether it was ever set."""
        return not self._queue.empty()

    def wait(self, timeout: float) -> None:
        """Wait until it is set, at most for a time [s]."""
        import queue

        with contextlib.suppress(queue.Empty):
            self._queue.put(self._queue.get(timeout=timeout))
