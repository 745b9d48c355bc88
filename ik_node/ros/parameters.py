"""Parameters of a node as one frozen dataclass: declared, checked and changed by what its fields say."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from rcl_interfaces.msg import (
    FloatingPointRange,
    IntegerRange,
    ParameterDescriptor,
    SetParametersResult,
)
from rclpy.exceptions import ParameterException
from rclpy.node import Node
from rclpy.parameter import Parameter

from ik_node.kinematics.errors import IkError, InputError

BIG = 1e9  # a range needs two ends; this one means: no end


def parameter(
    default: Any,
    text: str,
    *,
    low: float | None = None,
    high: float = BIG,
    choices: Sequence[str] = (),
    size: int | None = None,
    read_only: bool = False,
) -> Any:
    """Return a dataclass field with what a node tells about a parameter and checks in it.

    low, high: the allowed range, both ends included. size: how many numbers an array has, None for any.
    """
    metadata = {
        'text': text,
        'low': low,
        'high': high,
        'choices': tuple(choices),
        'size': size,
        'read_only': read_only,
    }
    return dataclasses.field(default=default, metadata=metadata)


# A frozen dataclass of parameter() fields that calls check() at its end.
Settings = TypeVar('Settings', bound=Any)


def check(settings: Any) -> None:
    """Bring the fields of a settings dataclass to their types; raise InputError for what a field forbids."""
    for field in dataclasses.fields(settings):
        value = _checked(field, getattr(settings, field.name))
        object.__setattr__(settings, field.name, value)


def _checked(field: dataclasses.Field[Any], value: Any) -> Any:
    about = field.metadata
    if isinstance(field.default, tuple):
        return _numbers(field, value)
    if isinstance(field.default, float):
        if not _is_number(value) or not about['low'] <= value <= about['high']:
            raise _refusal(field, f'a number from {about["low"]:g} to {about["high"]:g}', value)
        return float(value)
    if isinstance(field.default, str):
        if not isinstance(value, str):
            raise _refusal(field, 'a text', value)
        if about['choices'] and value not in about['choices']:
            raise _refusal(field, f'one of {", ".join(about["choices"])}', value)
        return value
    if isinstance(field.default, bool):
        if not isinstance(value, bool):
            raise _refusal(field, 'true or false', value)
        return value
    if type(value) is not int or not about['low'] <= value <= about['high']:
        raise _refusal(field, f'a whole number from {about["low"]} to {about["high"]}', value)
    return value


def _numbers(field: dataclasses.Field[Any], value: Any) -> tuple[float, ...]:
    size = field.metadata['size']
    try:
        numbers = tuple(value)
    except TypeError:
        numbers = (math.nan,)
    if not all(_is_number(x) for x in numbers) or size not in (None, len(numbers)):
        raise _refusal(field, f'{size if size else "a list of"} finite numbers', value)
    return tuple(map(float, numbers))


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _refusal(field: dataclasses.Field[Any], allowed: str, value: Any) -> InputError:
    return InputError(f'parameter {field.name} must be {allowed}, got {value!r}')


def descriptor(field: dataclasses.Field[Any]) -> ParameterDescriptor:
    """Return what a node tells about the parameter of a field."""
    about = field.metadata
    text = about['text']
    message = ParameterDescriptor(
        # The types are checked here: then 1 is as good as 1.0, and the refusal says what is allowed.
        dynamic_typing=True,
        read_only=about['read_only'],
        description=text,
        additional_constraints=f'one of {", ".join(about["choices"])}' if about['choices'] else '',
    )
    if about['low'] is not None and isinstance(field.default, int):
        message.integer_range = [IntegerRange(from_value=about['low'], to_value=about['high'])]
    elif about['low'] is not None:
        message.floating_point_range = [
            FloatingPointRange(from_value=float(about['low']), to_value=float(about['high']))
        ]
    return message


def declare(node: Node, kind: type[Settings]) -> Settings:
    """Declare every parameter of kind and return the values that the node was started with.

    Raises InputError for a value that is not allowed.
    """
    fields = dataclasses.fields(kind)
    try:
        values = node.declare_parameters(
            '', [(field.name, _plain(field.default), descriptor(field)) for field in fields]
        )
    except ParameterException as error:
        raise InputError(str(error)) from None
    return kind(**{value.name: value.value for value in values})


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def changed(settings: Settings, parameters: Iterable[Parameter]) -> Settings:
    """Return settings with the given parameters; those of others are passed over. Raises InputError."""
    known = {field.name for field in dataclasses.fields(settings)}
    return dataclasses.replace(settings, **{p.name: p.value for p in parameters if p.name in known})


def on_change(node: Node, current: Callable[[], Settings], apply: Callable[[Settings], None]) -> None:
    """Have every change of parameters checked as a whole, then applied; apply may refuse by an IkError."""

    def change(parameters: list[Parameter]) -> SetParametersResult:
        try:
            before = current()
            after = changed(before, parameters)
            if after != before:
                apply(after)
        except IkError as error:
            return SetParametersResult(successful=False, reason=str(error))
        return SetParametersResult(successful=True)

    node.add_on_set_parameters_callback(change)
