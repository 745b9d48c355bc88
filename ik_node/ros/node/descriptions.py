# SPDX-License-Identifier: Apache-2.0
"""Descriptions: the source of the robot description, parameters or topic."""

from __future__ import annotations

from collections.abc import Callable

from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.subscription import Subscription
from std_msgs.msg import String

from ik_node.control.robot.robot_models import check_models
from ik_node.control.settings.arm import ArmSettings
from ik_node.control.settings.robot import RobotSettings
from ik_node.errors import InputError
from ik_node.model.urdf.description import load_description, read_from
from ik_node.ros.interfaces import DESCRIPTION, OWN_DESCRIPTION


class Descriptions:
    """Passes descriptions on to receive while it is open."""

    def __init__(self, node: Node, receive: Callable[[str], None]) -> None:
        self._node, self._receive = node, receive
        self._subscription: Subscription | None = None
        self._publisher: Publisher | None = None
        self._pending = ''  # to be published

    def open(self, robot: RobotSettings) -> None:
        """Read the description that the settings name, or wait for the topic. Raises IkError."""
        settings = robot.general
        text, path = settings.robot_description, settings.urdf_file
        if text and path:
            raise InputError('parameters robot_description and urdf_file are both set; set only one of them')
        if not text and not path:
            self._subscription = DESCRIPTION.subscription(self._node, self._hear)
            return
        text = text or load_description(path, settings.xacro_args)
        with read_from(path):
            check_models(text, robot, {})
        self._take(text, settings)

    def _take(self, text: str, settings: ArmSettings) -> None:
        self._receive(text)
        if settings.publish_description:
            self._pending = text

    def publish(self) -> None:
        """Publish the description of the parameters, if it is to be and has not been."""
        text, self._pending = self._pending, ''
        if text:
            if self._publisher is None:
                self._publisher = OWN_DESCRIPTION.publisher(self._node)
            self._publisher.publish(String(data=text))

    @staticmethod
    def check(before: ArmSettings, after: ArmSettings, real: bool) -> str:
        """Return the text of a changed parameter robot_description, '' without a change.

        real: the commands may move a real arm. Raises InputError if the change is not allowed.
        """
        if after.robot_description == before.robot_description:
            return ''
        if not (before.robot_description and after.robot_description):
            raise InputError(
                'parameter robot_description can only replace a text set at start-up; here the '
                f'description comes from {"urdf_file" if before.urdf_file else "the topic or is to be none"}'
            )
        if real:
            raise InputError(
                'parameter robot_description cannot change while joints are measured, or while commands are '
                'sent to a controller or driver: the real arm does not change'
            )
        return after.robot_description

    def change(self, before: ArmSettings, settings: ArmSettings) -> None:
        """Use a changed text that has passed check()."""
        if settings.robot_description != before.robot_description:
            self._take(settings.robot_description, settings)

    def _hear(self, message: String) -> None:
        self._receive(message.data)

    def close(self) -> None:
        """Stop waiting for a description."""
        if self._subscription is not None:
            self._node.destroy_subscription(self._subscription)
            self._subscription = None
