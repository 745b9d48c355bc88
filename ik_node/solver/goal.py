# SPDX-License-Identifier: Apache-2.0
"""Goals and their results: Goal, Status, Reason, Solution, Solutions."""

from __future__ import annotations

import enum
import math
import numbers
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeGuard

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ik_node import kernels
from ik_node.checks import FLOATS, UNIT_TOLERANCE, Array, positive, real_array, three_floats, unit_floats
from ik_node.errors import LARGEST, InputError, safe_repr
from ik_node.kernels.arrays import DIRECTION, LATERAL


class Status(enum.Enum):
    """How a solve ended."""

    SOLVED = 'solved'  # both tolerances met within the limits, checked by FK at the returned q
    UNREACHABLE = 'unreachable'  # shown to be impossible
    NOT_FOUND = 'not found'  # the search or its time ran out; nothing is proven


SOLVED = Status.SOLVED  # looking it up in the enumeration takes longer


class Cause(enum.Enum):
    """Why the arm cannot meet the goal."""

    TOO_FAR = 'too far'
    TOO_NEAR = 'too near'
    DIRECTION_CONSTRAINED = 'direction constrained by the position'
    JOINT_LIMIT = 'joint limit'
    BALL_LIMIT = 'limit of a ball joint'
    BRANCH_ENDS = 'branch ends'
    CONFLICT = 'tools in conflict'
    SEARCH_ENDED = 'restarts used up'
    TIME = 'time used up'

    @property
    def remedy(self) -> str:
        """What can be done about it, for users of ik_node and of IkSolver."""
        return REMEDIES[self]


REMEDIES = {
    Cause.TOO_FAR: 'Move the goal towards the base. `ik_reach` draws the workspace.',
    Cause.TOO_NEAR: 'Move the goal away from the base. `ik_reach` draws the workspace.',
    Cause.DIRECTION_CONSTRAINED: 'Accept the closest direction (`on_unreachable: closest`), send the '
    'position alone, or mount the tool along another axis: `ik_inspect` lists what each axis allows.',
    Cause.JOINT_LIMIT: 'Check the limits of the joint in the URDF, `joint_limits_file` and '
    '`joint_limit_margins`. If they are right, move the goal or the base of the arm.',
    Cause.BALL_LIMIT: 'Check `swing`, `twist_lower` and `twist_upper` of the ball joint in the URDF.',
    Cause.BRANCH_ENDS: 'Move to the other configuration, which takes a large joint motion (`other_branch` of '
    'the solution), or start the path in another one.',
    Cause.CONFLICT: 'Move the goal of one of the tools: they share joints, which cannot serve both goals.',
    Cause.SEARCH_ENDED: 'There may be a solution. Try a seed near the expected one, or more `restarts`.',
    Cause.TIME: 'There may be a solution. Raise `time_budget`, or wait until `~/status` reports fast kernels.',
}


@dataclass(frozen=True)
class Reason:
    """Why a goal was not met.

    amount is in metres for TOO_FAR and TOO_NEAR, in radians for DIRECTION_CONSTRAINED and BALL_LIMIT, in
    the joint's unit for JOINT_LIMIT, the largest joint move to the other branch for BRANCH_ENDS, a count for
    SEARCH_ENDED and seconds for TIME.
    """

    cause: Cause
    amount: float
    sentence: str
    joint: str | None = None

    def __str__(self) -> str:
        return self.sentence


@dataclass(slots=True, eq=False)
class Solution:
    """The result of a solve. Do not modify it (a frozen class would take six times as long to create).

    q is the best configuration found, for every status.

    q: (n,) [rad or m]. position_error [m] and direction_error [rad] are those of FK at q;
    direction_error is 0 for a position-only goal, and of a goal with a cone the angle to its axis. reason is
    None when SOLVED. self_motion: q is one part of a self-motion (of solve_all: the configuration nearest to
    the seed). other_branch: a configuration on another branch where IkSolver.track can continue, None if the
    branch does not end.
    lateral_error [rad]: angle between the tool's lateral axis and the goal's, None if the goal has none.
    """

    status: Status
    q: Array
    position_error: float
    direction_error: float
    reason: Reason | None = None
    restarts: int = 0
    self_motion: bool = False
    other_branch: Array | None = None
    lateral_error: float | None = None

    @property
    def solved(self) -> bool:
        """Whether both tolerances were met."""
        return self.status is Status.SOLVED


class Solutions(list[Solution]):
    """The solutions of one goal, best first.

    complete: no other meets the goal exactly, up to rounding; an empty list is complete only if no
    configuration meets it within the tolerances either. False if restarts found them, which can only
    estimate how many are missing, if time ran out, for self-motions, and next to limits, where a goal may be
    met within the tolerances only. Where a joint only turns the tool about its axis, each solution stands for all
    values of that joint, and is marked self_motion.
    """

    __slots__ = ('complete',)

    def __init__(self, solutions: Iterable[Solution], complete: bool) -> None:
        super().__init__(solutions)
        self.complete = complete


@dataclass(frozen=True, eq=False)
class BatchSolution:
    """The results for N goals, each as from IkSolver.solve.

    status (N,) of Status, solved (N,) bool, q (N, n), position_error [m] and direction_error [rad] (N,),
    reasons: why goals were not met, by row.
    """

    status: NDArray[np.object_]
    solved: NDArray[np.bool_]
    q: Array
    position_error: Array
    direction_error: Array
    reasons: Mapping[int, Reason]


@dataclass(frozen=True, eq=False)
class PathSolution:
    """A joint path for N goals.

    q (N, n); solved (N,) bool; largest_move [rad or m] of any joint in any step; breaks: the points k
    that no continuous motion reaches from point k - 1 (a branch ends there).
    """

    q: Array
    solved: NDArray[np.bool_]
    largest_move: float
    breaks: tuple[int, ...]


class Goal:
    """Tool point at position, tool axis along direction, roll free.

    position: (3,) [m], direction: (3,) of any length, made unit, or None (position only), lateral:
    likewise, all in the base link's frame. lateral is the desired direction of the tool's lateral axis; only
    freedom that position and direction leave is used for it. All are read-only. packed: (9,), the three in
    a row, NaN where absent, for the kernels alone (they are compiled for a writable one; do not write to it).
    cone [rad]: the tool axis may lie anywhere within this angle of direction, 0 to pi. tolerance [m]: of the
    position, instead of the solver's position_tolerance; None: that.
    Raises InputError before any work: wrong shape, NaN, inf, a position beyond LARGEST, a
    direction of zero, or a cone or tolerance out of range.
    """

    __slots__ = ('cone', 'packed', 'tolerance')

    def __init__(
        self,
        position: ArrayLike,
        direction: ArrayLike | None = None,
        lateral: ArrayLike | None = None,
        *,
        cone: float = 0.0,
        tolerance: float | None = None,
    ) -> None:
        self.cone, self.tolerance = cone, tolerance
        if type(cone) is not float or cone != 0.0 or tolerance is not None:
            self._check_room(direction)
        if lateral is not None and direction is None:
            raise InputError('lateral needs a direction, got direction=None')
        self.packed = packed = UNASKED.copy()
        is_read = (
            kernels.pack_position(position, LARGEST, packed)
            and (direction is None or kernels.pack_direction(direction, DIRECTION, UNIT_TOLERANCE, packed))
            and (lateral is None or kernels.pack_direction(lateral, LATERAL, UNIT_TOLERANCE, packed))
        )
        if not is_read:  # other kinds of numbers, which are converted, or wrong ones, which are named
            self.packed = np.array(
                _place(position)
                + (ABSENT if direction is None else unit_floats('direction', direction))
                + (ABSENT if lateral is None else unit_floats('lateral', lateral))
            )

    def _check_room(self, direction: ArrayLike | None) -> None:
        """Raise InputError for a cone or a tolerance that is not allowed."""
        if self.tolerance is not None:
            self.tolerance = positive('tolerance', self.tolerance)
        if isinstance(self.cone, bool) or not isinstance(self.cone, numbers.Real) or not 0.0 <= self.cone <= math.pi:
            raise InputError(f'cone must be an angle from 0 to pi [rad], got {safe_repr(self.cone)}')
        self.cone = float(self.cone)
        if self.cone and direction is None:
            raise InputError('cone needs a direction, got direction=None')

    @classmethod
    def unpacked(cls, packed: Array, cone: float = 0.0, tolerance: float | None = None) -> Goal:
        """Return the goal of one row (9,) of pack_goals, bit for bit. Raises InputError for anything else."""
        if not (isinstance(packed, np.ndarray) and packed.dtype == np.float64 and packed.shape == (9,)):
            raise InputError(f'packed must be an array of 9 floats, got {safe_repr(packed)}')
        goal = cls.__new__(cls)
        goal.packed, goal.cone, goal.tolerance = packed.copy(), cone, tolerance
        if type(cone) is not float or cone != 0.0 or tolerance is not None:
            goal._check_room(goal.direction)
        return goal

    @property
    def position(self) -> Array:
        """Desired position of the tool point, (3,) [m]."""
        return read_only(self.packed[:3])

    @property
    def direction(self) -> Array | None:
        """Desired direction of the tool axis, (3,) unit, or None."""
        return None if math.isnan(self.packed[3]) else read_only(self.packed[3:6])

    @property
    def lateral(self) -> Array | None:
        """Desired direction of the tool's lateral axis, (3,) unit, or None."""
        return None if math.isnan(self.packed[6]) else read_only(self.packed[6:])

    def __reduce__(self) -> tuple[Any, ...]:
        return Goal.unpacked, (self.packed, self.cone, self.tolerance)  # numpy forgets that an array is read-only

    def __repr__(self) -> str:
        parts = [f'{part}={getattr(self, part)}' for part in ('position', 'direction', 'lateral')]
        parts += [f'{part}={value}' for part in ('cone', 'tolerance') if (value := getattr(self, part))]
        return f'Goal({", ".join(parts)})'


ABSENT = (math.nan, math.nan, math.nan)
UNASKED = np.array(3 * ABSENT)
NO_AXES = np.empty((0, 3))


def _place(value: Any) -> tuple[float, float, float]:
    x, y, z = three_floats('position', value)
    if not (abs(x) <= LARGEST and abs(y) <= LARGEST and abs(z) <= LARGEST):
        raise InputError(f'position must be within {LARGEST:g} m of the base link, got {[x, y, z]}')
    return x, y, z


def read_only(view: Array) -> Array:
    view.flags.writeable = False
    return view


def checked_goal(goal: Goal) -> Goal:
    """Return goal. Raises InputError for anything else in its place."""
    if not isinstance(goal, Goal):
        raise InputError(f'goal must be a Goal, got {safe_repr(goal)}')
    return goal


def pack_goals(positions: ArrayLike, directions: ArrayLike | None) -> Array:
    """Check positions (N, 3) [m] and directions; return goals (N, 9) for the kernels.

    directions: (N, 3) or one (3,) for all, of any length, or None. Raises InputError for wrong shapes, numbers not
    finite or beyond LARGEST, or a direction of zero.
    """
    packed = _packed_arrays(positions, directions)
    if packed is not None:
        return packed
    points = _rows3('positions', positions)
    beyond = (np.abs(points) > LARGEST).nonzero()[0]
    if len(beyond):
        raise InputError(
            f'positions must be within {LARGEST:g} m of the base link, row {beyond[0]} is {points[beyond[0]].tolist()}'
        )
    goals = np.full((len(points), 9), np.nan)
    goals[:, :3] = points
    if directions is not None:
        if np.shape(directions) == (3,):  # the same for all
            axes = np.tile(unit_floats('directions', directions), (len(points), 1))
        else:
            axes = _rows3('directions', directions)
        if len(axes) != len(points):
            raise InputError(f'positions and directions must have the same length, got {len(points)} and {len(axes)}')
        lengths = _lengths(axes)
        odd = (~(np.abs(lengths - 1.0) <= UNIT_TOLERANCE)).nonzero()[0]
        if len(odd):
            largest = np.abs(axes[odd]).max(axis=1)
            if not largest.all():
                raise InputError(f'directions must not be zero, row {odd[largest == 0.0][0]} is')
            axes = axes.copy()
            axes[odd] /= largest[:, None]  # the squares might overflow or vanish
            lengths = _lengths(axes)
        goals[:, 3:6] = axes / lengths[:, None]
    return goals


def _packed_arrays(positions: ArrayLike, directions: ArrayLike | None) -> Array | None:
    """Return goals (N, 9) in one pass over two arrays with nothing odd; None for pack_goals to convert or to name."""
    if not (kernels.ready() and _is_table(positions)):
        return None
    if directions is not None and not (_is_table(directions) and len(directions) == len(positions)):
        return None
    goals = np.empty((len(positions), 9))
    axes = NO_AXES if directions is None else directions
    return goals if kernels.pack_rows(positions, axes, LARGEST, UNIT_TOLERANCE, goals) else None


def _is_table(value: ArrayLike | None) -> TypeGuard[Array]:
    """Whether value is an array (N, 3) as kernels read it."""
    return (
        type(value) is np.ndarray
        and value.dtype is FLOATS
        and value.shape[1:] == (3,)
        and value.flags.c_contiguous
        and value.flags.aligned
    )


def _lengths(axes: Array) -> Array:
    x, y, z = axes.T
    with np.errstate(over='ignore'):
        lengths: Array = np.sqrt(x * x + y * y + z * z)  # as in unit_floats, so that a batch has the same bits
    return lengths


def _rows3(name: str, value: ArrayLike) -> Array:
    try:
        rows = real_array(value)
    except OverflowError:
        raise InputError(f'{name} must be finite, got a whole number beyond 1.8e308') from None
    except (TypeError, ValueError):
        raise InputError(f'{name} must be numbers of shape (N, 3), got {safe_repr(value)}') from None
    if rows.ndim != 2 or rows.shape[1] != 3:
        raise InputError(f'{name} must have shape (N, 3), got {rows.shape}')
    if not np.isfinite(rows).all():
        wrong = int(np.argmin(np.isfinite(rows).all(axis=1)))
        raise InputError(f'{name} must be finite, row {wrong} is {rows[wrong].tolist()}')
    return rows


# IkSolver.solve: of a goal, a seed (n,) and a time budget [s].
Solve: TypeAlias = Callable[[Goal, Array, float], Solution]
