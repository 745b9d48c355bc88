# SPDX-License-Identifier: Apache-2.0
"""Inputs that arrive late or are overtaken: nothing moves by them."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from network import Network
from node_harness import new_domain
from page import Page
from rclpy.node import Node
from std_srvs.srv import Trigger
from viewer_harness import SEED_ARM, SEED_JOINTS, Process, RobotSide, viewer

from ik_node.model.arm import Arm
from ik_node.viewer.input_freshness import OLDEST, PERIOD
from ik_node.viewer.panel.inputs import LATE

Q = dict(zip(SEED_JOINTS, (0.3, 0.5, 0.9, 0.6, 0.4), strict=True))
ARM = Arm.from_urdf(SEED_ARM)


def raised(by: float) -> np.ndarray:
    T = ARM.robot.link_pose('tool0', Q)
    T[2, 3] += by
    return T


@pytest.fixture
def running() -> Iterator[tuple[Process, RobotSide, int]]:
    domain = new_domain()
    with viewer(domain) as (process, robot):
        robot.describe(SEED_ARM)
        yield process, robot, domain


def shown(url: str, robot: RobotSide) -> Page:
    """A page that shows the arm at Q."""
    page = Page(url)
    page.repeats = False

    def there() -> bool:
        robot.move(**Q)
        return np.allclose(page.pose('/base/goal'), raised(0.0), atol=1e-4)

    page.wait(there, 'the arm')
    return page


def test_what_a_network_delivers_late_moves_nothing(running: tuple[Process, RobotSide, int]) -> None:
    process, robot, _ = running
    with Network(process.port()) as network:
        page = shown(process.url().replace(f':{process.port()}/', f':{network.port}/'), robot)
        page.drag(raised(0.02), release=False)
        robot.wait(lambda: robot.goals, 'a goal')
        time.sleep(4.0 * PERIOD)
        robot.goals.clear()
        network.freeze()
        page.drag(raised(0.05), release=False)
        page.choose('joint1 [°]', 20.0)
        page.drag(raised(0.08))
        time.sleep(OLDEST + 4.0 * PERIOD)
        assert not robot.goals
        network.thaw()
        page.wait(
            lambda: np.allclose(page.pose('/base/goal'), raised(0.0), atol=1e-4), 'the gizmo at the tool'
        )
        assert not robot.goals
        assert not robot.joint_goals
        page.wait(lambda: page.notices, 'words about it')
        assert page.notices == [LATE[1]]

        def heard() -> bool:
            page.drag(raised(0.03))
            time.sleep(PERIOD)
            return bool(robot.goals)

        page.wait(heard, 'a goal of now')
        assert np.allclose(robot.goal(), raised(0.03), atol=1e-6)
        page.close()


@pytest.fixture
def followed(running: tuple[Process, RobotSide, int]) -> Iterator[tuple[Page, RobotSide, Process, Process]]:
    """A goal publisher that follows a track, and the page."""
    process, robot, domain = running
    page = shown(process.url(), robot)
    goals = Process('ik_goals', domain, '--ros-args', '-p', 'track:=circle')
    try:
        page.wait(lambda: page.control('Target track')['value'] == 'circle', 'the track')
        robot.wait(lambda: robot.move(**Q) or robot.goals, 'its goals')
        yield page, robot, process, goals
    finally:
        goals.signal(signal.SIGCONT)
        assert goals.end() == 0
        page.close()


def test_a_drag_waits_for_the_end_of_the_track(followed: tuple[Page, RobotSide, Process, Process]) -> None:
    page, robot, _, goals = followed
    goals.signal(signal.SIGSTOP)
    time.sleep(0.5)
    robot.goals.clear()
    page.drag(raised(0.04))
    time.sleep(2.0)
    assert not robot.goals, 'the next goal of the track would override it'
    goals.signal(signal.SIGCONT)
    page.wait(lambda: 'track: none' in goals.said, 'the end of the track')
    time.sleep(0.5)
    last = raised(0.04)
    assert not any(np.allclose(_pose(goal), last) for goal in robot.goals), 'by now it is late'
    page.drag(last)
    robot.wait(lambda: np.allclose(robot.goal(), last), 'the goal')
    time.sleep(0.5)
    assert np.allclose(robot.goal(), last), 'no goal of the track comes after it'


def _pose(message: Any) -> np.ndarray:
    from ik_node.ros.conversions import pose_matrix

    return pose_matrix(message.pose)


def test_home_waits_for_the_end_of_the_track(followed: tuple[Page, RobotSide, Process, Process]) -> None:
    page, robot, process, goals = followed
    solver, homes = Node('ik_node', context=robot.context), list[float]()

    def home(_: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        homes.append(time.monotonic())
        return response

    solver.create_service(Trigger, '~/home', home)
    robot.spinning.add(solver)
    try:
        goals.signal(signal.SIGSTOP)
        page.press('Home')
        robot.wait(lambda: 'Home: ik_goals has not ended its track' in process.said, 'the warning')
        assert not homes
        goals.signal(signal.SIGCONT)
        page.wait(lambda: 'track: none' in goals.said, 'the end of the track')
        time.sleep(0.5)
        assert not homes

        def pressed() -> bool:
            page.press('Home')
            time.sleep(0.5)
            return bool(homes)

        page.wait(pressed, 'home')
    finally:
        solver.destroy_node()
