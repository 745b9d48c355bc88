# SPDX-License-Identifier: Apache-2.0
"""Outputs: how commands are published. One class each, and one branch of output() in ros/node.py."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from builtin_interfaces.msg import Duration, Time
from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.serialization import deserialize_message
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import JointTrajectory as JointTrajectoryMessage
from trajectory_msgs.msg import JointTrajectoryPoint

from ik_node.control.outputs import Output
from ik_node.control.trajectory import JointTrajectory, Setpoint
from ik_node.errors import InputError, quoted
from ik_node.ros.conversions import NS_PER_S, joint_state
from ik_node.ros.interfaces import (
    CONTROLLER_STATE,
    JOINT_STATES,
    JOINT_TRAJECTORY,
    POSITION_COMMANDS,
    PublishedTopic,
)
from ik_node.ros.reports import NodeTime

DISPLAY_ONLY = 'joint_states'  # of all arms together, may be added to an output of each arm
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

    def note(self, now: float, stamp: float | None) -> None:
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


class PositionCommands(Output):
    """Publishes the positions of the joints of the controller, in its order, on position_commands."""

    only_listed = True

    def __init__(self, context: OutputContext) -> None:
        self._publisher = context.publisher(POSITION_COMMANDS, of_controller='commands')

    def take(self, setpoint: Setpoint) -> None:
        """Publish a setpoint."""
        self._publisher.publish(Float64MultiArray(data=setpoint.listed()))


# Trajectories for joint_trajectory_controller of ros2_control.

SPACING = 0.008  # [s] minimum time between two references of the controller
STAMP = slice(4, 12)  # bytes of the header of a serialized message, behind 4 that describe its encoding
SOON = 0.01  # [s] minimum time to the first point of a motion that starts on reception


def trajectory_message(trajectory: JointTrajectory, stamp: Time | None, late: float = 0.0) -> JointTrajectoryMessage:
    """Return the message. stamp: of time 0, None if the clock of the controller is not known.

    Without a stamp the motion begins when the controller receives it, late [s] after time 0, and must not
    repeat the past.
    """
    first = 0
    if trajectory.on_arrival:
        first = trajectory.starts
    elif stamp is None:
        first = int(np.searchsorted(trajectory.times, max(trajectory.joined, late + SOON)))
        first = min(first, len(trajectory.times) - 1)
    times = trajectory.times[first:] - (0.0 if stamp is not None else late)
    times += max(SOON - times[0], 0.0) if stamp is None else 0.0
    rows = zip(times.tolist(), *(row[first:].tolist() for row in trajectory.rows), strict=True)
    points = [
        JointTrajectoryPoint(
            positions=positions,
            velocities=velocities,
            accelerations=accelerations,
            time_from_start=_duration(time),
        )
        for time, positions, velocities, accelerations in rows
    ]
    message = JointTrajectoryMessage(joint_names=list(trajectory.names), points=points)
    if stamp is not None:
        message.header.stamp = stamp
    return message


def _duration(seconds: float) -> Duration:
    sec, nanosec = divmod(round(seconds * NS_PER_S), NS_PER_S)
    return Duration(sec=sec, nanosec=nanosec)


class TrajectoryOutput(Output):
    """Sends trajectories; subclasses implement send."""

    runs_plans = only_listed = True

    def __init__(self, context: OutputContext) -> None:
        self._context, self._last_reference = context, -math.inf
        kind = CONTROLLER_STATE.type
        if kind is None:
            context.node.get_logger().warning(
                'the ROS package control_msgs is not installed: late trajectories, at which a controller of '
                'ros2_control jumps, are not noticed'
            )
            return
        context.node.create_subscription(
            kind,
            context.named(CONTROLLER_STATE.name),
            lambda data: self._on_state(data, kind),
            CONTROLLER_STATE.qos,
            raw=True,  # it comes in each period of the controller, and is not needed as often
        )

    def _on_state(self, data: bytes, kind: Any) -> None:
        if len(data) < STAMP.stop or not self._context.clocks.agree:
            return
        sec, nanosec = struct.unpack('<iI' if data[1] else '>iI', data[STAMP])
        # By the stamp: of those that have waited together, the first one is the oldest.
        if 0.0 <= sec + nanosec / NS_PER_S - self._last_reference < SPACING:
            return
        self._last_reference = sec + nanosec / NS_PER_S
        try:
            state = deserialize_message(data, kind)
            reference = state.reference if hasattr(state, 'reference') else state.desired  # of old versions
        except Exception:  # of rclpy, for times and strings that it cannot represent
            return
        positions, time = reference.positions, self._context.time.of(state.header.stamp)
        if time is not None and len(positions) == len(state.joint_names) and np.isfinite(positions).all():
            age = self._context.time.now() - time
            self._context.reference(dict(zip(state.joint_names, positions, strict=True)), time, age)

    def send(self, message: JointTrajectoryMessage, braking: bool) -> None:
        """Send a trajectory. braking: it only ends an earlier one."""
        raise NotImplementedError

    def late(self, time: float) -> float:
        """Return how late [s] a trajectory would be sent now for a setpoint of a time [s]."""
        return self._context.time.now() - time

    def take(self, setpoint: Setpoint) -> None:
        """Send the trajectory that is due, if any."""
        if setpoint.trajectory is not None:
            self._send(setpoint.trajectory)

    def halted(self, hold_trajectory: JointTrajectory | None) -> None:
        """Hold the joints where they are."""
        if hold_trajectory is not None:
            self._send(hold_trajectory)

    def _send(self, trajectory: JointTrajectory) -> None:
        clocks, stamp = self._context.clocks, None
        if trajectory.on_arrival:
            self.send(trajectory_message(trajectory, None), trajectory.braking)
            return
        if clocks.agree:
            stamp = self._context.time.stamp(trajectory.begins)
        else:
            self._context.node.get_logger().warning(
                f'trajectories start on arrival, and replacing one may cause a jump: {clocks.gap}',
                throttle_duration_sec=10.0,
            )
        # A controller at rest may start later: it must not skip the start of a motion.
        moves = trajectory.velocities[0].any() or trajectory.accelerations[0].any()
        late = max(self.late(trajectory.begins), 0.0) if moves else 0.0
        self.send(trajectory_message(trajectory, stamp, late), trajectory.braking)


class JointTrajectoryTopic(TrajectoryOutput):
    """Publishes each plan on joint_trajectory."""

    def __init__(self, context: OutputContext) -> None:
        super().__init__(context)
        self._publisher = context.publisher(JOINT_TRAJECTORY)

    def send(self, message: JointTrajectoryMessage, braking: bool) -> None:  # noqa: ARG002
        """Publish a trajectory."""
        self._publisher.publish(message)
        if self._publisher.get_subscription_count() == 0:
            self._context.fault(f'no controller subscribes to {self._publisher.topic_name}')


# The names that users choose; output() in ros/node.py has the classes.
NAMES = (DISPLAY_ONLY, 'joint_trajectory', 'position_commands', 'follow_joint_trajectory')


def output_names(text: str) -> tuple[str, ...]:
    """Return the outputs that text names, separated by commas or blanks. Raises InputError.

    At least one, and besides DISPLAY_ONLY at most one: two controllers must not move the same arm.
    """
    names = tuple(dict.fromkeys(re.split(r'[\s,]+', text.strip(' ,\t\n'))))
    for name in names:
        if name not in NAMES:
            raise InputError(f'parameter output must be one of {", ".join(NAMES)}, got {quoted(name)}')
    if len(set(names) - {DISPLAY_ONLY}) > 1:
        raise InputError(f'parameter output may name only one output besides {DISPLAY_ONLY}, got {quoted(text)}')
    return names
