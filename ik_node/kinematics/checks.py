"""Single numbers that callers give: what is accepted and with which words the rest is refused."""

from __future__ import annotations

import math
import numbers
from typing import Any

from ik_node.kinematics.errors import InputError


def positive(name: str, value: Any, *, finite: bool = True) -> float:
    """Check that value is a number greater than 0, finite unless told otherwise. Raises InputError."""
    is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    try:
        number = float(value) if is_number else math.nan
    except OverflowError:
        number = math.inf if value > 0 else -math.inf
    if not number > 0.0 or (finite and number == math.inf):
        kind = 'finite number' if finite else 'number'
        raise InputError(f'{name} must be a {kind} greater than 0, got {value!r}')
    return number


def whole(name: str, value: Any, low: int, high: int | None = None) -> int:
    """Check that value is a whole number, of Python or numpy, from low to high. Raises InputError."""
    is_whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if not is_whole or value < low or (high is not None and value > high):
        span = f'{low} or more' if high is None else f'from {low} to {high}'
        raise InputError(f'{name} must be a whole number, {span}, got {value!r}')
    return int(value)
