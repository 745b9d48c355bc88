# SPDX-License-Identifier: Apache-2.0
"""The viewer, as a browser and a robot see it."""

from __future__ import annotations

import math
import socket
import time
from collections.abc import Iterator
from contextlib import closing

import numpy as np
import pytest
import trimesh
from desk import CAMERA, SEED_ARM, SEED_FILE, SEED_JOINTS, Desk, Page, RobotSide, called, desk, showing, viewer
from diagnostic_msgs.msg import DiagnosticStatus, KeyValue
from geometry_msgs.msg import PoseStamped
from std_msgs.msg import Float64

from ik_node.errors import IkError
from ik_node.model.arm import Arm, tool_at
from ik_node.ros.conversions import stamp_text
from ik_node.ros.interfaces import LATCHED
from ik_node.ros.neighbours import Neighbours, digest
from ik_node.ros.parameters import RemoteParameters
from ik_node.tracks import TRACKS
from ik_node.viewer import guard
from ik_node.viewer.panel import LABELS, at_page
from ik_node.viewer.scene import FIELD_OF_VIEW, draw

pytestmark = pytest.mark.slow

Q = dict(zip(SEED_JOINTS, (0.3, -0.4, 0.9, -0.5, 0.7), strict=True))

TURNER = """<robot name="turner"><link name="floor"/><link name="a/b"/><link name="c d"/>
<joint name="turn" type="continuous"><parent link="floor"/><child link="a/b"/><axis xyz="0 0 1"/>
<origin xyz="0 0 0.3"/></joint>
<joint name="slide" type="prismatic"><parent link="a/b"/><child link="c d"/><axis xyz="1 0 0"/>
<origin xyz="0.2 0 0"/><limit lower="0.05" upper="0.25" velocity="1" effort="1"/></joint></robot>"""


def turned(angle: float, *position: float) -> np.ndarray:
    T = trimesh.transformations.rotation_matrix(angle, (1.0, 2.0, -1.0))
    T[:3, 3] = position
    return T


@pytest.fixture(scope='module')
def running() -> Iterator[tuple[Desk, RobotSide]]:
    with viewer() as both:
        yield both


@pytest.fixture
def robot(running: tuple[Desk, RobotSide]) -> RobotSide:
    """The robot's side; nothing is shown yet."""
    robot = running[1]
    robot.describe('<robot name="none"/>')
    robot.goals.clear()
    robot.joint_goals.clear()
    return robot


@pytest.fixture
def page(running: tuple[Desk, RobotSide]) -> Iterator[Page]:
    page = Page(running[0])
    yield page
    page.close()


@pytest.fixture
def seed(robot: RobotSide, page: Page) -> Arm:
    """The seed arm is shown at Q, with its gizmo."""
    page.wait(lambda: 'Cannot show' in page.text(), 'the end of the robot before')
    robot.describe(SEED_ARM)
    page.wait(lambda: page.labels() and 'joint_states' in page.text(), 'the seed arm')
    robot.move(**Q)
    page.wait(lambda: page.nodes['/base/goal']['visible'], 'the gizmo')
    page.wait(lambda: slider(page, 'joint1 [°]') == round(math.degrees(Q['joint1']), 1), 'the sliders')
    return Arm.from_urdf(SEED_ARM)


def slider(page: Page, label: str) -> float:
    return page.control(label)['value']


def same(a: np.ndarray, b: np.ndarray) -> bool:
    return np.allclose(a, b, atol=1e-6)


def test_every_link_is_shown_where_the_joints_put_it(robot: RobotSide, page: Page, seed: Arm) -> None:
    drawing = draw(SEED_ARM, seed.robot, seed.tip_link)
    links = list(dict.fromkeys(shape.link for shape in drawing.shapes))
    assert len(links) >= 5
    for values in (Q, {name: -0.5 * value for name, value in Q.items()}):
        robot.move(**values)
        for index, link in enumerate(links):
            wanted = seed.robot.link_pose(link, values)
            page.wait(lambda i=index, T=wanted: same(page.pose(f'/link{i}'), T), f'{link} in its place')
        page.wait(lambda v=values: same(page.pose('/tip'), seed.robot.link_pose('tool0', v)), 'the tool')
    assert sum(name.startswith('/link') and name.count('/') == 2 for name in page.nodes) == len(drawing.shapes)
    page.wait(lambda: same(page.pose('/base/goal'), page.pose('/tip')), 'the gizmo at the tool')


def test_a_page_is_aimed_at_the_arm_once_it_is_laid_out_as_narrow(page: Page) -> None:
    camera = page._server.get_clients()[page._client].camera
    assert camera.fov != FIELD_OF_VIEW
    page.turn(390, 844)
    page._soon(lambda: camera.fov == FIELD_OF_VIEW)
    page.turn(400, 844)  # by now a user has moved it
    page._soon(lambda: (camera.position == CAMERA['position']).all())
    page.run(0.2)
    assert camera.fov != FIELD_OF_VIEW


def test_a_drag_publishes_the_goal(robot: RobotSide, page: Page, seed: Arm) -> None:
    wanted = turned(0.8, 0.3, -0.2, 0.4)
    page.drag(wanted)
    robot.wait(lambda: robot.goals and same(robot.goal(), wanted), 'the goal')
    header = robot.goals[-1].header
    assert header.frame_id == seed.base_link
    assert abs(robot.node.get_clock().now().nanoseconds * 1e-9 - header.stamp.sec) < 30.0
    robot.move(joint1=0.4)  # the arm sets off, but the gizmo stays with the goal
    page.wait(lambda: same(page.pose('/tip'), seed.robot.link_pose('tool0', {**Q, 'joint1': 0.4})), 'the arm')
    with closing(Page(page.desk)) as again:  # as after a reload, or in another browser
        again.wait(lambda: same(again.pose('/base/goal'), wanted), 'the gizmo in another browser')


def test_a_goal_is_shown_that_only_the_report_on_it_tells(robot: RobotSide, page: Page, seed: Arm) -> None:
    """As for a page that is opened later, or that a program did not know yet when it sent the goal."""

    def report(number: int, status: str, position: str, direction: str = '', stamp: str = '0.0') -> None:
        state = 'stopped' if status == 'stopped' else 'moving'
        values = {'goal_number': number, 'goal_stamp': stamp, 'goal_position': position, 'goal_direction': direction}
        robot.report(f'Report {number}.', status=status, state=state, arm=state, **values)
        page.wait(lambda: f'Report {number}.' in page.text(), 'the report')

    def goal() -> tuple[np.ndarray, np.ndarray]:
        return tool_at(seed, page.pose('/base/goal'))

    def at_the_tool() -> bool:
        return same(page.pose('/base/goal'), page.pose('/tip'))

    report(1, 'solved', '0.3 0.1 0.2', '0.0 0.0 -1.0')
    page.wait(lambda: np.allclose(goal()[0], (0.3, 0.1, 0.2), atol=1e-6), 'the goal')
    assert np.allclose(goal()[1], (0.0, 0.0, -1.0), atol=1e-6)
    page.choose('Reset', 'Arrows')
    page.wait(at_the_tool, 'the arrows at the tool')
    for number, status in ((2, 'rejected'), (0, 'late'), (1, 'solved'), (3, 'stopped')):
        report(number, status, '0.4 0.1 0.2')
        page.run(0.3)
        assert at_the_tool()
    viewer = page.desk.viewer
    viewer._panel.card.show_refusal('a goal of before')
    page.wait(lambda: 'A goal of before' in page.text(), 'why it was not sent')
    report(4, 'solved', '0.4 0.1 0.2')
    page.wait(lambda: np.allclose(goal()[0], (0.4, 0.1, 0.2), atol=1e-6), 'the goal without a direction')
    assert 'A goal of before' not in page.text()
    page.drag(turned(0.8, 0.3, -0.2, 0.4))
    robot.wait(lambda: robot.goals, 'the goal')
    page.run(0.5)
    viewer._tools[0].end_goal()
    report(5, 'solved', '0.3 0.1 0.2', stamp=stamp_text(robot.goals[-1].header.stamp))
    page.wait(at_the_tool, 'the arrows at the tool, as a report on an own goal brings none')


def test_a_goal_is_typed_in_millimetres(robot: RobotSide, page: Page, seed: Arm) -> None:
    page.wait(lambda: not page.control('Position [mm]')['disabled'], 'the fields')
    assert page.control('Position [mm]')['value'] == pytest.approx(1e3 * seed.fk(list(Q.values()))[0], abs=0.051)
    page.choose('Position [mm]', (300.0, -150.0, 200.0))
    robot.move(**{**Q, 'joint1': 0.4})
    page.wait(lambda: same(page.pose('/tip'), seed.robot.link_pose('tool0', {**Q, 'joint1': 0.4})), 'the arm')
    for number in range(5):  # along a track
        robot.want(turned(0.1 * number, 0.3, 0.1, 0.2))
        page.run(0.3)
    page.choose('Arm', 'Home')
    page.run(0.5)
    assert page.control('Position [mm]')['value'] == (300.0, -150.0, 200.0), 'what is being typed stays'
    assert not robot.goals
    page.choose('Direction', (0.0, 0.0, 0.0))
    page.choose('Go there', True)
    page.wait(lambda: 'points nowhere' in page.text(), 'the reason')
    assert not robot.goals
    page.choose('Position [mm]', (300.0, -150.0, 200.0))
    page.choose('Direction', (0.0, 0.0, -2.0))  # of any length
    page.choose('Go there', True)
    robot.wait(lambda: robot.goals, 'the goal')
    position, direction = tool_at(seed, robot.goal())
    assert np.allclose(position, (0.3, -0.15, 0.2), atol=1e-9)
    assert np.allclose(direction, (0.0, 0.0, -1.0), atol=1e-9)
    page.run(0.5)
    assert page.control('Direction')['value'] == (0.0, 0.0, -2.0), 'also what has been sent'
    other = turned(0.8, 0.3, -0.2, 0.4)
    robot.want(other)
    page.choose('Reset', 'Numbers')
    page.wait(lambda: page.control('Position [mm]')['value'] == (300.0, -200.0, 400.0), 'the goal in the fields')
    assert page.control('Direction')['value'] == pytest.approx(other[:3, 2], abs=0.0051)
    page.choose('Reset', 'Arrows')
    page.wait(lambda: same(page.pose('/base/goal'), page.pose('/tip')), 'the arrows at the tool')


def test_the_goal_that_a_page_shows_is_the_one_that_is_sent(robot: RobotSide, page: Page, seed: Arm) -> None:
    """Also where viser has not sent what was typed, as when keys come fast; a late one is not sent."""
    (button,) = [name for name, one in page._controls.items() if one.get('label') == 'Go there']
    viewer = page.desk.viewer

    def press(numbers: str) -> None:
        assert viewer._typed(f'{button}&{numbers}') == ''

    for k, wrong in enumerate(('1,2,3,0,0', '1,2,3,0,0,', '1,2,3,0,0,nan', '')):
        press(wrong)
        page.wait(lambda: 'need three numbers' in page.text(), 'the reason')
        told = f'The goal before, {k}.'
        robot.report(told, status='solved', state='arrived', arm='holding')
        page.wait(lambda told=told: told in page.text(), 'the report of the goal before')
        assert 'need three numbers' in page.text()
        assert not robot.goals
        viewer._go(f'{button}&1,2,3,0,0,1')
        page.wait(lambda: 'Not sent' not in page.text(), 'the goal that is sent')
        robot.wait(lambda: robot.goals, 'the goal')
        robot.goals.clear()
    press('300,-150.5,200,0,0,-2')
    robot.wait(lambda: robot.goals, 'the goal')
    position, direction = tool_at(seed, robot.goal())
    assert np.allclose(position, (0.3, -0.1505, 0.2), atol=1e-9)
    assert np.allclose(direction, (0.0, 0.0, -1.0), atol=1e-9)
    token = guard._sent_after.set(time.monotonic() - 2.0 * guard.OLDEST)
    try:
        press('100,0,200,0,0,-1')
    finally:
        guard._sent_after.reset(token)
    page.wait(lambda: 'arrived more than' in page.text(), 'the reason')
    assert len(robot.goals) == 1


def test_the_card_has_goal_and_tool_in_numbers(robot: RobotSide, page: Page, seed: Arm) -> None:
    def cells(vector: np.ndarray, digits: int) -> str:
        return ''.join(f'<td>{value + 0.0:.{digits}f}</td>' for value in np.round(vector, digits))

    tool, axis = seed.fk(list(Q.values()))
    page.wait(lambda: cells(1e3 * tool, 1) in page.text(), 'the tool')
    wanted = turned(0.8, 0.3, -0.2, 0.4)
    robot.want(wanted)
    page.wait(lambda: cells(1e3 * wanted[:3, 3], 1) in page.text(), 'the goal')
    assert cells(wanted[:3, 2], 2) in page.text()
    off = np.linalg.norm(wanted[:3, 3] - tool)
    assert f'{1e3 * off:.1f} mm, ' in page.text()
    heights = {page.text().count('<tr')}
    robot.want_point((0.1, 0.2, 0.3))
    page.wait(lambda: cells(np.array([100.0, 200.0, 300.0]), 1) in page.text(), 'a goal without direction')
    assert heights == {page.text().count('<tr')}, 'the card keeps its height'
    page.choose('Reset', 'Numbers')
    page.wait(lambda: page.control('Position [mm]')['value'] == (100.0, 200.0, 300.0), 'the fields')
    field = page.control('Direction')['value']
    assert field == pytest.approx(axis, abs=0.0051), 'the tool has a direction, the goal has none'


def test_resume_is_offered_while_the_arm_is_stopped(robot: RobotSide, page: Page, seed: Arm) -> None:
    assert page.control('Resume')['disabled']
    robot.diagnose('stopping; run ik_resume or call ~/resume once the arm is at rest', state='stopping')
    page.wait(lambda: 'once the arm is at rest' in page.text(), 'the sentence before')
    said = 'stopped; run ik_resume or call ~/resume, then give a goal'
    robot.report(said, status='stopped', state='stopped', arm='stopped')
    page.wait(lambda: not page.control('Resume')['disabled'], 'the button')
    page.wait(lambda: 'Stopped; press Resume, then give a goal' in page.text(), 'what to do')
    assert page.text().count('press Resume') == 1, 'one sentence'
    robot.report('goal_pose rejected: no', status='rejected', state='rejected', arm='stopped', goal='goal_pose')
    page.wait(lambda: 'The goal was rejected: no' in page.text(), 'a later report')
    ended = 'goal_pose ended before the arm arrived: stopped'
    robot.report(ended, status='solved', state='stopped', arm='stopped', goal='goal_pose')
    page.wait(lambda: 'The goal ended before the arm arrived' in page.text(), 'the end of a goal')
    assert 'Stopped</span>' in page.text()
    robot.report(seed.describe(), status='holding', state='ready', arm='holding')
    page.wait(lambda: page.control('Resume')['disabled'], 'no more stop')
    page.wait(lambda: 'Drag the arrows' in page.text(), 'what to do')


def test_lengths_and_angles_are_in_the_units_of_the_page() -> None:
    assert at_page('the position is 0.4893 m beyond 0.3 m/s') == 'the position is 489.3 mm beyond 0.3 m/s'
    assert at_page('joint "joint2" is 0.0609 rad off') == 'joint "joint2" is 3.49° off'


def test_a_gripper_has_a_slider_and_two_buttons(robot: RobotSide, page: Page) -> None:
    assert not page.control('Gripper [%]')['visible'], 'before ik_node tells of one'
    openings: list[float] = []
    robot.node.create_subscription(Float64, 'ik_node/gripper', lambda message: openings.append(message.data), 10)
    status = robot.node.create_publisher(DiagnosticStatus, 'ik_node/gripper_status', LATCHED)

    def tell(state: str, opening: float, joint: str = 'finger') -> None:
        values = {'state': state, 'opening': str(opening), 'target': str(opening), 'joint': joint}
        status.publish(DiagnosticStatus(values=[KeyValue(key=key, value=value) for key, value in values.items()]))

    tell('rejected', 0.31, joint='')
    page.run(0.2)
    assert not page.control('')['visible'], 'an arm without one rejects the openings of other programs'
    tell('holding', 0.31)
    page.wait(lambda: slider(page, 'Gripper [%]: holding') == 31, 'what it does')
    page.choose('Gripper [%]: holding', 60)
    robot.wait(lambda: openings == [0.6], 'the opening')
    page.wait(lambda: page.control('')['visible'], 'the buttons')
    page.choose('', 'Close')
    robot.wait(lambda: openings == [0.6, 0.0], 'the end')


def test_goals_of_others_move_the_gizmo(robot: RobotSide, page: Page, seed: Arm) -> None:
    wanted = turned(-0.6, 0.2, 0.2, 0.3)
    robot.want(wanted)
    page.wait(lambda: same(page.pose('/base/goal'), wanted), 'the gizmo')
    assert page.nodes['/base/goal/axis']['visible']
    robot.want(wanted, frame='link3')
    other = seed.robot.link_pose('link3', Q) @ wanted
    page.wait(lambda: same(page.pose('/base/goal'), other), 'the gizmo, in the base frame')
    robot.ask(joint1=0.5)  # a goal in joint values ends it, and the gizmo goes back to the tool
    page.wait(lambda: same(page.pose('/base/goal'), seed.robot.link_pose('tool0', Q)), 'the gizmo at the tool')
    robot.want(np.eye(4), frame='unheard_of')
    robot.want_point((0.1, 0.2, 0.3))
    page.wait(lambda: not page.nodes['/base/goal/axis']['visible'], 'a goal without direction')
    assert np.allclose(page.nodes['/base/goal']['position'], (0.1, 0.2, 0.3))
    assert not robot.goals, 'the viewer repeated the goal of another'


@pytest.mark.usefixtures('seed')
def test_a_held_gizmo_is_not_moved_until_released(robot: RobotSide, page: Page) -> None:
    mine, other = turned(0.1, 0.3, 0.0, 0.4), turned(0.2, -0.3, 0.0, 0.4)
    page.drag(mine, release=False)
    robot.wait(lambda: robot.goals, 'the goal')
    with closing(Page(page.desk)) as watcher:
        robot.want(other)
        page.run(0.2)
        watcher.wait(lambda: same(watcher.pose('/base/goal'), mine), 'the gizmo where it is held')
        page.close()  # a browser that goes away lets go
        robot.want(other)
        watcher.wait(lambda: same(watcher.pose('/base/goal'), other), 'the gizmo to move')


@pytest.mark.parametrize('control', ['slider', 'home'])
def test_a_drag_without_an_end_does_not_hold_the_gizmo_for_ever(
    robot: RobotSide, page: Page, seed: Arm, control: str
) -> None:
    """A browser that loses the mouse sends no end; what the user does next in the panel is one."""
    mine = turned(0.1, 0.3, 0.0, 0.4)
    page.drag(mine, release=False)
    robot.wait(lambda: robot.goals, 'the goal')
    robot.move(**Q)
    page.wait(lambda: not page.control('joint1 [°]')['disabled'], 'the sliders')
    assert same(page.pose('/base/goal'), mine)
    if control == 'slider':
        page.choose('joint1 [°]', 20.0)
    else:
        page.press('Home')
    with closing(Page(page.desk)) as watcher:
        robot.move(**Q)
        watcher.wait(lambda: same(watcher.pose('/base/goal'), seed.robot.link_pose('tool0', Q)), 'the gizmo')


def test_sliders_publish_only_what_a_user_moves(robot: RobotSide, page: Page, seed: Arm) -> None:
    for step in range(20):
        robot.move(**{**Q, 'joint2': -0.4 + 0.02 * step})
        robot.run(0.02)
    page.wait(lambda: slider(page, 'joint2 [°]') == round(math.degrees(-0.02), 1), 'the slider')
    assert not robot.joint_goals
    page.choose('joint4 [°]', 30.0)
    robot.wait(lambda: robot.joint_goals, 'the joint goal')
    sent = dict(zip(robot.joint_goals[-1].name, robot.joint_goals[-1].position, strict=True))
    assert sent == pytest.approx({**Q, 'joint2': -0.02, 'joint4': math.radians(30.0)}, abs=1e-12)
    page.choose('joint1 [°]', -45.0)  # while the arm has not moved yet: both targets stand
    robot.wait(lambda: len(robot.joint_goals) == 2, 'the second joint goal')
    both = {**sent, 'joint1': math.radians(-45.0)}
    assert dict(zip(robot.joint_goals[-1].name, robot.joint_goals[-1].position, strict=True)) == both
    robot.move(**both)
    page.wait(lambda: same(page.pose('/base/goal'), seed.robot.link_pose('tool0', both)), 'the gizmo')
    page.wait(lambda: slider(page, 'joint4 [°]') == 30.0, 'the sliders')


def test_a_slider_names_no_joint_whose_position_is_unknown() -> None:
    with viewer() as (table, robot), closing(Page(table)) as page:
        robot.describe(SEED_ARM)
        page.wait(lambda: 'Waiting for joint_states' in page.text(), 'the robot')
        page.wait(lambda: not page.control('joint4 [°]')['disabled'], 'the sliders')
        page.choose('joint4 [°]', 30.0)
        robot.wait(lambda: robot.joint_goals, 'the joint goal')
        assert list(robot.joint_goals[-1].name) == ['joint4']


@pytest.mark.usefixtures('seed')
def test_sliders_rest_while_a_goal_is_followed(robot: RobotSide, page: Page) -> None:
    wanted = turned(0.3, 0.3, 0.1, 0.4)
    robot.want(wanted)
    page.wait(lambda: page.control('joint3 [°]')['disabled'], 'the motion')
    page.wait(lambda: not page.control('joint3 [°]')['disabled'], 'the end of the motion')
    page.drag(wanted)
    robot.wait(lambda: robot.goals, 'the goal')
    page.choose('joint3 [°]', 12.0)  # from a browser that does not know yet
    robot.report('solved: fine', status='solved')
    page.wait(lambda: 'Solved' in page.text(), 'a frame')
    page.wait(lambda: slider(page, 'joint3 [°]') == round(math.degrees(Q['joint3']), 1), 'the slider')
    assert not robot.joint_goals


def test_sliders_have_the_limits_of_ik_node() -> None:
    """Also after a change while the page is open."""
    arm, name = Arm.from_urdf(SEED_ARM), 'joint_limit_margins'

    def margin(page: Page) -> float:
        return float(math.degrees(arm.upper[1]) - page.control('joint2 [°]')['max'])

    beside = (SEED_FILE, f'{name}:=[0.5]')
    with viewer(beside=beside, page=False) as (table, robot), closing(Page(table)) as page:
        page.wait(lambda: page.labels() and margin(page) == pytest.approx(math.degrees(0.5), abs=0.1), 'limits')
        remote = RemoteParameters(robot.node, 'ik_node')
        robot.wait(lambda: remote.available, 'ik_node')
        remote.set(**{name: [0.2]})
        page.wait(lambda: margin(page) == pytest.approx(math.degrees(0.2), abs=0.1), 'other limits')
        page.choose('joint2 [°]', 40.0)
        robot.wait(lambda: abs(robot.joints.get('joint2', 9.0) - math.radians(40.0)) < 1e-4, 'the arm')


def test_endless_and_sliding_joints(robot: RobotSide, page: Page) -> None:
    page.wait(lambda: 'Cannot show' in page.text(), 'the end of the robot before')
    robot.describe(TURNER)
    page.wait(lambda: page.labels() == ['turn [°]', 'slide [mm]'], 'the sliders')
    robot.move(turn=4 * math.pi + 3.0, slide=0.1)
    page.wait(lambda: slider(page, 'turn [°]') == round(math.degrees(3.0), 1), 'less than one turn')
    page.wait(lambda: slider(page, 'slide [mm]') == 100.0, 'millimetres')
    control = page.control('slide [mm]')
    assert (control['min'], control['max']) == (50.0, 250.0)
    page.choose('turn [°]', -170.0)  # 18 degrees on, not most of a turn back
    robot.wait(lambda: robot.joint_goals, 'the joint goal')
    goal = dict(zip(robot.joint_goals[-1].name, robot.joint_goals[-1].position, strict=True))
    assert goal == pytest.approx({'turn': 6 * math.pi - math.radians(170.0), 'slide': 0.1})


def test_status_is_said_in_words(robot: RobotSide, page: Page, seed: Arm) -> None:
    robot.report(
        'unreachable: out of reach by <0.3> m; the arm goes as near as it can',
        status='unreachable',
        position_error=0.0123,
        direction_error=math.radians(12.0),
        reason='out of reach by <0.3> m',
    )
    page.wait(lambda: 'Out of reach</span>' in page.text(), 'the status')
    assert 'Out of reach by &lt;0.3&gt; m; the arm goes' in page.text()
    robot.diagnose('another')
    page.wait(lambda: 'Another' in page.text(), 'what the node says of itself')
    robot.diagnose(seed.describe())  # what is not about the present state
    page.wait(lambda: 'Another' not in page.text(), 'the newest alone')
    assert 'effective DoF' not in page.text()
    robot.report('solved: moving', status='unreachable', state='moving')
    page.wait(lambda: 'Out of reach, moving closer</span>' in page.text(), 'both in words')
    robot.report('arrived: fine', status='solved', state='arrived')
    page.wait(lambda: 'Arrived</span>' in page.text(), 'one word')
    assert 'Solved</span>' not in page.text()
    robot.report('waiting for measured joints: elbow, wrist', state='waiting')
    page.wait(lambda: 'Waiting</span>' in page.text(), 'the state without a goal')
    assert 'Waiting for measured joints: elbow, wrist' in page.text()
    robot.diagnose('solving is fast now: fast kernels are loaded')
    page.wait(lambda: 'Solving is fast now: fast kernels are loaded' in page.text(), 'what the node says of itself')
    assert 'elbow, wrist' in page.text()
    robot.diagnose('waiting for measured joints: elbow, wrist')
    page.wait(lambda: 'Solving is fast' not in page.text(), 'the newest alone')
    assert page.text().count('elbow, wrist') == 1
    robot.diagnose('of another robot', name='/left/ik_node')
    robot.report('goal_pose rejected: no', status='rejected', position_error=math.nan, direction_error=math.nan)
    page.wait(lambda: 'Rejected' in page.text(), 'the rejection')
    assert '12.3' not in page.text()
    assert 'another' not in page.text()


@pytest.mark.usefixtures('seed')
def test_a_new_robot_replaces_the_scene(robot: RobotSide, page: Page) -> None:
    before = set(page.nodes)
    robot.describe(SEED_ARM)  # the same again, as after a restart of the publisher: nothing happens
    robot.report('solved: fine', status='solved')
    page.wait(lambda: 'Solved' in page.text(), 'a frame')
    assert set(page.nodes) == before
    robot.describe(TURNER)
    page.wait(lambda: page.labels() == ['turn [°]', 'slide [mm]'], 'the other sliders')
    assert not any(name.startswith('/link5') for name in page.nodes)
    robot.describe(SEED_ARM.replace('type="revolute"', 'type="rotary"'))
    page.wait(lambda: 'rotary' in page.text() and not page.labels(), 'the reason in words')
    assert not any(name.startswith('/link') for name in page.nodes)
    robot.move(turn=1.0)
    robot.describe(SEED_ARM)
    page.wait(lambda: len(page.labels()) == 5, 'the seed arm again')


@pytest.mark.usefixtures('seed')
def test_a_robot_of_another_session_is_not_shown(robot: RobotSide, page: Page) -> None:
    card = {'since': 1.0, 'takes': ['goal_pose'], 'description': digest(SEED_ARM)}
    met = Neighbours(robot.node, 'ik_node', **card)
    page.wait(lambda: any(one.program == 'ik_viewer' for one in met.others), 'the page')
    robot.describe(TURNER)
    robot.report('solved: fine', status='solved')
    page.wait(lambda: 'Solved' in page.text(), 'a frame')
    assert len(page.labels()) == 5
    met.update(description=digest(TURNER))
    page.wait(lambda: len(page.labels()) == 2, 'the robot of its own node')
    met.leave()  # the next descriptions are those of the only session


def test_strange_joint_states_do_no_harm(robot: RobotSide, page: Page, seed: Arm) -> None:
    robot.move(joint1=math.nan, joint2=math.inf, nobody=1.0)
    robot.move(**dict.fromkeys(Q, 1.7e308))
    robot._joints.publish(type(robot._joints.msg_type())(name=['joint1', 'joint2'], position=[0.1]))
    page.wait(lambda: same(page.pose('/tip'), seed.robot.link_pose('tool0', {**Q, 'joint1': 0.1})), 'the arm')


@pytest.mark.usefixtures('seed')
def test_tracks_are_chosen_by_name(running: tuple[Desk, RobotSide], robot: RobotSide, page: Page) -> None:
    assert set(LABELS) == {'none', *TRACKS}
    page.wait(lambda: page.control('Target track')['disabled'], 'no choice without a goal publisher')
    with closing(running[0].make('ik_goals', 'track:=spiral')) as goals:

        def track() -> str:
            return str(goals.get_parameter('track').value)

        page.wait(lambda: page.control('Target track')['value'] == 'spiral', 'the track of the publisher')
        assert not page.control('Target track')['disabled']
        page.choose('Target track', 'figure eight')
        page.wait(lambda: track() == 'figure_eight', 'the track')
        robot.wait(lambda: robot.move(**Q) or robot.goals, 'its goals, once there is an arm')
        page.wait(lambda: same(page.pose('/base/goal'), robot.goal()), 'the gizmo to travel along')
        robot.report('solved: moving to the goal', status='solved', state='moving', arm='moving', goal='goal_pose')
        page.wait(lambda: 'Following the figure eight; drag the arrows' in page.text(), 'what the arm does')
        mine = turned(0.1, 0.3, 0.1, 0.3)
        page.drag(turned(0.1, 0.3, 0.1, 0.31), release=False)
        page.wait(lambda: track() == 'none', 'the end of the track')
        page.wait(lambda: 'Moving to the goal' in page.text(), 'what the arm does then')
        page.drag(mine)  # a hand goes on dragging; goals that were on their way by then do not count
        robot.wait(lambda: same(robot.goal(), mine), 'the goal')
        page.wait(lambda: page.control('Target track')['value'] == 'none', 'the choice')
        page.choose('Target track', 'line')
        page.wait(lambda: track() == 'line', 'another track')
        page.press('Stop')
        page.wait(lambda: track() == 'none', 'the end of the track')
    page.wait(lambda: page.control('Target track')['disabled'], 'no choice without a goal publisher')


def test_a_stop_counts_without_a_robot_and_before_its_service(robot: RobotSide, page: Page) -> None:
    page.wait(lambda: 'Cannot show' in page.text(), 'the end of the robot before')
    for name in ('Resume', 'Home', 'Stop'):
        page.press(name)
    page.run(0.3)
    with called(robot) as names:
        robot.wait(lambda: names, 'the stop')
        assert names == ['stop'], 'what was asked for long ago'
        for name in ('Stop', 'Home'):  # at once
            page.press(name)
        robot.wait(lambda: len(names) == 4, 'both')
        assert sorted(names[1:]) == ['home', 'stop', 'stop'], 'at once, and in the order of the presses'


def test_a_stop_counts_that_is_pressed_as_the_last_page_closes() -> None:
    with viewer(page=False) as (table, robot):
        page = Page(table)
        robot.wait_connected()
        page.press('Stop')
        page.close()
        robot.wait(lambda: robot.listeners()['/joint_states'] == 0, 'the viewer to notice')
        with called(robot) as names:
            robot.wait(lambda: names == ['stop'], 'the stop')


@pytest.mark.usefixtures('seed')
def test_buttons_call_the_services(robot: RobotSide, page: Page) -> None:
    with called(robot) as names:
        page.run(2.0)  # the viewer looks for services
        for name in ('Home', 'Stop', 'Resume'):
            page.press(name)
            page.wait(lambda name=name: name.lower() in names, f'the service of {name}')


def test_a_status_from_before_the_arm_is_shown_with_it(robot: RobotSide, page: Page) -> None:
    page.wait(lambda: 'Cannot show' in page.text(), 'the end of the robot before')
    robot.report('unreachable: too far', status='unreachable')
    page.run(0.5)  # the status may overtake the arm, and should
    robot.describe(SEED_ARM)
    page.wait(lambda: 'Too far' in page.text(), 'the status')
    robot.move(**Q)
    page.wait(lambda: page.nodes['/base/goal']['visible'], 'the gizmo')
    assert 'Too far' in page.text()


# How it starts, and what it does without a clock and without a page


@pytest.mark.parametrize(
    ('parameter', 'words'),
    [
        ('page_port:={taken}', 'already in use'),
        ('host:=no.such.host.invalid', 'no.such.host.invalid'),
        ('page_port:=70000', 'page_port'),
        ('port:=8081', 'the parameter port is now page_port'),
        ('tool_axis:=[0.0,0.0,0.0]', 'tool_axis'),
    ],
)
def test_it_says_why_it_cannot_start(parameter: str, words: str) -> None:
    with socket.create_server(('127.0.0.1', 0)) as taken:
        given = parameter.format(taken=taken.getsockname()[1])
        with desk() as table, pytest.raises(IkError, match=words):
            table.make('ik_viewer', given)


def test_goals_of_others_count_without_a_clock() -> None:
    mine, other = turned(0.0, 0.3, 0.0, 0.4), turned(0.0, -0.3, 0.1, 0.4)
    with showing(SEED_ARM, 'use_sim_time:=true', joint1=0.1) as (page, robot):
        heard: list[PoseStamped] = []
        robot.node.create_subscription(PoseStamped, 'goal_pose', heard.append, 10)
        page.drag(mine)
        robot.wait(lambda: heard, 'the goal')
        assert not heard[0].header.stamp.sec + heard[0].header.stamp.nanosec
        robot.want(other)
        page.wait(lambda: np.allclose(page.nodes['/base/goal'].get('position'), other[:3, 3]), 'the other goal')


def test_it_hears_and_draws_only_while_a_page_is_open() -> None:
    with viewer(page=False) as (table, robot):
        quiet = dict.fromkeys(robot.listeners(), 0) | {'/robot_description': 1}
        robot.wait(lambda: robot.listeners() == quiet, 'the description to be heard')
        robot.describe(SEED_ARM)
        robot.report('solved: moving to the goal', status='solved', state='moving')
        robot.run(1.5)  # a second passes: a timer opens nothing
        assert robot.listeners() == quiet
        for angle in (0.1, 0.4):
            with closing(Page(table)) as page:
                robot.wait_connected()
                page.wait(lambda p=page: len(p.labels()) == 5, 'the arm from before the page')
                page.wait(lambda p=page: 'oving to the goal' in p.text(), 'the status from before the page')
                robot.move(joint1=angle)
                shown = round(math.degrees(angle), 1)
                page.wait(lambda p=page, v=shown: slider(p, 'joint1 [°]') == v, 'the joints')
            robot.wait(lambda: robot.listeners() == quiet, 'the end of all but the description')


def test_frames_are_shown_from_the_first_page_to_the_last() -> None:
    with viewer(page=False) as (table, _):
        assert table.viewer._frames.is_canceled()
        page, other = Page(table), Page(table)
        assert not table.viewer._frames.is_canceled()
        page.close()
        assert not table.viewer._frames.is_canceled()
        other.close()
        assert table.viewer._frames.is_canceled()


def test_the_stop_button_neither_waits_for_the_executor_nor_yields_to_a_resume_before_it() -> None:
    with viewer(page=False) as (table, robot), called(robot) as names, closing(Page(table)) as page:
        page.run(2.0)  # the viewer looks for services
        table.world.busy.add(table.viewer)
        page.press('Resume')
        page.press('Stop')
        assert names == ['stop']
        table.world.busy.clear()
        robot.wait(lambda: len(names) == 3, 'both')
        assert sorted(names) == ['resume', 'stop', 'stop']
