# SPDX-License-Identifier: Apache-2.0
"""What users do at any moment is obeyed, unless it arrives late: then nothing moves by it."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import viser
from desk import ROOT, SEED_ARM, SEED_JOINTS, Page, RobotSide, called, showing
from interleaved import at_step
from small_arm import arm_urdf
from websockets.asyncio.server import ServerConnection

from ik_node.model.arm import Arm
from ik_node.ros.conversions import pose_matrix
from ik_node.ros.programs.track_player import GoalsNode
from ik_node.viewer import guard
from ik_node.viewer.events import LATE, Events
from ik_node.viewer.guard import OLDEST, PERIOD, DatedConnection, fresh
from ik_node.viewer.node import PATIENCE
from ik_node.viewer.panel import TOOLS, JointsPanel, add_arm_buttons, without_repeats
from ik_node.viewer.scene import ToolScene

MOST = 2000  # steps of one call


def did(handler: Callable[[Any], Any], target: Any) -> None:
    """Have a user cause an event, as viser tells of it."""
    with pytest.raises(StopIteration):
        handler(SimpleNamespace(client_id=1, client=None, phase='update', target=target)).send(None)


class Buttoned:
    """A row of buttons: before and meanwhile, one is pressed each."""

    def __init__(self, server: viser.ViserServer) -> None:
        self._events, self._pressed = Events(), list[str]()
        names = self.FIRST, self.SECOND
        row = add_arm_buttons(server.gui, self._events, 'Arm', names, self._pressed.append)
        (self._handler,) = row._impl.update_cb

    def take(self) -> list[str]:
        self._events.process()
        taken = list(self._pressed)
        del self._pressed[: len(taken)]
        return taken

    def act(self, value: str) -> None:
        did(self._handler, SimpleNamespace(value=value))

    FIRST, SECOND = 'Resume', 'Stop'


class Sliders:
    """Two joints; what is taken are their names."""

    def __init__(self, server: viser.ViserServer) -> None:
        self._events = Events()
        self._panel = JointsPanel(server.gui, self._events)
        self._panel.show([Arm.from_urdf(arm_urdf(), tip_link='tool0')])
        self._handles = {slider.joints[0]: slider.handles[0] for slider in self._panel._sliders}

    def take(self) -> list[str]:
        self._events.process()
        return list(self._panel.take_joints())

    def act(self, value: str) -> None:
        (handler,) = self._handles[value]._impl.update_cb
        did(handler, self._handles[value])

    FIRST, SECOND = 'yaw', 'wrist'


class Drags:
    """The gizmo; what is taken is how far it was dragged."""

    def __init__(self, server: viser.ViserServer) -> None:
        arm = Arm.from_urdf(arm_urdf(), tip_link='tool0')
        self._events = Events()
        self._scene = ToolScene(server, self._events, '', arm, 1.0, TOOLS[0])

    def take(self) -> list[str]:
        self._events.process()
        pose = self._scene.take_drag()
        return [] if pose is None else [f'{pose[0, 3]:.1f}']

    def act(self, value: str) -> None:
        (handler,) = self._scene._gizmo._impl_aux.update_cb
        gizmo = self._scene._gizmo
        gizmo.wxyz, gizmo.position = np.array([1.0, 0.0, 0.0, 0.0]), np.array([float(value), 0.0, 0.0])
        did(handler, gizmo)

    FIRST, SECOND = '0.1', '0.2'


@pytest.mark.slow
@pytest.mark.parametrize('taker_waits', [True, False])
@pytest.mark.parametrize('kind', [Buttoned, Sliders, Drags])
def test_nothing_that_a_user_does_is_lost_at_any_step(
    server: viser.ViserServer, kind: type[Any], taker_waits: bool
) -> None:
    user = kind(server)
    for number in range(1, MOST):
        taken: list[str] = []
        user.take()
        user.act(user.FIRST)

        def take(taken: list[str] = taken) -> None:
            taken += user.take()

        def act() -> None:
            user.act(user.SECOND)

        if not (at_step(number, act, take) if taker_waits else at_step(number, take, act)):
            break
        take()
        assert taken[-1] == user.SECOND, f'step {number}'
        if kind is not Drags:  # of which only the newest counts
            assert sorted(set(taken)) == sorted([user.FIRST, user.SECOND]), f'step {number}: {taken}'
    else:
        pytest.fail(f'more than {MOST} steps')
    assert number > 5


def test_sliders_of_a_robot_that_has_gone_move_nothing(server: viser.ViserServer) -> None:
    sliders = Sliders(server)
    sliders.act(sliders.FIRST)
    sliders._panel.show([Arm.from_urdf(arm_urdf(), tip_link='tool0')])
    assert sliders.take() == []


def test_a_drag_that_waits_is_not_overwritten_by_a_goal_of_others(server: viser.ViserServer) -> None:
    drags, other = Drags(server), np.eye(4)
    other[0, 3] = 0.5
    scene = drags._scene
    drags.act('0.2')
    scene.end_drags()  # the mouse is released before anybody has taken the drag
    assert not scene.place_goal(other)
    assert drags.take() == ['0.2']
    assert scene.place_goal(other)


Q = dict(zip(SEED_JOINTS, (0.3, 0.5, 0.9, 0.6, 0.4), strict=True))
ARM = Arm.from_urdf(SEED_ARM)


def raised(by: float) -> np.ndarray:
    T = ARM.robot.link_pose('tool0', Q)
    T[2, 3] += by
    return T


# Late inputs


@pytest.fixture
def shown() -> Iterator[tuple[Page, RobotSide]]:
    """A page that shows the arm at Q."""
    with showing(SEED_ARM, **Q) as (page, robot):
        page.wait(lambda: np.allclose(page.pose('/base/goal'), raised(0.0), atol=1e-4), 'the arm')
        yield page, robot


@pytest.mark.slow
def test_what_a_network_delivers_late_moves_nothing(shown: tuple[Page, RobotSide]) -> None:
    page, robot = shown
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


class Client:
    """A browser; notices: what it was notified of."""

    def __init__(self) -> None:
        self.notices: list[str] = []

    def add_notification(self, _: str, body: str, **__: Any) -> None:
        self.notices.append(body)


@pytest.mark.parametrize(('age', 'taken'), [(0.0, ['Resume', 'Stop']), (2.0 * OLDEST, ['Stop'])])
def test_a_stop_counts_however_late(server: viser.ViserServer, age: float, taken: list[str]) -> None:
    buttons, client = Buttoned(server), Client()

    async def press() -> None:
        guard._sent_after.set(time.monotonic() - age)
        for value in ('Resume', 'Stop'):
            target = SimpleNamespace(value=value)
            await buttons._handler(SimpleNamespace(client_id=1, client=client, target=target))

    asyncio.run(press())
    assert buttons.take() == taken
    assert client.notices == ([LATE[1]] if age else [])


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
def followed(shown: tuple[Page, RobotSide]) -> Iterator[tuple[Page, RobotSide, GoalsNode]]:
    """A goal publisher that follows a track, and the page."""
    page, robot = shown
    with closing(page.desk.make('ik_goals', 'track:=circle')) as goals:
        page.wait(lambda: page.control('Target track')['value'] == 'circle', 'the track')
        robot.wait(lambda: robot.move(**Q) or robot.goals, 'its goals')
        yield page, robot, goals


def track_of(goals: GoalsNode) -> str:
    return str(goals.get_parameter('track').value)


@pytest.mark.slow
def test_a_drag_waits_for_the_end_of_the_track(followed: tuple[Page, RobotSide, GoalsNode]) -> None:
    page, robot, goals = followed
    page.desk.world.busy.add(goals)
    page.run(0.5)
    robot.goals.clear()
    page.drag(raised(0.04))
    page.run(2.0)
    assert not robot.goals, 'the next goal of the track would override it'
    page.desk.world.busy.clear()
    page.wait(lambda: track_of(goals) == 'none', 'the end of the track')
    page.run(0.5)
    last = raised(0.04)
    assert not any(np.allclose(pose_matrix(goal.pose), last) for goal in robot.goals), 'by now it is late'
    page.drag(last)
    robot.wait(lambda: np.allclose(robot.goal(), last), 'the goal')
    page.run(0.5)
    assert np.allclose(robot.goal(), last), 'no goal of the track comes after it'


@pytest.mark.slow
def test_home_waits_for_the_end_of_the_track(
    followed: tuple[Page, RobotSide, GoalsNode], capfd: pytest.CaptureFixture[str]
) -> None:
    page, robot, goals = followed
    with called(robot) as names:
        page.run(2.0)  # the viewer looks for services
        page.desk.world.busy.add(goals)
        page.press('Home')
        page.run(2.0 * PATIENCE)
        assert 'Home: the goal still moves along its track' in capfd.readouterr().err
        page.desk.world.busy.clear()
        page.wait(lambda: track_of(goals) == 'none', 'the end of the track')
        page.run(0.5)
        assert not names
        page.press('Home')
        page.wait(lambda: names == ['home'], 'home')


# Sliders


@pytest.fixture
def sliders(server: viser.ViserServer) -> JointsPanel:
    return JointsPanel(server.gui, Events())


def test_a_ball_joint_has_sliders_for_swing_and_twist(sliders: JointsPanel) -> None:
    arm = Arm.from_file(ROOT / 'urdf' / 'ball_joint_arm.urdf.xacro')
    sliders.show([arm])
    (ball,) = [slider for slider in sliders._sliders if len(slider.joints) == 3]
    assert ball.joints == arm.balls[0].joints
    assert [len(slider.handles) for slider in sliders._sliders].count(1) == arm.n - 3
    for q in arm.sample(np.random.default_rng(1), 20):
        values = dict(zip(arm.joint_names, q.tolist(), strict=True))
        sliders.set(values)
        for name, value in ball.get().items():
            assert value == pytest.approx(values[name], abs=math.radians(0.2))
    for handle in ball.handles[:2]:
        handle.value = math.degrees(arm.balls[0].swing)  # both: beyond the cone
    positions = np.array([ball.get()[name] for name in arm.joint_names[:3]])
    assert arm.ball_excess(np.append(positions, np.zeros(arm.n - 3))) < 1e-6
    swing_x, swing_y, _ = arm.balls[0].swing_twist(tuple(positions.tolist()))
    assert math.hypot(swing_x, swing_y) == pytest.approx(arm.balls[0].swing)


def test_other_arms_have_a_slider_for_each_joint(sliders: JointsPanel) -> None:
    sliders.show([ARM])
    assert [slider.joints for slider in sliders._sliders] == [(name,) for name in ARM.joint_names]
    sliders.set(dict.fromkeys(ARM.joint_names, 0.5))
    assert all(slider.get()[slider.joints[0]] == pytest.approx(0.5, abs=1e-3) for slider in sliders._sliders)


def test_a_card_says_a_reason_once() -> None:
    reason = 'joint "elbow" has not been measured for 1 s'
    assert without_repeats('', f'goal_point rejected: {reason}', reason.capitalize()) == [
        f'goal_point rejected: {reason}'
    ]
    assert without_repeats('', '', '') == []
    ended = f'the goal ended before the arm arrived: {reason}'
    assert without_repeats(ended, f'{reason}; press Resume') == [ended, 'Press Resume']
