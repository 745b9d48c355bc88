# SPDX-License-Identifier: Apache-2.0
"""Two equations in the remaining joints after the elimination of others, for the kernels."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ik_node import kernels
from ik_node.checks import Array
from ik_node.kernels.elimination import layout as rows
from ik_node.solver.closed_form import EXACT_TOLERANCE
from ik_node.solver.elimination.motion_matrices import AFFINE, HALF_TANGENT, invariants_of
from ik_node.solver.elimination.task_joints import TaskChain

STRUCTURE = 1e-9  # share by which equations may miss the form that leaves a quartic


@dataclass(eq=False)
class EliminationPlan:
    """Which joints are eliminated: inner, from the joint first on, by covectors normals (k, 15).

    tool (2, 3): point and axis for the equations. wrist: joints 4 and 5 are left to the end; along: the
    distance from the wrist point to the tool point.
    """

    name: str
    inner: int
    first: int
    normals: Array
    tool: Array
    deviation: float = 0.0
    common: Array = field(default_factory=lambda: np.zeros((2, 3)))
    wrist: bool = False
    along: float = 0.0

    @property
    def width(self) -> int:
        """The number of inner joints."""
        return {rows.ONE_JOINT: 1, rows.TWO_JOINTS: 2}.get(self.inner, 3)


def constants_of(chain: TaskChain, plan: EliminationPlan, direction: bool) -> Iterator[Array]:
    """Yield the constants (ROWS, 15) of a plan, with either of two outer joints solved first."""
    equations, outer = equations_of(chain, plan)
    goals = goal_vectors(chain, plan, direction)
    sizes = np.abs(equations @ goals.T).max(axis=tuple(range(1, equations.ndim - 1)))
    scale = np.median(sizes, axis=-1)
    equations = equations / np.where(scale > 0.0, scale, 1.0).reshape(-1, *(1,) * (equations.ndim - 1))
    base = base_of(chain, plan)
    if not outer:
        base[0, rows.STAGE] = rows.NO_UNKNOWN
        yield base
    elif len(outer) == 1:
        equations = equations[:6]
        base[0, [rows.STAGE, rows.OUTER_A, rows.OUTER_B]] = rows.ONE_UNKNOWN, outer[0], outer[0]
        base[0, rows.EQUATIONS] = len(equations)
        base[rows.COEFFICIENTS : rows.COEFFICIENTS + 3 * len(equations)] = equations.reshape(-1, 15)
        yield base
    else:
        for pair in _pairs_of(equations):
            for swap in (False, True):
                a, b = outer[::-1] if swap else outer
                shown = np.swapaxes(pair, 1, 2) if swap else pair
                basis = AFFINE if chain.slides[a] else HALF_TANGENT
                shown = np.einsum('kijm,ix->kxjm', shown, basis)
                constants = base.copy()
                stage = _stage(shown @ goals.T, bool(chain.slides[a]), bool(chain.slides[b]))
                constants[0, [rows.STAGE, rows.OUTER_A, rows.OUTER_B]] = stage, a, b
                constants[rows.COEFFICIENTS :] = shown.reshape(18, 15)
                yield constants


def equations_of(chain: TaskChain, plan: EliminationPlan) -> tuple[Array, tuple[int, ...]]:
    """Return coefficients (k, 3, .., 15) of the equations, and the outer joints whose monomials they have."""
    last = 3 if plan.wrist else chain.n
    before, behind = tuple(range(plan.first)), tuple(range(plan.first + plan.width, last))
    sight = np.eye(15)
    for k in before:  # later ones to the left: M_2^-1 M_1^-1
        sight = np.einsum('jab,...bc->...jac', chain.matrices(k, inverse=True), sight)
    goal = -np.einsum('ka,...ab->k...b', plan.normals, sight)
    tool = np.einsum('ka,...a->k...', plan.normals, moved(chain, behind, plan.tool))
    shape = (len(plan.normals), *(3,) * (len(before) + len(behind)), 15)
    equations = np.zeros(shape)
    of_goal: tuple[Any, ...] = (slice(None),) * (1 + len(before)) + (0,) * len(behind)
    of_tool: tuple[Any, ...] = (slice(None),) + (0,) * len(before) + (slice(None),) * len(behind) + (0,)
    equations[of_goal] += goal
    equations[of_tool] += tool
    return equations, before + behind


def last_two(chain: TaskChain, tool: Array) -> EliminationPlan:
    """Return the plan that eliminates the last two joints: at least six covectors are invariant."""
    first = chain.n - 2
    images = moved(chain, (first, first + 1), tool).reshape(9, 15).T
    left, values, _ = np.linalg.svd(images)
    rank = int((values > 1e-9 * values[0]).sum())
    return EliminationPlan(f'{chain.n} joints', rows.TWO_JOINTS, first, left[:, rank:].T, tool)


def moved(chain: TaskChain, joints: tuple[int, ...], tool: Array) -> Array:
    """Return the vector of the tool (..., 15) by the monomials of these joints, three for each."""
    image = vector_at(tool)
    for k in reversed(joints):
        image = np.einsum('iab,...b->i...a', chain.matrices(k), image)
    return image


def vector_at(tool: Array) -> Array:
    """The 15 numbers of a point and a direction (2, 3), as the kernels compute them."""
    out = np.empty(15)
    kernels.write_vector(np.ascontiguousarray(tool).ravel(), out)
    return out


def _pairs_of(equations: Array) -> Iterator[Array]:
    """Yield two equations, or of more some random mixtures."""
    if len(equations) == 2:
        yield equations
        return
    rng = np.random.default_rng(2)
    for _ in range(3):
        mixed = np.linalg.qr(rng.normal(size=(len(equations), 2)))[0]
        yield np.einsum('ke,k...->e...', mixed, equations)


def _stage(values: Array, slides_a: bool, slides_b: bool) -> int:
    """Return how equations whose coefficients at some goals are values (2, 3, 3, g) are solved for b.

    See solve_turn and solve_slide for the structures that leave a quartic.
    """
    weight = np.array([1.0, 0.0, 0.0 if slides_a else 1.0])
    for g in range(values.shape[-1]):
        e = values[..., g]
        if not slides_b:
            turns = e[:, :, 1] + 1j * e[:, :, 2]
            sizes = np.linalg.norm(turns, axis=1)
            if np.linalg.svd(turns, compute_uv=False)[1] > STRUCTURE * max(sizes.max(), 1e-300):
                return rows.ANY_TWO
            continue
        for power in (2, 1):
            if np.linalg.norm(e[1, :, power]) > np.linalg.norm(e[0, :, power]):
                e = e[::-1]
            square = e[0, :, power] @ e[0, :, power]
            if square > 1e-18:
                e = (
                    e
                    - np.array([0.0, 1.0])[:, None, None] * (e[0, :, power] @ e[1, :, power] / square) * e[0]
                )
                break
        curve, linear = e[:, :, 2], e[1, :, 1]
        even = curve - curve[:, :1] * weight
        if max(np.abs(even).max(), np.abs(curve[1]).max()) > STRUCTURE:
            return rows.ANY_TWO
        if np.abs(linear - linear[0] * weight).max() > STRUCTURE:
            return rows.ANY_TWO
    return rows.SLIDE_LAST if slides_b else rows.TURN_LAST


def goal_vectors(chain: TaskChain, plan: EliminationPlan, direction: bool) -> Array:
    """Return the vectors (8, 15) of random goals that the chain can meet, for the equations."""
    rng = np.random.default_rng(3)
    vectors = []
    for _ in range(8):
        v = np.hstack([chain.point, chain.axis * direction])
        for k in reversed(range(chain.n)):
            row = _joint_row(chain, k, None)
            kernels.move(row, float(rng.uniform(-1, 1) if chain.slides[k] else rng.uniform(-3, 3)), v)
        if plan.wrist:
            v[:3] -= plan.along * v[3:]
        vectors.append(vector_at(v.reshape(2, 3)))
    return np.array(vectors)


def base_of(chain: TaskChain, plan: EliminationPlan) -> Array:
    """Return the constants (ROWS, 15) but for the equations and how they are solved."""
    form = np.zeros((rows.ROWS, 15))
    head = form[0]
    head[rows.FAMILY], head[rows.INNER] = rows.PAIR, plan.inner
    head[rows.FIRST_INNER], head[rows.ACTIVE] = plan.first, chain.n
    head[rows.WRIST], head[rows.ALONG], head[rows.SIZE] = plan.wrist, plan.along, chain.size
    head[rows.ORIGIN : rows.ORIGIN + 3] = chain.origin
    head[rows.SLACK] = rows.LEAST_SLACK + (10.0 * plan.deviation if plan.deviation > EXACT_TOLERANCE else 0.0)
    plane = plan.common[0] if plan.inner == rows.PLANAR else None
    for k in range(chain.n):
        form[rows.JOINTS + k] = _joint_row(chain, k, plane)
    form[rows.TOOL, :3], form[rows.TOOL, 3:6] = plan.tool[0], chain.axis
    form[rows.COMMON, :6] = plan.common.ravel()
    if plan.inner == rows.TWO_JOINTS:
        known = invariants_of(
            chain.axes[plan.first], chain.points[plan.first], bool(chain.slides[plan.first])
        )
        values = np.einsum('ka,ia->ki', known, moved(chain, (plan.first + 1,), plan.tool))
        form[rows.NORMALS : rows.NORMALS + len(known)] = known
        table = np.zeros((10, 3))
        table[: len(known)] = values
        form[rows.AFFINE : rows.AFFINE + 2] = table.reshape(2, 15)
    return form


def _joint_row(chain: TaskChain, k: int, u: Array | None) -> Array:
    row = np.zeros(15)
    row[rows.AXIS : rows.AXIS + 3], row[rows.POINT : rows.POINT + 3] = chain.axes[k], chain.points[k]
    row[rows.SLIDING], row[rows.VARIABLE] = chain.slides[k], chain.variables[k]
    row[rows.SENSE] = 1.0 if u is None else math.copysign(1.0, float(u @ chain.axes[k]))
    return row
