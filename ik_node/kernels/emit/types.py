# SPDX-License-Identifier: Apache-2.0
"""The types of values in kernels, and how they are written in C.

A scalar is a letter of SCALARS. Arrays and tuples are the classes below.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

SCALARS = {'b': 'bool', 'i': 'int64_t', 'u': 'uint64_t', 'f': 'real', 'c': 'ik_complex'}
SCALARS |= {'B': 'ikL_i', 'I': 'ikL_i', 'F': 'ikL_f'}  # a value for each lane: see lanes.py
WIDER = 'biufc'  # a variable that holds values of two of these has the type of the later one


@dataclass(frozen=True, eq=False)
class Constant:
    """An array of C with known entries, equal only to itself. values: np.ndarray."""

    name: str
    values: Any


@dataclass(frozen=True)
class ArrayType:
    """A view of an array whose last dimension is contiguous.

    sizes, and strides of all dimensions but the last, in entries: None where they are known only at run time.
    constant: the entries, if they are known too. scattered: each lane has a view of its own.
    """

    element: str
    sizes: tuple[int | None, ...]
    strides: tuple[int | None, ...]
    constant: Constant | None = field(default=None, hash=False)
    scattered: bool = False

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.sizes)

    @property
    def is_static(self) -> bool:
        """Whether sizes and strides are known, so that a bare pointer is enough in C."""
        return None not in self.sizes and None not in self.strides and not self.scattered

    @property
    def count(self) -> int:
        """The number of entries of a static array."""
        return math.prod(size for size in self.sizes if size is not None)


@dataclass(frozen=True)
class TupleType:
    """Several values: in C a struct with the members e0, e1, ..."""

    parts: tuple[Type, ...]

    @property
    def holds_arrays(self) -> bool:
        """Whether a part is an array, whose memory must outlive the function that returns the tuple."""
        return any(
            isinstance(part, ArrayType) or (isinstance(part, TupleType) and part.holds_arrays) for part in self.parts
        )


Type: TypeAlias = 'str | ArrayType | TupleType'
VOID = TupleType(())


def dynamic(element: str, rank: int) -> ArrayType:
    """Return the type of arrays whose sizes are known only at run time."""
    return ArrayType(element, (None,) * rank, (None,) * (rank - 1))


def static(element: str, sizes: Sequence[int], constant: Constant | None = None) -> ArrayType:
    """Return the type of contiguous arrays of these sizes."""
    strides = [math.prod(sizes[axis + 1 :]) for axis in range(len(sizes) - 1)]
    return ArrayType(element, tuple(sizes), tuple(strides), constant)


def join(a: Type | None, b: Type) -> Type:
    """Return the type that holds values of both. Raises TypeError if there is none."""
    if a is None or a == b:
        return b
    if isinstance(a, TupleType) and isinstance(b, TupleType) and len(a.parts) == len(b.parts):
        return TupleType(tuple(map(join, a.parts, b.parts)))
    if isinstance(a, ArrayType) and isinstance(b, ArrayType) and _holds(a) == _holds(b):
        sizes, strides = (
            tuple(x if x == y else None for x, y in zip(of_a, of_b, strict=True))
            for of_a, of_b in ((a.sizes, b.sizes), (a.strides, b.strides))
        )
        return ArrayType(a.element, sizes, strides, a.constant if a.constant is b.constant else None, a.scattered)
    if isinstance(a, str) and isinstance(b, str):
        wider = max(a.lower(), b.lower(), key=WIDER.index)
        return wider.upper() if a.isupper() or b.isupper() else wider
    raise TypeError(f'one variable holds {code(a)} and {code(b)}')


def _holds(kind: ArrayType) -> tuple[str, int, bool]:
    return kind.element, kind.rank, kind.scattered


def c_type(kind: Type) -> str:
    """Return a type as C writes it."""
    if isinstance(kind, str):
        return SCALARS[kind]
    if isinstance(kind, ArrayType):
        if kind.scattered:
            return 'ikL_rows'
        return f'{SCALARS[kind.element]} *' if kind.is_static else f'ik_{code(kind)}'
    prefix = 'ik_' if code(kind).islower() else 'ikL_'
    return f'{prefix}{code(kind)}' if kind.parts else 'void'


def declaration(kind: Type, name: str) -> str:
    """Return the declaration of a variable in C."""
    text = c_type(kind)
    return f'{text}{name}' if text.endswith('*') else f'{text} {name}'


def code(kind: Type) -> str:
    """Return a short name for a type: f2 for an array of floats with two dimensions."""
    if isinstance(kind, str):
        return kind
    if isinstance(kind, ArrayType):
        return f'{kind.element}{kind.rank}' + ('s' if kind.is_static else '')
    return 't' + ''.join(code(part) + 'z' * isinstance(part, TupleType) for part in kind.parts)
