# SPDX-License-Identifier: Apache-2.0
"""ik_plant: a simulated robot that takes commands as controllers do, and publishes measured joint_states.

For each joint the newest command counts, whatever topic it comes from.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, String
from trajectory_msgs.msg import JointTrajectory

from ik_node.errors import IkError, InputError
from ik_node.model.urdf.description import load_description
from ik_node.ros.conversions import joint_state, seconds
from ik_node.ros.interfaces import DESCRIPTION, STREAM, Remarks, subscribe
from ik_node.ros.neighbours import Neighbours
from ik_node.ros.parameters import declare
from ik_node.ros.reports import NodeTime
from ik_node.ros.run import ClosableNode, run

from .plant import Controllers, Plant, PlantSettings


class PlantNode(ClosableNode):
    """The node; options are those of rclpy's Node. Raises IkError if it cannot start with its parameters."""

    def __init__(self, **options: Any) -> None:
        super().__init__('ik_plant', **options)
        self._settings = declare(self, PlantSettings)
        self._time = NodeTime(self)
        self._plant: Plant | None = None
        self._remarks = Remarks()
        self._text = ''
        settings = self._settings
        if settings.robot_description and settings.urdf_file:
            raise InputError('parameters robot_description and urdf_file are both set; set only one of them')
        self._publisher = self.create_publisher(JointState, 'joint_states', STREAM)
        self._met = Neighbours(self, 'ik_plant', self._mind_neighbours, since=time.time(), measures=['joint_states'])
        if settings.robot_description or settings.urdf_file:
            self._build(settings.robot_description or load_description(settings.urdf_file, settings.xacro_args))
        else:
            DESCRIPTION.subscription(self, self._describe)
            self.get_logger().info('waiting for robot_description')
        for kind, topic, command in (
            *(
                (JointTrajectory, f'{tool}/joint_trajectory' if tool else 'joint_trajectory', follow)
                for tool in settings.tools  # one controller, or one for each of several tools
            ),
            (Float64MultiArray, 'position_commands', forward),
            (JointState, 'joint_commands', drive),
        ):
            subscribe(self, kind, topic, partial(self._take, command), STREAM)
        self.create_timer(1.0 / settings.publish_rate, self._publish)

    def _mind_neighbours(self) -> None:
        for sentence in self._met.announce():
            self.get_logger().error(sentence)

    def _describe(self, message: String) -> None:
        if message.data == self._text:
            return
        try:
            self._build(message.data)
        except (IkError, ValueError) as error:  # MuJoCo raises ValueError, such as for an inertia
            self.get_logger().error(f'robot_description rejected: {error}')

    def _build(self, text: str) -> None:
        self._plant = Plant(text, self._settings, self._time.now())
        self._text = text
        self.get_logger().info(f'simulating {len(self._plant.names)} joints')

    def _take(self, command: Callable[[Any, NodeTime], Callable[[Controllers, float], None]], message: Any) -> None:
        if self._plant is not None:
            self._plant.command(command(message, self._time), self._time.now())

    def _publish(self) -> None:
        if self._plant is None:
            return
        now = self._time.now()
        for rejection in self._plant.advance(now):
            if self._remarks.new(rejection):
                self.get_logger().error(f'command rejected: {rejection}')
        message = joint_state(self._time.stamp(now), self._plant.names, *self._plant.measured())
        self._publisher.publish(message)


def follow(message: JointTrajectory, time: NodeTime) -> Callable[[Controllers, float], None]:
    """Return the command of a trajectory, with its stamp as a time of the node."""
    points = message.points
    times = [seconds(point.time_from_start) for point in points]
    positions, velocities = [point.positions for point in points], [point.velocities for point in points]
    accelerations = [point.accelerations for point in points if point.accelerations]
    stamp = time.of(message.header.stamp)
    return lambda controllers, now: controllers.follow(
        now, message.joint_names, times, positions, velocities, accelerations, stamp
    )


def forward(message: Float64MultiArray, _: NodeTime) -> Callable[[Controllers, float], None]:
    """Return the command of a list of positions."""
    return lambda controllers, _: controllers.forward(message.data)


def drive(message: JointState, _: NodeTime) -> Callable[[Controllers, float], None]:
    """Return the command of positions by name."""
    return lambda controllers, _: controllers.drive(message.name, message.position)


def main() -> int:
    """Run ik_plant."""
    return run('ik_plant', PlantNode)
