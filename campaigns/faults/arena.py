# SPDX-License-Identifier: Apache-2.0
"""Arena: a stepped node, an arm behind it whose feedback may be disturbed, and a client that hears it."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.qos import DurabilityPolicy, QoSProfile
from rclpy.time import Time
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, String
from stepped import START, World
from trajectory_msgs.msg import JointTrajectory

from campaigns.faults.controllers import Controllers
from campaigns.faults.robots import TIPS, Robot, bounds, robot, text_of
from ik_node.ros import neighbours
from ik_node.ros.node import IkNode

PACKAGE = Path(neighbours.__file__).parents[1]
neighbours.SETTLING = 0.0  # there is nobody to find
PERIOD = 0.01  # [s] of feedback and /clock
LATCHED = QoSProfile(depth=100, durability=DurabilityPolicy.TRANSIENT_LOCAL)
OF_TOOL = ('home', 'stop', 'resume', 'hand_guide', 'pause_servo')  # services that each tool has
FIXED = ('robot_description', 'urdf_file', 'output', 'tools', 'use_sim_time')
ROWS = ('positions', 'velocities', 'accelerations')
JOINTS = tuple(dict.fromkeys(joint for name in TIPS for joint in bounds(text_of(name))))  # of all robots

Disturbance = Callable[[list[JointState]], list[JointState]]  # of the feedback of a period


@dataclass(frozen=True)
class Setup:
    """What a node is started with. simulated: the time; stamped: the feedback."""

    robot: str
    output: str
    feedback: str
    simulated: bool
    stamped: bool

    def __str__(self) -> str:
        extras = [what for what in ('simulated', 'stamped') if getattr(self, what)]
        return ', '.join([self.robot, self.output, *extras])


@dataclass(frozen=True, eq=False)
class Seen:
    """A sample: when it was sent [s], its stamp [s] if it has one, and the joints."""

    when: float
    topic: str
    time: float | None
    names: Sequence[str]
    positions: Sequence[float]
    velocities: Sequence[float] | None


@dataclass(frozen=True, eq=False)
class SeenTrajectory:
    """A trajectory: when it was sent, and when its times are 0 on the clock of its controller [s]."""

    when: float
    topic: str
    begins: float
    names: Sequence[str]
    times: list[float]
    rows: list[list[list[float]]]  # positions, velocities, accelerations


@dataclass(frozen=True)
class Status:
    """A report: state and goal are its keys of that name."""

    when: float
    tool: str
    message: str
    state: str
    goal: str


@dataclass
class Record:
    """All that was published and measured, in its order."""

    samples: list[Seen | SeenTrajectory] = field(default_factory=list)
    statuses: list[Status] = field(default_factory=list)
    measured: list[tuple[float, dict[str, float]]] = field(default_factory=list)
    descriptions: list[float] = field(default_factory=list)

    def measurements(self, joint: str, since: float, until: float) -> list[float]:
        """Return all positions of a joint that were sent between two times."""
        found = []
        for when, values in reversed(self.measured):
            if when < since:
                break
            if when <= until and joint in values:
                found.append(values[joint])
        return found


class SimulatedClock:
    """The time on /clock: it runs, stands, races and jumps."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now, self._base, self._since, self._rate = now, 1000.0, now(), 1.0

    def read(self) -> float:
        """Return the time [s]."""
        return self._base + self._rate * (self._now() - self._since)

    def set(self, jump: float = 0.0, rate: float | None = None) -> None:
        """Jump, but not before the beginning, or run at a multiple of the real time."""
        self._base, self._since = max(self.read() + jump, 1.0), self._now()
        self._rate = self._rate if rate is None else rate


class Arena:
    """tool: that is spoken to, one of tools. widest: by parameter, all values that were in force."""

    def __init__(self, world: World, setup: Setup) -> None:
        self.world, self.setup, self.record = world, setup, Record()
        self.tools = tuple(TIPS[setup.robot])
        self.tool = self.tools[0]
        self.widest: dict[str, set[float]] = {}
        self.clock = SimulatedClock(lambda: self.now) if setup.simulated else None
        self.controllers = Controllers(JOINTS)
        self.offset, self.held = np.zeros(len(JOINTS)), np.zeros(len(JOINTS))
        self.stuck = False
        self.disturbances: dict[str, Disturbance] = {}
        values = {**self.robot.parameters, 'output': setup.output, 'use_sim_time': setup.simulated}
        values['goal_timeout'] = 60.0
        self.node = IkNode(
            context=world.context, parameter_overrides=[Parameter(n, value=v) for n, v in values.items()]
        )
        world.drive(self.node)
        self._setpoints = world._tickers[-1]
        self.client = Node('campaign', context=world.context)
        self._publishers: dict[str, Any] = {}
        self._clients: dict[str, Any] = {}
        for tool in self.tools:
            hear = lambda message, tool=tool: self._status(tool, message)  # noqa: E731
            self.client.create_subscription(DiagnosticStatus, of_tool('ik_node/status', tool), hear, LATCHED)
        for word in setup.output.split():
            for tool in self.tools if word != 'joint_states' else ('',):
                self._listen(word, of_tool(word, tool))
        if setup.simulated:
            self._publishers['/clock'] = self.client.create_publisher(Clock, '/clock', 10)
        if setup.feedback:
            self._publishers[setup.feedback] = self.client.create_publisher(JointState, setup.feedback, 10)
        self.client.create_timer(PERIOD, self._tick)
        self.describe(self.robot.text)

    def close(self) -> None:
        """End the node as Ctrl-C does, then all else."""
        try:
            self.node.close()
        finally:
            self.client.destroy_node()

    @property
    def robot(self) -> Robot:
        """The robot as the present tool sees it."""
        return robot(self.setup.robot, self.tool)

    @property
    def now(self) -> float:
        """The time of the world [s]."""
        return (self.world.ns - START) / 1e9

    def run(self, seconds: float) -> None:
        """Let time pass. As in the program, what only rclpy raises is a message that it cannot read."""
        end = self.now + seconds
        while True:
            try:
                return self.world.run(max(0.0, end - self.now))
            except Exception as error:
                frames = traceback.extract_tb(error.__traceback__)
                if any(PACKAGE in Path(frame.filename).parents for frame in frames):
                    raise

    def time(self) -> float:
        """The time of the controllers [s]."""
        return self.now if self.clock is None else self.clock.read()

    def stamp(self) -> Any:
        """A stamp of this moment."""
        return Time(nanoseconds=self.world.ns if self.clock is None else int(1e9 * self.clock.read())).to_msg()

    def using(self, tool: str, act: Callable[[Arena], object]) -> object:
        """Act with another tool."""
        before, self.tool = self.tool, tool
        try:
            return act(self)
        finally:
            self.tool = before

    def stall(self, seconds: float) -> None:
        """Keep the thread of the setpoints from running for a time."""
        self._setpoints.due = max(self._setpoints.due, self.world.ns + seconds * 1e9)

    # Sending

    def stamped(self, message: Any) -> Any:
        """Give a message the stamp of this moment, where it has one."""
        if hasattr(message, 'header'):
            message.header.stamp = self.stamp()
        return message

    def inputs(self) -> dict[str, Any]:
        """Return every topic that the node subscribes to, with its type."""
        return {s.topic_name: s.msg_type for s in self.world._subscriptions if s.node is not self.client}

    def services(self) -> dict[str, Any]:
        """Return every service that the node offers, with its type."""
        nodes = dict.fromkeys(one.node for one in self.world._services)
        return {s.service_name: s.srv_type for node in nodes for s in node.services}

    def send(self, topic: str, message: Any) -> None:
        """Publish a message on a topic of the present tool, or on a whole topic; feedback is noted."""
        topic = topic if topic.startswith('/') else of_tool(topic, self.tool)
        if self.setup.feedback and topic.strip('/') == self.setup.feedback:
            values = dict(zip(message.name, message.position, strict=False))
            self.record.measured.append((self.now, values))
            topic = self.setup.feedback
        if topic not in self._publishers:
            self._publishers[topic] = self.client.create_publisher(type(message), topic, LATCHED)
        self._publishers[topic].publish(message)

    def describe(self, text: str) -> None:
        """Publish a description."""
        self.record.descriptions.append(self.now)
        self.send('/robot_description', String(data=text))

    def ask(self, service: str, request: Any = None, **fields: Any) -> Any:
        """Call a service of the node, by its name there or its whole name; return the future."""
        path = of_tool(f'ik_node/{service}', self.tool) if service in OF_TOOL else f'ik_node/{service}'
        path = service if service.startswith('/') else f'/{path}'
        if path not in self._clients:
            self._clients[path] = self.client.create_client(self.services()[path], path)
        client = self._clients[path]
        return client.call_async(client.srv_type.Request(**fields) if request is None else request)

    def answer(self, service: str, **fields: Any) -> Any:
        """Call a service and return its answer; None if there is none within 2 s."""
        future, end = self.ask(service, **fields), self.now + 2.0
        while not future.done() and self.now < end:
            self.run(PERIOD)
        return future.result() if future.done() else None

    def change(self, **values: Any) -> Any:
        """Ask for a change of parameters; return the future of the answer."""
        for name, value in values.items():
            if isinstance(value, int | float) and not isinstance(value, bool):
                self.widest.setdefault(name, set()).add(float(value))
        wanted = [Parameter(name, value=value).to_parameter_msg() for name, value in values.items()]
        return self.ask('set_parameters', parameters=wanted)

    def parameters(self) -> dict[str, Any]:
        """Return the values of all parameters of the node that may change."""
        return {name: one.value for name, one in self.node._parameters.items() if name not in FIXED}

    # The arm

    def places(self) -> dict[str, float]:
        """Return where the joints are."""
        return dict(zip(JOINTS, (self.held + self.offset).tolist(), strict=True))

    def measured(self) -> JointState:
        """Return the feedback of this moment."""
        if not self.stuck:
            self.held = self.controllers.position(self.time())
        message = JointState(name=list(JOINTS), position=(self.held + self.offset).tolist())
        message.velocity = [0.0] * len(JOINTS)
        return self.stamped(message) if self.setup.stamped else message

    def _tick(self) -> None:
        if self.clock is not None:
            self.send('/clock', Clock(clock=self.stamp()))
        messages = [self.measured()]
        for disturbance in list(self.disturbances.values()):
            messages = disturbance(messages)
        for message in messages if self.setup.feedback else ():
            self.send(f'/{self.setup.feedback}', message)

    # Hearing

    def _listen(self, word: str, topic: str) -> None:
        kind, hear = {
            'joint_states': (JointState, self._sample),
            'position_commands': (Float64MultiArray, self._positions),
            'joint_trajectory': (JointTrajectory, self._trajectory),
        }[word]
        self.client.create_subscription(kind, topic, lambda message: hear(topic, message), 1000)

    def _sample(self, topic: str, message: JointState) -> None:
        stamp = message.header.stamp
        time = stamp.sec + 1e-9 * stamp.nanosec - (START / 1e9 if self.clock is None else 0.0)
        self.record.samples.append(Seen(self.now, topic, time, message.name, message.position, message.velocity))
        if self.setup.output == 'joint_states':
            self.controllers.drive(message.name, message.position)

    def _positions(self, topic: str, message: Float64MultiArray) -> None:
        names = robot(self.setup.robot, topic.rpartition('/')[0]).names
        self.record.samples.append(Seen(self.now, topic, None, names, message.data, None))
        self.controllers.drive(names, message.data)

    def _trajectory(self, topic: str, message: JointTrajectory) -> None:
        stamp, points = message.header.stamp, message.points
        begins = stamp.sec + 1e-9 * stamp.nanosec
        begins = begins - (START / 1e9 if begins and self.clock is None else 0.0) or self.time()
        times = [p.time_from_start.sec + 1e-9 * p.time_from_start.nanosec for p in points]
        rows = [[list(getattr(p, name)) for p in points] for name in ROWS]
        names = message.joint_names
        self.record.samples.append(SeenTrajectory(self.now, topic, begins, names, times, rows))
        self.controllers.follow(self.time(), begins, names, times, rows)

    def _status(self, tool: str, message: DiagnosticStatus) -> None:
        said = {pair.key: pair.value for pair in message.values}
        self.record.statuses.append(
            Status(self.now, tool, message.message, said.get('state', ''), said.get('goal', ''))
        )


def of_tool(topic: str, tool: str) -> str:
    """Return a topic or service of a tool: its name stands before that, behind the name of the node."""
    node, slash, name = topic.rpartition('/')
    return f'{node}{slash}{tool}/{name}' if tool else topic
