"""GoalsClient: the parameter `track` of the goal publisher, for another node."""

from __future__ import annotations

from collections.abc import Callable

from rcl_interfaces.msg import Parameter, ParameterType, ParameterValue
from rcl_interfaces.srv import GetParameters, SetParameters
from rclpy.node import Node
from rclpy.task import Future


class GoalsClient:
    """Reads and sets the track of the goal publisher.

    track: its last known track; None if there is no goal publisher. Call refresh() regularly; on_refused
    gets the reason if it rejects a track.
    """

    def __init__(self, node: Node, name: str, on_refused: Callable[[str], None]) -> None:
        self.track: str | None = None
        self._on_refused = on_refused
        self._getter = node.create_client(GetParameters, f'{name}/get_parameters')
        self._setter = node.create_client(SetParameters, f'{name}/set_parameters')
        self._asked: Future | None = None

    def refresh(self) -> None:
        """Request the track; the response arrives later."""
        self._forget()  # a request whose response was lost
        if not self._getter.service_is_ready():
            self.track = None
            return
        self._asked = self._getter.call_async(GetParameters.Request(names=['track']))
        self._asked.add_done_callback(self._told)

    def _told(self, future: Future) -> None:
        if future is not self._asked:
            return  # superseded by a newer request
        self._asked = None
        values = future.result().values
        self.track = values[0].string_value if values else None

    def choose(self, track: str) -> None:
        """Set the track."""
        self._forget()
        if not self._setter.service_is_ready():
            self.track = None
            return
        self.track = track
        value = ParameterValue(type=ParameterType.PARAMETER_STRING, string_value=track)
        request = SetParameters.Request(parameters=[Parameter(name='track', value=value)])
        self._setter.call_async(request).add_done_callback(self._answered)

    def _answered(self, future: Future) -> None:
        for result in future.result().results:
            if not result.successful:
                self._on_refused(result.reason)

    def _forget(self) -> None:
        if self._asked is not None:
            self._getter.remove_pending_request(self._asked)
            self._asked = None
