# SPDX-License-Identifier: Apache-2.0
"""Preview: what ik_node would do with a goal, without moving anything; for the page and for programs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from ik_node.checks import Array
from ik_node.errors import InputError, join_names, quoted
from ik_node.model.arm import Arm
from ik_node.solver.solver import IkSolver

from .arm_motion import ArmMotion, JointArbiter
from .checks import MotionCheck, States
from .feedback import Feedback
from .models import ArmModel, Models, build_models
from .motion import SPACING, JointMotion
from .requests import Aim
from .settings import ArmSettings, RobotSettings
from .solving import GoalSolver


def _duration(motion: JointMotion) -> float:
    """Return the time [s] until a motion rests; steps it to its plan."""
    passed = 0.0
    while math.isnan(motion.remaining):
        motion.step(SPACING)
        passed += SPACING
    return passed + motion.remaining


@dataclass(frozen=True, eq=False)
class PreviewedMotion:
    """A motion that ik_node would make from rest to rest.

    end: positions of all variables by name when it has arrived. duration [s]. solved: it meets the goal, or
    follows the whole path. message: as ik_node reports it.
    """

    end: dict[str, float]
    duration: float
    solved: bool
    message: str


class Preview:
    """What the node of a model would do with goals of a tool. arm, solver: those of the tool."""

    def __init__(self, model: ArmModel, settings: ArmSettings, tool: str = '') -> None:
        self.model, self.settings, self.tool = model, settings, tool
        self._own = model.tools[tool]
        self._check = MotionCheck(model, settings)

    @property
    def arm(self) -> Arm:
        return self._own.arm

    @property
    def solver(self) -> IkSolver:
        return self._own.solver

    def rejection(self, q: Array, values: Mapping[str, float], from_rest: bool = False) -> str:
        """Return why the arm may not go to joints q (arm.n,), '' if it may.

        values: where the joints are, by name. from_rest: the arm rests there, so the motion is judged, too;
        otherwise only its end, which is much faster.
        """
        named = dict(zip(self.arm.joint_names, q.tolist(), strict=True))
        if from_rest:
            try:
                self.motion(named, values)
            except InputError as error:
                return str(error)
            return ''
        there = self.model.joints.filled({**values, **named})
        violation = self._check.violation(States.configuration(there))
        return '' if violation is None else violation.sentence

    def motion(self, aim: Aim, values: Mapping[str, float], speed: float = 1.0) -> PreviewedMotion:
        """Return the motion to a goal from rest at positions by name. Raises InputError for a rejected goal.

        speed: share of speed_scaling.
        """
        model, tool = self.model, self.tool
        settings = replace(self.settings, goal_speed=speed)
        motion, feedback = ArmMotion(model, settings, values, JointArbiter()), Feedback()
        feedback.take(values, 0.0, 0.0)  # joints off the arm are where they were measured
        before = motion.values(feedback)[0]
        solver = GoalSolver(model)
        targets = motion.targets_of(solver, aim, tool, before, only_listed=settings.uses_controller)
        end = model.joints.named(before)
        if targets.joints is not None:
            motion.begin(targets, feedback, None)
        for group in motion.groups:
            end |= dict(zip(group.names, group.motion.target.tolist(), strict=True))
        solved = targets.joints is not None and not targets.partial
        solved = solved and (targets.solution is None or targets.solution.solved)
        duration = max(_duration(group.motion.twin()) for group in motion.groups)
        return PreviewedMotion(end, duration, solved, targets.message)


class Previews:
    """The previews of a robot; its models are built again only for another description or other settings.

    For one thread.
    """

    def __init__(self) -> None:
        self._built: tuple[str, RobotSettings] | None = None
        self._models: Models = {}

    def of(self, text: str, settings: RobotSettings, tool: str) -> Preview:
        """Return the preview of a tool, with a description and the settings of its node. Raises IkError."""
        if tool not in settings.arms:
            names = join_names(name or 'the only one' for name in settings.arms)
            raise InputError(f'there is no tool {quoted(tool)}; tools: {names}')
        if self._built is None or text != self._built[0] or not settings.same_models(self._built[1]):
            self._models = build_models(text, settings, {})
            self._built = text, settings
        model = next(one for one in self._models.values() if tool in one.tools)
        return Preview(model, settings.arms[tool], tool)
