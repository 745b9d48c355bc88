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
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import NoReturn

from ik_node.console import ROS_ARGS, without_ros
from ik_node.extras import EXTRAS, PACKAGES, ROS_MODULES, missing
from ik_node.usage import beginning, examples

STOPPED = 0  # exit code of a node after a requested shutdown
INTERRUPTED = 130  # exit code of a command that did not finish
FAILED = 2  # exit code of a program that cannot start


def _run(module: str, interrupted: int, *, node: str = '', function: str = 'main') -> NoReturn:
    """Load a module, run its main or another function and end.

    interrupted: exit code after a signal that main does not handle. node: the name of the program, if it is a
    node, which takes only ROS arguments. It handles SIGINT and SIGTERM from its main on, see ros/run.py; for
    the others Ctrl-C is a KeyboardInterrupt there.
    """
    if node:
        _check_arguments(node, sys.argv[1:])
    handled = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    for number in (signal.SIGINT, signal.SIGTERM) if node else (signal.SIGINT,):
        if signal.getsignal(number) in (signal.default_int_handler, signal.SIG_DFL):
            signal.signal(number, lambda *_: os._exit(interrupted))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])  # see Child in startup/demo.py
    try:
        main = getattr(import_module(module), function)
        if handled and not node:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        code: int = main()
    except KeyboardInterrupt:
        code = interrupted
    except ModuleNotFoundError as error:
        code = _explain(error)
    _end(code)


def _check_arguments(program: str, given: list[str]) -> None:
    """End a node that is asked for help (exit code 0) or is given an argument that is none of ROS.

    It would ignore the argument, and move an arm.
    """
    if {'-h', '--help'} & set(given):
        print(
            f'{beginning(program)}\n\n'
            f'usage: {program} [{ROS_ARGS} [-p NAME:=VALUE] [--params-file FILE] [-r FROM:=TO] ...]\n\n'
            f'{program} is a ROS node, so its options follow {ROS_ARGS}:\n'
            '  -p NAME:=VALUE      set a parameter; config/ik_node.yaml lists and explains them all\n'
            '  --params-file FILE  set the parameters of a YAML file, such as a copy of that one\n'
            '  -r FROM:=TO         use another name for a topic or service; -r __ns:=/left for all of them\n\n'
            f'{examples(program)}'
        )
        _end(0)
    if own := without_ros(given):
        print(
            f'{program}: error: unrecognized arguments: {" ".join(own)}; ROS arguments are allowed, as in '
            f'{program} {ROS_ARGS} -p NAME:=VALUE; see {program} --help',
            file=sys.stderr,
        )
        _end(FAILED)


def _explain(error: ModuleNotFoundError) -> int:
    """Print how to install a missing optional package, or ROS; raise the error for any other package."""
    module = (error.name or '').partition('.')[0]
    package = PACKAGES.get(module, module)
    if module not in ROS_MODULES and not any(package in names for names in EXTRAS.values()):
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


def _node(program: str, module: str) -> Callable[[], NoReturn]:
    return partial(_run, module, STOPPED, node=program)


def _command(module: str, function: str = 'main') -> Callable[[], NoReturn]:
    return partial(_run, module, INTERRUPTED, function=function)


# What each of them does is in usage.py.
ik_node = _node('ik_node', 'ik_node.ros.node')
ik_viewer = _node('ik_viewer', 'ik_node.viewer.node')
ik_marker = _node('ik_marker', 'ik_node.ros.marker_node')
ik_goals = _node('ik_goals', 'ik_node.ros.programs.track_player')
ik_plant = _node('ik_plant', 'ik_node.sim.node')
ik_teleop = _node('ik_teleop', 'ik_node.ros.programs.teleop_keys')
ik_leader = _node('ik_leader', 'ik_node.ros.programs.leader')
ik_servos = _node('ik_servos', 'ik_node.servos.node')
ik_calibrate = _command('ik_node.calibration.program')
ik_goto = _command('ik_node.client')
ik_stop = _command('ik_node.ros.programs.services', 'stop')
ik_resume = _command('ik_node.ros.programs.services', 'resume')
ik_status = _command('ik_node.ros.programs.services', 'status')
ik_play = _command('ik_node.ros.programs.play')
ik_demo = partial(_run, 'ik_node.startup.demo', STOPPED)
ik_inspect = _command('ik_node.tools.inspect')
ik_reach = _command('ik_node.tools.reach')
ik_solve = _command('ik_node.tools.solve')
ik_batch = _command('ik_node.tools.batch')
ik_retarget = _command('ik_node.tools.retarget')
ik_place = _command('ik_node.tools.place')
ik_export = _command('ik_node.tools.export.program')
ik_servo_check = _command('ik_node.servos.check.program')


if __name__ == '__main__':  # python -m ik_node.start NAME: without the console scripts
    sys.argv[0] = sys.argv.pop(1)
    globals()[sys.argv[0]]()
