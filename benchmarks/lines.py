# SPDX-License-Identifier: Apache-2.0
"""Straight lines: what is accepted is straight and within all limits, what is rejected cannot be followed."""

from __future__ import annotations

from dataclasses import dataclass
from time import process_time

import numpy as np
from oracles.arms import Task
from oracles.chain import Array, angle_between
from oracles.reference import Reference

from benchmarks.least_time import least_time
from benchmarks.tables import Table, heading
from ik_node import IkSolver, InputError
from ik_node.control.paths import Bounds, LineMotion, ToolPath, plan_lines

LINES = 1000
TIMED = 40  # of the accepted lines are compared with the least time
TRIES = 20  # times as many lines are drawn at most until half of them are feasible
POSITION, DIRECTION = 2e-4, float(np.radians(0.1))
NEAR = 0.02  # share of both errors: lines that need less exist
AHEAD = 21  # shares of a line that are looked at for each sample
EDGE = 0.8  # share of both errors: lines that need more are neither feasible nor infeasible
SPEED, ACCELERATION, JERK = 0.5, (5.0, 1.0), (50.0, 10.0)  # the node's: share; of revolute, prismatic joints
STEPS, FINE = 201, 40_000  # even steps of a motion for the least time, and samples they are taken from
PERIOD = 2e-3  # [s] of the samples that are judged


def run(tasks: list[Task], scale: float) -> None:
    """Print what becomes of the lines of each arm."""
    count = max(4, round(LINES * scale))
    timed = max(2, round(TIMED * scale))
    heading(
        'Straight lines',
        f"""{count} random lines for each arm, half of them feasible: an independent solver follows them
        from the start in small steps, each error at most 0.2 mm and 0.1 deg. (Lines that need more than
        {EDGE:.0%} of that are left out: ik_node keeps a margin.) Wrong: accepted lines of which a sample
        (every {1e3 * PERIOD:g} ms) misses the line by more, by an FK of its own, or breaks a limit: velocity,
        acceleration and jerk by differences of the samples. Off: the largest errors of accepted lines.
        Unconfirmed: rejected lines that the independent solver follows; near: those of them that do not
        exist, but that it approximates with errors of {NEAR:.0%} to {EDGE:.0%} of those allowed. Beyond:
        accepted ones that it does not follow (they are judged as all others). Time: of {timed} accepted
        lines, beside the least time for the same limits (least_time.py, HiGHS, another discretisation).
        Plan: median processor time of a plan. Speed limits are {SPEED} times the URDF's, acceleration and
        jerk {ACCELERATION[0]:g} rad/s^2 and {JERK[0]:g} rad/s^3 ({ACCELERATION[1]:g} and {JERK[1]:g} for
        prismatic joints).""",
    )
    columns = (
        'lines',
        'feasible',
        'accepted',
        'wrong',
        'off [mm]',
        'off [deg]',
        'rejected',
        'unconfirmed',
        'near',
    )
    table = Table('arm'.ljust(26), *columns, 'beyond', 'time', 'worst', 'plan [ms]')
    for task in tasks:
        if task.arm.n < 3:
            continue
        found = Found(task)
        found.judge(draw(task, count), timed)
        table.row(task.name, *found.cells())


@dataclass(frozen=True, eq=False)
class Line:
    """A line from the tool at joints q (n,) to a position and direction.

    rows (k, n): joints along it, None if it is infeasible. worst: their error as a share of those allowed.
    """

    q: Array
    position: Array
    direction: Array
    rows: Array | None
    worst: float


def draw(task: Task, count: int) -> list[Line]:
    """Return random lines, half of them feasible as far as that many are found."""
    rng, reference = np.random.default_rng(9), Reference(task)
    wanted = {True: count // 2, False: count - count // 2}
    lines: list[Line] = []
    for _ in range(TRIES * count):
        if not any(wanted.values()):
            break
        q, other = task.arm.sample(rng, 2)
        near = np.clip(q + rng.choice([0.1, 0.3, 1.0]) * rng.normal(size=task.arm.n), task.arm.lower, task.arm.upper)
        goal = other if rng.random() < 0.3 else near
        if rng.random() < 0.6:
            goal[0] = q[0]  # in the plane of an arm with 4 effective DoF
        (start, axis), (position, direction) = ((x[0] for x in task.chain.fk(y)) for y in (q, goal))
        if angle_between(axis, direction) > 3.0 or np.linalg.norm(position - start) < 1e-3:
            continue
        rows, worst = followed(task, reference, q, (start, axis), (position, direction))
        if worst > EDGE and rows is not None:
            continue
        if wanted[rows is not None]:
            wanted[rows is not None] -= 1
            lines.append(Line(q, position, direction, rows, worst))
    return lines


def along(start: tuple[Array, Array], end: tuple[Array, Array], shares: Array) -> tuple[Array, Array]:
    """Return positions and directions (k, 3) at shares (k,) of the line between two tools."""
    (p0, d0), (p1, d1) = start, end
    angle = float(angle_between(d0, d1))
    sine = np.sin(angle)
    if sine < 1e-9:
        return p0 + shares[:, None] * (p1 - p0), np.repeat(d0[None], len(shares), axis=0)
    before, after = (np.sin(angle * x)[:, None] / sine for x in (1.0 - shares, shares))
    return p0 + shares[:, None] * (p1 - p0), before * d0 + after * d1


def followed(
    task: Task, reference: Reference, q: Array, start: tuple[Array, Array], end: tuple[Array, Array]
) -> tuple[Array | None, float]:
    """Return joints (k, n) along the line from q (n,) by the independent solver, None if it gets stuck.

    And the largest error, as a share of what is allowed.
    """
    for steps in (250, 1000):
        shares = np.linspace(0.0, 1.0, steps + 1)[1:]
        rows = reference.along(q, *along(start, end, shares), POSITION / DIRECTION)
        position, direction, _ = task.errors(rows, *along(start, end, shares))
        moves = np.abs(np.diff(np.vstack([q, rows]), axis=0))
        bends = np.abs(np.diff(moves, axis=0)).max(initial=0.0)
        smooth = bends < 0.1 and moves.max() < 0.3
        worst = max(position.max() / POSITION, direction.max() / DIRECTION)
        if worst <= 1.0 and smooth:
            return np.vstack([q, rows]), worst
    return None, worst


class Found:
    """What becomes of the lines of one arm."""

    def __init__(self, task: Task) -> None:
        self.task = task
        arm = task.arm
        self.bounds = Bounds(
            SPEED * arm.velocity,
            np.where(arm.prismatic, ACCELERATION[1], ACCELERATION[0]),
            np.where(arm.prismatic, JERK[1], JERK[0]),
        )
        # The tolerances of the node.
        self.solver = IkSolver(arm, position_tolerance=1e-4, direction_tolerance=1e-3, time_budget=0.05, compile='wait')
        self.lines = self.feasible = self.accepted = self.wrong = self.rejected = 0
        self.unconfirmed = self.near = self.beyond = 0
        self.off = [0.0, 0.0]
        self.ratios: list[float] = []
        self.times: list[float] = []

    def judge(self, lines: list[Line], timed: int) -> None:
        """Plan each line and judge what comes of it."""
        for line in lines:
            self.lines += 1
            self.feasible += line.rows is not None
            begin = process_time()
            try:
                motion = plan_lines(
                    self.solver, ToolPath(line.position[None], line.direction[None]), line.q, self.bounds
                )
            except InputError:
                self.rejected += 1
                self.unconfirmed += line.rows is not None
                self.near += line.rows is not None and line.worst > NEAR
                continue
            self.times.append(process_time() - begin)
            self.accepted += 1
            self.beyond += line.rows is None
            self.wrong += not self.good(line, motion)
            if len(self.ratios) < timed:
                bounds = self.bounds
                best = least_time(self.evenly(line, motion), bounds.velocity, bounds.acceleration, bounds.jerk)
                self.ratios.append(motion.trajectory.duration / best)

    def evenly(self, line: Line, motion: LineMotion) -> Array:
        """Return joints (k, n) of the motion at even steps of the tool along its line."""
        q = motion.trajectory.sampled(np.linspace(0.0, motion.trajectory.duration, FINE))[0]
        points = self.task.chain.fk(q)[0]
        move = line.position - points[0]
        shares = np.maximum.accumulate((points - points[0]) @ move)
        shares /= shares[-1]
        return np.column_stack([np.interp(np.linspace(0.0, 1.0, STEPS), shares, row) for row in q.T])

    def good(self, line: Line, motion: LineMotion) -> bool:
        """Whether all samples of a motion are on the line and within the limits."""
        task, arm = self.task, self.task.arm
        times = np.arange(0.0, motion.trajectory.duration + PERIOD, PERIOD)
        q = motion.trajectory.sampled(times)[0]
        points, axes = task.chain.fk(q)
        (start, first), end = (x[0] for x in task.chain.fk(line.q)), (line.position, line.direction)
        move = line.position - start
        shares = (points - start) @ move / (move @ move)
        # A tool that is a little ahead on its line may turn a little ahead too: of the shares that the
        # tolerance of the position allows, the one at which the larger of both errors is least.
        least, errors = np.full(len(q), np.inf), np.zeros((2, len(q)))
        for ahead in np.linspace(-1.0, 1.0, AHEAD) * POSITION / np.linalg.norm(move):
            wanted = along((start, first), end, np.clip(shares + ahead, 0.0, 1.0))
            both = np.array([np.linalg.norm(points - wanted[0], axis=1), angle_between(axes, wanted[1])])
            larger = np.maximum(both[0] / POSITION, both[1] / DIRECTION)
            errors = np.where(larger < least, both, errors)
            least = np.minimum(least, larger)
        errors = errors.max(axis=1)
        self.off = [max(a, b) for a, b in zip(self.off, errors, strict=True)]
        limits = self.bounds.velocity, self.bounds.acceleration, self.bounds.jerk
        kept = all(
            (np.abs(np.diff(q, k, axis=0)) <= limit * PERIOD**k + 1e-12).all() for k, limit in enumerate(limits, 1)
        )
        inside = (q >= arm.lower - 1e-6).all() and (q <= arm.upper + 1e-6).all()
        arrives = np.linalg.norm(points[-1] - line.position) <= POSITION
        starts = np.abs(q[0] - line.q).max() <= 1e-9
        return bool(errors[0] <= POSITION and errors[1] <= DIRECTION and kept and inside and arrives and starts)

    def cells(self) -> list[object]:
        """Return the cells of the table after the name."""
        ratios = self.ratios or [np.nan]
        return [
            self.lines,
            self.feasible,
            self.accepted,
            self.wrong,
            f'{1e3 * self.off[0]:.3f}',
            f'{np.degrees(self.off[1]):.3f}',
            self.rejected,
            self.unconfirmed,
            self.near,
            self.beyond,
            f'{np.median(ratios):.3f}',
            f'{max(ratios):.3f}',
            f'{1e3 * np.median(self.times or [np.nan]):.0f}',
        ]
