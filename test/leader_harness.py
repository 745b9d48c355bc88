# SPDX-License-Identifier: Apache-2.0
"""A hand that moves a leader, ik_leader and the arm that follows, in a stepped world."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticStatus
from node_harness import Client, running
from rclpy.parameter import Parameter
from sensor_msgs.msg import JointState
from small_arm import ARM_JOINTS, arm_urdf

from ik_node.model.arm import Arm
from ik_node.model.urdf.reader import read_urdf
from ik_node.ros.conversions import report_values
from ik_node.ros.interfaces import LATCHED
from ik_node.ros.programs.leader import LeaderNode

PERIOD = 0.01  # [s] between two messages of the leader


class Hand:
    """Holds a leader whose joints it moves; what the leader says, and where the follower is sent.

    plugged: its messages arrive. where: the joints of the leader by name. path: where it is at a time [s], None:
    it stays. spoilt: what becomes of its messages.
    """

    def __init__(self, client: Client, names: tuple[str, ...], period: float) -> None:
        self.client, self.plugged = client, True
        self.where = dict.fromkeys(names, 0.0)
        self.path: Callable[[float], Mapping[str, float]] | None = None
        self.spoilt: Callable[[JointState], JointState | None] = lambda message: message
        self.said: list[str] = []
        self.reports: list[dict[str, str]] = []
        self._publisher = client.node.create_publisher(JointState, 'leader/joint_states', 10)
        client.node.create_subscription(DiagnosticStatus, 'ik_leader/status', self._hear, LATCHED)
        client.node.create_timer(period, self.publish)

    @property
    def time(self) -> float:
        return self.client.now().nanoseconds / 1e9

    def publish(self) -> None:
        if self.path is not None:
            self.where |= self.path(self.time)
        message = JointState(name=list(self.where), position=[float(value) for value in self.where.values()])
        message.header.stamp = self.client.now().to_msg()
        spoilt = self.spoilt(message)
        if self.plugged and spoilt is not None:
            self._publisher.publish(spoilt)

    def move(self, seconds: float = 1.0, **to: float) -> None:
        """Move joints of the leader smoothly, and wait for that."""
        start, begin = {name: self.where[name] for name in to}, self.time

        def path(time: float) -> dict[str, float]:
            share = min(max((time - begin) / seconds, 0.0), 1.0)
            share *= share * (3.0 - 2.0 * share)
            return {name: start[name] + share * (to[name] - start[name]) for name in to}

        self.path = path
        self.client.run(seconds + 2 * PERIOD)
        self.path = None

    def wander(self, speed: float = 1.0, seed: int = 0) -> None:
        """Move all joints without an end, from where they are towards zero and back."""
        rng, begin, start = np.random.default_rng(seed), self.time, dict(self.where)
        rates = dict(zip(start, rng.uniform(0.5, 1.5, len(start)) * speed, strict=True))
        self.path = lambda time: {
            name: start[name] - math.copysign(0.4, start[name]) * (1.0 - math.cos(rate * (time - begin)))
            for name, rate in rates.items()
        }

    def _hear(self, status: DiagnosticStatus) -> None:
        self.said.append(status.message)
        self.reports.append(report_values(status))

    @property
    def follows(self) -> bool:
        return bool(self.reports) and self.reports[-1]['state'] == 'following'

    def wait_follows(self) -> None:
        self.client.wait(lambda: self.follows, f'the follower to follow; said: {self.said[-3:]}')

    def wait_ended(self, words: str = '') -> None:
        self.client.wait(lambda: any(words in text for text in self.said[-5:]) and not self.follows, words)

    def gap(self) -> float:
        """The largest distance between leader and follower [rad]."""
        return float(np.abs(self.client.position(*self.where) - list(self.where.values())).max())

    def largest_step(self, since: int = 0) -> float:
        """The largest step of a joint between two commands since that many [rad]."""
        rows = np.array([list(sample.position) for sample in self.client.samples[since:]])
        return float(np.abs(np.diff(rows, axis=0)).max(initial=0.0))


@contextmanager
def led(
    urdf: str = '',
    names: tuple[str, ...] = ARM_JOINTS,
    leader: Mapping[str, Any] | None = None,
    rate: float = 50.0,
    **parameters: Any,
) -> Iterator[Hand]:
    """A follower, its leader and the hand; leader: parameters of ik_leader. rate [Hz]: of messages and setpoints."""
    given = {'speed_scaling': 1.0, 'publish_description': True, 'publish_rate': rate, **parameters}
    with running(urdf or arm_urdf(), **given) as client:
        hand = Hand(client, names, 1.0 / rate)
        overrides = [Parameter(name, value=value) for name, value in (leader or {}).items()]
        node = LeaderNode(context=client.world.context, parameter_overrides=overrides)
        try:
            yield hand
        finally:
            node.close()


def started(hand: Hand, count: int, seed: int) -> list[float]:
    """Let a leader that stands anywhere else begin, again and again; return the largest step of each time [rad]."""
    rng, client, steps = np.random.default_rng(seed), hand.client, []
    names = list(hand.where)
    for _ in range(count):
        hand.where |= dict(zip(names, rng.uniform(-1.5, 1.5, len(names)), strict=True))
        mark = len(client.samples)
        client.call('ik_leader/lead', on=True)
        client.run(0.1)
        assert not hand.follows
        there = client.position(*names) + rng.uniform(-0.09, 0.09, len(names))
        hand.move(0.3, **dict(zip(names, there, strict=True)))
        hand.wait_follows()
        near = dict(zip(names, there + rng.uniform(-0.1, 0.1, len(names)), strict=True))
        hand.move(0.5, **near)
        client.run(0.3)
        assert hand.follows
        steps.append(hand.largest_step(mark))
        client.call('ik_leader/lead', on=False)
        hand.wait_ended('lead')
    return steps


def pulled(hand: Hand, count: int, seed: int) -> Iterator[tuple[float, float]]:
    """Pull the cable at any moment of a motion, again and again.

    Yields in how many seconds the follower has come to rest, and its largest step meanwhile [rad].
    """
    rng, client = np.random.default_rng(seed), hand.client
    names = list(hand.where)
    for number in range(count):
        hand.path = None
        hand.where |= dict(zip(names, client.position(*names), strict=True))
        hand.plugged = True
        hand.wait_follows()
        hand.wander(1.0, number)
        client.run(rng.uniform(0.2, 1.5))
        assert hand.follows
        hand.plugged, mark, begin = False, len(client.samples), hand.time
        hand.wait_ended('is its cable plugged in')
        client.wait_still()
        assert not hand.follows
        yield hand.time - begin, hand.largest_step(mark)


def latencies(hand: Hand, count: int) -> list[float]:
    """Return how long after a message of the leader a command moves the follower [s]."""
    found = []
    for number in range(count):
        hand.client.run(0.15 + 0.0013 * (number % 8))
        hand.client.wait_still()
        mark, begin = len(hand.client.samples), hand.client.now().nanoseconds
        hand.where['yaw'] += 0.02
        hand.publish()
        at = hand.client.position('yaw')[0]
        hand.client.wait(lambda at=at: hand.client.position('yaw')[0] != at, 'the command')
        moved = next(s for s in hand.client.samples[mark:] if s.position[s.name.index('yaw')] != at)
        found.append((moved.header.stamp.sec * 10**9 + moved.header.stamp.nanosec - begin) / 1e9)
    return found


def whole_arm(file: Path) -> tuple[tuple[str, ...], dict[str, float]]:
    """The joints of an arm, and a posture with its elbow bent."""
    arm = Arm(read_urdf(file.read_text()), tool_axis='z')
    middle = arm.middle.copy()
    return arm.joint_names, dict(zip(arm.joint_names, middle.tolist(), strict=True))
