"""Feedback: where joints were measured, and when."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

MOST_JOINTS = 1000  # that are remembered: measurements may name the joints of other robots too


@dataclass
class Measured:
    """The newest position of a joint [rad or m], and when it was received [s].

    streamed: it was not the first one. forgotten: something has happened since that may have moved the joint.
    """

    position: float
    time: float
    streamed: bool
    forgotten: bool = False


class Feedback:
    """The newest measurement of each joint, whoever publishes it and in whatever order."""

    def __init__(self) -> None:
        self._joints: dict[str, Measured] = {}

    def take(self, positions: Mapping[str, float], time: float) -> None:
        """Remember finite positions by joint name, received at time [s]."""
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
        """Let all that was received before now count as old."""
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
        """Let everything be as old as at time [s]: the clock was set back."""
        for joint in self._joints.values():
            joint.time = min(joint.time, time)
