# SPDX-License-Identifier: Apache-2.0
"""The list of solutions in the page: what a click does, and what none does."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from desk import SEED_ARM, SEED_JOINTS, Page, RobotSide, viewer

from ik_node.model.arm import Arm
from ik_node.solver.goal import Goal
from ik_node.viewer.scene.ghost_meshes import ghost_meshes
from ik_node.viewer.scene.visuals import draw
from ik_node.viewer.solutions.ghosts import SWELLING
from ik_node.viewer.solutions.listing import Lister, Listing, Query

ARM = Arm.from_urdf(SEED_ARM)
Q = dict(zip(SEED_JOINTS, (0.3, 0.5, 0.9, 0.6, 0.4), strict=True))
OTHER = dict(zip(SEED_JOINTS, (0.8, 0.3, 0.7, 0.6, 0.4), strict=True))
SHOW = 'Show solutions'
MESHES = ghost_meshes(ARM, draw(SEED_ARM, ARM.robot, 'tool0', ''), SWELLING)


def listing_at(values: dict[str, float]) -> Listing:
    goal = Goal(*ARM.fk([values[name] for name in ARM.joint_names]))
    return Lister(ARM, SEED_ARM).listing(Query(goal, values))


@pytest.fixture(scope='module')
def listing() -> Listing:
    return listing_at(Q)


@pytest.fixture(scope='module')
def running() -> Iterator[tuple[Page, RobotSide]]:
    with viewer() as (table, robot):
        page = Page(table)
        robot.describe(SEED_ARM)
        page.wait(lambda: 'Waiting for joint_states' in page.text(), 'the robot')
        yield page, robot
        page.close()


@pytest.fixture
def page(running: tuple[Page, RobotSide], listing: Listing) -> Page:
    """The arm stands at Q, its solutions are shown and settled."""
    page, robot = running
    page.choose(SHOW, False)
    robot.move(**Q)
    page.wait(lambda: np.allclose(page.pose('/tip'), ARM.robot.link_pose('tool0', Q), atol=1e-4), 'the arm')
    page.wait(lambda: not shown_rows(page), 'no list')
    page.choose(SHOW, True)
    page.wait(lambda: len(shown_rows(page)) == len(listing.allowed), 'the list')
    robot.joint_goals.clear()
    return page


def shown_rows(page: Page) -> list[str]:
    """The labels of the rows."""
    buttons = [control for control in list(page.controls.values()) if control['kind'] == 'GuiButtonMessage']
    return [button['label'] for button in buttons if button['visible'] and '·' in button['label']]


def press(page: Page, row: int) -> None:
    label = shown_rows(page)[row]
    page._send('GuiUpdateMessage', uuid=page._uuid(label), updates={'value': True})


def click_ghost(page: Page, index: int, listing: Listing, aimed: int | None = None) -> None:
    """Click the ghost number index where number aimed of the list is, by default itself."""
    choices = [*listing.allowed, *listing.forbidden]
    q = choices[min(index if aimed is None else aimed, len(choices) - 1)].q
    link, mesh = next(iter(MESHES.items()))
    T = ARM.robot.link_pose(link, dict(zip(ARM.joint_names, q.tolist(), strict=True)))
    outside = mesh.triangles[0].mean(axis=0) + 0.1 * mesh.face_normals[0]
    page._send(
        'SceneNodeClickMessage',
        name='/solutions/0',
        instance_index=index,
        ray_origin=tuple((T[:3, :3] @ outside + T[:3, 3]).tolist()),
        ray_direction=tuple((-T[:3, :3] @ mesh.face_normals[0]).tolist()),
        screen_pos=(0.5, 0.5),
        modifier=None,
    )


def clicked(click: Any, page: Page, answered: Any, what: str) -> None:
    """Click until it is answered: right after a change of the list, or too late, a click is rejected."""
    rejections = 'The list had just changed', 'Your input arrived more than'

    def taken() -> bool:
        click()
        page.wait(
            lambda: answered() or any(one in page.words() for one in rejections), f'{what} or a rejection'
        )
        return bool(answered())

    page.wait(taken, what)


def asked_by(click: Any, robot: RobotSide, page: Page) -> np.ndarray:
    """Return the joints (n,) that the viewer asks for after a click."""
    clicked(click, page, lambda: robot.joint_goals, 'a goal')
    message = robot.joint_goals[-1]
    values = dict(zip(message.name, message.position, strict=True))
    return np.array([values[name] for name in ARM.joint_names])


def test_rows_are_the_solutions_nearest_first(page: Page, listing: Listing) -> None:
    here = np.array([Q[name] for name in ARM.joint_names])
    moves = [np.degrees(np.abs(choice.q - here).max()) for choice in listing.allowed]
    rows = shown_rows(page)
    assert [row.split(':')[0] for row in rows] == [str(k + 1) for k in range(len(rows))]
    assert [float(row.split(': ')[1].split('°')[0]) for row in rows] == pytest.approx(moves, abs=0.6)


@pytest.mark.parametrize('row', [1, 3])
def test_a_row_and_its_ghost_ask_for_that_solution(
    page: Page, running: tuple[Page, RobotSide], listing: Listing, row: int
) -> None:
    _, robot = running
    assert np.allclose(asked_by(lambda: press(page, row), robot, page), listing.allowed[row].q, atol=1e-6)
    robot.joint_goals.clear()
    assert np.allclose(
        asked_by(lambda: click_ghost(page, row, listing), robot, page), listing.allowed[row].q, atol=1e-6
    )


def test_a_click_on_a_forbidden_ghost_says_why_and_moves_nothing(
    page: Page, running: tuple[Page, RobotSide], listing: Listing
) -> None:
    _, robot = running
    assert listing.forbidden
    reason = 'The arm cannot go there: joint4'
    clicked(
        lambda: click_ghost(page, len(listing.allowed), listing),
        page,
        lambda: reason in page.words(),
        'the reason',
    )
    click_ghost(page, len(listing.allowed) + len(listing.forbidden), listing)  # hidden
    page.wait(lambda: 'The arm cannot go there' not in page.words(), 'no reason')
    asked_by(lambda: press(page, 0), robot, page)
    first = dict(zip(ARM.joint_names, listing.allowed[0].q.tolist(), strict=True))
    for message in robot.joint_goals:
        assert dict(zip(message.name, message.position, strict=True)) == pytest.approx(first, abs=1e-6)


def test_a_click_on_an_older_list_moves_nothing(
    page: Page, running: tuple[Page, RobotSide], listing: Listing
) -> None:
    _, robot = running
    old = page._uuid(shown_rows(page)[1])
    click_ghost(page, 1, listing, aimed=3)  # where the browser still shows another one
    page.wait(lambda: 'The list had just changed' in page.words(), 'the rejection')
    robot.move(**OTHER)
    page.wait(lambda: old not in page.controls and shown_rows(page), 'another list')
    page._send('GuiUpdateMessage', uuid=old, updates={'value': True})
    page.choose(SHOW, False)
    page.wait(lambda: not shown_rows(page), 'what was sent after the click')
    assert not robot.joint_goals


def test_the_list_is_sorted_again_once_the_arm_rests_elsewhere(
    page: Page, running: tuple[Page, RobotSide], listing: Listing
) -> None:
    _, robot = running
    goal = listing.allowed[2].q
    assert np.allclose(asked_by(lambda: press(page, 2), robot, page), goal, atol=1e-6)
    robot.move(**dict(zip(ARM.joint_names, goal.tolist(), strict=True)))
    page.wait(lambda: shown_rows(page)[0].startswith('1: 0°'), 'the list from there')
    moves = [float(row.split(': ')[1].split('°')[0]) for row in shown_rows(page)]
    assert moves == sorted(moves)


def test_the_gizmo_stays_at_the_goal_that_a_click_keeps(
    page: Page, running: tuple[Page, RobotSide], listing: Listing
) -> None:
    _, robot = running
    gizmo = page.pose('/base/goal')
    asked_by(lambda: press(page, 1), robot, page)
    before = shown_rows(page)
    robot.move(**OTHER)  # on its way
    page.wait(lambda: shown_rows(page)[0] != before[0], 'other moves in the rows')
    assert len(shown_rows(page)) == len(listing.allowed)
    assert np.allclose(page.pose('/base/goal'), gizmo, atol=1e-6)


@pytest.mark.parametrize('far', [2e9, 1e300, math.nan])
def test_a_goal_where_none_may_be_does_not_end_the_viewer(
    page: Page, running: tuple[Page, RobotSide], listing: Listing, far: float
) -> None:
    _, robot = running
    T = page.pose('/base/goal')
    beyond = T.copy()
    beyond[0, 3] = far
    for send in (page.drag, robot.want):
        send(beyond)
        page.run(1.0)  # longer than the viewer takes to ask for a list
    robot.want(T)
    page.choose(SHOW, False)
    page.wait(lambda: not shown_rows(page), 'no list')
    page.choose(SHOW, True)
    page.wait(lambda: len(shown_rows(page)) == len(listing.allowed), 'the list of the goal after it')


def test_a_goal_out_of_reach_says_how_far_before_the_mouse_is_released(page: Page) -> None:
    T = page.pose('/base/goal')
    T[:3, 3] *= 3.0 / np.linalg.norm(T[:3, 3])
    page.drag(T, release=False)
    page.wait(lambda: 'mm too far' in page.nodes['/why/distance']['text'], 'the distance in the scene')
    page.wait(lambda: page.nodes['/why/line']['visible'], 'the line')
    page.release()
    page.choose(SHOW, False)
    page.wait(lambda: '/why/line' not in page.nodes and '/solutions/0' not in page.nodes, 'nothing any more')
