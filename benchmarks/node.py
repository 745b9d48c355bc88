# SPDX-License-Identifier: Apache-2.0
"""The node over real DDS: from goal to motion, and what 200 goals per second do to rate, jitter and memory.

Every figure is of a node in a process of its own, seen from this one: it holds both ways through DDS.
"""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import rclpy
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from domains import own_domain
from geometry_msgs.msg import PoseStamped
from oracles.arms import Task
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from sensor_msgs.msg import JointState

from benchmarks.tables import heading
from ik_node.model.arm import Arm
from ik_node.ros.conversions import matrix_pose
from ik_node.share import share_path
from ik_node.tracks import Track, tip_pose

RATE = 100.0  # [Hz] of joint_states, the default
SECONDS, GOALS = 60.0, 300  # of the stream, from rest
GOAL_RATE = 200.0  # [Hz]
PERIOD = 1.0 / RATE
DOWN = (0.0, 0.0, -1.0)
CIRCLE = ((0.0, 0.35, 0.2), 0.08, 0.1)  # centre [m], size [m], speed [m/s]


class Watch(Node):
    """Sends goals and notes when what came back."""

    def __init__(self) -> None:
        super().__init__('watch')
        self.goals = self.create_publisher(PoseStamped, 'goal_pose', 1)
        self.samples: list[tuple[float, JointState]] = []  # when they arrived (time.time)
        self.published: list[float] = []  # when the samples were published
        self.statuses: list[DiagnosticStatus] = []
        self.answers: list[tuple[float, str, str]] = []  # when published, the stamp of a goal, its status
        self.diagnostics: dict[str, str] = {}
        self.create_subscription(JointState, 'joint_states', self._sample, 1000)
        self.create_subscription(DiagnosticStatus, 'ik_node/status', self._status, 1000)
        self.create_subscription(DiagnosticArray, '/diagnostics', self._diagnose, 10)

    def _sample(self, message: JointState, info: dict[str, int]) -> None:
        # By the middleware: a callback of this process may have to wait.
        self.published.append(1e-9 * info['source_timestamp'])
        self.samples.append((1e-9 * info['received_timestamp'], message))

    def _status(self, message: DiagnosticStatus, info: dict[str, int]) -> None:
        self.statuses.append(message)
        said = {pair.key: pair.value for pair in message.values}
        if said.get('goal_stamp') and said['state'] != 'arrived':
            self.answers.append((1e-9 * info['source_timestamp'], said['goal_stamp'], said['status']))

    def _diagnose(self, message: DiagnosticArray) -> None:
        self.diagnostics = {pair.key: pair.value for pair in message.status[0].values}

    def send(self, T: np.ndarray) -> float:
        message = PoseStamped(pose=matrix_pose(T))
        message.header.frame_id = 'base_link'
        message.header.stamp = self.stamp = self.get_clock().now().to_msg()
        self.sent = time.time()
        self.goals.publish(message)
        return self.sent


@contextlib.contextmanager
def listening() -> Iterator[Watch]:
    """Yield a watch that hears ROS in a thread; no ROS is left in the end."""
    rclpy.init()
    watch = Watch()
    executor = SingleThreadedExecutor()
    executor.add_node(watch)
    thread = threading.Thread(target=executor.spin, daemon=True)
    thread.start()
    try:
        yield watch
    finally:
        executor.shutdown()
        thread.join(timeout=10)
        rclpy.try_shutdown()


def quantiles(values: np.ndarray) -> str:
    middle, high, most = np.quantile(values, [0.5, 0.99, 1.0])
    return f'median {middle:.3f}, p99 {high:.3f}, max {most:.3f}'


def resident(pid: int) -> float:
    """Return the memory in use [MB]."""
    for line in Path(f'/proc/{pid}/status').read_text().splitlines():
        if line.startswith('VmRSS:'):
            return int(line.split()[1]) / 1024.0
    raise RuntimeError(f'no VmRSS of process {pid}')


def wait(condition, what: str, timeout: float = 120.0) -> None:
    end = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > end:
            raise RuntimeError(f'waited {timeout:g} s for {what}')
        time.sleep(0.01)


def at_rest(watch: Watch) -> bool:
    return bool(watch.samples) and not any(watch.samples[-1][1].velocity)


def goal_waits(watch: Watch, arm: Arm, around: Track, count: int) -> list[float]:
    """Return how long [ms] goals from rest, at random times, waited for the first sample that moves."""
    rng, waits = np.random.default_rng(1), []
    for _ in range(count):
        wait(lambda: at_rest(watch), 'the arm to rest')
        time.sleep(rng.uniform(0.05, 0.05 + 2.0 * PERIOD))
        mark = len(watch.samples)
        still = watch.samples[-1][1].position
        T = tip_pose(around.position(rng.uniform(0.0, around.lap)), DOWN, arm.tool_axis, arm.tool_point)
        sent = watch.send(T)
        wait(lambda m=mark, s=still: any(x.position != s for _, x in watch.samples[m:]), 'a move')
        first = next(t for t, x in watch.samples[mark:] if x.position != still)
        waits.append(1e3 * (first - sent))
    return waits


def measure_latency(watch: Watch, arm: Arm, count: int) -> None:
    """From the publishing of a goal to the first sample that moves, from rest, at random times."""
    waits = np.array(goal_waits(watch, arm, Track('circle', *CIRCLE, DOWN), count))
    print(f'goal to first moving joint_states, {count} goals from rest [ms]: {quantiles(waits)}')
    print(f'  within one publish period ({1e3 * PERIOD:g} ms): {100.0 * (waits <= 1e3 * PERIOD).mean():.1f} %')
    deciles = np.quantile(waits, np.linspace(0.1, 0.9, 9))
    print(f'  deciles: {", ".join(f"{x:.1f}" for x in deciles)}')


def processor_time(pid: int) -> float:
    """Return the seconds of a core that the threads of a process have used, exact to a nanosecond."""
    total = 0
    for file in Path(f'/proc/{pid}/task').glob('*/schedstat'):
        with contextlib.suppress(OSError):  # the thread has ended
            total += int(file.read_text().split()[0])
    return 1e-9 * total


def measure_stream(watch: Watch, arm: Arm, pid: int, length: float) -> None:
    """200 goals per second along an eight: rate, jitter, memory, processor, and where the arm ends up."""
    track = Track('figure_eight', *CIRCLE, DOWN)
    mark, said = len(watch.samples), len(watch.statuses)
    memory, used = [resident(pid)], processor_time(pid)
    start = due = time.perf_counter()
    sent = 0
    while due < start + length:
        T = tip_pose(track.position(due - start), DOWN, arm.tool_axis, arm.tool_point)
        watch.send(T)
        sent += 1
        if sent % int(GOAL_RATE * length / 6.0) == 0:
            memory.append(resident(pid))
        due += 1.0 / GOAL_RATE
        time.sleep(max(0.0, due - time.perf_counter()))
    spent = time.perf_counter() - start
    used = processor_time(pid) - used
    stream = [message for _, message in watch.samples[mark:]]
    own = dict(watch.diagnostics)
    time.sleep(0.5)
    wait(lambda: at_rest(watch), 'the arm to rest')
    stamps = np.array([message.header.stamp.sec * 10**9 + message.header.stamp.nanosec for message in stream])
    jitter = np.abs(np.diff(stamps) / 1e6 - 1e3 * PERIOD)
    solved = sum(status.message.startswith('solved') for status in watch.statuses[said:])
    off = np.linalg.norm(arm.fk(watch.samples[-1][1].position)[0] - T[:3, 3])
    print(f'{sent} goals in {spent:.1f} s, {sent / spent:.1f} per second; {solved} solved, the rest superseded')
    print(f'  joint_states: {len(stream) / spent:.2f} Hz, jitter of the stamps [ms]: {quantiles(jitter)}')
    print(f'  memory [MB] from start to end: {", ".join(f"{m:.1f}" for m in memory)}')
    print(f'  processor: {100.0 * used / spent:.0f} % of one core')
    print(f'  newest wins: the arm comes to rest {1e3 * off:.6f} mm from the last goal')
    for key, value in own.items():
        print(f'  as the node has it: {key} {value}')


def run(tasks: list[Task], scale: float) -> None:
    """Print from goal to motion, and what a stream of goals does to rate, jitter and memory."""
    del tasks  # one arm is enough here: the solver is measured elsewhere
    heading(
        'Node',
        """The seed arm in ik_node, seen from another process over DDS: goals from rest, then 200 goals per
        second along an eight. Figures hold both ways through DDS; whatever else the machine does shows.""",
    )
    own_domain()
    path = share_path('urdf', 'seed_arm.urdf.xacro')
    arm = Arm.from_file(path)
    node = subprocess.Popen(
        [sys.executable, '-m', 'ik_node.start', 'ik_node', '--ros-args', '-p', f'urdf_file:={path}'],
        start_new_session=True,
    )
    with listening() as watch:
        try:
            wait(lambda: at_rest(watch) and watch.goals.get_subscription_count() == 1, 'joint_states')
            measure_latency(watch, arm, max(10, round(GOALS * scale)))
            measure_stream(watch, arm, node.pid, max(3.0, SECONDS * scale))
        finally:
            node.send_signal(signal.SIGINT)
            print(f'the node ended with exit code {node.wait(timeout=30)}')
