# SPDX-License-Identifier: Apache-2.0
"""OutputContext: the interface of the node to an output."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from rclpy.publisher import Publisher

from ik_node.ros.goals.node_time import NodeTime
from ik_node.ros.interfaces import PublishedTopic
from ik_node.ros.outputs.clocks import Clocks


@dataclass(frozen=True, eq=False)
class OutputContext:
    """The interface of the node to an output.

    prefix: of its topics. controller: its name, empty: not known. clocks: that of the measurements.
    fault(reason): stops the arm, because it cannot be commanded. reference(positions, time, age): takes where
    the controller commands joints, by name, at a time [s], and how old [s] that is on arrival. commanded: the
    names on which commands are sent.
    """

    node: Any
    prefix: str
    controller: str
    time: NodeTime
    clocks: Clocks
    fault: Callable[[str], None]
    reference: Callable[[Mapping[str, float], float, float], None]
    commanded: list[str] = field(default_factory=list)

    def named(self, name: str, of_controller: str = '') -> str:
        """Return the name of a topic or an action, with the name of the controller if known."""
        return f'{self.controller}/{of_controller or name}' if self.controller else f'{self.prefix}{name}'

    def commands(self, name: str, of_controller: str = '') -> str:
        """Return the name of a topic or an action on which commands are sent, and note it."""
        full = self.named(name, of_controller)
        self.commanded.append(full)
        return full

    def publisher(self, topic: PublishedTopic, of_controller: str = '') -> Publisher:
        """Return a publisher of commands, with the name of the controller if known."""
        return replace(topic, name=self.commands(topic.name, of_controller)).publisher(self.node)
