# SPDX-License-Identifier: Apache-2.0
"""Spin an executor in a thread, whatever messages arrive; SideNode does so beside another node."""

from __future__ import annotations

import threading
import time
import traceback
from pathlib import Path

from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.parameter import Parameter

from ik_node.errors import escaped

PACKAGE = Path(__file__).resolve().parents[1]
CLOSING = 2.0  # [s] within which a callback in progress should end
AFTER_ERROR = 0.001  # [s] to wait after an error of rclpy, so that the loop does not spin


class SideNode:
    """A node beside another one, whose callbacks run in a thread of their own: they wait for no others.

    An unexpected error of a callback is logged, and the thread goes on.
    """

    def __init__(self, beside: Node, task: str) -> None:
        """task: the end of its name. Callbacks are called once it is started."""
        name = f'{beside.get_name()}_{task}'
        self.node = Node(
            name,
            context=beside.context,
            namespace=beside.get_namespace(),
            cli_args=['--ros-args', '-r', f'__node:={name}'],  # remappings of topics hold here, too
            enable_rosout=False,
            start_parameter_services=False,
            parameter_overrides=[Parameter('start_type_description_service', value=False)],
        )
        self._executor = SingleThreadedExecutor(context=beside.context)
        self._executor.add_node(self.node)
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._spin, name=task, daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def _spin(self) -> None:
        while True:
            try:
                return spin_until_shutdown(self._executor, self.node, self._closing)
            except Exception:
                self.node.get_logger().error(f'unexpected error, please report it: {traceback.format_exc()}')
                time.sleep(AFTER_ERROR)

    def close(self) -> None:
        """End the thread and the node."""
        self._closing.set()
        self._executor.shutdown(timeout_sec=CLOSING)
        if self._thread.ident is not None:
            self._thread.join(timeout=CLOSING)
        self.node.destroy_node()


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
