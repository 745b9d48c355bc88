# SPDX-License-Identifier: Apache-2.0
"""ik_node and its viewer in a real browser: headless chromium, a real mouse, the arm gets there."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest
from browser_harness import (
    MANY,
    arrow,
    browser,
    changed,
    drag,
    open_page,
    picture,
    settled,
    source,
    tick,
    wait,
    webdriver,
)
from domains import new_domain
from viewer_harness import SEED_ARM, SEED_FILE, SEED_JOINTS, RobotSide, started, viewer

from ik_node.model.arm import Arm

__all__ = ['browser']
Q = dict(zip(SEED_JOINTS, (0.3, 0.5, 0.9, 0.6, 0.4), strict=True))  # in the picture left of the panel


@pytest.fixture(scope='module')
def robot(browser: Any) -> Iterator[RobotSide]:
    """ik_node with the seed arm, the viewer, and its page in the browser."""
    domain = new_domain()
    with started('ik_node', domain, SEED_FILE), viewer(domain) as (process, robot):
        open_page(browser, process.url())
        wait(lambda: robot.joints and 'joint5' in source(browser), 'the page')
        yield robot


@pytest.fixture
def arm(robot: RobotSide, browser: Any) -> Arm:
    """The arm stands at Q and the picture stands still."""
    robot.go(**Q)
    robot.goals.clear()
    settled(browser)
    return Arm.from_urdf(SEED_ARM)


def test_the_arm_is_drawn_and_moves(browser: Any, robot: RobotSide, arm: Arm) -> None:  # noqa: ARG001
    before = settled(browser)
    robot.go(**{**Q, 'joint1': -0.9})
    wait(lambda: changed(before, picture(browser)) > MANY, 'another picture')
    robot.go(**Q)
    wait(lambda: changed(before, picture(browser)) < MANY / 5, 'the first picture again')


def drag_gizmo(browser: Any, arm: Arm, joints: Mapping[str, float]) -> np.ndarray:
    """Drag the gizmo along the axis that is seen longest; return the way (3,)."""
    start, end, way = arrow(browser, arm, joints, -0.15)
    drag(browser, start, end)
    return way


def test_dragging_the_gizmo_moves_the_arm(browser: Any, robot: RobotSide, arm: Arm) -> None:
    T = arm.robot.link_pose(arm.tip_link, robot.joints)
    way = drag_gizmo(browser, arm, robot.joints)
    wait(lambda: robot.goals, 'a goal')
    wait(lambda: np.linalg.norm(robot.goal()[:3, 3] - T[:3, 3] - way) < 0.02 * arm.reach, 'the whole way')
    goal = robot.goal()
    assert np.allclose(goal[:3, :3], T[:3, :3], atol=1e-6)

    def reached() -> bool:
        position, direction = arm.fk([robot.joints[name] for name in arm.joint_names])
        return np.linalg.norm(position - goal[:3, 3]) < 1e-4 and direction @ goal[:3, 2] > 1.0 - 1e-6

    wait(reached, 'the arm at the goal')
    wait(lambda: 'Solved' in source(browser), 'the status in words')
    there = settled(browser)
    open_page(browser, browser.current_url)
    wait(lambda: 'Solved' in source(browser), 'the page after a reload')
    wait(lambda: changed(there, picture(browser)) < MANY / 5, 'the same picture after a reload')


def test_a_slider_moves_the_arm(browser: Any, robot: RobotSide, arm: Arm) -> None:  # noqa: ARG001
    thumb = browser.find_elements('css selector', '[role=slider]')[2]
    before = robot.joints['joint3']
    for _ in range(5):
        thumb.send_keys(webdriver.Keys.ARROW_RIGHT)
    wanted = before + np.radians(0.5)  # five steps
    wait(lambda: abs(robot.joints['joint3'] - wanted) < np.radians(0.06), 'joint3 at the value of its slider')
    assert abs(robot.joints['joint1'] - Q['joint1']) < 1e-3


def test_slow_motion_is_drawn_and_the_arm_stays(browser: Any, robot: RobotSide, arm: Arm) -> None:
    def click(label: str) -> None:
        browser.find_element('xpath', f"//*[normalize-space(text())='{label}']").click()

    click('Methods')
    tick(browser, 'Watch')
    before, joints = settled(browser), dict(robot.joints)
    drag_gizmo(browser, arm, joints)
    wait(lambda: 'step' in source(browser) and 'Position error' in source(browser), 'the errors')
    wait(lambda: changed(before, picture(browser)) > MANY, 'the ghost')
    assert robot.joints == pytest.approx(joints)
    assert not robot.goals
    tick(browser, 'Watch')
    wait(lambda: changed(before, picture(browser)) < MANY / 5, 'the picture as before')
    click('Methods')


def stop_button(browser: Any) -> Any:
    browser.switch_to.default_content()
    return browser.find_element('tag name', 'button')


@pytest.mark.parametrize('size', [(900, 700), (390, 844)], ids=['desktop', 'phone'])
def test_the_stop_button_is_in_sight_and_stops(browser: Any, robot: RobotSide, size: tuple[int, int]) -> None:
    width, height = size
    metrics = {'width': width, 'height': height, 'deviceScaleFactor': 1, 'mobile': width < 600}
    browser.execute_cdp_cmd('Emulation.setDeviceMetricsOverride', metrics)
    try:
        open_page(browser, browser.current_url)
        title = "//*[normalize-space(text())='ik_node']"
        wait(lambda: 'joint5' in source(browser) and browser.find_elements('xpath', title), 'the page')
        if width < 600:
            browser.find_element('xpath', title).click()  # closes what covers half of the screen
            button = stop_button(browser)
            press = button.click
        else:
            browser.find_element('css selector', '.tabler-icon-minus').click()
            press = webdriver.ActionChains(browser).send_keys(webdriver.Keys.ESCAPE).perform
            button = None
        robot.ask(**{**Q, 'joint1': -0.9})
        press()
        button = button or stop_button(browser)
        assert button.text == 'Stop'
        assert button.rect['x'] + button.rect['width'] <= width
        assert button.rect['y'] + button.rect['height'] <= height
        scene = browser.find_element('tag name', 'iframe').rect
        assert width > 600 or scene['y'] + scene['height'] <= button.rect['y'], 'it covers nothing'
    finally:
        browser.execute_cdp_cmd('Emulation.clearDeviceMetricsOverride', {})
    open_page(browser, browser.current_url)
    wait(lambda: 'press Resume' in source(browser), 'the stop')
    browser.find_element('xpath', "//*[text()='Resume']").click()
    wait(lambda: 'press Resume' not in source(browser), 'the end of the stop')
    robot.go(**Q)


def test_a_stop_without_a_connection_is_told_and_sent_when_there_is_one(browser: Any) -> None:
    with viewer(new_domain()) as (process, _):
        open_page(browser, process.url())
        button = stop_button(browser)
        process.signal(signal.SIGSTOP)
        try:
            button.click()
            wait(lambda: button.text == 'Not stopped: no connection', 'the warning')
        finally:
            process.signal(signal.SIGCONT)
        wait(lambda: button.text == 'Not stopped: ik_node is not running', 'the connection')
        wait(lambda: 'Stop: the service' in process.said, 'the stop')
    wait(lambda: button.text == 'Not stopped: no connection', 'the end of the viewer')


@pytest.mark.parametrize('host', ['127.0.0.1', '0.0.0.0'])
def test_the_page_works_through_the_url_with_its_token(browser: Any, host: str) -> None:
    with viewer(new_domain(), f'host:={host}') as (process, robot):
        browser.get(f'http://127.0.0.1:{process.port()}/')
        assert 'the token is missing or wrong' in browser.page_source
        open_page(browser, process.url())
        robot.describe(SEED_ARM)
        wait(lambda: 'joint5' in source(browser), 'the page')
        open_page(browser, browser.current_url)  # by then the page may have changed its URL
        robot.move(**Q)
        wait(lambda: 'joint5' in source(browser), 'the page again')
        settled(browser)
        arm = Arm.from_urdf(SEED_ARM)
        T = arm.robot.link_pose(arm.tip_link, Q)
        way = drag_gizmo(browser, arm, Q)
        wait(lambda: robot.goals, 'a goal')
        wait(lambda: np.linalg.norm(robot.goal()[:3, 3] - T[:3, 3] - way) < 0.02 * arm.reach, 'the whole way')
