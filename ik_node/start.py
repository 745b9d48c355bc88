"""Where the programs start: a Ctrl-C ends them quietly from the first moment on.

Their modules take a second or two to load, and some libraries swallow a KeyboardInterrupt meanwhile.
"""

from __future__ import annotations

import os
import signal
import sys
from importlib import import_module

STOPPED = 0  # exit code of a node that was asked to end
INTERRUPTED = 130  # exit code of a command that did not finish


def _run(module: str, interrupted: int) -> int:
    """Load a module and run its main; interrupted: exit code after a Ctrl-C that main does not answer."""
    heeded = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if heeded:
        signal.signal(signal.SIGINT, lambda *_: os._exit(interrupted))
    main = import_module(module).main
    try:
        if heeded:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        code: int = main()
    except KeyboardInterrupt:
        return interrupted
    return code


def ik_node() -> int:
    """Run the node that solves."""
    return _run('ik_node.ros.node', STOPPED)


def ik_viewer() -> int:
    """Run the node that shows the arm in a browser."""
    return _run('ik_node.viewer.node', STOPPED)


def ik_goals() -> int:
    """Run the node that sends goals along a track."""
    return _run('ik_node.ros.goals', STOPPED)


def ik_demo() -> int:
    """Run the three together."""
    return _run('ik_node.ros.demo', STOPPED)


def ik_inspect() -> int:
    """Tell of an arm."""
    return _run('ik_node.cli.inspect', INTERRUPTED)


def ik_reach() -> int:
    """Draw where an arm reaches."""
    return _run('ik_node.cli.reach', INTERRUPTED)


def ik_solve() -> int:
    """Solve a goal."""
    return _run('ik_node.cli.solve', INTERRUPTED)


if __name__ == '__main__':  # python -m ik_node.start NAME: what has no console scripts at hand
    sys.exit(globals()[sys.argv.pop(1)]())
