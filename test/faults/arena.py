# SPDX-License-Identifier: Apache-2.0
"""Arena: one real node in a process of its own, an arm behind it, and a client that hears it."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from typing import Any

import rclpy
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import PointStamped, PoseArray, PoseStamped, TwistStamped
from lifecycle_msgs.srv import ChangeState
from processes import Running
from rcl_interfaces.srv import GetParameters, ListParameters, SetParameters
from rclpy.node import Node
from rclpy.parameter import Parameter, parameter_value_to_python
from rclpy.qos import DurabilityPolicy, QoSProfile
from sensor_msgs.msg import JointState
from spinning import Spinning
from std_msgs.msg import Bool, Float64MultiArray, String
from std_srvs.srv import SetBool, Trigger
from trajectory_msgs.msg import JointTrajectory

from faults.driver import Driver
from faults.extras import JOG
from faults.judge import Rates
from faults.patience import Patience
from faults.record import Record, Seen, SeenTrajectory, Status, now
from faults.robots import ROBOTS, TIPS, Robot, bounds, robot, text_of
from faults.setups import ACTION, ACTIONS, OUTPUTS, Setup
from faults.trajectory_action import Conduct, TrajectoryController

TELEOPERATION = {
    'ik_node/delta_twist_cmds': TwistStamped,
    'ik_node/delta_joint_cmds': JOG,
    'ik_node/pose_target_cmds': PoseStamped,
    'ik_node/enable': Bool,
}
GOALS = {
    'goal_pose': PoseStamped,
    'goal_point': PointStamped,
    'goal_path': PoseArray,
    'goal_joints': JointState,
}
OF_TOOL = ('home', 'stop', 'resume', 'hand_guide', 'pause_servo')  # services that each tool has
SERVICES = {
    'home': Trigger,
    'stop': Trigger,
    'resume': Trigger,
    'hand_guide': SetBool,
    'pause_servo': SetBool,
    'change_state': ChangeState,
    'set_parameters': SetParameters,
    'get_parameters': GetParameters,
    'list_parameters': ListParameters,
}
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
HEARD_LATER = ('/tf_static', '/_action/status')  # topics of which late subscribers hear too
REPORTS = QoSProfile(depth=100, durability=DurabilityPolicy.TRANSIENT_LOCAL)
ANSWER = 2.0  # [s] within which a service answers
LATE = 0.2  # [s] for the last messages of a node
EPOCH = int(time.time())  # [s] subtracted from stamps: seconds since 1970 are floats of a quarter of a us
END = 15.0  # [s] within which a node ends that was asked to


OWN = ('position_commands', 'joint_trajectory')  # topics that each tool has
READ_ONLY = ('robot_description', 'urdf_file', 'output', 'tools')

Hear = Callable[[str, Any, float], None]


def with_info(hear: Hear, topic: str) -> Callable[[Any, Any], None]:
    """Return a callback that also says when the message was sent, by the steady clock of this machine."""

    def callback(message: Any, info: Any) -> None:
        age = 1e-9 * (time.time_ns() - info['source_timestamp'])
        hear(topic, message, now() - max(age, 0.0))

    return callback


class Arena:
    """One node, started anew after each of its deaths. tool: that is spoken to, one of tools."""

    def __init__(self, setup: Setup) -> None:
        self.setup, self.record = setup, Record()
        self.tools = tuple(TIPS[setup.robot])
        self.tool = self.tools[0]
        self.rates = Rates()  # that were in force
        self.ended = 0.0  # when the last node did
        self._defaults: dict[str, Any] = {}  # of the parameters
        self._changed: set[str] = set()  # parameters
        self.said = ''  # by nodes that have ended
        self.process: Running | None = None
        self.described = self.robot.text  # the newest description
        self._output, self.topics, measured = {**OUTPUTS, **ACTIONS}[setup.output]
        self._start()
        assert self.process is not None
        self._context = rclpy.Context()
        self._context.init(domain_id=self.process.domain)
        self.node = Node('campaign', context=self._context)
        every = {name: None for text in map(text_of, ROBOTS) for name in bounds(text)}
        self.driver = Driver(self.node, tuple(every), measured, setup.simulated, setup.stamped, self.record)
        self.conduct = Conduct()  # of the controllers that offer the action
        self._publishers: dict[str, Any] = {}
        self._clients: dict[str, Any] = {}
        for tool in self.tools:
            self._subscribe(tool)
            for topic, kind in {**GOALS, **TELEOPERATION}.items():
                self._publishers[of_tool(topic, tool)] = self.node.create_publisher(
                    kind, of_tool(topic, tool), 100
                )
            for name in OF_TOOL:
                path = of_tool(f'ik_node/{name}', tool)
                self._clients[path] = self.node.create_client(SERVICES[name], path)
        self.node.create_subscription(DiagnosticArray, '/diagnostics', self._diagnostics, 100)
        self._publishers['robot_description'] = self.node.create_publisher(
            String, 'robot_description', LATCHED
        )
        for name in SERVICES.keys() - set(OF_TOOL):
            self._clients[f'ik_node/{name}'] = self.node.create_client(SERVICES[name], f'ik_node/{name}')
        self._spinning = Spinning(self.node)
        self.describe(self.robot.text)

    def close(self) -> None:
        """End everything."""
        self.end()
        self.driver.close()
        self._spinning.end()
        self.node.destroy_node()
        self._context.try_shutdown()

    @property
    def robot(self) -> Robot:
        """The robot, with the arm of the present tool."""
        return robot(self.setup.robot, self.tool)

    def using(self, tool: str, act: Callable[[Arena], object]) -> object:
        """Act with another tool."""
        before, self.tool = self.tool, tool
        try:
            return act(self)
        finally:
            self.tool = before

    # The node

    def _start(self) -> None:
        values = {**self.robot.parameters, 'output': self._output}
        if self.setup.simulated:
            values['use_sim_time'] = True
        texts = {n: f'[{", ".join(v)}]' if isinstance(v, list) else v for n, v in values.items()}
        arguments = [a for name, value in texts.items() for a in ('-p', f'{name}:={value}')]
        if self.setup.output == 'joint_commands':
            arguments += ['-r', 'joint_states:=joint_commands', '-r', 'measured_joint_states:=joint_states']
        domain = None if self.process is None else self.process.domain
        self.process = Running('ik_node', '--ros-args', *arguments, domain=domain, PYTHONFAULTHANDLER='1')
        self._ended = False
        self.record.lives.append(now())

    def kill(self, number: int) -> None:
        """Send a signal to the node, if it lives."""
        if self.process is not None and self.process.process.poll() is None:
            self.process.process.send_signal(number)

    def restart(self) -> int:
        """Wait until the node has ended, and start another; return the exit code."""
        code = self.end(None)
        self._start()
        return code

    def end(self, number: int | None = signal.SIGINT) -> int:
        """End the node by a signal, None: it was signalled already; return the exit code, 99 if it stayed."""
        assert self.process is not None
        if number is not None:
            self.kill(number)
        patience = self.patience(END)
        while self.process.process.poll() is None and not patience.over:
            time.sleep(0.01)
        code = self.process.process.poll()
        self.process.end()
        if not self._ended:
            self.ended = now()
            self.said += self.process.said
            patience = self.patience(LATE)
            while not patience.over:
                time.sleep(0.01)
        self._ended = True
        return 99 if code is None else code

    @property
    def log(self) -> str:
        """All that the nodes have printed."""
        return self.said + ('' if self._ended or self.process is None else self.process.said)

    @property
    def alive(self) -> bool:
        """Whether the node runs."""
        return self.process is not None and self.process.process.poll() is None

    def patience(self, seconds: float) -> Patience:
        """Return a time [s] for the node, from now on."""
        assert self.process is not None
        return Patience(self.process.process.pid, seconds)

    # Sending

    def send(self, topic: str, message: Any) -> None:
        """Publish a message; goals and commands of a hand are for the present tool."""
        self._publishers[of_tool(topic, self.tool)].publish(message)

    def describe(self, text: str) -> None:
        """Publish a description."""
        self.described = text
        self.record.descriptions.append(now())
        self.send('robot_description', String(data=text))

    def ask(self, service: str, request: Any = None) -> Any:
        """Call a service, of the present tool where it has one; return the future, None if there is none."""
        path = f'ik_node/{service}'
        client = self._clients[of_tool(path, self.tool) if service in OF_TOOL else path]
        if not client.service_is_ready():
            return None
        return client.call_async(SERVICES[service].Request() if request is None else request)

    def call(self, service: str, request: Any = None) -> Any:
        """Call a service and return its answer; None if there is none within ANSWER."""
        patience, future = self.patience(ANSWER), self.ask(service, request)
        while not patience.over:
            if future is not None and future.done():
                return future.result()
            future = self.ask(service, request) if future is None else future
            time.sleep(0.005)
        return None

    def set_parameters(self, **values: Any) -> Any:
        """Ask for a change of parameters; return the future of the answer."""
        wanted = [Parameter(name, value=value).to_parameter_msg() for name, value in values.items()]
        return self.ask('set_parameters', SetParameters.Request(parameters=wanted))

    def change(self, name: str, value: Any) -> Any:
        """Ask for a change of a parameter, which restore undoes; return the future of the answer."""
        self.rates.widen({name: value})
        self._changed.add(name)
        return self.set_parameters(**{name: value})

    def restore(self) -> str:
        """Give all parameters the values of the beginning; return what the node objects to."""
        values = self._defaults
        wanted = {name: values[name] for name in self._changed if name in values and name not in READ_ONLY}
        if not wanted:
            return ''
        messages = [Parameter(name, value=value).to_parameter_msg() for name, value in wanted.items()]
        answer = self.call('set_parameters', SetParameters.Request(parameters=messages))
        if answer is None:
            return 'no answer of set_parameters'
        self._changed.clear()
        return '; '.join(result.reason for result in answer.results if not result.successful)

    def remember(self) -> None:
        """Ask the node for the values of its parameters, to restore them later."""
        listed = self.call('list_parameters')
        if listed is not None:
            names = listed.result.names
            answer = self.call('get_parameters', GetParameters.Request(names=names))
            if answer is not None:
                self._defaults = dict(zip(names, map(parameter_value_to_python, answer.values), strict=True))

    def inject(self, topic: str, message: Any) -> None:
        """Publish a message on any topic; feedback counts as measured."""
        if topic.removeprefix('/') == self.driver.topic:
            self.driver.send(message)
            return
        if topic not in self._publishers:
            qos = REPORTS if topic.endswith(HEARD_LATER) else 100
            self._publishers[topic] = self.node.create_publisher(type(message), topic, qos)
        self._publishers[topic].publish(message)

    def request(self, service: str, kind: Any, request: Any) -> None:
        """Call any service, and do not wait."""
        if service not in self._clients:
            self._clients[service] = self.node.create_client(kind, service)
        if self._clients[service].service_is_ready():
            self._clients[service].call_async(request)

    # Hearing

    def _subscribe(self, tool: str) -> None:
        """Hear what there is of a tool, and of all with the first."""
        kinds: dict[str, tuple[Any, Hear]] = {
            'joint_commands': (JointState, self._sample),
            'joint_states': (JointState, self._sample),
            'position_commands': (Float64MultiArray, self._positions),
            'joint_trajectory': (JointTrajectory, self._trajectory),
        }
        for topic in self.topics:
            if topic == ACTION:
                name = of_tool(topic, tool)
                TrajectoryController(
                    self.node, name, self.driver, self.conduct, self._trajectory, self.record
                )
                continue
            kind, hear = kinds[topic]
            if topic in OWN:
                topic = of_tool(topic, tool)
            elif tool != self.tools[0]:
                continue
            self.node.create_subscription(kind, topic, with_info(hear, topic), 1000)
        for kind, topic, take in (
            (DiagnosticStatus, 'ik_node/status', self._status),
            (Float64MultiArray, 'ik_node/goal_state', self._state),
        ):
            qos = REPORTS if take == self._status else 100
            self.node.create_subscription(
                kind, of_tool(topic, tool), lambda message, take=take: take(tool, message), qos
            )

    @property
    def _drives(self) -> bool:
        return self.setup.output == 'joint_commands'

    def _sample(self, topic: str, message: JointState, sent: float) -> None:
        stamp = message.header.stamp
        time = stamp.sec - (0 if self.setup.simulated else EPOCH) + 1e-9 * stamp.nanosec
        seen = Seen(sent, topic, time, message.name, message.position, message.velocity)
        self.record.samples.append(seen)
        if self._drives:
            self.driver.drive(message.name, message.position)

    def _positions(self, topic: str, message: Float64MultiArray, sent: float) -> None:
        names = robot(self.setup.robot, topic.rpartition('/')[0]).arm.joint_names
        self.record.samples.append(Seen(sent, topic, None, names, message.data, None))
        self.driver.drive(names, message.data)

    def _trajectory(self, topic: str, message: JointTrajectory, sent: float) -> None:
        points, stamp = message.points, message.header.stamp
        seen = SeenTrajectory(
            sent,
            topic,
            self.driver.travelled() - (now() - sent),
            self.driver.begins(stamp) or self.driver.time() - (now() - sent),
            message.joint_names,
            [p.time_from_start.sec + 1e-9 * p.time_from_start.nanosec for p in points],
            [list(p.positions) for p in points],
            [list(p.velocities) for p in points],
            [list(p.accelerations) for p in points],
        )
        self.record.samples.append(seen)
        if ACTION not in self.topics:  # else the controller that offers it decides
            self.driver.follow(message)

    def _status(self, tool: str, message: DiagnosticStatus) -> None:
        said = {pair.key: pair.value for pair in message.values}
        number = int(said.get('goal_number', 0))
        level = message.level[0] if isinstance(message.level, bytes) else int(message.level)
        self.record.statuses.append(
            Status(now(), message.message, said.get('state', ''), said.get('goal', ''), number, level, tool)
        )

    def _diagnostics(self, message: DiagnosticArray) -> None:
        for status in message.status:
            said = {pair.key: pair.value for pair in status.values}
            level = status.level[0] if isinstance(status.level, bytes) else int(status.level)
            tool = status.name.removeprefix('/').partition('/')[2]
            self.record.diagnostics.append(
                Status(now(), status.message, said.get('state', ''), level=level, tool=tool)
            )

    def _state(self, tool: str, message: Float64MultiArray) -> None:
        self.record.states.append((now(), tool, int(message.data[1])))


def of_tool(topic: str, tool: str) -> str:
    """Return a topic or service of a tool: its name stands before that, behind the name of the node."""
    if not tool or topic == 'robot_description':
        return topic
    node, slash, name = topic.rpartition('/')
    return f'{node}{slash}{tool}/{name}'
