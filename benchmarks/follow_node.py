# SPDX-License-Identifier: Apache-2.0
"""Goals that move along curves, by the real node over DDS, on an idle and on a busy machine."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter

import numpy as np
from numpy.typing import NDArray
from oracles.arms import ROOT, Task
from oracles.chain import Array

from benchmarks.commits import BASE, base_folder
from benchmarks.follow_node_case import Stream, streaming
from benchmarks.tables import Table, heading
from ik_node import Goal, IkSolver
from ik_node.control.settings import ArmSettings
from ik_node.tracks import TRACKS, Place, Track, place_track

REAL = ('so101', 'wx250', 'px150', 'xarm5', 'moveo', 'omx_f', 'hebi_a2085_05', 'lrmate200ic5h')
SEED_PLACE = Place((0.4, 0.0, 0.2), 0.08, (0.0, 0.0, -1.0))
RATE, PERIOD = 50.0, 0.01  # of goals [Hz], of the places of the goal that make its box [s]
WINDOW, GROWN = 1.0, 0.2  # [s] of goals whose box the tool may leave by that share of its size
SPEEDS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.6, 1.0)  # [m/s]
HOLD, RAMP, SETTLED = 1.8, 0.3, 1.2  # [s] at each speed, to reach it, and after which it counts
FOLLOWED, PLACES, BEFORE = 'followed', 'places', 'before'
IDLE = 0.25  # largest load of a core by other programs on an idle machine
MACHINES = {'idle': 0, 'busy': os.cpu_count() or 1}  # other processes
ON = {'idle': (FOLLOWED, PLACES, BEFORE), 'busy': (FOLLOWED,)}  # modes: more nodes would keep it busy too
NEEDS = (0.9, 1.5, np.inf)  # upper ends of the classes of what a goal needs
CLOSE = 2.0, 6.0, np.inf, 1.0, np.inf  # [mm] largest distances within the limits
Cells = dict[tuple[str, str], Array]  # distances (5,) by machine and mode


def run(tasks: list[Task], scale: float) -> None:
    """Print what the speeds need of the limits, and the distances of the tool, for arms and curves."""
    cores, loads = os.cpu_count() or 1, os.getloadavg()
    load = ', '.join(f'{value:.1f}' for value in loads)
    idle = '' if loads[0] < IDLE * cores else 'That is no idle machine: the columns "idle" are busy ones, too.'
    heading(
        'Moving goals over DDS',
        f"""{RATE:g} stamped goals per second along a curve from this process to ik_node with its defaults,
        and its joint_states by their stamps; {HOLD:g} s at each speed without a pause between them, of which
        the first {SETTLED:g} do not count. Needs: the largest share of the velocity, acceleration and jerk
        limits of a joint. Behind: distance of the tool from the goal at the time of the sample; off: from the
        curve; box: how far outside the box of the goals of the last second, grown by a fifth of its size;
        median behind / worst behind / worst off / box [mm]. Places: follow_goals false; before: commit
        {BASE}. All are processes of their own that get the same goals. Busy: each core has another process to
        run, and only one ik_node has goals. Load of the machine by other programs at the beginning, over 1, 5
        and 15 minutes: {load} on {cores}
        cores. {idle}""",
    )
    base = base_folder()
    modes: dict[str, tuple[Path, bool]] = {FOLLOWED: (ROOT, True), PLACES: (ROOT, False)}
    if base is not None:
        modes[BEFORE] = base, True
    keys = [(machine, mode) for machine in MACHINES for mode in ON[machine] if mode in modes]
    followed = [task for task in tasks if is_followed(task)][:: max(1, round(1.0 / scale))]
    columns = [f'{machine}: {mode}'.ljust(22) + '  ' for machine, mode in keys]
    table = Table('arm'.ljust(16), 'curve'.ljust(13), 'm/s', 'v', 'a', 'j', *columns)
    found: list[tuple[float, Cells]] = []  # what a goal needs of the limits, and the distances
    begin = perf_counter()
    try:
        for number, task in enumerate(followed):
            passed = f'{number} of {len(followed)} arms, {perf_counter() - begin:.0f} s'
            print(f'{task.name}: {passed}', file=sys.stderr)
            with streaming(task, modes) as stream:
                for curve in TRACKS:
                    found += swept(task, curve, stream, table)
    except KeyboardInterrupt:
        print(f'\nEnded by Ctrl-C after {passed}.')
    summarise(found, keys)


def swept(task: Task, curve: str, stream: Stream, table: Table) -> Iterator[tuple[float, Cells]]:
    """Measure a curve at all speeds; print a row of each, and yield its needs and cells."""
    solver = IkSolver(task.arm, restarts=20)
    place = place_of(task, solver, curve)
    if place is None:
        table.row(task.name, curve, 'no place where the arm can follow it')
        return
    track = Track(curve, place.centre, place.size, 1.0, place.direction)
    seconds = HOLD * len(SPEEDS)

    def moving(time: float) -> Array:
        return track.position(travelled(time))

    sent = np.arange(0.0, seconds, 1.0 / RATE)
    measured: dict[str, dict[str, tuple[Array, Array]]] = {}
    for machine, processes in MACHINES.items():
        some = stream.to(ON[machine])
        with busy(processes):
            some.rest_at(track.position(0.0), np.array(place.direction))
            measured[machine] = some.along(
                moving,
                np.array(place.direction),
                sent,
                seconds,
            )
    used = needs(task, solver, track, place)  # at 1 m/s
    cells: list[Cells] = [{} for _ in SPEEDS]
    points = curve_of(track)
    for machine, modes in measured.items():
        for mode, (times, joints) in modes.items():
            tool, _ = task.chain.fk(joints)
            for i in range(len(SPEEDS)):
                counted = (times > i * HOLD + SETTLED) & (times < (i + 1) * HOLD)
                cells[i][machine, mode] = distances(tool, times, moving, points, counted)
    for speed, row in zip(SPEEDS, cells, strict=True):
        shares = used * speed ** np.arange(1, 4)
        table.row(task.name, curve, speed, *(f'{x:.2f}' for x in shares), *map(told, row.values()))
        yield float(shares.max()), row


def travelled(time: float) -> float:
    """Return the way [m] of the goal after a time [s]: through all speeds in turn."""
    way, before = 0.0, 0.0
    for speed in SPEEDS:
        t = min(time, HOLD)
        ramp = min(t, RAMP)
        way += before * ramp + (speed - before) * ramp**2 / (2.0 * RAMP) + speed * (t - ramp)
        before, time = speed, time - t
        if time <= 0.0:
            break
    return way


def told(cells: Array) -> str:
    """Return a table's cell of distances (5,) [mm]."""
    return ' / '.join(f'{cells[i]:.1f}' for i in (0, 1, 3, 4))


def summarise(found: list[tuple[float, Cells]], keys: list[tuple[str, str]]) -> None:
    """Print the worst distances over all arms and curves, by what the goals need of the limits."""
    heading(
        'Over all arms and curves',
        f"""The worst of the figures above [mm]. Close: in how many runs the tool is at most {CLOSE[0]:g} mm
        behind in the median, {CLOSE[1]:g} at worst, and {CLOSE[3]:g} off. > places: in how many it is more
        than 1 mm farther off, or behind, than with places on an idle machine.""",
    )
    titles = ('median behind', 'worst behind', 'off', 'box', 'close', 'off > places', 'behind > places')
    table = Table('machine', 'goals   ', 'needs', 'runs', *titles)
    low = 0.0
    for high in NEEDS:
        rows = [cells for need, cells in found if low < need <= high]
        for machine, mode in keys if rows else ():
            own = np.array([row[machine, mode] for row in rows])
            places = np.array([row['idle', PLACES] for row in rows])
            worst = [f'{np.nanmax(own[:, i]):.1f}' for i in (0, 1, 3, 4)]
            close = int((own <= CLOSE).all(axis=1).sum())
            farther = [int((own[:, i] > places[:, i] + 1.0).sum()) for i in (3, 1)]
            range_ = f'{low:g} to {high:g}' if np.isfinite(high) else f'above {low:g}'
            table.row(machine, mode, range_, len(rows), *worst, close, *farther)
        low = high


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


def is_followed(task: Task) -> bool:
    """Whether this is one of the arms that are measured."""
    return task.shipped or task.name in REAL


def place_of(task: Task, solver: IkSolver, curve: str) -> Place | None:
    """Return where a curve is for an arm, None if there is no such place."""
    return SEED_PLACE if task.name == 'seed_arm' else place_track(solver, curve)


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
