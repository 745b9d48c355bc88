# SPDX-License-Identifier: Apache-2.0
"""Constants for the elimination in arms of general geometry, from the axes of the arm."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ik_node.checks import Array
from ik_node.kernels.elimination import general as places
from ik_node.kernels.elimination import layout as rows
from ik_node.model.arm import Arm, frozen
from ik_node.solver.elimination.form import EliminationForm
from ik_node.solver.elimination.motion_matrices import AFFINE, HALF_TANGENT
from ik_node.solver.elimination.plan import vector_at
from ik_node.solver.elimination.task_joints import TaskChain, chain_of

ZEROS = (0.3, -0.5, 0.7)  # rad: poles of the half tangents, away from 0, 90 and 180 degrees
RANK = 1e-9  # singular values below this share of the largest are zero
SLIDE = 0.1  # weight of a chain whose joint 3 is prismatic: eigenvalues at infinity perturb the others
REGULAR = 2e-3  # of general_constants: below this solutions may be missed
GOALS = 6  # random ones, at which the two chains are compared


def general_form(arm: Arm) -> EliminationForm | None:
    """Return the elimination for five joints, None near a special geometry.

    Uses the chain from the base or from the tool, whichever is farther from singular.
    """
    chain = chain_of(arm, direction=True)
    if chain is None or chain.n != 5:
        return None
    constants, regular = general_constants(chain)
    return EliminationForm('general geometry', constants) if regular > REGULAR else None


def general_constants(chain: TaskChain) -> tuple[Array, float]:
    """Return the constants (k, 15) of five joints for the kernels, and how far from singular they are."""
    found = [_constants(chain, False)]
    if not chain.slides[0]:
        found.append(_constants(chain, True))
    return max(found, key=lambda pair: pair[1] * (SLIDE if pair[0][rows.JOINTS + 2, rows.SLIDING] else 1.0))


def _read_from_the_tool(chain: TaskChain) -> TaskChain:
    """Return the chain of a roll about the tool axis and joints 5 to 2, with axis 1 as the tool."""
    order = [4, 3, 2, 1]
    return replace(
        chain,
        axes=-np.vstack([chain.axis, chain.axes[order]]),
        points=np.vstack([chain.point, chain.points[order]]),
        slides=np.concatenate([[False], chain.slides[order]]),
        variables=chain.variables[[0, *order]],
        point=chain.points[0],
        axis=chain.axes[0],
    )


def _constants(arm: TaskChain, backward: bool) -> tuple[Array, float]:
    chain = _read_from_the_tool(arm) if backward else arm
    zeros = np.where(chain.slides[:3], 0.0, ZEROS)
    last = [chain.matrices(k) for k in (3, 4)]
    tools = last[1] @ vector_at(np.vstack([chain.point, chain.axis]))  # (3, 15)
    span = np.tensordot(last[0], tools, (2, 1)).transpose(1, 0, 2).reshape(15, 9)
    left, sizes, _ = np.linalg.svd(span)
    back = [
        _from(zero, chain.matrices(k, inverse=True), bool(chain.slides[k])) for k, zero in enumerate(zeros)
    ]
    powers = [AFFINE if slides else HALF_TANGENT for slides in chain.slides[:2]]
    first, second = (np.tensordot(power.T, table, 1) for power, table in zip(powers, back, strict=False))
    both = np.tensordot(second, first, (2, 1))  # power of x2, row, power of x1, goal
    equations = np.tensordot(left[:, 9:].T @ back[2], both, (2, 1))  # joint 3, equation, x2, x1, goal
    equations = equations.transpose(1, 0, 3, 2, 4).reshape(6, 3, -1)
    linear, quadratic = _reduced(equations, bool(chain.slides[2]))
    linear, quadratic = linear.reshape(-1, 2, 9, 15), quadratic.reshape(-1, 3, 9, 15)
    constants = np.zeros((places.EQUATIONS + 18 * len(linear) + 27 * len(quadratic), 15))
    header, table = constants[0], constants[rows.JOINTS : rows.TOOL]
    header[[rows.FAMILY, rows.ACTIVE, rows.SIZE]] = rows.GENERAL, 5, chain.size
    header[rows.ORIGIN : rows.ORIGIN + 3] = chain.origin
    header[[places.LINEAR, places.QUADRATIC, places.REVERSED]] = len(linear), len(quadratic), backward
    table[:, rows.AXIS : rows.POINT], table[:, rows.POINT : rows.SLIDING] = chain.axes, chain.points
    table[:, rows.SLIDING], table[:, rows.VARIABLE] = chain.slides, chain.variables
    table[:3, places.ZERO] = zeros
    constants[rows.TOOL, :6] = np.concatenate([chain.point, chain.axis])
    constants[places.BASE, :6] = np.concatenate([arm.axes[0], arm.points[0]])
    constants[places.BASE, places.TIP : places.TIP + 6] = np.concatenate([arm.point, arm.axis])
    constants[places.LAST_TWO : places.EQUATIONS] = np.linalg.pinv(span, rcond=RANK)[[3, 6, 1, 2]]
    constants[places.EQUATIONS :] = np.concatenate([linear.reshape(-1, 15), quadratic.reshape(-1, 15)])
    solvable = sizes[7] > RANK * sizes[0] and len(linear) >= 2  # else too many rows are quadratic
    regular = _regularity(linear, quadratic) if solvable else 0.0
    return frozen(constants), regular


def _from(zero: float, parts: Array, slides: bool) -> Array:
    """Return the parts (3, 15, 15) of a joint's motion back for values counted from zero [rad]."""
    if slides:
        return parts
    c, s = np.cos(zero), np.sin(zero)
    return np.array([parts[0], c * parts[1] + s * parts[2], c * parts[2] - s * parts[1]])


def _reduced(equations: Array, slides: bool) -> tuple[Array, Array]:
    """Combine six equations (6, 3, k) in 1, cos, sin of joint 3 so that as few as possible are quadratic.

    slides: in 1, t, t^2 of a prismatic joint. Returns linear (l, 2, k) and quadratic (6 - l, 3, k) in the
    half tangent t, highest power first. A row y with y (cosine + i sine) = 0 makes the polynomial y K(t)
    vanish at t = i. Without that factor it is linear; its real and imaginary parts are equations with all
    solutions.
    """
    constant, cosine, sine = equations[:, 0], equations[:, 1], equations[:, 2]
    if slides:
        left, sizes, _ = np.linalg.svd(sine, full_matrices=False)
        rank = int((sizes > RANK * sizes[0]).sum()) if sizes[0] > 0.0 else 0
        low, rest = left[:, rank:].T, left[:, :rank].T
        linear = np.stack([low @ cosine, low @ constant], 1)
        return linear, np.stack([rest @ sine, rest @ cosine, rest @ constant], 1)
    left, sizes, _ = np.linalg.svd(cosine + 1j * sine, full_matrices=False)
    rank = int((sizes > RANK * sizes[0]).sum()) if sizes[0] > 0.0 else 0
    y = left[:, rank:].conj().T[:3]
    slope, start = y @ (constant - cosine), 1j * (y @ (constant + cosine))
    linear = np.concatenate([np.stack([slope.real, start.real], 1), np.stack([slope.imag, start.imag], 1)])
    low = np.vstack([y.real, y.imag])
    rest = np.linalg.svd(low)[2][np.linalg.matrix_rank(low) :] if len(low) else np.eye(6)
    quadratic = np.stack([rest @ (constant - cosine), 2.0 * rest @ sine, rest @ (constant + cosine)], 1)
    return linear, quadratic


def _regularity(linear: Array, quadratic: Array) -> float:
    """Return how far from singular the matrix is: median over random goals and parameters.

    Of each the smallest singular value as a share of the largest.
    """
    rng = np.random.default_rng(0)
    shares = []
    for _ in range(GOALS):
        point, axis = rng.normal(size=(2, 3))
        m = vector_at(np.vstack([point, axis / np.linalg.norm(axis)]))
        x = complex(*rng.normal(size=2))
        lines, squares = linear @ m, quadratic @ m
        matrix = np.zeros((12, 12), complex)
        values = np.concatenate(
            [lines[:, 0] * x + lines[:, 1], (squares[:, 0] * x + squares[:, 1]) * x + squares[:, 2]]
        )
        if len(values) != 6:
            return 0.0
        values /= np.maximum(np.abs(values).max(axis=1, keepdims=True), 1e-300)
        matrix[:6, :9], matrix[6:, 3:] = values, values
        sizes = np.linalg.svd(matrix, compute_uv=False)
        shares.append(sizes[-1] / sizes[0])
    return float(np.median(shares))
