# SPDX-License-Identifier: Apache-2.0
"""ik_viewer, its page and what else is on the desk, in the thread of a test: see stepped.py.

The page is a client of the web server, but user input goes straight to its handlers, and what it is sent is
read where the server stores it. What threads of the viewer compute is there at once.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import msgspec
import rclpy
import yaml
from page import Page as SocketPage
from page import with_arrays
from rclpy.parameter import Parameter
from stepped import World, world
from viewer_harness import LATCHED, ROOT, SEED_ARM, SEED_FILE, SEED_JOINTS, TIMEOUT, RobotSide, called  # noqa: F401
from viser import _messages
from viser.infra._async_message_buffer import AsyncMessageBuffer

from ik_node.ros.node.node import IkNode
from ik_node.ros.programs.track_player import GoalsNode
from ik_node.viewer import input_freshness
from ik_node.viewer.methods import descent
from ik_node.viewer.node import ViewerNode
from ik_node.viewer.panel.buttons import STOP
from ik_node.viewer.recording import recordings, replay
from ik_node.viewer.teach import teach
from ik_node.viewer.worker import Worker

KINDS = {'ik_node': IkNode, 'ik_goals': GoalsNode, 'ik_viewer': ViewerNode}
SOON = 10.0  # [s] for what the thread of the web server does


class Inline:
    """A thread that does all at its start."""

    def __init__(self, target: Callable[..., Any], args: tuple[Any, ...] = (), **_: Any) -> None:
        self._work = lambda: target(*args)

    def start(self) -> None:
        self._work()

    def join(self, timeout: float | None = None) -> None:
        """It has ended."""


class Desk:
    """A world with a viewer."""

    def __init__(self, here: World) -> None:
        self.world = here
        self.viewer: ViewerNode

    @property
    def context(self) -> rclpy.Context:
        return self.world.context

    def url(self) -> str:
        return self.viewer._pages.url

    def make(self, name: str, *parameters: str) -> Any:
        """Make a node with parameters as name:=value; the caller closes it."""
        given = dict(one.split(':=', 1) for one in parameters)
        overrides = [Parameter(key, value=yaml.safe_load(value)) for key, value in given.items()]
        node = KINDS[name](context=self.world.context, parameter_overrides=overrides)
        if isinstance(node, IkNode):
            self.world.drive(node)
        if isinstance(node, ViewerNode):
            self.viewer = node
        return node


class Page(SocketPage):
    """The page of a desk. age: of what its user does when it arrives [s]."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self._server = desk.viewer._server
        self._state: dict[str, Any] = {'nodes': {}, 'controls': {}, 'notices': []}
        self._buffers: list[list[Any]] = []
        self._connected, self.age = False, 0.0
        before = set(self._server.get_clients())
        super().__init__(desk.url())
        self._client = self._soon(lambda: set(self._server.get_clients()) - before).pop()
        server = self._server._websock_server
        for buffer in (server._broadcast_buffer, server._client_state_from_id[self._client].message_buffer):
            kept = list(buffer.message_from_id.values()) if buffer.persistent_messages else []
            log = buffer.__dict__.setdefault('log', [])
            for message in kept:
                self._show(message)
            self._buffers.append([log, len(log) if kept else 0])
        self._connected = True
        desk.world.pump()

    @staticmethod
    def _soon(condition: Callable[[], Any]) -> Any:
        end = time.monotonic() + SOON
        while not (found := condition()):
            assert time.monotonic() < end, 'the web server does not respond'
            time.sleep(0.001)
        return found

    def run(self, seconds: float) -> None:
        """Let time pass."""
        self.desk.world.run(seconds)

    def wait(self, condition: Callable[[], Any], what: str) -> Any:
        def found() -> Any:
            self._read()
            try:
                return condition()
            except KeyError:  # not told yet
                return None

        return self.desk.world.wait(found, what, self.text)

    def close(self) -> None:
        super().close()
        self._soon(lambda: self._client not in self._server.get_clients())
        self.desk.world.pump()

    # What it is sent

    def _read(self) -> None:
        for place in self._buffers:
            log, number = place
            place[1] = len(log)
            for message in log[number : place[1]]:
                self._show(message)

    def _show(self, message: Any) -> None:
        if message.excluded_self_client != getattr(self, '_client', None):
            arrays: list[memoryview] = []
            content = message.as_serializable_dict(arrays)
            SocketPage._take(self, with_arrays(content, [bytes(one) for one in arrays]))

    def _take(self, message: dict[str, Any]) -> None:
        """Nothing: it is read from the server."""

    def _kept(self, name: str) -> Any:
        self._read()
        return self._state[name]

    def _forget(self, _: Any) -> None:
        """Nothing is set by others."""

    nodes = property(lambda self: self._kept('nodes'), _forget)
    controls = property(lambda self: self._kept('controls'), _forget)
    notices = property(lambda self: self._kept('notices'), _forget)

    # What a user does

    def _send(self, kind: str, **content: Any) -> None:
        if not self._connected:  # the camera, by which the server knows a page
            SocketPage._send(self, kind, **content)
            return
        server = self._server._websock_server
        data = msgspec.msgpack.encode({'type': kind, **content})

        async def handle() -> None:
            input_freshness._sent_after.set(time.monotonic() - self.age)
            await server._handle_incoming_message(self._client, _messages.Message.deserialize(data))

        asyncio.run_coroutine_threadsafe(handle(), server._background_event_loop).result(SOON)

    def press(self, button: str) -> None:
        if button != STOP:
            super().press(button)
            return
        done = threading.Thread(target=super().press, args=(button,))  # its answer waits for that of ik_node
        done.start()
        while done.is_alive():
            self.desk.world.step()
            done.join(0.001)


def _compute(worker: Worker[Any], work: Callable[[], Any]) -> None:
    worker._result = work()


def _log(buffer: AsyncMessageBuffer, message: Any, push: Any = AsyncMessageBuffer.push) -> None:
    buffer.__dict__.setdefault('log', []).append(message)
    push(buffer, message)


@contextmanager
def desk() -> Iterator[Desk]:
    """A desk on which there is nothing yet."""
    with world() as here, ExitStack() as patches:
        patches.enter_context(patch.object(Worker, 'submit', _compute))
        patches.enter_context(patch.object(AsyncMessageBuffer, 'push', _log))
        threads = SimpleNamespace(Thread=Inline, Event=threading.Event, Lock=threading.Lock)
        patches.enter_context(patch.object(teach, 'time', SimpleNamespace(sleep=here.run)))
        for module in (descent, recordings, replay):
            patches.enter_context(patch.object(module, 'threading', threads))
        yield Desk(here)


@contextmanager
def viewer(
    *parameters: str, beside: tuple[str, ...] = (), page: bool = True
) -> Iterator[tuple[Desk, RobotSide]]:
    """A viewer, with a page open, and the robot's side. beside: parameters of an ik_node, if there is one."""
    with desk() as table, ExitStack() as nodes:
        if beside:
            nodes.enter_context(closing(table.make('ik_node', *beside)))
        nodes.enter_context(closing(table.make('ik_viewer', 'port:=0', 'shadows:=false', *parameters)))
        robot = nodes.enter_context(closing(RobotSide(world=table.world)))
        if page:
            nodes.enter_context(closing(Page(table)))
            robot.wait_connected()
        yield table, robot


@contextmanager
def showing(text: str, *parameters: str, **joints: float) -> Iterator[tuple[Page, RobotSide]]:
    """A page that shows the robot of a description at joint values, without an ik_node."""
    with viewer(*parameters, page=False) as (table, robot), closing(Page(table)) as page:
        robot.describe(text)
        page.wait(page.labels, 'the robot')
        robot.move(**joints)
        page.run(0.2)
        yield page, robot
