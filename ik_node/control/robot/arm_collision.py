# SPDX-License-Identifier: Apache-2.0
"""The self-collision geometry of an arm, by its settings."""

from __future__ import annotations

from ik_node.control.settings.arm import ArmSettings
from ik_node.errors import InputError, MissingError
from ik_node.model.collision.collision import SelfCollision, unknown_links
from ik_node.model.collision.shapes import collision_shapes, disabled_pairs
from ik_node.model.joint_set import JointSet
from ik_node.model.robot import Robot

OFF = 'self-collision is not checked'
TOLD = 3  # maximum number of ignored shapes in the log


def arm_collision(
    text: str, robot: Robot, names: tuple[str, ...], joints: JointSet, settings: ArmSettings
) -> tuple[SelfCollision | None, tuple[str, ...]]:
    """Return the checker for motions of the joints names, None if there is none, and lines for the log.

    Raises MissingError or InputError if self_collision is true and it is not possible.
    """
    if settings.self_collision == 'false':
        return None, ()
    try:
        shapes, notes = collision_shapes(text, settings.mesh_path)
        excluded = list(disabled_pairs(settings.srdf_file)) if settings.srdf_file else []
        found = SelfCollision(robot, joints, names, shapes, excluded) if shapes else None
    except MissingError as error:
        if settings.self_collision == 'true':
            raise
        return None, (f'{OFF}: {error}',)
    if len(notes) > TOLD:
        notes = [*notes[:TOLD], f'and {len(notes) - TOLD} more collision shapes are ignored']
    if found is None or found.empty:
        why = notes[0] if notes else 'the description has no collision shapes that could touch each other'
        if settings.self_collision == 'true':
            raise InputError(f'parameter self_collision is true, but this is not possible: {why}')
        return None, (f'{OFF}: {why}',)
    unknown = unknown_links(robot, excluded)
    if unknown:
        notes = [*notes, f'srdf_file excludes links that do not exist: {unknown}']
    return found, (found.describe(), *notes)
