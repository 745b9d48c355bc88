# SPDX-License-Identifier: Apache-2.0
"""Plots: stores what the arms did in the last seconds, and plots it while its checkbox is set."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import viser
from rclpy.subscription import Subscription
from sensor_msgs.msg import JointState

from ik_node.checks import Array
from ik_node.errors import LARGEST
from ik_node.model.arm import Arm, least_singular_values, tool_at
from ik_node.ros.interfaces import MEASURED, subscribe
from ik_node.steady import steady

from . import panel
from .panel import Colour, update
from .scene import Ghost
from .section import Frame, Page, RobotView, Section
from .tool import ViewedTool, errors_between

LENGTH = 30.0  # [s]
PERIOD = 0.1  # [s] from row to row
COMMANDS = 200  # that are kept to be compared with measurements
SECOND = 1_000_000_000  # [ns]


class Row(NamedTuple):
    """One moment. NaN where a value is not known.

    time [s] (steady). q, dq, following (n,): joint positions, velocities, and how far the joints are behind
    their commands [rad or m]. errors: of position [m] and direction [rad]. singular: least singular value of
    the Jacobian that the arm has in general, with lengths in reaches of the arm.
    """

    time: float
    q: Array
    dq: Array
    following: Array
    errors: tuple[float, float]
    singular: float


class History:
    """The rows of the last LENGTH seconds of one arm."""

    def __init__(self, arm: Arm) -> None:
        self._arm = arm
        self._rows: deque[Row] = deque(maxlen=round(LENGTH / PERIOD))

    def due(self, time: float) -> bool:
        """Whether it is time for another row."""
        return not self._rows or time >= self._rows[-1].time + PERIOD

    def add(
        self,
        time: float,
        q: Array,
        dq: Array,
        following: Array,
        T_base_goal: Array | None,
        directed: bool,
    ) -> None:
        """Add a row; T_base_goal (4, 4) of the tip, None without."""
        if self._rows and np.isnan(dq).any():
            last = self._rows[-1]
            dq = np.where(np.isnan(dq), (q - last.q) / (time - last.time), dq)
        arm = self._arm
        (singular,) = least_singular_values(arm.jacobian(q)[None], arm.reach, arm.effective_dof).tolist()
        errors = (math.nan, math.nan)
        if T_base_goal is not None:
            errors = errors_between(arm.fk(q), tool_at(arm, T_base_goal), directed)
        self._rows.append(Row(time, q, dq, following, errors, singular))

    def rows(self) -> list[Row]:
        """Return the rows, the oldest first."""
        return list(self._rows)


class Commands:
    """Joint commands, to be compared with measurements of the same time."""

    def __init__(self) -> None:
        self._newest: deque[JointState] = deque(maxlen=COMMANDS)

    def add(self, message: JointState) -> None:
        """Add a command."""
        self._newest.append(message)

    def behind(self, measured: JointState, names: Sequence[str]) -> Array:
        """Return how far joints (n,) are behind their commands at the stamp of a message; NaN if unknown."""
        unknown = np.full(len(names), math.nan)
        time = _nanoseconds(measured)
        pairs = pairwise(list(self._newest))
        around = next(((a, b) for a, b in pairs if _nanoseconds(a) <= time <= _nanoseconds(b)), None)
        if around is None:
            return unknown
        before, after = (positions(message, names) for message in around)
        first, last = map(_nanoseconds, around)
        share = (time - first) / (last - first) if last > first else 1.0
        return before + share * (after - before) - positions(measured, names)


def positions(message: JointState, names: Sequence[str]) -> Array:
    """Return the positions (n,) of joints in a message, NaN where it has none."""
    return _by_name(names, dict(zip(message.name, message.position, strict=False)))


def velocities(message: JointState, names: Sequence[str]) -> Array:
    """Return the velocities (n,) of joints in a message, NaN where it has none."""
    return _by_name(names, dict(zip(message.name, message.velocity, strict=False)))


def _by_name(names: Sequence[str], values: Mapping[str, float]) -> Array:
    return np.array([values.get(name, math.nan) for name in names], dtype=np.float64)


def _nanoseconds(message: JointState) -> int:
    stamp = message.header.stamp
    return int(stamp.sec) * SECOND + int(stamp.nanosec)


ORDER = 2.5e6  # of the folder: above the recordings
HEIGHT = 130  # pixels
DIGITS = 4  # an axis of less is labelled 0 everywhere
NEAR_LIMIT = 5.0  # [%] of the range of a joint, at either end
LINES: tuple[Colour, ...] = (
    (37, 99, 235),
    (219, 39, 119),
    (13, 148, 136),
    (217, 119, 6),
    (147, 51, 234),
    (77, 124, 15),
    (71, 85, 105),
    (8, 145, 178),
)
CURSOR, LIMIT = 'rgb(212, 60, 60)', 'rgba(212, 60, 60, 0.12)'
HINT = 'The ghost shows where the arm was. The arm itself is not commanded.'


class Chart:
    """Lines over time in seconds before now; hidden without data."""

    def __init__(self, gui: viser.GuiApi, title: str, names: Sequence[str], limits: bool = False) -> None:
        """names: of the lines. limits: the lines are shares of a range [%], whose ends are shaded."""
        self._limits = limits
        font = {'font': '11px sans-serif', 'labelFont': '11px sans-serif', 'labelSize': 14}
        edges = ('', '', '', '') if limits else ()
        series: Any = (
            {'label': 's'},
            {'label': 'cursor', 'stroke': CURSOR, 'width': 1},
            *({'label': n, 'stroke': f'rgb{LINES[k % 8]}', 'width': 1.5} for k, n in enumerate(names)),
            *({'label': edge, 'stroke': 'transparent'} for edge in edges),
        )
        first = len(names) + 2
        bands: Any = tuple({'series': (k + 1, k), 'fill': LIMIT} for k in (first, first + 2))
        scales: Any = {'x': {'time': False, 'range': (-LENGTH, 0.0)}}
        axes: Any = ({'size': 24, **font}, {'size': 40, **font})
        self._plot = gui.add_uplot(
            tuple(np.zeros(2) for _ in series),
            series,
            title=title,
            bands=bands if limits else None,
            scales={**scales, 'y': {'range': (0.0, 100.0)}} if limits else scales,
            axes=axes,
            legend={'show': False},
            height=HEIGHT,
            padding=(8, 8, 0, 0),
            visible=False,
        )

    def show(self, times: Array, lines: Array, cursor: float | None) -> None:
        """Show lines (k, m) at times (k,) [s], and a mark at a time; rows with values that are not finite
        are left out."""
        known = np.isfinite(lines).all(axis=1)
        times, lines = times[known], lines[known].round(DIGITS)
        visible = len(times) > 1
        if visible:
            low, high = (0.0, 100.0) if self._limits else (float(lines.min()), float(lines.max()))
            mark = lines[:, 0].copy()  # hidden below the first line but at the cursor
            if cursor is not None:
                nearest = max(int(np.abs(times - cursor).argmin()), 1)
                mark[nearest - 1 : nearest + 1] = low, high
            edges = (0.0, NEAR_LIMIT, 100.0 - NEAR_LIMIT, 100.0) if self._limits else ()
            self._plot.data = (times, mark, *lines.T, *(np.full(len(times), edge) for edge in edges))
        self._plot.visible = visible

    def remove(self) -> None:
        """Remove the chart."""
        self._plot.remove()


REDRAWN = 0.2  # [s] from one picture to the next
COLOUR: Colour = (100, 116, 139)  # of the ghost
STATES, COMMANDED, MEASURED_STATES = 'joint_states', 'joint_commands', 'measured_joint_states'


class Plots(Section):
    """The last seconds of the tool with the newest goal. It publishes nothing."""

    def __init__(self, page: Page) -> None:
        super().__init__(page, 'Plots', ORDER)
        with self.folder:
            self._show = self.gui.add_checkbox('Show plots', False, hint=f'The last {LENGTH:g} s.')
            self._pause = self.gui.add_checkbox('Look back', False, visible=False, hint=HINT)
            self._time = self.gui.add_slider('Time [s]', -LENGTH, 0.0, 0.1, 0.0, visible=False)
            self._legend = self.gui.add_html('', visible=False)
            self._values = self.gui.add_html('', visible=False)  # at the time that users look back at
        self._charts: list[Chart] = []
        self._charted: Arm | None = None  # the arm of the charts
        self._histories: dict[str, History] = {}  # by the name of the tool
        self._ghost: Ghost | None = None
        self._past: tuple[float, dict[str, list[Row]]] | None = None  # what users look back at, and from when
        self._drawn = 0.0  # (steady)
        self._commands: dict[str, Commands] = {}  # by topic
        self._measured: JointState | None = None

    def subscribe(self) -> Sequence[Subscription]:
        """Subscribe to commands and measurements of a driver."""
        self._measured, self._commands = None, {STATES: Commands(), COMMANDED: Commands()}
        return (
            subscribe(self.node, JointState, MEASURED_STATES, self._measure, MEASURED),
            subscribe(self.node, JointState, COMMANDED, self._commands[COMMANDED].add, MEASURED),
        )

    def _measure(self, message: JointState) -> None:
        self._measured = message

    def show(self, robot: RobotView | None) -> None:
        """Forget the last robot and show another, after the scene was cleared, or none."""
        super().show(robot)
        self._ghost = self._past = None
        self._set_charts(None)
        tools = robot.tools if robot is not None else ()
        self._histories = {tool.name: History(tool.arm) for tool in tools if tool.arm is not None}

    def update(self, frame: Frame) -> None:
        """Keep the newest joints, and draw if it is time to."""
        on, robot, tool, now = self._show.value, self.robot, frame.tool, steady()
        back = self._time.value if on and self._pause.value else None  # [s], at most 0
        update(self._pause, visible=on)
        update(self._time, visible=back is not None)
        if robot is None or not frame.values:
            return
        if frame.states is not None:
            self._commands[STATES].add(frame.states)
            for one in robot.tools:
                self._keep(one, frame.states, now)
        if back is None:
            self._past = None
            update(self._values, visible=False)
        elif self._past is None:
            self._past = now, {name: history.rows() for name, history in self._histories.items()}
        self._place_ghost(robot, back, frame)
        if not on:
            self._set_charts(None)
        elif tool.arm is not None and now >= self._drawn + REDRAWN:
            self._drawn = now
            self._set_charts(tool.arm)
            since, past = self._past or (now, {tool.name: self._histories[tool.name].rows()})
            self._draw(tool.arm, past[tool.name], since, back)

    def _set_charts(self, arm: Arm | None) -> None:
        """Show the charts of an arm, none without one."""
        if arm is self._charted:
            return
        for chart in self._charts:
            chart.remove()
        self._charts, self._charted = [], arm
        update(self._legend, visible=arm is not None)
        if arm is None:
            return
        joints = arm.joint_names
        self._legend.content = panel.box(panel.legend(*((LINES[k % 8], name) for k, name in enumerate(joints))))
        with self.folder:
            self._charts = [
                Chart(self.gui, 'Joints, % of their ranges', joints, limits=True),
                Chart(self.gui, 'Velocities [°/s or mm/s]', joints),
                Chart(self.gui, 'Position error [mm]', ('position',)),
                Chart(self.gui, 'Direction error [°]', ('direction',)),
                Chart(self.gui, 'Least singular value', ('singular',)),
                Chart(self.gui, 'Following error [° or mm]', joints),
            ]

    def _draw(self, arm: Arm, rows: Sequence[Row], now: float, cursor: float | None) -> None:
        """Draw rows before the time now [s]; mark the time cursor [s] and show its values in words."""
        units = np.where(arm.prismatic, 1e3, math.degrees(1.0))
        times = np.array([row.time for row in rows]) - now
        q = np.array([row.q for row in rows])
        bounded = np.isfinite(arm.lower) & np.isfinite(arm.upper) & (arm.upper > arm.lower)
        low, high = np.where(bounded, arm.lower, -math.pi), np.where(bounded, arm.upper, math.pi)
        turned = np.where(bounded, q, (q + math.pi) % (2.0 * math.pi) - math.pi)
        errors = np.array([row.errors for row in rows]) * (1e3, math.degrees(1.0))
        lines = (
            100.0 * (turned - low) / (high - low),
            units * np.array([row.dq for row in rows]),
            errors[:, :1],
            errors[:, 1:],
            np.array([[row.singular] for row in rows]),
            units * np.array([row.following for row in rows]),
        )
        for chart, values in zip(self._charts, lines, strict=True):
            chart.show(times, values, cursor)
        update(self._legend, visible=cursor is None)  # the values have one
        if cursor is not None and rows:
            words = _values_of(arm, rows[int(np.abs(times - cursor).argmin())], units)
            update(self._values, content=panel.box(words), visible=True)

    def _keep(self, tool: ViewedTool, states: JointState, now: float) -> None:
        """Keep a row of a tool if one is due; states: the newest joint_states."""
        history = self._histories.get(tool.name)
        if history is None or tool.arm is None or not history.due(now):
            return
        names = tool.arm.joint_names
        q = positions(states, names)
        if not (np.abs(q) <= LARGEST).all():  # False for NaN
            return
        pose = tool.scene.gizmo_pose() if tool.scene is not None and tool.goal_shown else None
        directed = tool.scene is not None and tool.scene.directed
        following = self._commands[COMMANDED].behind(states, names)
        if self._measured is not None:
            following = self._commands[STATES].behind(self._measured, names)
        history.add(now, q, velocities(states, names), following, pose, directed)

    def _place_ghost(self, robot: RobotView, back: float | None, frame: Frame) -> None:
        """Show where all arms were, if users look back."""
        if back is None or self._past is None:
            if self._ghost is not None:
                self._ghost.hide()
            return
        since, past = self._past
        values = dict(frame.values)
        for tool in robot.tools:
            rows = past.get(tool.name)
            if rows and tool.arm is not None:
                row = min(rows, key=lambda one: abs(one.time - since - back))
                values |= dict(zip(tool.arm.joint_names, row.q.tolist(), strict=True))
        if self._ghost is None:
            self._ghost = Ghost(self.server, '/past', robot.arms, robot.drawing, COLOUR)
        self._ghost.place(values)


def _values_of(arm: Arm, row: Row, units: Array) -> str:
    """Return a legend of the lines with the values of a row."""
    values = (
        (LINES[k % 8], f'{name} {units[k] * row.q[k]:.1f} {"mm" if arm.prismatic[k] else "°"}')
        for k, name in enumerate(arm.joint_names)
    )
    return panel.legend(*values) + panel.error_rows(*row.errors)
