"""run: from a process to a spinning node and back out, with an exit code and without a traceback."""

from __future__ import annotations

import sys
from collections.abc import Callable

import rclpy
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.logging import get_logger
from rclpy.node import Node

from ik_node.errors import IkError

SWITCH_INTERVAL = 0.0005  # [s]: how long one thread may keep another waiting for the interpreter


class ClosableNode(Node):
    """A node that has more to end than itself."""

    def close(self) -> None:
        """End what the node began, and the node."""
        self.destroy_node()


def run(name: str, make: Callable[[], ClosableNode]) -> int:
    """Make the node called name, spin it until Ctrl-C, SIGTERM or shutdown, close it; return the exit code.

    0 after the end was asked for, 1 if the node cannot start, with the reason in the log.
    """
    try:
        rclpy.init()
    except RuntimeError as error:  # of rcl, for arguments that it cannot parse
        print(error, file=sys.stderr)
        return 1
    node: ClosableNode | None = None
    try:
        node = make()
        executor = SingleThreadedExecutor()
        executor.add_node(node)
        sys.setswitchinterval(SWITCH_INTERVAL)
        executor.spin()
    except (KeyboardInterrupt, ExternalShutdownException):
        pass
    except IkError as error:
        get_logger(name).fatal(str(error))
        return 1
    except Exception:
        if rclpy.utilities.ok():
            raise
        # The end was asked for in the middle of something that needs ROS.
    finally:
        if node is not None:
            node.close()
        rclpy.utilities.try_shutdown()
    return 0
