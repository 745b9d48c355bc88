# SPDX-License-Identifier: Apache-2.0
"""ik_viewer, its page and what else is on the desk, in the thread of a test: see stepped.py.

The page is a client of the web server, but user input goes straight to its handlers, and what it is sent is
read where the server stores it. What threads of the viewer compute is there in the next frame.
"""

from __future__ import annotations

import asyncio
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import partial
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import msgspec
import numpy as np
import rclpy
import viser
import yaml
from rclpy.node import Node
from rclpy.parameter import Parameter
from std_srvs.srv import Trigger
from stepped import World, world
from viewer_harness import LATCHED, ROOT, SEED_ARM, SEED_FILE, SEED_JOINTS, TIMEOUT, RobotSide  # noqa: F401
from viser import _messages
from viser.infra._async_message_buffer import AsyncMessageBuffer
from viser.transforms import SE3, SO3
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from ik_node.ros.node import IkNode
from ik_node.ros.programs.track_player import GoalsNode
from ik_node.viewer import guard, teach
from ik_node.viewer.events import Worker
from ik_node.viewer.node import ViewerNode
from ik_node.viewer.panel import RESUME, STOP

KINDS = {'ik_node': IkNode, 'ik_goals': GoalsNode, 'ik_viewer': ViewerNode}
SOON = 10.0  # [s] for what the thread of the web server does
CAMERA = {
    'type': 'ViewerCameraMessage',
    'wxyz': (1.0, 0.0, 0.0, 0.0),
    'position': (1.0, 1.0, 1.0),
    'fov': 1.0,
    'near': 0.01,
    'far': 100.0,
    'image_height': 600,
    'image_width': 800,
    'look_at': (0.0, 0.0, 0.0),
    'up_direction': (0.0, 0.0, 1.0),
}


class Desk:
    """A world with a viewer."""

    def __init__(self, here: World) -> None:
        self.world = here
        self.viewer: ViewerNode

    @property
    def context(self) -> rclpy.Context:
        return self.world.context

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


class Page:
    """What a browser would show of a desk's viewer, and what its user may do.

    nodes: what is drawn, by name; controls: what is in the panel, by viser's id; notices: over the scene.
    age: of what its user does when it arrives [s].
    """

    def __init__(self, desk: Desk) -> None:
        self.desk, self.age = desk, 0.0
        self._server = desk.viewer._server
        self._nodes: dict[str, dict[str, Any]] = {}
        self._controls: dict[str, dict[str, Any]] = {}
        self._notices: list[str] = []
        self._buffers: list[list[Any]] = []
        self.url = desk.viewer._pages.url
        before = set(self._server.get_clients())
        protocol = f'viser-v{viser.__version__}'
        self._socket = connect(self.url.replace('http', 'ws', 1), subprotocols=[protocol], max_size=None)
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()
        self._socket.send(msgspec.msgpack.encode(CAMERA))  # by which the server knows a page
        self._client = self._soon(lambda: set(self._server.get_clients()) - before).pop()
        server = self._server._websock_server
        for buffer in (server._broadcast_buffer, server._client_state_from_id[self._client].message_buffer):
            kept = list(buffer.message_from_id.values()) if buffer.persistent_messages else []
            log = buffer.__dict__.setdefault('log', [])
            for message in kept:
                self._show(message)
            self._buffers.append([log, len(log) if kept else 0])
        desk.world.pump()

    def _listen(self) -> None:
        with suppress(ConnectionClosed):
            for _ in self._socket:  # it is read where the server stores it
                pass

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

    def turn(self, width: int, height: int) -> None:
        """Have another size [pixels]."""
        self._socket.send(msgspec.msgpack.encode(CAMERA | {'image_width': width, 'image_height': height}))

    def close(self) -> None:
        self._socket.close()
        self._thread.join(timeout=SOON)
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
        if message.excluded_self_client != self._client:
            arrays: list[memoryview] = []
            content = message.as_serializable_dict(arrays)
            self._take(_with_arrays(content, [bytes(one) for one in arrays]))

    def _take(self, message: dict[str, Any]) -> None:
        kind = message['type']
        if kind == 'NotificationShowMessage':
            self._notices.append(message['props']['body'])
        name, uuid = message.get('name', ''), message.get('uuid', '')
        if kind == 'RemoveSceneNodeMessage':
            for gone in [node for node in self._nodes if node == name or node.startswith(f'{name}/')]:
                del self._nodes[gone]
        elif kind == 'GuiRemoveMessage':
            self._controls.pop(uuid, None)
        elif kind == 'GuiUpdateMessage':
            self._controls.setdefault(uuid, {}).update(message['updates'])
        elif kind.startswith('Gui') and 'props' in message:
            shown = {'kind': kind, 'value': message.get('value'), **message['props']}
            self._controls[uuid] = shown
        elif kind == 'SceneNodeUpdateMessage':
            self._nodes.setdefault(name, {}).update(message['updates'])
        elif kind in ('SetPositionMessage', 'SetOrientationMessage', 'SetSceneNodeVisibilityMessage'):
            self._nodes.setdefault(name, {}).update(message)
        elif 'props' in message and name:
            self._nodes[name] = {**message, **message['props']}

    @property
    def nodes(self) -> dict[str, dict[str, Any]]:
        self._read()
        return self._nodes

    @property
    def controls(self) -> dict[str, dict[str, Any]]:
        self._read()
        return self._controls

    @property
    def notices(self) -> list[str]:
        self._read()
        return self._notices

    # What is seen

    def text(self) -> str:
        """The words of the panel's card."""
        return next(iter(self.html()), '')

    def words(self) -> str:
        """All words of the panel."""
        return ' '.join(self.html())

    def html(self) -> list[str]:
        """All HTML of the panel."""
        return [c['content'] for c in self.controls.values() if c['kind'] == 'GuiHtmlMessage']

    def control(self, label: str) -> dict[str, Any]:
        """What is known of the control with a label."""
        return self.controls[self._uuid(label)]

    def labels(self) -> list[str]:
        """The labels of the joint sliders."""
        sliders = [c for c in self.controls.values() if c['kind'] == 'GuiSliderMessage' and c['visible']]
        return [c['label'] for c in sliders if c['label'].endswith(('[°]', '[mm]'))]

    def _labels(self) -> list[str]:
        return [c['label'] for c in self.controls.values() if 'label' in c]

    def _uuid(self, label: str) -> str:
        for uuid, control in self.controls.items():
            if control.get('label') == label:
                return uuid
        raise KeyError(f'no control "{label}"')

    def pose(self, name: str) -> np.ndarray:
        """Where a node is in the one above it, (4, 4)."""
        self.wait(lambda: name in self.nodes, name)
        node = self.nodes[name]
        turn = SO3(np.array(node.get('wxyz', (1.0, 0.0, 0.0, 0.0))))
        position = np.array(node.get('position', (0.0, 0.0, 0.0)))
        return SE3.from_rotation_and_translation(turn, position).as_matrix()

    # What a user does

    def _send(self, kind: str, **content: Any) -> None:
        server = self._server._websock_server
        data = msgspec.msgpack.encode({'type': kind, **content})

        async def handle() -> None:
            guard._sent_after.set(time.monotonic() - self.age)
            await server._handle_incoming_message(self._client, _messages.Message.deserialize(data))

        asyncio.run_coroutine_threadsafe(handle(), server._background_event_loop).result(SOON)

    def choose(self, label: str, value: Any) -> None:
        """Set a slider or a choice, or press a button of a group."""
        self.wait(lambda: label in self._labels(), label)
        self.control(label)['value'] = value  # a browser is not told of what it did itself
        self._send('GuiUpdateMessage', uuid=self._uuid(label), updates={'value': value})

    def press(self, button: str) -> None:
        """Press Home, Stop or Resume, for all tools."""
        if button == RESUME:
            self.wait(lambda: RESUME in self._labels(), 'the button')
            self.choose(RESUME, True)
            return
        if button != STOP:
            self.wait(lambda: {'All tools', 'Arm'} & set(self._labels()), 'the buttons')
            self.choose('All tools' if 'All tools' in self._labels() else 'Arm', button)
            return
        done = threading.Thread(target=self._stop)  # its answer waits for that of ik_node
        done.start()
        while done.is_alive():
            self.desk.world.step()
            done.join(0.001)

    def _stop(self) -> None:
        try:
            with urllib.request.urlopen(f'{self.url}stop', timeout=TIMEOUT) as answer:
                assert answer.status == 200
        except urllib.error.HTTPError as error:  # nobody has stopped yet: the page says so
            if error.code != 503:
                raise

    def drag(self, pose: np.ndarray, name: str = '/base/goal', release: bool = True) -> None:
        """Take the gizmo and put it to a pose (4, 4)."""
        self._send('TransformControlsDragStartMessage', name=name)
        wxyz, position = SO3.from_matrix(pose[:3, :3]).wxyz.tolist(), pose[:3, 3].tolist()
        self.nodes[name].update(wxyz=wxyz, position=position)
        self._send('TransformControlsUpdateMessage', name=name, wxyz=wxyz, position=position)
        if release:
            self.release(name)

    def release(self, name: str = '/base/goal') -> None:
        self._send('TransformControlsDragEndMessage', name=name)


def _with_arrays(content: Any, buffers: list[bytes]) -> Any:
    """A message with its arrays, flat, in place of their numbers."""
    if not isinstance(content, dict):
        return content
    if '__binary_index' in content:
        return np.frombuffer(buffers[content['__binary_index']], content['dtype'])
    return {key: _with_arrays(value, buffers) for key, value in content.items()}


def _compute(worker: Worker[Any], work: Callable[[], Any], done: Callable[[Any], Any]) -> None:
    worker._events.post(partial(worker._deliver, done, work(), worker._drops))


def _log(buffer: AsyncMessageBuffer, message: Any, push: Any = AsyncMessageBuffer.push) -> None:
    buffer.__dict__.setdefault('log', []).append(message)
    push(buffer, message)


@contextmanager
def desk() -> Iterator[Desk]:
    """A desk on which there is nothing yet."""
    with world() as here, ExitStack() as patches:
        patches.enter_context(patch.object(Worker, 'submit', _compute))
        patches.enter_context(patch.object(AsyncMessageBuffer, 'push', _log))
        patches.enter_context(patch.object(teach, 'time', SimpleNamespace(sleep=here.run)))
        yield Desk(here)


@contextmanager
def viewer(*parameters: str, beside: tuple[str, ...] = (), page: bool = True) -> Iterator[tuple[Desk, RobotSide]]:
    """A viewer, with a page open, and the robot's side. beside: parameters of an ik_node, if there is one."""
    with desk() as table, ExitStack() as nodes:
        if beside:
            nodes.enter_context(closing(table.make('ik_node', *beside)))
        nodes.enter_context(closing(table.make('ik_viewer', 'page_port:=0', 'shadows:=false', *parameters)))
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


@contextmanager
def called(robot: RobotSide) -> Iterator[list[str]]:
    """The services of a node behind the buttons; the names of those that were called."""
    names: list[str] = []
    solver = Node('ik_node', context=robot.context)
    try:
        for name in ('home', 'stop', 'resume'):

            def answer(_: Trigger.Request, response: Trigger.Response, name: str = name) -> Trigger.Response:
                names.append(name)
                return response

            solver.create_service(Trigger, f'~/{name}', answer)
        yield names
    finally:
        solver.destroy_node()
