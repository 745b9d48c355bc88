# SPDX-License-Identifier: Apache-2.0
"""position_commands: every setpoint as a list of positions, for a forward_position_controller."""

from __future__ import annotations

from std_msgs.msg import Float64MultiArray

from ik_node.control.outputs import Output
from ik_node.control.trajectory import Setpoint
from ik_node.ros.interfaces import POSITION_COMMANDS

from .context import OutputContext


class PositionCommands(Output):
    """Publishes the positions of the joints of the controller, in its order, on position_commands."""

    only_listed = True

    def __init__(self, context: OutputContext) -> None:
        self._publisher = context.publisher(POSITION_COMMANDS, of_controller='commands')

    def take(self, setpoint: Setpoint) -> None:
        """Publish a setpoint."""
        self._publisher.publish(Float64MultiArray(data=setpoint.listed()))
