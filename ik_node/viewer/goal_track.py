# SPDX-License-Identifier: Apache-2.0
"""GoalTrack: the track of the goal publisher of a tool, which ends before a user's goal is sent."""

from __future__ import annotations

from collections.abc import Callable

from rclpy.node import Node

from ik_node.ros.remote_parameters import RemoteParameters
from ik_node.steady import steady
from ik_node.tracks.settings import NO_TRACK

PATIENCE = 1.0  # [s] for the goal publisher to end its track
TRACK = 'track'  # its parameter


class GoalTrack:
    """refresh: asks for the present track; call it about once per second."""

    def __init__(self, node: Node, publisher: str) -> None:
        """publisher: the name of the goal publisher."""
        self._node = node
        self._waiting: Callable[[], None] | None = None  # to be sent once the track has ended
        self._waits_until = 0.0  # (steady)
        self._parameters = RemoteParameters(node, publisher, [TRACK], self._answered)
        self.refresh = self._parameters.refresh

    @property
    def name(self) -> str | None:
        """The present track, None without a goal publisher."""
        return self._parameters.values.get(TRACK)

    @property
    def moves(self) -> bool:
        """Whether there is a track, as far as the goal publisher has said."""
        return self.name not in (None, NO_TRACK)

    @property
    def may_move(self) -> bool:
        """Whether the goal publisher may still publish a goal."""
        return self._parameters.busy or self.moves

    def choose(self, name: str) -> None:
        """Ask the goal publisher for a track."""
        self._parameters.set(**{TRACK: name})

    def end(self) -> None:
        """End the track; what waits for that is forgotten."""
        self.forget()
        if self.moves:
            self.choose(NO_TRACK)

    def forget(self) -> None:
        """Forget what waits for the end of the track."""
        self._waiting = None

    def end_and(self, send: Callable[[], None]) -> None:
        """End the track, which would override the user, and send: at once, or when it has ended.

        What waits is replaced by a newer one, and forgotten if the goal publisher does not answer soon.
        """
        self.end()
        if self._parameters.busy:
            self._waiting, self._waits_until = send, steady() + PATIENCE
        else:
            send()

    def _answered(self, rejection: str) -> None:
        send, self._waiting = self._waiting, None
        if rejection:
            self._node.get_logger().warning(rejection)
        elif send is not None and steady() < self._waits_until:
            send()
