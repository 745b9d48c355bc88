# SPDX-License-Identifier: Apache-2.0
"""The benchmark's own FK, by which every solver's answers are judged, against yourdfpy's."""

from __future__ import annotations

import io
import itertools

import numpy as np
import pytest
import yourdfpy

pytest.importorskip('benchmarks', reason='benchmarks/ is importable from the repository root only')

from benchmarks.arms import TOLERANCE, Task, real_arms, shipped_arms

TASKS = shipped_arms() + real_arms()


@pytest.mark.parametrize('task', TASKS, ids=[task.name for task in TASKS])
def test_fk_agrees_with_yourdfpy(task: Task) -> None:
    """Tool point and tool axis at random joints, mimic joints followed."""
    robot = yourdfpy.URDF.load(io.BytesIO(task.xml.encode()), load_meshes=False)
    q = task.arm.sample(np.random.default_rng(0), 10)
    points, axes = task.chain.fk(q)
    for row, point, axis in zip(q, points, axes, strict=True):
        robot.update_cfg(dict(zip(task.chain.names, row, strict=True)))
        pose = robot.get_transform(task.arm.tip_link, task.arm.base_link)
        assert np.allclose(pose[:3, :3] @ task.arm.tool_point + pose[:3, 3], point, atol=1e-9)
        assert np.allclose(pose[:3, :3] @ task.arm.tool_axis, axis, atol=1e-9)


@pytest.mark.parametrize('task', shipped_arms(), ids=[task.name for task in shipped_arms()])
def test_judge_accepts_solutions_only(task: Task) -> None:
    """The joints that made a goal are good; a little off, outside the limits or NaN, they are not."""
    positions, directions, q = task.goals(50)
    assert task.good(q, positions, directions).all()
    turn = np.where(task.arm.prismatic, 0.0, 2 * np.pi)
    assert task.good(q + turn, positions, directions).all(), 'whole turns do not matter'
    assert not task.good(np.full_like(q, np.nan), positions, directions).any()
    away = directions[:, [1, 2, 0]]
    assert not task.good(q, positions + 2 * TOLERANCE * away, directions).any()
    tilted = directions + 2 * TOLERANCE * np.cross(directions, away)
    apart = np.linalg.norm(np.cross(directions, tilted), axis=1) > 1.1 * TOLERANCE
    assert not task.good(q, positions, tilted)[apart].any()
    for joint, side in itertools.product(np.flatnonzero(~task.arm.continuous), (-1, 1)):
        beyond = q.copy()
        limit = task.arm.lower if side < 0 else task.arm.upper
        beyond[:, joint] = limit[joint] + side * 1e-5
        if task.arm.upper[joint] - task.arm.lower[joint] < 2 * np.pi - 1e-4:
            position_errors, _, _ = task.errors(beyond, *task.chain.fk(beyond))
            assert np.isinf(position_errors).all()
