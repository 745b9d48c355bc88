# SPDX-License-Identifier: Apache-2.0
"""Settings: a frozen dataclass of parameters, each with its default, text, unit and range."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any, TypeVar

from ik_node.checks import AXES, read_axis
from ik_node.errors import InputError

BIG = 1e9  # upper end of a range without an upper limit


def parameter(
    default: Any,
    text: str,
    *,
    low: float | None = None,
    high: float = BIG,
    choices: Sequence[str] = (),
    size: int | None = None,
    axis: bool = False,
    read_only: bool = False,
) -> Any:
    """Return a dataclass field with the description, range and choices of a parameter.

    low, high: the allowed range, both ends included. size: how many numbers an array has, None for any. axis:
    it may also be given as a name of AXES.
    """
    metadata = {
        'text': text,
        'low': low,
        'high': high,
        'choices': tuple(choices),
        'size': size,
        'axis': axis,
        'read_only': read_only,
    }
    return dataclasses.field(default=default, metadata=metadata)


class HasTool:
    """Settings that name a tool, by the parameters that all nodes have for it."""

    base_link: str
    tip_link: str
    tool_axis: tuple[float, ...]
    tool_point: tuple[float, ...]

    def tool(self) -> dict[str, Any]:
        """Return the arguments of Arm besides the robot."""
        return {
            'tip_link': self.tip_link or None,
            'base_link': self.base_link or None,
            'tool_axis': self.tool_axis,
            'tool_point': self.tool_point,
        }


# A frozen dataclass of parameter() fields that calls check() at its end.
Settings = TypeVar('Settings', bound=Any)


def check(settings: Any) -> None:
    """Convert the fields of a settings dataclass to their types. Raises InputError for values not allowed."""
    for field in dataclasses.fields(settings):
        value = _checked(field, getattr(settings, field.name))
        object.__setattr__(settings, field.name, value)


def _checked(field: dataclasses.Field[Any], value: Any) -> Any:
    about = field.metadata
    if isinstance(field.default, tuple):
        return _texts(field, value) if '' in field.default else _numbers(field, value)
    if isinstance(field.default, float):
        if not _is_number(value) or not about['low'] <= value <= about['high']:
            raise _rejection(field, f'a number from {about["low"]:g} to {about["high"]:g}', value)
        return float(value)
    if isinstance(field.default, str):
        if isinstance(value, bool) and {'true', 'false'} <= set(about['choices']):
            value = str(value).lower()  # YAML reads true and false as booleans
        if not isinstance(value, str):
            raise _rejection(field, 'a string', value)
        if about['choices'] and value not in about['choices']:
            raise _rejection(field, f'one of {", ".join(about["choices"])}', value)
        return value
    if isinstance(field.default, bool):
        if not isinstance(value, bool):
            raise _rejection(field, 'true or false', value)
        return value
    if type(value) is not int or not about['low'] <= value <= about['high']:
        raise _rejection(field, f'a whole number from {about["low"]} to {about["high"]}', value)
    return value


def _numbers(field: dataclasses.Field[Any], value: Any) -> tuple[float, ...]:
    size, axis = field.metadata['size'], field.metadata['axis']
    if axis and isinstance(value, str):
        return read_axis(f'parameter {field.name}', value, '[0.0, 0.6, 0.8]')
    try:
        numbers = tuple(value)
    except TypeError:
        numbers = (math.nan,)
    if not all(_is_number(x) for x in numbers) or size not in (None, len(numbers)):
        names = ', '.join(AXES).replace(' y', ' "y"')  # YAML reads y as true
        named = f'one of {names}, or ' if axis else ''
        raise _rejection(field, f'{named}{size if size else "a list of"} finite numbers', value)
    return tuple(map(float, numbers))


def _texts(field: dataclasses.Field[Any], value: Any) -> tuple[str, ...]:
    texts = () if isinstance(value, str) else tuple(value or ())
    if not texts or not all(isinstance(text, str) for text in texts):
        raise _rejection(field, 'a list of strings', value)
    return texts


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _rejection(field: dataclasses.Field[Any], allowed: str, value: Any) -> InputError:
    return InputError(f'parameter {field.name} must be {allowed}, got {value!r}')
