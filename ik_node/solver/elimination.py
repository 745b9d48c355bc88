# SPDX-License-Identifier: Apache-2.0
"""All solutions of arms with up to five joints by elimination, whatever their geometry."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from ik_node import kernels
from ik_node.checks import Array
from ik_node.kernels.arrays import AXIS, DIRECTION, LATERAL, OFFSET, PRISMATIC, RATIO, SHIFT, VARIABLE
from ik_node.kernels.elimination import general, layout
from ik_node.model.arm import RANK_TOLERANCE, Arm, frozen
from ik_node.model.rotations import hat
from ik_node.solver.closed_form import (
    AXIS_TOLERANCE,
    EXACT_TOLERANCE,
    POINT_TOLERANCE,
    meeting_point,
    slant,
)


@dataclass(frozen=True, eq=False)
class EliminationForm:
    """A way to eliminate joints: the property of the geometry that it uses, in words, and its constants.

    constants (k, 15): for kernels.eliminated. deviation: rad or share of the length by which the geometry
    misses that property. rejected: other forms that the geometry suggests, and why they are not used. rough:
    solutions may be missing where several share a root, as at right angles, so descents must check.
    """

    name: str
    constants: Array
    deviation: float = 0.0
    rejected: tuple[str, ...] = ()
    rough: bool = False

    @property
    def exact(self) -> bool:
        """Whether no solution can be missing because of the geometry, up to rounding."""
        return self.deviation < EXACT_TOLERANCE


# Rigid motions as 15 x 15 matrices: they transform a point and a direction linearly, products and all.
#
# The vector of a point x and a direction y is m = (1, x, y, x.x, x.y, x cross y, (x.x) y - 2 (x.y) x),
# after the equations of Raghavan and Roth 1990.

# The monomials of a joint, 1, cos q, sin q or 1, t, t^2, as forms in (Y^2, X Y, X^2), a row for each
HALF_TANGENT = np.array([[1.0, 0.0, 1.0], [1.0, 0.0, -1.0], [0.0, 2.0, 0.0]])
AFFINE = np.eye(3)


def vector_of(
    one: float = 0.0,
    x: Array | None = None,
    y: Array | None = None,
    square: float = 0.0,
    along: float = 0.0,
    cross: Array | None = None,
) -> Array:
    """Return the covector (15,) with these parts."""
    zero = np.zeros(3)
    parts = [part if part is not None else zero for part in (x, y, np.array([square, along]), cross, zero)]
    return np.concatenate([[one], *parts])


def motion_matrix(turn: Array, shift: Array) -> Array:
    """Return the matrix (15, 15) of x -> turn x + shift, y -> turn y."""
    m = np.zeros((15, 15))
    x, y, square, along, cross, last = slice(1, 4), slice(4, 7), 7, 8, slice(9, 12), slice(12, 15)
    m[0, 0] = m[square, square] = m[along, along] = 1.0
    m[x, 0], m[x, x], m[y, y], m[cross, cross], m[last, last] = shift, turn, turn, turn, turn
    m[square, 0], m[square, x] = shift @ shift, 2.0 * shift @ turn
    m[along, y] = shift @ turn
    m[cross, y] = hat(shift) @ turn
    m[last, y] = (shift @ shift) * turn - 2.0 * np.outer(shift, shift @ turn)
    m[last, along] = -2.0 * shift
    m[last, cross] = -2.0 * hat(shift) @ turn
    return m


def joint_matrices(axis: Array, point: Array, slides: bool, inverse: bool) -> Array:
    """Return the matrices (3, 15, 15) of 1, cos q, sin q, or 1, t, t^2, whose sum is a joint's motion."""
    sign = -1.0 if inverse else 1.0
    if slides:
        none, one, back = (motion_matrix(np.eye(3), t * sign * axis) for t in (0.0, 1.0, -1.0))
        return np.array([none, (one - back) / 2.0, (one + back) / 2.0 - none])
    k = hat(axis)
    turns = (np.eye(3), np.eye(3) + 2.0 * k @ k, np.eye(3) + sign * k + k @ k)  # by 0, pi, pi / 2
    zero, half, quarter = (motion_matrix(turn, point - turn @ point) for turn in turns)
    mean = (zero + half) / 2.0
    return np.array([mean, (zero - half) / 2.0, quarter - mean])


def invariants_of(axis: Array, point: Array, slides: bool) -> Array:
    """Return covectors (k, 15) that are invariant under a joint, the two of the point alone first."""
    if not slides:
        return np.array(
            [
                vector_of(x=axis),
                vector_of(one=float(point @ point), x=-2.0 * point, square=1.0),
                vector_of(y=axis),
                vector_of(y=-point, along=1.0),
                vector_of(y=-np.cross(axis, point), cross=axis),
            ]
        )
    across = np.linalg.svd(axis[None])[2][1:]
    return np.array([*(vector_of(x=a) for a in across), *(vector_of(y=a) for a in np.eye(3)), vector_of(cross=axis)])


SAMPLES = 8  # configurations in which joints are examined


@dataclass(frozen=True, eq=False)
class TaskChain:
    """The task joints: axes, points (n, 3), slides (n,).

    variables (n,): their indices. numbers (n,): their places in the chain, from 1, mimic joints counted.
    point, axis (3,): of the tool. Points are relative to origin (3,) [m], in units of size [m].
    """

    axes: Array
    points: Array
    slides: NDArray[np.bool_]
    variables: NDArray[np.int_]
    numbers: NDArray[np.int_]
    point: Array
    axis: Array
    origin: Array
    size: float

    @property
    def n(self) -> int:
        """The number of joints."""
        return len(self.axes)

    def matrices(self, k: int, inverse: bool = False) -> Array:
        """The three matrices (3, 15, 15) of joint k, see joint_matrices."""
        return joint_matrices(self.axes[k], self.points[k], bool(self.slides[k]), inverse)


def chain_of(arm: Arm, direction: bool) -> TaskChain | None:
    """Return the task joints for goals with or without direction; None if there are too many.

    A mimic joint is treated as an independent one, with an index beyond those of the arm's variables.
    """
    if arm.has_cones or not arm.n:
        return None
    joints, tool, variables = arm.joints, arm.tool, np.arange(arm.n)
    numbers = variables + 1
    needed = ~arm.idle if direction else ~_still(arm)
    counts, dof = needed, arm.effective_dof if direction else arm.position_dof
    if not arm.is_plain:
        joints, tool, variables, numbers = _freed(arm)
        counts, dof = _mobility(joints, tool, 6 if direction else 3)
    n = int(counts.sum())
    if n == 0 or n != dof or not set(np.flatnonzero(needed)) <= set(variables[counts]):
        return None
    points = np.cumsum(joints[:, OFFSET], axis=0)
    tool_point = points[-1] + tool[:3]
    points = points[counts]
    origin = points.mean(axis=0)
    size = float(np.linalg.norm(np.vstack([points, tool_point]) - origin, axis=1).max())
    if size == 0.0:  # all in one point: only directions count
        size = 1.0
    return TaskChain(
        joints[counts, AXIS],
        (points - origin) / size,
        joints[counts, PRISMATIC] != 0.0,
        variables[counts],
        numbers[counts],
        (tool_point - origin) / size,
        tool[3:6],
        origin,
        size,
    )


def _freed(arm: Arm) -> tuple[Array, Array, NDArray[np.int_], NDArray[np.int_]]:
    """Return joints, tool, variables and numbers (k,) of an arm whose mimic joints move on their own.

    Joints that turn one after the other about the same line are one. A joint that the arm moves alone keeps
    its index, others have one from arm.n on: forward kinematics then checks whether the arm can move them so.
    """
    points = np.cumsum(arm.joints[:, OFFSET], axis=0)
    kept: list[int] = []
    variables: list[int] = []
    for i, row in enumerate(arm.joints):
        if kept and _on_one_line(arm.joints[kept[-1]], row, points[i] - points[kept[-1]]):
            variables[-1] = arm.n + i
            continue
        kept.append(i)
        variables.append(int(row[VARIABLE]) if row[RATIO] == 1.0 and row[SHIFT] == 0.0 else arm.n + i)
    joints = arm.joints[kept].copy()
    joints[:, OFFSET] = np.diff(points[kept], axis=0, prepend=np.zeros((1, 3)))
    joints[:, VARIABLE], joints[:, RATIO], joints[:, SHIFT] = np.arange(len(kept)), 1.0, 0.0
    tool = arm.tool.copy()
    tool[:3] += points[-1] - points[kept[-1]]
    return joints, tool, np.array(variables), np.array(kept) + 1


def _on_one_line(first: Array, second: Array, between: Array) -> bool:
    """Whether two joints, rows of joints, turn about the same line; between (3,): from one to the other."""
    if first[PRISMATIC] != 0.0 or second[PRISMATIC] != 0.0:
        return False
    off = [np.cross(first[AXIS], second[AXIS]), np.cross(first[AXIS], between)]
    return float(first[AXIS] @ second[AXIS]) > 0.0 and not np.any(off)


def _mobility(joints: Array, tool: Array, rows: int) -> tuple[NDArray[np.bool_], int]:
    """Return which joints (k,) move the tool, and the rank of their motions; rows: 3 for its point alone."""
    rng, size = np.random.default_rng(0), float(np.abs(joints[:, OFFSET]).sum() + np.abs(tool[:3]).sum())
    columns = np.empty((SAMPLES, len(joints), 6))
    for column in columns:
        frames = np.empty((2 * len(joints) + 3, 3))
        kernels.forward(joints, tool, rng.uniform(-np.pi, np.pi, len(joints)), frames)
        kernels.jacobian(joints, frames, column)
    columns[:, :, :3] /= max(size, 1e-9)
    moves = columns[:, :, :rows]
    rank = int(np.linalg.matrix_rank(moves, tol=RANK_TOLERANCE).max())
    return np.abs(moves).max(axis=(0, 2)) > RANK_TOLERANCE, rank


def _still(arm: Arm) -> NDArray[np.bool_]:
    """Which joints (n,) do not move the tool point in any configuration."""
    rng = np.random.default_rng(0)
    moved = [np.abs(arm.jacobian(q)[:3]).max(axis=0) for q in arm.sample(rng, SAMPLES)]
    still: NDArray[np.bool_] = np.max(moved, axis=0) <= RANK_TOLERANCE * max(arm.reach, 1e-9)
    return still


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
        return {layout.ONE_JOINT: 1, layout.TWO_JOINTS: 2}.get(self.inner, 3)


def constants_of(chain: TaskChain, plan: EliminationPlan, direction: bool) -> Iterator[Array]:
    """Yield the constants (ROWS, 15) of a plan, with either of two outer joints solved first."""
    equations, outer = equations_of(chain, plan)
    goals = goal_vectors(chain, plan, direction)
    sizes = np.abs(equations @ goals.T).max(axis=tuple(range(1, equations.ndim - 1)))
    scale = np.median(sizes, axis=-1)
    equations = equations / np.where(scale > 0.0, scale, 1.0).reshape(-1, *(1,) * (equations.ndim - 1))
    base = base_of(chain, plan)
    if not outer:
        base[0, layout.STAGE] = layout.NO_UNKNOWN
        yield base
    elif len(outer) == 1:
        equations = equations[:6]
        base[0, [layout.STAGE, layout.OUTER_A, layout.OUTER_B]] = layout.ONE_UNKNOWN, outer[0], outer[0]
        base[0, layout.EQUATIONS] = len(equations)
        base[layout.COEFFICIENTS : layout.COEFFICIENTS + 3 * len(equations)] = equations.reshape(-1, 15)
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
                constants[0, [layout.STAGE, layout.OUTER_A, layout.OUTER_B]] = stage, a, b
                constants[layout.COEFFICIENTS :] = shown.reshape(18, 15)
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
    return EliminationPlan(f'{chain.n} joints', layout.TWO_JOINTS, first, left[:, rank:].T, tool)


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
                return layout.ANY_TWO
            continue
        for power in (2, 1):
            if np.linalg.norm(e[1, :, power]) > np.linalg.norm(e[0, :, power]):
                e = e[::-1]
            square = e[0, :, power] @ e[0, :, power]
            if square > 1e-18:
                e = e - np.array([0.0, 1.0])[:, None, None] * (e[0, :, power] @ e[1, :, power] / square) * e[0]
                break
        curve, linear = e[:, :, 2], e[1, :, 1]
        even = curve - curve[:, :1] * weight
        if max(np.abs(even).max(), np.abs(curve[1]).max()) > STRUCTURE:
            return layout.ANY_TWO
        if np.abs(linear - linear[0] * weight).max() > STRUCTURE:
            return layout.ANY_TWO
    return layout.SLIDE_LAST if slides_b else layout.TURN_LAST


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
    form = np.zeros((layout.ROWS, 15))
    head = form[0]
    head[layout.FAMILY], head[layout.INNER] = layout.PAIR, plan.inner
    head[layout.FIRST_INNER], head[layout.ACTIVE] = plan.first, chain.n
    head[layout.WRIST], head[layout.ALONG], head[layout.SIZE] = plan.wrist, plan.along, chain.size
    head[layout.ORIGIN : layout.ORIGIN + 3] = chain.origin
    head[layout.SLACK] = layout.MIN_SLACK + (10.0 * plan.deviation if plan.deviation > EXACT_TOLERANCE else 0.0)
    plane = plan.common[0] if plan.inner == layout.PLANAR else None
    for k in range(chain.n):
        form[layout.JOINTS + k] = _joint_row(chain, k, plane)
    form[layout.TOOL, :3], form[layout.TOOL, 3:6] = plan.tool[0], chain.axis
    form[layout.COMMON, :6] = plan.common.ravel()
    if plan.inner == layout.TWO_JOINTS:
        known = invariants_of(chain.axes[plan.first], chain.points[plan.first], bool(chain.slides[plan.first]))
        values = np.einsum('ka,ia->ki', known, moved(chain, (plan.first + 1,), plan.tool))
        form[layout.NORMALS : layout.NORMALS + len(known)] = known
        table = np.zeros((10, 3))
        table[: len(known)] = values
        form[layout.AFFINE : layout.AFFINE + 2] = table.reshape(2, 15)
    return form


def _joint_row(chain: TaskChain, k: int, u: Array | None) -> Array:
    row = np.zeros(15)
    row[layout.AXIS : layout.AXIS + 3], row[layout.POINT : layout.POINT + 3] = chain.axes[k], chain.points[k]
    row[layout.SLIDING], row[layout.VARIABLE] = chain.slides[k], chain.variables[k]
    row[layout.SENSE] = 1.0 if u is None else math.copysign(1.0, float(u @ chain.axes[k]))
    return row


TESTED_GOALS = 12  # at which a plan is tested when an arm is loaded
FOUND = 11  # of them whose configuration must be found
RAW_ERROR = 1e-5  # rad or share of the size: candidates are polished from there
MAX_PER_GOAL = 32  # candidates of a goal
SETTLED = False, False, 1e-10  # geometry, equations and error of a plan that needs no comparison


def pair_form(arm: Arm, direction: bool) -> EliminationForm | None:
    """Return the elimination by two equations for goals with or without direction; None if there is none.

    It serves five task joints of special geometry, and fewer if they are as many as the task has degrees of
    freedom. Other arms have infinitely many solutions, or need all joints at once.
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
            rank = plan.deviation >= EXACT_TOLERANCE, constants[0, layout.STAGE] == layout.ANY_TWO, error
            if plan.name not in best or rank < best[plan.name][0]:
                best[plan.name] = rank, plan, constants
            if rank < SETTLED:
                break
        if plan.name not in best:
            rejected.append(f'{plan.name}, but it misses too many solutions')
    if not best:
        return None
    _, plan, constants = min(best.values(), key=lambda found: found[0])
    rejected += [f'{name}, but {plan.name}' for name in best if name != plan.name]
    return EliminationForm(plan.name, frozen(constants), plan.deviation, tuple(rejected))


def _samples(arm: Arm) -> Array:
    """Random configurations (TESTED_GOALS, n), turning joints anywhere."""
    rng = np.random.default_rng(0)
    samples = arm.sample(rng, TESTED_GOALS)
    samples[:, ~arm.prismatic] = rng.uniform(-math.pi, math.pi, (TESTED_GOALS, int((~arm.prismatic).sum())))
    return samples


def _plans(chain: TaskChain, direction: bool) -> Iterator[EliminationPlan]:
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
            yield EliminationPlan(f'{name}: the position decides', layout.ONE_JOINT, 0, known[:2], tool)
        else:
            yield EliminationPlan(name, layout.ONE_JOINT, 0, known if direction else known[:2], tool)


def _triples(chain: TaskChain, first: int, tool: Array) -> Iterator[EliminationPlan]:
    """Yield the plans that eliminate the three joints from first on."""
    part = slice(first, first + 3)
    axes, slides = chain.axes[part], chain.slides[part]
    numbers = ', '.join(map(str, chain.numbers[part]))
    zero = np.zeros(3)
    if slides.all():
        mixed = np.linalg.qr(np.random.default_rng(1).normal(size=(3, 3)))[0]
        normals = np.array([vector_of(y=mixed[k]) for k in range(2)])
        yield EliminationPlan(f'joints {numbers} slide', layout.SLIDES, first, normals, tool)
        return
    u = axes[~slides][0]
    off = [abs(float(w @ u)) if slide else slant(u, w) for w, slide in zip(axes, slides, strict=True)]
    if max(off) < AXIS_TOLERANCE:
        normals = np.array([vector_of(x=u), vector_of(y=u)])
        name = f'joints {numbers} move in one plane' if slides.any() else f'axes {numbers} are parallel'
        yield EliminationPlan(name, layout.PLANAR, first, normals, tool, max(off), np.vstack([u, zero]))
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
        yield EliminationPlan(name, layout.SPHERICAL, first, normals, tool, gap, np.vstack([zero, centre]))


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
    yield EliminationPlan(name, layout.ONE_JOINT, 0, normals, tool, gap, wrist=True, along=along)


def _tried(arm: Arm, constants: Array, plan: EliminationPlan, samples: Array, direction: bool) -> float | None:
    """Return the median error of a plan at the configurations of goals; None if it misses too many."""
    allowed = min(RAW_ERROR + 10.0 * math.sqrt(plan.deviation), 0.3)  # near double roots the square root
    span = np.where(arm.prismatic, max(arm.reach, 1e-9), 1.0)
    errors = []
    out = np.empty((MAX_PER_GOAL, arm.n + len(arm.joints)))
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
    return max(found, key=lambda pair: pair[1] * (SLIDE if pair[0][layout.JOINTS + 2, layout.SLIDING] else 1.0))


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
    """Return the constants (k, 15) of the kernels, and how far from singular they are.

    backward: read the chain from the tool. See kernels/elimination/general.py for the equations.
    """
    chain = _read_from_the_tool(arm) if backward else arm
    zeros = np.where(chain.slides[:3], 0.0, ZEROS)
    # M4 M5 m(tool) by the nine products of the monomials of joints 4 and 5: columns (15, 9), whose left null
    # space N (6, 15) is left[:, 9:]
    last = [chain.matrices(k) for k in (3, 4)]
    tools = last[1] @ vector_at(np.vstack([chain.point, chain.axis]))  # (3, 15)
    span = np.tensordot(last[0], tools, (2, 1)).transpose(1, 0, 2).reshape(15, 9)
    left, sizes, _ = np.linalg.svd(span)
    # N M3^-1 M2^-1 M1^-1, by the monomials of joint 3 and the powers of x2 and x1
    back = [_from(zero, chain.matrices(k, inverse=True), bool(chain.slides[k])) for k, zero in enumerate(zeros)]
    powers = [AFFINE if slides else HALF_TANGENT for slides in chain.slides[:2]]
    first, second = (np.tensordot(power.T, table, 1) for power, table in zip(powers, back, strict=False))
    both = np.tensordot(second, first, (2, 1))  # power of x2, row, power of x1, goal
    equations = np.tensordot(left[:, 9:].T @ back[2], both, (2, 1))  # joint 3, equation, x2, x1, goal
    equations = equations.transpose(1, 0, 3, 2, 4).reshape(6, 3, -1)
    # as polynomials in x3, four of degree 1 if joint 3 turns
    linear, quadratic = _reduced(equations, bool(chain.slides[2]))
    linear, quadratic = linear.reshape(-1, 2, 9, 15), quadratic.reshape(-1, 3, 9, 15)
    constants = np.zeros((general.EQUATIONS + 18 * len(linear) + 27 * len(quadratic), 15))
    header, table = constants[0], constants[layout.JOINTS : layout.TOOL]
    header[[layout.FAMILY, layout.ACTIVE, layout.SIZE]] = layout.GENERAL, 5, chain.size
    header[layout.ORIGIN : layout.ORIGIN + 3] = chain.origin
    header[[general.LINEAR, general.QUADRATIC, general.REVERSED]] = len(linear), len(quadratic), backward
    table[:, layout.AXIS : layout.POINT], table[:, layout.POINT : layout.SLIDING] = chain.axes, chain.points
    table[:, layout.SLIDING], table[:, layout.VARIABLE] = chain.slides, chain.variables
    table[:3, general.ZERO] = zeros
    constants[layout.TOOL, :6] = np.concatenate([chain.point, chain.axis])
    constants[general.BASE, :6] = np.concatenate([arm.axes[0], arm.points[0]])
    constants[general.BASE, general.TIP : general.TIP + 6] = np.concatenate([arm.point, arm.axis])
    # the rows of the pseudo-inverse that give c4, s4, c5, s5 from a vector in the span
    constants[general.LAST_TWO : general.EQUATIONS] = np.linalg.pinv(span, rcond=RANK)[[3, 6, 1, 2]]
    constants[general.EQUATIONS :] = np.concatenate([linear.reshape(-1, 15), quadratic.reshape(-1, 15)])
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


TURNS = 8  # of the half tangent of joint c that are tried
MIN_REGULARITY = 1e-10  # least share of the smallest singular value: below this solutions are lost


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
        (_constants_by_joint(chain, plan, equations, goals, c) for c in range(3)), key=lambda made: made[0]
    )
    if not regular > MIN_REGULARITY:
        return None
    return EliminationForm('any geometry of five joints', frozen(constants), rough=True)


def _constants_by_joint(
    chain: TaskChain, plan: EliminationPlan, equations: Array, goals: Array, joint_c: int
) -> tuple[float, Array]:
    """Return the distance from singularity of the matrix of joint c, and the constants (ROWS_OF_THREE, 15).

    equations (k, 3, 3, 3, 15) in the monomials of joints 1, 2, 3.
    """
    # The equations as quadratic forms in the half tangents of joints a and c, by the monomials of joint b;
    # then of b too. Times 1, x_a, x_b, x_a x_b they have the 16 products of powers up to 3 as unknowns.
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
    # sixteen random mixtures of them are a square matrix of polynomials of degree 2 in joint c, whose half
    # tangent is turned to where the matrix is farthest from singular at infinity
    rng = np.random.default_rng(4)
    mixed = np.linalg.qr(rng.normal(size=(4 * count, layout.POWERS)))[0]
    matrix = np.einsum('kr,kcabm->rabcm', mixed, shifted.reshape(4 * count, 3, 4, 4, 15))
    matrix = matrix.reshape(layout.POWERS, layout.POWERS, 3, 15)
    regular, turn = max((_regularity_at_infinity(matrix, goals, math.pi * k / TURNS), k) for k in range(TURNS))
    c, s = math.cos(math.pi * turn / TURNS), math.sin(math.pi * turn / TURNS)
    # Y = c - s t, X = c t + s
    powers = np.array([[c * c, -2 * c * s, s * s], [c * s, c * c - s * s, -c * s], [s * s, 2 * c * s, c * c]])
    constants = np.zeros((layout.ROWS_OF_THREE, 15))
    constants[: layout.COEFFICIENTS] = base_of(chain, plan)[: layout.COEFFICIENTS]
    constants[0, [layout.STAGE, layout.OUTER_A, layout.OUTER_B]] = layout.ANY_THREE, joint_a, joint_b
    constants[0, layout.OUTER_C] = joint_c
    constants[layout.COMMON, [layout.TURNED, layout.TURNED + 1]] = c, s
    three = np.linalg.qr(rng.normal(size=(count, 3)))[0]
    constants[layout.COEFFICIENTS : layout.MATRIX] = np.einsum('ke,kcajm->ecajm', three, forms).reshape(81, 15)
    constants[layout.MATRIX :] = np.einsum('rlcm,cp->rlpm', matrix, powers).reshape(-1, 15)
    return regular, constants


def _regularity_at_infinity(matrix: Array, goals: Array, angle: float) -> float:
    """Return the smallest singular value as a share of the largest at infinity, the median over goals.

    Infinity: where the half tangent X / Y turned by angle has its pole.
    """
    x, y = math.cos(angle), -math.sin(angle)
    sizes = np.linalg.svd(np.einsum('rlcm,c,gm->grl', matrix, [y * y, x * y, x * x], goals), compute_uv=False)
    return float(np.median(sizes[:, -1] / sizes[:, 0]))


FORMS: WeakKeyDictionary[Arm, dict[bool, tuple[EliminationForm, ...]]] = WeakKeyDictionary()  # by arm
FORMS_LOCK = Lock()
MAX_SOLUTIONS = 64  # distinct ones, whole turns not counted
TRIALS = 12  # random goals that a form must solve before it is conclusive
MAX_JOINTS = 5  # position and direction determine no more


class Elimination:
    """Finds all solutions of an arm at once, if its geometry has a finite number of them."""

    def __init__(self, arm: Arm, options: Array) -> None:
        """options: of the search."""
        self._arm, self._options = arm, options
        self._unlimited = frozen(np.array([[-np.inf], [np.inf]]) * np.ones(arm.n))
        self._has_idle = bool(arm.idle.any())
        self._forms: dict[bool, tuple[EliminationForm, ...]] = {}  # those of FORMS, found faster
        self._level = _constant_axis(arm)

    def _directed(self, goal: Array) -> Array:
        """Return goal (9,), without a direction with the constant direction of the tool."""
        if self._level is None or not math.isnan(goal[DIRECTION]):
            return goal
        goal = goal.copy()
        goal[DIRECTION:LATERAL] = self._level
        return goal

    def may_serve(self, goal: Array) -> bool:
        """Whether there may be a form for goals such as goal (9,), without constructing it."""
        return chain_of(self._arm, not math.isnan(self._directed(goal)[DIRECTION])) is not None

    def forms(self, goal: Array) -> tuple[EliminationForm, ...]:
        """Return the forms for goals such as goal (9,), in the order in which they are tried."""
        direction = not math.isnan(self._directed(goal)[DIRECTION])
        if direction not in self._forms:
            with FORMS_LOCK:
                known = FORMS.setdefault(self._arm, {})
                if direction not in known:
                    known[direction] = tuple(map(partial(self._tried, direction), forms_of(self._arm, direction)))
                self._forms[direction] = known[direction]
        return self._forms[direction]

    def _tried(self, direction: bool, form: EliminationForm) -> EliminationForm:
        """Return form, marked inconclusive if it misses the configuration of some goal."""
        arm, found = self._arm, np.empty((MAX_SOLUTIONS, self._arm.n))
        counts = ~arm.idle
        for q in arm.sample(np.random.default_rng(0), TRIALS):
            goal = np.full(9, math.nan)
            goal[:3], axis = arm.fk(q)
            if direction:
                goal[DIRECTION:LATERAL] = axis
            count, certain = self._solve(form, goal, q, found, 0, None)
            gaps = [kernels.largest_move(arm.period[counts], row[counts], q[counts]) for row in found[:count]]
            if certain and not min(gaps, default=math.inf) < kernels.DISTINCT:
                return replace(form, deviation=math.inf)
        return form

    def solutions(
        self, goal: Array, seed: Array, found: Array, limits: Array | None = None
    ) -> tuple[int, EliminationForm | None]:
        """Write every solution of goal (9,) to found (k, n), with whole turns nearest to seed (n,).

        limits: None for no limits. Returns (their number, the form that shows completeness, if any).
        """
        count, goal = 0, self._directed(goal)
        for form in self.forms(goal):
            before = count
            count, certain = self._solve(form, goal, seed, found, count, limits)
            if certain and form.exact:
                own = self._solve(form, goal, seed, np.empty_like(found), 0, limits)[0] if before else count
                return count, form if own == count else None  # it has lost what another form found
        return count, None

    def _solve(
        self, form: EliminationForm, goal: Array, seed: Array, found: Array, count: int, limits: Array | None
    ) -> tuple[int, bool]:
        arm, opened = self._arm, self._unlimited
        if self._has_idle:  # they stay, even if rounding in a file lets them move the tool slightly
            opened = opened.copy()
            opened[:, arm.idle] = np.clip(seed, arm.lower, arm.upper)[arm.idle]
        within = opened if limits is None else limits
        model = arm.joints, arm.tool, within, opened, arm.period, form.constants
        solved: tuple[int, bool] = kernels.eliminated(*model, goal, self._options, seed, found, count)
        return solved


def _constant_axis(arm: Arm) -> Array | None:
    """Return the tool axis (3,) if mimic joints keep it constant, else None: fewer joints then decide."""
    if arm.is_plain:
        return None
    axes = np.array([arm.fk(q)[1] for q in arm.sample(np.random.default_rng(0), TRIALS)])
    return frozen(axes[0]) if np.ptp(axes, axis=0).max() < EXACT_TOLERANCE else None


def forms_of(arm: Arm, direction: bool) -> tuple[EliminationForm, ...]:
    """Return the ways to solve goals with or without direction, fastest first, most robust last.

    That takes milliseconds, a fifth of a second for some, so it is done for the first goal that needs it.
    """
    special = pair_form(arm, direction)
    if not direction or not arm.is_plain or (special is not None and special.exact):
        return () if special is None else (special,)
    forms = special, general_form(arm), any_form(arm)
    return tuple(form for form in forms if form is not None)


def elimination_of(arm: Arm, options: Array) -> Elimination | None:
    """Return the elimination for arm; None for balls with limits and too many joints."""
    if arm.has_cones or np.count_nonzero(~arm.idle) > MAX_JOINTS:
        return None
    return Elimination(arm, options)
