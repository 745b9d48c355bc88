"""Goals that move along curves: how far behind and beside them the tool is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

from benchmarks.arms import Task
from benchmarks.asked import Asked
from benchmarks.chain import Array
from benchmarks.commits import BASE, check_out
from benchmarks.contest import ENVIRONMENTS
from benchmarks.tables import Table, heading
from ik_node import Goal, IkSolver
from ik_node.control.arm_model import ArmModel
from ik_node.control.controller import ArmController
from ik_node.control.settings import ArmSettings
from ik_node.control.states import State
from ik_node.tracks.curves import CURVES, Track
from ik_node.tracks.placement import Place, place_track

ARMS = ('seed_arm', 'so101_like', 'xarm5_like')
SEED_CIRCLE = Place((0.4, 0.0, 0.2), 0.08, (0.0, 0.0, -1.0))
SPEEDS = (0.1, 0.3)  # [m/s]
GOAL_PERIOD, PERIOD = 0.02, 0.01  # [s] between goals, and between samples
LATENCY, JITTER = 0.002, 0.0015  # [s] of a goal on its way
SECONDS, SETTLE = 8.0, 2.0  # of a run, and of its beginning, which does not count
DELAYS = np.arange(-0.02, 0.2, 0.002)  # [s] that are tried


def run(tasks: list[Task], scale: float) -> None:
    """Print delay, distances, and the largest acceleration and jerk of any joint."""
    seconds = SETTLE + max(1.0, (SECONDS - SETTLE) * scale)
    heading(
        'Moving goals',
        f"""Goals every {1e3 * GOAL_PERIOD:g} ms along a curve, stamped, {1e3 * LATENCY:g} ms late with
        {1e3 * JITTER:g} ms of jitter; samples every {1e3 * PERIOD:g} ms of a simulated clock, ArmController
        without DDS, default limits. Behind: distance of the tool from the goal at the time of the sample
        [mm], median and worst. Off: its distance from the curve. Delay: the shift [ms] that makes it least.
        "places": follow_goals false, each goal is a place to stop at. {BASE}: the code of that commit, in a
        process of its own. a, j: the largest share of the limits of acceleration and jerk, and their values
        [rad/s^2, rad/s^3].""",
    )
    columns = ('behind', 'worst', 'delay', 'off', 'worst', 'a', 'j', 'rad/s^2', 'rad/s^3')
    folder = ENVIRONMENTS / f'ik_node-{BASE}'
    before = folder.exists() or check_out(BASE, folder)
    if not before:
        print(f'git has no commit {BASE}: no comparison.')
    table = Table('arm'.ljust(12), 'curve'.ljust(13), 'm/s', 'goals'.ljust(8) + '  ', *columns)
    for task in tasks:
        if task.name not in ARMS:
            continue
        circle = (
            SEED_CIRCLE if task.name == 'seed_arm' else place_track(IkSolver(task.arm, restarts=20), 'circle')
        )
        if circle is None:
            table.row(task.name, 'no circle that the arm can follow')
            continue
        for curve in CURVES:
            for speed in SPEEDS:
                track = Track(curve, circle.centre, circle.size, speed, circle.direction)
                if before:
                    cells = Run(task, track, circle.direction, follow=False).cells_before(folder, seconds)
                    table.row(task.name, curve, speed, BASE, *cells)
                for follow in (False, True):
                    cells = Run(task, track, circle.direction, follow).cells(seconds)
                    table.row(task.name, curve, speed, 'followed' if follow else 'places', *cells)


def stream(seconds: float) -> tuple[Array, Array]:
    """Return when goals are sent and when they arrive [s]."""
    sent = np.arange(0.0, seconds, GOAL_PERIOD)
    jitter = np.abs(np.random.default_rng(0).normal(0.0, JITTER, len(sent)))
    return sent, sent + LATENCY + jitter


class Run:
    """One arm after one goal."""

    def __init__(self, task: Task, track: Track, direction: tuple[float, ...], follow: bool) -> None:
        self.task, self.track, self.direction = task, track, direction
        self.settings = ArmSettings(
            base_link=task.base,
            tip_link=task.tip,
            tool_axis=task.axis,
            tool_point=task.point,
            follow_goals=follow,
            self_collision='false',
        )
        model = ArmModel.build(task.xml, self.settings)
        self.limits = model.limits_of_motion(model.index, self.settings)
        self.controller = ArmController(lambda _: None)
        self.controller.activate()
        self.controller.configure(model, self.settings)

    def cells(self, seconds: float) -> list[str]:
        """Return what a row shows."""
        time = self._go_to_the_start()
        begin, k = time, 0
        sent, arrival = (begin + times for times in stream(seconds))
        times, joints = [], []
        while time < begin + seconds:
            time += PERIOD
            while k < len(sent) and arrival[k] <= time:
                self._send(sent[k] - begin, arrival[k], sent[k])
                k += 1
            self.controller.tick(time)
            snapshot = self.controller.snapshot()
            assert snapshot is not None
            times.append(time - begin)
            joints.append(snapshot.position)
        return self._judged(np.array(times), np.array(joints))

    def cells_before(self, folder: Path, seconds: float) -> list[str]:
        """Return what a row shows of the commit that is checked out in folder."""
        sent, arrival = stream(seconds)
        goals = [(at, self.track.position(time)) for at, time in zip(arrival, sent, strict=True)]
        names = 'base_link', 'tip_link', 'tool_axis', 'tool_point'
        count = round(seconds / PERIOD)
        asked = {
            'xml': self.task.xml,
            'tool': {name: getattr(self.settings, name) for name in names},
            'direction': self.direction,
            'start': self.track.position(0.0),
            'goals': goals,
            'samples': count,
            'period': PERIOD,
        }
        text = json.dumps(asked, default=lambda value: value.tolist())
        program = Path(__file__).with_name('follow_before.py').read_text()
        done = subprocess.run(
            [sys.executable, '-c', program],
            env={**os.environ, 'PYTHONPATH': str(folder)},
            cwd=folder,
            input=text,
            capture_output=True,
            text=True,
            check=True,
        )
        return self._judged(PERIOD * np.arange(1, count + 1), np.array(json.loads(done.stdout)))

    def _go_to_the_start(self) -> float:
        self._send(0.0, 0.0, None)
        time = 0.0
        for _ in range(3000):
            time += PERIOD
            self.controller.tick(time)
            if time > 1.0 and self.controller.state is State.HOLDING:
                break
        return time

    def _send(self, along: float, received: float, stamp: float | None) -> None:
        goal = Goal(self.track.position(along), self.direction)
        self.controller.submit(Asked(goal, received, stamp))

    def _judged(self, times: Array, joints: Array) -> list[str]:
        counts = times > SETTLE
        tool, _ = self.task.chain.fk(joints)
        tool, when = tool[counts], times[counts]
        behind = np.linalg.norm(tool - self._goal(when), axis=1)
        shifted = [np.median(np.linalg.norm(tool - self._goal(when - delay), axis=1)) for delay in DELAYS]
        curve = self._goal(np.linspace(0.0, self.track.lap, 4000))
        off = np.array([np.linalg.norm(curve - place, axis=1).min() for place in tool])
        rates = [np.diff(joints, order, axis=0)[counts[order:]] / PERIOD**order for order in (2, 3)]
        shares = [
            float((np.abs(rate) / limit).max())
            for rate, limit in zip(rates, (self.limits.acceleration, self.limits.jerk), strict=True)
        ]
        largest = [f'{np.abs(rate).max():.1f}' for rate in rates]
        millimetres = (np.median(behind), behind.max(), np.median(off), off.max())
        first, worst, beside, most = (f'{1e3 * value:.2f}' for value in millimetres)
        delay = f'{1e3 * DELAYS[int(np.argmin(shifted))]:.0f}'
        return [first, worst, delay, beside, most, *(f'{share:.2f}' for share in shares), *largest]

    def _goal(self, times: Array) -> Array:
        return np.array([self.track.position(time) for time in times])
