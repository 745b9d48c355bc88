# SPDX-License-Identifier: Apache-2.0
"""GoalColumns: which columns of a table hold the goals, and their rows as arrays."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ik_node.checks import UNIT_TOLERANCE, Array
from ik_node.errors import LARGEST, InputError, join_names, quoted
from ik_node.kernels import arrays
from ik_node.model.arm import Arm
from ik_node.model.plausibility import REACHES
from ik_node.model.rotations import rotations

QUATERNION_TOLERANCE = 1e-3  # by which the length of a quaternion may differ from 1
MAX_ROTATION = 1e6  # [rad] in a component of a rotation vector
MAX_ANGLE = 2.0 * math.pi + 1e-6  # [rad] in roll, pitch and yaw: beyond it they are probably degrees
ORDERS = ('xyzw', 'wxyz')
ORIENTATIONS = ('direction', 'quaternion', 'rotvec', 'rpy')
WIDTHS = {'position': 3, 'direction': 3, 'quaternion': 4, 'rotvec': 3, 'rpy': 3, 'lateral': 3}

# Units that names of columns may end with, such as "x [mm]" or "roll_deg"; some only in brackets.
LENGTHS = {'m': 1.0, 'mm': 1e-3, 'cm': 1e-2, 'um': 1e-6, 'inch': 0.0254}
DEGREE = math.pi / 180.0
ANGLES = {'rad': 1.0, 'deg': DEGREE, 'degree': DEGREE, 'degrees': DEGREE}
MORE_LENGTHS = {'in': 0.0254, 'metre': 1.0, 'metres': 1.0, 'meter': 1.0, 'meters': 1.0, '\u00b5m': 1e-6}
UNITS = LENGTHS | ANGLES | MORE_LENGTHS | {'\u00b0': DEGREE, 'radian': 1.0, 'radians': 1.0}
BRACKETED = re.compile(r'\s*[\[(]\s*([^\[\]()]*?)\s*[\])]\s*$')
SUFFIXED = re.compile(rf'[\s_.]({"|".join(LENGTHS | ANGLES)})$')

# Columns that are found without being named: one of lists, or one of numbers for each component.
POSITION = (('position',), ('x', 'y', 'z'))
DIRECTION = (('direction',), ('dx', 'dy', 'dz'))
LATERAL = (('lateral',), ('lx', 'ly', 'lz'))
FRAME = 'frame'

# What columns of orientations are usually called: the option for them, their last parts, and how many of
# these must be there. Controllers of KUKA call yaw, pitch and roll A, B and C, those of Fanuc W, P and R; CAM
# programs call the tool axis I, J and K.
USUAL_PARTS = (
    ('quaternion', ('qx', 'qy', 'qz', 'qw'), 2),
    ('quaternion', ('ox', 'oy', 'oz', 'ow'), 4),
    ('rpy', ('roll', 'pitch', 'yaw'), 2),
    ('rpy', ('c', 'b', 'a'), 3),
    ('rpy', ('w', 'p', 'r'), 3),
    ('rpy', ('phi', 'theta', 'psi'), 2),
    ('rpy', ('alpha', 'beta', 'gamma'), 2),
    ('rotvec', ('rx', 'ry', 'rz'), 2),
    ('rotvec', ('wx', 'wy', 'wz'), 2),
    ('direction', ('nx', 'ny', 'nz'), 2),
    ('direction', ('dx', 'dy', 'dz'), 2),
    ('direction', ('i', 'j', 'k'), 3),
)
USUAL_WHOLES = re.compile(
    r'(?:^|_)(?:(quat\w*?)|(rpy|euler(?:_?angles?)?)|(rot_?vec\w*?|axis_?angle|angle_?axis)|'
    r'((?:surface_|tool_)?(?:normal|dir|direction|approach|axis|vector))|'
    r'orient(?:ation)?|ori|rot(?:ation)?(?:_?6d)?)_?(?:[wxyz]|\d+)?$'
)


@dataclass(frozen=True)
class GoalColumns:
    """Names of columns: of numbers, one per component, or one of lists.

    position [m]: of the tool point; with an orientation, of the tip link's frame, as in the node's goal_pose.
    direction: of the tool axis, any length. Orientations of the tip link's frame: quaternion, its components
    in the order `order`; rotvec, a rotation vector; rpy, the angles of rotations about the fixed axes x, y
    and z, in this order, as in URDF. Both are in rad, with `degrees` in degrees. lateral: of the tool's
    lateral axis, for the roll. seed: joints [rad or m]. frame: names of links; a goal in another frame than
    base_link is invalid, and a number counts frames. Empty: there is none.

    A name that ends with a unit, such as "x [mm]" or "roll_deg", has its numbers in that unit.
    """

    position: Sequence[str]
    direction: Sequence[str] = ()
    quaternion: Sequence[str] = ()
    order: str = ''
    rotvec: Sequence[str] = ()
    rpy: Sequence[str] = ()
    degrees: bool = False
    lateral: Sequence[str] = ()
    seed: Sequence[str] = ()
    frame: str = ''

    @property
    def poses(self) -> list[str]:
        """Those that hold poses."""
        parts = (getattr(self, key) for key in WIDTHS)
        return list(dict.fromkeys(name for part in parts for name in part))

    @property
    def names(self) -> list[str]:
        """All of them."""
        return list(dict.fromkeys([*self.poses, *self.seed, *[self.frame] * bool(self.frame)]))

    @property
    def directed(self) -> bool:
        """Whether the goals have directions."""
        return any(getattr(self, key) for key in ORIENTATIONS)

    def check_for(self, arm: Arm) -> None:
        """Raise InputError if the seed does not have a number for each joint of an arm."""
        if self.seed and len(self.seed) not in (1, arm.n):
            raise InputError(f'--seed takes {arm.n} columns, or one with lists of {arm.n} numbers')

    @classmethod
    def found(cls, names: Sequence[str], given: Mapping[str, object]) -> GoalColumns:
        """Return the given ones, and those of usual names among names. Raises InputError."""
        chosen: dict[str, Any] = {key: value for key, value in given.items() if value}
        for key, width in WIDTHS.items():
            if len(chosen.get(key, ())) not in (0, 1, width):
                raise InputError(f'--{key} takes {width} columns, or one with lists of {width} numbers')
        if 'quaternion' in chosen:
            chosen['order'] = _order(chosen['quaternion'], chosen.get('order'))
        if 'position' not in chosen:
            taken = [name for key in WIDTHS for name in chosen.get(key, ())]
            chosen['position'] = usual_position([name for name in names if name not in taken])
            if not chosen['position']:
                raise InputError(
                    f'no column of positions: expected x, y and z, or position with lists of three numbers; '
                    f'the columns are {join_names(names) or "none"}. Name them with --position'
                )
        orientations = [key for key in ORIENTATIONS if key in chosen]
        if len(orientations) > 1:
            raise InputError(f'--{orientations[0]} and --{orientations[1]} exclude each other')
        if not orientations:
            chosen['direction'] = _usual(names, DIRECTION)
        if chosen.get('degrees') and not chosen.keys() & {'rpy', 'rotvec'}:
            raise InputError('--degrees is for the angles of --rpy or --rotvec')
        angles = [name for name in chosen.get('rotvec', ()) if _part_of(name, ('roll', 'pitch', 'yaw'))]
        if angles:
            raise InputError(
                f'--rotvec: column {quoted(angles[0])} is named as an angle, and a rotation vector has none: '
                'give roll, pitch and yaw to --rpy'
            )
        if chosen.get('direction'):
            chosen.setdefault('lateral', _usual(names, LATERAL))
        elif 'lateral' in chosen:
            raise InputError(
                '--lateral needs directions: an orientation includes the roll, and without a direction '
                'every roll is accepted'
            )
        if 'frame' not in chosen and FRAME in names:
            chosen['frame'] = FRAME
        columns = cls(**chosen)
        if absent := [name for name in columns.names if name not in names]:
            raise InputError(f'no column {quoted(absent[0])}; the columns are {join_names(names)}')
        if twice := [name for name in columns.names if names.count(name) > 1]:
            raise InputError(f'{names.count(twice[0])} columns have the name {quoted(twice[0])}')
        for key, allowed in (('position', LENGTHS | MORE_LENGTHS), ('rotvec', ANGLES), ('rpy', ANGLES)):
            for name in getattr(columns, key):
                unit = bare_name(name)[1]
                if unit and UNITS[unit] not in allowed.values():
                    raise InputError(f'--{key}: column {quoted(name)} is in {unit}')
        return columns

    def unused_orientations(self, names: Sequence[str], joints: Sequence[str] = ()) -> Iterator[str]:
        """Yield a sentence for each group of names that look like an orientation and are not used.

        joints: names that are not meant, such as wrist_roll.
        """
        used, turning = set(self.names), {_key(name) for name in joints}
        keys = {name: _key(name) for name in names if name not in used and _key(name) not in turning}
        beside = {_key(name).rpartition('_')[0] for name in self.position}
        groups: dict[tuple[str, ...], str] = {}
        for option, parts, min_parts in USUAL_PARTS:
            found: dict[str, dict[str, str]] = {}  # names by part, by what comes before it
            for name, key in keys.items():
                if part := _part_of(key, parts):
                    before = key[: -len(part)].rstrip('_') if key.endswith(part) else key[: -len(part) - 1]
                    found.setdefault(before.rstrip('_'), {})[part] = name
            for before, known in found.items():
                if len(known) >= min_parts or (parts[0] == 'roll' and before in beside):
                    groups[tuple(known[part] for part in parts if part in known)] = option
        for name, key in keys.items():
            if (match := USUAL_WHOLES.search(key)) and not any(name in group for group in groups):
                kinds = zip(('quaternion', 'rpy', 'rotvec', 'direction'), match.groups(), strict=True)
                option = next((kind for kind, part in kinds if part), '')
                siblings = [one for one, other in keys.items() if other[:-1] == key[:-1]]
                group = tuple(siblings if key[-1] in 'wxyz0123456789' else (name,))
                groups[group] = option or {3: 'rotvec', 4: 'quaternion'}.get(len(group), '')
        for group, option in groups.items():
            yield _unused(group, option, self.directed)


def bare_name(name: str) -> tuple[str, str]:
    """Return the name of a column without its unit, and the unit, '' if it has none."""
    if (match := BRACKETED.search(name)) and match[1].lower() in UNITS:
        return name[: match.start()].strip(), match[1].lower()
    if match := SUFFIXED.search(name.lower()):
        return name[: match.start()].strip(), match[1]
    return name.strip(), ''


def _key(name: str) -> str:
    """Return the name of a column without its unit, in lower case, its parts separated by _."""
    return re.sub(r'[^a-z0-9]+', '_', bare_name(name)[0].lower()).strip('_')


def _part_of(name: str, parts: Sequence[str]) -> str:
    """Return the one of parts that a name ends with, '' if there is none; q_x is qx."""
    key = _key(name)
    joined = re.sub(r'([a-z])_([wxyz])$', r'\1\2', key)
    return next((part for part in parts for one in (key, joined) if re.search(rf'(?:^|_){part}$', one)), '')


def _order(quaternion: Any, given: object) -> str:
    """Return the order of the components of a quaternion, as given or as its columns are named."""
    named = ''.join(_key(name)[-1:] for name in quaternion)
    if given in ORDERS and (named not in ORDERS or named == given):
        return str(given)
    if named in ORDERS and not given:
        return named
    if named in ORDERS and given in ORDERS:
        raise InputError(f'--order {given}, but the columns are named in the order {named}')
    raise InputError(f'a quaternion needs its order: --order {" or ".join(ORDERS)}')


def _unused(names: Sequence[str], option: str, directed: bool) -> str:
    """Return a sentence on columns that look like an orientation, with the option that uses them."""
    text = ' '.join(f"'{name}'" if re.search(r'[^\w.-]', name) else name for name in names)
    remedy = {
        'quaternion': f'--quaternion {text}' + (f' --order {" or ".join(ORDERS)}' if len(names) != 4 else ''),
        'rpy': f'--rpy {text}, for rotations about the fixed axes x, y, z in rad; add --degrees for degrees',
        'rotvec': f'--rotvec {text} for a rotation vector, --rpy {text} for angles about x, y, z',
        'direction': f'--direction {text} for directions of the tool axis',
        '': 'name them with --direction, --quaternion, --rotvec or --rpy',
    }[option]
    if option and len(names) < WIDTHS[option] and not USUAL_WHOLES.search(_key(names[0])):
        remedy = f'--{option} takes {WIDTHS[option]} columns: add the others'
    are = 'columns' if len(names) > 1 else 'column'
    free = '' if directed else ', and any direction of the tool is accepted'
    return f'{are} {join_names(names)}: an orientation by name, but not used{free}. To use it: {remedy}'


def usual_position(names: Sequence[str]) -> tuple[str, ...]:
    """Return the columns of positions that are found without being named."""
    return _usual(names, POSITION)


def _usual(names: Sequence[str], choices: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """Return the names of the first of choices that are all there, as they are or as X, "x [mm]" or x_mm."""
    bare: dict[str, list[str]] = {}
    for name in names:
        bare.setdefault(bare_name(name)[0].lower(), []).append(name)
    for choice in choices:
        if set(choice) <= set(names):
            return choice
        if all(len(bare.get(part, ())) == 1 for part in choice):
            return tuple(bare[part][0] for part in choice)
    return ()


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


def read_rows(batch: pa.RecordBatch, columns: GoalColumns, arm: Arm, anywhere: bool = False) -> GoalRows:
    """Return the goals of batch. Raises InputError for columns that cannot hold numbers.

    anywhere: their frame may be anywhere, so that they need to be near each other only.
    """
    columns.check_for(arm)
    rows = _Rows(batch)
    positions = rows.numbers(columns.position, 3)
    directions = laterals = None
    if columns.quaternion or columns.rotvec or columns.rpy:
        R = (_of_quaternions if columns.quaternion else _of_rotvecs if columns.rotvec else _of_rpy)(rows, columns)
        positions = positions + R @ arm.tool_point
        directions, laterals = R @ arm.tool_axis, R @ arm.tool_lateral
    elif columns.direction:
        directions = rows.units(columns.direction, 'direction')
        laterals = rows.units(columns.lateral, 'lateral') if columns.lateral else None
    rows.limit(positions, LARGEST, f'the position is beyond {LARGEST:g} m')
    seeds = rows.numbers(columns.seed, arm.n) if columns.seed else None
    if seeds is not None:
        rows.limit(seeds, LARGEST, f'the seed is beyond {LARGEST:g}')
    _reject_other_units(rows, positions, seeds, arm, anywhere)
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


def _reject_other_units(rows: _Rows, positions: Array, seeds: Array | None, arm: Arm, anywhere: bool) -> None:
    """Reject positions (N, 3) in millimetres and seeds (N, n) in degrees, by their size."""
    first = np.asarray(arm.joints[0, arrays.OFFSET])
    right = np.setdiff1d(np.arange(len(positions)), list(rows.wrong))  # others have no numbers
    shift = np.median(positions[right], axis=0) - first if anywhere and len(right) else np.zeros(3)
    far = np.linalg.norm(positions[right] - shift - first, axis=1) > REACHES * arm.reach
    for row in right[far].tolist():
        if doubt := arm.too_far(positions[row] - shift):
            rows.wrong.setdefault(row, f'the goal is {doubt}')
    if seeds is None:
        return
    outside = np.any((seeds[right] < arm.lower) | (seeds[right] > arm.upper), axis=1)
    for row in right[outside].tolist():
        if doubt := arm.doubt(seeds[row]):
            rows.wrong.setdefault(row, f'the seed has {doubt}')


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

    def limit(self, values: Array, largest: float, sentence: str) -> None:
        """Note where a number of values (N, k) is beyond most."""
        if values.max(initial=0.0) > largest or values.min(initial=0.0) < -largest:
            self.reject((np.abs(values) > largest).any(axis=1), sentence)

    def numbers(self, names: Sequence[str], width: int) -> Array:
        """Return columns as an array (N, width), zero in rows where one is not a finite number."""
        if len(names) == 1 and width > 1:
            values = self._lists(names[0], width)
        else:
            values = np.column_stack([numbers(self._batch, name) for name in names])
        units = [UNITS.get(bare_name(name)[1], 1.0) for name in names]
        if set(units) != {1.0}:
            values = values * units
        finite = np.isfinite(values)
        if finite.all():
            return values
        whole: NDArray[np.bool_] = np.all(finite, axis=1)
        for row in (~whole).nonzero()[0].tolist():
            name = names[0] if len(names) == 1 else names[int((~finite[row]).argmax())]
            given = self._batch.column(name)[row].as_py()
            expected = 'numbers' if len(names) < width else 'a finite number'
            what = 'missing' if given is None else f'{given!r}, not {expected}'
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
    values = _angles(rows, columns.rotvec, columns.degrees)
    # Of so many turns an angle has no digits left, and the square of a larger number may overflow.
    wrong = np.abs(values).max(axis=1, initial=0.0) > MAX_ROTATION
    rows.reject(wrong, f'the rotation vector is beyond {MAX_ROTATION:g} rad')
    values = np.where(wrong[:, None], 0.0, values)
    angle = np.sqrt((values * values).sum(axis=1))
    return rotations(values / np.where(angle == 0.0, 1.0, angle)[:, None], angle)


def _of_rpy(rows: _Rows, columns: GoalColumns) -> Array:
    """Return the rotation matrices (N, 3, 3) of roll, pitch and yaw: Rz(yaw) Ry(pitch) Rx(roll)."""
    values = _angles(rows, columns.rpy, columns.degrees)
    wrong = np.abs(values).max(axis=1, initial=0.0) > MAX_ANGLE
    rows.reject(wrong, 'roll, pitch or yaw is beyond a turn')
    roll, pitch, yaw = np.where(wrong[:, None], 0.0, values).T
    x, y, z = np.eye(3)
    return rotations(z, yaw) @ rotations(y, pitch) @ rotations(x, roll)


def doubt_of_angles(batch: pa.RecordBatch, columns: GoalColumns) -> str:
    """Return a sentence if the angles of some rows look like radians and are to be degrees, '' if not.

    Raises InputError for angles in rad that can only be degrees.
    """
    names = columns.rpy or columns.rotvec
    if not names or any(bare_name(name)[1] for name in names):
        return ''
    largest = float(np.abs(_Rows(batch).numbers(names, 3)).max(initial=0.0))
    option = f'--{"rpy" if columns.rpy else "rotvec"} {" ".join(names)}'
    if columns.degrees and 0.0 < largest <= MAX_ANGLE / 2.0:
        return f'{option}: no angle exceeds {largest:.3g} degrees: if they are in rad, leave out --degrees'
    if not columns.degrees and largest > MAX_ANGLE * (1.0 if columns.rpy else 2.0):
        raise InputError(
            f'{option} are read in rad, and {largest:.4g} is more than a turn: if they are in degrees, add --degrees'
        )
    return ''


def _angles(rows: _Rows, names: Sequence[str], degrees: bool) -> Array:
    """Return three angles [rad] (N, 3)."""
    values = rows.numbers(names, 3)
    stated = [bool(bare_name(name)[1]) for name in names]
    return values * np.where(stated, 1.0, DEGREE) if degrees else values
