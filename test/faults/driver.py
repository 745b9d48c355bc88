# SPDX-License-Identifier: Apache-2.0
"""Driver: the arm at the other end. Its joints do what they are commanded; its feedback may be disturbed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from rclpy.node import Node
from rclpy.time import Time
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory

from faults.controllers import Controllers
from faults.record import Record, now

PERIOD = 0.01  # [s]
ROWS = 'positions', 'velocities', 'accelerations'
TICKS = 2  # of the clock in a period

# A disturbance turns the messages of a period into those that are sent in it.
Disturbance = Callable[[list[JointState]], list[JointState]]


class SimulatedClock:
    """The time on /clock: it runs, stands, races and jumps."""

    def __init__(self) -> None:
        self._base, self._since, self._rate = 1000.0, now(), 1.0
        self._back = 0.0  # all jumps backwards

    def read(self) -> float:
        """Return the time [s]."""
        return self._base + self._rate * (now() - self._since)

    def jump(self, seconds: float) -> None:
        """Jump, but not before the beginning."""
        before = self.read()
        self._base, self._since = max(before + seconds, 1.0), now()
        self._back += max(before - self._base, 0.0)

    def travelled(self) -> float:
        """Return the time [s] that has passed forwards: arms that cannot go back have moved for so long."""
        return self.read() + self._back

    def run(self, rate: float) -> None:
        """Run at a multiple of the real time."""
        self._base, self._since, self._rate = self.read(), now(), rate


class Driver:
    """Publishes feedback on one topic and /clock, from a thread of its own.

    clock: None for real time. disturbances: applied in this order. topic: of the feedback, None without.
    """

    def __init__(
        self,
        node: Node,
        joints: Sequence[str],
        topic: str | None,
        simulated: bool,
        stamped: bool,
        record: Record,
    ) -> None:
        """stamped: whether messages of the feedback say when they were measured."""
        self._names, self._record, self._stamped, self.topic = tuple(joints), record, stamped, topic
        self._lock = threading.Lock()
        self._controllers = Controllers(self._names)
        self.offset = np.zeros(len(self._names))  # of the measured from the commanded joints
        self.stuck = False
        self.disturbances: dict[str, Disturbance] = {}
        self.clock = SimulatedClock() if simulated else None
        self._clocks = node.create_publisher(Clock, '/clock', 10) if simulated else None
        self._feedback = None if topic is None else node.create_publisher(JointState, topic, 10)
        self._held = self._targets()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread."""
        self._closing.set()
        self._thread.join(timeout=5.0)

    def time(self) -> float:
        """Return the time of the controllers [s]."""
        return now() if self.clock is None else self.clock.read()

    def travelled(self) -> float:
        """Return the time of the controllers [s], jumps backwards left out."""
        return now() if self.clock is None else self.clock.travelled()

    @property
    def measures(self) -> bool:
        """Whether there is feedback."""
        return self._feedback is not None

    def stamp(self) -> Any:
        """Return a stamp of this moment."""
        seconds = time.time() if self.clock is None else self.clock.read()
        return Time(nanoseconds=int(1e9 * seconds)).to_msg()

    def position(self) -> dict[str, float]:
        """Return where the joints are."""
        with self._lock:
            return dict(zip(self._names, (self._held + self.offset).tolist(), strict=True))

    # Commands

    def drive(self, names: Sequence[str], positions: Sequence[float]) -> None:
        """Take positions by name."""
        with self._lock:
            self._controllers.drive(names, positions)

    def follow(self, message: JointTrajectory) -> bool:
        """Take a trajectory; return whether a controller would."""
        points = message.points
        times = [p.time_from_start.sec + 1e-9 * p.time_from_start.nanosec for p in points]
        rows = [[list(getattr(p, name)) for p in points] for name in ROWS]
        begins = self.begins(message.header.stamp)
        with self._lock:
            return self._controllers.follow(self.time(), begins, message.joint_names, times, rows)

    def moving(self, names: Sequence[str]) -> bool:
        """Whether a trajectory moves any of these joints."""
        with self._lock:
            return self._controllers.moving(self.time(), names)

    def hold(self, names: Sequence[str]) -> None:
        """Hold joints at once where they are measured, as controllers do that are told to cancel."""
        with self._lock:
            self._controllers.hold(self.time(), names)
            if self.stuck:
                self._controllers.drive(self._names, self._held.tolist())

    def go_home(self) -> None:
        """Put all joints at 0."""
        self.drive(self._names, [0.0] * len(self._names))

    def begins(self, stamp: Any) -> float | None:
        """Return the time of the controllers [s] of a stamp of a trajectory; None: when it is taken."""
        seconds = stamp.sec + 1e-9 * stamp.nanosec
        if not seconds:
            return None
        return float(seconds if self.clock is not None else seconds + now() - time.time())

    # Feedback

    def _targets(self) -> np.ndarray:
        return self._controllers.position(self.time())

    def measured(self) -> JointState:
        """Return the message of this moment."""
        with self._lock:
            if not self.stuck:
                self._held = self._targets()
            values = self._held + self.offset
        message = JointState(name=list(self._names), position=values.tolist())
        message.velocity = [0.0] * len(self._names)
        if self._stamped:
            message.header.stamp = self.stamp()
        return message

    def send(self, message: JointState) -> None:
        """Publish a message on the topic of the feedback, and note it."""
        if self._feedback is not None:
            self._record.measured.append((now(), dict(zip(message.name, message.position, strict=False))))
            self._feedback.publish(message)

    def send_clock(self, message: Clock) -> None:
        """Publish a time on /clock."""
        if self._clocks is not None:
            self._clocks.publish(message)

    def _run(self) -> None:
        tick = 0
        while not self._closing.wait(PERIOD / TICKS):
            if self.clock is not None:
                self.send_clock(Clock(clock=self.stamp()))
            tick += 1
            if tick % TICKS == 0:
                messages = [self.measured()]
                for disturbance in list(self.disturbances.values()):
                    messages = disturbance(messages)
                for message in messages:
                    self.send(message)
