# SPDX-License-Identifier: Apache-2.0
"""Pages: the web server, and whether any browser has its page open."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from rclpy.node import Node
from viser import ClientHandle

from ik_node.viewer.guard import Guard
from ik_node.viewer.server import page_url, start_server, stop_server
from ik_node.viewer.stop_page import answering


class Pages:
    """Serves the page behind a guard.

    Callbacks of viser only wake the executor of the node: changed is called there when a page was opened or
    closed, or the stop button pressed. opened is called at once, on a thread of viser.
    """

    def __init__(
        self,
        node: Node,
        host: str,
        port: int,
        changed: Callable[[], None],
        stop: Callable[[], Awaitable[str]],
        opened: Callable[[str], object],
        link: Callable[[], str],
    ) -> None:
        """stop, opened, link: as for answering. Raises ServerError."""
        guard = Guard(host, node.get_logger().warning)
        self._node, self._stop, self._closed = node, stop, False
        self._bell = node.create_guard_condition(changed)
        self.server = start_server(host, port, guard, answering(self._stop_pressed, opened, link))
        self.url = page_url(host, self.server.get_port(), guard.token)

    def watch(self, opened: Callable[[ClientHandle], None]) -> None:
        """Notice pages from now on."""

        async def notice(client: ClientHandle) -> None:
            opened(client)
            self._ring()

        async def forget(_: ClientHandle) -> None:
            self._ring()

        self.server.on_client_connect(notice)
        self.server.on_client_disconnect(forget)

    @property
    def open(self) -> bool:
        """Whether any browser has the page open."""
        return bool(self.server.get_clients())

    async def _stop_pressed(self) -> str:
        stopped = self._stop()
        self._ring()
        return await stopped

    def _ring(self) -> None:
        if self._node.context.ok() and not self._closed:
            self._bell.trigger()

    def close(self) -> None:
        """Close every connection and the port."""
        self._closed = True
        stop_server(self.server)
