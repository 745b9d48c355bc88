# SPDX-License-Identifier: Apache-2.0
"""Self-motions followed by short steps, apart from the solver: a judge of what it finds."""

from __future__ import annotations

import math

import numpy as np

from ik_node import Arm, Goal
from oracles.chain import Array

STEP = 0.03  # [rad or m] along a family
MAX_STEPS = 20_000
NEAR = 2.5  # steps: a configuration that is nearer to a family belongs to it


def turning(arm: Arm) -> Array:
    """Which joints (n,) have more than a turn: solutions that differ by turns are one."""
    return (arm.period > 0.0) & (arm.upper - arm.lower > 2.0 * math.pi + 0.1)


def gaps(arm: Arm, rows: Array, q: Array) -> Array:
    """Return rows (k, n) less q (n,), whole turns and joints that move nothing left out."""
    difference = rows - q
    turned = np.remainder(difference + math.pi, 2.0 * math.pi) - math.pi
    return np.where(turning(arm), turned, difference) * ~arm.idle


def distances(arm: Arm, rows: Array, seed: Array) -> Array:
    """Return distances (k,) of rows (k, n) from seed (n,), joints in the nearest turn within limits."""
    away = seed - np.clip(seed, arm.lower, arm.upper)
    near = gaps(arm, rows, seed - away)
    turn = 2.0 * math.pi * turning(arm)
    near = near - turn * (seed - away + near > arm.upper) + turn * (seed - away + near < arm.lower)
    return np.linalg.norm((near - away) * ~arm.idle, axis=1)


def on(arm: Arm, family: Array, q: Array) -> bool:
    """Whether q (n,) is on a family (k, n)."""
    return bool(np.linalg.norm(gaps(arm, family, q), axis=1).min() < NEAR * STEP)


def without_turns(arm: Arm, rows: Array) -> Array:
    """Return rows (k, n) but for those that differ from another by whole turns."""
    kept: list[Array] = []
    for row in rows:
        if not any(np.abs(gaps(arm, other[None], row)).max() < 1e-3 for other in kept):
            kept.append(row)
    return np.array(kept).reshape(-1, arm.n)


def separate(arm: Arm, goal: Goal, starts: Array) -> list[Array]:
    """Return the families (k, n) of starts (m, n), one each."""
    kept: list[Array] = []
    for start in starts:
        if not any(on(arm, family, start) for family in kept):
            kept.append(traced(arm, goal, start))
    return kept


def traced(arm: Arm, goal: Goal, start: Array) -> Array:
    """Return the solutions (k, n) that a continuous motion reaches from start (n,), within the limits.

    By steps along the null space, each brought back by Gauss and Newton.
    """
    low, high = np.where(turning(arm), [[-np.inf], [np.inf]], arm.limits[:2])
    rows = [start]
    for sense in (1.0, -1.0):
        q, along = start, sense * null_vector(arm, start)
        for step in range(MAX_STEPS):
            null = null_vector(arm, q)
            along = null if null @ along > 0.0 else -null
            q = back(arm, goal, q + STEP * along)
            if (q < low - STEP / 3).any() or (q > high + STEP / 3).any():
                break
            rows.append(q)
            if step > 3 and np.linalg.norm(gaps(arm, start[None], q)) < 0.6 * STEP:
                return np.array(rows)
    return np.array(rows)


def null_vector(arm: Arm, q: Array) -> Array:
    """Return the unit motion (n,) that leaves the tool where it is."""
    motion = np.zeros(arm.n)
    motion[~arm.idle] = np.linalg.svd(arm.jacobian(q)[:, ~arm.idle])[2][-1]
    return motion


def back(arm: Arm, goal: Goal, q: Array) -> Array:
    """Return the solution next to q (n,)."""
    for _ in range(4):
        point, axis = arm.fk(q)
        miss = np.concatenate([goal.position - point, goal.direction - axis])
        q = q + np.linalg.pinv(arm.jacobian(q), rcond=1e-6) @ miss
    return q
