# SPDX-License-Identifier: Apache-2.0
"""A network between a browser and the viewer that can stop and continue, or be cut."""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import Any


class Network:
    """Forwards TCP connections to a port of this machine, while it runs."""

    def __init__(self, port: int) -> None:
        self._to = port
        self._runs = threading.Event()
        self._runs.set()
        self._sockets: list[socket.socket] = []
        self._listener = socket.create_server(('127.0.0.1', 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                far = socket.create_connection(('127.0.0.1', self._to))
                self._sockets += [near, far]
                for source, sink in ((near, far), (far, near)):
                    threading.Thread(target=self._forward, args=(source, sink), daemon=True).start()

    def _forward(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                self._runs.wait()
                sink.sendall(data)
        with contextlib.suppress(OSError):
            sink.shutdown(socket.SHUT_WR)

    def freeze(self) -> None:
        """Keep what is sent from now on, in both directions."""
        self._runs.clear()

    def thaw(self) -> None:
        """Deliver what was kept, and continue."""
        self._runs.set()

    def cut(self) -> None:
        """End all connections; new ones are possible."""
        sockets, self._sockets = self._sockets, []
        for one in sockets:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def __enter__(self) -> Network:
        return self

    def __exit__(self, *_: Any) -> None:
        self.thaw()
        self._listener.close()
        self.cut()
