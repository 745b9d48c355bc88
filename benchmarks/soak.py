# SPDX-License-Identifier: Apache-2.0
"""The node for a long time: memory, from goal to command, and jitter, with 100 goals per second over DDS.

    python -m benchmarks.soak [--minutes 30] [--rate 100]

Exits with 1 if the memory of the node has grown by more than MAX_GROWTH after the warm-up.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass, field

import numpy as np
from domains import own_domain

from benchmarks.node import (
    CIRCLE,
    DOWN,
    PERIOD,
    Watch,
    at_rest,
    listening,
    processor_time,
    quantiles,
    resident,
    wait,
)
from ik_node.model.arm import Arm
from ik_node.share import share_path
from ik_node.tracks import Track, tip_pose

MINUTES, RATE = 30.0, 100.0  # [Hz] of the goals
WARM_UP = 120.0  # [s] at most, and a quarter of the time: caches fill, pools grow
MAX_GROWTH = 1.0  # [MB]
MAX_WAIT = 10.0  # [ms] from goal to command, 99 of 100 times
EVERY = 1.0  # [s] from one look at the memory to the next
LOOKS = 20  # whose median counts at the beginning and at the end
BLOCK = 1000  # goals after which what has been heard is evaluated, so that this process does not grow


@dataclass
class Figures:
    """What was seen: memory [MB] after the warm-up, waits and deviations of the period [ms]."""

    goals: int = 0
    answered: int = 0
    rejected: int = 0
    memory: list[float] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    jitter: list[float] = field(default_factory=list)
    counts: list[dict[str, int]] = field(default_factory=list)
    processor: float = 0.0  # share of a core
    off: float = float('nan')  # distance [m] at rest from the last goal
    code: int = -1  # with which the node ended

    @property
    def growth(self) -> float:
        """By how much the memory has grown after the warm-up [MB]."""
        looks = max(1, min(LOOKS, len(self.memory) // 3))
        return float(np.median(self.memory[-looks:]) - np.median(self.memory[:looks]))


class Soak:
    """Sends goals to a node, and evaluates what comes back block by block."""

    def __init__(self, watch: Watch, node: subprocess.Popen[str], arm: Arm) -> None:
        self._watch, self._node, self._arm = watch, node, arm
        self._sent: dict[str, float] = {}  # by stamp
        self.figures = Figures()

    def run(self, seconds: float, rate: float) -> Figures:
        """Send goals along an eight for a while [s]."""
        track, figures, node = Track('figure_eight', *CIRCLE, DOWN), self.figures, self._node
        warm = min(WARM_UP, seconds / 4.0)
        begin = due = look = time.perf_counter()
        used, counted = processor_time(node.pid), False
        while due < begin + seconds:
            T = tip_pose(track.position(due - begin), DOWN, self._arm.tool_axis, self._arm.tool_point)
            self._watch.send(T)
            stamp = self._watch.stamp
            self._sent[f'{stamp.sec}.{stamp.nanosec:09d}'] = self._watch.sent
            figures.goals += 1
            if due > begin + warm and not counted:
                figures.counts.append(self._count())
                counted = True
            if due >= look:
                look += EVERY
                if counted:
                    figures.memory.append(resident(node.pid))
            if figures.goals % BLOCK == 0:
                self._evaluate(counted)
            due += 1.0 / rate
            time.sleep(max(0.0, due - time.perf_counter()))
        figures.processor = (processor_time(node.pid) - used) / (time.perf_counter() - begin)
        time.sleep(0.5)
        wait(lambda: at_rest(self._watch), 'the arm to rest')
        figures.off = float(np.linalg.norm(self._arm.fk(self._watch.samples[-1][1].position)[0] - T[:3, 3]))
        self._evaluate(True)
        figures.counts.append(self._count())
        return figures

    def _evaluate(self, counts: bool) -> None:
        """Take what has been heard so far; counts: it is not of the warm-up."""
        watch, figures = self._watch, self.figures
        count, statuses = len(watch.samples) - 1, watch.answers[:]
        times = np.array([arrival for arrival, _ in watch.samples[:count]])
        published = np.array(watch.published[:count])
        del watch.samples[:count], watch.published[:count], watch.answers[: len(statuses)]
        watch.statuses.clear()
        for answered, stamp, status in statuses:
            sent = self._sent.pop(stamp, None)
            if sent is None:
                continue
            figures.answered += 1
            figures.rejected += status == 'rejected'
            # The first sample after the goal was taken is the first that can follow it.
            i = int(np.searchsorted(published, answered))
            if counts and i < len(times):
                figures.waits.append(1e3 * (times[i] - sent))
        if counts:
            figures.jitter.extend((1e3 * np.abs(np.diff(times) - PERIOD)).tolist())

    def _count(self) -> dict[str, int]:
        """Have the node count its objects."""
        assert self._node.stdin is not None
        assert self._node.stdout is not None
        self._node.stdin.write('\n')
        self._node.stdin.flush()
        while not (line := self._node.stdout.readline()).startswith('{'):
            if not line:
                raise RuntimeError('the node has ended')
        return json.loads(line)


def soak(seconds: float, rate: float = RATE) -> Figures:
    """Start a node, send goals for a while [s], end it; return what was seen."""
    own_domain()
    path = share_path('urdf', 'seed_arm.urdf.xacro')
    arm = Arm.from_file(path)
    command = [sys.executable, '-m', 'benchmarks.counted_node', '--ros-args', '-p', f'urdf_file:={path}']
    node = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True)
    with listening() as watch:
        try:
            wait(lambda: at_rest(watch) and watch.goals.get_subscription_count() == 1, 'joint_states')
            figures = Soak(watch, node, arm).run(seconds, rate)
        finally:
            node.terminate()  # a shell may have its background jobs ignore SIGINT
            code = node.wait(timeout=30)
    figures.code = code
    return figures


def report(figures: Figures) -> bool:
    """Print the figures; return whether the memory stays within its bound."""
    before, after = figures.counts[0], figures.counts[-1]
    change = ', '.join(f'{after[key] - before[key]:+d} {key}' for key in before)
    waited = np.array(figures.waits)
    print(f'{figures.goals} goals, {figures.answered} answered, {figures.rejected} rejected')
    print(f'  memory after the warm-up [MB]: {figures.memory[0]:.1f}, at the end {figures.memory[-1]:.1f}')
    print(f'  growth {figures.growth:+.2f} MB (at most {MAX_GROWTH:g}); Python: {change}')
    print(f'  goal to command [ms]: {quantiles(waited)} (p99 to be below {MAX_WAIT:g})')
    print(f'  publish jitter, by arrival on one steady clock [ms]: {quantiles(np.array(figures.jitter))}')
    print(f'  processor: {100.0 * figures.processor:.0f} % of one core; load {os.getloadavg()[0]:.1f}')
    print(f'  at rest {1e3 * figures.off:.4f} mm from the last goal; exit code {figures.code}')
    good = figures.growth <= MAX_GROWTH and figures.code == 0
    if not good:
        print(f'the memory has grown by more than {MAX_GROWTH:g} MB, or the node has failed', file=sys.stderr)
    return good


def main() -> int:
    """Soak and report."""
    parser = argparse.ArgumentParser(prog='make soak', description=__doc__.splitlines()[0])
    parser.add_argument('--minutes', type=float, default=MINUTES)
    parser.add_argument('--rate', type=float, default=RATE, help='goals per second')
    options = parser.parse_args()
    return 0 if report(soak(60.0 * options.minutes, options.rate)) else 1


if __name__ == '__main__':
    sys.exit(main())
