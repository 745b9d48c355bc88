"""The page on a phone, by touch: 390 x 844 pixels in a real browser."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from browser_harness import (
    Projection,
    browser,
    element,
    middle,
    open_page,
    settled,
    tap,
    touch,
    wait,
)
from node_harness import new_domain
from selenium.common.exceptions import StaleElementReferenceException
from viewer_harness import ROOT, SEED_ARM, SEED_JOINTS, Process, RobotSide, viewer

from ik_node.model.arm import Arm
from ik_node.viewer.scene.tool_scene import GIZMO_SCALE
from ik_node.viewer.scene.visuals import draw

__all__ = ['browser']
Q = dict(zip(SEED_JOINTS, (0.3, 0.5, 0.9, 0.6, 0.4), strict=True))
PHONE = {'width': 390, 'height': 844, 'deviceScaleFactor': 1, 'mobile': True}


@pytest.fixture
def robot(browser: Any) -> Iterator[RobotSide]:
    """ik_node, the viewer, and its page on a phone."""
    domain = new_domain()
    solver = Process('ik_node', domain, '--ros-args', '-p', f'urdf_file:={ROOT}/urdf/seed_arm.urdf.xacro')
    browser.execute_cdp_cmd('Emulation.setDeviceMetricsOverride', PHONE)
    browser.execute_cdp_cmd('Emulation.setTouchEmulationEnabled', {'enabled': True})
    try:
        with viewer(domain) as (process, robot):
            open_page(browser, process.url())
            wait(lambda: robot.joints and 'joint5' in browser.page_source, 'the page')
            robot.go(**Q)
            robot.goals.clear()
            robot.joint_goals.clear()
            yield robot
    finally:
        browser.execute_cdp_cmd('Emulation.setTouchEmulationEnabled', {'enabled': False})
        browser.execute_cdp_cmd('Emulation.clearDeviceMetricsOverride', {})
        code = solver.end()
    assert code == 0, solver.said


def test_everything_works_by_touch(browser: Any, robot: RobotSide) -> None:
    arm = Arm.from_urdf(SEED_ARM)
    label = element(browser, 'joint3 [°]')
    thumb = label.find_element('xpath', "following::*[@role='slider'][1]")
    place = middle(browser, thumb)
    touch(browser, place, place + np.array([20.0, 0.0]))
    wait(lambda: robot.joint_goals, 'a goal by the slider')
    assert robot.joint_goals[-1].position[2] > Q['joint3'] + 0.01
    robot.go(**Q)
    robot.joint_goals.clear()

    tap(browser, element(browser, 'Show solutions').find_element('xpath', 'following::input[1]'))

    def chosen() -> bool:
        settled(browser)
        with suppress(StaleElementReferenceException):  # each list has buttons of its own
            rows = browser.find_elements('css selector', 'button')
            row = next((b for b in rows if b.text[:2] == '2:' and b.is_enabled()), None)
            if row is not None:
                browser.execute_script('arguments[0].scrollIntoView({block: "center"})', row)
                time.sleep(0.5)
                tap(browser, row)
        return bool(robot.joint_goals)

    wait(chosen, 'a goal by a row')
    target = np.array(robot.joint_goals[-1].position)
    assert np.allclose(arm.fk(target)[0], arm.fk(np.array(list(Q.values())))[0], atol=1e-3)
    tap(browser, element(browser, 'Show solutions').find_element('xpath', 'following::input[1]'))
    robot.go(**Q)

    tap(browser, element(browser, 'ik_node'))  # closes the panel, which covers half of the scene
    settled(browser)
    robot.goals.clear()
    T = arm.robot.link_pose(arm.tip_link, robot.joints)
    extent = draw(SEED_ARM, arm.robot, arm.tip_link).extent
    project = Projection(browser, extent)
    heads = [T[:3, 3] + 0.75 * GIZMO_SCALE * extent * T[:3, axis] for axis in range(3)]
    axis = int(np.argmax([np.linalg.norm(project(head) - project(T[:3, 3])) for head in heads]))
    way = -0.15 * extent * T[:3, axis]
    touch(browser, project(heads[axis]), project(heads[axis] + way))
    wait(lambda: robot.goals, 'a goal by the gizmo')
    wait(lambda: np.linalg.norm(robot.goal()[:3, 3] - T[:3, 3] - way) < 0.05 * arm.reach, 'the whole way')

    browser.switch_to.default_content()
    tap(browser, browser.find_element('css selector', '#stop'))
    browser.switch_to.frame(browser.find_element('tag name', 'iframe'))
    wait(lambda: 'call ~/resume' in browser.page_source, 'the stop')
