# SPDX-License-Identifier: Apache-2.0
"""Section: a part of the panel with a folder of its own."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple

import viser
from rclpy.node import Node
from rclpy.subscription import Subscription
from sensor_msgs.msg import JointState

from ik_node.model.arm import Arm
from ik_node.ros.parameters import RemoteSettings

from .events import Event, Events
from .panel import NONE
from .scene import Drawing
from .tool import ViewedTool


class RobotView(NamedTuple):
    """The robot that the page shows: its tools, each with its arm and scene, its URDF and its shapes."""

    tools: Sequence[ViewedTool]
    text: str
    drawing: Drawing

    @property
    def arms(self) -> list[Arm]:
        """The arm of each tool."""
        return [tool.arm for tool in self.tools if tool.arm is not None]


class Frame(NamedTuple):
    """What is known in one frame.

    tool: whose goal is shown where there is room for one. values: joint positions by name, empty until they
    are received. states: the newest joint_states, None unless they are of this frame. commanding: the gizmo
    commands the arm.
    """

    tool: ViewedTool
    values: Mapping[str, float]
    states: JointState | None
    commanding: bool


class Page(NamedTuple):
    """What all sections share.

    remote: the settings of ik_node, refreshed while a page is open. more: the folder of what a first goal does
    not need.
    """

    node: Node
    server: viser.ViserServer
    events: Events
    remote: RemoteSettings
    more: viser.GuiFolderHandle


class Section:
    """A part of the page. The node calls all methods but come_to_rest in its executor.

    robot: what the page shows, None without a robot.
    """

    def __init__(self, page: Page, label: str, order: float, first: bool = False, **folder: Any) -> None:
        """label, order: of the folder. first: not below More. folder: further options of it."""
        self.node, self.server, self.events, self.remote, more = page
        self.gui = page.server.gui
        self.robot: RobotView | None = None
        with nullcontext() if first else more:
            self.folder = self.gui.add_folder(label, order=order, **{'expand_by_default': False, **folder})

    # For the controls of a section

    def listen(self, control: Any, act: Callable[[Event], object], always: Collection[Any] = ()) -> Any:
        """Have act called with what users do at a control, as for Events.listen; return the control."""
        for name in ('on_click', 'on_upload', 'on_update'):
            if hasattr(control, name):
                self.events.listen(getattr(control, name), act, always)
                break
        return control

    def button(self, label: str, act: Callable[[], object], always: bool = False, **options: Any) -> Any:
        """Add a button that calls act."""
        button = self.gui.add_button(label, **options)
        return self.listen(button, lambda _: act(), (True,) if always else ())

    def offer(self, files: viser.GuiDropdownHandle[str], names: Sequence[str]) -> None:
        """Offer files by their names, or NONE; the one that is chosen stays."""
        options = (NONE, *names)
        if tuple(files.options) != options and not self.events.pending(files):
            chosen = files.value
            files.options = options
            files.value = chosen if chosen in options else NONE  # type: ignore[misc]

    # For the node

    def show(self, robot: RobotView | None) -> None:
        """Show another robot, after the scene was cleared, or none."""
        self.robot = robot

    def subscribe(self) -> Sequence[Subscription]:
        """Subscribe to what is needed while a page is open; the caller unsubscribes."""
        return ()

    def refresh(self) -> None:
        """Do what is due once per second, with a page or without."""

    def update(self, frame: Frame) -> None:
        """Show the next frame."""

    def come_to_rest(self) -> None:
        """End what moves an arm; frames continue meanwhile. Called in another thread, before close."""

    def close(self) -> None:
        """Release what is held."""
