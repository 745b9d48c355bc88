# SPDX-License-Identifier: Apache-2.0
"""A browser without a screen: what the page of the viewer would show, and what its user may do."""

from __future__ import annotations

import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import viser
import zstandard
from viser.transforms import SE3, SO3
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from ik_node.viewer.panel.buttons import STOP
from ik_node.viewer.panel.inputs import LATE

TIMEOUT = 60.0  # seconds for things that take a fraction of one on an idle machine


class Page:
    """Connects to the viewer as a browser does and keeps what it is told.

    nodes: what is drawn, by name; controls: what is in the panel, by viser's id; notices: over the scene.
    repeats: an input of the panel that came too late is made again, as the page asks for.
    """

    def __init__(self, url: str) -> None:
        """url: that the viewer printed."""
        self.nodes: dict[str, dict[str, Any]] = {}
        self.controls: dict[str, dict[str, Any]] = {}
        self.notices: list[str] = []
        self.repeats = True
        self._input: dict[str, Any] = {}  # the newest of the panel
        self.url = url
        protocol = f'viser-v{viser.__version__}'
        self._socket = connect(url.replace('http', 'ws', 1), subprotocols=[protocol], max_size=None)
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()
        self._send(
            'ViewerCameraMessage',
            wxyz=(1.0, 0.0, 0.0, 0.0),
            position=(1.0, 1.0, 1.0),
            fov=1.0,
            near=0.01,
            far=100.0,
            image_height=600,
            image_width=800,
            look_at=(0.0, 0.0, 0.0),
            up_direction=(0.0, 0.0, 1.0),
        )

    def close(self) -> None:
        self._socket.close()
        self._thread.join(timeout=TIMEOUT)

    def _send(self, kind: str, **content: Any) -> None:
        if kind == 'GuiUpdateMessage':
            self._input = content
        self._socket.send(msgspec.msgpack.encode({'type': kind, **content}))

    def _listen(self) -> None:
        try:
            for frame in self._socket:
                size = int.from_bytes(frame[8:16], 'little')
                inner = zstandard.ZstdDecompressor().decompress(frame[16 : 16 + size])
                content = msgspec.msgpack.decode(inner)
                arrays = _buffers(frame, 16 + size, content['binaryBufferLengths'])
                for message in content['messages']:
                    self._take(with_arrays(message, arrays))
        except ConnectionClosed:
            pass

    def _take(self, message: dict[str, Any]) -> None:
        kind = message['type']
        if kind == 'NotificationShowMessage':
            self.notices.append(message['props']['body'])
            if self.repeats and self._input and self.notices[-1] == LATE[1]:
                self._send('GuiUpdateMessage', **self._input)
        name, uuid = message.get('name', ''), message.get('uuid', '')
        if kind == 'RemoveSceneNodeMessage':
            for gone in [node for node in self.nodes if node == name or node.startswith(f'{name}/')]:
                del self.nodes[gone]
        elif kind == 'GuiRemoveMessage':
            self.controls.pop(uuid, None)
        elif kind == 'GuiUpdateMessage':
            self.controls.setdefault(uuid, {}).update(message['updates'])
        elif kind.startswith('Gui') and 'props' in message:
            shown = {'kind': kind, 'value': message.get('value'), **message['props']}
            self.controls[uuid] = shown
        elif kind == 'SceneNodeUpdateMessage':
            self.nodes.setdefault(name, {}).update(message['updates'])
        elif kind in ('SetPositionMessage', 'SetOrientationMessage', 'SetSceneNodeVisibilityMessage'):
            self.nodes.setdefault(name, {}).update(message)
        elif 'props' in message and name:
            self.nodes[name] = {**message, **message['props']}

    def wait(self, condition: Callable[[], Any], what: str) -> Any:
        """Return what condition returns once that is true; fail if it never is."""
        end = time.monotonic() + TIMEOUT
        while time.monotonic() < end:
            try:
                found = condition()
            except (KeyError, RuntimeError):  # not told yet, or told at this very moment
                found = None
            if found:
                return found
            time.sleep(0.01)
        raise AssertionError(f'waited {TIMEOUT} s for {what}; the page says: {self.text()}')

    # What is seen

    def text(self) -> str:
        """The words of the panel's card."""
        return next(iter(self.html()), '')

    def words(self) -> str:
        """All words of the panel."""
        return ' '.join(self.html())

    def html(self) -> list[str]:
        """All HTML of the panel."""
        return [c['content'] for c in list(self.controls.values()) if c['kind'] == 'GuiHtmlMessage']

    def control(self, label: str) -> dict[str, Any]:
        """What is known of the control with a label."""
        return self.controls[self._uuid(label)]

    def labels(self) -> list[str]:
        """The labels of the joint sliders."""
        sliders = [c['label'] for c in list(self.controls.values()) if c['kind'] == 'GuiSliderMessage']
        return [label for label in sliders if label.endswith(('[°]', '[mm]'))]

    def _labels(self) -> list[str]:
        return [c['label'] for c in list(self.controls.values()) if 'label' in c]

    def _uuid(self, label: str) -> str:
        for uuid, control in list(self.controls.items()):
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

    def choose(self, label: str, value: Any) -> None:
        """Set a slider or a choice, or press a button of a group."""
        self.wait(lambda: label in self._labels(), label)
        self.control(label)['value'] = value  # a browser is not told of what it did itself
        self._send('GuiUpdateMessage', uuid=self._uuid(label), updates={'value': value})

    def press(self, button: str) -> None:
        """Press Home, Stop or Resume, for all tools."""
        if button == STOP:
            try:
                with urllib.request.urlopen(f'{self.url}stop', timeout=TIMEOUT) as answer:
                    assert answer.status == 200
            except urllib.error.HTTPError as error:  # nobody has stopped yet: the page says so
                if error.code != 503:
                    raise
        else:
            self.wait(lambda: {'All tools', 'Arm'} & set(self._labels()), 'the buttons')
            self.choose('All tools' if 'All tools' in self._labels() else 'Arm', button)

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


def _buffers(frame: bytes, at: int, lengths: list[int]) -> list[bytes]:
    """The binary part of a frame, each piece aligned to 8 bytes."""
    found = []
    for length in lengths:
        at += -at % 8
        found.append(frame[at : at + length])
        at += length
    return found


def with_arrays(content: Any, buffers: list[bytes]) -> Any:
    """A message with its arrays, flat, in place of their numbers."""
    if not isinstance(content, dict):
        return content
    if '__binary_index' in content:
        return np.frombuffer(buffers[content['__binary_index']], content['dtype'])
    return {key: with_arrays(value, buffers) for key, value in content.items()}
