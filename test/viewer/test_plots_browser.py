"""Plots in a real browser: what moved is drawn, and looking back moves a ghost only."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from browser_harness import (
    MANY,
    browser,
    changed,
    click,
    open_page,
    picture,
    settled,
    slide,
    tick,
    wait,
)
from node_harness import new_domain
from viewer_harness import ROOT, SEED_JOINTS, Process, RobotSide, viewer

__all__ = ['browser']
Q = dict(zip(SEED_JOINTS, (0.3, 0.5, 0.9, 0.6, 0.4), strict=True))


@pytest.fixture
def robot(browser: Any) -> Iterator[RobotSide]:
    """ik_node, the viewer, and its page with the folder Plots open."""
    domain = new_domain()
    solver = Process('ik_node', domain, '--ros-args', '-p', f'urdf_file:={ROOT}/urdf/seed_arm.urdf.xacro')
    try:
        with viewer(domain) as (process, robot):
            open_page(browser, process.url())
            wait(lambda: robot.joints and 'joint5' in browser.page_source, 'the page')
            click(browser, 'Plots')
            yield robot
    finally:
        code = solver.end()
    assert code == 0, solver.said


def charts(browser: Any) -> list[Any]:
    """The charts that are drawn."""
    found = browser.find_elements('css selector', '.uplot canvas')
    return [one for one in found if one.is_displayed() and one.rect['height'] > 50]


def ink(browser: Any, chart: Any) -> int:
    """How many pixels of a chart are blue, as the line of the first joint."""
    script = (
        'const c = arguments[0], d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data;'
        'let n = 0; for (let i = 0; i < d.length; i += 4)'
        ' n += d[i + 3] > 128 && d[i] < 80 && d[i + 1] > 70 && d[i + 1] < 140 && d[i + 2] > 200; return n;'
    )
    return int(browser.execute_script(script, chart))


def test_what_moved_is_drawn_and_looking_back_moves_a_ghost_only(browser: Any, robot: RobotSide) -> None:
    robot.go(**Q)
    robot.go(**{**Q, 'joint1': -0.9})
    robot.go(**Q)
    before = settled(browser)
    tick(browser, 'Show plots')
    wait(lambda: len(charts(browser)) >= 3, 'the charts')
    wait(lambda: ink(browser, charts(browser)[0]) > 20, 'the line of joint1')
    joints = dict(robot.joints)
    robot.goals.clear()
    robot.joint_goals.clear()
    tick(browser, 'Look back')
    wait(lambda: 'Time [s]' in browser.page_source, 'the slider')
    assert changed(before, settled(browser)) < MANY, 'the ghost is where the arm is'
    seen = 0
    for _ in range(30):
        slide(browser, 'Time [s]', -15)
        time.sleep(0.5)
        seen = max(seen, changed(before, picture(browser)))
        if seen > MANY:
            break
    assert seen > MANY, 'the ghost where the arm was'
    wait(lambda: 'joint1 ' in browser.page_source, 'the values in words')
    tick(browser, 'Look back')
    wait(lambda: changed(before, picture(browser)) < MANY, 'no ghost')
    tick(browser, 'Show plots')
    wait(lambda: not charts(browser), 'no charts')
    assert not robot.goals
    assert not robot.joint_goals
    assert robot.joints == pytest.approx(joints)
