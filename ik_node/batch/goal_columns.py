# SPDX-License-Identifier: Apache-2.0
"""GoalColumns: which columns of a table hold the goals, and their rows as arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ik_node.checks import UNIT_TOLERANCE, Array
from ik_node.errors import LARGEST, InputError, join_names, quoted
from ik_node.model.arm import Arm
from ik_node.model.rotations import rotations

QUATERNION_TOLERANCE = 1e-3  # by which the length of a quaternion may differ from 1
MOST_TURNED = 1e6  # [rad] in a component of a rotation vector
ORDERS = ('xyzw', 'wxyz')
# Columns that are found without being named: one of lists, or one of numbers for each component.
POSITION = (('position',), ('x', 'y', 'z'))
DIRECTION = (('direction',), ('dx', 'dy', 'dz'))
LATERAL = (('lateral',), ('lx', 'ly', 'lz'))
FRAME = 'frame'


@dataclass(frozen=True)
class GoalColumns:
    """Names of columns: of numbers, one per component, or one of lists.

    position [m]: of the tool point; with an orientation, of the tip link's frame, as in the node's goal_pose.
    direction: of the tool axis, any length. Orientations of the tip link's frame: quaternion, its components
    in the order `order`, or rotvec, a rotation vector [rad]. lateral: of the tool's lateral axis, for the
    roll. seed: joints [rad or m]. frame: names of links; a goal in another frame than base_link is invalid,
    and a number counts frames. Empty: there is none.
    """

    position: Sequence[str]
    direction: Sequence[str] = ()
    quaternion: Sequence[str] = ()
    order: str = ''
    rotvec: Sequence[str] = ()
    lateral: Sequence[str] = ()
    seed: Sequence[str] = ()
    frame: str = ''

    @property
    def poses(self) -> list[str]:
        """Those that hold poses."""
        parts = (self.position, self.direction, self.quaternion, self.rotvec, self.lateral)
        return list(dict.fromkeys(name for part in parts for name in part))

    @property
    def names(self) -> list[str]:
        """All of them."""
        return list(dict.fromkeys([*self.poses, *self.seed, *[self.frame] * bool(self.frame)]))

    def check_for(self, arm: Arm) -> None:
        """Raise InputError if the seed does not have a number for each joint of an arm."""
        if self.seed and len(self.seed) not in (1, arm.n):
            raise InputError(f'--seed takes {arm.n} columns, or one with lists of {arm.n} numbers')

    @classmethod
    def found(cls, names: Sequence[str], given: Mapping[str, object]) -> GoalColumns:
        """Return the given ones, and those of usual names among names. Raises InputError."""
        chosen = {key: value for key, value in given.items() if value}
        if 'position' not in chosen:
            chosen['position'] = _usual(names, POSITION)
            if not chosen['position']:
                raise InputError(
                    f'no column of positions: expected x, y and z, or position with lists of three numbers; '
                    f'the columns are {join_names(names) or "none"}. Name them with --position'
                )
        if 'quaternion' in chosen and chosen.get('order') not in ORDERS:
            raise InputError(f'a quaternion needs its order: --order {" or ".join(ORDERS)}')
        if len(chosen.keys() & {'direction', 'quaternion', 'rotvec'}) > 1:
            raise InputError('--direction, --quaternion and --rotvec exclude each other')
        if not chosen.keys() & {'direction', 'quaternion', 'rotvec'}:
            chosen['direction'] = _usual(names, DIRECTION)
        if chosen.get('direction'):
            chosen.setdefault('lateral', _usual(names, LATERAL))
        elif 'lateral' in chosen:
            raise InputError(
                '--lateral needs directions: an orientation includes the roll, and without a direction '
                'every roll is accepted'
            )
        if 'frame' not in chosen and FRAME in names:
            chosen['frame'] = FRAME
        columns = cls(**chosen)  # type: ignore[arg-type]
        if absent := [name for name in columns.names if name not in names]:
            raise InputError(f'no column {quoted(absent[0])}; the columns are {join_names(names)}')
        if twice := [name for name in columns.names if names.count(name) > 1]:
            raise InputError(f'{names.count(twice[0])} columns have the name {quoted(twice[0])}')
        widths = {'position': 3, 'direction': 3, 'quaternion': 4, 'rotvec': 3, 'lateral': 3}
        for key, width in widths.items():
            if len(getattr(columns, key)) not in (0, 1, width):
                raise InputError(f'--{key} takes {width} columns, or one with lists of {width} numbers')
        return columns


def _usual(names: Sequence[str], choices: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    return next((choice for choice in choices if set(choice) <= set(names)), ())


@dataclass(frozen=True)
class GoalRows:
    """Goals as arrays.

    positions (N, 3) [m], directions and laterals (N, 3) unit or None, seeds (N, n) [rad or m] or None.
    wrong: sentences on rows that hold no goal, by row; their numbers mean nothing.
    """

    positions: Array
    directions: Array | None
    laterals: Array | None
    seeds: Array | None
    wrong: dict[int, str]


def read_rows(batch: pa.RecordBatch, columns: GoalColumns, arm: Arm) -> GoalRows:
    """Return the goals of batch. Raises InputError for columns that cannot hold numbers."""
    columns.check_for(arm)
    rows = _Rows(batch)
    positions = rows.numbers(columns.position, 3)
    directions = laterals = None
    if columns.quaternion or columns.rotvec:
        R = _of_quaternions(rows, columns) if columns.quaternion else _of_rotvecs(rows, columns)
        positions = positions + R @ arm.tool_point
        directions, laterals = R @ arm.tool_axis, R @ arm.tool_lateral
    elif columns.direction:
        directions = rows.units(columns.direction, 'direction')
        laterals = rows.units(columns.lateral, 'lateral') if columns.lateral else None
    rows.limit(positions, LARGEST, f'the position is beyond {LARGEST:g} m')
    seeds = rows.numbers(columns.seed, arm.n) if columns.seed else None
    if seeds is not None:
        rows.limit(seeds, LARGEST, f'the seed is beyond {LARGEST:g}')
    if columns.frame:
        for row, frame in enumerate(frames_of(batch, columns.frame)):
            if frame not in ('', arm.base_link):
                rows.wrong.setdefault(row, f'frame {quoted(frame)} is not base_link {quoted(arm.base_link)}')
    if rows.wrong:  # a goal that is solved at once
        wrong = list(rows.wrong)
        place, axis = arm.fk(arm.middle)
        for values, harmless in ((positions, place), (directions, axis), (seeds, arm.middle)):
            if values is not None:
                values[wrong] = harmless
    return GoalRows(positions, directions, laterals, seeds, rows.wrong)


def frames_of(batch: pa.RecordBatch, name: str) -> list[str]:
    """Return the names of links in a column, '' in rows with none or with a number, which counts frames."""
    found = batch.column(name).to_pylist()
    return [value if isinstance(value, str) and not _is_number(value) else '' for value in found]


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


class _Rows:
    """Columns as arrays; wrong: the first thing that is wrong with a row, by row."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        self._batch = batch
        self.wrong: dict[int, str] = {}

    def reject(self, rows: Any, sentence: str) -> None:
        """Note what is wrong with the rows of a mask (N,)."""
        for row in rows.nonzero()[0].tolist():
            self.wrong.setdefault(row, sentence)

    def limit(self, values: Array, most: float, sentence: str) -> None:
        """Note where a number of values (N, k) is beyond most."""
        if values.max(initial=0.0) > most or values.min(initial=0.0) < -most:
            self.reject((np.abs(values) > most).any(axis=1), sentence)

    def numbers(self, names: Sequence[str], width: int) -> Array:
        """Return columns as an array (N, width), zero in rows where one is not a finite number."""
        if len(names) == 1 and width > 1:
            values = self._lists(names[0], width)
        else:
            values = np.column_stack([numbers(self._batch, name) for name in names])
        finite = np.isfinite(values)
        if finite.all():
            return values
        whole: NDArray[np.bool_] = np.all(finite, axis=1)
        for row in (~whole).nonzero()[0].tolist():
            name = names[0] if len(names) == 1 else names[int((~finite[row]).argmax())]
            given = self._batch.column(name)[row].as_py()
            wanted = 'numbers' if len(names) < width else 'a finite number'
            what = 'missing' if given is None else f'{given!r}, not {wanted}'
            self.wrong.setdefault(row, f'{name} is {what}')
        return np.where(whole[:, None], values, 0.0)

    def units(self, names: Sequence[str], what: str) -> Array:
        """Return directions of any length as unit vectors (N, 3); those of unit length stay as they are."""
        values = self.numbers(names, 3)
        with np.errstate(over='ignore'):
            unit = np.abs(np.sqrt(np.einsum('ij,ij->i', values, values)) - 1.0) <= UNIT_TOLERANCE
        if unit.all():
            return values
        largest: Array = np.abs(values).max(axis=1, initial=0.0)
        zero: NDArray[np.bool_] = largest == 0.0
        self.reject(zero, f'the {what} is zero')
        scaled = np.where(zero[:, None], (0.0, 0.0, 1.0), values) / np.where(zero, 1.0, largest)[:, None]
        units = scaled / np.sqrt((scaled * scaled).sum(axis=1))[:, None]
        return np.where(unit[:, None], values, units)

    def _lists(self, name: str, width: int) -> Array:
        column = self._batch.column(name)
        lists = (pa.ListType, pa.LargeListType, pa.FixedSizeListType)
        if not isinstance(column.type, lists):
            raise InputError(f'column {quoted(name)} must hold lists of {width} numbers, got {column.type}')
        lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False)
        if (lengths == width).all() and not column.null_count:
            try:
                flat = pc.cast(column.flatten(), pa.float64(), safe=False)
                return np.array(_array(flat)).reshape(-1, width)  # writable
            except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
                pass
        values = np.full((len(column), width), np.nan)
        for row, given in enumerate(column.to_pylist()):
            if given is not None and len(given) == width:
                values[row] = [_float(value) for value in given]
        return values


def numbers(batch: pa.RecordBatch, name: str) -> Array:
    """Return a column (N,), NaN where it holds no number. Raises InputError for one that cannot hold any."""
    column = batch.column(name)
    try:
        return _array(pc.cast(column, pa.float64(), safe=False))
    except pa.ArrowNotImplementedError:
        raise InputError(f'column {quoted(name)} must hold numbers, got {column.type}') from None
    except pa.ArrowInvalid:  # text that is not a number
        return np.array([_float(value) for value in column.to_pylist()])


def _array(column: pa.Array) -> Array:
    values: Array = column.to_numpy(zero_copy_only=False)
    return values


def _float(value: object) -> float:
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return float('nan')


def _of_quaternions(rows: _Rows, columns: GoalColumns) -> Array:
    """Return the rotation matrices (N, 3, 3) of the quaternions."""
    values = rows.numbers(columns.quaternion, 4)
    if columns.order == 'xyzw':
        values = values[:, [3, 0, 1, 2]]
    with np.errstate(over='ignore'):
        length = np.sqrt((values * values).sum(axis=1))
    wrong = ~(np.abs(length - 1.0) <= QUATERNION_TOLERANCE)
    rows.reject(wrong, 'the quaternion is not of unit length')
    values = np.where(wrong[:, None], (1.0, 0.0, 0.0, 0.0), values)
    w, x, y, z = (values / np.where(wrong, 1.0, length)[:, None]).T
    return np.stack(
        [
            np.stack([1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)], axis=-1),
            np.stack([2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)], axis=-1),
            np.stack([2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)], axis=-1),
        ],
        axis=1,
    )


def _of_rotvecs(rows: _Rows, columns: GoalColumns) -> Array:
    """Return the rotation matrices (N, 3, 3) of the rotation vectors."""
    values = rows.numbers(columns.rotvec, 3)
    # Of so many turns an angle has no digits left, and the square of a larger number may overflow.
    wrong = np.abs(values).max(axis=1, initial=0.0) > MOST_TURNED
    rows.reject(wrong, f'the rotation vector is beyond {MOST_TURNED:g} rad')
    values = np.where(wrong[:, None], 0.0, values)
    angle = np.sqrt((values * values).sum(axis=1))
    return rotations(values / np.where(angle == 0.0, 1.0, angle)[:, None], angle)
