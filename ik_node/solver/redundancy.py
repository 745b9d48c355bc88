# SPDX-License-Identifier: Apache-2.0
"""Arms with spare joints: self-motions and locked joints."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ik_node import kernels
from ik_node.checks import Array, are_names
from ik_node.errors import InputError, join_names, quoted, safe_repr
from ik_node.kernels.arrays import DIRECTION, LATERAL
from ik_node.model.arm import Arm, frozen
from ik_node.model.joint import Joint
from ik_node.solver.goal import Goal, Solution, Solutions, Status
from ik_node.steady import steady

from .elimination import MAX_SOLUTIONS, Elimination

KEPT = 16  # smaller arms that are kept: making the constants of one takes 5 to 20 ms


class Solver(Protocol):
    """What is asked of the solver of a smaller arm: an IkSolver."""

    arm: Arm
    elimination: Elimination | None

    def solve_all(
        self,
        goal: Goal,
        seed: ArrayLike | None = None,
        locked_joints: Sequence[str] = (),
        time_budget: float = ...,
    ) -> Solutions:
        """Return every solution of goal."""


@dataclass(frozen=True, eq=False)
class ReducedArm:
    """What moves while joints are locked.

    solver: of the smaller arm. free: which of the whole arm's joints it has. before: the joints from the
    whole arm's base link to that of the smaller one.
    """

    solver: Solver
    free: NDArray[np.intp]
    before: tuple[Joint, ...]

    def pose(self, values: Iterable[float]) -> Array:
        """Return the pose (4, 4) of the smaller arm's base, its joints before at values [rad or m]."""
        pose, given = np.eye(4), iter(values)
        for joint in self.before:
            pose = pose @ (joint.pose(next(given)) if joint.movable else joint.origin)
        return pose


class LockedJoints:
    """Solves an arm completely while some of its joints stay where they are."""

    def __init__(self, arm: Arm, solver_of: Callable[[Arm], Solver]) -> None:
        """solver_of: makes the solver of a smaller arm."""
        self._arm = arm
        self._kept = lru_cache(maxsize=KEPT)(partial(_reduced, arm, solver_of))

    def solve_all(
        self,
        goal: Goal,
        seed: Array,
        locked_joints: Sequence[str],
        evaluate: Callable[[Goal, Array], Solution],
        time_budget: float,
    ) -> Solutions:
        """Return every solution with locked_joints at their values in seed (n,), best first.

        evaluate: evaluates a configuration of the whole arm by FK.
        Raises InputError: unknown names, one named twice, a value outside the limits, part of a ball with
        limits of its own.
        """
        indices = self._indices(locked_joints, seed)
        free = ~np.isin(np.arange(self._arm.n), indices)
        if not free.any():
            only = evaluate(goal, seed.copy())
            return Solutions([only] if only.solved else [], complete=True)
        reduced = self.reduced(indices, seed)
        ahead = seed[: len([joint for joint in reduced.before if joint.movable])]
        found = reduced.solver.solve_all(seen_from(reduced.pose(ahead), goal), seed[free], time_budget=time_budget)
        solutions = []
        for one in found:
            q = seed.copy()
            q[free] = one.q
            solutions.append(replace(evaluate(goal, q), status=Status.SOLVED, self_motion=one.self_motion))
        return Solutions(solutions, found.complete)

    def reduced(self, indices: Sequence[int], seed: Array) -> ReducedArm:
        """Return the reduced arm with the joints at indices, in order, locked at their values in seed (n,).

        Joints next to the base change the goal, not the arm: those of other values share a ReducedArm.
        """
        ahead = 0
        while self._arm.is_plain and ahead < len(indices) and indices[ahead] == ahead:
            ahead += 1
        return self._kept(ahead, tuple(indices[ahead:]), tuple(seed[list(indices[ahead:])].tolist()))

    def _indices(self, locked_joints: Sequence[str], seed: Array) -> list[int]:
        """Return the indices of the joints named in locked_joints, in the arm's order."""
        arm = self._arm
        for name in locked_joints:
            if name not in arm.joint_names:
                raise InputError(f'locked joint {quoted(name)} is not one of {join_names(arm.joint_names)}')
        if len(set(locked_joints)) < len(locked_joints):
            raise InputError(f'locked_joints names a joint twice: {join_names(locked_joints)}')
        indices = sorted(arm.joint_names.index(name) for name in locked_joints)
        for i in indices:
            if not arm.lower[i] <= seed[i] <= arm.upper[i]:
                raise InputError(
                    f'joint {quoted(arm.joint_names[i])} cannot be locked at {seed[i]:.6g}, outside its '
                    f'limits {arm.lower[i]:.6g} to {arm.upper[i]:.6g}'
                )
        for ball in arm.balls:
            part = set(ball.joints) & set(locked_joints)
            if ball.limited and part and (len(part) < len(ball.joints) or arm.ball_excess(seed) > 0.0):
                raise InputError(
                    f'joints {join_names(ball.joints)} form a ball joint with limits of its own: '
                    'lock all of them, within these limits, or none'
                )
        return indices


def _reduced(
    arm: Arm,
    solver_of: Callable[[Arm], Solver],
    ahead: int,
    indices: tuple[int, ...],
    values: tuple[float, ...],
) -> ReducedArm:
    """Return the ReducedArm with the first joints locked, ahead of them, and those at indices at values."""
    robot = arm.robot
    chain = robot.chain(arm.tip_link, arm.base_link)
    base, before = arm.base_link, chain[:0]
    if ahead:
        last = [joint.name for joint in chain].index(arm.joint_names[ahead - 1])
        base, before = chain[last].child, chain[: last + 1]
    locked = dict(zip((arm.joint_names[index] for index in indices), values, strict=True))
    joints = dict(robot.joints)
    for joint in chain:
        driver = robot.driver(joint.name)
        if joint.movable and driver.joint in locked:
            pose = joint.pose(driver.ratio * locked[driver.joint] + driver.shift)
            joints[joint.name] = replace(joint, type='fixed', origin=pose, mimic=None)
    names = set(arm.joint_names[:ahead]) | set(locked)
    balls = tuple(ball for ball in robot.balls if not names & set(ball.joints))
    smaller = Arm(robot.with_joints(joints, balls=balls), arm.tip_link, arm.tool_axis, arm.tool_point, base)
    free = np.array([arm.joint_names.index(name) for name in smaller.joint_names])
    return ReducedArm(solver_of(smaller), free, tuple(before))


def are_named(locked_joints: Sequence[str]) -> bool:
    """Whether locked_joints names any joints. Raises InputError unless it is a sequence of names."""
    if not are_names(locked_joints):
        raise InputError(f'locked_joints must be a list of joint names, got {safe_repr(locked_joints)}')
    return bool(locked_joints)


def seen_from(pose: Array, goal: Goal) -> Goal:
    """Return goal as seen from a frame with this pose (4, 4)."""
    packed = goal.packed.copy()
    packed[:3] = (packed[:3] - pose[:3, 3]) @ pose[:3, :3]
    packed[DIRECTION:LATERAL] = packed[DIRECTION:LATERAL] @ pose[:3, :3]
    packed[LATERAL:] = packed[LATERAL:] @ pose[:3, :3]
    return Goal.unpacked(packed)


SPACING = 0.1  # [rad] of the values of joint 1, at most
SLIDES = 64  # values of a prismatic joint 1
FEWEST = 16  # values
DESCENTS = 64  # that search for self-motions between these values


def is_redundant(arm: Arm, goal: Goal, locked: int = 0) -> bool:
    """Whether the solutions of goal form self-motions while the locked joints stay."""
    return arm.n - locked > (arm.position_dof if math.isnan(goal.packed[DIRECTION]) else arm.effective_dof)


class SelfMotions:
    """Finds the self-motions of an arm with one spare joint, for goals with a direction.

    Joint 1 takes values within its limits, and at each all solutions of the other joints are found: it is
    next to the base, so that a value changes the goal and nothing of what was prepared for the others.
    """

    def __init__(self, arm: Arm, locked: LockedJoints, options: Array) -> None:
        """options: of the search."""
        self._arm, self._locked, self._options = arm, locked, options
        opened = arm.period > 0.0
        opened[0] = kernels.turns_freely(arm.limits, arm.period, 0)
        self._opened = np.where(opened, [[-math.inf], [math.inf]], arm.limits[:2])

    @cached_property
    def _reduced(self) -> ReducedArm:
        """The other joints."""
        return self._locked.reduced([0], self._arm.middle)

    @cached_property
    def _grid(self) -> Array:
        """Values (k,) of joint 1 [rad or m], evenly spaced; of one turn if it has more."""
        low, high = self._opened[:, 0]
        if math.isinf(high - low):
            return np.linspace(-math.pi, math.pi, math.ceil(2.0 * math.pi / SPACING), endpoint=False)
        count = SLIDES if self._arm.prismatic[0] else math.ceil((high - low) / SPACING)
        return np.linspace(low, high, max(count, FEWEST))

    @cached_property
    def _poses(self) -> Array:
        """The poses (k, 4, 4) of the other joints' base."""
        return frozen(np.array([self._reduced.pose([value]) for value in self._grid]))

    def find(
        self,
        goal: Array,
        limits: Array,
        start: Array,
        state: NDArray[np.uint64],
        found: Array,
        deadline: float,
    ) -> int:
        """Write the configuration nearest to start (n,) of each self-motion to found (k, n); their number.

        goal (9,). limits (2, n): equal for idle joints. state: of random numbers. deadline:
        steady() at which it gives up. None are found where the other joints have no elimination.
        """
        elimination, arm = self._reduced.solver.elimination, self._arm
        if math.isnan(goal[DIRECTION]) or elimination is None or not elimination.forms(goal):
            return 0
        opened = self._opened.copy()
        opened[:, arm.idle] = limits[:2, arm.idle]
        low, high = opened[:, 1:]
        near = start[1:].copy()
        rows = np.empty((MAX_SOLUTIONS, arm.n - 1))
        known, first = [], [0]
        for value, seen in zip(self._grid, self._seen(goal), strict=True):
            count = elimination.solutions(seen, near, rows)[0]
            inside = rows[:count][((rows[:count] >= low) & (rows[:count] <= high)).all(axis=1)]
            known.append(np.column_stack([np.full(len(inside), value), inside]))
            first.append(first[-1] + len(inside))
            if steady() > deadline:
                return 0
        model = arm.joints, arm.tool, limits, opened, arm.period
        curves = self._grid, np.array(first), np.vstack(known)
        number: int = kernels.find_families(*model, goal, self._options, *curves, DESCENTS, state, start, found)
        return number

    def _seen(self, goal: Array) -> Array:
        """Return goal (9,) as seen from the other joints' base at each of the values, (k, 9)."""
        turns, origins = self._poses[:, :3, :3], self._poses[:, :3, 3]
        seen = np.full((len(turns), 9), math.nan)
        seen[:, :3] = np.einsum('ki,kij->kj', goal[:3] - origins, turns)
        seen[:, DIRECTION:LATERAL] = goal[DIRECTION:LATERAL] @ turns
        return seen


def self_motions_of(arm: Arm, locked: LockedJoints, options: Array) -> SelfMotions | None:
    """Return the self-motions of arm; None unless it has one spare joint, and joint 1 moves the tool."""
    if arm.has_cones or not arm.is_plain or arm.idle[0] or arm.lower[0] == arm.upper[0]:
        return None
    return SelfMotions(arm, locked, options) if np.count_nonzero(~arm.idle) == arm.effective_dof + 1 else None
