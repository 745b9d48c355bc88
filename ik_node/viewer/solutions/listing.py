# SPDX-License-Identifier: Apache-2.0
"""Lister: every solution of a goal, those that a limit or a collision forbids, and the nearest to a miss."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ik_node.checks import Array
from ik_node.control.checks.motion_check import CLEARANCE
from ik_node.control.settings.workspace import Workspace
from ik_node.errors import MissingError
from ik_node.model.arm import Arm
from ik_node.model.collision.collision import SelfCollision
from ik_node.model.collision.shapes import collision_shapes, disabled_pairs
from ik_node.model.joint import Joint
from ik_node.model.joint_set import JointSet
from ik_node.model.robot import Robot
from ik_node.solver.goal import Goal, Solution
from ik_node.solver.solver import IkSolver

BUDGET = 0.05  # [s] for each list of a goal: a new one is due ten times per second
FIRST_BUDGET = 2.0  # [s] for the constants of an arm, computed once
REACHED = 1e-5  # [m] up to which a position counts as reached where the direction is not
ROUNDING = 1e-9  # [rad or m]


@dataclass(frozen=True, eq=False)
class Choice:
    """A configuration q (n,) of a list.

    forbidden: why the arm may not go there, '' if it may. joint, to_limit: the joint that is nearest to one
    of its limits, as a share of its range, and how far it is from it [rad or m]; None without limits.
    clearance: least distance between links [m], None where it is not known. self_motion: q is part of one.
    """

    q: Array
    forbidden: str = ''
    joint: int | None = None
    to_limit: float = math.inf
    clearance: float | None = None
    self_motion: bool = False


@dataclass(frozen=True, eq=False)
class Listing:
    """The solutions of a goal.

    allowed: nearest first. forbidden: met by the goal, but not possible. complete: the goal has no others.
    nearest: the best configuration of a goal that cannot be met, else None; allowed then holds the
    configurations that are as near.
    """

    goal: Goal
    allowed: Sequence[Choice] = ()
    forbidden: Sequence[Choice] = ()
    complete: bool = True
    nearest: Solution | None = None


@dataclass(frozen=True, eq=False)
class Query:
    """What is to be listed: a goal, and the joint positions by name where the arm is.

    locked: the joints that keep those positions. workspace: box of the tool point, as for Workspace.of.
    """

    goal: Goal
    values: Mapping[str, float] = field(default_factory=dict)
    locked: tuple[str, ...] = ()
    workspace: tuple[float, ...] = (0.0,) * 6


class Lister:
    """Lists the solutions for one arm; not to be called from several threads at once."""

    def __init__(
        self, arm: Arm, text: str = '', mesh_path: str = '', srdf_file: str = '', **options: Any
    ) -> None:
        """text: the URDF, '' to ignore self-collision. mesh_path: as for find_mesh. options: of IkSolver.

        srdf_file: path of an SRDF file with pairs of links that may touch, '' for none.
        """
        self._arm, self._joints = arm, JointSet(arm.robot)
        self.solver = IkSolver(arm, **options)
        self._opened = IkSolver(opened(arm), **options)
        for solver in (
            self.solver,
            self._opened,
        ):  # else the first list would lack what its time is too short for
            solver.solve_all(Goal(*arm.fk(arm.middle)), arm.middle, (), FIRST_BUDGET)
        self._collision = _collision(arm, self._joints, text, mesh_path, srdf_file) if text else None
        self._periods = np.where(arm.turning_period > 0.0, arm.turning_period, math.inf)

    def listing(self, query: Query) -> Listing:
        """Return the solutions of the goal."""
        arm, goal, locked = self._arm, query.goal, query.locked
        seed = np.array([query.values.get(name, 0.0) for name in arm.joint_names])
        seed = np.where(
            [name in locked for name in arm.joint_names], np.clip(seed, arm.lower, arm.upper), seed
        )
        found = self.solver.solve_all(goal, seed, locked, BUDGET)
        judged = [self._judged(one.q, query, self_motion=one.self_motion) for one in found]
        over = self._over_limits(query, seed)
        listing = Listing(
            goal,
            [choice for choice in judged if not choice.forbidden],
            [choice for choice in judged if choice.forbidden] + over,
            found.complete,
        )
        if found or locked:
            return listing
        nearest = self.solver.solve(goal, seed, BUDGET)
        rows = [nearest.q]
        if nearest.position_error < REACHED and goal.direction is not None and not nearest.solved:
            position, direction = arm.fk(nearest.q)
            near = self.solver.solve_all(Goal(position, direction), seed, locked, BUDGET)
            rows = [one.q for one in near] or rows
        near_rows = [self._judged(q, query) for q in rows]
        return replace(
            listing,
            allowed=[choice for choice in near_rows if not choice.forbidden],
            forbidden=[*(choice for choice in near_rows if choice.forbidden), *over],
            nearest=None if nearest.solved else nearest,
        )

    def _over_limits(self, query: Query, seed: Array) -> list[Choice]:
        """Return the configurations that meet the goal with at least one joint beyond its limits."""
        choices = []
        for one in self._opened.solve_all(query.goal, seed, query.locked, BUDGET):
            beyond = self._beyond(one.q)
            if beyond is not None:
                choices.append(self._judged(one.q, query, beyond))
        return choices

    def _beyond(self, q: Array) -> str | None:
        """Return which joints of q (n,) are beyond their limits at all of their turns; None if none is."""
        arm, said = self._arm, []
        for i, name in enumerate(arm.joint_names):
            excess = max(arm.lower[i] - q[i], q[i] - arm.upper[i])
            period = self._periods[i]
            if excess > ROUNDING and math.isfinite(period):
                turns = math.ceil((arm.lower[i] - ROUNDING - q[i]) / period)
                around = q[i] + period * np.array([turns - 1, turns])
                excess = float(np.maximum(arm.lower[i] - around, around - arm.upper[i]).min())
            if excess > ROUNDING:
                said.append(f'{name} {amount(excess, bool(arm.prismatic[i]))} beyond its limit')
        return ', '.join(said) or None

    def _judged(self, q: Array, query: Query, forbidden: str = '', self_motion: bool = False) -> Choice:
        """Return a configuration with its distances; as ik_node, forbid collisions and what is outside."""
        arm = self._arm
        joint, to_limit = None, math.inf
        room = np.minimum(q - arm.lower, arm.upper - q)
        limited = np.isfinite(room) & (arm.upper > arm.lower) & ~arm.idle
        if limited.any():
            shares = np.where(limited, room / np.where(limited, arm.upper - arm.lower, 1.0), math.inf)
            joint = int(shares.argmin())
            to_limit = float(room[joint])
        clearance = None
        if self._collision is not None:
            named = {**query.values, **dict(zip(arm.joint_names, q.tolist(), strict=True))}
            clearance, (one, other) = self._collision.distance(self._joints.filled(named))
            if clearance < CLEARANCE and not forbidden:
                gap = 'overlap' if clearance < 0.0 else f'come as near as {1e3 * clearance:.1f} mm to'
                forbidden = f'{one} would {gap} {other}'
        box = Workspace.of(arm, query.workspace)
        outside = box.outside(arm.fk(q)[0]) if box.given else None
        if outside is not None and not forbidden:
            forbidden = f'the tool point would be outside the workspace: {outside}'
        return Choice(q, forbidden, joint, to_limit, clearance, self_motion)


def opened(arm: Arm) -> Arm:
    """Return an arm whose revolute joints have at least a whole turn, from -pi to pi."""

    def whole(joint: Joint) -> Joint:
        if joint.type != 'revolute' or joint.mimic is not None:
            return joint
        return replace(joint, lower=min(joint.lower, -math.pi), upper=max(joint.upper, math.pi))

    robot: Robot = arm.robot.with_joints({name: whole(joint) for name, joint in arm.robot.joints.items()})
    return Arm(robot, arm.tip_link, arm.tool_axis, arm.tool_point, arm.base_link)


def _collision(arm: Arm, joints: JointSet, text: str, mesh_path: str, srdf_file: str) -> SelfCollision | None:
    excluded = list(disabled_pairs(srdf_file)) if srdf_file else []
    try:
        shapes, _ = collision_shapes(text, mesh_path)
        found = SelfCollision(arm.robot, joints, arm.joint_names, shapes, excluded) if shapes else None
    except MissingError:
        return None
    return None if found is None or found.empty else found


def spare_joint(arm: Arm) -> str | None:
    """Return the joint whose values lead along the solutions of an arm with a spare joint, None without.

    The roll about the tool, where it moves neither tool point nor tool axis, else the first joint.
    """
    free = [name for name, idle in zip(arm.joint_names, arm.idle, strict=True) if idle]
    if not free and arm.n > arm.effective_dof:
        free = list(arm.joint_names)
    return free[0] if free else None


def amount(value: float, prismatic: bool) -> str:
    """Return a joint position [rad or m] with its unit."""
    shown, unit = (1e3 * value, ' mm') if prismatic else (math.degrees(value), '°')
    return f'{shown:.0f}{unit}' if shown >= 1.0 or shown < 0.05 else f'{shown:.1f}{unit}'
