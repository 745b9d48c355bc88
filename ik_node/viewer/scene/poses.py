# SPDX-License-Identifier: Apache-2.0
"""Poses (4, 4) of scene nodes."""

from __future__ import annotations

from typing import Any

import viser
from viser.transforms import SO3

from ik_node.checks import Array


def pose_of(pose: Array) -> dict[str, Any]:
    """Return the arguments that put a new scene node at a pose (4, 4)."""
    return {'wxyz': SO3.from_matrix(pose[:3, :3]).wxyz, 'position': pose[:3, 3]}


def move(node: viser.SceneNodeHandle, pose: Array) -> None:
    """Put a scene node at a pose (4, 4) in its parent."""
    node.wxyz = SO3.from_matrix(pose[:3, :3]).wxyz
    node.position = pose[:3, 3]
