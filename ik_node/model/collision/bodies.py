# SPDX-License-Identifier: Apache-2.0
"""Bodies: the rigid bodies of a robot, and where they are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ik_node.checks import Array
from ik_node.model.joint import Joint
from ik_node.model.robot import Robot


class Bodies:
    """Links that are fixed to each other are one body; 0 is that of the root, k + 1 moves with joints[k].

    joints: the movable ones, parents first. parents: the body that each of them is mounted on. origins
    (4, 4): its pose there at value 0. of_link: the body of each link, and the pose of the link in it.
    """

    def __init__(self, robot: Robot) -> None:
        self.joints: list[Joint] = []
        self.parents: list[int] = []
        self.origins: list[Array] = []
        self.of_link: dict[str, tuple[int, Array]] = {robot.root: (0, np.eye(4))}
        for joint in robot.joints.values():
            body, pose = self.of_link[joint.parent]
            origin = pose @ joint.origin
            if joint.movable:
                self.joints.append(joint)
                self.parents.append(body)
                self.origins.append(origin)
                self.of_link[joint.child] = (len(self.joints), np.eye(4))
            else:
                self.of_link[joint.child] = (body, origin)
        self._slides = np.array([joint.type == 'prismatic' for joint in self.joints], dtype=bool)
        self._constant = np.array(self.origins).reshape(-1, 4, 4)
        terms = [joint.terms for joint in self.joints]
        self._linear = self._constant @ np.array([term[0] for term in terms]).reshape(-1, 4, 4)
        self._square = self._constant @ np.array([term[1] for term in terms]).reshape(-1, 4, 4)

    def poses(self, values: Array) -> Array:
        """Return the poses (bodies, 4, 4) in the root link at values (k,) of joints [rad or m]."""
        linear = np.where(self._slides, values, np.sin(values))[:, None, None]
        square = (1.0 - np.cos(values))[:, None, None]
        local = self._constant + linear * self._linear + square * self._square
        poses = np.empty((len(self.joints) + 1, 4, 4))
        poses[0] = np.eye(4)
        for k, parent in enumerate(self.parents):
            np.matmul(poses[parent], local[k], out=poses[k + 1])
        return poses

    def movers(self, driven: Sequence[bool]) -> list[frozenset[int]]:
        """Return by body the joints that move it, of those that are driven (k,)."""
        movers: list[frozenset[int]] = [frozenset()]
        for k, parent in enumerate(self.parents):
            movers.append(movers[parent] | {k} if driven[k] else movers[parent])
        return movers
