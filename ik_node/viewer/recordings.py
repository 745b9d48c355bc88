# SPDX-License-Identifier: Apache-2.0
"""Recordings: between the folder Recording of the panel, the files, and the ghost of a replay."""

from __future__ import annotations

import contextlib
import io
import math
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import viser

from ik_node.steady import steady

from . import panel
from .events import Event, Worker
from .panel import GREY, NONE, RED, Colour, update
from .recording import JointTrack, Recorder, RecordingError
from .scene import Ghost
from .section import Frame, Page, RobotView, Section

LONGEST_FRAME = 0.2  # [s]: a replay does not run on while no page is open


class Replay:
    """The time at which the joints of a file are shown."""

    def __init__(self) -> None:
        self.track: JointTrack | None = None  # None until it is read
        self.failure = ''
        self.seconds = 0.0  # of the moment that is shown, since the first
        self.playing = False
        self._last = steady()

    def take(self, read: JointTrack | str) -> None:
        """Set the track, or why it cannot be read."""
        if isinstance(read, str):
            self.failure = read
        else:
            self.track = read

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
PICTURE = 'Save picture'
CHOSEN, SCRUBBED = 'chosen', 'scrubbed'
ORDER = 3e6  # of the folder: below the link lengths
STEP = 0.01  # [s] of the scrub bar; two decimals
HINT = 'Replay shows a blue ghost only: the arm is not commanded.'


class RecordingPanel:
    """The controls in the folder of a section."""

    def __init__(self, section: Section, act: Callable[[str, Event], object]) -> None:
        """act: called with what users do, also CHOSEN a file and SCRUBBED, and the event."""
        self._section, gui = section, section.gui
        with section.folder:
            self._record = gui.add_button(RECORD, color=panel.ALERT, hint='Joints, goals and status, to an MCAP file.')
            self._end = gui.add_button(END, visible=False)
            self._state = gui.add_html('')
            picture = gui.add_button(PICTURE, hint='The scene as this browser shows it, as a PNG file.')
            self._file = gui.add_dropdown('Replay', (NONE,), hint=HINT)
            self._time = gui.add_slider('Time [s]', 0.0, 1.0, STEP, 0.0, visible=False)
            self._buttons = gui.add_button_group('Playback', (PLAY, PAUSE), visible=False)
            self._answer = gui.add_html('')
        for control, what in (
            (self._record, RECORD),
            (self._end, END),
            (picture, PICTURE),
            (self._file, CHOSEN),
            (self._time, SCRUBBED),
        ):
            section.listen(control, partial(act, what))
        section.listen(self._buttons, lambda event: act(event.value, event))

    def show_recording(self, on: bool, title: str, sentence: str) -> None:
        """Show whether there is a recording, and in words how far it is or how it ended."""
        update(self._record, visible=not on)
        update(self._end, visible=on)
        pills = panel.pills((title, RED if on or title == 'Ended' else GREY)) if title else ''
        update(self._state, content=panel.box(pills + panel.paragraph(sentence)) if title else '')

    def show_files(self, names: Sequence[str]) -> None:
        """Offer these files for replay; the one that is chosen stays."""
        self._section.offer(self._file, names)

    def show_length(self, seconds: float | None) -> None:
        """Show the scrub bar for a replay of this length, or none."""
        shown = seconds is not None
        if seconds is not None:
            longest = round(max(math.ceil(seconds / STEP), 1) * STEP, 2)
            self._time.value = 0.0  # type: ignore[misc]
            self._time.max = longest
        for control in (self._time, self._buttons):
            control.visible = shown

    def show_time(self, seconds: float) -> None:
        """Move the scrub bar."""
        value = round(seconds, 2)
        if self._time.value != value and not self._section.events.pending(self._time):
            self._time.value = value  # type: ignore[misc]

    def say(self, sentence: str, wrong: bool = False) -> None:
        """Show a sentence below the replay."""
        self._answer.content = panel.answer(sentence, 'Not possible' if wrong else '')


SUFFIX = '.mcap'
BLUE: Colour = (37, 99, 235)  # of the ghost
TIMEOUT = 60.0  # [s] of a picture, for a browser that draws slowly


class Recordings(Section):
    """Records and replays. A recording goes on without a page until somebody ends it; a replay does not.

    It publishes nothing.
    """

    def __init__(self, page: Page, folder: str) -> None:
        """folder: of the recordings."""
        super().__init__(page, 'Recording', ORDER)
        self._folder = Path(folder).expanduser().absolute()
        self._topic = self.node.resolve_topic_name('joint_states')
        self._panel = RecordingPanel(self, self._process)
        self._recorder: Recorder | None = None
        self._state = ('', '')  # of the last recording
        self._reader: Worker[JointTrack | str] = Worker(
            self.events, 'replay', 'The file could not be read: see the log of ik_viewer.'
        )
        self._replay: Replay | None = None
        self._shown = False  # the panel has the length of the replay
        self._ghost: Ghost | None = None

    def show(self, robot: RobotView | None) -> None:
        """Set another robot, after the scene was cleared, or none."""
        super().show(robot)
        self._ghost = None

    def refresh(self) -> None:
        """Save what is recorded, and look for new files."""
        if self._recorder is not None:
            self._recorder.refresh()
        if self.server.get_clients():
            self._panel.show_files(self._names())

    def close(self) -> None:
        """End the recording and the thread."""
        self._end()
        self._reader.close()

    def update(self, frame: Frame) -> None:  # noqa: ARG002
        """Show the state of a recording and the next frame of a replay."""
        self._show_state()
        self._show_replay()

    def _process(self, what: str, event: Event) -> None:
        replay = self._replay
        if what == RECORD:
            self._begin()
        elif what == END:
            self._end()
        elif what == PICTURE and event.client is not None:
            threading.Thread(target=_send_picture, args=(event.client,), daemon=True).start()
        elif what == CHOSEN:
            self._choose(event.value)
        elif replay is None or replay.track is None:
            return
        elif what == PLAY:
            replay.play()
        elif what == PAUSE:
            replay.playing = False
        elif what == SCRUBBED:
            replay.scrub(event.value)

    # Record

    def _begin(self) -> None:
        if self._recorder is not None:
            return
        path = self._folder / f'{time.strftime("%Y-%m-%d_%H-%M-%S")}{SUFFIX}'
        try:
            self._recorder = Recorder(self.node, path)
        except RecordingError as error:
            self._state = ('Ended', str(error))

    def _end(self) -> None:
        recorder, self._recorder = self._recorder, None
        if recorder is None:
            return
        recorder.close()
        saved = f'{recorder.count} messages in {recorder.path}'
        self._state = ('Ended', recorder.failure) if recorder.failure else ('Saved', saved)

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
        self._reader.drop()
        self._panel.show_length(None)
        self._panel.say('')
        if name != NONE and name in self._names():
            self._replay = Replay()
            self._panel.say('Reading')
            self._reader.submit(partial(_read_track, self._folder / name, self._topic), self._replay.take)

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
        if self.robot is None:
            return
        arms = self.robot.arms
        if not any(name in arms[0].robot.joints for name in replay.track.names):
            self._panel.say('The recording is of another robot: it has none of these joints.', wrong=True)
            return
        if self._ghost is None:
            self._ghost = Ghost(self.server, '/replay', arms, self.robot.drawing, BLUE)
        self._ghost.place(replay.track.at(replay.seconds))


def _read_track(path: Path, topic: str) -> JointTrack | str:
    try:
        return JointTrack.read(path, topic)
    except RecordingError as error:
        return str(error)


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
            client.add_notification(
                'No picture', f'The browser did not send a picture within {TIMEOUT:g} s. Try again.'
            )
            return
        content = io.BytesIO()
        Image.fromarray(pixels).save(content, format='PNG')
        name = f'ik_node_{time.strftime("%Y-%m-%d_%H-%M-%S")}.png'
        client.send_file_download(name, content.getvalue(), save_immediately=True)
