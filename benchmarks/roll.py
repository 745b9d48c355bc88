# SPDX-License-Identifier: Apache-2.0
"""Goals whose roll stands still, turns and jumps: whether the tool moves alike, and what the roll does."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import dataclass, replace

import matplotlib as mpl
import numpy as np

from benchmarks.arms import ROOT, Task
from benchmarks.chain import Array, angle_between
from benchmarks.follow_case import Asked
from benchmarks.tables import Table, heading
from benchmarks.torsos import torso_text
from ik_node import Goal
from ik_node.control.controller.controller import ArmController
from ik_node.control.robot.arm_model import ArmModel, JointModel
from ik_node.control.robot.robot_models import build_models
from ik_node.control.settings.arm import ArmSettings
from ik_node.control.settings.robot import RobotSettings
from ik_node.control.state.report import Report
from ik_node.solver.redundancy.spare_roll import spare_roll
from ik_node.tracks.curves import Track, tip_pose
from ik_node.tracks.placement import Place, place_roll, place_track

mpl.use('agg')
from matplotlib import pyplot

ARMS = ('so101_like', 'so101')
TREE, LIMB = 'two so101_like', 'so101_like'
FILE = ROOT / 'docs' / 'explanation' / 'roll.png'
TRACES = FILE.with_name('roll_traces.csv')
SPEED, SECONDS, PERIOD, PER_GOAL = 0.05, 20.0, 0.01, 2  # [m/s], [s], [s] and samples between two goals
PER_TRACE = 20  # samples between two rows of the traces
ROLLS: dict[str, Callable[[float], float]] = {
    'still': lambda _: 0.0,
    'turns': lambda time: time,  # beyond the limits of the joint, which has to unwind
    'jumps': lambda time: 2.6 if int(time / 2.0) % 2 else -2.6,
}


@dataclass(frozen=True, eq=False)
class Case:
    """A robot whose tools follow circles.

    places: of the circles in the base frame, by tool. roll [rad]: about the direction, far from all limits.
    """

    name: str
    model: JointModel
    places: dict[str, Place]
    roll: float


def run(tasks: list[Task], scale: float) -> None:
    """Print the differences of tools between the three, and write plot and traces."""
    heading(
        'Rolls of goals',
        f"""Goals along a circle at {SPEED:g} m/s, {1.0 / (PER_GOAL * PERIOD):g} per second, whose roll
        stands still, turns at 1 rad/s or jumps by 5.2 rad every 2 s; of several tools that of the first. On
        axis: the tool moved onto the axis of the last joint, which otherwise positions the tool, too, and
        does not follow the roll. Point, direction: the largest difference of the tool from the motion with
        the roll that stands still, over {scale * SECONDS:g} s of a simulated clock. Roll: the way of the
        first tool's last joint, and its speed. Unwinding: how many reports announce it. Traces every
        {PER_TRACE * PERIOD:g} s: {TRACES.name}, plotted in {FILE.name}.""",
    )
    columns = ('point [mm]', 'direction [deg]', 'roll [rad]', '[rad/s]', 'unwinding')
    table = Table('robot'.ljust(16), 'tool    ', 'roll    ', *columns)
    rows: list[list[object]] = []
    cases = cases_of(tasks)
    figure, axes = pyplot.subplots(2, len(cases), figsize=(14, 6), sharex=True, squeeze=False)
    for case, column in zip(cases, axes.T, strict=True):
        found = {kind: joints_of(case, roll, scale * SECONDS) for kind, roll in ROLLS.items()}
        still = found['still'][0]
        first = case.model.of(next(iter(case.places)))[1][-1]  # the last joint of the first tool
        for kind, (joints, said) in found.items():
            for tool, differences in zip(case.places, between(case.model, joints, still), strict=True):
                way = np.abs(np.diff(joints[:, first]))
                roll = f'{way.sum():.1f}', f'{way.max() / PERIOD:.2f}', said
                shown = (f'{value:.2e}' for value in differences.max(axis=1))
                table.row(case.name, tool, kind, *shown, *(roll if tool == next(iter(case.places)) else ()))
            rows += traced(case, kind, joints)
            times = PERIOD * np.arange(1, len(joints) + 1)
            column[0].plot(times, joints[:, first], label=kind)
            column[1].plot(times, 1e3 * points(case.model, joints)[0][:, :2], linewidth=0.8)
        column[0].set_title(case.name)
        column[1].set_xlabel('time [s]')
    axes[0, 0].set_ylabel('roll joint [rad]')
    axes[1, 0].set_ylabel('tool x, y [mm], all three')
    axes[0, 0].legend()
    figure.tight_layout()
    figure.savefig(FILE, dpi=80)
    with TRACES.open('w', newline='', encoding='utf-8') as file:
        writer = csv.writer(file, lineterminator='\n')
        writer.writerow(('robot', 'roll of the goal', 'time [s]', 'tool', 'roll joint [rad]', *POSE))
        writer.writerows(rows)
    print(f'wrote {FILE.relative_to(ROOT)} and {TRACES.relative_to(ROOT)}')


POSE = ('x [m]', 'y [m]', 'z [m]', 'direction x', 'direction y', 'direction z')


def cases_of(tasks: list[Task]) -> list[Case]:
    """Return the arms of tasks, and a tree of two on a chest that turns."""
    cases = []
    chosen = [task for task in tasks if task.name in ARMS]
    for task in chosen + [on_axis(task) for task in chosen if spare_roll(task.arm) < 0]:
        tool = {'tool_axis': task.axis, 'tool_point': task.point}
        links = {'base_link': task.base, 'tip_link': task.tip}
        model = ArmModel.build(task.xml, ArmSettings(self_collision='false', **links, **tool))
        place = place_track(model.solver, 'circle')
        if place is not None:
            cases.append(Case(task.name, model, {'': place}, place_roll(model.solver, 'circle', place)))
    limb = next((case for case in cases if case.name == LIMB), None)
    if limb is None:
        return cases
    general = ArmSettings(tools=('left', 'right'), self_collision='false')
    settings = RobotSettings(general, {tool: {'tip_link': f'{tool}_tool0'} for tool in general.tools})
    (tree,) = build_models(torso_text(LIMB), settings, {}).values()
    one, places = limb.places[''], {}
    for tool, y in (('left', 0.25), ('right', -0.25)):
        x0, y0, z0 = one.centre
        places[tool] = Place((x0, y0 + y, z0 + 0.3), one.size, one.direction)
    return [*cases, Case(TREE, tree, places, limb.roll)]


def on_axis(task: Task) -> Task:
    """Return an arm with its tool point and axis moved onto the axis of its last joint."""
    arm = task.arm
    frames, count = arm.frames(np.zeros(arm.n)), len(arm.joints)
    zeros = dict.fromkeys(arm.robot.joints, 0.0)
    base, tip = (arm.robot.link_pose(link, zeros) for link in (arm.base_link, arm.tip_link))
    T = np.linalg.inv(base) @ tip
    axis = frames[count - 1] * np.sign(frames[count - 1] @ frames[-2])
    origin = frames[2 * count - 1]
    point = origin + (frames[-3] - origin) @ axis * axis - T[:3, 3]
    R = T[:3, :3]
    return replace(task, name=f'{task.name} on axis', axis=tuple(R.T @ axis), point=tuple(R.T @ point))


def joints_of(case: Case, roll: Callable[[float], float], seconds: float) -> tuple[Array, int]:
    """Return the joints (k, n) of all samples, from rest on the circle, and how many reports of unwinding."""
    reports: list[Report] = []
    controller = ArmController(reports.append)
    controller.activate()
    controller.configure(case.model, ArmSettings(self_collision='false'))
    tracks = {
        tool: Track('circle', place.centre, place.size, SPEED, place.direction)
        for tool, place in case.places.items()
    }
    begin, joints = 6.0, []
    count = round((begin + seconds) / PERIOD)
    for k in range(1, count + 1):
        now = k * PERIOD
        time = now - begin
        for i, (tool, track) in enumerate(tracks.items()):
            if k == 1 + i or (time > 0.0 and k % PER_GOAL == i % PER_GOAL):
                arm, direction = case.model.of(tool)[0].arm, case.places[tool].direction
                place = track.position(max(time, 0.0))
                angle = case.roll + (0.0 if i else roll(max(time, 0.0)))
                T = tip_pose(place, direction, arm.tool_axis, arm.tool_point, angle)
                goal = Goal(place, direction, T[:3, :3] @ arm.tool_lateral)
                controller.submit(Asked(goal, now, now, tool))
        controller.tick(now)
        snapshot = controller.snapshot(next(iter(tracks)))
        assert snapshot is not None
        if time > 0.0:
            joints.append(snapshot.values[case.model.index])
    return np.array(joints), sum('meanwhile' in report.message for report in reports)


def points(model: JointModel, joints: Array) -> list[Array]:
    """Return point and direction (k, 6) of every tool at joints (k, n)."""
    return [
        np.array([np.concatenate(tool.arm.fk(q[columns])) for q in joints]) for tool, columns in model.tools()
    ]


def between(model: JointModel, joints: Array, others: Array) -> list[Array]:
    """Return the distances [mm] and angles [deg] (2, k) of every tool between two motions (k, n)."""
    found = []
    for one, other in zip(points(model, joints), points(model, others), strict=True):
        away = 1e3 * np.linalg.norm(one[:, :3] - other[:, :3], axis=1)
        found.append(np.array([away, np.degrees(angle_between(one[:, 3:], other[:, 3:]))]))
    return found


def traced(case: Case, kind: str, joints: Array) -> list[list[object]]:
    """Return the rows of the traces of joints (k, n)."""
    rows: list[list[object]] = []
    kept = joints[PER_TRACE - 1 :: PER_TRACE]
    for tool, places in zip(case.places, points(case.model, kept), strict=True):
        column = case.model.of(tool)[1][-1]
        for k, (q, place) in enumerate(zip(kept, places, strict=True)):
            numbers = [f'{x:.6f}' for x in (q[column], *place)]
            rows.append([case.name, kind, f'{(k + 1) * PER_TRACE * PERIOD:g}', tool, *numbers])
    return rows
