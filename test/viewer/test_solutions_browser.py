# SPDX-License-Identifier: Apache-2.0
"""Solutions in a real browser: a click of the mouse on a row or a ghost, and the arm goes there."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from typing import Any

import numpy as np
import pytest
from browser_harness import (
    Projection,
    arrow,
    browser,
    changed,
    click,
    click_on,
    displayed,
    drag,
    open_page,
    settled,
    slide,
    source,
    texts,
    tick,
    wait,
    webdriver,
    words,
)
from domains import new_domain
from geometry_msgs.msg import PoseStamped
from PIL import Image
from selenium.common.exceptions import NoSuchElementException, StaleElementReferenceException
from sensor_msgs.msg import JointState
from spare_arm import WITH_SPARE
from viewer_harness import ROOT, Process, RobotSide, started

from ik_node.model.arm import Arm
from ik_node.model.urdf.reader import load_description, read_urdf, rotation
from ik_node.ros.conversions import matrix_pose
from ik_node.solver.goal import Goal
from ik_node.solver.solver import IkSolver
from ik_node.viewer.scene.visuals import extent_of
from ik_node.viewer.solutions.listing import Lister, Listing, Query
from ik_node.viewer.solutions.why import possible_directions
from ik_node.viewer.solutions.why_scene import SPHERE_RADIUS

__all__ = ['browser']
NO_COLLISION = 'self_collision:=false'
GHOST = 15  # squares that a ghost changes
HOLD = "//*[text()='Hold j0']/following::input[1]"


@contextmanager
def viewing(domain: int, *parameters: str) -> Iterator[tuple[Process, RobotSide]]:
    """The viewer, and the robot's side; for several tools that hears only what concerns all."""
    viewer = started('ik_viewer', domain, 'port:=0', *parameters)
    with viewer as process, closing(RobotSide(domain)) as robot:
        yield process, robot


@contextmanager
def shown(browser: Any, text: str, tmp_path: Any, *parameters: str) -> Iterator[RobotSide]:
    """ik_node and the viewer with a robot; its page shows solutions."""
    description = tmp_path / 'robot.urdf'
    description.write_text(text)
    domain = new_domain()
    solver = started('ik_node', domain, f'urdf_file:={description}', *parameters)
    with solver, viewing(domain, *parameters[1:]) as (process, robot):
        open_page(browser, process.url())
        wait(lambda: robot.joints and 'Show solutions' in source(browser), 'the page')
        wait(lambda: shows_solutions(browser), 'the solutions')
        yield robot


def shows_solutions(browser: Any) -> bool:
    """Tick the box if it is not; a page that is still being built forgets a click."""
    with suppress(NoSuchElementException, StaleElementReferenceException):
        box = browser.find_element('xpath', "//*[text()='Show solutions']/following::input[1]")
        if box.is_selected():
            return True
        browser.execute_script('arguments[0].scrollIntoView({block: "center"})', box)
        box.click()
    return False


def rows(browser: Any) -> list[str]:
    """The texts of the buttons of the solutions."""
    return [text for text in texts(browser, '//button') if text[:1].isdigit() and '·' in text]


def click_row(browser: Any, number: int) -> None:
    """Click a row of a list that stays."""
    wait(lambda: rows(browser), 'the solutions')
    settled(browser)
    row = f"starts-with(normalize-space(), '{number}:') and contains(., '·')"
    click_on(browser, f'//button[{row} and not(@disabled)]', f'row {number}')


def at_rest(browser: Any) -> bool:
    """Whether the first solution of the page is where the arm is: the list is not of a place on its way."""
    return [float(text[3 : text.index('°')]) < 0.3 for text in rows(browser)[:1]] == [True]


def go(robot: RobotSide, arm: Arm, q: Any, *locked: str) -> Listing:
    """Have the arm go to q (n,); return what the page lists there."""
    robot.go(**dict(zip(arm.joint_names, q, strict=True)))
    robot.joint_goals.clear()  # this side hears its own
    goal = Goal(*arm.fk([robot.joints[name] for name in arm.joint_names]))
    return Lister(arm).listing(Query(goal, dict(robot.joints), locked))


def arrived(robot: RobotSide, arm: Arm, q: np.ndarray) -> bool:
    return np.allclose([robot.joints[name] for name in arm.joint_names], q, atol=2e-3)


@pytest.mark.parametrize(
    ('name', 'q'),
    [
        ('seed_arm', (0.3, 0.5, 0.9, 0.6, 0.4)),
        ('xarm5_like', (0.3, 0.2, -1.0, 0.5, 0.2)),
        ('spare', (0.3, 0.3, 0.7, 0.5, 0.6, -0.4)),
    ],
)
def test_a_click_on_a_row_moves_the_arm(browser: Any, tmp_path: Any, name: str, q: tuple[float, ...]) -> None:
    text = WITH_SPARE if name == 'spare' else load_description(ROOT / 'urdf' / f'{name}.urdf.xacro')
    arm = Arm(read_urdf(text))
    with shown(browser, text, tmp_path, NO_COLLISION) as robot:
        locked = ('j0',) if name == 'spare' else ()
        choices = go(robot, arm, q, *locked).allowed
        wait(lambda: at_rest(browser), 'the list where the arm is')
        if locked:
            box = wait(lambda: displayed(browser, HOLD), 'the box to hold the spare joint')[0]
            browser.execute_script('arguments[0].scrollIntoView({block: "center"})', box)
            box.click()
        assert len(choices) >= 2
        wait(lambda: len(rows(browser)) == min(len(choices), 16), 'a row per solution')
        click_row(browser, 2)
        wait(lambda: robot.joint_goals, 'a goal')
        goal = dict(zip(robot.joint_goals[-1].name, robot.joint_goals[-1].position, strict=True))
        target = np.array([goal[joint] for joint in arm.joint_names])
        position, direction = arm.fk(np.array(q))
        assert np.allclose(arm.fk(target)[0], position, atol=1e-3)
        assert np.allclose(arm.fk(target)[1], direction, atol=2e-3)
        assert np.abs(target - q).max() > 0.02
        assert name != 'spare' or abs(target[0] - q[0]) < 2e-3
        wait(lambda: arrived(robot, arm, target), 'the arm at that solution')


def test_a_click_on_a_ghost_moves_the_arm(browser: Any, tmp_path: Any) -> None:
    text = load_description(ROOT / 'urdf' / 'seed_arm.urdf.xacro')
    arm = Arm(read_urdf(text))
    with shown(browser, text, tmp_path, NO_COLLISION) as robot:
        choices = go(robot, arm, (0.3, 0.5, 0.9, 0.6, 0.4)).allowed
        wait(lambda: at_rest(browser) and len(rows(browser)) == len(choices), 'a row per solution')
        settled(browser)
        project = Projection(browser, extent_of(arm.robot, arm.tip_link))
        elbows = [project(arm.skeleton(choice.q)[2]) for choice in choices]
        target = choices[int(np.argmax([x for x, _ in elbows[1:]])) + 1]  # the rightmost, behind no other
        actions = webdriver.ActionChains(browser, duration=50)
        mouse = actions.w3c_actions.pointer_action
        mouse.move_to_location(*map(int, project(arm.skeleton(target.q)[1:3].mean(axis=0))))
        mouse.pause(1.0)
        mouse.pointer_down()
        mouse.pause(0.1)
        mouse.pointer_up()
        actions.perform()
        wait(lambda: robot.joint_goals, 'a goal')
        wait(lambda: arrived(robot, arm, target.q), 'the arm at that ghost')


def test_a_drag_out_of_reach_says_how_far(browser: Any, tmp_path: Any) -> None:
    text = load_description(ROOT / 'urdf' / 'seed_arm.urdf.xacro')
    arm = Arm(read_urdf(text))
    with shown(browser, text, tmp_path, NO_COLLISION) as robot:
        robot.go(**dict.fromkeys(arm.joint_names, 0.0))
        settled(browser)
        start, end, _ = arrow(browser, arm, robot.joints, 0.25, axis=2)
        drag(browser, start, end)
        wait(lambda: 'mm too far' in source(browser), 'the distance')


def test_with_two_arms_the_list_is_of_the_tool_with_the_newest_goal(browser: Any, tmp_path: Any) -> None:
    text = load_description(ROOT / 'urdf' / 'two_arms.urdf.xacro')
    arm = Arm(read_urdf(text), 'right_tool0')
    tools = ('tools:=[left, right]', 'left.tip_link:=left_tool0', 'right.tip_link:=right_tool0')
    with shown(browser, text, tmp_path, NO_COLLISION, *tools) as robot:
        goals: list[JointState] = []
        robot.node.create_subscription(JointState, 'right/goal_joints', goals.append, 10)
        publisher = robot.node.create_publisher(PoseStamped, 'right/goal_pose', 10)
        T = arm.robot.link_pose(
            'right_tool0', dict(zip(arm.joint_names, (-0.3, 0.5, 0.9, 0.6, 0.4), strict=True))
        )
        message = PoseStamped(pose=matrix_pose(T))
        message.header.frame_id = arm.robot.root

        def at_goal() -> bool:
            publisher.publish(message)
            return np.allclose(arm.robot.link_pose('right_tool0', robot.joints), T, atol=1e-3)

        wait(lambda: publisher.get_subscription_count() == 2, 'ik_node and the viewer to hear the goal')
        wait(at_goal, 'the right arm at the goal')
        before = dict(robot.joints)
        click_row(browser, 2)
        wait(lambda: goals, 'a goal of the right arm')
        target = dict(zip(goals[-1].name, goals[-1].position, strict=True))
        assert set(target) == set(arm.joint_names)
        wait(lambda: {name: robot.joints[name] for name in target} == pytest.approx(target), 'the right arm')
        assert np.allclose(arm.robot.link_pose('right_tool0', robot.joints), T, atol=1e-3)
        still = {name: value for name, value in before.items() if name not in target}
        assert {name: robot.joints[name] for name in still} == pytest.approx(still, abs=1e-9)
        assert not robot.joint_goals


def reddish(browser: Any) -> int:
    """How many squares of the scene have the colour of a translucent red ghost."""
    colours = settled(browser)
    return int((colours[:, :, 0] - colours[:, :, 1:].max(axis=2) > 10).sum())


def pixels(browser: Any) -> np.ndarray:
    """The page, (rows, columns, 3)."""
    settled(browser)
    return np.asarray(Image.open(io.BytesIO(browser.get_screenshot_as_png())).convert('RGB'), dtype=np.int16)


def test_the_slider_along_a_self_motion_moves_a_ghost_and_its_button_the_arm(
    browser: Any, tmp_path: Any
) -> None:
    arm = Arm(read_urdf(WITH_SPARE))
    with shown(browser, WITH_SPARE, tmp_path, NO_COLLISION) as robot:
        go(robot, arm, (0.3, 0.3, 0.7, 0.5, 0.6, -0.4))
        wait(lambda: at_rest(browser), 'the list where the arm is')
        before, joints = settled(browser), dict(robot.joints)
        slide(browser, 'Along the curve [%]', 30)
        wait(lambda: changed(before, settled(browser)) > GHOST, 'the ghost')
        assert robot.joints == pytest.approx(joints, abs=1e-9)
        assert not robot.joint_goals
        click(browser, 'Go to the ghost')
        wait(lambda: robot.joint_goals, 'a goal')
        goal = dict(zip(robot.joint_goals[-1].name, robot.joint_goals[-1].position, strict=True))
        target = np.array([goal[name] for name in arm.joint_names])
        start = np.array([joints[name] for name in arm.joint_names])
        wait(lambda: arrived(robot, arm, target), 'the arm at the ghost')
        assert np.allclose(arm.fk(target), arm.fk(start), atol=2e-3)
        assert np.abs(target - start).max() > 0.05


def test_what_limits_forbid_is_told_and_red(browser: Any, tmp_path: Any) -> None:
    text = load_description(ROOT / 'urdf' / 'xarm5_like.urdf.xacro')
    arm = Arm(read_urdf(text))
    with shown(browser, text, tmp_path, NO_COLLISION) as robot:
        listing = go(robot, arm, (0.3, 0.2, -1.0, 0.5, 0.2))
        assert listing.forbidden
        wait(lambda: f'{len(listing.forbidden)} not possible' in words(browser), 'their number')
        told = listing.forbidden[0].forbidden
        wait(lambda: told in words(browser), told)
        with_ghosts = reddish(browser)
        tick(browser, 'Show solutions')
        wait(lambda: 'not possible' not in words(browser), 'no list')
        assert with_ghosts > reddish(browser) + GHOST


def test_the_possible_directions_are_marked_where_the_position_ties_them(browser: Any, tmp_path: Any) -> None:
    text = load_description(ROOT / 'urdf' / 'xarm5_like.urdf.xacro')
    arm = Arm(read_urdf(text))
    q = dict(zip(arm.joint_names, (1.5, 0.2, -1.0, 0.5, 0.2), strict=True))
    T = arm.robot.link_pose(arm.tip_link, q)
    T[:3, :3] = T[:3, :3] @ rotation(0.7, 0.0, 0.0)
    with shown(browser, text, tmp_path, NO_COLLISION) as robot:
        robot.go(**q)

        def off() -> bool:
            robot.want(T, arm.robot.root)
            return 'direction off by' in words(browser)

        wait(off, 'the nearest direction')
        solver = IkSolver(arm)
        directions = possible_directions(solver, T[:3, 3], np.array(list(q.values())))
        extent = extent_of(arm.robot, arm.tip_link)
        project = Projection(browser, extent)
        places = [project(T[:3, 3] + SPHERE_RADIUS * extent * one) for one in directions]
        with_marks = pixels(browser)
        tick(browser, 'Show solutions')
        wait(lambda: 'direction off by' not in words(browser), 'no list')
        differs = np.abs(with_marks - pixels(browser)).max(axis=2) > 20
        seen = [differs[int(y) - 2 : int(y) + 3, int(x) - 2 : int(x) + 3].any() for x, y in places]
        assert len(places) > 20
        assert np.mean(seen) > 0.7
