# SPDX-License-Identifier: Apache-2.0
"""Where points are taught, and what the editor of a point changes."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from ik_node.checks import Array
from ik_node.errors import InputError
from ik_node.model.arm import Arm, tool_at
from ik_node.model.joint import Joint
from ik_node.solver.goal import Goal
from ik_node.solver.solver import IkSolver
from ik_node.teach.check import Checked, carries
from ik_node.teach.program import Point, Program
from ik_node.viewer.panel.presses import Press
from ik_node.viewer.teach.panel import JOINTS, KEPT, MOTION, NAME, SPEED, WAIT
from ik_node.viewer.tool import ViewedTool

THERE = 1e-5  # [m] from a position that the arm can reach
FIELDS = {NAME: 'name', MOTION: 'motion', WAIT: 'wait'}


def place_of_gizmo(tool: ViewedTool, values: Mapping[str, float]) -> dict[str, Any]:
    """Return the fields of a point of the tool at the gizmo. Raises InputError without one."""
    pose = tool.scene.gizmo_pose() if tool.scene is not None else None
    if tool.scene is None or tool.arm is None or pose is None:
        raise InputError('there is no gizmo yet')
    near = {name: values[name] for name in tool.arm.joint_names if name in values}
    position, axis = tool_at(tool.arm, pose)
    direction = None
    if tool.scene.directed:
        direction = tuple(possible_direction(tool.arm, position, axis, near))
    return {'joints': None, 'position': tuple(position.tolist()), 'direction': direction, 'near': near}


def possible_direction(arm: Arm, position: Array, direction: Array, near: Mapping[str, float]) -> list[float]:
    """Return the closest direction (3,) to which the arm can turn at position (3,) [m], from joints near it.

    Where a position ties the direction, the arm comes to rest there although a user drags the gizmo
    elsewhere. At a position out of reach it is the given direction.
    """
    if arm.effective_dof < 5:
        seed = np.array([near.get(name, 0.0) for name in arm.joint_names])
        found = IkSolver(arm).solve(Goal(position, direction), seed)
        if not found.solved and found.position_error < THERE:
            direction = arm.fk(found.q)[1]
    return [float(value) for value in direction]


def place_of_arm(arm: Arm, values: Mapping[str, float]) -> dict[str, Any]:
    """Return the fields of a point in joints, where the arm is. Raises InputError if that is unknown."""
    missing = [name for name in arm.joint_names if name not in values]
    if missing:
        raise InputError(f'joint "{missing[0]}" has not been received')
    joints = {name: values[name] for name in arm.joint_names}
    return {'joints': joints, 'position': None, 'direction': None, 'near': {}}


def edited(program: Program, index: int, press: Press, arm: Arm, checked: Checked | None) -> Program:
    """Return the program after a control of the editor has changed. Raises InputError if it must not."""
    if press.what == SPEED:
        return program.with_point(index, speed=0.01 * press.value)
    if press.what == KEPT:
        return program.with_point(index, **_kept(program, index, press.value, arm, checked))
    return program.with_point(index, **{FIELDS[press.what]: press.value})


def _kept(program: Program, index: int, kind: str, arm: Arm, checked: Checked | None) -> dict[str, Any]:
    point = program.points[index]
    if kind == JOINTS:
        if point.joints is not None:
            return {}
        if checked is None or checked.program != program or not checked.moves[index].end:
            raise InputError('check the program first: then the joints of this point are known')
        return place_of_arm(arm, checked.moves[index].end)
    if point.joints is None:
        return {}
    position, direction = arm.fk(joints_of(point, arm))
    return {
        'joints': None,
        'position': tuple(position.tolist()),
        'direction': tuple(direction.tolist()),
        'near': point.joints,
    }


def joints_of(point: Point, arm: Arm) -> Array:
    """Return the joints (n,) of a point in joints. Raises InputError if they are of another arm."""
    assert point.joints is not None
    if set(point.joints) != set(arm.joint_names):
        raise InputError(f'point "{point.name}" is in joints of another arm')
    return np.array([point.joints[name] for name in arm.joint_names])


def moved(program: Program, index: int, by: int) -> tuple[Program, int]:
    """Return the program with a point moved up (-1) or down (1) in the list, and its new number."""
    to = index + by
    if not 0 <= to < len(program.points):
        return program, index
    points = list(program.points)
    points[index], points[to] = points[to], points[index]
    return dataclasses.replace(program, points=tuple(points)), to


def without(program: Program, index: int) -> Program:
    """Return the program without a point."""
    points = program.points[:index] + program.points[index + 1 :]
    return dataclasses.replace(program, points=points)


def gripper_of(arm: Arm) -> Joint | None:
    """Return the first joint that the arm carries and that moves by itself, None without one."""
    own = set(arm.joint_names)
    for joint in arm.robot.joints.values():
        if joint.type not in ('revolute', 'prismatic') or joint.mimic is not None or joint.name in own:
            continue
        if carries(arm, joint):
            return joint
    return None
