# SPDX-License-Identifier: Apache-2.0
"""TfListener: the frames of tf2, received in a thread of their own.

Many transforms, or invalid ones, take so long that ~/stop would have to wait for them. This module imports
tf2, so import it where it is used.
"""

from __future__ import annotations

import tf2_ros
from geometry_msgs.msg import Transform
from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.time import Time

from ik_node.errors import InputError

from .run import SideNode


class TfListener:
    """Receives transforms until it is closed."""

    def __init__(self, node: Node) -> None:
        self._side = SideNode(node, 'transforms')
        self._buffer = tf2_ros.Buffer()
        self._listener = tf2_ros.TransformListener(self._buffer, self._side.node)
        self._side.start()

    def look_up(self, target: str, source: str, time: Time, timeout: float) -> Transform:
        """Return the transform from source to target at a time. Raises InputError after timeout [s]."""
        try:
            found = self._buffer.lookup_transform(target, source, time, timeout=Duration(seconds=timeout))
        except tf2_ros.TransformException as error:
            raise InputError(str(error)) from None
        return found.transform

    def close(self) -> None:
        """End the thread."""
        self._side.close()
