"""run: create, spin and close a node; returns an exit code, prints no traceback."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

import rclpy
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.logging import get_logger
from rclpy.node import Node

from ik_node.errors import IkError

SWITCH_INTERVAL = 0.0005  # [s]: how long one thread may keep another waiting for the interpreter


class ClosableNode(Node):
    """A node with resources to close."""

    def close(self) -> None:
        """Close the resources of the node, and the node."""
        self.destroy_node()


def run(name: str, make: Callable[[], ClosableNode]) -> int:
    """Make the node called name, spin it until Ctrl-C, SIGTERM or shutdown, close it; return the exit code.

    0 after a requested shutdown, 1 if the node cannot start, with the reason in the log.
    """
    asked = threading.Event()
    # No signal raises anything from here on, not even a second one: ROS shuts down its context when one
    # arrives, and calls these handlers, which it also restores at the end.
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, lambda *_: asked.set())
    _find_log_folder()
    try:
        rclpy.init()
    except RuntimeError as error:  # of rcl, for arguments that it cannot parse
        print(error, file=sys.stderr)
        return 1
    if asked.is_set():  # before ROS would have noticed
        rclpy.utilities.try_shutdown()
        return 0
    node: ClosableNode | None = None
    try:
        node = make()
        executor = SingleThreadedExecutor()
        executor.add_node(node)
        sys.setswitchinterval(SWITCH_INTERVAL)
        executor.spin()
    except ExternalShutdownException:
        pass
    except IkError as error:
        get_logger(name).fatal(str(error))
        return 1
    except Exception:
        if rclpy.utilities.ok():
            raise
        # Shutdown was requested while a ROS call was in progress. Silence errors of half-built objects.
        sys.unraisablehook = lambda _: None
    finally:
        if node is not None:
            node.close()
        rclpy.utilities.try_shutdown()
    return 0


def _find_log_folder() -> None:
    """Let ROS log to a temporary folder where its own cannot be written; it does not start without one."""
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
