# SPDX-License-Identifier: Apache-2.0
"""Recordings: between the folder Recording of the panel, the files, and the ghost of a replay."""

from __future__ import annotations

import contextlib
import io
import threading
import time
from pathlib import Path

import viser
from rclpy.node import Node

from ik_node.recording.definitions import RecordingError
from ik_node.recording.recorder import Recorder
from ik_node.recording.table import csv_text
from ik_node.steady import steady
from ik_node.viewer.panel.html import Colour
from ik_node.viewer.panel.presses import NONE, Press
from ik_node.viewer.recording.panel import (
    CHOSEN,
    CSV,
    END,
    HINT,
    PAUSE,
    PICTURE,
    PLAY,
    RECORD,
    SCRUBBED,
    RecordingPanel,
)
from ik_node.viewer.recording.replay import Replay
from ik_node.viewer.room import Moment, Room, Shown
from ik_node.viewer.scene.ghost import Ghost

SUFFIX = '.mcap'
BLUE: Colour = (37, 99, 235)  # of the ghost
SWELLING = 1.04  # larger than the arm, so that surfaces that coincide do not flicker
TIMEOUT = 60.0  # [s] of a picture, for a browser that draws slowly


class Recordings(Room):
    """Records and replays. A recording goes on without a page until somebody ends it; a replay does not.

    It publishes nothing.
    """

    def __init__(self, node: Node, server: viser.ViserServer, folder: str) -> None:
        """folder: of the recordings."""
        self._node, self._server = node, server
        self._folder = Path(folder).expanduser().absolute()
        self._topic = node.resolve_topic_name('joint_states')
        self._panel = RecordingPanel(server.gui)
        self._recorder: Recorder | None = None
        self._state = ('', '')  # of the last recording
        self._replay: Replay | None = None
        self._shown = False  # the panel has the length of the replay
        self._robot: Shown | None = None
        self._ghost: Ghost | None = None
        self._listed = 0.0  # when the folder was listed (steady)

    def show(self, shown: Shown | None) -> None:
        """Set another robot, after the scene was cleared, or none."""
        self._robot, self._ghost = shown, None

    def refresh(self) -> None:
        """Save what is recorded; call once per second, with a page or without."""
        if self._recorder is not None:
            self._recorder.refresh()

    def close(self) -> None:
        """End the recording."""
        self._end()

    def update(self, moment: Moment) -> None:  # noqa: ARG002
        """Process the inputs of users and show the next frame of a replay."""
        for press in self._panel.pressed.take():
            self._process(press)
        self._show_state()
        now = steady()
        if now - self._listed > 1.0:
            self._listed = now
            self._panel.show_files(self._names())
        self._show_replay()

    def _process(self, press: Press) -> None:
        replay = self._replay
        if press.what == RECORD:
            self._begin()
        elif press.what == END:
            self._end()
        elif press.what == PICTURE and press.client is not None:
            threading.Thread(target=_send_picture, args=(press.client,), daemon=True).start()
        elif press.what == CHOSEN:
            self._choose(press.value)
        elif replay is None or replay.track is None:
            return
        elif press.what == PLAY:
            replay.play()
        elif press.what == PAUSE:
            replay.playing = False
        elif press.what == SCRUBBED:
            replay.scrub(press.value)
        elif press.what == CSV and press.client is not None:
            arguments = replay.path, self._panel.selection, press.client
            threading.Thread(target=self._send_csv, args=arguments, daemon=True).start()

    # Record

    def _begin(self) -> None:
        if self._recorder is not None:
            return
        path = self._folder / f'{time.strftime("%Y-%m-%d_%H-%M-%S")}{SUFFIX}'
        try:
            self._recorder = Recorder(self._node, path)
        except RecordingError as error:
            self._state = ('Ended', str(error))

    def _end(self) -> None:
        recorder, self._recorder = self._recorder, None
        if recorder is None:
            return
        recorder.close()
        saved = f'{recorder.count} messages in {recorder.path}'
        self._state = ('Ended', recorder.failure) if recorder.failure else ('Saved', saved)
        self._listed = 0.0

    def _show_state(self) -> None:
        recorder = self._recorder
        if recorder is not None and recorder.failure:
            self._end()
        elif recorder is not None:
            sentence = f'{recorder.seconds:.0f} s, {recorder.count} messages, to {recorder.path}'
            self._panel.show_recording(True, 'Recording', sentence)
            return
        self._panel.show_recording(False, *self._state)

    # Replay

    def _names(self) -> list[str]:
        """Return the names of the recordings, the newest first, without the one that is being made."""
        present = self._recorder.path if self._recorder is not None else None
        try:
            paths = [path for path in self._folder.glob(f'*{SUFFIX}') if path != present]
        except OSError:
            return []
        return sorted((path.name for path in paths), reverse=True)

    def _choose(self, name: str) -> None:
        if self._ghost is not None:
            self._ghost.remove()
            self._ghost = None
        self._replay, self._shown = None, False
        self._panel.show_length(None)
        self._panel.say('')
        if name != NONE and name in self._names():
            self._replay = Replay(self._folder / name, self._topic)
            self._panel.say('Reading')

    def _show_replay(self) -> None:
        replay = self._replay
        if replay is None:
            return
        if replay.failure:
            self._panel.say(replay.failure, wrong=True)
            return
        if replay.track is None:
            return
        if not self._shown:
            self._shown = True
            self._panel.show_length(replay.track.seconds)
            self._panel.say(HINT)
        replay.tick()
        self._panel.show_time(replay.seconds)
        if self._robot is None:
            return
        arms = [tool.arm for tool in self._robot.tools if tool.arm is not None]
        if not any(name in arms[0].robot.joints for name in replay.track.names):
            self._panel.say('The recording is of another robot: it has none of these joints.', wrong=True)
            return
        if self._ghost is None:
            self._ghost = Ghost(self._server, '/replay', arms, self._robot.drawing, BLUE, SWELLING)
        self._ghost.place(replay.track.at(replay.seconds))

    def _send_csv(self, path: Path, selection: tuple[float, float], client: viser.ClientHandle) -> None:
        try:
            text = csv_text(path, self._topic, *selection)
        except RecordingError as error:
            self._panel.say(str(error), wrong=True)
            return
        client.send_file_download(f'{path.stem}.csv', text.encode(), save_immediately=True)


def _send_picture(client: viser.ClientHandle) -> None:
    """Send a browser what it shows of the scene, without the panel, as a PNG file; block."""
    from PIL import Image

    camera = client.camera
    with contextlib.suppress(RuntimeError):  # the page was closed meanwhile
        try:
            pixels = client.get_render(
                camera.image_height, camera.image_width, transport_format='jpeg', timeout=TIMEOUT
            )
        except TimeoutError:
            client.add_notification('No picture', f'The browser sent none within {TIMEOUT:g} s. Try again.')
            return
        content = io.BytesIO()
        Image.fromarray(pixels).save(content, format='PNG')
        name = f'ik_node_{time.strftime("%Y-%m-%d_%H-%M-%S")}.png'
        client.send_file_download(name, content.getvalue(), save_immediately=True)
