# SPDX-License-Identifier: Apache-2.0
"""Checker: checks programs for the robot and the settings of a node, and keeps its models."""

from __future__ import annotations

from collections.abc import Mapping

from ik_node.control.robot.robot_models import Models, arms_of, build_models
from ik_node.control.settings.robot import RobotSettings
from ik_node.errors import InputError, join_names, quoted
from ik_node.teach.check import Checked, check
from ik_node.teach.program import Program


class Checker:
    """Checks programs; building the models of a robot takes longer than a check. For one thread."""

    def __init__(self) -> None:
        self._built: tuple[str, RobotSettings] | None = None
        self._models: Models = {}

    def check(
        self,
        text: str,
        settings: RobotSettings,
        program: Program,
        start: Mapping[str, float],
        begin: int = 0,
        again: bool = False,
        before: Checked | None = None,
    ) -> Checked:
        """Check a program for a robot description with the settings of its node; arguments as of check.

        Raises IkError if there is no such arm.
        """
        if program.tool not in settings.arms:
            names = join_names(name or 'the only one' for name in settings.arms)
            raise InputError(f'there is no tool {quoted(program.tool)}; tools: {names}')
        if self._built is None or text != self._built[0] or not settings.same_models(self._built[1]):
            self._models = build_models(text, settings, {})
            self._built = text, settings
        model = next(one for first, one in self._models.items() if program.tool in arms_of(first, one))
        return check(model, settings.arms[program.tool], program, start, begin, again, before)
