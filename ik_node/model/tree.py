# SPDX-License-Identifier: Apache-2.0
"""Tree: several tools on one robot, and the joints that they share."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ik_node.checks import Array, are_names, real_array
from ik_node.errors import InputError, join_names, quoted, safe_repr, titled
from ik_node.kernels.arrays import SHIFT, VARIABLE
from ik_node.model.robot import Robot
from ik_node.model.urdf.reader import read_file, read_urdf

from .arm import Arm, frozen, joint_array


def joined(joints: Mapping[str, Collection[str]]) -> tuple[tuple[str, ...], ...]:
    """Divide tools, given their joints by name, into groups that share no joints with each other."""
    names = list(joints)
    groups: list[tuple[set[str], list[str]]] = []
    for name in names:
        own, members = set(joints[name]), [name]
        for group in [group for group in groups if group[0] & own]:
            groups.remove(group)
            own, members = own | group[0], group[1] + members
        groups.append((own, members))
    return tuple(tuple(sorted(each, key=names.index)) for _, each in groups)


@dataclass(frozen=True, eq=False)
class Tool:
    """What one tool is: its tip link, and in the frame of that its axis (unit) and point [m], (3,) each."""

    tip_link: str
    axis: ArrayLike = (0.0, 0.0, 1.0)
    point: ArrayLike = (0.0, 0.0, 0.0)


class Tree:
    """The joints from one base link to the tips of several named tools.

    arms: by tool, the Arm from the base link to its tip. joint_names (n names): the joints of all tools,
    those of the first tool first. limits (2, n), lower, upper (n,) [rad or m], continuous, prismatic (n,);
    columns: by tool, where its joints (arm.n,) are among them. A mimic joint counts as the one it follows.
    """

    def __init__(self, robot: Robot, tools: Mapping[str, Tool], base_link: str | None = None) -> None:
        """Build from a robot read by read_urdf. base_link: default the root.

        Raises UrdfError for links or joints that do not form an arm, InputError for anything else.
        """
        if not isinstance(robot, Robot):
            raise InputError(f'robot must be a Robot, as read_urdf returns it, got {safe_repr(robot)}')
        if not isinstance(tools, Mapping) or not tools:
            raise InputError(f'tools must name at least one Tool, got {safe_repr(tools)}')
        for name, tool in tools.items():
            if not isinstance(name, str) or not name or not isinstance(tool, Tool):
                raise InputError(f'tools must be of type Tool, by name, got {safe_repr(name)}: {safe_repr(tool)}')
        self._join({name: Arm(robot, tool.tip_link, tool.axis, tool.point, base_link) for name, tool in tools.items()})

    @classmethod
    def of(cls, arms: Mapping[str, Arm]) -> Tree:
        """Return the tree of at least one arm, by tool, with the same base link of the same robot.

        Raises InputError for anything else.
        """
        if not isinstance(arms, Mapping) or not arms:
            raise InputError(f'arms must name at least one Arm, got {safe_repr(arms)}')
        for name, arm in arms.items():
            if not isinstance(name, str) or not isinstance(arm, Arm):
                raise InputError(f'arms must be of type Arm, by name, got {safe_repr(name)}: {safe_repr(arm)}')
        first = next(iter(arms.values()))
        for arm in arms.values():
            if arm.robot is not first.robot or arm.base_link != first.base_link:
                raise InputError(f'arms must have the same robot and base link, got {arm.describe()}')
        tree = cls.__new__(cls)
        tree._join(arms)
        return tree

    def _join(self, arms: Mapping[str, Arm]) -> None:
        first = next(iter(arms.values()))
        self.robot, self.name, self.base_link = first.robot, first.name, first.base_link
        self.arms = dict(arms)
        self.joint_names = tuple(dict.fromkeys(joint for arm in self.arms.values() for joint in arm.joint_names))
        self.n = len(self.joint_names)
        self.columns = {
            name: frozen(np.array([self.joint_names.index(joint) for joint in arm.joint_names]))
            for name, arm in self.arms.items()
        }
        self.limits = np.empty((2, self.n))
        self.continuous, self.prismatic = np.empty(self.n, dtype=bool), np.empty(self.n, dtype=bool)
        for name, arm in self.arms.items():
            self.limits[:, self.columns[name]] = arm.limits[:2]
            self.continuous[self.columns[name]] = arm.continuous
            self.prismatic[self.columns[name]] = arm.prismatic
        for array in (self.limits, self.continuous, self.prismatic):
            array.flags.writeable = False
        self.lower, self.upper = self.limits
        self._groups: dict[tuple[str, ...], tuple[tuple[str, ...], ...]] = {}

    @classmethod
    def from_urdf(cls, xml_text: str, tools: Mapping[str, Tool], **options: Any) -> Tree:
        """Read URDF text; further arguments as for Tree."""
        return cls(read_urdf(xml_text), tools, **options)

    @classmethod
    def from_file(
        cls,
        path: str | os.PathLike[str],
        tools: Mapping[str, Tool],
        *,
        xacro_args: Mapping[str, object] | str | None = None,
        **options: Any,
    ) -> Tree:
        """Read a .urdf or .xacro file with xacro_args as for Arm; further arguments as for Tree."""
        return cls(read_file(path, xacro_args), tools, **options)

    def groups(self, names: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
        """Divide names of tools into groups that share no joints with each other."""
        try:
            return self._groups[names]
        except (KeyError, TypeError):
            self.check_names(names, 'names')
        groups = joined({name: self.arms[name].joint_names for name in names})
        return self._groups.setdefault(tuple(names), groups)

    def shared(self, names: Sequence[str]) -> dict[str, int]:
        """Return for names of tools how many joints, counted from the base, also move another of them."""
        self.check_names(names, 'names')
        users = np.zeros(self.n, dtype=int)
        for name in names:
            users[self.columns[name]] += 1
        return {name: int(np.flatnonzero(users[self.columns[name]] > 1).max(initial=-1)) + 1 for name in names}

    @property
    def middle(self) -> Array:
        """Mid-range configuration (n,); 0 for a continuous joint."""
        q = np.empty(self.n)
        for name, arm in self.arms.items():
            q[self.columns[name]] = arm.middle
        return q

    def sample(self, rng: np.random.Generator, count: int) -> Array:
        """Return configurations (count, n), uniform within the limits. Raises InputError."""
        rows = {name: arm.sample(rng, count) for name, arm in self.arms.items()}
        q = np.empty((count, self.n))
        for name, own in rows.items():
            q[:, self.columns[name]] = own
        return q

    def checked(self, q: ArrayLike, name: str = 'q') -> Array:
        """Return q as a new array (n,). Raises InputError unless it is n finite numbers."""
        return joint_array(name, q, self.joint_names)

    def renumbered(self, name: str, joints: Array) -> Array:
        """Return joints (m, 10) of a tool's chain (see kernels.forward), driven by columns of the tree.

        Raises InputError for an unknown tool, and joints that are not of its arm.
        """
        self.check_names([name], 'name')
        try:
            rows = real_array(joints)
        except (TypeError, ValueError, OverflowError):
            rows = np.empty(0)
        columns = self.columns[name]
        fits = rows.ndim == 2 and rows.shape[1] == SHIFT + 1
        if not fits or not np.isin(rows[:, VARIABLE], range(len(columns))).all():
            raise InputError(f'joints must be rows of the joints of an arm, got {safe_repr(joints)}')
        rows[:, VARIABLE] = columns[rows[:, VARIABLE].astype(int)]
        return rows

    def fk(self, q: ArrayLike) -> dict[str, tuple[Array, Array]]:
        """Return tool point (3,) [m] and tool axis (3,) by tool, in the base link's frame, at q (n,)."""
        values = self.checked(q)
        return {name: arm.fk(values[self.columns[name]]) for name, arm in self.arms.items()}

    def check_names(self, names: Collection[str], what: str) -> None:
        """Raise InputError for unknown tools. what: how a message calls them."""
        if not are_names(names, Mapping, Set):
            raise InputError(f'{titled(what)} must be names of tools, got {safe_repr(names)}')
        unknown = [name for name in names if name not in self.arms]
        if unknown:
            known = join_names(self.arms)
            raise InputError(f'{titled(what)}: no tool is called {quoted(str(unknown[0]))}; tools: {known}')

    def describe(self) -> str:
        """Return one sentence: on a single tool that of its arm, else on the joints that tools share."""
        if len(self.arms) == 1:
            return next(iter(self.arms.values())).describe()
        tools = ', '.join(f'{name} ({arm.n} joints)' for name, arm in self.arms.items())
        shared = self.shared(tuple(self.arms))
        common = {joint: None for name, arm in self.arms.items() for joint in arm.joint_names[: shared[name]]}
        sharing = f'shared: {join_names(common)}' if common else 'no joint is shared'
        return f'{self.name}: {self.n} joints for the tools {tools}; {sharing}'
