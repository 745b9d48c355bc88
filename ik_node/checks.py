# SPDX-License-Identifier: Apache-2.0
"""Checks of single arguments, numbers and vectors of three, with uniform error messages."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping, Sequence, Set
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ik_node.errors import LARGEST, InputError, safe_repr

Array = NDArray[np.float64]

FLOATS = np.dtype(np.float64)
# Iterable, but text, without an order, or with entries that do not count.
NOT_VECTORS = (str, bytes, bytearray, Set, Mapping, np.ma.MaskedArray)
# Names of axes, for parameters and command lines.
AXES: dict[str, tuple[float, float, float]] = {
    'x': (1.0, 0.0, 0.0),
    '-x': (-1.0, 0.0, 0.0),
    'y': (0.0, 1.0, 0.0),
    '-y': (0.0, -1.0, 0.0),
    'z': (0.0, 0.0, 1.0),
    '-z': (0.0, 0.0, -1.0),
}
UNIT_TOLERANCE = 1e-3  # a quaternion may deviate from unit length by this much and is then normalised


def positive(name: str, value: Any, *, finite: bool = True) -> float:
    """Check that value is a number greater than 0, by default finite. Raises InputError."""
    is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    try:
        number = float(value) if is_number else math.nan
    except OverflowError:
        number = math.inf if value > 0 else -math.inf
    if not number > 0.0 or (finite and number == math.inf):
        kind = 'finite number' if finite else 'number'
        raise InputError(f'{name} must be a {kind} greater than 0, got {safe_repr(value)}')
    return number


def yaml_number(value: Any) -> float | None:
    """Return a number read from YAML, None if it is none. PyYAML takes 1e-5, without a point, for text."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        return float(value)
    except (ValueError, OverflowError):
        return None


def count_in(text: str | None) -> int:
    """Return a count from a message of another program, 0 for anything else than a whole number."""
    try:
        return int(text or 0)
    except ValueError:
        return 0


def is_array(value: Any, *shape: int) -> bool:
    """Whether value is an array of floats as kernels take it, writable and of this shape."""
    is_floats = type(value) is np.ndarray and value.dtype == FLOATS
    return is_floats and value.shape == shape and value.flags.carray


def whole(name: str, value: Any, low: int, high: int | None = None) -> int:
    """Check that value is a whole number, of Python or numpy, from low to high. Raises InputError."""
    is_whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if not is_whole or value < low or (high is not None and value > high):
        span = f'{low} or more' if high is None else f'from {low} to {high}'
        raise InputError(f'{name} must be a whole number, {span}, got {safe_repr(value)}')
    return int(value)


def are_names(value: Any, *kinds: type) -> bool:
    """Whether value is a list, or another sequence, of text; or of one of these kinds."""
    is_list = isinstance(value, (list, tuple, Sequence, *kinds)) and not isinstance(value, str)
    return is_list and all(isinstance(name, str) for name in value)


def real_array(value: ArrayLike) -> Array:
    """Return value as a new array of floats.

    Raises TypeError, ValueError or OverflowError unless it holds real numbers: text is not converted, complex
    numbers do not lose their imaginary part, masked arrays their mask.
    """
    if type(value) is np.ndarray and value.dtype is FLOATS:
        return value.copy()
    if _is_masked(value):
        raise TypeError
    try:
        array = np.array(value)
        if array.dtype.kind == 'O':  # such as fractions, and whole numbers of any length
            return np.array([_real(part) for part in array.flat]).reshape(array.shape)
    except (TypeError, ValueError, OverflowError):
        raise
    except Exception as error:  # an array of another library, or an entry, may raise anything
        raise TypeError from error
    if array.dtype is FLOATS:
        return array
    if array.dtype.kind not in 'fiub':
        raise TypeError
    return array.astype(np.float64)


def _is_masked(value: Any, depth: int = 3) -> bool:
    """Whether value is a masked array, or a list, or a list of lists of so many levels, with one."""
    if isinstance(value, (list, tuple)):
        kinds = set(map(type, value))
        nested = depth > 0 and kinds & {list, tuple} and any(_is_masked(one, depth - 1) for one in value)
        return bool(nested) or any(issubclass(kind, np.ma.MaskedArray) for kind in kinds)
    return isinstance(value, np.ma.MaskedArray)


def finite_array(name: str, value: ArrayLike, size: int) -> Array:
    """Return value as a new array (size,). Raises InputError unless it is that many finite numbers."""
    try:
        vector = real_array(value)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f'{name} must be {size} numbers, got {safe_repr(value)}') from None
    if vector.shape != (size,) or not np.isfinite(vector).all():
        raise InputError(f'{name} must be {size} finite numbers, got {vector.tolist()}')
    return vector


def vector3(name: str, value: ArrayLike) -> Array:
    """Check that value is three numbers up to LARGEST and return a new array (3,). Raises InputError."""
    vector = three_floats(name, value)
    if not max(map(abs, vector)) <= LARGEST:
        raise InputError(f'the numbers of {name} must be at most {LARGEST:g} in size, got {list(vector)}')
    return np.array(vector)


def unit_vector(name: str, value: ArrayLike) -> Array:
    """Return a vector of any length but zero as a unit vector (3,).

    Raises InputError for wrong shapes, non-finite numbers and zero.
    """
    return np.array(unit_floats(name, value))


def read_axis(name: str, text: str, example: str = '0,0.6,0.8') -> tuple[float, float, float]:
    """Return the unit axis given as text: a name of AXES, or numbers such as 0,0.6,0.8 or '0 0.6 0.8'.

    example: of three numbers, for the error. Raises InputError.
    """
    if text in AXES:
        return AXES[text]
    try:
        x, y, z = map(float, text.strip('[]()').replace(',', ' ').split())
    except ValueError:
        raise InputError(
            f'{name} must be one of {", ".join(AXES)} or three numbers such as {example}, got {safe_repr(text)}'
        ) from None
    return unit_floats(name, (x, y, z))


def three_floats(name: str, value: Any) -> tuple[float, float, float]:
    """Check that value is a sequence of three finite real numbers and return them. Raises InputError."""
    # Plain floats: numpy's checks of three numbers cost more than a solve.
    try:
        kind = type(value)
        if kind is np.ndarray:
            parts = value.tolist()
        elif kind is tuple or kind is list or not isinstance(value, NOT_VECTORS):
            parts = value
        else:
            raise TypeError
        first, second, third = parts
        if type(first) is type(second) is type(third) is float:
            x, y, z = first, second, third
        else:
            x, y, z = _real(first), _real(second), _real(third)
    except OverflowError:
        raise InputError(f'{name} must be finite, got a whole number beyond 1.8e308') from None
    except Exception:  # TypeError, ValueError, and what arrays of other libraries raise
        raise _not_three(name, value) from None
    if not (math.isfinite(x) and math.isfinite(y) and math.isfinite(z)):
        raise InputError(f'{name} must be finite, got {[x, y, z]}')
    return x, y, z


def _real(value: Any) -> float:
    if isinstance(value, (str, bytes, bytearray, np.complexfloating)):  # float() would take them
        raise TypeError
    return float(value)


def _not_three(name: str, value: Any) -> InputError:
    try:
        shape = real_array(value).shape
    except (TypeError, ValueError, OverflowError):
        return InputError(f'{name} must be three numbers, got {safe_repr(value)}')
    if shape == (3,):  # one of them alone is not a number
        return InputError(f'{name} must be three numbers, got {safe_repr(value)}')
    return InputError(f'{name} must have shape (3,), got shape {shape}: {safe_repr(value)}')


def unit_floats(name: str, value: Any) -> tuple[float, float, float]:
    """Return a vector of any length but zero as a unit vector. Raises InputError as three_floats, and for zero."""
    x, y, z = three_floats(name, value)
    length = math.sqrt(x * x + y * y + z * z)  # as in pack_goals, so that a batch has the same bits
    if abs(length - 1.0) > UNIT_TOLERANCE:
        largest = max(abs(x), abs(y), abs(z))
        if largest == 0.0:
            raise InputError(f'{name} must not be zero, since it is to point somewhere, got {[x, y, z]}')
        x, y, z = x / largest, y / largest, z / largest  # the squares might overflow or vanish
        length = math.sqrt(x * x + y * y + z * z)
    return x / length, y / length, z / length
