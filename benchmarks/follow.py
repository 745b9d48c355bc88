# SPDX-License-Identifier: Apache-2.0
"""Goals that move along curves at rising speeds: how far behind, beside and outside them the tool is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.arms import ROOT, Task
from benchmarks.chain import Array
from benchmarks.commits import BASE, base_folder
from benchmarks.tables import Table, heading
from ik_node import Goal, IkSolver
from ik_node.control.settings.arm import ArmSettings
from ik_node.tracks.curves import TRACKS, Track
from ik_node.tracks.placement import Place, place_track

REAL = ('so101', 'wx250', 'px150', 'xarm5', 'moveo', 'omx_f', 'hebi_a2085_05', 'lrmate200ic5h')
SEED_PLACE = Place((0.4, 0.0, 0.2), 0.08, (0.0, 0.0, -1.0))
SPEEDS = (0.05, 0.1, 0.2, 0.3, 0.34, 0.4, 0.6, 1.0)  # [m/s]
RATE, PERIOD = 50.0, 0.01  # of goals [Hz], of samples [s]
LATENCY, JITTER = 0.002, 0.0015  # [s] of a goal on its way
SECONDS, SETTLE = 10.0, 4.0  # of a run, and of its beginning, which does not count
WINDOW, GROWN = 1.0, 0.2  # [s] of goals whose box the tool may leave by that share of its size


def run(tasks: list[Task], scale: float) -> None:
    """Print what the speeds need of the limits, and the distances of the tool, for every arm and curve."""
    speeds = [s for i, s in enumerate(SPEEDS) if scale >= 1.0 or i in (1, 3, 5, 7)]
    heading(
        'Moving goals',
        f"""{RATE:g} stamped goals per second along a curve, {1e3 * LATENCY:g} ms late with
        {1e3 * JITTER:g} ms of jitter; samples every {1e3 * PERIOD:g} ms of a simulated clock, ArmController
        without DDS, default limits. Needs: the largest share of the velocity, acceleration and jerk limits of
        a joint. Behind: distance of the tool from the goal at the time of the sample [mm], median and worst.
        Off: its distance from the curve. Box: how far outside the box of the goals of the last second, grown
        by a fifth of its size. "places": follow_goals false, each goal is a place to stop at. {BASE}: that
        commit, in a process of its own. The first {SETTLE:g} of {SECONDS:g} s do not count.""",
    )
    modes = packages()
    columns = ('behind', 'worst', 'off', 'worst', 'box')
    table = Table('arm'.ljust(16), 'curve'.ljust(13), 'm/s', 'v', 'a', 'j', 'goals'.ljust(8) + '  ', *columns)
    for task in tasks:
        if is_followed(task):
            for curve in TRACKS:
                _rows(table, task, curve, speeds, modes)


def packages() -> dict[str, Path]:
    """Return the modes that are compared, and the folder of the package of each."""
    base = base_folder()
    return {'followed': ROOT, 'places': ROOT, **({} if base is None else {BASE: base})}


def is_followed(task: Task) -> bool:
    """Whether this is one of the arms that are measured."""
    return task.shipped or task.name in REAL


def place_of(task: Task, solver: IkSolver, curve: str) -> Place | None:
    """Return where a curve is for an arm, None if there is no such place."""
    return SEED_PLACE if task.name == 'seed_arm' else place_track(solver, curve)


def _rows(table: Table, task: Task, curve: str, speeds: list[float], modes: dict[str, Path]) -> None:
    solver = IkSolver(task.arm, restarts=20)
    place = place_of(task, solver, curve)
    if place is None:
        table.row(task.name, curve, 'no place where the arm can follow it')
        return
    tracks = [Track(curve, place.centre, place.size, speed, place.direction) for speed in speeds]
    found = {
        mode: joints_along(task, tracks, place, mode != 'places', package) for mode, package in modes.items()
    }
    for i, track in enumerate(tracks):
        shares = [f'{need:.2f}' for need in needs(task, solver, track, place)]
        for mode in modes:
            joints = np.array(found[mode][i])
            cells = judged(task, track, PERIOD * np.arange(1, len(joints) + 1), joints)
            table.row(task.name, curve, speeds[i], *shares, mode, *(f'{cell:.1f}' for cell in cells))


def joints_along(task: Task, tracks: list[Track], place: Place, follow: bool, package: Path) -> list[Any]:
    """Return the joints (k, n) along each track, by the package in a folder."""
    parameters = {
        'base_link': task.base,
        'tip_link': task.tip,
        'tool_axis': task.axis,
        'tool_point': task.point,
        'follow_goals': follow,
        'self_collision': 'false',
    }
    sent = np.arange(0.0, SECONDS, 1.0 / RATE)
    arrival = sent + LATENCY + np.abs(np.random.default_rng(0).normal(0.0, JITTER, len(sent)))
    cases = [
        {
            'xml': task.xml,
            'parameters': parameters,
            'direction': place.direction,
            'start': track.position(0.0).tolist(),
            'goals': [
                (a, s, track.position(s).tolist())
                for a, s in zip(arrival.tolist(), sent.tolist(), strict=True)
            ],
            'samples': round(SECONDS / PERIOD),
            'period': PERIOD,
        }
        for track in tracks
    ]
    done = subprocess.run(
        [sys.executable, str(ROOT / 'benchmarks' / 'follow_case.py')],
        env={**os.environ, 'PYTHONPATH': str(package)},
        input=json.dumps(cases),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    rows: list[Any] = json.loads(done.stdout)
    return rows


def needs(task: Task, solver: IkSolver, track: Track, place: Place) -> Array:
    """Return the largest shares (3,) of the velocity, acceleration and jerk limits that a track needs."""
    times = np.linspace(0.0, 2.0 * track.lap, 1201)
    joints, q = [], None
    for time in times:
        q = solver.solve(Goal(track.position(time), place.direction), q).q
        joints.append(q)
    settings, arm = ArmSettings(), task.arm
    limits = (
        settings.speed_scaling * arm.velocity,
        np.where(arm.prismatic, settings.max_linear_acceleration, settings.max_acceleration),
        np.where(arm.prismatic, settings.max_linear_jerk, settings.max_jerk),
    )
    rows, step, shares = np.array(joints[600:]), times[1], []
    for limit in limits:
        rows = np.diff(rows, axis=0) / step
        shares.append(float((np.abs(rows) / limit).max()))
    return np.array(shares)


def judged(task: Task, track: Track, times: Array, joints: Array) -> Array:
    """Return distances of the tool (5,) [mm], of joints (k, n) at times (k,) [s]: see the table."""
    tool, _ = task.chain.fk(joints)
    return distances(tool, times, track.position, curve_of(track), times > SETTLE)


def curve_of(track: Track) -> Array:
    """Return points (2000, 3) of the whole curve of a track."""
    return np.array([track.position(time) for time in np.linspace(0.0, track.lap, 2000)])


def distances(
    tool: Array,
    times: Array,
    position: Callable[[float], Array],
    curve: Array,
    counted: NDArray[np.bool_],
) -> Array:
    """Return distances of the tool (5,) [mm]: see the table.

    tool (k, 3) [m] at times (k,) [s], of which those of counted (k,) count; position: of the goal at a time;
    curve (m, 3) [m].
    """
    if not counted.any():
        return np.full(5, np.nan)
    tool, times = tool[counted], times[counted]
    goals = np.array([position(time) for time in times])
    behind = np.linalg.norm(tool - goals, axis=1)
    off = np.array([np.linalg.norm(curve - place, axis=1).min() for place in tool])
    grid = np.arange(max(times[0] - WINDOW, 0.0), times[-1], PERIOD)
    path, outside = np.array([position(time) for time in grid]).reshape(-1, 3), 0.0
    for time, place, goal in zip(times, tool, goals, strict=True):
        recent = np.vstack([path[(grid >= time - WINDOW) & (grid <= time)], goal])
        low, high = recent.min(axis=0), recent.max(axis=0)
        room = GROWN * float((high - low).max())
        outside = max(outside, float(np.maximum(low - room - place, place - high - room).max()))
    return 1e3 * np.array([np.median(behind), behind.max(), np.median(off), off.max(), outside])
