# SPDX-License-Identifier: Apache-2.0
"""Plots and maps of the workspace in the page: shown while users want them, and nothing moves by them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from desk import SEED_ARM, SEED_JOINTS, Page, RobotSide, viewer

from ik_node.model.arm import Arm
from ik_node.solver.goal import Goal
from ik_node.solver.solver import IkSolver
from ik_node.viewer.reach.panel import AT_HEIGHT, AT_TOOL, WHOLE

Q = dict(zip(SEED_JOINTS, (0.3, 0.5, 0.9, 0.6, 0.4), strict=True))
ARM = Arm.from_urdf(SEED_ARM)


@pytest.fixture(scope='module')
def running() -> Iterator[tuple[Page, RobotSide]]:
    with viewer() as (table, robot):
        page = Page(table)
        robot.describe(SEED_ARM)
        page.wait(lambda: 'Waiting for joint_states' in page.text(), 'the robot')
        yield page, robot
        page.close()


def charts(page: Page) -> list[str]:
    """The titles of the charts that are shown."""
    found = [c for c in list(page.controls.values()) if c['kind'] == 'GuiUplotMessage']
    return [chart['title'] for chart in found if chart['visible'] and chart['title']]


def test_charts_are_shown_and_looking_back_moves_a_ghost_only(running: tuple[Page, RobotSide]) -> None:
    page, robot = running
    for k in range(30):
        robot.move(**{**Q, 'joint1': 0.03 * k})
        page.run(0.1)
    page.choose('Show plots', True)
    page.wait(lambda: any('Joints' in title for title in charts(page)), 'the charts')
    assert not any('Following' in title for title in charts(page)), 'nothing is measured'
    page.choose('Look back', True)
    page.wait(lambda: page.control('Time [s]')['visible'], 'the slider')
    here = page.pose('/tip')
    seen = set()
    for seconds in np.arange(0.0, -30.0, -0.5):
        page.choose('Time [s]', float(seconds))
        page.run(0.1)
        names = [name for name in list(page.nodes) if name.startswith('/past/')]
        if names:
            seen.add(tuple(np.round(page.pose(names[0])[:3, :3].ravel(), 3)))
    assert len(seen) > 3, 'the ghost has been in several places'
    assert np.allclose(page.pose('/tip'), here), 'and the arm where it was'
    page.wait(lambda: 'joint1 ' in page.words(), 'the values in words')
    page.choose('Look back', False)
    page.wait(lambda: not page.nodes['/past']['visible'], 'no ghost')
    page.choose('Show plots', False)
    page.wait(lambda: not charts(page), 'no charts')
    assert not robot.goals
    assert not robot.joint_goals


def test_a_map_is_computed_ever_finer_and_removed(running: tuple[Page, RobotSide]) -> None:
    page, robot = running
    robot.move(**Q)
    page.choose('Show a map', True)
    page.wait(lambda: '/map/plane' in page.nodes, 'the map')
    width = page.nodes['/map/plane']['render_width']
    assert width == pytest.approx(2.0 * ARM.reach, rel=1e-6)
    assert page.pose('/map/plane')[2, 3] == pytest.approx(ARM.fk(np.array(list(Q.values())))[0][2], abs=1e-3)
    page.choose('Where', AT_HEIGHT)
    page.choose('Height (mm)', 150.0)
    page.wait(lambda: abs(page.pose('/map/plane')[2, 3] - 0.15) < 1e-6, 'the map at that height')
    page.choose('Show a map', False)
    page.wait(lambda: '/map/plane' not in page.nodes, 'no map')
    assert not robot.goals
    assert not robot.joint_goals


def points(page: Page) -> np.ndarray:
    """The positions (k, 3) of the map, none without one."""
    node = page.nodes.get('/map/points')
    return np.zeros((0, 3)) if node is None else node['points'].astype(float).reshape(-1, 3)


def test_the_whole_workspace_is_a_cloud_of_what_can_be_reached(running: tuple[Page, RobotSide]) -> None:
    page, robot = running
    robot.move(**Q)
    page.choose('Where', WHOLE)
    page.choose('Show a map', True)
    page.wait(lambda: len(points(page)) > 2000, 'the finest map')
    assert '/map/plane' not in page.nodes
    places = points(page)
    some = places[np.random.default_rng(0).choice(len(places), 100, replace=False)]
    solver = IkSolver(ARM)
    assert all(solver.solve(Goal(place)).solved for place in some)
    page.choose('At least (%)', 50)
    page.wait(lambda: 0 < len(points(page)) < len(places), 'fewer points')
    page.choose('Where', AT_TOOL)
    page.wait(lambda: '/map/plane' in page.nodes and '/map/points' not in page.nodes, 'a plane')
    page.choose('Show a map', False)
    page.wait(lambda: '/map/plane' not in page.nodes, 'no map')
    assert not robot.goals
    assert not robot.joint_goals
