# SPDX-License-Identifier: Apache-2.0
"""Entry points of the programs; Ctrl-C ends them quietly at any time.

Their modules take a second or two to load, during which some libraries swallow a KeyboardInterrupt. The
teardown of the interpreter takes as long, and some libraries print errors if a signal interrupts it. main
closes all resources, so the process exits immediately after it.
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

from ik_node.extras import EXTRAS, PACKAGES, missing

STOPPED = 0  # exit code of a node after a requested shutdown
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
    """Print how to install a missing optional package; raise the error for any other package."""
    module = (error.name or '').partition('.')[0]
    package = PACKAGES.get(module, module)
    if not any(package in names for names in EXTRAS.values()):
        raise error
    program = Path(sys.argv[0]).stem
    print(f'error: {missing(package, program)}', file=sys.stderr)
    return FAILED


def _end(code: int) -> NoReturn:
    """Flush all output and end the process at once."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):  # the reader is gone
            stream.flush()
    ctypes.CDLL(None).fflush(None)  # the log of ROS is written in C
    os._exit(code)


def ik_node() -> NoReturn:
    """Run the solver node."""
    _run('ik_node.ros.node.node', STOPPED, node=True)


def ik_viewer() -> NoReturn:
    """Run the browser viewer."""
    _run('ik_node.viewer.node', STOPPED, node=True)


def ik_marker() -> NoReturn:
    """Run the interactive marker for RViz."""
    _run('ik_node.ros.rviz.marker_node', STOPPED, node=True)


def ik_goals() -> NoReturn:
    """Run the node that publishes goals along a track."""
    _run('ik_node.ros.programs.track_player', STOPPED, node=True)


def ik_plant() -> NoReturn:
    """Run the simulated arm."""
    _run('ik_node.sim.node', STOPPED, node=True)


def ik_teleop() -> NoReturn:
    """Move an arm with the keys of a terminal."""
    _run('ik_node.ros.programs.teleop_keys', STOPPED, node=True)


def ik_servos() -> NoReturn:
    """Drive an arm with servos on a bus."""
    _run('ik_node.ros.servos.node', STOPPED, node=True)


def ik_goto() -> NoReturn:
    """Send a goal and wait for the arm."""
    _run('ik_node.ros.programs.goto', INTERRUPTED)


def ik_play() -> NoReturn:
    """Run a program of taught points."""
    _run('ik_node.ros.programs.play', INTERRUPTED)


def ik_demo() -> NoReturn:
    """Run all three nodes."""
    _run('ik_node.startup.demo', STOPPED)


def ik_inspect() -> NoReturn:
    """Describe an arm."""
    _run('ik_node.cli.inspect', INTERRUPTED)


def ik_reach() -> NoReturn:
    """Draw the workspace of an arm."""
    _run('ik_node.cli.reach', INTERRUPTED)


def ik_solve() -> NoReturn:
    """Solve a goal."""
    _run('ik_node.cli.solve', INTERRUPTED)


def ik_batch() -> NoReturn:
    """Solve the goals of a file."""
    _run('ik_node.cli.batch', INTERRUPTED)


def ik_retarget() -> NoReturn:
    """Replace the poses of a dataset by joint positions."""
    _run('ik_node.cli.retarget', INTERRUPTED)


def ik_place() -> NoReturn:
    """Find where to put an arm."""
    _run('ik_node.cli.place', INTERRUPTED)


def ik_servo_check() -> NoReturn:
    """Check an arm of bus servos."""
    _run('ik_node.servos.check.program', INTERRUPTED)


if __name__ == '__main__':  # python -m ik_node.start NAME: without the console scripts
    sys.argv[0] = sys.argv.pop(1)
    globals()[sys.argv[0]]()
