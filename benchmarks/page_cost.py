# SPDX-License-Identifier: Apache-2.0
"""What a page of the viewer costs: processor time, from a drag to the arm, and memory over a long drag.

    python -m benchmarks.page_cost [--minutes 10] [--windows 10] [--drags 200]

The page is a client that speaks viser's protocol, so that drawing takes no time of this machine. Shares of a
core are of the process of the viewer alone, beside a bare rclpy node that publishes five joints at 100 Hz.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import rclpy
from rclpy.executors import SingleThreadedExecutor

from benchmarks.cost_case import processor_time
from benchmarks.node_latency import Watch, at_rest, resident, wait
from ik_node.model.arm import Arm

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / 'test'))
from page import Page  # noqa: E402

Q = (0.3, 0.5, 0.9, 0.6, 0.4)
DRAG_RATE = 30.0  # [Hz] of a hand that drags
CIRCLE = 0.04  # [m], radius of the drag
LAP = 4.0  # [s]
WINDOW = 2.0  # [s]
RAISED = 0.03  # [m], height of the goals from rest


class Demo:
    """ik_node, the viewer, a bare node, and a page."""

    def __init__(self) -> None:
        self._arm = Arm.from_file(ROOT / 'urdf' / 'seed_arm.urdf.xacro')
        self.T_start = self._arm.robot.link_pose('tool0', dict(zip(self._arm.joint_names, Q, strict=True)))
        self._processes = {
            'bare': self._start('-m', 'benchmarks.bare_node'),
            'node': self._start(
                *('-m', 'ik_node.start', 'ik_node', '--ros-args', '-p'),
                f'urdf_file:={ROOT / "urdf" / "seed_arm.urdf.xacro"}',
            ),
            'viewer': self._start('-m', 'ik_node.start', 'ik_viewer', '--ros-args', '-p', 'port:=0'),
        }
        rclpy.init()
        self.watch = Watch()
        self._executor = SingleThreadedExecutor()
        self._executor.add_node(self.watch)
        threading.Thread(target=self._executor.spin, daemon=True).start()
        self._url = self._find_url()
        self.page: Page | None = None
        wait(lambda: at_rest(self.watch), 'joint_states')

    def _start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, *arguments],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def _find_url(self) -> str:
        stream = self._processes['viewer'].stdout
        assert stream is not None
        for line in stream:
            found = re.search(r'open (http://\S+) in a browser', line)
            if found:
                threading.Thread(target=stream.read, daemon=True).start()
                return found[1]
        raise RuntimeError('the viewer has ended')

    def open(self) -> Page:
        """Open a page, with the gizmo at T_start."""
        self.page = page = Page(self._url)
        page.wait(lambda: page.nodes['/base/goal']['visible'], 'the gizmo')

        def there() -> bool:
            page.drag(self.T_start)
            time.sleep(0.5)
            return at_rest(self.watch) and np.allclose(page.pose('/tip'), self.T_start, atol=1e-3)

        page.wait(there, 'the arm at the start')
        return page

    def shares(self, windows: int, during: Callable[[float], Any]) -> dict[str, np.ndarray]:
        """Return shares of a core (windows,) by process; during is called DRAG_RATE times per second."""
        last = {name: processor_time(process.pid) for name, process in self._processes.items()}
        begin = then = time.perf_counter()
        found: dict[str, list[float]] = {name: [] for name in last}
        while len(found['bare']) < windows + 1:  # the first warms up
            during(time.perf_counter() - begin)
            time.sleep(1.0 / DRAG_RATE)
            at = time.perf_counter()
            if at < then + WINDOW:
                continue
            now = {name: processor_time(process.pid) for name, process in self._processes.items()}
            for name in found:
                found[name].append((now[name] - last[name]) / (at - then))
            last, then = now, at
        return {name: np.array(values[1:]) for name, values in found.items()}

    def memory(self) -> float:
        """Return the resident memory of the viewer [MB]."""
        return resident(self._processes['viewer'].pid)

    def drag(self, seconds: float) -> None:
        """Drag the gizmo along a circle."""
        assert self.page is not None
        turn = 2.0 * np.pi * seconds / LAP
        T = self.T_start.copy()
        T[:3, 3] += CIRCLE * np.array([0.0, np.sin(turn), 1.0 - np.cos(turn)])
        self.page.drag(T, release=False)

    def waits(self, count: int) -> list[float]:
        """Return how long [ms] drags from rest take to the first sample that moves."""
        assert self.page is not None
        found = []
        for k in range(count):
            wait(lambda: at_rest(self.watch), 'the arm to rest')
            time.sleep(random.uniform(0.05, 0.1))
            T = self.T_start.copy()
            T[2, 3] += RAISED * (k % 2)
            mark, still = len(self.watch.samples), self.watch.samples[-1][1].position
            sent = time.time()
            self.page.drag(T)
            wait(lambda m=mark, s=still: any(x.position != s for _, x in self.watch.samples[m:]), 'a move')
            found.append(1e3 * (next(t for t, x in self.watch.samples[mark:] if x.position != still) - sent))
        return found

    def close(self) -> None:
        """End all processes."""
        if self.page is not None:
            self.page.close()
        for process in self._processes.values():
            process.send_signal(signal.SIGINT)
        for process in self._processes.values():
            try:
                process.wait(timeout=60)
            except subprocess.TimeoutExpired:
                process.kill()
        self._executor.shutdown()
        rclpy.try_shutdown()


def main() -> None:
    """Print shares, waits and memory."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--minutes', type=float, default=10.0)
    parser.add_argument('--windows', type=int, default=10)
    parser.add_argument('--drags', type=int, default=200)
    options = parser.parse_args()
    os.environ['ROS_AUTOMATIC_DISCOVERY_RANGE'] = 'LOCALHOST'
    os.environ['ROS_DOMAIN_ID'] = str(random.SystemRandom().randint(30, 59))
    os.environ['ROS_LOG_DIR'] = tempfile.mkdtemp(prefix='ros-log-')
    demo = Demo()
    try:
        _print_shares('no page', demo.shares(options.windows, lambda _: None))
        page = demo.open()
        _print_shares('page, at rest', demo.shares(options.windows, lambda _: None))
        _print_shares('page, dragging', demo.shares(options.windows, demo.drag))
        for box in ('Show solutions', 'Show plots'):
            page.choose(box, True)
            _print_shares(f'dragging, {box}', demo.shares(options.windows, demo.drag))
            page.choose(box, False)
        page.release()
        times = demo.waits(options.drags)
        print(
            f'drag to sample [ms]: median {np.median(times):.1f}, p99 {np.quantile(times, 0.99):.1f}',
            flush=True,
        )
        page.choose('Show solutions', True)
        begin = last = time.monotonic()
        rows = [demo.memory()]
        while time.monotonic() < begin + 60.0 * options.minutes:
            demo.drag(time.monotonic() - begin)
            demo.watch.samples.clear()
            time.sleep(1.0 / DRAG_RATE)
            if time.monotonic() > last + 60.0:
                last = time.monotonic()
                rows.append(demo.memory())
                print(f'memory [MB]: {rows[-1]:.1f}', flush=True)
        print(f'memory by minute [MB]: {", ".join(f"{row:.1f}" for row in rows)}', flush=True)
    finally:
        demo.close()


def _print_shares(title: str, used: dict[str, np.ndarray]) -> None:
    share = {name: 100.0 * float(np.median(values)) for name, values in used.items()}
    ratio = float(np.median(used['viewer'] / used['bare']))
    print(
        f'{title:28s} viewer {share["viewer"]:5.1f} %, bare {share["bare"]:5.1f} %, ratio {ratio:5.2f}, '
        f'node {share["node"]:5.1f} %',
        flush=True,
    )


if __name__ == '__main__':
    main()
