# SPDX-License-Identifier: Apache-2.0
"""Inputs that arrive late or are overtaken: nothing moves by them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import numpy as np
import pytest
from desk import SEED_ARM, SEED_JOINTS, Desk, Page, RobotSide, called, viewer
from websockets.asyncio.server import ServerConnection

from ik_node.model.arm import Arm
from ik_node.ros.programs.track_player import GoalsNode
from ik_node.viewer.button_services import PATIENCE
from ik_node.viewer.input_freshness import OLDEST, PERIOD, DatedConnection, fresh
from ik_node.viewer.panel.inputs import LATE

Q = dict(zip(SEED_JOINTS, (0.3, 0.5, 0.9, 0.6, 0.4), strict=True))
ARM = Arm.from_urdf(SEED_ARM)


def raised(by: float) -> np.ndarray:
    T = ARM.robot.link_pose('tool0', Q)
    T[2, 3] += by
    return T


@pytest.fixture
def running() -> Iterator[tuple[Desk, RobotSide]]:
    with viewer() as (table, robot):
        robot.describe(SEED_ARM)
        yield table, robot


def shown(table: Desk, robot: RobotSide) -> Page:
    """A page that shows the arm at Q."""
    page = Page(table)
    page.repeats = False
    robot.move(**Q)
    page.wait(lambda: np.allclose(page.pose('/base/goal'), raised(0.0), atol=1e-4), 'the arm')
    return page


def test_what_a_network_delivers_late_moves_nothing(running: tuple[Desk, RobotSide]) -> None:
    table, robot = running
    page = shown(table, robot)
    page.drag(raised(0.02), release=False)
    robot.wait(lambda: robot.goals, 'a goal')
    robot.goals.clear()
    page.age = OLDEST + PERIOD
    page.drag(raised(0.05), release=False)
    page.choose('joint1 [°]', 20.0)
    page.drag(raised(0.08))
    page.wait(lambda: np.allclose(page.pose('/base/goal'), raised(0.0), atol=1e-4), 'the gizmo at the tool')
    page.run(1.0)
    assert not robot.goals
    assert not robot.joint_goals
    assert page.notices == [LATE[1]]
    page.age = 0.0
    page.drag(raised(0.03))
    robot.wait(lambda: robot.goals, 'a goal of now')
    assert np.allclose(robot.goal(), raised(0.03), atol=1e-6)
    page.close()


def test_a_message_is_as_old_as_the_last_ping_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async def receive(*_: Any) -> str:
        return 'a message'

    monkeypatch.setattr(ServerConnection, 'recv', receive)
    for age, counts in ((OLDEST - PERIOD, True), (OLDEST + PERIOD, False)):
        connection = object.__new__(DatedConnection)
        connection._answered = time.monotonic() - age

        async def received(connection: DatedConnection = connection) -> bool:
            await connection.recv()
            return fresh()

        assert asyncio.run(received()) is counts


@pytest.fixture
def followed(running: tuple[Desk, RobotSide]) -> Iterator[tuple[Page, RobotSide, Desk, GoalsNode]]:
    """A goal publisher that follows a track, and the page."""
    table, robot = running
    page = shown(table, robot)
    with closing(table.make('ik_goals', 'track:=circle')) as goals:
        page.wait(lambda: page.control('Target track')['value'] == 'circle', 'the track')
        robot.wait(lambda: robot.move(**Q) or robot.goals, 'its goals')
        yield page, robot, table, goals
        page.close()


def track_of(goals: GoalsNode) -> str:
    return str(goals.get_parameter('track').value)


def test_a_drag_waits_for_the_end_of_the_track(followed: tuple[Page, RobotSide, Desk, GoalsNode]) -> None:
    page, robot, table, goals = followed
    table.world.busy.add(goals)
    page.run(0.5)
    robot.goals.clear()
    page.drag(raised(0.04))
    page.run(2.0)
    assert not robot.goals, 'the next goal of the track would override it'
    table.world.busy.clear()
    page.wait(lambda: track_of(goals) == 'none', 'the end of the track')
    page.run(0.5)
    last = raised(0.04)
    assert not any(np.allclose(_pose(goal), last) for goal in robot.goals), 'by now it is late'
    page.drag(last)
    robot.wait(lambda: np.allclose(robot.goal(), last), 'the goal')
    page.run(0.5)
    assert np.allclose(robot.goal(), last), 'no goal of the track comes after it'


def _pose(message: Any) -> np.ndarray:
    from ik_node.ros.conversions import pose_matrix

    return pose_matrix(message.pose)


def test_home_waits_for_the_end_of_the_track(
    followed: tuple[Page, RobotSide, Desk, GoalsNode], capfd: pytest.CaptureFixture[str]
) -> None:
    page, robot, table, goals = followed
    with called(robot) as names:
        page.run(2.0)  # the viewer looks for services
        table.world.busy.add(goals)
        page.press('Home')
        page.run(2.0 * PATIENCE)
        assert 'Home: ik_goals has not ended its track' in capfd.readouterr().err
        table.world.busy.clear()
        page.wait(lambda: track_of(goals) == 'none', 'the end of the track')
        page.run(0.5)
        assert not names
        page.press('Home')
        page.wait(lambda: names == ['home'], 'home')
