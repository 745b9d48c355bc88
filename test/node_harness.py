# SPDX-License-Identifier: Apache-2.0
"""What the node tests share: a small arm, and a client of a node that is stepped, or of one in a process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import rclpy
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import PointStamped, PoseArray, PoseStamped, PoseWithCovarianceStamped
from rcl_interfaces.srv import GetParameters, SetParameters, SetParametersAtomically
from rclpy.node import Node
from rclpy.parameter import Parameter, parameter_value_to_python
from rclpy.qos import DurabilityPolicy, QoSProfile
from sensor_msgs.msg import JointState
from small_arm import ARM_JOINTS, PARAMETERS
from std_msgs.msg import String
from std_srvs.srv import SetBool, Trigger
from stepped import World, world
from visualization_msgs.msg import MarkerArray
from waiting import Spinning, answer_of, wait_for

from ik_node.ros import neighbours
from ik_node.ros.conversions import array_point, matrix_pose
from ik_node.ros.node import IkNode

neighbours.SETTLING = 0.0  # domains of their own: there is nobody to find
TIMEOUT = 60.0  # seconds; a cold compile takes a minute, all else a fraction of a second


class Client:
    """Sends to the node and keeps what it says."""

    def __init__(self, context: rclpy.Context, namespace: str = '', tool: str = '', world: World | None = None) -> None:
        """tool: whose topics and services it uses, where there are several. world: if it is stepped."""
        self.prefix = f'{tool}/' if tool else ''
        self.node = Node('client', context=context, namespace=namespace)
        self.served: IkNode  # set by running()
        self.samples: list[JointState] = []
        self.statuses: list[DiagnosticStatus] = []
        self._compiles = False  # the node has an arm, and compiles for it
        self.markers: list[MarkerArray] = []
        self.diagnostics: list[DiagnosticArray] = []
        latched = QoSProfile(depth=100, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        for kind, topic, hear, qos in (
            (JointState, 'joint_states', self.samples.append, 1000),
            (DiagnosticStatus, f'ik_node/{self.prefix}status', self._hear_status, latched),
            (MarkerArray, f'ik_node/{self.prefix}markers', self.markers.append, 100),
            (DiagnosticArray, '/diagnostics', self.diagnostics.append, 100),
        ):
            self.node.create_subscription(kind, topic, hear, qos)
        self._publishers = {
            topic: self.node.create_publisher(kind, self.prefix + topic, 100)
            for topic, kind in (
                ('goal_pose', PoseStamped),
                ('goal_cone', PoseWithCovarianceStamped),
                ('goal_point', PointStamped),
                ('goal_path', PoseArray),
                ('goal_joints', JointState),
            )
        }
        self.description = self.node.create_publisher(
            String, 'robot_description', QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        )
        self.world = world
        self._spinning = Spinning(self.node) if world is None else None

    def close(self) -> None:
        if self._spinning is not None:
            self._spinning.end()
        self.node.destroy_node()

    def wait(self, condition: Callable[[], Any], what: str) -> Any:
        """Return what condition returns once that is true; fail if it never is."""
        said = lambda: [s.message for s in self.statuses]  # noqa: E731
        if self.world is not None:
            return self.world.wait(condition, what, said)
        return wait_for(condition, what, TIMEOUT, context=said)

    def run(self, seconds: float) -> None:
        """Let time pass for a node that is stepped."""
        assert self.world is not None
        self.world.run(seconds)

    def wait_connected(self) -> None:
        """Wait until the node hears all that this client sends."""
        for topic, publisher in self._publishers.items():
            self.wait(lambda p=publisher: p.get_subscription_count() > 0, f'a subscription to {topic}')

    def wait_ready(self) -> None:
        """Wait until the node has an arm and hears this client."""
        self.wait_connected()
        self.wait(lambda: self._compiles or any('effective DoF' in s.message for s in self.statuses), 'the arm')
        self.wait(lambda: self.samples, 'joint_states')

    # Sending

    def send(self, topic: str, message: Any) -> None:
        if topic not in self._publishers:  # measured_joint_states: the node waits for them once they are offered
            self._publishers[topic] = self.node.create_publisher(type(message), topic, 100)
        self._publishers[topic].publish(message)

    def now(self) -> Any:
        return self.node.get_clock().now()

    def pose(self, T: np.ndarray, frame: str = 'base_link') -> PoseStamped:
        message = PoseStamped(pose=matrix_pose(T))
        message.header.frame_id = frame
        message.header.stamp = self.now().to_msg()
        return message

    def point(self, position: Any, frame: str = 'base_link') -> PointStamped:
        message = PointStamped(point=array_point(position))
        message.header.frame_id = frame
        return message

    def joints(self, **values: float) -> JointState:
        return JointState(name=list(values), position=list(map(float, values.values())))

    def call(self, service: str, on: bool | None = None) -> Any:
        """Call a service of the node that takes nothing, or on."""
        if on is None:
            return self._call(Trigger, service, Trigger.Request())
        return self._call(SetBool, service, SetBool.Request(data=on))

    def set_parameters(self, **values: Any) -> list[Any]:
        request = SetParameters.Request(
            parameters=[Parameter(name, value=value).to_parameter_msg() for name, value in values.items()]
        )
        return self._call(SetParameters, 'ik_node/set_parameters', request).results

    def set_together(self, **values: Any) -> Any:
        request = SetParametersAtomically.Request(
            parameters=[Parameter(name, value=value).to_parameter_msg() for name, value in values.items()]
        )
        return self._call(SetParametersAtomically, 'ik_node/set_parameters_atomically', request).result

    def parameter(self, name: str) -> Any:
        """The value of a parameter of the node."""
        request = GetParameters.Request(names=[name])
        return parameter_value_to_python(self._call(GetParameters, 'ik_node/get_parameters', request).values[0])

    def _call(self, kind: Any, service: str, request: Any) -> Any:
        client = self.node.create_client(kind, service)
        try:
            return answer_of(client, request, self.wait, service)
        finally:
            self.node.destroy_client(client)

    # Hearing

    def _hear_status(self, status: DiagnosticStatus) -> None:
        """Keep a status, unless it is about the kernels: a compiler sends those at any time."""
        self._compiles |= 'fast kernels' in status.message
        if 'fast kernels' not in status.message:
            self.statuses.append(status)

    def said(self, index: int = -1) -> dict[str, str]:
        """The values of a status."""
        return {pair.key: pair.value for pair in self.statuses[index].values}

    def wait_said(self, words: str) -> None:
        """Wait until the newest status holds words."""
        self.wait(lambda: any(words in status.message for status in self.statuses[-1:]), words)

    def about(self, goal: str) -> list[DiagnosticStatus]:
        """All statuses about goals of one topic."""
        return [
            status
            for status in list(self.statuses)
            if any(pair.key == 'goal' and pair.value == self.prefix + goal for pair in status.values)
        ]

    def answer(self, topic: str, message: Any) -> DiagnosticStatus:
        """Send a goal and return its first status; the goal before may still arrive in the meantime."""
        last = max((_number(status) for status in self.statuses), default=0)
        self.send(topic, message)

        def answered() -> DiagnosticStatus | None:
            return next((status for status in self.about(topic) if _number(status) > last), None)

        return self.wait(answered, f'a status for {topic}')

    def position(self, *names: str) -> np.ndarray:
        """The newest positions, of the arm's joints if no names are given."""
        sample = self.samples[-1]
        return np.array([sample.position[sample.name.index(name)] for name in names or ARM_JOINTS])

    def wait_still(self) -> np.ndarray:
        """Wait until the joints rest; return the positions of the arm's joints."""
        mark = len(self.samples)

        def still() -> bool:
            last = self.samples[mark:][-5:]
            return len(last) == 5 and all(
                not any(s.velocity) and list(s.position) == list(last[0].position) for s in last
            )

        self.wait(still, 'the joints to rest')
        return self.position()

    def tool(self) -> tuple[np.ndarray, np.ndarray]:
        """Position and direction of the tool, where the joints are."""
        return self.served._tools[0].snapshot().tool.arm.fk(self.position())

    def rest_time(self) -> float:
        """Let the tool come to rest, or slower than 0.01 m/s; return the time that took [s]."""
        passed, speed = 0.0, np.inf
        while speed > 0.01:
            before = self.tool()[0]
            self.run(0.01)
            speed = np.linalg.norm(self.tool()[0] - before) / 0.01
            passed += 0.01
        return passed


def _number(status: DiagnosticStatus) -> int:
    """The number of the goal of a status, 0 without one."""
    return int({pair.key: pair.value for pair in status.values}['goal_number'])


@contextmanager
def client_in(domain: int, namespace: str = '') -> Iterator[Client]:
    """A client of a node that runs in a domain, once it publishes joint_states."""
    context = rclpy.Context()
    context.init(domain_id=domain)
    client = Client(context, namespace)
    try:
        client.wait_ready()
        yield client
    finally:
        client.close()
        context.try_shutdown()


@contextmanager
def running(
    urdf: str | None,
    namespace: str = '',
    ready: bool = True,
    cli_args: list[str] | None = None,
    **parameters: Any,
) -> Iterator[Client]:
    """A node with an arm (None: it waits for a description) and a client of it, in a world of their own.

    ready: wait until it publishes joint_states. cli_args: such as remappings. tools: the client
    is of the first.
    """
    given = {'goal_timeout': TIMEOUT, **PARAMETERS, **parameters}  # a busy machine is no failure
    if urdf is not None:
        given['robot_description'] = urdf
    overrides = [Parameter(name, value=value) for name, value in given.items()]
    with world() as here:
        node = IkNode(context=here.context, namespace=namespace, parameter_overrides=overrides, cli_args=cli_args)
        here.drive(node)
        client = Client(here.context, namespace, given.get('tools', [''])[0], here)
        client.served = node
        try:
            if urdf is None or not ready:
                client.wait_connected()
            else:
                client.wait_ready()
            yield client
        finally:
            client.close()
            node.close()
