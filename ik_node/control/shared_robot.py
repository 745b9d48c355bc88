"""SharedRobot: what the arms of one robot share, so that each of them heeds what the others do."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from ik_node.checks import Array
from ik_node.errors import InputError

if TYPE_CHECKING:
    from ik_node.control.arm_joints import ArmJoints
    from ik_node.control.feedback import Feedback
    from ik_node.control.joint_group import JointGroup


class SharedRobot:
    """The arms of one robot. lock: held by whoever changes one of them.

    Every joint is commanded by one arm at most. Joints that belong to none are shown by the first arm.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self._joints: dict[object, ArmJoints] = {}  # by owner

    def put(self, owner: object, joints: ArmJoints) -> ArmJoints:
        """Note the joints that owner commands from now on, and return them."""
        self._joints[owner] = joints
        return joints

    @property
    def _arms(self) -> list[ArmJoints]:
        return list(self._joints.values())

    def is_first(self, arm: ArmJoints) -> bool:
        """Whether this arm shows the joints that belong to none."""
        return arm is self._arms[0]

    def neighbours(self, arm: ArmJoints) -> Iterator[tuple[JointGroup, bool]]:
        """Return the groups of joints of the other arms, and whether they are where they were commanded."""
        for other in self._arms:
            if other is not arm:
                for group in other.groups:
                    yield group, not other.unplaced

    def commanded(self, arm: ArmJoints) -> set[str]:
        """Return the variables that other arms command."""
        return {name for other in self._arms if other is not arm for name in other.commanded}

    def check_free(self, arm: ArmJoints, names: Collection[str]) -> None:
        """Raise InputError if another arm commands one of these variables."""
        taken = self.commanded(arm)
        for name in names:
            if name in taken:
                raise InputError(f'joint "{name}" is commanded by another tool of this robot')

    def check_known(self, arm: ArmJoints, feedback: Feedback) -> None:
        """Raise InputError if it is not known where the other arms are, which this one might hit."""
        for group, placed in self.neighbours(arm):
            for name in group.names:
                if not placed and feedback.position(name) is None:
                    raise InputError(
                        f'joint "{name}" of another tool has not been measured: arms could collide'
                    )

    def ahead(self, arm: ArmJoints, count: int, spacing: float) -> Mapping[str, Array]:
        """Return where the moving joints of the other arms will be, (count,) by name, spacing [s] apart.

        The first place is the present one; joints that have arrived stay.
        """
        with self.lock:
            moving = [group for group, _ in self.neighbours(arm) if group.motion.moving]
            twins = [(group.names, group.motion.twin()) for group in moving]
        found: dict[str, Array] = {}
        for names, motion in twins:
            rows = [motion.position]
            while motion.moving and len(rows) < count:
                rows.append(motion.step(spacing)[0])
            rows += [rows[-1]] * (count - len(rows))
            found |= dict(zip(names, np.array(rows[:count]).T, strict=True))
        return found
