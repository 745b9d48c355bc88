# SPDX-License-Identifier: Apache-2.0
"""Arms of special geometry, or with fewer than five joints: eliminates joints from two equations."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from ik_node import kernels
from ik_node.checks import Array
from ik_node.kernels.elimination import layout as rows
from ik_node.model.arm import Arm, frozen
from ik_node.solver.closed_form import (
    AXIS_TOLERANCE,
    EXACT_TOLERANCE,
    POINT_TOLERANCE,
    meeting_point,
    slant,
)
from ik_node.solver.elimination.form import EliminationForm
from ik_node.solver.elimination.motion_matrices import invariants_of, vector_of
from ik_node.solver.elimination.plan import EliminationPlan, constants_of, last_two
from ik_node.solver.elimination.task_joints import TaskChain, chain_of

GOALS = 12  # at which a plan is tested when an arm is loaded
FOUND = 11  # of them whose configuration must be found
RAW_ERROR = 1e-5  # rad or share of the size: candidates are polished from there
MOST = 32  # candidates of a goal
SETTLED = False, False, 1e-10  # geometry, equations and error of a plan that needs no comparison


def pair_form(arm: Arm, direction: bool) -> EliminationForm | None:
    """Return the elimination by two equations for goals with or without direction; None if there is none.

    For arms with five task joints of special geometry, or fewer and as many as the task has degrees of
    freedom. Others have infinitely many solutions, or need all joints at once.
    """
    chain = chain_of(arm, direction)
    if chain is None:
        return None
    best: dict[str, tuple[tuple[bool, bool, float], EliminationPlan, Array]] = {}  # by name
    rejected = []
    samples = _samples(arm)
    for plan in _plans(chain, direction):
        if any(rank < SETTLED for rank, _, _ in best.values()):
            rejected.append(f'{plan.name}, but {min(best)}')
            continue
        for constants in constants_of(chain, plan, direction):
            error = _tried(arm, constants, plan, samples, direction)
            if error is None:
                continue
            rank = plan.deviation >= EXACT_TOLERANCE, constants[0, rows.STAGE] == rows.ANY_TWO, error
            if plan.name not in best or rank < best[plan.name][0]:
                best[plan.name] = rank, plan, constants
            if rank < SETTLED:
                break
        if plan.name not in best:
            rejected.append(f'{plan.name}, but too many solutions are missed')
    if not best:
        return None
    _, plan, constants = min(best.values(), key=lambda found: found[0])
    rejected += [f'{name}, but {plan.name}' for name in best if name != plan.name]
    return EliminationForm(plan.name, frozen(constants), plan.deviation, tuple(rejected))


def _samples(arm: Arm) -> Array:
    """Random configurations (GOALS, n), turning joints anywhere."""
    rng = np.random.default_rng(0)
    samples = arm.sample(rng, GOALS)
    samples[:, ~arm.prismatic] = rng.uniform(-math.pi, math.pi, (GOALS, int((~arm.prismatic).sum())))
    return samples


def _plans(chain: TaskChain, direction: bool) -> Iterator[EliminationPlan]:
    """Yield the plans that the geometry allows."""
    tool = np.vstack([chain.point, chain.axis if direction else np.zeros(3)])
    n = chain.n
    if direction and n >= 3:
        for first in range(n - 2):
            yield from _triples(chain, first, tool)
    if n == 5:
        yield from _wrists(chain)
    elif n == 4:
        yield last_two(chain, tool)
    elif n < 4:
        name = f'{n} joint{"s" * (n > 1)}'
        known = invariants_of(chain.axes[0], chain.points[0], bool(chain.slides[0]))
        if n == 3:
            yield EliminationPlan(f'{name}: the position decides', rows.ONE_JOINT, 0, known[:2], tool)
        else:
            yield EliminationPlan(name, rows.ONE_JOINT, 0, known if direction else known[:2], tool)


def _triples(chain: TaskChain, first: int, tool: Array) -> Iterator[EliminationPlan]:
    """Yield the plans that eliminate the three joints from first on."""
    part = slice(first, first + 3)
    axes, slides = chain.axes[part], chain.slides[part]
    numbers = ', '.join(map(str, chain.numbers[part]))
    zero = np.zeros(3)
    if slides.all():
        mixed = np.linalg.qr(np.random.default_rng(1).normal(size=(3, 3)))[0]
        normals = np.array([vector_of(y=mixed[k]) for k in range(2)])
        yield EliminationPlan(f'joints {numbers} slide', rows.SLIDES, first, normals, tool)
        return
    u = axes[~slides][0]
    off = [abs(float(w @ u)) if slide else slant(u, w) for w, slide in zip(axes, slides, strict=True)]
    if max(off) < AXIS_TOLERANCE:
        normals = np.array([vector_of(x=u), vector_of(y=u)])
        name = f'joints {numbers} move in one plane' if slides.any() else f'axes {numbers} are parallel'
        yield EliminationPlan(name, rows.PLANAR, first, normals, tool, max(off), np.vstack([u, zero]))
    if slides.any() or min(slant(axes[0], axes[1]), slant(axes[1], axes[2])) < AXIS_TOLERANCE:
        return
    centre, gap = meeting_point(axes, chain.points[part])
    if gap < POINT_TOLERANCE:
        normals = np.array(
            [
                vector_of(one=float(centre @ centre), x=-2.0 * centre, square=1.0),
                vector_of(y=-centre, along=1.0),
            ]
        )
        name = f'axes {numbers} meet in one point'
        yield EliminationPlan(name, rows.SPHERICAL, first, normals, tool, gap, np.vstack([zero, centre]))


def _wrists(chain: TaskChain) -> Iterator[EliminationPlan]:
    """Yield the plan by the intersection of axes 4, 5 and the tool axis."""
    if chain.slides[3:].any():
        return
    lines = np.vstack([chain.axes[3:], chain.axis])
    if min(slant(lines[0], lines[1]), slant(lines[1], lines[2])) < AXIS_TOLERANCE:
        return
    centre, gap = meeting_point(lines, np.vstack([chain.points[3:], chain.point]))
    if gap > POINT_TOLERANCE:
        return
    tool = np.vstack([centre, np.zeros(3)])
    normals = invariants_of(chain.axes[0], chain.points[0], bool(chain.slides[0]))[:2]
    fourth, fifth = chain.numbers[3:]
    name = f'axes {fourth}, {fifth} and the tool axis meet in one point'
    along = float((chain.point - centre) @ chain.axis)
    yield EliminationPlan(name, rows.ONE_JOINT, 0, normals, tool, gap, wrist=True, along=along)


def _tried(
    arm: Arm, constants: Array, plan: EliminationPlan, samples: Array, direction: bool
) -> float | None:
    """Return the median error of a plan at the configurations of goals; None if it misses too many."""
    allowed = min(RAW_ERROR + 10.0 * math.sqrt(plan.deviation), 0.3)  # near double roots the square root
    span = np.where(arm.prismatic, max(arm.reach, 1e-9), 1.0)
    errors = []
    out = np.empty((MOST, arm.n + len(arm.joints)))
    for q in samples:
        goal = np.full(9, math.nan)
        goal[:3], axis = arm.fk(q)
        if direction:
            goal[3:6] = axis
        count, certain = kernels.pair_candidates(constants, goal, out)
        gaps = (out[:count, : arm.n] - q) / span
        gaps[:, arm.period > 0.0] = np.remainder(gaps[:, arm.period > 0.0] + math.pi, 2 * math.pi) - math.pi
        least = np.abs(np.nan_to_num(gaps)).max(axis=1, initial=0.0).min(initial=math.inf)
        errors.append(least if certain else math.inf)
    found = sum(error < allowed for error in errors)
    return float(np.median(errors)) if found >= FOUND else None
