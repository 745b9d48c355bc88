# SPDX-License-Identifier: Apache-2.0
"""Replay: a recording that is read in the background, and which moment of it is shown."""

from __future__ import annotations

import threading
from pathlib import Path

from ik_node.recording.definitions import RecordingError
from ik_node.recording.reading import JointTrack
from ik_node.steady import steady

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
