# SPDX-License-Identifier: Apache-2.0
"""RobotSwitch: builds the robot of a description and passes it to all tools once their arms rest."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial

from rclpy.impl.rcutils_logger import RcutilsLogger

from ik_node import kernels
from ik_node.control.robot.robot_models import Models, arms_of, build_models, check_models
from ik_node.control.settings.arm import ArmSettings
from ik_node.control.settings.robot import RobotSettings
from ik_node.control.settings.workspace import Workspace
from ik_node.control.state.report import Level
from ik_node.control.state.states import State
from ik_node.errors import IkError, InputError
from ik_node.ros.node.garbage import Garbage
from ik_node.ros.tools.tool_interface import ToolInterface

KEPT = 'the real arm does not change; deactivate the node before another description is published'


class RobotSwitch:
    """The robot in use, and the change to another one.

    models: of the robot in use, by its first tool; empty before the first robot. rejected: why the last
    description was rejected; empty if it was not.
    """

    def __init__(
        self,
        tools: Sequence[ToolInterface],
        settings: Callable[[], RobotSettings],
        log: RcutilsLogger,
        garbage: Garbage | None,
        closing: threading.Event,
        real: Callable[[], bool],
    ) -> None:
        """settings: returns the present ones. closing: set when the node is about to end.

        real: returns whether the commands may move a real arm.
        """
        self._tools, self._settings, self._log = tools, settings, log
        self._garbage, self._closing = garbage, closing
        self._real = real
        self._text = ''  # of the current or next robot
        self._rejected = ''  # the text that was rejected while there was none
        self.rejected = ''
        self.models: Models = {}

    @property
    def has_description(self) -> bool:
        """Whether a description is in use or about to be."""
        return bool(self._text)

    @property
    def text(self) -> str:
        """The description in use or about to be, '' without one."""
        return self._text

    def check(self, text: str, settings: RobotSettings) -> None:
        """Raise IkError if settings do not fit the robot, or that of a new text."""
        if self._text:
            check_models(text or self._text, settings, self.models)

    def prepare(self, description: str | None) -> None:
        """Switch to the robot of a new description, or with None rebuild the current one with new settings.

        If that is impossible, report it and keep the current robot.
        """
        before = self.models
        known = next((model.text for model in before.values()), '')
        text = description if description is not None else self._text or self._rejected
        if not text or known == description:
            return
        try:
            if known and known != text and self._real() and any(map(_active, self._tools)):
                raise InputError(KEPT)
            self._text, self._rejected = text, ''
            models = build_models(text, self._settings(), before)
            if self._garbage is not None:
                self._garbage.on_stage(kernels.state().stage)
                if known != text:
                    self._garbage.settle()
            if not self._give(models):
                return
        except Exception as error:
            expected = isinstance(error, IkError)
            reason = error if expected else f'unexpected error, please report it: {error!r}'
            self.rejected = f'robot_description rejected: {reason}'
            self._text, self._rejected = (known, '') if before else ('', text)
            for tool in self._tools:
                if tool.leads:
                    tool.own.tell(Level.ERROR, self.rejected, 'rejected', logged=tool is self._tools[0])
            if not expected:
                raise
            return
        self.rejected = ''
        self.models = models
        if known != text:
            self._settle_in(models, replaced=bool(before))

    def _give(self, models: Models) -> bool:
        """Pass every controller its model once its arm rests; False if the node ends before that."""
        for first, model in models.items():
            arms = arms_of(first, model)
            group = [tool for tool in self._tools if tool.tool in arms]
            group[0].bind(group)
            while not group[0].own.configure(model, partial(self._limits, first)):
                if self._closing.wait(0.005):
                    return False
        return True

    def _limits(self, first: str) -> ArmSettings:
        """Return the present settings of the arms whose first tool this is."""
        return self._settings().arms[first]

    def _settle_in(self, models: Models, replaced: bool) -> None:
        """Complete the switch to a new robot: goals for the previous one are void."""
        for tool in self._tools:
            leader = tool.leader.tool
            arm = models[leader].of(tool.tool)[0].arm
            tool.renew(arm, replaced)
            workspace = Workspace.of(arm, self._settings().arms[leader].workspace)
            self._log.info(tool.label(workspace.describe()))
        for model in models.values():
            for line in model.notes:
                self._log.info(line)


def _active(tool: ToolInterface) -> bool:
    """Whether the arm of a tool is active: it is commanded, or will be once it can."""
    return tool.own.state not in (State.UNCONFIGURED, State.INACTIVE)
