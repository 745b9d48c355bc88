# SPDX-License-Identifier: Apache-2.0
"""RemoteParameters: some parameters of another node, read and set by its services."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rcl_interfaces.srv import GetParameters, SetParametersAtomically
from rclpy.node import Node
from rclpy.parameter import Parameter, parameter_value_to_python
from rclpy.task import Future

from ik_node.steady import steady

PATIENCE = 10.0  # [s] for a response; a node may build an arm first


class RemoteParameters:
    """Parameters of another node by name, with the changes that others make.

    values: as last known; empty without such a node. Call refresh() regularly. on_answer receives '' when the
    node has accepted new values, or the reason for their rejection.
    """

    def __init__(
        self, node: Node, name: str, parameters: Sequence[str], on_answer: Callable[[str], None]
    ) -> None:
        self.values: dict[str, Any] = {}
        self._parameters = list(parameters)
        self._on_answer = on_answer
        self._getter = node.create_client(GetParameters, f'{name}/get_parameters')
        self._setter = node.create_client(SetParametersAtomically, f'{name}/set_parameters_atomically')
        self._asked: Future | None = None
        self._given: Future | None = None
        self._given_until = 0.0

    @property
    def busy(self) -> bool:
        """Whether a change of values is pending."""
        return self._given is not None

    def reset(self) -> None:
        """Forget the values until the next response arrives."""
        self.values = {}

    def refresh(self) -> None:
        """Request the values; the response arrives later."""
        self._forget()  # a request whose response was lost
        if not self._getter.service_is_ready():
            self.reset()
            return
        if self._given is not None:
            if steady() < self._given_until:
                return  # the values from before would come back
            self._setter.remove_pending_request(self._given)
            self._given = None
            self._on_answer(f'no response within {PATIENCE:g} s')
        self._asked = self._getter.call_async(GetParameters.Request(names=self._parameters))
        self._asked.add_done_callback(self._told)

    def _told(self, future: Future) -> None:
        if future is not self._asked:
            return  # superseded by a newer request
        self._asked = None
        known = map(parameter_value_to_python, future.result().values)
        pairs = zip(self._parameters, known, strict=False)
        self.values = {name: value for name, value in pairs if value is not None}

    def set(self, **values: Any) -> bool:
        """Set all of these together, or none if the node rejects; False without such a node."""
        self._forget()
        if not self._setter.service_is_ready():
            self.reset()
            return False
        self.values |= {name: value for name, value in values.items() if name in self._parameters}
        messages = [Parameter(name, value=value).to_parameter_msg() for name, value in values.items()]
        self._given = self._setter.call_async(SetParametersAtomically.Request(parameters=messages))
        self._given_until = steady() + PATIENCE
        self._given.add_done_callback(self._answered)
        return True

    def _answered(self, future: Future) -> None:
        if future is not self._given:
            return  # newer values are pending
        self._given = None
        result = future.result().result
        self._on_answer('' if result.successful else result.reason or 'rejected without a reason')
        self.refresh()

    def _forget(self) -> None:
        if self._asked is not None:
            self._getter.remove_pending_request(self._asked)
            self._asked = None
