# SPDX-License-Identifier: Apache-2.0
"""Limbs on a trunk: for fixed joints of the trunk every limb is an arm of its own, with its own formula."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np

from ik_node import kernels
from ik_node.checks import Array
from ik_node.errors import UrdfError
from ik_node.kernels.arrays.layout import DIRECTION
from ik_node.model.arm import Arm, frozen
from ik_node.model.tree import Tree
from ik_node.solver.closed_form import ClosedForm, recognise
from ik_node.solver.goal import Goal
from ik_node.solver.solver import IkSolver
from ik_node.solver.trees.clock import Clock

STEP = 0.1  # [rad], or this share of the range [m], between two tested positions of the trunk
FINEST = 0.005  # the same, to which the nearest position is refined
PLACES = 25  # of the trunk, all over its range, at which the closest configuration is searched
KERNELS = ('solve_outwards', 'advance_limbs')


class Trunk:
    """Tools that share joints; the joints that only one of them has are its limb, solved by formula."""

    def __init__(self, tree: Tree, limbs: Sequence[tuple[str, Arm, Arm, ClosedForm]], options: Array) -> None:
        """limbs: by tool, the arm of the trunk, that of the limb and its formula. options: of kernels."""
        counts = tree.shared([name for name, *_ in limbs])
        own = {name: tree.columns[name][count:] for name, count in counts.items()}
        carrying = [tree.renumbered(name, trunk.joints) for name, trunk, _, _ in limbs]
        self._arrays = (
            frozen(np.vstack(carrying)),
            frozen(np.array([trunk.tool for _, trunk, _, _ in limbs])),
            np.cumsum([0, *map(len, carrying)]),
            frozen(np.array([limb.joints for _, _, limb, _ in limbs])),
            frozen(np.array([limb.tool for _, _, limb, _ in limbs])),
            frozen(np.array([limb.limits[:2] for _, _, limb, _ in limbs])),
            frozen(np.array([form.constants for _, _, _, form in limbs])),
            np.array(list(own.values())),
        )
        self._options = options
        self._limbs = [(trunk, limb, tree.columns[name]) for name, trunk, limb, _ in limbs]
        shared = {k for name, count in counts.items() for k in tree.columns[name][:count].tolist()}
        self._joint, self._span = -1, np.zeros(4)
        if len(shared) == 1:
            (self._joint,) = shared
            low, high = tree.limits[:, self._joint]
            scale = high - low if tree.prismatic[self._joint] else 1.0
            self._span = np.array([low, high, STEP * scale, FINEST * scale])
        kernels.prepare(KERNELS)

    def solve(self, goals: Array, seed: Array) -> tuple[Array, Array] | None:
        """Return joints (n,) that meet goals (K, 9) by formula, near seed (n,), and their errors (K, 2).

        The trunk stays where it is. If it has one joint, and a limb cannot follow, that moves as little as
        the limbs allow. None if nothing is found.
        """
        if any(math.isnan(direction) for direction in goals[:, DIRECTION].tolist()):
            return None
        q, errors = np.empty(len(seed)), np.empty((len(goals), 2))
        found = kernels.solve_outwards(
            *self._arrays, goals, self._options, self._joint, self._span, seed, q, errors
        )
        return (q, errors) if found else None

    @cached_property
    def _solvers(self) -> list[IkSolver]:
        """Solvers of the limbs: only goals that cannot all be met need them."""
        return [IkSolver(limb) for _, limb, _ in self._limbs]

    def spread(self, goals: Array, seed: Array, clock: Clock) -> Iterator[Array]:
        """Yield joints (n,): the shared joint all over its range, and every limb as near its goal as it gets.

        goals (K, 9). Nothing if the trunk has more than one joint, less if time runs out.
        """
        if self._joint < 0:
            return
        low, high = self._span[:2] if np.isfinite(self._span[:2]).all() else (-np.pi, np.pi)
        for value in np.linspace(low, high, PLACES):
            if clock.late:
                return
            q = seed.copy()
            q[self._joint] = value
            for (trunk, _, columns), solver, goal in zip(self._limbs, self._solvers, goals, strict=True):
                carried, own = columns[: trunk.n], columns[trunk.n :]
                q[own] = solver.solve(_seen_from(trunk.frames(q[carried]), goal), q[own], clock.left).q
            yield q

    def track(self, goals: Array, q: Array, before: Array) -> Array | None:
        """Move the limbs of q (n,) on to goals (K, 9), in place, each along its branch.

        Returns the errors (K, 2); None, with q as it was, if a limb cannot follow.
        """
        errors = np.empty((len(goals), 2))
        return (
            errors if kernels.advance_limbs(*self._arrays, goals, self._options, before, q, errors) else None
        )


def find_trunk(tree: Tree, names: Sequence[str], options: Array) -> Trunk | None:
    """Return the trunk of tools that share joints; None if a limb has no formula."""
    limbs = []
    for name, count in tree.shared(names).items():
        arm = tree.arms[name]
        chain = tree.robot.chain(arm.tip_link, arm.base_link)
        link = next(joint.child for joint in chain if joint.name == arm.joint_names[count - 1])
        try:
            limb = Arm(tree.robot, arm.tip_link, arm.tool_axis, arm.tool_point, link)
            trunk = Arm(tree.robot, link, base_link=arm.base_link)
        except UrdfError:
            return None
        form = recognise(limb)
        divided = trunk.joint_names == arm.joint_names[:count] and limb.joint_names == arm.joint_names[count:]
        if form is None or not divided:  # a joint of one may mimic a joint of the other
            return None
        limbs.append((name, trunk, limb, form))
    return Trunk(tree, limbs, options)


def _seen_from(frames: Array, goal: Array) -> Goal:
    """Return goal (9,) in the frame of a limb; frames: of the trunk, whose tool that frame is."""
    origin, z, x = frames[-3:]
    turn = np.array([x, np.cross(z, x), z])
    return Goal.unpacked(np.concatenate([turn @ (goal[:3] - origin), turn @ goal[3:6], turn @ goal[6:]]))
