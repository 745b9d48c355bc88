# SPDX-License-Identifier: Apache-2.0
"""The page on a phone, by touch: 390 x 844 pixels, as chromium emulates one."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from browser_harness import (
    arrow,
    displayed,
    element,
    enter,
    middle,
    open_page,
    phone,
    settled,
    tap,
    touch,
    wait,
    words,
)
from domains import new_domain
from viewer_harness import SEED_ARM, SEED_FILE, SEED_JOINTS, RobotSide, started, viewer

from ik_node.model.arm import Arm

__all__ = ['phone']
Q = dict(zip(SEED_JOINTS, (0.3, 0.5, 0.9, 0.6, 0.4), strict=True))
ARM = Arm.from_urdf(SEED_ARM)
FOLDERS = {'Teach': 'Add point', 'Plots': 'Show plots', 'Recording': 'Record'}  # and a text in each


@pytest.fixture(scope='module')
def robot(phone: Any) -> Iterator[RobotSide]:
    """ik_node, the viewer, and its page on a phone."""
    domain = new_domain()
    with started('ik_node', domain, SEED_FILE), viewer(domain) as (process, robot):
        open_page(phone, process.url())
        wait(lambda: robot.joints and 'joint5' in words(phone), 'the page')
        yield robot


@pytest.fixture
def arm(phone: Any, robot: RobotSide) -> RobotSide:
    """The arm rests at Q, and the page shows it."""
    robot.go(**Q)
    shown = [f"//input[@value='{np.degrees(value):.1f}']" for value in Q.values()]
    wait(lambda: all(displayed(phone, path) for path in shown), 'the joints in the page')
    wait(lambda: 'Arrived' in words(phone), 'the state in words')
    robot.goals.clear()
    robot.joint_goals.clear()
    return robot


def close_panel(phone: Any) -> None:
    """Close the panel, which covers half of the scene."""
    tap(phone, element(phone, 'ik_node'))
    settled(phone)


def toggle(phone: Any, folder: str, path: str) -> None:
    """Open or close a folder, with path in it, by a tap; again if the panel moved below the finger."""
    before = bool(displayed(phone, path))

    def done() -> bool:
        tap(phone, element(phone, folder))
        end = time.monotonic() + 10.0
        while bool(displayed(phone, path)) is before and time.monotonic() < end:
            time.sleep(0.2)
        return bool(displayed(phone, path)) is not before

    wait(done, f'the folder {folder}')


def tap_stop(phone: Any) -> None:
    phone.switch_to.default_content()
    tap(phone, phone.find_element('css selector', '#stop'))
    enter(phone)


def check_stop_button(phone: Any) -> None:
    """The whole button is in the window, and nothing is over it."""
    phone.switch_to.default_content()
    script = (
        'const b = document.querySelector("#stop"), r = b.getBoundingClientRect();'
        'const corners = [[r.left + 5, r.top + 5], [r.right - 5, r.bottom - 5]];'
        'return [r.left, r.top, innerWidth - r.right, innerHeight - r.bottom, r.height,'
        ' corners.every(([x, y]) => document.elementFromPoint(x, y) === b)];'
    )
    *gaps, height, free = phone.execute_script(script)
    enter(phone)
    assert min(gaps) >= 0
    assert height >= 44  # pixels for a finger
    assert free


def check_width(phone: Any) -> None:
    """Nothing is wider than the phone."""
    script = (
        'const wide = [document.documentElement, ...document.querySelectorAll("*")].filter((one) =>'
        ' /auto|scroll/.test(getComputedStyle(one).overflowX) && one.scrollWidth > one.clientWidth + 1);'
        'return [innerWidth, document.documentElement.scrollWidth, wide.map((one) => one.outerHTML)];'
    )
    width, content, wide = phone.execute_script(script)
    assert width == content == 390
    assert not wide
    phone.switch_to.default_content()
    assert phone.execute_script('return [innerWidth, document.documentElement.scrollWidth]') == [390, 390]
    enter(phone)


def test_the_page_fits_and_the_stop_button_is_always_in_sight(phone: Any, arm: RobotSide) -> None:
    check_width(phone)
    check_stop_button(phone)
    for folder, text in FOLDERS.items():
        path = f"//*[normalize-space()='{text}']"
        assert not displayed(phone, path)
        toggle(phone, folder, path)
        check_width(phone)
        check_stop_button(phone)

    def point_added() -> bool:  # again if the tap came too late to count
        tap(phone, element(phone, 'At the arm'))
        time.sleep(2.0)
        return '1: P1' in words(phone)

    wait(point_added, 'a point')
    check_width(phone)
    for folder, text in FOLDERS.items():
        path = f"//*[normalize-space()='{text}']"
        toggle(phone, folder, path)
    assert not arm.joint_goals
    assert not arm.goals


def test_a_finger_on_a_slider_and_on_the_gizmo_moves_the_arm(phone: Any, arm: RobotSide) -> None:
    thumb = element(phone, 'joint3 [°]').find_element('xpath', "following::*[@role='slider'][1]")
    place = middle(phone, thumb)
    touch(phone, place, place + np.array([20.0, 0.0]))
    wait(lambda: arm.joints['joint3'] > Q['joint3'] + 0.01, 'the arm at the slider')
    arm.go(**Q)

    close_panel(phone)
    check_stop_button(phone)
    arm.goals.clear()
    start, end, way = arrow(phone, ARM, arm.joints, -0.15)
    wanted = ARM.robot.link_pose(ARM.tip_link, arm.joints)[:3, 3] + way

    def dragged() -> bool:
        touch(phone, start, end)
        time.sleep(2.0)
        if not arm.goals:  # a page that draws slowly turned the view instead
            open_page(phone, phone.current_url)
            wait(lambda: 'joint5' in words(phone), 'the page again')
            close_panel(phone)
        return bool(arm.goals)

    wait(dragged, 'a goal by the gizmo')
    wait(lambda: np.linalg.norm(arm.goal()[:3, 3] - wanted) < 0.05 * ARM.reach, 'the whole way')
    tap(phone, element(phone, 'ik_node'))
    wait(lambda: 'joint5' in words(phone), 'the panel again')


def test_a_finger_stops_the_arm_and_resumes(phone: Any, arm: RobotSide) -> None:
    tap_stop(phone)
    wait(lambda: 'press Resume' in words(phone), 'the stop')
    before = dict(arm.joints)
    arm.ask(**{**Q, 'joint1': -0.5})
    wait(lambda: 'stopped' in words(phone).lower(), 'the stop in words')
    assert arm.joints == pytest.approx(before, abs=1e-9)

    def resumed() -> bool:  # the page moves the button while it is laid out anew
        tap(phone, element(phone, 'Resume'))
        time.sleep(1.0)
        return 'press Resume' not in words(phone)

    wait(resumed, 'the end of the stop')
    arm.go(**{**Q, 'joint1': -0.5})
