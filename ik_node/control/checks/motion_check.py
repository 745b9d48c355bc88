# SPDX-License-Identifier: Apache-2.0
"""MotionCheck: the whole motion to a target, simulated and checked before it starts."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import islice

import numpy as np

from ik_node.checks import Array
from ik_node.control.checks.cone_gate import ConeGate
from ik_node.control.motion.motion import JointMotion
from ik_node.control.motion.plans import JointPlan
from ik_node.control.motion.tool_motion import tool_motion
from ik_node.control.paths.tool_path import ToolPath
from ik_node.control.robot.arm_model import JointModel
from ik_node.control.settings.workspace import Workspace
from ik_node.control.state.report import Level
from ik_node.control.state.requests import Aim
from ik_node.control.state.target_plan import TargetPlan, filled
from ik_node.errors import InputError
from ik_node.solver.goal import Goal, Solution

SPACING = 0.01  # [s] between two checked positions; joints move in straight lines between them
LONGEST = 3000  # positions: the rest of a longer motion is checked by the gate only
CLEARANCE = 1e-3  # [m] between links during a motion
CLEARANCE_EN_ROUTE = 0.5 * CLEARANCE  # [m] during the rest of a motion, when another arm changes its own
ALTERNATIVES = 8  # number of other solutions to try

Preview = Callable[[Array], JointMotion]  # a copy of the motion to these targets
Others = Callable[[float], Mapping[str, Array]]  # future positions of other arms, see SharedRobot.ahead


class MotionCheck:
    """Checks the motions of an arm. workspaces: the boxes of its tool points."""

    def __init__(self, model: JointModel, workspaces: Sequence[Workspace], others: Others) -> None:
        self._model, self._others = model, others
        self._collision, self._cones = model.collision, ConeGate.of(model.robot, model.joint_names)
        self._bounded = [
            (tool.arm, columns, workspace)
            for (tool, columns), workspace in zip(model.tools(), workspaces, strict=True)
            if workspace.given
        ]

    def check_goal(self, wanted: Aim, tool: str) -> None:
        """Raise InputError for a goal of a tool in another unit, or outside a workspace set by the user."""
        arm = self._model.of(tool)[0].arm
        points = wanted.points if isinstance(wanted, ToolPath) else ()
        for point in (wanted.position,) if isinstance(wanted, Goal) else points:
            if doubt := arm.too_far(point):
                raise InputError(f'the goal is {doubt}')
        for workspace in [box for bounded, _, box in self._bounded if bounded is arm]:
            outside = workspace.outside(wanted.position) if isinstance(wanted, Goal) else None
            if outside is not None:
                raise InputError(f'the goal is outside the workspace: {outside}')

    def choose(
        self, plan: TargetPlan, tool: str, values: Array, preview: Preview, follows: bool = False
    ) -> TargetPlan:
        """Return plan if its motion is allowed, else one with another solution whose motion is.

        values: all variables (n,) now. follows: the arm follows a moving goal, and each of its steps is
        checked. If there is none, raises InputError with the position and the reason.
        """
        free = self._collision is None and self._cones is None and not self._bounded
        if plan.joints is None or free:
            return plan
        if plan.path is not None:  # there is no alternative to a path
            self._check_places(plan.path.places(SPACING), values)
            return plan
        if follows and self._is_clear_to(plan.joints, values):
            return plan
        try:
            self._check(plan.joints, values, preview)
            return plan
        except InputError as error:
            reason = error
        if plan.goal is not None and plan.solution is not None and plan.solution.solved:
            seed = values[self._model.index]
            others = self._model.alternatives(tool, plan.goal, seed)
            for q, other in islice(others, ALTERNATIVES):
                try:
                    self._check(q, values, preview)
                except InputError:
                    continue
                return _instead(plan, q, other, reason)
        raise reason

    def _check(self, joints: Array, values: Array, preview: Preview) -> None:
        """Raise InputError if the motion to joints (k,) leaves the workspace or a cone, or collides."""
        if self._cones is not None:
            outside = self._cones.outside(filled(joints, values[self._model.index]))
            if outside is not None:
                raise InputError(f'the joints cannot move there: {outside}')
        if not self._clear(preview(joints), values):
            self._check_places(places_of(preview(joints)), values)

    def _check_places(self, places: Array, values: Array) -> None:
        reason = self.rejection(places, values)
        if reason is not None:
            raise InputError(reason)

    def _is_clear_to(self, joints: Array, values: Array) -> bool:
        """Whether a monotonic motion to joints (k,) is known to be allowed."""
        now = values[self._model.index]
        end = filled(joints, now)
        return self.is_clear(np.minimum(now, end), np.maximum(now, end), values)

    def _clear(self, motion: JointMotion, values: Array) -> bool:
        """Whether a motion is known to be free of collisions, without simulating it; modifies it."""
        begin = motion.position
        motion.step(SPACING)
        plan = motion.plan
        if math.isnan(motion.remaining) or not isinstance(plan, JointPlan):
            return False
        return self.is_clear(np.minimum(begin, plan.low), np.maximum(begin, plan.high), values)

    def is_clear(self, low: Array, high: Array, values: Array) -> bool:
        """Whether all motions of the arm between low and high (n,) are known to be allowed.

        Much faster than rejection. values: all variables.
        """
        if self._bounded or self._cones is not None or self._others(SPACING):
            return False
        if self._collision is None:
            return True
        least, most = values.copy(), values.copy()
        least[self._model.index], most[self._model.index] = low, high
        return self._collision.clear(least, most, CLEARANCE)

    def rejection(self, places: Array, values: Array, clearance: float = CLEARANCE) -> str | None:
        """Return why the arm must not move along positions (k, n), SPACING apart; values: all variables.

        clearance [m]: between links.
        """
        for arm, columns, workspace in self._bounded:
            points = tool_motion(arm, places[:, columns], np.zeros((len(places), arm.n))).point
            allowed = workspace.reaching(points[0])
            for k, point in enumerate(points):
                outside = allowed.outside(point)
                if outside is not None:
                    return f'the tool point would leave the workspace after {k * SPACING:.2f} s: {outside}'
        beyond = None if self._cones is None else self._cones.rejection(places)
        if beyond is not None:
            return f'{beyond[1]}, {beyond[0] * SPACING:.2f} s after the start'
        if self._collision is not None:
            own = dict(zip(self._model.joint_names, places.T, strict=True))
            path = self._model.path(values, {**self._others(SPACING), **own})
            hit = self._collision.along(path, clearance)
            if hit is not None:
                index, distance, (one, other) = hit
                gap = (
                    f'overlap by {-distance:.4f} m' if distance < 0.0 else f'come as near as {distance:.4f} m'
                )
                when = 'at the end' if index >= len(path) - 1 else f'after {index * SPACING:.2f} s'
                return f'link "{one}" and link "{other}" would {gap} {when} of the motion'
        return None


def _instead(plan: TargetPlan, joints: Array, solution: Solution, reason: InputError) -> TargetPlan:
    said = f'solved: with another solution, because with the nearest {reason}; moving to the goal'
    return replace(plan, joints=joints, solution=solution, message=said, level=Level.WARN)


def places_of(motion: JointMotion, spacing: float = SPACING) -> Array:
    """Return positions (k, n) of a motion until it rests, spacing [s] apart; steps the motion to its plan."""
    places = [motion.position]
    while motion.moving and len(places) < LONGEST:
        if not math.isnan(motion.remaining):  # it has the plan to its end
            return np.vstack([places, motion.planned(spacing, LONGEST - len(places))])
        places.append(motion.step(spacing)[0])
    return np.array(places)
