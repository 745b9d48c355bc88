"""Emulated servos in a real browser: the folder Servos, and from ik_demo to the first goal and Stop."""

from __future__ import annotations

import os
import re
import signal
import socket
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from browser_harness import Projection, browser, drag, open_page, wait
from node_harness import new_domain
from processes import Running
from viewer_harness import Process, RobotSide

from ik_node.model.arm import Arm
from ik_node.model.urdf.reader import load_description, read_urdf
from ik_node.share import share_path
from ik_node.sim.bus import EmulatedBus
from ik_node.viewer.scene.tool_scene import GIZMO_SCALE
from ik_node.viewer.scene.visuals import draw
from ik_node.viewer.servos.panel import CLEAR, HOLD, OFF, ON, RELEASE, ZERO

__all__ = ['browser']
ARM = load_description(share_path('urdf', 'so101_like.urdf.xacro'))


@pytest.fixture
def arm(browser: Any, tmp_path: Any, monkeypatch: Any) -> Iterator[EmulatedBus]:
    """ik_servos at an emulated bus, and the viewer without ik_node; its page is open."""
    monkeypatch.setenv('XDG_CONFIG_HOME', str(tmp_path))
    domain = new_domain()
    with EmulatedBus('so101') as bus:
        driver = Process('ik_servos', domain, '--ros-args', '-p', f'port:={bus.port}')
        viewer = Process('ik_viewer', domain, '--ros-args', '-p', 'port:=0')
        try:
            open_page(browser, viewer.url())
            bus.driver = driver
            yield bus
        finally:
            codes = viewer.end(), driver.end()
    assert codes == (0, 0), viewer.said + driver.said


def shown(browser: Any, text: str) -> list[Any]:
    path = f"//*[contains(normalize-space(text()), '{text}')]"
    return [one for one in browser.find_elements('xpath', path) if one.is_displayed()]


def click(browser: Any, text: str) -> None:
    button = wait(lambda: shown(browser, text), text)[0]
    browser.execute_script('arguments[0].scrollIntoView({block: "center"})', button)
    time.sleep(0.5)  # the panel scrolls
    button.click()


def torques(bus: EmulatedBus) -> set[bool]:
    return {state['torque'] for state in bus.state().values()}


def test_the_page_switches_torque_holds_and_clears_a_fault(browser: Any, arm: EmulatedBus) -> None:
    click(browser, ON)
    wait(lambda: torques(arm) == {True}, 'torque')
    wait(lambda: shown(browser, '6 of 6 joints'), 'the torque in words')
    click(browser, HOLD)
    wait(lambda: shown(browser, 'held until it is cleared'), 'the hold in words')
    arm.call('power', id=3, on=False)
    arm.call('power', id=3, on=True)
    wait(lambda: shown(browser, 'servo 3 (elbow_flex) has lost its torque'), 'the fault in words')
    assert torques(arm) == {True, False}
    click(browser, CLEAR)
    wait(lambda: torques(arm) == {True}, 'torque again')
    wait(lambda: not shown(browser, 'has lost its torque'), 'no fault')


def test_torque_off_is_asked_twice_and_the_zero_is_set_after_it(browser: Any, arm: EmulatedBus) -> None:
    click(browser, ON)
    wait(lambda: torques(arm) == {True}, 'torque')
    assert not shown(browser, RELEASE)
    click(browser, OFF)
    wait(lambda: shown(browser, RELEASE), 'the question')
    assert torques(arm) == {True}
    click(browser, 'Zero')
    pose = wait(lambda: shown(browser, 'Known pose'), 'the pose')[0].find_element(
        'xpath', 'following::input[1]'
    )
    pose.send_keys('elbow_flex: 0.25')
    click(browser, ZERO)
    wait(lambda: shown(browser, 'the zero can only be set while the torque is off'), 'a refusal')
    click(browser, OFF)
    click(browser, RELEASE)
    wait(lambda: torques(arm) == {False}, 'no torque')
    click(browser, ZERO)
    wait(lambda: shown(browser, 'stored in'), 'the zero')


def test_without_a_driver_there_is_no_folder(browser: Any) -> None:
    viewer = Process('ik_viewer', new_domain(), '--ros-args', '-p', 'port:=0')
    try:
        open_page(browser, viewer.url())
        wait(lambda: shown(browser, 'Waiting for robot_description'), 'the page')
        time.sleep(3.0)
        assert not shown(browser, ON)
    finally:
        viewer.end()


def test_the_demo_leads_to_a_first_goal_and_stop_holds_the_arm(browser: Any) -> None:
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        port = str(probe.getsockname()[1])
    demo = Running('ik_demo', '--servos', 'emulated', '--description-file', 'so101_like', '--port', port)
    robot = None
    try:
        demo.wait(lambda: re.search(r'open (http://\S+) in', demo.said), 'the address')
        demo.wait_said('the arm is held where it is')
        demo.wait_said('self-collision')  # ik_node is ready
        robot = RobotSide(demo.domain)
        open_page(browser, re.search(r'open (http://\S+) in', demo.said)[1])
        model = Arm(read_urdf(ARM))
        wait(lambda: set(model.joint_names) <= set(robot.joints), 'joint_states')
        wait(lambda: 'wrist_roll' in browser.page_source, 'the page')
        way = drag_gizmo(browser, model, model.robot.link_pose(model.tip_link, robot.joints))
        demo.wait_said('arrived at the goal')
        assert np.linalg.norm(way) > 0.01
        browser.switch_to.default_content()
        browser.find_element('tag name', 'button').click()
        demo.wait_said('stop')
        nodes = demo.children()
        os.killpg(demo.process.pid, signal.SIGINT)
        assert demo.wait_ended() == 0, demo.said
        assert sorted(nodes) == ['ik_node', 'ik_servos', 'ik_viewer']
        assert 'Traceback' not in demo.said
    finally:
        if robot is not None:
            robot.close()
        demo.end()


def drag_gizmo(browser: Any, arm: Arm, T: np.ndarray) -> np.ndarray:
    """Drag the gizmo at T (4, 4) along the axis that is seen longest; return the way (3,)."""
    extent = draw(ARM, arm.robot, arm.tip_link).extent
    project = Projection(browser, extent)
    heads = [T[:3, 3] + 0.75 * GIZMO_SCALE * extent * T[:3, axis] for axis in range(3)]
    axis = int(np.argmax([np.linalg.norm(project(head) - project(T[:3, 3])) for head in heads]))
    way = -0.1 * extent * T[:3, axis]
    drag(browser, project(heads[axis]), project(heads[axis] + way))
    return way
