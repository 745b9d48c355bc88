# SPDX-License-Identifier: Apache-2.0
"""SharedRobot: the state that the arms of one robot share to avoid conflicts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Protocol, TypeVar

from ik_node.checks import Array
from ik_node.control.checks.motion_check import places_of
from ik_node.control.joints.joint_group import JointGroup
from ik_node.control.locks import OrderedLock, Rank, holds
from ik_node.errors import InputError


class Neighbour(Protocol):
    """The part of ArmJoints that other arms of the robot use."""

    @property
    def groups(self) -> Sequence[JointGroup]: ...
    @property
    def without_position(self) -> Sequence[str]: ...
    @property
    def commanded(self) -> Collection[str]: ...


SomeArm = TypeVar('SomeArm', bound=Neighbour)


class SharedRobot:
    """The arms of one robot. lock: held during changes of an arm. output: held while setpoints are sent.

    Every joint is commanded by at most one arm. The first arm publishes joints that belong to none.
    """

    def __init__(self) -> None:
        self.lock, self.output = OrderedLock(Rank.ROBOT), OrderedLock(Rank.OUTPUT)
        self._delivers: list[Callable[[], None]] = []  # what delivers the reports of each controller
        self._joints: Mapping[object, Neighbour] = {}  # by owner; replaced, never changed
        self._changed: set[int] = set()  # arms that have not processed a change yet

    def join(self, deliver: Callable[[], None]) -> None:
        """Add a controller; deliver: delivers its reports."""
        self._delivers.append(deliver)

    @contextmanager
    def sending(self) -> Iterator[None]:
        """Exclude other threads from sending setpoints; deliver the reports afterwards."""
        try:
            with self.output:
                yield
        finally:
            self.deliver()

    def deliver(self) -> None:
        """Deliver the reports of all arms, unless this thread holds a lock: then later."""
        if not holds(Rank.OUTPUT, Rank.ROBOT):
            for deliver in self._delivers:
                deliver()

    def put(self, owner: object, joints: SomeArm) -> SomeArm:
        """Note the joints that owner commands from now on, and return them."""
        self._joints = {**self._joints, owner: joints}
        return joints

    def is_first(self, arm: Neighbour) -> bool:
        """Whether this arm publishes the joints that belong to none."""
        return arm is next(iter(self._joints.values()))

    def neighbours(self, arm: Neighbour) -> Iterator[tuple[JointGroup, bool]]:
        """Return the groups of joints of the other arms, and whether they follow a command at present."""
        for other in self._joints.values():
            if other is not arm:
                for group in other.groups:
                    yield group, group.motion.moving and not other.without_position

    def announce_change(self, arm: Neighbour) -> None:
        """Note that an arm has started another motion, or stopped before its target."""
        self._changed.update(id(other) for other in self._joints.values() if other is not arm)

    def take_change(self, arm: Neighbour) -> bool:
        """Return whether another arm has done so since the last call."""
        changed = id(arm) in self._changed
        self._changed.discard(id(arm))
        return changed

    def commanded(self, arm: Neighbour) -> set[str]:
        """Return the variables that other arms command."""
        others = (other for other in self._joints.values() if other is not arm)
        return {name for other in others for name in other.commanded}

    def check_free(self, arm: Neighbour, names: Collection[str]) -> None:
        """Raise InputError if another arm commands one of these variables."""
        taken = self.commanded(arm)
        for name in names:
            if name in taken:
                raise InputError(f'joint "{name}" is commanded by another tool of this robot')

    def check_known(self, arm: Neighbour, measured: Collection[str]) -> None:
        """Raise InputError if positions of other arms, with which this one could collide, are unknown.

        measured: names of the joints that were measured recently.
        """
        for group, _ in self.neighbours(arm):
            for name in group.names:
                if name not in measured:
                    raise InputError(f'joint "{name}" of another tool is not measured: arms could collide')

    def ahead(self, arm: Neighbour, spacing: float) -> Mapping[str, Array]:
        """Return the future positions of the moving joints of the other arms, by name, spacing [s] apart.

        From the present position to the target.
        """
        with self.lock:
            moving = [group for group, _ in self.neighbours(arm) if group.motion.moving]
            twins = [(group.names, group.motion.twin()) for group in moving]
        found: dict[str, Array] = {}
        for names, motion in twins:
            found |= dict(zip(names, places_of(motion, spacing).T, strict=True))
        return found
