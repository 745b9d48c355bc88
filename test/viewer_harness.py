# SPDX-License-Identifier: Apache-2.0
"""What the viewer's tests share: the viewer as a process, and a robot's side of its topics."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import rclpy
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from geometry_msgs.msg import PointStamped, PoseStamped
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from stepped import World
from waiting import Spinning, wait_for

from ik_node.model.urdf.reader import load_description
from ik_node.ros.conversions import array_point, matrix_pose, pose_matrix
from ik_node.ros.goals import REPEAT
from ik_node.steady import steady

ROOT = Path(__file__).resolve().parents[1]
SEED_FILE = f'urdf_file:={ROOT}/urdf/seed_arm.urdf.xacro'  # parameter of ik_node
SEED_ARM = load_description(ROOT / 'urdf' / 'seed_arm.urdf.xacro')
SEED_JOINTS = ('joint1', 'joint2', 'joint3', 'joint4', 'joint5')

TIMEOUT = 240.0  # seconds for things that take a fraction of one on an idle machine
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)


class RobotSide:
    """Publishes what an arm and a solver would, and keeps what the viewer says."""

    def __init__(self, domain: int = 0, world: World | None = None) -> None:
        """world: in which the viewer is stepped, instead of a domain."""
        self._world = world
        if world is None:
            self._context = rclpy.Context()
            self._context.init(domain_id=domain)
        else:
            self._context = world.context
        self.node = Node('robot_side', context=self._context)
        self.goals: list[PoseStamped] = []
        self.joint_goals: list[JointState] = []
        self.joints: dict[str, float] = {}
        publish = self.node.create_publisher
        self._description = publish(String, 'robot_description', LATCHED)
        self._joints = publish(JointState, 'joint_states', 10)
        self._goal = publish(PoseStamped, 'goal_pose', 10)
        self._point = publish(PointStamped, 'goal_point', 10)
        self._joint_goal = publish(JointState, 'goal_joints', 10)
        self._status = publish(DiagnosticStatus, 'ik_node/status', LATCHED)
        self._diagnostics = publish(DiagnosticArray, '/diagnostics', 10)
        self.node.create_subscription(PoseStamped, 'goal_pose', self._keep_goal, 100)
        self.node.create_subscription(JointState, 'goal_joints', self.joint_goals.append, 100)
        self.node.create_subscription(JointState, 'joint_states', self._keep_joints, 10)
        self.spinning = Spinning(self.node) if world is None else None

    @property
    def context(self) -> rclpy.Context:
        return self._context

    def close(self) -> None:
        if self.spinning is not None:
            self.spinning.end()
        self.node.destroy_node()
        if self._world is None:
            self._context.try_shutdown()

    def _keep_goal(self, message: PoseStamped) -> None:
        if message.header.stamp.sec or message.header.stamp.nanosec:  # those from here have no stamp
            self.goals.append(message)

    def _keep_joints(self, message: JointState) -> None:
        self.joints = dict(zip(message.name, message.position, strict=False))

    def wait(self, condition: Callable[[], Any], what: str) -> Any:
        """Return what condition returns once that is true; fail if it never is."""
        return self._world.wait(condition, what) if self._world else wait_for(condition, what, TIMEOUT)

    def run(self, seconds: float) -> None:
        """Let time pass in a world."""
        assert self._world is not None
        self._world.run(seconds)

    def listeners(self) -> dict[str, int]:
        """How many others hear what this side publishes, by topic."""
        own = (self._description, self._joints, self._goal, self._point, self._status, self._diagnostics)
        heard = {publisher.topic_name: publisher.get_subscription_count() for publisher in own}
        return {topic: count - topic.endswith(('goal_pose', 'joint_states')) for topic, count in heard.items()}

    def wait_connected(self) -> None:
        self.wait(lambda: all(count > 0 for count in self.listeners().values()), 'the viewer to hear all')

    def describe(self, text: str) -> None:
        self._description.publish(String(data=text))

    def move(self, **values: float) -> None:
        self._joints.publish(JointState(name=list(values), position=list(map(float, values.values()))))

    def ask(self, **values: float) -> None:
        """Publish a goal in joint values."""
        self._joint_goal.publish(JointState(name=list(values), position=list(map(float, values.values()))))

    def go(self, **values: float) -> None:
        """Have the arm move to joint values, and wait until it is there; it is asked again at times."""
        asked = -math.inf

        def there() -> bool:
            nonlocal asked
            if all(abs(self.joints.get(name, math.inf) - value) < 1e-3 for name, value in values.items()):
                return True
            if steady() > asked + 2.0 * REPEAT:  # ik_node ignores a goal like the one before within REPEAT
                self.ask(**values)
                asked = steady()
            return False

        self.wait(there, f'the arm at {values}')

    def want(self, T: np.ndarray, frame: str = 'base_link') -> None:
        """Publish a goal pose (4, 4)."""
        message = PoseStamped(pose=matrix_pose(T))
        message.header.frame_id = frame
        self._goal.publish(message)

    def want_point(self, position: Any, frame: str = 'base_link') -> None:
        message = PointStamped(point=array_point(np.asarray(position, dtype=float)))
        message.header.frame_id = frame
        self._point.publish(message)

    def report(self, message: str, **values: Any) -> None:
        """Publish a status as ik_node does."""
        pairs = [KeyValue(key=key, value=str(value)) for key, value in values.items()]
        self._status.publish(DiagnosticStatus(message=message, values=pairs))

    def diagnose(self, message: str, name: str = '/ik_node', **values: Any) -> None:
        """Publish what a node says about itself, as ik_node does once per second."""
        pairs = [KeyValue(key=key, value=str(value)) for key, value in values.items()]
        self._diagnostics.publish(DiagnosticArray(status=[DiagnosticStatus(name=name, message=message, values=pairs)]))

    def goal(self) -> np.ndarray:
        """The newest goal pose (4, 4) of the viewer."""
        return pose_matrix(self.goals[-1].pose)
