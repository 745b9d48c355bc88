# SPDX-License-Identifier: Apache-2.0
"""Parameters of nodes: declared from settings, and read and set at other nodes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rcl_interfaces.msg import (
    FloatingPointRange,
    IntegerRange,
    ParameterDescriptor,
    SetParametersResult,
)
from rcl_interfaces.srv import GetParameters, SetParametersAtomically
from rclpy.exceptions import ParameterException
from rclpy.node import Node
from rclpy.parameter import Parameter, parameter_value_to_python
from rclpy.task import Future

from ik_node.checks import unit_vector
from ik_node.control.settings import OF_TOOL, ArmSettings, RobotSettings, tool_names
from ik_node.errors import IkError, InputError, join_names
from ik_node.settings import HasTool, Settings, check
from ik_node.steady import steady

from .interfaces import given_parameters

QOS = 'qos_overrides.'  # parameters of rclpy
RENAMED = {'page_port': 'port', 'serial_port': 'port'}  # from these: ignored, another port would be taken
REMOVED = ('joint_signs', 'joint_offsets')  # without them an arm that needed them would move elsewhere
ONLY_IN_PYTHON = {'schedule': 'schedule', 'solver_switches_off': 'method_options'}  # arguments of IkSolver


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
    for new, old in RENAMED.items():
        if new in defaults and old in given_parameters(node):
            raise InputError(f'the parameter {old} is now {new}')
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
        if name in ONLY_IN_PYTHON:
            node.get_logger().warning(
                f'the parameter {name} has been removed and is ignored: programs in Python set it '
                f'by the argument {ONLY_IN_PYTHON[name]} of IkSolver'
            )
        elif not (node.has_parameter(name) or name in of_ik_node or tool_parameter or name.startswith(QOS)):
            node.get_logger().warning(f'there is no parameter "{name}"; parameters: {join_names(names, name)}')


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


PATIENCE = 10.0  # [s] for a response; a node may build an arm first
URDF = ('robot_description', 'urdf_file')
WITHOUT_URDF = tuple(field.name for field in dataclasses.fields(ArmSettings) if field.name not in URDF)


class RemoteParameters:
    """Parameters of another node by name, with the changes that others make.

    names: of the parameters to read. values: as last read, arrays as tuples; empty without such a node. Call
    refresh() regularly. on_read is called after each reading, on_set with '' when the node has accepted new
    values, or with the reason for their rejection.
    """

    def __init__(
        self,
        node: Node,
        name: str,
        names: Iterable[str] = (),
        *,
        on_read: Callable[[], object] = lambda: None,
        on_set: Callable[[str], object] = lambda _: None,
    ) -> None:
        self.names = tuple(names)
        self.values: dict[str, Any] = {}
        self._on_read, self._on_set = on_read, on_set
        self._getter = node.create_client(GetParameters, f'{name}/get_parameters')
        self._setter = node.create_client(SetParametersAtomically, f'{name}/set_parameters_atomically')
        self._read: Future | None = None
        self._change: Future | None = None
        self._change_deadline = 0.0

    @property
    def available(self) -> bool:
        """Whether there is such a node."""
        return bool(self._getter.service_is_ready())

    @property
    def reading(self) -> bool:
        """Whether a response with values is pending."""
        return self._read is not None

    @property
    def busy(self) -> bool:
        """Whether a change of values is pending."""
        return self._change is not None

    def reset(self) -> None:
        """Forget the values, also those of a pending response."""
        self._cancel_read()
        self.values = {}

    def refresh(self) -> None:
        """Request the values; the response arrives later."""
        self._cancel_read()  # a request whose response was lost
        if not self.available:
            self.values = {}
            return
        if self._change is not None:
            if steady() < self._change_deadline:
                return  # the values from before would come back
            self._setter.remove_pending_request(self._change)
            self._change = None
            self._on_set(f'no response within {PATIENCE:g} s')
        names = self.names
        self._read = self._getter.call_async(GetParameters.Request(names=names))
        self._read.add_done_callback(lambda future: self._take_values(future, names))

    def _take_values(self, future: Future, names: Sequence[str]) -> None:
        if future is not self._read:
            return  # superseded by a newer request
        self._read = None
        read = zip(names, map(parameter_value_to_python, future.result().values), strict=False)
        self.values = {name: _as_field(value) for name, value in read if value is not None}
        self._on_read()

    def set(self, **values: Any) -> bool:
        """Set all of these together, or none if the node rejects; False without such a node."""
        self._cancel_read()
        if not self._setter.service_is_ready():
            self.values = {}
            return False
        self.values |= {name: value for name, value in values.items() if name in self.names}
        messages = [Parameter(name, value=value).to_parameter_msg() for name, value in values.items()]
        self._change = self._setter.call_async(SetParametersAtomically.Request(parameters=messages))
        self._change_deadline = steady() + PATIENCE
        self._change.add_done_callback(self._take_result)
        return True

    def _take_result(self, future: Future) -> None:
        if future is not self._change:
            return  # newer values are pending
        self._change = None
        result = future.result().result
        self._on_set('' if result.successful else result.reason or 'rejected without a reason')
        self.refresh()

    def _cancel_read(self) -> None:
        if self._read is not None:
            self._getter.remove_pending_request(self._read)
            self._read = None


def _as_field(value: Any) -> Any:
    return value if isinstance(value, (bool, int, float, str)) else tuple(value)


class RemoteSettings:
    """The settings of ik_node; call refresh() regularly.

    current: as last read, None until then and without ik_node; the URDF is not among them. failure: why the
    parameters cannot be used, '' while they can.
    """

    def __init__(self, node: Node) -> None:
        self._remote = RemoteParameters(node, 'ik_node', WITHOUT_URDF, on_read=self._take)
        self.current: RobotSettings | None = None
        self.failure = ''

    @property
    def reading(self) -> bool:
        """Whether a response is pending."""
        return self._remote.reading

    def reset(self) -> None:
        """Forget the settings, also those of a pending response."""
        self._remote.reset()
        self.current, self.failure = None, ''

    def refresh(self) -> None:
        """Request the settings; the response arrives later."""
        self._remote.refresh()
        if not self._remote.available:
            self.current = None

    def _take(self) -> None:
        values = self._remote.values
        try:
            general = ArmSettings(**{name: values[name] for name in WITHOUT_URDF if name in values})
            tools = tool_names(general.tools)
            names = (*WITHOUT_URDF, *(f'{tool}.{name}' for tool in tools for name in OF_TOOL))
            if names != self._remote.names:
                self._remote.names = names
                self._remote.refresh()
                return
            own = {
                tool: {name: values[f'{tool}.{name}'] for name in OF_TOOL if f'{tool}.{name}' in values}
                for tool in tools
            }
            self.current, self.failure = RobotSettings(general, own), ''
        except InputError as error:
            self.current, self.failure = None, f'ik_node has other parameters than this version: {error}'


def _of_ik_node(name: str) -> Any:
    """Return the field of a parameter that ik_node has too; it is read only at start-up."""
    field = ArmSettings.__dataclass_fields__[name]
    return dataclasses.field(default=field.default, metadata={**field.metadata, 'read_only': True})


@dataclass(frozen=True)
class ToolSettings(HasTool):
    """Which tool of a robot, by the same parameters as of ik_node."""

    base_link: str = _of_ik_node('base_link')
    tip_link: str = _of_ik_node('tip_link')
    tool_axis: tuple[float, ...] = _of_ik_node('tool_axis')
    tool_point: tuple[float, ...] = _of_ik_node('tool_point')

    def __post_init__(self) -> None:
        check(self)
        unit_vector('parameter tool_axis', self.tool_axis)
