# SPDX-License-Identifier: Apache-2.0
"""The list of solutions in the page: what a click does, and what none does."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from desk import ROOT, SEED_ARM, SEED_JOINTS, Page, RobotSide, showing
from geometry_msgs.msg import PoseStamped
from sensor_msgs.msg import JointState
from small_arm import WITH_SPARE

from ik_node.control.preview import Previews
from ik_node.control.settings import ArmSettings, RobotSettings
from ik_node.model.arm import Arm
from ik_node.model.urdf.reader import load_description, read_urdf, rotation
from ik_node.ros.conversions import matrix_pose
from ik_node.solver.goal import Goal
from ik_node.solver.solver import IkSolver
from ik_node.viewer.scene import draw, extent_of, ghost_meshes
from ik_node.viewer.solutions import SPHERE_RADIUS, SWELLING, Lister, Listing, Query, possible_directions

pytestmark = pytest.mark.slow

ARM = Arm.from_urdf(SEED_ARM)
Q = dict(zip(SEED_JOINTS, (0.3, 0.5, 0.9, 0.6, 0.4), strict=True))
OTHER = dict(zip(SEED_JOINTS, (0.8, 0.3, 0.7, 0.6, 0.4), strict=True))
SHOW = 'Show solutions'
MESHES = ghost_meshes(ARM, draw(SEED_ARM, ARM.robot, 'tool0', ''), SWELLING)


def listing_at(values: dict[str, float]) -> Listing:
    goal = Goal(*ARM.fk([values[name] for name in ARM.joint_names]))
    preview = Previews().of(SEED_ARM, RobotSettings(ArmSettings(), {}), '')
    return Lister(preview).listing(Query(goal, values, at_rest=True))


@pytest.fixture(scope='module')
def listing() -> Listing:
    return listing_at(Q)


@pytest.fixture(scope='module')
def running() -> Iterator[tuple[Page, RobotSide]]:
    with showing(SEED_ARM) as both:
        yield both


@pytest.fixture
def robot(running: tuple[Page, RobotSide]) -> RobotSide:
    return running[1]


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
        page.wait(lambda: answered() or any(one in page.words() for one in rejections), f'{what} or a rejection')
        return bool(answered())

    page.wait(taken, what)


def joints(message: JointState, arm: Arm = ARM) -> np.ndarray:
    values = dict(zip(message.name, message.position, strict=True))
    return np.array([values[name] for name in arm.joint_names])


def asked_by(click: Any, robot: RobotSide, page: Page) -> np.ndarray:
    """Return the joints (n,) that the viewer asks for after a click."""
    clicked(click, page, lambda: robot.joint_goals, 'a goal')
    return joints(robot.joint_goals[-1])


def test_rows_are_the_solutions_nearest_first(page: Page, listing: Listing) -> None:
    here = np.array([Q[name] for name in ARM.joint_names])
    moves = [np.degrees(np.abs(choice.q - here).max()) for choice in listing.allowed]
    rows = shown_rows(page)
    assert [row.split(':')[0] for row in rows] == [str(k + 1) for k in range(len(rows))]
    assert [float(row.split('moves ')[1].split('°')[0]) for row in rows] == pytest.approx(moves, abs=0.6)
    elbows = [ARM.skeleton(choice.q)[2] for choice in listing.allowed]
    heights = [elbow[2] for elbow in elbows]
    assert 'elbow up' in rows[int(np.argmax(heights))]
    assert 'elbow up' not in rows[int(np.argmin(heights))]


@pytest.mark.parametrize('row', [1, 3])
def test_a_row_and_its_ghost_ask_for_that_solution(page: Page, robot: RobotSide, listing: Listing, row: int) -> None:
    assert np.allclose(asked_by(lambda: press(page, row), robot, page), listing.allowed[row].q, atol=1e-6)
    robot.joint_goals.clear()
    assert np.allclose(
        asked_by(lambda: click_ghost(page, row, listing), robot, page), listing.allowed[row].q, atol=1e-6
    )


def test_a_click_on_a_forbidden_ghost_says_why_and_moves_nothing(
    page: Page, robot: RobotSide, listing: Listing
) -> None:
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


def test_a_click_on_an_older_list_moves_nothing(page: Page, robot: RobotSide, listing: Listing) -> None:
    old = page._uuid(shown_rows(page)[1])
    click_ghost(page, 1, listing, aimed=3)  # where the browser still shows another one
    page.wait(lambda: 'The list had just changed' in page.words(), 'the rejection')
    robot.move(**OTHER)
    page.wait(lambda: old not in page.controls and shown_rows(page), 'another list')
    page._send('GuiUpdateMessage', uuid=old, updates={'value': True})
    page.choose(SHOW, False)
    page.wait(lambda: not shown_rows(page), 'what was sent after the click')
    assert not robot.joint_goals


def test_the_list_is_sorted_again_once_the_arm_rests_elsewhere(page: Page, robot: RobotSide, listing: Listing) -> None:
    goal = listing.allowed[2].q
    assert np.allclose(asked_by(lambda: press(page, 2), robot, page), goal, atol=1e-6)
    robot.move(**dict(zip(ARM.joint_names, goal.tolist(), strict=True)))
    page.wait(lambda: 'moves 0°' in shown_rows(page)[0], 'the list from there')
    moves = [float(row.split('moves ')[1].split('°')[0]) for row in shown_rows(page)]
    assert moves == sorted(moves)


def test_the_gizmo_stays_at_the_goal_that_a_click_keeps(page: Page, robot: RobotSide, listing: Listing) -> None:
    gizmo = page.pose('/base/goal')
    asked_by(lambda: press(page, 1), robot, page)
    before = shown_rows(page)
    robot.move(**OTHER)  # on its way
    page.wait(lambda: shown_rows(page)[0] != before[0], 'other moves in the rows')
    assert len(shown_rows(page)) == len(listing.allowed)
    assert np.allclose(page.pose('/base/goal'), gizmo, atol=1e-6)


@pytest.mark.parametrize('far', [2e9, 1e300, math.nan])
def test_a_goal_where_none_may_be_does_not_end_the_viewer(
    page: Page, robot: RobotSide, listing: Listing, far: float
) -> None:
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


# A joint to spare, tied directions, and two arms


@contextmanager
def shown(text: str, arm: Arm, q: tuple[float, ...], *given: str) -> Iterator[tuple[Page, RobotSide]]:
    """A page that lists the solutions where the arm stands at q."""
    values = {**dict.fromkeys(arm.robot.joints, 0.1), **dict(zip(arm.joint_names, q, strict=True))}
    with showing(text, *given, **values) as (page, robot):
        page.choose(SHOW, True)
        page.wait(lambda: shown_rows(page), 'the solutions')
        page.run(2.0)  # users have had time to read the list
        yield page, robot


def test_the_slider_along_a_self_motion_moves_a_ghost_and_its_button_the_arm() -> None:
    arm, q = Arm(read_urdf(WITH_SPARE)), (0.3, 0.3, 0.7, 0.5, 0.6, -0.4)
    with shown(WITH_SPARE, arm, q) as (page, robot):
        page.wait(lambda: page.control('Move the spare joint [%]')['visible'], 'the slider')
        (link,) = [name for name in page.nodes if name.startswith('/self_motion/')][-1:]
        before = page.pose(link)
        page.choose('Move the spare joint [%]', 10.0)
        page.wait(lambda: not np.allclose(page.pose(link), before, atol=1e-3), 'the ghost')
        page.run(1.0)
        assert not robot.joint_goals
        page.choose('Go to the ghost', True)
        robot.wait(lambda: robot.joint_goals, 'a goal')
        target = joints(robot.joint_goals[-1], arm)
        assert np.allclose(arm.fk(target), arm.fk(np.array(q)), atol=2e-3)
        assert np.abs(target - q).max() > 0.05


def test_a_spare_joint_that_is_held_stays() -> None:
    arm, q = Arm(read_urdf(WITH_SPARE)), (0.3, 0.3, 0.7, 0.5, 0.6, -0.4)
    with shown(WITH_SPARE, arm, q) as (page, robot):
        page.choose('Hold j0', True)
        page.run(2.0)
        page.choose(shown_rows(page)[1], True)
        robot.wait(lambda: robot.joint_goals, 'a goal')
        target = joints(robot.joint_goals[-1], arm)
        assert abs(target[0] - q[0]) < 2e-3
        assert np.abs(target - q).max() > 0.02


def test_possible_directions_are_marked_where_the_position_ties_them() -> None:
    text = load_description(ROOT / 'urdf' / 'xarm5_like.urdf.xacro')
    arm, q = Arm(read_urdf(text)), (1.5, 0.2, -1.0, 0.5, 0.2)
    with shown(text, arm, q) as (page, robot):
        T = arm.robot.link_pose(arm.tip_link, dict(zip(arm.joint_names, q, strict=True)))
        T[:3, :3] = T[:3, :3] @ rotation(0.7, 0.0, 0.0)
        robot.want(T, arm.robot.root)
        page.wait(lambda: 'direction off by' in page.words(), 'the nearest direction')
        page.wait(lambda: page.nodes['/why/directions']['visible'], 'the marks')
        marks = page.nodes['/why/directions']
        directions = possible_directions(IkSolver(arm), T[:3, 3], np.array(q))
        assert len(directions) > 20
        places = marks['batched_positions'].view(np.float32).reshape(-1, 3)[: len(directions)]
        radius = SPHERE_RADIUS * extent_of(arm.robot, arm.tip_link)
        assert np.allclose(places, T[:3, 3] + radius * directions, atol=1e-4)


def test_the_list_is_of_the_tool_with_the_newest_goal() -> None:
    text = load_description(ROOT / 'urdf' / 'two_arms.urdf.xacro')
    arm, q = Arm(read_urdf(text), 'right_tool0'), (-0.3, 0.5, 0.9, 0.6, 0.4)
    tools = ('tools:=[left, right]', 'left.tip_link:=left_tool0', 'right.tip_link:=right_tool0')
    with shown(text, arm, q, *tools) as (page, robot):
        goals: list[JointState] = []
        robot.node.create_subscription(JointState, 'right/goal_joints', goals.append, 10)
        publisher = robot.node.create_publisher(PoseStamped, 'right/goal_pose', 10)
        T = arm.robot.link_pose('right_tool0', dict(zip(arm.joint_names, q, strict=True)))
        message = PoseStamped(pose=matrix_pose(T))
        message.header.frame_id = arm.robot.root
        publisher.publish(message)
        page.run(4.0)
        page.choose(shown_rows(page)[1], True)
        robot.wait(lambda: goals, 'a goal of the right arm')
        assert set(goals[-1].name) == set(arm.joint_names)
        assert np.allclose(arm.fk(joints(goals[-1], arm))[0], arm.fk(np.array(q))[0], atol=1e-3)
        assert not robot.joint_goals
