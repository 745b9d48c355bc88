"""Feedback: measured joint positions and their times."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

MOST_JOINTS = 1000  # stored at most: measurements may also name joints of other robots


@dataclass
class Measured:
    """The newest position of a joint [rad or m], and when it was received [s].

    streamed: it was not the first one. forgotten: the joint may have moved since.
    """

    position: float
    time: float
    streamed: bool
    forgotten: bool = False


class Feedback:
    """The newest measurement of each joint, from any publisher and in any order."""

    def __init__(self) -> None:
        self._joints: dict[str, Measured] = {}

    def take(self, positions: Mapping[str, float], time: float) -> None:
        """Store finite positions by joint name, received at time [s]."""
        for name, position in positions.items():
            before = self._joints.get(name)
            if before is None and len(self._joints) >= MOST_JOINTS:
                continue
            self._joints[name] = Measured(position, time, streamed=before is not None)

    def position(self, name: str) -> float | None:
        """Return the newest position of a joint, None if it was never measured."""
        measured = self._joints.get(name)
        return None if measured is None else measured.position

    def fresh(self, time: float, timeout: float) -> dict[str, float]:
        """Return positions received since forget and, unless timeout [s] is 0, within it of time [s]."""
        return {
            name: joint.position
            for name, joint in self._joints.items()
            if not joint.forgotten and (timeout == 0.0 or time - joint.time <= timeout)
        }

    def forget(self) -> None:
        """Mark everything received so far as outdated."""
        for joint in self._joints.values():
            joint.forgotten = True

    def stale(self, names: Iterable[str], time: float, timeout: float) -> str | None:
        """Return a joint of names whose stream of measurements has been silent for longer than timeout [s].

        A joint that was measured only once has no stream.
        """
        for name in names:
            joint = self._joints.get(name)
            if joint is not None and joint.streamed and time - joint.time > timeout:
                return name
        return None

    def restart(self, time: float) -> None:
        """Limit all times to time [s]: the clock was set back."""
        for joint in self._joints.values():
            joint.time = min(joint.time, time)
