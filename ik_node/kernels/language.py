# SPDX-License-Identifier: Apache-2.0
"""What kernels are written in: a subset of Python that emit/ translates to C.

Numbers, tuples, arrays of NumPy with the last dimension contiguous, if, while, for over range and tuples,
calls of math and of other kernels. Without a compiler they run as they are, with the same results. A kernel
that Python calls has the types of its arguments as annotations; others get theirs from those that call them.
"""

from collections.abc import Callable
from types import FunctionType
from typing import Any, TypeAlias, TypeVar

# F: float64, R: float64 that is only read, I: int64, U: uint64, B: bool; then the number of dimensions.
# V1: numbers that are only read, given as an array, list or tuple, always the first argument. The call returns
# None, before any work, for anything that it does not read as it is: those who call it then convert it.
F0: TypeAlias = float
I0: TypeAlias = int
B0: TypeAlias = bool
F1: TypeAlias = Any
F2: TypeAlias = Any
F3: TypeAlias = Any
R1: TypeAlias = Any
R2: TypeAlias = Any
R3: TypeAlias = Any
I1: TypeAlias = Any
I2: TypeAlias = Any
U1: TypeAlias = Any
B1: TypeAlias = Any
V1: TypeAlias = Any

each = range  # of a loop whose turns do not depend on each other: emit/lanes.py makes several at a time

Kernel = TypeVar('Kernel', bound=Callable[..., Any])


def compiled(function: Kernel) -> Kernel:
    """Mark a function as a kernel."""
    return function


def specialised(template: Any, name: str, **parts: Any) -> Any:
    """Return a kernel made from a template: a function some of whose globals stand for others."""
    missing = parts.keys() - template.__globals__.keys()
    if missing:
        raise TypeError(f'{template.__name__} has no part {", ".join(sorted(missing))}')
    function = FunctionType(template.__code__, {**template.__globals__, **parts}, name)
    function.__qualname__, function.__doc__ = name, template.__doc__
    return function
