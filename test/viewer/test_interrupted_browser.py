# SPDX-License-Identifier: Apache-2.0
"""A network that stops in the middle of a drag, and a page that is closed there, in a real browser."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from browser_harness import arrow, browser, drag, drag_on, open_page, settled, source, wait
from domains import new_domain
from network import Network
from page import Page
from viewer_harness import SEED_ARM, SEED_JOINTS, Process, RobotSide, viewer

from ik_node.model.arm import Arm
from ik_node.viewer.input_freshness import OLDEST

__all__ = ['browser']
Q = dict(zip(SEED_JOINTS, (0.3, 0.5, 0.9, 0.6, 0.4), strict=True))
ARM = Arm.from_urdf(SEED_ARM)
T_TOOL = ARM.robot.link_pose('tool0', Q)
FROZEN = 10.0  # [s]


@pytest.fixture
def running() -> Iterator[tuple[Process, RobotSide]]:
    with viewer(new_domain()) as (process, robot):
        robot.describe(SEED_ARM)
        yield process, robot


def grip(browser: Any, url: str, robot: RobotSide) -> tuple[np.ndarray, np.ndarray]:
    """Open the page and drag the gizmo without releasing it; where the mouse is, and the way on [pixels]."""
    open_page(browser, url)
    wait(lambda: 'joint5' in source(browser), 'the page')
    robot.move(**Q)
    settled(browser)
    start, end, _ = arrow(browser, ARM, Q, -0.06)
    drag(browser, start, end, release=False)
    wait(lambda: robot.goals, 'a goal')
    return end, end - start


def test_a_drag_in_a_frozen_network_moves_nothing_late(
    browser: Any, running: tuple[Process, RobotSide]
) -> None:
    process, robot = running
    with Network(process.port()) as network:
        url = process.url().replace(f':{process.port()}/', f':{network.port}/')
        place, way = grip(browser, url, robot)
        time.sleep(1.0)
        network.freeze()
        time.sleep(1.0)
        robot.goals.clear()
        drag_on(browser, place, place + way, release=True)
        time.sleep(max(FROZEN, OLDEST + 1.0))
        assert not robot.goals
        page = Page(process.url())  # another browser, beside the frozen network
        page.wait(lambda: page.nodes['/base/goal']['visible'], 'the gizmo')
        network.thaw()
        page.wait(lambda: np.allclose(page.pose('/base/goal'), T_TOOL, atol=1e-4), 'the gizmo at the tool')
        time.sleep(1.0)
        assert not robot.goals, 'the arm moves by what was dragged ten seconds ago'
        page.close()
        network.cut()
        wait(lambda: 'joint5' in source(browser), 'the page again')
        assert not robot.goals


def test_a_page_that_is_closed_during_a_drag_leaves_the_gizmo_to_others(
    browser: Any, running: tuple[Process, RobotSide]
) -> None:
    process, robot = running
    page = Page(process.url())
    grip(browser, process.url(), robot)
    browser.get('about:blank')
    time.sleep(1.0)
    robot.goals.clear()
    time.sleep(1.0)
    assert not robot.goals
    T = T_TOOL.copy()
    T[2, 3] += 0.02

    def dragged() -> bool:
        page.drag(T)
        time.sleep(0.2)
        return bool(robot.goals) and np.allclose(robot.goal(), T, atol=1e-6)

    page.wait(dragged, 'the goal of the other browser')
    page.close()
