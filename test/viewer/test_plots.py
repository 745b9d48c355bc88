# SPDX-License-Identifier: Apache-2.0
"""Plots and maps of the workspace: what they show, and that nothing moves by them."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest
import viser
from desk import SEED_ARM, SEED_JOINTS, Page, RobotSide, showing
from rclpy.time import Time
from sensor_msgs.msg import JointState

from ik_node.model.arm import Arm
from ik_node.solver.goal import Goal
from ik_node.solver.reachable_directions import fibonacci_sphere, reachable_directions
from ik_node.solver.solver import IkSolver
from ik_node.viewer import reach
from ik_node.viewer.plots import LENGTH, PERIOD, Chart, Commands, History, positions, velocities
from ik_node.viewer.reach import (
    AT_HEIGHT,
    AT_TOOL,
    DIRECTIONS,
    WHOLE,
    WITHIN,
    computed,
    horizontal,
    image,
    vertical,
)

pytestmark = pytest.mark.slow

ARM = Arm.from_urdf(SEED_ARM)
BENT = np.array([0.3, 0.5, 0.9, 0.6, 0.4])
Q = dict(zip(SEED_JOINTS, BENT.tolist(), strict=True))
UNKNOWN = np.full(5, math.nan)


def message(seconds: float, *values: float, **more: list[float]) -> JointState:
    said = JointState(name=list(SEED_JOINTS[: len(values)]), position=list(values), **more)
    said.header.stamp = Time(nanoseconds=round(seconds * 1e9)).to_msg()
    return said


def test_rows_have_velocities_and_errors_and_the_oldest_go() -> None:
    history, goal = History(ARM), ARM.robot.link_pose('tool0', Q)
    count = round(LENGTH / PERIOD) + 50
    for k in range(count):
        time = PERIOD * k
        assert history.due(time + 1e-9)
        q = np.add(BENT, [0.2 * time, 0.0, 0.0, 0.0, 0.0])
        history.add(time, q, UNKNOWN, UNKNOWN, goal if k % 2 else None, directed=True)
        assert not history.due(time + 0.5 * PERIOD)
    rows = history.rows()
    assert len(rows) == count - 50
    assert rows[0].time == pytest.approx(50 * PERIOD)
    assert all(row.dq == pytest.approx([0.2, 0.0, 0.0, 0.0, 0.0], abs=1e-9) for row in rows)
    assert math.isnan(rows[0].errors[0])
    wanted = ARM.fk(BENT)
    for row in rows[1::2]:
        position, direction = ARM.fk(row.q)
        assert row.errors[0] == pytest.approx(np.linalg.norm(position - wanted[0]), abs=1e-9)
        assert math.cos(row.errors[1]) == pytest.approx(direction @ wanted[1], abs=1e-9)
    assert all(row.singular > 1e-3 for row in rows)
    history.add(LENGTH, np.array([0.3, 0.2, 0.0, 0.0, 0.0]), UNKNOWN, UNKNOWN, None, directed=True)
    assert history.rows()[-1].singular < 1e-9, 'the arm is straight'


def test_what_is_behind_is_compared_at_the_time_of_the_measurement() -> None:
    commands = Commands()
    assert np.isnan(commands.behind(message(1.0, 0.0), SEED_JOINTS[:1])).all()
    for k in range(10):
        commands.add(message(1.0 + 0.1 * k, 0.1 * k, -0.2 * k))
    for seconds, behind in ((1.25, (0.05, -0.1)), (0.5, UNKNOWN[:2]), (2.5, UNKNOWN[:2])):
        found = commands.behind(message(seconds, 0.2, -0.4), SEED_JOINTS[:2])
        assert found == pytest.approx(behind, nan_ok=True)


def test_a_message_may_lack_joints_and_velocities() -> None:
    said = message(1.0, 0.5, velocity=[0.25])
    assert positions(said, SEED_JOINTS[:2]) == pytest.approx([0.5, math.nan], nan_ok=True)
    assert velocities(said, SEED_JOINTS[:1]) == pytest.approx([0.25])
    assert np.isnan(velocities(message(1.0, 0.5), SEED_JOINTS[:1])).all()


def test_grids_have_all_that_the_arm_reaches_and_lie_in_their_planes() -> None:
    rng = np.random.default_rng(0)
    points = np.array([ARM.fk(q)[0] for q in ARM.sample(rng, 2000)])
    flat = horizontal(ARM, 0.2, 20)
    assert np.allclose(flat.positions[:, 2], 0.2)
    low, high = flat.positions.min(axis=0) - 0.5 * flat.cell, flat.positions.max(axis=0) + 0.5 * flat.cell
    assert ((points >= low) & (points <= high))[:, :2].all()
    point = np.array([0.2, 0.1, 0.3])
    upright = vertical(ARM, point, 21)
    normal = np.cross(upright.right, upright.up)
    assert np.abs((upright.positions - point) @ normal).max() < 1e-12
    for grid in (flat, upright):
        T, size = grid.pose, grid.size
        assert np.allclose(T[:3, :3].T @ T[:3, :3], np.eye(3))
        assert np.linalg.det(T[:3, :3]) == pytest.approx(1.0)
        first = grid.positions[0] - grid.centre  # the top left: viser's images have y down
        assert (first @ T[:3, :2] < 0.0).all()
        assert np.allclose(grid.positions[size] - grid.positions[0], grid.cell * T[:3, 1])


def test_a_map_has_the_shares_of_reachable_directions_and_ends_when_it_is_not_wanted() -> None:
    grid = horizontal(ARM, 0.2, 8)
    found = computed(ARM, grid, lambda: True)
    assert found is not None
    expected = np.full(64, math.nan)
    given = ARM, grid.positions, fibonacci_sphere(DIRECTIONS), WITHIN
    for rows, there, reached in reachable_directions(*given):
        expected[rows] = np.where(there, reached.mean(axis=1), math.nan)
    assert np.array_equal(found.shares, expected, equal_nan=True)
    assert np.nanmax(expected) > 0.1
    assert np.isnan(expected).any()
    asked: list[int] = []
    assert computed(ARM, grid, lambda: bool(asked.append(1))) is None
    assert len(asked) == 1


def test_what_is_out_of_reach_is_transparent() -> None:
    pixels = image(np.array([math.nan, 0.0, 0.5, 1.0]), 2)
    assert list(pixels[..., 3].reshape(-1) > 0) == [False, True, True, True]
    brightness = pixels[..., :3].astype(int).sum(axis=2).reshape(-1)[1:]
    assert list(brightness) == sorted(brightness)


def test_a_chart_of_rounding_errors_has_an_axis_of_different_numbers(server: viser.ViserServer) -> None:
    chart = Chart(server.gui, 'Position error [mm]', ('position',))
    chart.show(np.array([-1.0, 0.0]), np.array([[1e-9], [2e-9]]), None)
    assert not np.any(chart._plot.data[2])


# In the page


@pytest.fixture
def shown() -> Iterator[tuple[Page, RobotSide]]:
    """The arm at Q. Nothing that a test does moves it."""
    with showing(SEED_ARM, **Q) as (page, robot):
        yield page, robot
        assert not robot.goals
        assert not robot.joint_goals


def charts(page: Page) -> list[str]:
    """The titles of the charts that are shown."""
    found = [c for c in page.controls.values() if c['kind'] == 'GuiUplotMessage']
    return [chart['title'] for chart in found if chart['visible'] and chart['title']]


def legends(page: Page) -> list[str]:
    """The legends of the joints that are shown."""
    found = [c for c in page.controls.values() if c['kind'] == 'GuiHtmlMessage' and c['visible']]
    return [one['content'] for one in found if '>joint1' in one['content']]


def test_charts_are_shown_and_looking_back_moves_a_ghost_only(shown: tuple[Page, RobotSide]) -> None:
    page, robot = shown
    for k in range(30):
        robot.move(**{**Q, 'joint1': 0.03 * k})
        page.run(0.1)
    page.choose('Show plots', True)
    page.wait(lambda: any('Joints' in title for title in charts(page)), 'the charts')
    assert not any('Following' in title for title in charts(page)), 'nothing is measured'
    page.choose('Look back', True)
    page.wait(lambda: page.control('Time [s]')['visible'], 'the slider')
    page.wait(lambda: len(legends(page)) == 1 and '°' in legends(page)[0], 'one legend, with the values')
    here, seen = page.pose('/tip'), set()
    for seconds in np.arange(0.0, -3.0, -0.5):
        page.choose('Time [s]', float(seconds))
        page.run(0.1)
        ghost = next(name for name in page.nodes if name.startswith('/past/'))
        seen.add(tuple(np.round(page.pose(ghost)[:3, :3].ravel(), 3)))
    assert len(seen) > 3, 'the ghost has been in several places'
    assert np.allclose(page.pose('/tip'), here), 'and the arm where it was'
    page.wait(lambda: 'joint1 ' in page.words(), 'the values in words')
    page.choose('Look back', False)
    page.wait(lambda: not page.nodes['/past']['visible'], 'no ghost')
    page.choose('Show plots', False)
    page.wait(lambda: not charts(page), 'no charts')


@pytest.fixture
def coarse(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reach, 'SIZES', (12, 20))


@pytest.mark.usefixtures('coarse')
def test_a_map_lies_where_it_is_wanted(shown: tuple[Page, RobotSide]) -> None:
    page, _ = shown
    page.choose('Show a map', True)
    page.wait(lambda: '/map/plane' in page.nodes, 'the map')
    assert page.nodes['/map/plane']['render_width'] == pytest.approx(2.0 * ARM.reach, rel=1e-6)
    assert page.pose('/map/plane')[2, 3] == pytest.approx(ARM.fk(BENT)[0][2], abs=1e-3)
    page.choose('Where', AT_HEIGHT)
    page.choose('Height (mm)', 150.0)
    page.wait(lambda: abs(page.pose('/map/plane')[2, 3] - 0.15) < 1e-6, 'the map at that height')
    page.choose('Show a map', False)
    page.wait(lambda: '/map/plane' not in page.nodes, 'no map')


@pytest.mark.usefixtures('coarse')
def test_the_whole_workspace_is_a_cloud_of_what_can_be_reached(shown: tuple[Page, RobotSide]) -> None:
    page, _ = shown

    def points() -> np.ndarray:
        node = page.nodes.get('/map/points')
        return np.zeros((0, 3)) if node is None else node['points'].astype(float).reshape(-1, 3)

    page.choose('Where', WHOLE)
    page.choose('Show a map', True)
    places = page.wait(lambda: points().tolist(), 'the first map')
    finer = page.wait(lambda: len(points()) > 2 * len(places) and points().tolist(), 'a finer one')
    assert '/map/plane' not in page.nodes
    solver = IkSolver(ARM)
    assert all(solver.solve(Goal(place)).solved for place in finer[::10])
    page.choose('At least (%)', 50)
    page.wait(lambda: 0 < len(points()) < len(finer), 'fewer points')
    page.choose('Where', AT_TOOL)
    page.wait(lambda: '/map/plane' in page.nodes and '/map/points' not in page.nodes, 'a plane')
