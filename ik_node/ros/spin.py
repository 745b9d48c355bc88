# SPDX-License-Identifier: Apache-2.0
"""Spin an executor in a thread, whatever messages arrive."""

from __future__ import annotations

import threading
import time
import traceback
from pathlib import Path

from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node

from ik_node.errors import escaped

PACKAGE = Path(__file__).resolve().parents[1]
CLOSING = 2.0  # [s] within which a callback in progress should end
AFTER_ERROR = 0.001  # [s] to wait after an error of rclpy, so that the loop does not spin


def spin_until_shutdown(executor: SingleThreadedExecutor, node: Node, closing: threading.Event) -> None:
    """Spin until ROS shuts down, or until rclpy fails while closing is set."""
    while not _spun(executor, node, closing):
        pass


def _spun(executor: SingleThreadedExecutor, node: Node, closing: threading.Event) -> bool:
    """Spin until ROS shuts down or rclpy fails; return whether it has shut down.

    rclpy raises for some messages, such as negative times on /clock, before any callback. They must not end
    the node.
    """
    try:
        executor.spin()
    except ExternalShutdownException:
        pass
    except Exception as error:
        if closing.is_set() or not node.context.ok():
            return True
        frames = traceback.extract_tb(error.__traceback__)
        if any(PACKAGE in Path(frame.filename).parents for frame in frames if frame.filename != __file__):
            raise
        line = f'message ignored, rclpy cannot read it: {type(error).__name__}: {escaped(str(error))}'
        node.get_logger().error(line, throttle_duration_sec=2.0)
        time.sleep(AFTER_ERROR)
        return False
    return True
