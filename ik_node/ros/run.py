# SPDX-License-Identifier: Apache-2.0
"""run: create, spin and close a node; returns an exit code, prints no traceback."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

import rclpy
from rclpy.duration import Duration
from rclpy.executors import SingleThreadedExecutor
from rclpy.logging import get_logger
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions

from ik_node.errors import IkError, InputError
from ik_node.ros.signal_flag import ENDING, SignalFlag
from ik_node.ros.spin import CLOSING, spin_until_shutdown
from ik_node.steady import steady

SWITCH_INTERVAL = 0.0005  # [s]: how long one thread may hold the interpreter while another waits
NOTICE = 0.1  # [s] within which a signal is processed
DELIVERY = 0.5  # [s] for the last messages to arrive, if their subscribers acknowledge them


class ArgumentError(InputError):
    """ROS arguments of the command line cannot be read."""


class ClosableNode(Node):
    """A node with resources to close."""

    def start_threads(self) -> None:
        """Start the threads of the node."""

    def come_to_rest(self) -> None:
        """Prepare the shutdown, for example bring an arm to rest; callbacks continue to run."""

    def close(self) -> None:
        """Close the resources of the node, and the node."""
        self.destroy_node()


def run(name: str, make: Callable[[], ClosableNode]) -> int:
    """Make the node called name, spin it until a signal or a shutdown, close it; return the exit code.

    Signals are those of Ctrl-C, of kill, and of a terminal that is closed. 0 after a requested shutdown, 1 if
    the node cannot start, with the reason in the log, 2 for arguments that ROS cannot read.
    """
    asked = SignalFlag()
    # From here on no signal raises an exception, not even a second one. ROS would shut down its context at
    # the first one, and an arm in motion could no longer be commanded to rest.
    for number in ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, asked.set)
    _find_log_folder()
    node: ClosableNode | None = None
    try:
        begin()
        if not asked.is_set():
            node = make()
            node.start_threads()
            sys.setswitchinterval(SWITCH_INTERVAL)
            _spin(node, asked)
    except ArgumentError as error:
        print(f'{name}: error: {error}', file=sys.stderr)
        return 2
    except IkError as error:
        get_logger(name).fatal(str(error))
        return 1
    finally:
        if node is not None:
            node.close()
        rclpy.utilities.try_shutdown()
    return 0


def begin() -> None:
    """Initialise rclpy without its signal handlers. Raises ArgumentError for arguments it cannot read."""
    try:
        rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    except RuntimeError as error:
        reason = str(error).split(', at /')[0].removeprefix('failed to initialize rcl: ')
        raise ArgumentError(
            f'ROS cannot read the arguments after --ros-args: {reason}. They are -p NAME:=VALUE, '
            '--params-file FILE, -r FROM:=TO and those of ros2 run'
        ) from None


def _spin(node: ClosableNode, asked: SignalFlag) -> None:
    """Spin node until asked is set or ROS shuts down, then let it come to rest.

    The main thread only waits: signal handlers run in it, but not while it waits for messages.
    """
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    failures: list[Exception] = []
    closing = threading.Event()  # then rclpy may fail: its entities go while it waits for them

    def spin() -> None:
        try:
            spin_until_shutdown(executor, node, closing)
        except Exception as error:
            failures.append(error)
        finally:
            asked.set()

    thread = threading.Thread(target=spin, name='executor', daemon=True)
    thread.start()
    while not asked.is_set():
        asked.wait(NOTICE)  # a signal delivered to another thread does not wake this one: poll
    node.come_to_rest()
    _deliver(node)
    closing.set()
    executor.shutdown(timeout_sec=CLOSING)
    thread.join(timeout=CLOSING)
    if failures:
        raise failures[0]


def _deliver(node: Node) -> None:
    """Wait for the last messages: those of a process that exits immediately may be lost."""
    end = steady() + DELIVERY
    for publisher in node.publishers:
        with contextlib.suppress(RuntimeError, NotImplementedError):
            publisher.wait_for_all_acked(Duration(seconds=max(0.0, end - steady())))


def _find_log_folder() -> None:
    """Log to a temporary folder if the log folder of ROS is not writable, which would prevent its start."""
    if os.environ.get('ROS_LOG_DIR'):
        return
    home = Path(os.environ.get('ROS_HOME') or Path('~/.ros').expanduser())
    try:
        (home / 'log').mkdir(parents=True, exist_ok=True)
        writable = os.access(home / 'log', os.W_OK)
    except OSError:
        writable = False
    if not writable:
        os.environ['ROS_LOG_DIR'] = folder = tempfile.mkdtemp(prefix='ros-log-')
        print(f'{home} is not writable: ROS logs to {folder}; ROS_LOG_DIR changes that', file=sys.stderr)
