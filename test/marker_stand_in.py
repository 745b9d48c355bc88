# SPDX-License-Identifier: Apache-2.0
"""What interactive_markers does between a node and RViz, for tests: PyPI does not have it.

Written from its documentation, with the messages, topics and the service that RViz uses: markers are shown
once changes are applied, one that is dragged moves before its callback is called, menu entries have numbers.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from copy import deepcopy
from typing import Any

from geometry_msgs.msg import Pose
from rclpy.node import Node
from rclpy.qos import QoSProfile
from visualization_msgs.msg import (
    InteractiveMarker,
    InteractiveMarkerFeedback,
    InteractiveMarkerPose,
    InteractiveMarkerUpdate,
    MenuEntry,
)
from visualization_msgs.srv import GetInteractiveMarkers


class InteractiveMarkerServer:
    """Keeps markers, and passes feedback to their callbacks."""

    def __init__(self, node: Node, namespace: str, *, feedback_sub_qos: QoSProfile) -> None:
        self._callbacks: dict[str, Callable[[Any], None]] = {}
        self.on_menu: dict[str, Callable[[Any], None]] = {}
        self._markers: dict[str, InteractiveMarker] = {}  # as they will be
        self._shown: dict[str, InteractiveMarker] = {}
        self._publisher = node.create_publisher(InteractiveMarkerUpdate, f'{namespace}/update', 100)
        node.create_service(GetInteractiveMarkers, f'{namespace}/get_interactive_markers', self._get)
        node.create_subscription(InteractiveMarkerFeedback, f'{namespace}/feedback', self._take, feedback_sub_qos)

    def insert(self, marker: InteractiveMarker, *, feedback_callback: Callable[[Any], None]) -> None:
        self._markers[marker.name], self._callbacks[marker.name] = marker, feedback_callback

    def get(self, name: str) -> InteractiveMarker | None:
        return self._markers.get(name)

    def setPose(self, name: str, pose: Pose) -> bool:  # noqa: N802
        if name not in self._markers:
            return False
        self._markers[name] = deepcopy(self._markers[name])
        self._markers[name].pose = pose
        return True

    def erase(self, name: str) -> None:
        self._markers.pop(name)

    def clear(self) -> None:
        self._markers.clear()

    def applyChanges(self) -> None:  # noqa: N802
        before, self._shown = self._shown, deepcopy(self._markers)
        update = InteractiveMarkerUpdate(type=InteractiveMarkerUpdate.UPDATE)
        update.erases = [name for name in before if name not in self._shown]
        for name, marker in self._shown.items():
            old = before.get(name)
            if old is None or old.menu_entries != marker.menu_entries:
                update.markers.append(marker)
            elif old.pose != marker.pose:
                update.poses.append(InteractiveMarkerPose(name=name, pose=marker.pose))
        if update.erases or update.markers or update.poses:
            self._publisher.publish(update)

    def shutdown(self) -> None:
        self.clear()
        self.applyChanges()

    def _get(self, _: Any, response: Any) -> Any:
        response.markers = list(self._shown.values())
        return response

    def _take(self, feedback: InteractiveMarkerFeedback) -> None:
        if feedback.marker_name not in self._markers:
            return
        if feedback.event_type == feedback.POSE_UPDATE:
            self.setPose(feedback.marker_name, feedback.pose)
        if feedback.event_type == feedback.MENU_SELECT:
            self.on_menu[feedback.marker_name](feedback)
        else:
            self._callbacks[feedback.marker_name](feedback)


TICKS = {2: '[ ] ', 1: '[x] '}


class MenuHandler:
    """Entries of a menu by number, and whether they are ticked."""

    UNCHECKED, CHECKED = 2, 1

    def __init__(self) -> None:
        self._numbers, self._entries = itertools.count(1), dict[int, MenuEntry]()
        self._callbacks: dict[int, Callable[[Any], None]] = {}
        self._ticks: dict[int, int] = {}
        self._markers: list[str] = []

    def insert(self, title: str, parent: int = 0, callback: Callable[[Any], None] | None = None) -> int:
        number = next(self._numbers)
        self._entries[number] = MenuEntry(id=number, parent_id=parent, title=title)
        if callback is not None:
            self._callbacks[number] = callback
        return number

    def setCheckState(self, number: int, state: int) -> None:  # noqa: N802
        self._ticks[number] = state

    def apply(self, server: InteractiveMarkerServer, name: str) -> None:
        marker = deepcopy(server._markers[name])
        marker.menu_entries = [
            MenuEntry(id=n, parent_id=e.parent_id, title=TICKS.get(self._ticks.get(n), '') + e.title)
            for n, e in self._entries.items()
        ]
        server._markers[name] = marker
        server.on_menu[name] = lambda feedback: self._callbacks[feedback.menu_entry_id](feedback)
        self._markers.append(name)

    def reApply(self, server: InteractiveMarkerServer) -> None:  # noqa: N802
        for name in list(dict.fromkeys(self._markers)):
            if server.get(name) is not None:
                self.apply(server, name)
