# SPDX-License-Identifier: Apache-2.0
"""GoalThreads: one thread solves goals and changes the robot, another serves queries; or step() does."""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable, Sequence
from typing import Any

from ik_node.control.state.requests import Request
from ik_node.ros.node.robot_switch import RobotSwitch
from ik_node.ros.tools.tool_interface import NodeContext, ToolInterface

POLL = 0.005  # [s]
AFTER_ERROR = 0.1  # [s] to wait after an unexpected error, so that the loop does not spin


class GoalThreads:
    """Both end when the inboxes of the node are closed."""

    def __init__(
        self,
        shared: NodeContext,
        tools: Sequence[ToolInterface],
        switch: RobotSwitch,
        closing: threading.Event,
    ) -> None:
        """closing: set when the node is about to end."""
        self._shared, self._tools, self._switch, self._closing = shared, tools, switch, closing
        self._goals = threading.Thread(target=_repeat, args=(self._solve, self._until_drawing), daemon=True)
        self._queries = threading.Thread(target=_repeat, args=(self._answer, lambda: None), daemon=True)

    def start(self) -> None:
        """Start both threads."""
        self._goals.start()
        self._queries.start()

    def step(self) -> None:
        """Solve and answer what waits."""
        self._solve(0.0)
        self._answer(0.0)

    @property
    def ended(self) -> bool:
        """Whether the thread that solves goals has ended."""
        return self._goals.ident is not None and not self._goals.is_alive()

    def join(self) -> None:
        """Wait until the last goal is solved, 2 s at most."""
        if self._goals.ident is not None:
            self._goals.join(timeout=2.0)

    def _solve(self, timeout: float | None) -> bool:
        """Wait for requests, timeout [s] at most, and serve them; return False once the inbox is closed."""
        taken = self._shared.inbox.take(timeout)
        if taken is None:
            return False
        description, changed, requests = taken
        if description is not None or changed:
            self._try(self._switch.prepare, description)
        for tool in self._tools:
            self._try(self._serve, tool, requests.get(tool.tool, []))
        return True

    def _serve(self, tool: ToolInterface, waiting: Sequence[Request]) -> None:
        self._shared.statistics.count('superseded', max(0, len(waiting) - 1))
        while waiting and tool.leader.own.resuming and not self._closing.wait(POLL):
            pass
        tool.leader.own.submit(*waiting)
        if tool.markers.wait == 0.0:
            tool.markers.draw(tool.snapshot())

    def _answer(self, timeout: float | None) -> bool:
        """Do so with queries."""
        taken = self._shared.queries.take(timeout)
        if taken is None:
            return False
        for tool in self._tools:
            self._try(tool.leader.own.submit, *taken[2].get(tool.tool, []))
        return True

    def _try(self, act: Callable[..., None], *arguments: Any) -> None:
        """Call act; an unexpected error is logged, and the loop continues."""
        node = self._shared.node
        try:
            act(*arguments)
        except Exception:
            if not self._closing.is_set() and node.context.ok():
                error = traceback.format_exc()
                node.get_logger().error(
                    f'unexpected error, please report it: {error}', throttle_duration_sec=10.0
                )
                self._closing.wait(AFTER_ERROR)

    def _until_drawing(self) -> float | None:
        """Return the time [s] until markers must be drawn, None if none."""
        return min((wait for tool in self._tools if (wait := tool.markers.wait) is not None), default=None)


def _repeat(act: Callable[[float | None], bool], timeout: Callable[[], float | None]) -> None:
    while act(timeout()):
        pass
