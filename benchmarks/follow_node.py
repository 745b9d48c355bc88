"""Goals that move along curves, by the real node over DDS, on an idle and on a busy machine."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator

import numpy as np

from benchmarks.arms import Task
from benchmarks.follow import RATE, SEED_PLACE, judged, needs
from benchmarks.tables import Table, heading
from ik_node import IkSolver
from ik_node.tracks.curves import TRACKS, Track
from ik_node.tracks.placement import place_track

ARMS = ('seed_arm', 'wx250', 'xarm5', 'lrmate200ic5h')
SPEEDS = (0.1, 0.2, 0.3, 0.6)  # [m/s]


def run(tasks: list[Task], scale: float) -> None:
    """Print what the speeds need of the limits, and the distances of the tool, for arms and curves."""
    heading(
        'Moving goals over DDS',
        f"""{RATE:g} stamped goals per second along a curve from this process to ik_node with its defaults,
        and its joint_states by their stamps. Busy: each core has another process to run.
        Needs, behind, off and box as in "Moving goals".""",
    )
    if importlib.util.find_spec('rclpy') is None:
        print('ROS 2 is not installed: not measured.')
        return
    from benchmarks.follow_node_case import streaming

    speeds = SPEEDS if scale >= 1.0 else SPEEDS[::2]
    columns = ('behind', 'worst', 'off', 'worst', 'box')
    table = Table(
        'arm'.ljust(16), 'curve'.ljust(13), 'm/s', 'v', 'a', 'j', 'machine'.ljust(8) + '  ', *columns
    )
    for task in tasks:
        if task.name not in ARMS:
            continue
        with streaming(task) as stream:
            for curve in TRACKS:
                solver = IkSolver(task.arm, restarts=20)
                place = SEED_PLACE if task.name == 'seed_arm' else place_track(solver, curve)
                if place is None:
                    continue
                for speed in speeds:
                    track = Track(curve, place.centre, place.size, speed, place.direction)
                    used = [f'{need:.2f}' for need in needs(task, solver, track, place)]
                    for machine, processes in (('idle', 0), ('busy', os.cpu_count() or 1)):
                        with busy(processes):
                            times, joints = stream.along(track, np.array(place.direction))
                        cells = judged(task, track, times, joints)
                        table.row(task.name, curve, speed, *used, machine, *(f'{cell:.1f}' for cell in cells))


@contextlib.contextmanager
def busy(count: int) -> Iterator[None]:
    """Let so many processes keep the cores busy."""
    processes = [subprocess.Popen([sys.executable, '-c', 'while True: pass']) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()
