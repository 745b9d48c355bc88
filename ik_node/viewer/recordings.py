# SPDX-License-Identifier: Apache-2.0
"""Recordings: between the folder Recording of the panel, the files, and the ghost of a replay."""

from __future__ import annotations

import contextlib
import csv
import io
import math
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import viser
from rclpy.node import Node

from ik_node.console import FORMULA, NUMBER
from ik_node.steady import steady

from . import panel
from .panel import GREY, NONE, RED, Colour, Press, Presses, update
from .recording import JOINTS, SECOND, JointTrack, Recorder, RecordingError, recorded
from .scene import Ghost
from .section import Moment, RobotView, Section

TIME = 'time [s]'


def csv_text(path: Path, topic: str, begin: float = -math.inf, end: float = math.inf) -> str:
    """Return the messages between two times [s] since the first joints of a topic, as CSV.

    A row has the values of one message, the other columns are empty: columns are topic/joint, with /velocity
    and /effort where there are some, topic/x to topic/qw of poses, topic/0/x and so on of several,
    topic/vx to topic/wz of twists, and topic/message or topic/name/message of reports. Raises RecordingError.
    """
    messages = list(recorded(path))
    start = next((one.received for one in messages if (one.topic, one.kind) == (topic, JOINTS)), 0)
    rows = []
    for one in messages:
        seconds = (one.received - start) / SECOND
        if begin <= seconds <= end:
            rows.append({TIME: f'{seconds:.6f}', **_values(one.topic, one.kind, one.message)})
    columns = dict.fromkeys([TIME, *(name for row in rows for name in row)])
    text = io.StringIO()
    table = csv.DictWriter(text, list(columns), lineterminator='\n')
    table.writeheader()
    table.writerows({name: _cell(value) for name, value in row.items()} for row in rows)
    return text.getvalue()


def _cell(value: Any) -> Any:
    """Return a value for CSV: text of others that a spreadsheet would execute has an apostrophe in front."""
    live = isinstance(value, str) and FORMULA.match(value) and not NUMBER.match(value)
    return f"'{value}" if live else value


def _values(topic: str, kind: str, message: Any) -> dict[str, Any]:
    before = topic.lstrip('/')
    if kind == JOINTS:
        values = {
            f'{before}/{name}': value for name, value in zip(message.name, message.position, strict=False)
        }
        for what in ('velocity', 'effort'):
            pairs = zip(message.name, getattr(message, what), strict=False)
            values |= {f'{before}/{name}/{what}': value for name, value in pairs}
        return values
    if kind.endswith('/PoseStamped'):
        return _of_pose(before, message.pose)
    if kind.endswith('/PoseArray'):
        poses = enumerate(message.poses)
        return {name: value for k, pose in poses for name, value in _of_pose(f'{before}/{k}', pose).items()}
    if kind.endswith('/TwistStamped'):
        parts = {'v': message.twist.linear, 'w': message.twist.angular}
        return {f'{before}/{sign}{axis}': getattr(parts[sign], axis) for sign in parts for axis in 'xyz'}
    if kind.endswith('/Bool'):
        return {before: message.data}
    if kind.endswith('/PointStamped'):
        return {f'{before}/{axis}': getattr(message.point, axis) for axis in 'xyz'}
    if kind.endswith('/Float64MultiArray'):
        return {f'{before}/{index}': value for index, value in enumerate(message.data)}
    if kind.endswith('/JointTrajectory') and message.points:
        last = message.points[-1].positions
        return {f'{before}/{name}': value for name, value in zip(message.joint_names, last, strict=False)}
    if kind.endswith('/DiagnosticStatus'):
        return {f'{before}/message': message.message}
    if kind.endswith('/DiagnosticArray'):
        return {f'{before}/{status.name.lstrip("/")}/message': status.message for status in message.status}
    return {}


def _of_pose(before: str, pose: Any) -> dict[str, Any]:
    return {
        **{f'{before}/{axis}': getattr(pose.position, axis) for axis in 'xyz'},
        **{f'{before}/q{axis}': getattr(pose.orientation, axis) for axis in 'xyzw'},
    }


LONGEST_FRAME = 0.2  # [s]: a replay does not run on while no page is open


class Replay:
    """Plays the joints of a file; nothing but the caller moves by it."""

    def __init__(self, path: Path, topic: str) -> None:
        """topic: of the joints."""
        self.path = path
        self.track: JointTrack | None = None  # None until it is read
        self.failure = ''
        self.seconds = 0.0  # of the moment that is shown, since the first
        self.playing = False
        self._last = steady()
        threading.Thread(target=self._read, args=(topic,), daemon=True).start()

    def _read(self, topic: str) -> None:
        try:
            self.track = JointTrack.read(self.path, topic)
        except RecordingError as error:
            self.failure = str(error)

    def play(self) -> None:
        """Continue, or restart at the end."""
        if self.track is not None and self.seconds >= self.track.seconds:
            self.seconds = 0.0
        self.playing = True

    def scrub(self, seconds: float) -> None:
        """Pause at a moment."""
        self.seconds, self.playing = seconds, False

    def tick(self) -> None:
        """Advance with the clock; call once per frame."""
        now = steady()
        passed, self._last = min(now - self._last, LONGEST_FRAME), now
        if not self.playing or self.track is None:
            return
        self.seconds = min(self.seconds + passed, self.track.seconds)
        self.playing = self.seconds < self.track.seconds


RECORD, END = 'Record', 'End recording'
PLAY, PAUSE = 'Play', 'Pause'
CSV = 'Save selection as CSV'
PICTURE = 'Save picture'
CHOSEN, SCRUBBED = 'chosen', 'scrubbed'
ORDER = 3e6  # of the folder: below the link lengths
STEP = 0.01  # [s] of the scrub bar; two decimals
HINT = 'Replay shows a blue ghost only: the arm is not commanded.'


class RecordingPanel:
    """The controls. pressed: what users did, also CHOSEN a file and SCRUBBED, until it is taken."""

    def __init__(self, gui: viser.GuiApi) -> None:
        self.pressed = Presses()
        with gui.add_folder('Recording', order=ORDER, expand_by_default=False):
            self._record = gui.add_button(
                RECORD, color='red', hint='Joints, goals and status, to an MCAP file.'
            )
            self._end = gui.add_button(END, visible=False)
            self._state = gui.add_html('')
            picture = gui.add_button(PICTURE, hint='The scene as this browser shows it, as a PNG file.')
            self._file = gui.add_dropdown('Replay', (NONE,), hint=HINT)
            self._time = gui.add_slider('Time [s]', 0.0, 1.0, STEP, 0.0, visible=False)
            self._buttons = gui.add_button_group('Playback', (PLAY, PAUSE), visible=False)
            self._selection = gui.add_multi_slider('Selection [s]', 0.0, 1.0, STEP, (0.0, 1.0), visible=False)
            self._csv = gui.add_button(CSV, visible=False)
            self._said = gui.add_html('')
        for button, what in ((self._record, RECORD), (self._end, END), (picture, PICTURE), (self._csv, CSV)):
            button.on_click(self.pressed.adder(what))
        self._file.on_update(self.pressed.adder(CHOSEN))
        self._time.on_update(self.pressed.adder(SCRUBBED))
        self._buttons.on_click(self.pressed.adder(''))

    @property
    def selection(self) -> tuple[float, float]:
        """The first and the last time [s] that are selected."""
        first, last = self._selection.value
        return float(first), float(last)

    def show_recording(self, on: bool, title: str, sentence: str) -> None:
        """Show whether there is a recording, and in words how far it is or how it ended."""
        update(self._record, visible=not on)
        update(self._end, visible=on)
        pills = panel.pills((title, RED if on or title == 'Ended' else GREY)) if title else ''
        update(self._state, content=panel.box(pills + panel.paragraph(sentence)) if title else '')

    def show_files(self, names: Sequence[str]) -> None:
        """Offer these files for replay; the one that is chosen stays."""
        self.pressed.offer(self._file, names)

    def show_length(self, seconds: float | None) -> None:
        """Show the scrub bar and the selection for a replay of this length, or none."""
        shown = seconds is not None
        if seconds is not None:
            longest = round(max(math.ceil(seconds / STEP), 1) * STEP, 2)
            self._time.value = 0.0  # type: ignore[misc]
            self._time.max = self._selection.max = longest
            self._selection.value = (0.0, longest)  # type: ignore[misc]
        for control in (self._time, self._buttons, self._selection, self._csv):
            control.visible = shown

    def show_time(self, seconds: float) -> None:
        """Move the scrub bar."""
        value = round(seconds, 2)
        if self._time.value != value and not self.pressed.waiting():
            self._time.value = value  # type: ignore[misc]

    def say(self, sentence: str, wrong: bool = False) -> None:
        """Show a sentence below the replay."""
        self._said.content = panel.answer(sentence, 'Not possible' if wrong else '')


SUFFIX = '.mcap'
BLUE: Colour = (37, 99, 235)  # of the ghost
SWELLING = 1.04  # larger than the arm, so that surfaces that coincide do not flicker
TIMEOUT = 60.0  # [s] of a picture, for a browser that draws slowly


class Recordings(Section):
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
        self._robot: RobotView | None = None
        self._ghost: Ghost | None = None
        self._listed = 0.0  # when the folder was listed (steady)

    def show(self, shown: RobotView | None) -> None:
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
