# SPDX-License-Identifier: Apache-2.0
"""Room: a part of the page, such as a folder of the panel and what it shows in the scene."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from rclpy.subscription import Subscription
from sensor_msgs.msg import JointState

from ik_node.viewer.scene.visuals import Drawing
from ik_node.viewer.tool import ViewedTool


class Shown(NamedTuple):
    """The robot that the page shows: its tools, each with its arm and scene, its URDF and its shapes."""

    tools: Sequence[ViewedTool]
    text: str
    drawing: Drawing


class Moment(NamedTuple):
    """What is known in one frame.

    tool: whose goal is shown where there is room for one. values: joint positions by name, empty until they
    are received. states: the newest joint_states, None unless they are of this frame. commanding: the gizmo
    commands the arm. options: of IkSolver in ik_node.
    """

    tool: ViewedTool
    values: Mapping[str, float]
    states: JointState | None
    commanding: bool
    options: Mapping[str, Any]


class Room:
    """A part of the page; the node calls all methods but one in its executor."""

    def show(self, shown: Shown | None) -> None:
        """Show another robot, after the scene was cleared, or none."""

    def subscribe(self) -> Sequence[Subscription]:
        """Subscribe to what is needed while a page is open; the caller unsubscribes."""
        return ()

    def refresh(self) -> None:
        """Do what is due once per second, with a page or without."""

    def update(self, moment: Moment) -> None:
        """Process the inputs of users and show the next frame."""

    def come_to_rest(self) -> None:
        """End what moves an arm; frames continue meanwhile. Called in another thread, before close."""

    def close(self) -> None:
        """Release what is held."""
