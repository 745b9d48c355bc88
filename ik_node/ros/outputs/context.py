# SPDX-License-Identifier: Apache-2.0
"""OutputContext: the interface of the node to an output; the clock of measurements; joint_states."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from rclpy.node import Node
from rclpy.publisher import Publisher

from ik_node.control.outputs import Output
from ik_node.control.trajectory import Setpoint
from ik_node.ros.conversions import joint_state
from ik_node.ros.interfaces import JOINT_STATES, PublishedTopic
from ik_node.ros.reports import NodeTime

# Clocks: whether measurements are stamped by the clock of this computer.
#
# A joint_trajectory_controller starts a trajectory when its clock reaches the stamp, and stamps the
# measured joints by the same clock.

WINDOW = 5.0  # [s] in which the fastest measurement is used: on a busy computer many are late
ANOTHER = 60.0  # [s]: no message takes so long, and no clock that is set is so far off
AHEAD, BEHIND = 0.01, 0.1  # [s] tolerance of the clock difference, including the latency of a message


class Clocks:
    """Compares the stamps of measurements with the time at which they arrive.

    One thread notes them, any thread may ask: it reads one tuple, which is never changed.
    """

    def __init__(self) -> None:
        self._behind: tuple[tuple[float, float], ...] = ()  # arrivals and how old the stamps were [s]

    def heard(self, now: float, stamp: float | None) -> None:
        """Note that a measurement with a stamp [s] has arrived now [s]; None: without one."""
        behind = [one for one in self._behind if now - WINDOW <= one[0] <= now]
        if stamp is not None and abs(now - stamp) <= ANOTHER:
            while behind and behind[-1][1] >= now - stamp:
                behind.pop()  # slower messages carry no information
            behind.append((now, now - stamp))
        self._behind = tuple(behind)

    @property
    def agree(self) -> bool:
        """Whether both clocks show the same time, by the fastest message."""
        behind = self._behind
        return bool(behind) and -AHEAD <= behind[0][1] <= BEHIND

    @property
    def gap(self) -> str:
        """How they differ, in words."""
        known = self._behind
        if not known:
            return 'the measured joints have no stamps of this clock'
        behind = known[0][1]
        side = 'behind' if behind > 0.0 else 'ahead of'
        return f'the measured joints are stamped {abs(behind):.3g} s {side} this clock'


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


class JointStates(Output):
    """Publishes the setpoints of all arms of a robot as one message on joint_states."""

    def __init__(self, node: Node, time: NodeTime, hold_back: Callable[[], bool]) -> None:
        """hold_back(): whether a setpoint must not be published, because a driver may just have started."""
        self._time, self._hold_back = time, hold_back
        self._publisher = JOINT_STATES.publisher(node)
        self._setpoints: list[Setpoint] = []

    def take(self, setpoint: Setpoint) -> None:
        """Take the setpoint of one arm."""
        self._setpoints.append(setpoint)

    def publish(self) -> None:
        """Publish the setpoints taken since the last call, if any."""
        setpoints, self._setpoints = self._setpoints, []
        if not setpoints:
            return
        names = [name for setpoint in setpoints for name in setpoint.names]
        positions = np.concatenate([setpoint.positions for setpoint in setpoints])
        velocities = np.concatenate([setpoint.velocities for setpoint in setpoints])
        message = joint_state(self._time.stamp(setpoints[0].time), names, positions, velocities)
        if not self._hold_back():
            self._publisher.publish(message)
