# SPDX-License-Identifier: Apache-2.0
"""Programs taught, checked, run and stopped in a real browser, by clicks and drags of the mouse."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from browser_harness import (
    arrow,
    browser,
    choose,
    click,
    displayed,
    drag,
    enter,
    open_page,
    press,
    settled,
    texts,
    type_into,
    wait,
    words,
)
from domains import new_domain
from sensor_msgs.msg import JointState
from viewer_harness import SEED_ARM, SEED_FILE, SEED_JOINTS, RobotSide, started, viewer

from ik_node.model.arm import Arm
from ik_node.teach.program import Point, Program

__all__ = ['browser']
ARM = Arm.from_urdf(SEED_ARM)
Q = dict(zip(SEED_JOINTS, (0.3, 0.5, 0.9, 0.6, 0.4), strict=True))  # in the picture left of the panel
AWAY = {**Q, 'joint1': -0.5}
QUIET = 1.0  # [s] in which something would move if it did at all


class Desk(NamedTuple):
    """The robot's side, what it has published of its joints, and the folder of the programs."""

    robot: RobotSide
    seen: list[JointState]
    folder: Path


@pytest.fixture(scope='module')
def desk(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """ik_node with the seed arm, the viewer, and its page with the folder Teach open."""
    folder, domain = tmp_path_factory.mktemp('programs'), new_domain()
    with started('ik_node', domain, SEED_FILE), viewer(domain, f'programs:={folder}') as (process, robot):
        seen: list[JointState] = []
        robot.node.create_subscription(JointState, 'joint_states', seen.append, 100)
        open_page(browser, process.url())
        open_folder(browser)
        yield Desk(robot, seen, folder)


def open_folder(browser: Any) -> None:
    """Open the folder Teach; a page that is still being built forgets a click."""

    def opened() -> bool:
        if displayed(browser, "//label[normalize-space()='Program']"):
            return True
        click(browser, 'Teach')
        time.sleep(1.0)  # it unfolds
        return False

    wait(opened, 'the folder')


def rows(browser: Any) -> list[str]:
    """The points, as the page lists them."""
    labels = [text.removeprefix('▸ ') for text in texts(browser, '//button')]
    return [label for label in labels if label[:1].isdigit() and ': ' in label]


def fk(joints: Any) -> np.ndarray:
    return ARM.fk(np.array([joints[name] for name in SEED_JOINTS]))[0]


def place(point: Point) -> np.ndarray:
    """Where the tool is at a point (3,)."""
    return np.array(point.position) if point.joints is None else fk(point.joints)


def visited(desk: Desk, point: Point) -> bool:
    """Whether the tool has been at a point."""
    ways = [fk(dict(zip(one.name, one.position, strict=True))) - place(point) for one in list(desk.seen)]
    return bool(np.linalg.norm(ways, axis=1).min() < 1e-3)


def stands(desk: Desk) -> None:
    """Nothing moves and no goal is sent."""
    before, count = dict(desk.robot.joints), len(desk.robot.joint_goals)
    time.sleep(QUIET)
    assert desk.robot.joints == pytest.approx(before, abs=1e-9)
    assert len(desk.robot.joint_goals) == count


def said(browser: Any, text: str) -> None:
    wait(lambda: text in words(browser), text)


def stop(browser: Any) -> None:
    """Click the stop button, which is outside the frame of the panel."""
    browser.switch_to.default_content()
    browser.find_element('css selector', '#stop').click()
    enter(browser)


def drag_gizmo(browser: Any, robot: RobotSide) -> np.ndarray:
    """Drag the gizmo along its axis that is seen longest; return where it is then (3,)."""
    settled(browser)
    start, end, way = arrow(browser, ARM, robot.joints, -0.12)
    wanted = ARM.robot.link_pose(ARM.tip_link, robot.joints)[:3, 3] + way
    drag(browser, start, end)
    wait(
        lambda: robot.goals and np.linalg.norm(robot.goal()[:3, 3] - wanted) < 0.02 * ARM.reach,
        'the whole way',
    )
    return robot.goal()[:3, 3]


def test_points_are_taught_at_gizmo_and_arm_checked_saved_and_run(browser: Any, desk: Desk) -> None:
    robot = desk.robot
    robot.go(**Q)
    gizmo = drag_gizmo(browser, robot)
    wait(lambda: np.linalg.norm(fk(robot.joints) - gizmo) < 1e-3, 'the arm at the gizmo')
    press(browser, 'Add point', 'At the gizmo')
    wait(lambda: rows(browser) == ['1: P1'], 'the first point')
    robot.go(**AWAY)
    press(browser, 'Add point', 'At the arm')
    wait(lambda: rows(browser) == ['1: P1', '2: P2'], 'the second point')
    type_into(browser, 'Name', 'away')
    wait(lambda: rows(browser)[1] == '2: away', 'its name')
    click(browser, '1: P1')
    wait(lambda: displayed(browser, "//input[@value='P1']"), 'the editor of the first point')
    choose(browser, 'Motion', 'line')
    wait(lambda: rows(browser)[0] == '1: P1 · line', 'a line to the first point')
    choose(browser, 'Motion', 'joint')
    wait(lambda: rows(browser)[0] == '1: P1', 'a motion of all joints')

    press(browser, 'Program', 'Check')
    said(browser, 'Ready to run')
    stands(desk)
    type_into(browser, 'File', 'two points')
    press(browser, 'Save', 'Save')
    wait((desk.folder / 'two points.yaml').exists, 'the file')
    first, second = Program.load(desk.folder / 'two points.yaml').points
    assert first.position == pytest.approx(gizmo, abs=1e-5)
    assert second.joints == pytest.approx(AWAY, abs=2e-3)

    robot.joint_goals.clear()
    desk.seen.clear()
    press(browser, 'Program', 'Run')
    said(browser, 'Finished')
    assert len(robot.joint_goals) == 2
    assert visited(desk, first)
    assert np.linalg.norm(fk(robot.joints) - place(second)) < 1e-3
    stands(desk)

    open_page(browser, browser.current_url)
    open_folder(browser)
    wait(lambda: rows(browser) == ['1: P1', '2: away'], 'the program after a reload')
    press(browser, 'Save', 'New')
    wait(lambda: not rows(browser), 'no program')
    choose(browser, 'Open', 'two points')
    wait(lambda: rows(browser) == ['1: P1', '2: away'], 'the program of the file')
    stands(desk)


def test_the_stop_button_ends_a_run_and_continue_goes_on_after_resume(browser: Any, desk: Desk) -> None:
    robot = desk.robot
    robot.go(**Q)
    points = (Point('there', joints=AWAY, speed=0.3), Point('back', joints=Q, speed=0.3))
    Program(points).save(desk.folder / 'there and back.yaml')
    choose(browser, 'Open', 'there and back')
    wait(lambda: rows(browser) == ['1: there · 30 %', '2: back · 30 %'], 'the program')
    type_into(browser, 'Loops', '0')
    press(browser, 'Program', 'Run')
    wait(lambda: 'Running' in words(browser) and robot.joints['joint1'] < 0.25, 'the arm on its way')
    stop(browser)
    said(browser, 'Ended')
    wait(lambda: 'press Resume' in words(browser), 'the stop')
    assert '~/resume' not in words(browser)
    stands(desk)
    click(browser, 'Resume')
    wait(lambda: 'press Resume' not in words(browser), 'the end of the stop')
    stands(desk)

    press(browser, 'Run', 'Continue')
    said(browser, 'Running')
    press(browser, 'Run', 'Pause')
    said(browser, 'Paused')
    assert min(np.linalg.norm(fk(robot.joints) - place(point)) for point in points) < 1e-3
    stands(desk)


def test_what_cannot_be_reached_is_rejected_by_name(browser: Any, desk: Desk) -> None:
    far = Point('far', position=(0.0, 0.0, 3.0), direction=(0.0, 0.0, 1.0))
    Program((Point('near', joints=Q), far)).save(desk.folder / 'too far.yaml')
    choose(browser, 'Open', 'too far')
    wait(lambda: rows(browser) == ['1: near', '2: far'], 'the program')
    press(browser, 'Program', 'Run')
    said(browser, 'Rejected')
    said(browser, '"far": unreachable')
    stands(desk)
