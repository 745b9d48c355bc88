# SPDX-License-Identifier: Apache-2.0
"""ik_nodes in processes of their own that are streamed the same goals over DDS."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import rclpy
from builtin_interfaces.msg import Time
from domains import own_domain
from geometry_msgs.msg import PoseStamped
from oracles.arms import Task
from oracles.chain import Array
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions
from sensor_msgs.msg import JointState

from ik_node.ros.conversions import matrix_pose
from ik_node.tracks import tip_pose

APART = 0.6  # [s] from the goal of the start: then it is no part of the stream
PATIENCE = 15.0  # [s] for an arm to come to the start
START = 180.0  # [s] for a node to start


class Follower(Node):
    """Sends goals to the ik_node of a namespace and notes its joint states."""

    def __init__(self, namespace: str, names: tuple[str, ...]) -> None:
        super().__init__('watch', namespace=namespace)
        self._names = names
        self.goals = self.create_publisher(PoseStamped, 'goal_pose', 1)
        self.samples: list[JointState] = []
        self.create_subscription(JointState, 'joint_states', self.samples.append, 1000)

    @property
    def ready(self) -> bool:
        """Whether the node is there, and the arm rests."""
        return bool(self.samples) and not any(self.samples[-1].velocity) and self.goals.get_subscription_count() > 0

    def joints(self, begin: float) -> tuple[Array, Array]:
        """Return the times (k,) [s] since begin of what was heard, and the joints (k, n)."""
        heard = list(self.samples)
        times = np.array([m.header.stamp.sec + 1e-9 * m.header.stamp.nanosec - begin for m in heard])
        rows = [dict(zip(m.name, m.position, strict=True)) for m in heard]
        return times, np.array([[row[name] for name in self._names] for row in rows])


class Stream:
    """Sends the same goals to some nodes."""

    def __init__(self, task: Task, followers: Mapping[str, Follower]) -> None:
        self._task, self._followers = task, followers

    def to(self, names: Collection[str]) -> Stream:
        """Return what streams to these nodes only, as far as there are such."""
        followers = {name: node for name, node in self._followers.items() if name in names}
        return Stream(self._task, followers)

    def _send(self, position: Array, direction: Array, stamp: float) -> None:
        arm = self._task.arm
        T = tip_pose(position, direction, arm.tool_axis, arm.tool_point)
        message = PoseStamped(pose=matrix_pose(T))
        message.header.frame_id = self._task.base
        message.header.stamp = Time(sec=int(stamp), nanosec=int(stamp % 1.0 * 1e9))
        for follower in self._followers.values():
            follower.goals.publish(message)

    def rest_at(self, position: Array, direction: Array) -> None:
        """Move all arms to a goal, as far as they get there."""
        self._send(position, direction, time.time())
        time.sleep(0.3)
        wait(self.ready, PATIENCE)
        time.sleep(APART)

    def ready(self) -> bool:
        """Whether all nodes are there, and all arms rest."""
        return all(follower.ready for follower in self._followers.values())

    def along(
        self, position: Callable[[float], Array], direction: Array, sent: Array, seconds: float
    ) -> dict[str, tuple[Array, Array]]:
        """Return by name of a node the times (k,) [s] since the first goal and the joints (k, n) then.

        position: of the goal at a time since then. sent: when goals are sent.
        """
        for follower in self._followers.values():
            follower.samples.clear()
        begin, due = time.time(), time.perf_counter()
        for moment in sent.tolist():
            time.sleep(max(0.0, due + moment - time.perf_counter()))
            now = time.perf_counter() - due
            self._send(position(now), direction, begin + now)
        time.sleep(max(0.0, due + seconds - time.perf_counter()))
        found = {}
        for name, follower in self._followers.items():
            times, joints = follower.joints(begin)
            within = (times > 0.0) & (times < seconds)
            found[name] = times[within], joints[within]
        return found


@contextlib.contextmanager
def streaming(task: Task, modes: Mapping[str, tuple[Path, bool]]) -> Iterator[Stream]:
    """Start an ik_node for each mode, and yield what streams to all.

    modes: the folder of its package, and follow_goals.
    """
    own_domain()
    os.environ['ROS_LOG_DIR'] = tempfile.mkdtemp(prefix='ros-log-')
    processes = [started(task, f'of_{mode}', *modes[mode]) for mode in modes]
    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)  # Ctrl-C ends the run, not the context
    followers = {mode: Follower(f'of_{mode}', task.arm.joint_names) for mode in modes}
    executor = SingleThreadedExecutor()
    for follower in followers.values():
        executor.add_node(follower)
    listening = threading.Thread(target=executor.spin, daemon=True)
    listening.start()
    try:
        stream = Stream(task, followers)
        if not wait(stream.ready, START):
            raise RuntimeError(f'no joint_states of ik_node with {task.name}')
        yield stream
    finally:
        for process in processes:
            process.send_signal(signal.SIGTERM)
        for process in processes:
            process.wait(timeout=60)
        executor.shutdown()
        listening.join(timeout=10)
        rclpy.try_shutdown()


def started(task: Task, namespace: str, package: Path, follow: bool) -> subprocess.Popen[bytes]:
    """Start the ik_node of a folder for an arm."""
    given = {
        'urdf_file': str(task.path),
        'base_link': task.base,
        'tip_link': task.tip,
        'tool_axis': _listed(task.axis),
        'tool_point': _listed(task.point),
        'follow_goals': str(follow).lower(),
    }
    parameters = [part for name, value in given.items() for part in ('-p', f'{name}:={value}')]
    parameters += ['-r', f'__ns:=/{namespace}']
    return subprocess.Popen(
        [sys.executable, '-m', 'ik_node.start', 'ik_node', '--ros-args', *parameters],
        cwd=package,
        env={**os.environ, 'PYTHONPATH': str(package)},
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def wait(condition: Callable[[], bool], timeout: float) -> bool:
    """Wait for a condition; return whether it came true in time [s]."""
    end = time.monotonic() + timeout
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    return condition()


def _listed(values: Sequence[float]) -> str:
    return '[' + ', '.join(str(float(value)) for value in values) + ']'
