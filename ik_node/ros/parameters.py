"""Parameters of a node as one frozen dataclass: declared, checked and changed by its fields."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any

from rcl_interfaces.msg import (
    FloatingPointRange,
    IntegerRange,
    ParameterDescriptor,
    SetParametersResult,
)
from rclpy.exceptions import ParameterException
from rclpy.node import Node
from rclpy.parameter import Parameter

from ik_node.errors import IkError, InputError, listed
from ik_node.settings import Settings


def descriptor(field: dataclasses.Field[Any]) -> ParameterDescriptor:
    """Return the descriptor of the parameter of a field."""
    about = field.metadata
    text = about['text']
    message = ParameterDescriptor(
        # The settings check the types: then 1 is accepted for 1.0, and the error says what is allowed.
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
    names = [field.name for field in fields]
    for name in getattr(node, '_parameter_overrides', {}):
        if not node.has_parameter(name) and not name.startswith('qos_overrides.'):
            node.get_logger().warning(f'there is no parameter "{name}"; parameters: {listed(names, name)}')
    return kind(**{value.name: value.value for value in values})


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def changed(settings: Settings, parameters: Iterable[Parameter]) -> Settings:
    """Return settings with the given parameters; other parameters are ignored. Raises InputError."""
    known = {field.name for field in dataclasses.fields(settings)}
    return dataclasses.replace(settings, **{p.name: p.value for p in parameters if p.name in known})


def on_change(
    node: Node,
    current: Callable[[], Settings],
    check: Callable[[Settings], object],
    apply: Callable[[Settings], None],
) -> None:
    """Check every change of parameters as a whole, and apply it once all callbacks have accepted it.

    check raises IkError to reject. Humble has no callback after the change: there it is applied at once.
    """
    after_set = getattr(node, 'add_post_set_parameters_callback', None)

    def checked(parameters: list[Parameter]) -> SetParametersResult:
        try:
            before = current()
            after = changed(before, parameters)
            if after != before:
                check(after)
                if after_set is None:
                    apply(after)
        except IkError as error:
            return SetParametersResult(successful=False, reason=str(error))
        return SetParametersResult(successful=True)

    def applied(parameters: list[Parameter]) -> None:
        before = current()
        after = changed(before, parameters)
        if after != before:
            apply(after)

    node.add_on_set_parameters_callback(checked)
    if after_set is not None:
        after_set(applied)
