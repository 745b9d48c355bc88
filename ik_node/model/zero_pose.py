# SPDX-License-Identifier: Apache-2.0
"""A chain of joints as the kernels take it: screw axes and tool with every joint at zero."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ik_node.checks import Array
from ik_node.kernels.arrays import layout
from ik_node.model.joint import Joint


def zero_pose(
    chain: Sequence[Joint],
    drivers: Mapping[str, tuple[str, float, float]],
    joint_names: Sequence[str],
    tool_point: Array,
    tool_axes: Array,
) -> tuple[Array, Array]:
    """Return the arrays (joints, tool) of kernels/arrays/layout.py for a chain, base to tip.

    drivers: the joint that moves each movable one, with ratio and shift; joint_names: those joints, in order.
    tool_point (3,) [m], tool_axes (3, 2), main and lateral axis: in the last link's frame.
    """
    pose = np.eye(4)
    rows: list[Array] = []
    last: Array = np.zeros(3)
    for joint in chain:
        pose = pose @ joint.origin
        if joint.type == 'fixed':
            continue
        driver, ratio, shift = drivers[joint.name]
        row = np.empty(layout.SHIFT + 1)
        row[layout.AXIS] = pose[:3, :3] @ joint.axis
        row[layout.OFFSET] = pose[:3, 3] - last
        row[layout.PRISMATIC] = joint.type == 'prismatic'
        row[layout.VARIABLE] = joint_names.index(driver)
        row[layout.RATIO], row[layout.SHIFT] = ratio, shift
        rows.append(row)
        last = pose[:3, 3]
    point = pose[:3, :3] @ tool_point + pose[:3, 3] - last
    turned = pose[:3, :3] @ tool_axes
    return np.array(rows), np.concatenate([point, turned[:, 0], turned[:, 1]])
