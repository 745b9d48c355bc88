"""The parameter `track` of the goal publisher, seen from another node."""

from __future__ import annotations

from collections.abc import Callable

from rcl_interfaces.msg import Parameter, ParameterType, ParameterValue
from rcl_interfaces.srv import GetParameters, SetParameters
from rclpy.node import Node
from rclpy.task import Future


class GoalsClient:
    """Reads and sets which track the goal publisher follows.

    track: what it follows as far as is known; None = no goal publisher answers. refresh() is to be called
    now and then; on_refused gets the reason when it does not take a track.
    """

    def __init__(self, node: Node, name: str, on_refused: Callable[[str], None]) -> None:
        self.track: str | None = None
        self._on_refused = on_refused
        self._getter = node.create_client(GetParameters, f'{name}/get_parameters')
        self._setter = node.create_client(SetParameters, f'{name}/set_parameters')
        self._asked: Future | None = None

    def refresh(self) -> None:
        """Ask for the track; the answer comes later."""
        self._forget()  # a question whose answer got lost
        if not self._getter.service_is_ready():
            self.track = None
            return
        self._asked = self._getter.call_async(GetParameters.Request(names=['track']))
        self._asked.add_done_callback(self._told)

    def _told(self, future: Future) -> None:
        if future is not self._asked:
            return  # forgotten, because a newer wish or question overtook it
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
