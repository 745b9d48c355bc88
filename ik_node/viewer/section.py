# SPDX-License-Identifier: Apache-2.0
"""Section: a part of the panel with its folder; Worker: a thread that runs the newest task."""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from rclpy.subscription import Subscription
from sensor_msgs.msg import JointState

from .scene import Drawing
from .tool import ViewedTool


class RobotView(NamedTuple):
    """The robot that the page shows: its tools, each with its arm and scene, its URDF and its shapes."""

    tools: Sequence[ViewedTool]
    text: str
    drawing: Drawing


class Moment(NamedTuple):
    """What is known in one frame.

    tool: whose goal is shown where there is room for one. values: joint positions by name, empty until they
    are received. states: the newest joint_states, None unless they are of this frame. commanding: the gizmo
    commands the arm. options: of IkSolver in ik_node.
    """

    tool: ViewedTool
    values: Mapping[str, float]
    states: JointState | None
    commanding: bool
    options: Mapping[str, Any]


class Section:
    """A part of the page; the node calls all methods but one in its executor."""

    def show(self, shown: RobotView | None) -> None:
        """Show another robot, after the scene was cleared, or none."""

    def subscribe(self) -> Sequence[Subscription]:
        """Subscribe to what is needed while a page is open; the caller unsubscribes."""
        return ()

    def refresh(self) -> None:
        """Do what is due once per second, with a page or without."""

    def update(self, moment: Moment) -> None:
        """Process the inputs of users and show the next frame."""

    def come_to_rest(self) -> None:
        """End what moves an arm; frames continue meanwhile. Called in another thread, before close."""

    def close(self) -> None:
        """Release what is held."""


T = TypeVar('T')


class Worker(Generic[T]):
    """Runs one computation at a time; one that waits is replaced by a newer one. It sleeps without any.

    name: of the thread. failed: the result of a computation that raised an exception; it is printed.
    """

    def __init__(self, name: str, failed: T | None = None) -> None:
        self._changed = threading.Condition()
        self._failed = failed
        self._waiting: Callable[[], T] | None = None
        self._result: T | None = None
        self._newest = 0
        self._closed = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def submit(self, work: Callable[[], T]) -> None:
        """Compute work() as soon as the present computation has ended."""
        with self._changed:
            self._waiting = work
            self._changed.notify()

    def take(self) -> T | None:
        """Return the newest result, once."""
        with self._changed:
            result, self._result = self._result, None
        return result

    def drop(self) -> None:
        """Forget what waits, what runs and the result."""
        with self._changed:
            self._waiting = self._result = None
            self._newest += 1

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closed or self._waiting is not None)
                if self._closed or self._waiting is None:
                    return
                work, self._waiting = self._waiting, None
                number = self._newest
            try:
                result: T | None = work()
            except Exception:  # must not end the thread: the next computation may succeed
                traceback.print_exc()
                result = self._failed
            with self._changed:
                if number == self._newest:
                    self._result = result

    def close(self) -> None:
        """End the thread."""
        with self._changed:
            self._closed, self._waiting = True, None
            self._changed.notify()
        self._thread.join(timeout=2.0)
