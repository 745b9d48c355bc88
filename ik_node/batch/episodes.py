# SPDX-License-Identifier: Apache-2.0
"""Episodes: the goals of successive frames, solved as one path."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ik_node.batch.goal_columns import GoalRows
from ik_node.checks import Array
from ik_node.model.arm import Arm
from ik_node.solver.goal import Goal, Solution, Status
from ik_node.solver.redundancy.spare_roll import spare_roll
from ik_node.solver.solver import IkSolver

Mask = NDArray[np.bool_]

SAME = 1e-3  # [rad or m] between configurations of one branch
STRAY = 0.02  # of the reach
SLACK = 1.0 + 1e-9  # of velocities, for rounding
FLAGS = ('solved', 'jump', 'too_fast', 'invalid')
NAMED = ('invalid', 'jump', 'too_fast')  # flags whose frames a report names
FOUND = ('position_error', 'direction_error', *FLAGS, 'reason_text')
SECONDS = 'seconds'


def solve_episode(solver: IkSolver, rows: GoalRows, times: Array) -> pa.RecordBatch:
    """Return a row for each frame: joints [rad or m], position_error [m], direction_error [rad], FLAGS.

    reason_text: why a frame is invalid. SECONDS: times (N,) [s] of the frames, as given.

    The path is that of IkSolver.solve_path, whose largest joint move is least. Frames that cannot be met, and
    those between them, follow the frame before as IkSolver.solve_nearby does. A frame without a goal is
    invalid: it holds the joints, and its errors are null, as is that of a direction that was not asked for.
    jump: no continuous motion along the goals leads there from the frame before, or, where one of both is
    not met, the tool leaves the straight way between them by more than STRAY. too_fast: a joint exceeds its
    velocity limit from the frame before, as every motion does where the time does not increase.
    """
    arm = solver.arm
    count = len(rows.positions)
    goals = [_goal(rows, k) for k in range(count)]
    valid = np.ones(count, np.bool_)
    valid[list(rows.wrong)] = False
    frames = valid.nonzero()[0]
    directions = None if rows.directions is None else rows.directions[frames]
    seed = arm.middle if rows.seeds is None or not len(frames) else rows.seeds[frames[0]]
    path = solver.solve_path(rows.positions[frames], directions, seed, time_budget=math.inf)
    q, solved = np.repeat(seed[None], count, axis=0), np.zeros(count, np.bool_)
    q[frames], solved[frames] = path.q, path.solved
    jump = np.zeros(count, np.bool_)
    jump[frames[list(path.breaks)]] = True
    _fill(solver, goals, q, solved, valid, jump)
    if rows.laterals is not None and spare_roll(arm) >= 0:
        _turn_rolls(solver, goals, q, solved, valid)
    loose = np.flatnonzero(~(solved[1:] & solved[:-1]))
    jump[loose + 1] |= _strays(arm, q[loose], q[loose + 1])
    errors = np.array([solver.errors(goal, row) for goal, row in zip(goals, q, strict=True)]).reshape(-1, 2)
    errors[~valid] = np.nan
    if rows.directions is None:
        errors[:, 1] = np.nan
    moves = np.abs(np.diff(q, axis=0, prepend=q[:1]))
    periods = np.nan_to_num(np.diff(times, prepend=times[:1]), posinf=0.0).clip(0.0)
    too_fast = (moves > arm.velocity * periods[:, None] * SLACK).any(axis=1)
    columns = [pa.array(column) for column in (*q.T, solved, jump, too_fast, ~valid)]
    columns[arm.n : arm.n] = [pa.array(column, from_pandas=True) for column in errors.T]  # NaN: null
    columns.append(pa.array([rows.wrong.get(k) for k in range(count)], pa.string()))
    columns.append(pa.array(times))
    return pa.RecordBatch.from_arrays(columns, [*arm.joint_names, *FOUND, SECONDS])


def _strays(arm: Arm, before: Array, after: Array) -> Mask:
    """Return whether the tool leaves the straight way by more than STRAY, (k,), in steps between (k, n)."""
    first, middle, last = (
        np.array([arm.fk(q)[0] for q in rows]).reshape(-1, 3)
        for rows in (before, (before + after) / 2.0, after)
    )
    away: Mask = np.linalg.norm(middle - (first + last) / 2.0, axis=1) > STRAY * arm.reach
    return away


def _goal(rows: GoalRows, k: int) -> Goal:
    direction = None if rows.directions is None else rows.directions[k]
    return Goal(rows.positions[k], direction, None if rows.laterals is None else rows.laterals[k])


def _fill(solver: IkSolver, goals: list[Goal], q: Array, solved: Mask, valid: Mask, jump: Mask) -> None:
    """Have frames that are not solved follow their neighbours, in place."""
    count = len(goals)
    if not valid.any():
        return
    first = int(solved.argmax())
    if not solved[first]:  # none is solved: from the closest configuration of the first
        first = int(valid.argmax())
        q[first] = solver.solve(goals[first], q[first]).q
    for k in range(first - 1, -1, -1):
        q[k] = solver.solve_nearby(goals[k], q[k + 1]).q if valid[k] else q[k + 1]
    for k in range(first + 1, count):
        if not solved[k]:
            q[k] = solver.solve_nearby(goals[k], q[k - 1]).q if valid[k] else q[k - 1]
        elif not solved[k - 1]:  # solve_path knows nothing of the frames between
            there = solver.solve_nearby(goals[k], q[k - 1])
            jump[k] = not (there.solved and np.abs(there.q - q[k]).max() < SAME)


def _turn_rolls(solver: IkSolver, goals: list[Goal], q: Array, solved: Mask, valid: Mask) -> None:
    """Turn spare rolls towards the lateral axes, each near that of the frame before, in place."""
    before = q[0]
    for k, goal in enumerate(goals):
        if valid[k]:
            status = Status.SOLVED if solved[k] else Status.NOT_FOUND
            found = Solution(status, q[k], *solver.errors(goal, q[k]))
            q[k] = solver.align_lateral(goal, before, found).q
        else:
            q[k] = before
        before = q[k]
    first = int(valid.argmax())
    q[:first] = q[first]
