# SPDX-License-Identifier: Apache-2.0
"""Activities: what the arm is asked to do in a run, so that faults meet it in every phase."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from std_msgs.msg import Bool

from campaigns.faults.arena import Arena
from campaigns.faults.messages import MAKE, joints_message, path, pose


@dataclass(frozen=True, eq=False)
class Action:
    """Do something at a time of the run [s]."""

    at: float
    do: Callable[[Arena], object]


@dataclass(frozen=True)
class Draw:
    """What activities and faults are drawn from. length: of the run [s]. arena: to look up, not to act."""

    rng: np.random.Generator
    length: float
    arena: Arena

    def time(self) -> float:
        """Return a time of the run [s]."""
        return float(self.rng.uniform(0.0, self.length))

    def span(self, least: float = 0.05, most: float = 0.6) -> tuple[float, float]:
        """Return the beginning and the end of a while [s]."""
        begin = float(self.rng.uniform(0.0, 0.7 * self.length))
        return begin, begin + float(self.rng.uniform(least, most))

    def times(self, rate: float, begin: float = 0.0, end: float | None = None) -> list[float]:
        """Return times at a rate [Hz]."""
        return np.arange(begin, self.length if end is None else end, 1.0 / rate).tolist()

    def waves(self) -> Callable[[float], dict[str, float]]:
        """Return joints that swing about a random place, by time."""
        robot = self.arena.robot
        middle, size, phase = robot.joints(self.rng), self.rng.uniform(0.02, 0.4), self.rng.uniform(0.0, 7.0)
        return lambda at: {n: v + size * np.sin(2.0 * at + phase + i) for i, (n, v) in enumerate(middle.items())}


Plan = Iterator[Action]


def send(topic: str, message: object, at: float) -> Action:
    """Send a message with the stamp of that moment."""
    return Action(at, lambda arena: arena.send(topic, arena.stamped(message)))


def call(at: float, service: str, **fields: object) -> Action:
    """Call a service."""
    return Action(at, lambda arena: arena.ask(service, **fields))


def rest(_: Draw) -> Plan:
    yield from ()


def goals(draw: Draw) -> Plan:
    for topic in draw.rng.choice(['goal_pose', 'goal_point', 'goal_joints'], draw.rng.integers(1, 5)):
        yield send(str(topic), MAKE[str(topic)](draw.arena.robot, draw.rng), draw.time())


def stream(draw: Draw) -> Plan:
    """Poses along a curve at 50 Hz."""
    joints = draw.waves()
    for at in draw.times(50.0):
        yield send('goal_pose', pose(draw.arena.robot, joints(at)), at)


def along_path(draw: Draw) -> Plan:
    """Straight lines from where the tool is."""
    rng = np.random.default_rng(int(draw.rng.integers(2**32)))
    for at in (0.1, 0.4, 0.8):
        yield Action(at, lambda arena: arena.send('goal_path', arena.stamped(path(arena.robot, arena.places(), rng))))


def by_twist(draw: Draw) -> Plan:
    messages = [MAKE['ik_node/delta_twist_cmds'](draw.arena.robot, draw.rng) for _ in range(3)]
    for at in draw.times(50.0):
        yield send('ik_node/delta_twist_cmds', messages[int(3 * at / draw.length) % 3], at)


def by_jog(draw: Draw) -> Plan:
    message = MAKE['ik_node/delta_joint_cmds'](draw.arena.robot, draw.rng)
    for at in draw.times(50.0):
        yield send('ik_node/delta_joint_cmds', message, at)


def by_hand(draw: Draw) -> Plan:
    """Poses of a hand, with or without the clutch."""
    joints, clutch = draw.waves(), bool(draw.rng.random() < 0.5)
    if not clutch:
        yield Action(0.0, lambda arena: arena.change(clutch='none'))
    for at in draw.times(50.0):
        yield send('ik_node/pose_target_cmds', pose(draw.arena.robot, joints(at)), at)
        if clutch:
            yield send('ik_node/enable', Bool(data=bool(draw.rng.random() < 0.8)), at)


def guided(draw: Draw) -> Plan:
    """By hand: the joints are pushed while the commands follow."""
    begin, end = 0.1, float(draw.rng.uniform(0.3, draw.length))
    push = draw.rng.uniform(-0.3, 0.3, len(draw.arena.offset))
    for at, service, fields in (
        (0.0, 'stop', {}),
        (0.05, 'resume', {}),
        (begin, 'hand_guide', {'data': True}),
        (end, 'hand_guide', {'data': False}),
    ):
        yield call(at, service, **fields)
    for at in [*draw.times(100.0, begin + 0.1, end), draw.length]:
        share = (at - begin) / draw.length if at < draw.length else 0.0
        yield Action(at, lambda arena, offset=share * push: setattr(arena, 'offset', offset))


def homing(draw: Draw) -> Plan:
    yield call(draw.time(), 'home')


def gripper(draw: Draw) -> Plan:
    """A joint off the arm besides the arm."""
    robot = draw.arena.robot
    for _ in range(2):
        extra = {'finger': draw.rng.uniform(0.0, 0.04)} if robot.name == 'little' else {}
        yield send('goal_joints', joints_message({**robot.joints(draw.rng), **extra}), draw.time())


ACTIVITIES: dict[str, Callable[[Draw], Plan]] = {
    'rest': rest,
    'goals': goals,
    'stream of goals': stream,
    'path': along_path,
    'twist': by_twist,
    'jog': by_jog,
    'hand': by_hand,
    'hand-guided': guided,
    'home': homing,
    'gripper': gripper,
}
