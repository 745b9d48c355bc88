# SPDX-License-Identifier: Apache-2.0
"""Emulated servos in a real browser: the folder Servos, and from ik_demo to the first goal and Stop."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from browser_harness import browser, click_on, displayed, open_page, wait
from domains import new_domain
from emulated_bus import EmulatedBus
from viewer_harness import started

from ik_node.model.urdf.reader import load_description
from ik_node.share import share_path
from ik_node.viewer.servos.panel import CLEAR, HOLD, OFF, ON, RELEASE, TORQUE_OFF, ZERO

__all__ = ['browser']
ARM = load_description(share_path('urdf', 'so101_like.urdf.xacro'))


@pytest.fixture
def arm(browser: Any, tmp_path: Any, monkeypatch: Any) -> Iterator[EmulatedBus]:
    """ik_servos at an emulated bus, and the viewer without ik_node; its page is open."""
    monkeypatch.setenv('XDG_CONFIG_HOME', str(tmp_path))
    domain = new_domain()
    with (
        EmulatedBus('so101') as bus,
        started('ik_servos', domain, f'port:={bus.port}', 'compensate_sag:=false'),
        started('ik_viewer', domain, 'port:=0') as viewer,
    ):
        open_page(browser, viewer.url())
        yield bus


def shown(browser: Any, text: str) -> list[Any]:
    return displayed(browser, containing(text))


def click(browser: Any, text: str) -> None:
    click_on(browser, containing(text), text)


def click_until(browser: Any, text: str, condition: Callable[[], Any], what: str) -> None:
    """Click until something is so: again if the click arrived too late to count."""

    def clicked() -> Any:
        if shown(browser, text):
            click(browser, text)
        end = time.monotonic() + 10.0
        while not (found := condition()) and time.monotonic() < end:
            time.sleep(0.1)
        return found

    wait(clicked, what)


def containing(text: str) -> str:
    return f"//*[contains(normalize-space(text()), '{text}')]"


def torques(bus: EmulatedBus) -> set[bool]:
    return {state['torque'] for state in bus.state().values()}


def test_the_page_switches_torque_holds_and_clears_a_fault(browser: Any, arm: EmulatedBus) -> None:
    wait(lambda: shown(browser, TORQUE_OFF), 'what is wrong, above all')
    click_until(browser, ON, lambda: torques(arm) == {True}, 'torque')
    wait(lambda: not shown(browser, TORQUE_OFF), 'nothing wrong')
    wait(lambda: shown(browser, '6 of 6 joints'), 'the torque in words')
    click_until(browser, HOLD, lambda: shown(browser, 'held until it is cleared'), 'the hold in words')
    arm.call('power', id=3, on=False)
    arm.call('power', id=3, on=True)
    wait(lambda: shown(browser, 'servo 3 (elbow_flex) has lost its torque'), 'the fault in words')
    assert wait(lambda: shown(browser, 'Servos: faulted'), 'what is wrong')[0].rect['y'] < 300  # above all
    assert torques(arm) == {True, False}
    click_until(browser, CLEAR, lambda: torques(arm) == {True}, 'torque again')
    wait(lambda: not shown(browser, 'has lost its torque'), 'no fault')
    arm.call('power', on=False)
    wait(lambda: shown(browser, 'Is the power supply of the arm on?'), 'the cause')
    wait(lambda: shown(browser, 'unknown'), 'that the torque is not known')


def test_torque_off_is_asked_twice_and_the_zero_is_set_after_it(browser: Any, arm: EmulatedBus) -> None:
    wait(lambda: shown(browser, TORQUE_OFF), 'the state, which moves the buttons down')
    click_until(browser, ON, lambda: torques(arm) == {True}, 'torque')
    assert not shown(browser, RELEASE)
    click_until(browser, OFF, lambda: shown(browser, RELEASE), 'the question')
    assert torques(arm) == {True}
    click(browser, 'Zero')
    pose = wait(lambda: shown(browser, 'Known pose'), 'the pose')[0].find_element(
        'xpath', 'following::input[1]'
    )
    pose.send_keys('elbow_flex=0.25')
    rejection = 'the zero can only be set while the torque is off'
    click_until(browser, ZERO, lambda: shown(browser, rejection), 'a rejection')
    click_until(browser, OFF, lambda: shown(browser, RELEASE), 'the question again')
    click_until(browser, RELEASE, lambda: torques(arm) == {False}, 'no torque')

    def stored() -> bool:  # once no servo is silent, as one may be on a busy machine
        click(browser, ZERO)
        wait(lambda: shown(browser, 'stored in') or shown(browser, 'answered'), 'an answer')
        return bool(shown(browser, 'stored in'))

    wait(stored, 'the zero')


def test_without_a_driver_there_is_no_folder(browser: Any) -> None:
    with started('ik_viewer', new_domain(), 'port:=0') as viewer:
        open_page(browser, viewer.url())
        wait(lambda: shown(browser, 'Waiting for robot_description'), 'the page')
        time.sleep(3.0)
        assert not shown(browser, ON)
