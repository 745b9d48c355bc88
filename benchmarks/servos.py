# SPDX-License-Identifier: Apache-2.0
"""The driver ik_servos beside a bare node: processor time, jitter, and the way from a command to its echo."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from benchmarks.arms import ROOT, Task
from benchmarks.domains import own_domain
from benchmarks.tables import Table, heading

WINDOWS, COMMANDS = 12, 200
WINDOW = 2.0  # [s]
JOINTS = {'so101': 'elbow_flex', 'omx_f': 'joint3'}  # that commands move, by profile: one per protocol
STEP = 0.05  # [rad] of a command whose way is timed
SEEN = 0.004  # [rad] of motion that shows that a command has arrived
BARE = """
import rclpy
from sensor_msgs.msg import JointState
rclpy.init()
node = rclpy.create_node('bare')
out = node.create_publisher(JointState, 'bare_states', 10)
message = JointState(name=list('abcdef'), position=[0.0] * 6, velocity=[0.0] * 6, effort=[0.0] * 6)
def publish():
    message.header.stamp = node.get_clock().now().to_msg()
    out.publish(message)
node.create_timer(0.01, publish)
node.create_subscription(JointState, 'joint_commands', lambda _: None, 1)
rclpy.spin(node)
"""


def run(tasks: list[Task], scale: float) -> None:
    """Print shares of a core, their ratio, rate, jitter, and the way of commands."""
    del tasks  # one arm is enough here
    windows, commands = max(3, round(WINDOWS * scale)), max(20, round(COMMANDS * scale))
    heading(
        'The driver of servos',
        f"""Six emulated servos at 100 Hz, in a process of their own, so without the 2 ms that a wire takes:
        STS3215 of the so101 with Feetech's protocol, XL330 and XL430 of the omx_f with Dynamixel's. Bare:
        an rclpy node that publishes six joints at 100 Hz and hears the same commands. Shares of a core by
        processor time [%], medians of {windows} windows of {WINDOW:.0f} s. Jitter: p99 of the difference
        between the period of the stamps and 10 ms [ms]. Command to joint_states: until the motion of one of
        {commands} commands of {STEP} rad is measured [ms], acceleration of the motor included.""",
    )
    if importlib.util.find_spec('rclpy') is None:
        print('ROS 2 is not installed: not measured.')
        return
    columns = 'bare', 'share', 'ratio', 'rate', 'jitter p99', 'command', 'p99'
    table = Table('profile  ', 'state'.ljust(12), *columns)
    for profile in JOINTS:
        _measure(profile, table, windows, commands)


def _measure(profile: str, table: Table, windows: int, commands: int) -> None:
    """Print the rows of a profile."""
    own_domain()
    driver = ['-m', 'ik_node.start', 'ik_servos', '--ros-args', '-p', 'port:=emulated']
    driver += ['-p', f'profile:={profile}', '-p', 'torque_at_start:=true']
    with _process(['-c', BARE]) as bare, _process(driver) as servos:
        client = Client(JOINTS[profile])
        try:
            client.until(lambda: bool(client.states))
            for name, rate in (('holding', 0.0), ('following', 100.0)):
                shares = np.array([_window(client, bare, servos, rate) for _ in range(windows)])
                own, other = np.median(shares, axis=0)
                stamps = np.array([stamp for stamp, _ in client.states[-1000:]])
                jitter = np.percentile(np.abs(np.diff(stamps) - 0.01), 99)
                pace = (len(stamps) - 1) / (stamps[-1] - stamps[0])
                ways = [client.way(1 if i % 2 else -1) for i in range(commands)] if rate else [np.nan]
                table.row(
                    profile,
                    name,
                    f'{100 * other:.1f}',
                    f'{100 * own:.1f}',
                    f'{own / other:.2f}',
                    f'{pace:.1f}',
                    f'{1e3 * jitter:.2f}',
                    *(f'{1e3 * value:.1f}' for value in (np.median(ways), np.percentile(ways, 99))),
                )
        finally:
            client.close()


@contextlib.contextmanager
def _process(arguments: list[str]) -> Iterator[int]:
    process = subprocess.Popen(
        [sys.executable, *arguments], cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        yield process.pid
    finally:
        process.terminate()
        process.wait()


def _spent(pid: int) -> float:
    """Return the processor time of a process [s]."""
    fields = Path(f'/proc/{pid}/stat').read_text(encoding='utf-8').rsplit(')', 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')


def _window(client: Client, bare: int, servos: int, rate: float) -> tuple[float, float]:
    """Return the shares of driver and bare node while commands come at a rate [Hz]."""
    before = _spent(servos), _spent(bare)
    client.stream(0.0, WINDOW, rate)
    return (_spent(servos) - before[0]) / WINDOW, (_spent(bare) - before[1]) / WINDOW


class Client:
    """A node beside the driver. states: stamp [s] and position [rad] of one joint in joint_states."""

    def __init__(self, joint: str) -> None:
        import rclpy
        from sensor_msgs.msg import JointState

        rclpy.init()
        self._rclpy, self._kind, self._joint = rclpy, JointState, joint
        self._node = rclpy.create_node('beside')
        self.states: list[tuple[float, float]] = []
        self._node.create_subscription(JointState, 'joint_states', self._hear, 50)
        self._commands = self._node.create_publisher(JointState, 'joint_commands', 1)

    def close(self) -> None:
        """Close the node."""
        self._node.destroy_node()
        self._rclpy.shutdown()

    def _hear(self, message: object) -> None:
        stamp = message.header.stamp
        position = dict(zip(message.name, message.position, strict=True)).get(self._joint, np.nan)
        self.states.append((stamp.sec + 1e-9 * stamp.nanosec, position))

    def until(self, condition: Callable[[], bool], seconds: float = 30.0) -> bool:
        """Spin until condition is true; return whether it is."""
        end = time.monotonic() + seconds
        while not condition() and time.monotonic() < end:
            self._rclpy.spin_once(self._node, timeout_sec=0.001)
        return condition()

    def command(self, position: float) -> None:
        """Command the joint."""
        message = self._kind(name=[self._joint], position=[position])
        message.header.stamp = self._node.get_clock().now().to_msg()
        self._commands.publish(message)

    def stream(self, position: float, seconds: float, rate: float) -> None:
        """Command a position at a rate [Hz], 0: not at all."""
        end = due = time.monotonic()
        end += seconds
        while time.monotonic() < end:
            if rate and time.monotonic() >= due:
                self.command(position)
                due += 1.0 / rate
            self._rclpy.spin_once(self._node, timeout_sec=0.002)

    def way(self, sign: int) -> float:
        """Return the time [s] from a command to the first measurement of its motion."""
        self.stream(sign * STEP, 0.6, 100.0)
        rest, begin = self.states[-1][1], time.monotonic()
        self.command(-sign * STEP)
        self.until(lambda: abs(self.states[-1][1] - rest) > SEEN, 1.0)
        return time.monotonic() - begin
