"""ParametersClient: parameters of another node that are strings."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rcl_interfaces.msg import Parameter, ParameterType, ParameterValue
from rcl_interfaces.srv import GetParameters, SetParameters
from rclpy.node import Node
from rclpy.task import Future


class ParametersClient:
    """Reads and sets some parameters of the node called name.

    values: those known, by name. Call refresh() regularly; on_refused gets the reason of a refusal.
    """

    def __init__(
        self, node: Node, name: str, parameters: Sequence[str], on_refused: Callable[[str], None]
    ) -> None:
        self.values: dict[str, str] = {}
        self._names, self._on_refused = list(parameters), on_refused
        self._getter = node.create_client(GetParameters, f'{name}/get_parameters')
        self._setter = node.create_client(SetParameters, f'{name}/set_parameters')
        self._asked: Future | None = None

    def refresh(self) -> None:
        """Request the values; the response arrives later."""
        if self._asked is not None:
            self._getter.remove_pending_request(self._asked)  # its response was lost
            self._asked = None
        if self._getter.service_is_ready():
            self._asked = self._getter.call_async(GetParameters.Request(names=self._names))
            self._asked.add_done_callback(self._told)

    def _told(self, future: Future) -> None:
        if future is self._asked:
            self._asked = None
            values = (value.string_value for value in future.result().values)
            self.values = dict(zip(self._names, values, strict=False))

    def set(self, name: str, text: str) -> None:
        """Set a parameter."""
        if not self._setter.service_is_ready():
            self._on_refused(f'{name}: the service {self._setter.srv_name} is not available')
            return
        value = ParameterValue(type=ParameterType.PARAMETER_STRING, string_value=text)
        request = SetParameters.Request(parameters=[Parameter(name=name, value=value)])
        self._setter.call_async(request).add_done_callback(self._answered)

    def _answered(self, future: Future) -> None:
        for result in future.result().results:
            if not result.successful:
                self._on_refused(result.reason)
        self.refresh()
