"""Where the programs start and end: a Ctrl-C ends them quietly from the first moment to the last.

Their modules take a second or two to load, and some libraries swallow a KeyboardInterrupt meanwhile. The
teardown of the interpreter takes as long again, and some libraries complain if a signal disturbs it: what has
to be closed is closed by main, so the process just ends after it.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
from importlib import import_module
from pathlib import Path
from typing import NoReturn

from ik_node.extras import EXTRAS, missing

STOPPED = 0  # exit code of a node that was asked to end
INTERRUPTED = 130  # exit code of a command that did not finish
FAILED = 2  # exit code of a program that cannot start


def _run(module: str, interrupted: int, *, node: bool = False) -> NoReturn:
    """Load a module, run its main and end.

    interrupted: exit code after a signal that main does not handle. A node handles SIGINT and SIGTERM from
    its main on, see ros/run.py; for the others Ctrl-C is a KeyboardInterrupt there.
    """
    handled = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    for number in (signal.SIGINT, signal.SIGTERM) if node else (signal.SIGINT,):
        if signal.getsignal(number) in (signal.default_int_handler, signal.SIG_DFL):
            signal.signal(number, lambda *_: os._exit(interrupted))
    try:
        main = import_module(module).main
        if handled and not node:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        code: int = main()
    except KeyboardInterrupt:
        code = interrupted
    except ModuleNotFoundError as error:
        code = _explain(error)
    _end(code)


def _explain(error: ModuleNotFoundError) -> int:
    """Print how to install a package that only some programs need; raise the error for any other."""
    package = (error.name or '').partition('.')[0]
    if not any(package in names for names in EXTRAS.values()):
        raise error
    program = Path(sys.argv[0]).stem
    print(f'error: {missing(package, program)}', file=sys.stderr)
    return FAILED


def _end(code: int) -> NoReturn:
    """End the process at once, with all that was printed."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):  # nobody reads it any more
            stream.flush()
    ctypes.CDLL(None).fflush(None)  # the log of ROS is written in C
    os._exit(code)


def ik_node() -> NoReturn:
    """Run the node that solves."""
    _run('ik_node.ros.node', STOPPED, node=True)


def ik_viewer() -> NoReturn:
    """Run the node that shows the arm in a browser."""
    _run('ik_node.viewer.node', STOPPED, node=True)


def ik_goals() -> NoReturn:
    """Run the node that sends goals along a track."""
    _run('ik_node.ros.goals', STOPPED, node=True)


def ik_demo() -> NoReturn:
    """Run the three together."""
    _run('ik_node.ros.demo', STOPPED)


def ik_inspect() -> NoReturn:
    """Describe an arm."""
    _run('ik_node.cli.inspect', INTERRUPTED)


def ik_reach() -> NoReturn:
    """Draw where an arm reaches."""
    _run('ik_node.cli.reach', INTERRUPTED)


def ik_solve() -> NoReturn:
    """Solve a goal."""
    _run('ik_node.cli.solve', INTERRUPTED)


if __name__ == '__main__':  # python -m ik_node.start NAME: what has no console scripts at hand
    sys.argv[0] = sys.argv.pop(1)
    globals()[sys.argv[0]]()
