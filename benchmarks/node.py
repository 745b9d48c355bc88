# SPDX-License-Identifier: Apache-2.0
"""The node over real DDS, in processes of its own."""

from __future__ import annotations

import importlib.util
import subprocess
import sys

from oracles.arms import ROOT, Task

from benchmarks.tables import heading

SECONDS, GOALS = 60.0, 300


def run(tasks: list[Task], scale: float) -> None:
    """Print from goal to motion, and what a stream of goals does to rate, jitter and memory."""
    del tasks  # one arm is enough here: the solver is measured elsewhere
    heading(
        'Node',
        """The seed arm in ik_node, seen from another process over DDS: goals from rest, then 200 goals per
        second along an eight. Figures hold both ways through DDS; whatever else the machine does shows.""",
    )
    if importlib.util.find_spec('rclpy') is None:
        print('ROS 2 is not installed: not measured.')
        return
    sizes = ['--seconds', str(max(3.0, SECONDS * scale)), '--goals', str(max(10, round(GOALS * scale)))]
    subprocess.run([sys.executable, '-m', 'benchmarks.node_latency', *sizes], check=True, cwd=ROOT)
