# SPDX-License-Identifier: Apache-2.0
"""TrajectoryOutput: common part of the outputs to a joint_trajectory_controller of ros2_control."""

from __future__ import annotations

import math
import struct
from typing import Any

import numpy as np
from builtin_interfaces.msg import Duration, Time
from rclpy.serialization import deserialize_message
from trajectory_msgs.msg import JointTrajectory as JointTrajectoryMessage
from trajectory_msgs.msg import JointTrajectoryPoint

from ik_node.control.outputs import Output
from ik_node.control.trajectory import JointTrajectory, Setpoint
from ik_node.ros.conversions import NS_PER_S
from ik_node.ros.interfaces import CONTROLLER_STATE

from .context import OutputContext

SPACING = 0.008  # [s] minimum time between two references of the controller
STAMP = slice(4, 12)  # bytes of the header of a serialized message, behind 4 that describe its encoding
SOON = 0.01  # [s] minimum time to the first point of a motion that starts on reception


def trajectory_message(
    trajectory: JointTrajectory, stamp: Time | None, late: float = 0.0
) -> JointTrajectoryMessage:
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
        self._context, self._heard = context, -math.inf
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
        if 0.0 <= sec + nanosec / NS_PER_S - self._heard < SPACING:
            return
        self._heard = sec + nanosec / NS_PER_S
        try:
            state = deserialize_message(data, kind)
            reference = state.reference if hasattr(state, 'reference') else state.desired  # of old versions
        except Exception:  # of rclpy, for times and strings that it cannot represent
            return
        places, time = reference.positions, self._context.time.of(state.header.stamp)
        if time is not None and len(places) == len(state.joint_names) and np.isfinite(places).all():
            age = self._context.time.now() - time
            self._context.reference(dict(zip(state.joint_names, places, strict=True)), time, age)

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
