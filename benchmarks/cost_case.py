# SPDX-License-Identifier: Apache-2.0
"""One case of cost.py: a node beside a bare one, in processes of their own; prints a JSON object.

    python -m benchmarks.cost_case '{"folder": "FOLDER", "goals": true, "viewer": false, "parameters": {},
    "windows": 5, "waits": 20}'

Windows count the processor time of both processes at the same time, so that whatever else the machine does
falls on both alike.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import rclpy
from domains import own_domain
from geometry_msgs.msg import PoseStamped
from oracles.arms import ROOT
from rclpy.executors import SingleThreadedExecutor
from sensor_msgs.msg import JointState

from benchmarks.node import DOWN, Watch, at_rest, goal_waits, processor_time, resident, wait
from ik_node.model.arm import Arm
from ik_node.tracks import Track, tip_pose

GOAL_RATE = 50.0  # [Hz], that of ik_goals
CIRCLE = ((0.4, 0.0, 0.2), 0.08, 0.1)  # centre [m], radius [m] and speed [m/s] of ik_goals
WINDOW = 2.0  # [s]
WARM_UP = 2.0  # [s]
SETTLE = 2.0  # [s] after all nodes are there


class Case:
    """The processes of one case: bare, ik_node and, if asked for, ik_viewer."""

    def __init__(self, asked: dict[str, Any]) -> None:
        self._folder = Path(asked['folder'])
        self._arm = Arm.from_file(ROOT / 'urdf' / 'seed_arm.urdf.xacro')
        self._processes: dict[str, subprocess.Popen[str]] = {}
        self._start('bare', ROOT, '-m', 'benchmarks.bare_node')
        given = [f'{name}:={value}' for name, value in asked['parameters'].items()]
        given.append(f'urdf_file:={ROOT / "urdf" / "seed_arm.urdf.xacro"}')
        self._start_program('ik_node', given)
        if asked['viewer']:
            self._start_program('ik_viewer', ['page_port:=0'])
        rclpy.init()
        self.watch = Watch()
        self._bare_goals = self.watch.create_publisher(PoseStamped, 'bare/goal_pose', 1)
        self.watch.create_subscription(JointState, 'bare/joint_states', lambda _: None, 10)
        self._executor = SingleThreadedExecutor()
        self._executor.add_node(self.watch)
        self._listening = threading.Thread(target=self._executor.spin, daemon=True)
        self._listening.start()
        try:
            wait(self._ready, 'joint_states')
            wait(lambda: self._bare_goals.get_subscription_count() == 1, 'the bare node')
        except RuntimeError:
            self.close()
            raise
        time.sleep(SETTLE)

    def _ready(self) -> bool:
        if any(process.poll() is not None for process in self._processes.values()):
            raise RuntimeError('a process has ended')
        names = {f'ik_{name}' for name in ('node', 'viewer') if f'ik_{name}' in self._processes}
        there = names <= set(self.watch.get_node_names())
        return there and at_rest(self.watch) and self.watch.goals.get_subscription_count() > 0

    def _start(self, name: str, folder: Path, *arguments: str) -> None:
        self._processes[name] = subprocess.Popen(
            [sys.executable, *arguments],
            env={**os.environ, 'PYTHONPATH': str(folder)},
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )

    def _start_program(self, name: str, parameters: list[str]) -> None:
        given = [part for parameter in parameters for part in ('-p', parameter)]
        self._start(name, self._folder, '-m', 'ik_node.start', name, '--ros-args', *given)

    def close(self) -> None:
        """End all processes."""
        for name, process in self._processes.items():
            process.send_signal(signal.SIGTERM if name.startswith('ik_') else signal.SIGKILL)
        for process in self._processes.values():
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=20)
            process.kill()
        self._executor.shutdown()
        self._listening.join(timeout=10)
        rclpy.try_shutdown()

    def windows(self, count: int, goals: bool) -> dict[str, list[float]]:
        """Return the shares of a core in windows, by process; the bare node always hears goals."""
        names = list(self._processes)
        used: dict[str, list[float]] = {name: [] for name in names}
        track = Track('circle', *CIRCLE, DOWN)
        begin = due = time.perf_counter()
        window, then, last = begin + WARM_UP, begin, dict.fromkeys(names, 0.0)
        warm = False
        while len(used['bare']) < count:
            T = tip_pose(track.position(due - begin), DOWN, self._arm.tool_axis, self._arm.tool_point)
            if goals:
                self.watch.send(T)
            message = PoseStamped()
            message.header.stamp = self.watch.get_clock().now().to_msg()
            self._bare_goals.publish(message)
            due += 1.0 / GOAL_RATE
            time.sleep(max(0.0, due - time.perf_counter()))
            if time.perf_counter() >= window:
                now = {name: processor_time(self._processes[name].pid) for name in names}
                at = time.perf_counter()
                for name in names if warm else ():
                    used[name].append((now[name] - last[name]) / (at - then))
                warm = True
                last, then, window = now, at, at + WINDOW
        return used

    def memory(self) -> dict[str, float]:
        """Return the resident memory [MB] by process."""
        return {name: resident(process.pid) for name, process in self._processes.items()}

    def waits(self, count: int) -> list[float]:
        """Return the waits [ms] of goals from rest, see goal_waits."""
        return goal_waits(self.watch, self._arm, Track('circle', *CIRCLE, DOWN), count)


def main() -> None:
    """Measure the case that the argument asks for."""
    asked = json.loads(sys.argv[1])
    own_domain()
    os.environ['ROS_LOG_DIR'] = tempfile.mkdtemp(prefix='ros-log-')
    case = Case(asked)
    try:
        found: dict[str, Any] = {'used': case.windows(asked['windows'], asked['goals'])}
        found['memory'], found['waits'] = case.memory(), case.waits(asked['waits'])
    finally:
        case.close()
    print(json.dumps(found))


if __name__ == '__main__':
    main()
