# SPDX-License-Identifier: Apache-2.0
"""Arms with five joints of any geometry: three unknowns at once."""

from __future__ import annotations

import math

import numpy as np

from ik_node.checks import Array
from ik_node.kernels.elimination import layout as rows
from ik_node.model.arm import Arm, frozen
from ik_node.solver.elimination.form import EliminationForm
from ik_node.solver.elimination.motion_matrices import AFFINE, HALF_TANGENT
from ik_node.solver.elimination.plan import EliminationPlan, base_of, equations_of, goal_vectors, last_two
from ik_node.solver.elimination.task_joints import TaskChain, chain_of

TURNS = 8  # of the half tangent of joint c that are tried
REGULAR = 1e-10  # least share of the smallest singular value: below this solutions are lost


def any_form(arm: Arm) -> EliminationForm | None:
    """Return the elimination for goals with a direction, for any geometry; None if it is singular.

    For arms with five task joints. About ten times slower than pair_form.
    """
    chain = chain_of(arm, direction=True)
    if chain is None or chain.n != 5:
        return None
    plan = last_two(chain, np.vstack([chain.point, chain.axis]))
    equations = equations_of(chain, plan)[0]
    goals = goal_vectors(chain, plan, direction=True)
    regular, constants = max(
        (_constants(chain, plan, equations, goals, c) for c in range(3)), key=lambda made: made[0]
    )
    if not regular > REGULAR:
        return None
    return EliminationForm('any geometry of five joints', frozen(constants), rough=True)


def _constants(
    chain: TaskChain, plan: EliminationPlan, equations: Array, goals: Array, joint_c: int
) -> tuple[float, Array]:
    """Return the distance from singularity of the matrix of joint c, and the constants (ROWS_OF_THREE, 15).

    equations (k, 3, 3, 3, 15) in the monomials of joints 1, 2, 3.
    """
    joint_a, joint_b = (k for k in range(3) if k != joint_c)
    bases = [AFFINE if slides else HALF_TANGENT for slides in chain.slides[:3]]
    forms = np.einsum('zkijm,zc->kcijm', np.moveaxis(equations, 1 + joint_c, 0), bases[joint_c])
    forms = np.einsum('kcijm,ia->kcajm', forms, bases[joint_a])
    squares = np.einsum('kcajm,jb->kcabm', forms, bases[joint_b])
    count = len(squares)
    shifted = np.zeros((4, count, 3, 4, 4, 15))
    for x in range(2):
        for y in range(2):
            shifted[2 * x + y, :, :, x : x + 3, y : y + 3] = squares
    rng = np.random.default_rng(4)
    mixed = np.linalg.qr(rng.normal(size=(4 * count, rows.POWERS)))[0]
    matrix = np.einsum('kr,kcabm->rabcm', mixed, shifted.reshape(4 * count, 3, 4, 4, 15))
    matrix = matrix.reshape(rows.POWERS, rows.POWERS, 3, 15)
    regular, turn = max((_regularity(matrix, goals, math.pi * k / TURNS), k) for k in range(TURNS))
    c, s = math.cos(math.pi * turn / TURNS), math.sin(math.pi * turn / TURNS)
    # Y = c - s t, X = c t + s
    powers = np.array([[c * c, -2 * c * s, s * s], [c * s, c * c - s * s, -c * s], [s * s, 2 * c * s, c * c]])
    constants = np.zeros((rows.ROWS_OF_THREE, 15))
    constants[: rows.COEFFICIENTS] = base_of(chain, plan)[: rows.COEFFICIENTS]
    constants[0, [rows.STAGE, rows.OUTER_A, rows.OUTER_B]] = rows.ANY_THREE, joint_a, joint_b
    constants[0, rows.OUTER_C] = joint_c
    constants[rows.COMMON, [rows.TURNED, rows.TURNED + 1]] = c, s
    three = np.linalg.qr(rng.normal(size=(count, 3)))[0]
    constants[rows.COEFFICIENTS : rows.MATRIX] = np.einsum('ke,kcajm->ecajm', three, forms).reshape(81, 15)
    constants[rows.MATRIX :] = np.einsum('rlcm,cp->rlpm', matrix, powers).reshape(-1, 15)
    return regular, constants


def _regularity(matrix: Array, goals: Array, angle: float) -> float:
    """Return the smallest singular value as a share of the largest at infinity, the median over goals.

    Infinity: where the half tangent X / Y turned by angle has its pole.
    """
    x, y = math.cos(angle), -math.sin(angle)
    sizes = np.linalg.svd(np.einsum('rlcm,c,gm->grl', matrix, [y * y, x * y, x * x], goals), compute_uv=False)
    return float(np.median(sizes[:, -1] / sizes[:, 0]))
