# SPDX-License-Identifier: Apache-2.0
"""Parameters of a node as one frozen dataclass: declared, checked and changed by its fields."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
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

from ik_node.control.settings.arm import ArmSettings
from ik_node.control.settings.robot import OF_TOOL, RobotSettings, tool_names
from ik_node.errors import IkError, InputError, join_names
from ik_node.ros.compat import given_parameters
from ik_node.settings import Settings

QOS = 'qos_overrides.'  # parameters of rclpy
REMOVED = ('joint_signs', 'joint_offsets')  # without them an arm that needed them would move elsewhere


def descriptor(field: dataclasses.Field[Any]) -> ParameterDescriptor:
    """Return the descriptor of the parameter of a field."""
    about = field.metadata
    text = about['text']
    message = ParameterDescriptor(
        # The settings check the types: then 1 is accepted for 1.0, and the error states what is allowed.
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
    settings = kind(**declare_fields(node, kind))
    warn_of_unknown(node)
    return settings


def declare_fields(
    node: Node, kind: type[Settings], prefix: str = '', defaults: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Declare parameters of kind, their names behind a prefix; return the values by field.

    defaults: the fields to declare, and their values if none are given; None: all of kind.
    """
    fields = {field.name: field for field in dataclasses.fields(kind)}
    if defaults is None:
        defaults = {name: field.default for name, field in fields.items()}
    rows: list[Any] = [(name, _plain(value), descriptor(fields[name])) for name, value in defaults.items()]
    try:
        declared = node.declare_parameters(prefix, rows)
    except ParameterException as error:
        raise InputError(str(error)) from None
    return {name: value.value for name, value in zip(defaults, declared, strict=True)}


def declare_robot(node: Node) -> RobotSettings:
    """Declare the parameters of ik_node and those of its tools, and return their values; as declare."""
    for name in REMOVED:
        parameter = given_parameters(node).get(name)
        if parameter is not None and parameter.value:
            raise InputError(
                f'the parameter {name} has been removed: configure signs and zeros in the driver of the arm, '
                'or change axis and origin of the joints in the URDF'
            )
    general = ArmSettings(**declare_fields(node, ArmSettings))
    defaults = {name: getattr(general, name) for name in OF_TOOL}
    own = {tool: declare_fields(node, ArmSettings, tool, defaults) for tool in tool_names(general.tools)}
    warn_of_unknown(node)
    return RobotSettings(general, own)


def warn_of_unknown(node: Node) -> None:
    """Log given parameters that no node of this package has.

    One file often serves several nodes, so parameters of ik_node are accepted.
    """
    names = [name for name in node.get_parameters_by_prefix('') if '.' not in name]
    of_ik_node = {field.name for field in dataclasses.fields(ArmSettings)}
    for name in given_parameters(node):
        tool_parameter = name.rpartition('.')[2] in OF_TOOL and node.get_name() != 'ik_node'
        if not (node.has_parameter(name) or name in of_ik_node or tool_parameter or name.startswith(QOS)):
            node.get_logger().warning(
                f'there is no parameter "{name}"; parameters: {join_names(names, name)}'
            )


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def changed(settings: Any, parameters: Iterable[Parameter]) -> Any:
    """Return settings with the given parameters; other parameters are ignored. Raises InputError."""
    values = {parameter.name: parameter.value for parameter in parameters}
    if isinstance(settings, RobotSettings):
        return settings.changed(values)
    known = {field.name for field in dataclasses.fields(settings)}
    return dataclasses.replace(settings, **{name: x for name, x in values.items() if name in known})


def on_change(
    node: Node,
    current: Callable[[], Any],
    check: Callable[[Any], object],
    apply: Callable[[Any], None],
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
