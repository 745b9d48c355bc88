"""An ik_node in a process of its own that is streamed goals along curves over DDS."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence

import numpy as np
import rclpy
from builtin_interfaces.msg import Time
from geometry_msgs.msg import PoseStamped
from rclpy.executors import SingleThreadedExecutor
from sensor_msgs.msg import JointState

from benchmarks.arms import ROOT, Task
from benchmarks.chain import Array
from benchmarks.domains import own_domain
from benchmarks.follow import RATE
from benchmarks.node_latency import Watch, at_rest, wait
from ik_node.ros.conversions import matrix_pose
from ik_node.tracks.curves import Track, tip_pose

SECONDS = 9.0  # of a run
APART = 0.6  # [s] from the goal of the start: then it is no part of the stream


class Stream:
    """Sends ik_node the goals of tracks, and notes where the joints are."""

    def __init__(self, task: Task) -> None:
        self._arm, self._base = task.arm, task.base
        self.watch = Watch()

    def ready(self) -> bool:
        """Whether the node is there, and the arm rests."""
        return at_rest(self.watch) and self.watch.goals.get_subscription_count() > 0

    def _send(self, track: Track, direction: Array, seconds: float, stamp: Time) -> None:
        T = tip_pose(track.position(seconds), direction, self._arm.tool_axis, self._arm.tool_point)
        message = PoseStamped(pose=matrix_pose(T))
        message.header.frame_id = self._base
        message.header.stamp = stamp
        self.watch.goals.publish(message)

    def along(self, track: Track, direction: Array) -> tuple[Array, Array]:
        """Return the times (k,) [s] since the first goal and the joints (k, n) along a track, from rest."""
        clock = self.watch.get_clock()
        self._send(track, direction, 0.0, clock.now().to_msg())
        start = track.position(0.0)
        wait(lambda: self.ready() and np.linalg.norm(self._tool() - start) < 1e-3, 'the arm at the start')
        time.sleep(APART)
        self.watch.samples.clear()
        begin, due = clock.now(), time.perf_counter()
        while (passed := 1e-9 * (clock.now() - begin).nanoseconds) < SECONDS:
            self._send(track, direction, passed, clock.now().to_msg())
            due += 1.0 / RATE
            time.sleep(max(0.0, due - time.perf_counter()))
        samples = [message for _, message in list(self.watch.samples)]
        stamps = np.array([m.header.stamp.sec + 1e-9 * m.header.stamp.nanosec for m in samples])
        times = stamps - 1e-9 * begin.nanoseconds
        joints = np.array([self._ordered(message) for message in samples])
        within = (times > 0.0) & (times < SECONDS)
        return times[within], joints[within]

    def _ordered(self, message: JointState) -> list[float]:
        values = dict(zip(message.name, message.position, strict=True))
        return [values[name] for name in self._arm.joint_names]

    def _tool(self) -> Array:
        return self._arm.fk(self._ordered(self.watch.samples[-1][1]))[0]


@contextlib.contextmanager
def streaming(task: Task) -> Iterator[Stream]:
    """Start ik_node for an arm, and yield what streams to it."""
    own_domain()
    os.environ['ROS_LOG_DIR'] = tempfile.mkdtemp(prefix='ros-log-')
    given = {
        'urdf_file': str(task.path),
        'base_link': task.base,
        'tip_link': task.tip,
        'tool_axis': _listed(task.axis),
        'tool_point': _listed(task.point),
    }
    parameters = [part for name, value in given.items() for part in ('-p', f'{name}:={value}')]
    process = subprocess.Popen(
        [sys.executable, '-m', 'ik_node.start', 'ik_node', '--ros-args', *parameters],
        cwd=ROOT,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    rclpy.init()
    stream = Stream(task)
    executor = SingleThreadedExecutor()
    executor.add_node(stream.watch)
    listening = threading.Thread(target=executor.spin, daemon=True)
    listening.start()
    try:
        wait(stream.ready, f'ik_node with {task.name}')
        yield stream
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=30)
        executor.shutdown()
        listening.join(timeout=10)
        rclpy.try_shutdown()


def _listed(values: Sequence[float]) -> str:
    return '[' + ', '.join(str(float(value)) for value in values) + ']'
