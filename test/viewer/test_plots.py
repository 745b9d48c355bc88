# SPDX-License-Identifier: Apache-2.0
"""Rows of plots, and the maps of the workspace, without a page."""

from __future__ import annotations

import math

import numpy as np
import pytest
from rclpy.time import Time
from sensor_msgs.msg import JointState
from viewer_harness import SEED_ARM, SEED_JOINTS

from ik_node.model.arm import Arm
from ik_node.solver.reachable_directions import fibonacci_sphere, reachable_directions
from ik_node.viewer.plots.history import LENGTH, PERIOD, Commands, History, positions, velocities
from ik_node.viewer.reach.grid import horizontal, vertical
from ik_node.viewer.reach.heat import image
from ik_node.viewer.reach.reach_map import DIRECTIONS, WITHIN, computed

ARM = Arm.from_urdf(SEED_ARM)
UNKNOWN = np.full(5, math.nan)


def message(seconds: float, *values: float, **more: list[float]) -> JointState:
    said = JointState(name=list(SEED_JOINTS[: len(values)]), position=list(values), **more)
    said.header.stamp = Time(nanoseconds=round(seconds * 1e9)).to_msg()
    return said


def test_rows_have_velocities_and_errors_and_the_oldest_go() -> None:
    history = History(ARM)
    goal = ARM.robot.link_pose('tool0', dict(zip(SEED_JOINTS, (0.3, 0.5, 0.9, 0.6, 0.4), strict=True)))
    count = round(LENGTH / PERIOD) + 50
    for k in range(count):
        time = PERIOD * k
        assert history.due(time + 1e-9)
        q = np.array([0.3 + 0.2 * time, 0.5, 0.9, 0.6, 0.4])
        history.add(time, q, UNKNOWN, UNKNOWN, goal if k % 2 else None, directed=True)
        assert not history.due(time + 0.5 * PERIOD)
    rows = history.rows()
    assert len(rows) == count - 50
    assert rows[0].time == pytest.approx(50 * PERIOD)
    assert all(row.dq == pytest.approx([0.2, 0.0, 0.0, 0.0, 0.0], abs=1e-9) for row in rows)
    assert math.isnan(rows[0].errors[0])
    for row in rows[1::2]:
        position, direction = ARM.fk(row.q)
        wanted = ARM.fk(np.array([0.3, 0.5, 0.9, 0.6, 0.4]))
        assert row.errors[0] == pytest.approx(np.linalg.norm(position - wanted[0]), abs=1e-9)
        assert math.cos(row.errors[1]) == pytest.approx(direction @ wanted[1], abs=1e-9)
    assert all(row.singular > 0.0 for row in rows)


def test_at_a_singularity_the_least_singular_value_vanishes() -> None:
    history = History(ARM)
    straight = np.array([0.3, 0.2, 0.0, 0.0, 0.0])
    values = [np.linalg.svd(ARM.jacobian(q), compute_uv=False)[-2:] for q in (straight, ARM.middle)]
    history.add(0.0, straight, UNKNOWN, UNKNOWN, None, directed=True)
    history.add(1.0, np.array([0.3, 0.5, 0.9, 0.6, 0.4]), UNKNOWN, UNKNOWN, None, directed=True)
    first, second = history.rows()
    assert first.singular < 1e-9, values
    assert second.singular > 1e-3


def test_what_is_behind_is_compared_at_the_time_of_the_measurement() -> None:
    commands = Commands()
    for k in range(10):
        commands.add(message(1.0 + 0.1 * k, 0.1 * k, -0.2 * k))
    behind = commands.behind(message(1.25, 0.2, -0.4), SEED_JOINTS[:2])
    assert behind == pytest.approx([0.05, -0.1])
    assert np.isnan(commands.behind(message(0.5, 0.2, -0.4), SEED_JOINTS[:2])).all(), 'before all commands'
    assert np.isnan(commands.behind(message(2.5, 0.2, -0.4), SEED_JOINTS[:2])).all(), 'after them'
    assert np.isnan(Commands().behind(message(1.0, 0.0), SEED_JOINTS[:1])).all()


def test_a_message_may_lack_joints_and_velocities() -> None:
    said = message(1.0, 0.5, velocity=[0.25])
    assert positions(said, SEED_JOINTS[:2]) == pytest.approx([0.5, math.nan], nan_ok=True)
    assert velocities(said, SEED_JOINTS[:1]) == pytest.approx([0.25])
    assert np.isnan(velocities(message(1.0, 0.5), SEED_JOINTS[:1])).all()


def test_grids_have_all_that_the_arm_reaches_and_lie_in_their_planes() -> None:
    rng = np.random.default_rng(0)
    points = np.array([ARM.fk(q)[0] for q in ARM.sample(rng, 2000)])
    flat = horizontal(ARM, 0.2, 20)
    assert np.allclose(flat.places[:, 2], 0.2)
    low, high = flat.places.min(axis=0) - 0.5 * flat.cell, flat.places.max(axis=0) + 0.5 * flat.cell
    assert (points[:, :2] >= low[:2]).all()
    assert (points[:, :2] <= high[:2]).all()
    point = np.array([0.2, 0.1, 0.3])
    upright = vertical(ARM, point, 21)
    normal = np.cross(upright.right, upright.up)
    assert np.abs((upright.places - point) @ normal).max() < 1e-12
    for grid in (flat, upright):
        T, size = grid.pose, grid.size
        assert np.allclose(T[:3, :3].T @ T[:3, :3], np.eye(3))
        assert np.linalg.det(T[:3, :3]) == pytest.approx(1.0)
        first = grid.places[0] - grid.centre  # the top left: viser's images have y down
        assert first @ T[:3, 0] < 0.0
        assert first @ T[:3, 1] < 0.0
        assert np.allclose(grid.places[size] - grid.places[0], grid.cell * T[:3, 1])


def test_a_map_has_the_shares_of_reachable_directions_and_ends_when_it_is_not_wanted() -> None:
    grid = horizontal(ARM, 0.2, 8)
    found = computed(ARM, grid, lambda: True)
    assert found is not None
    directions = fibonacci_sphere(DIRECTIONS)
    expected = np.full(64, math.nan)
    for rows, there, reached in reachable_directions(ARM, grid.places, directions, WITHIN):
        expected[rows] = np.where(there, reached.mean(axis=1), math.nan)
    assert np.array_equal(found.shares, expected, equal_nan=True)
    assert np.nanmax(expected) > 0.1
    assert np.isnan(expected).any()
    asked: list[int] = []
    assert computed(ARM, grid, lambda: bool(asked.append(1))) is None
    assert len(asked) == 1


def test_what_is_out_of_reach_is_transparent() -> None:
    pixels = image(np.array([math.nan, 0.0, 0.5, 1.0]), 2)
    assert pixels.shape == (2, 2, 4)
    assert pixels[0, 0, 3] == 0
    assert (pixels[..., 3].reshape(-1)[1:] > 0).all()
    brightness = pixels[..., :3].astype(int).sum(axis=2).reshape(-1)[1:]
    assert list(brightness) == sorted(brightness)
