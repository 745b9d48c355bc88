# SPDX-License-Identifier: Apache-2.0
"""The viewer of a robot with two tools: a gizmo, a card and buttons for each."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from desk import ROOT, Desk, Page, RobotSide, viewer

from ik_node.model.urdf.reader import load_description, read_urdf
from ik_node.ros.programs.track_player import GoalsNode
from ik_node.steady import steady
from ik_node.viewer.tool import selected

pytestmark = pytest.mark.slow

TWO_ARMS = ROOT / 'urdf' / 'two_arms.urdf.xacro'
SETTINGS = ('tools:=[left, right]', 'left.tip_link:=left_tool0', 'right.tip_link:=right_tool0')
LEFT, RIGHT = '/tools/left/base/goal', '/tools/right/base/goal'
GOAL = np.array([[1.0, 0.0, 0.0, 0.35], [0.0, -1.0, 0.0, 0.35], [0.0, 0.0, -1.0, 0.2], [0.0, 0.0, 0.0, 1.0]])


@pytest.fixture(scope='module')
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Page, RobotSide, Desk]]:
    """ik_node with two arms, the viewer and its page."""
    given = (*SETTINGS, f'programs:={tmp_path_factory.mktemp("programs")}')
    with (
        viewer(*given, beside=(f'urdf_file:={TWO_ARMS}', *SETTINGS), page=False) as (table, robot),
        closing(Page(table)) as page,
    ):
        page.wait(lambda: page.nodes[LEFT]['visible'] and page.nodes[RIGHT]['visible'], 'both gizmos')
        page.wait(lambda: 'Ready' in page.text(), 'the joints')
        yield page, robot, table


def cards(page: Page) -> list[str]:
    """What the cards say: of the robot, of the left and of the right tool."""
    return page.html()[:3]


def press(page: Page, group: int, button: str) -> None:
    """Press a button of the left tool (1) or of the right one (2)."""
    groups = [uuid for uuid, c in page.controls.items() if c['kind'] == 'GuiButtonGroupMessage']
    page._send('GuiUpdateMessage', uuid=groups[group], updates={'value': button})


def test_each_gizmo_moves_its_arm_alone(running: tuple[Page, RobotSide, Desk]) -> None:
    page, robot, _ = running
    page.wait(lambda: robot.joints, 'joint_states')
    right = {name: value for name, value in robot.joints.items() if name.startswith('right')}
    stays = page.pose(RIGHT)
    page.drag(GOAL, name=LEFT)
    page.wait(lambda: 'Arrived' in cards(page)[1], 'the left tool at its goal')
    tip = read_urdf(load_description(TWO_ARMS)).link_pose('left_tool0', robot.joints)
    assert np.allclose(tip[:3, 3], GOAL[:3, 3], atol=1e-3)
    assert {name: robot.joints[name] for name in right} == pytest.approx(right, abs=1e-9)
    assert np.allclose(page.pose(RIGHT), stays, atol=1e-9)
    assert 'Arrived' not in cards(page)[2]
    page.wait(lambda: np.allclose(page.pose('/tools/left/tip'), tip, atol=1e-4), 'its present axis')
    colours = [tuple(page.nodes[f'{gizmo}/axis']['color']) for gizmo in (LEFT, RIGHT)]
    assert colours[0] != colours[1]


def test_a_slider_moves_a_joint_of_its_arm(running: tuple[Page, RobotSide, Desk]) -> None:
    page, robot, _ = running
    left = {name: value for name, value in robot.joints.items() if name.startswith('left')}
    assert [label for label in page.labels() if 'joint1' in label] == ['left_joint1 [°]', 'right_joint1 [°]']
    page.wait(lambda: not page.control('right_joint1 [°]')['disabled'], 'the sliders')
    page.choose('right_joint1 [°]', 30.0)
    page.wait(lambda: abs(robot.joints['right_joint1'] - np.radians(30.0)) < 1e-4, 'the joint')
    assert {name: robot.joints[name] for name in left} == pytest.approx(left, abs=1e-9)


def test_buttons_are_for_one_tool_or_for_all(running: tuple[Page, RobotSide, Desk]) -> None:
    page, _, _ = running
    press(page, 1, 'Stop')
    page.wait(lambda: 'Stopped' in cards(page)[1], 'the stop of the left tool')
    assert 'Stopped' not in cards(page)[2]
    press(page, 1, 'Resume')
    page.wait(lambda: 'Stopped' not in cards(page)[1], 'the left tool')
    page.press('Stop')
    page.wait(lambda: all('Stopped' in card for card in cards(page)[1:]), 'the stop of both')
    page.press('Resume')
    page.wait(lambda: not any('Stopped' in card for card in cards(page)[1:]), 'both')


def test_slow_motion_is_of_the_tool_whose_gizmo_is_dragged(running: tuple[Page, RobotSide, Desk]) -> None:
    page, robot, _ = running
    before = dict(robot.joints)
    page.choose('Watch', True)
    goal = GOAL.copy()
    for sign, gizmo in ((-1.0, RIGHT), (1.0, LEFT)):
        goal[1, 3] = sign * 0.4
        page.drag(goal, name=gizmo)
        page.wait(
            lambda s=sign: page.nodes['/ghost0']['visible'] and np.sign(page.nodes['/ghost0/0']['position'][1]) == s,
            'the ghost of this tool',
        )
    assert robot.joints == pytest.approx(before)
    page.choose('Watch', False)


def test_each_tool_has_its_track(running: tuple[Page, RobotSide, Desk]) -> None:
    page, _, table = running
    tracks = [c for c in page.controls.values() if str(c.get('label')).startswith('Target track of ')]
    assert [track['disabled'] for track in tracks] == [True, True]
    remapped = ['--ros-args', '-r', '__ns:=/right', '-r', 'joint_states:=/joint_states']
    with closing(GoalsNode(context=table.context, cli_args=remapped)):
        page.wait(lambda: [track['disabled'] for track in tracks] == [True, False], 'the right track')
        assert tracks[1]['value'] == 'circle'


def test_the_card_of_all_tools_says_which_are_stopped(running: tuple[Page, RobotSide, Desk]) -> None:
    page, _, _ = running
    page.wait(lambda: 'Ready</span>' in page.text(), 'the card')
    page.press('Stop')
    page.wait(lambda: 'Stopped</span>' in page.text(), 'the stop')
    page.wait(lambda: 'left, right: press resume' in page.text().lower(), 'both names')
    page.press('Resume')
    page.wait(lambda: 'Ready</span>' in page.text(), 'the end of the stop')


def test_the_tool_of_an_opened_program_is_shown(running: tuple[Page, RobotSide, Desk]) -> None:
    page, _, _ = running
    page.choose('Tool', 'right')

    page.choose('Add point', 'At the arm')
    page.wait(lambda: '1: P1' in page._labels(), 'a point')
    page.choose('File name', 'of_right')
    page.choose('Save', True)
    page.wait(lambda: 'of_right' in page.control('Open')['options'], 'the file')
    page.choose('Tool', 'left')
    page.choose('Program file', 'New')
    page.choose('Open', 'of_right')
    page.wait(lambda: page.control('Tool')['value'] == 'right', 'the tool of the program')


def test_a_tool_stays_selected_while_it_gets_goals() -> None:
    """Folders such as Solutions show one tool; two streams must not make them alternate."""
    now = steady()
    left, right, silent = (SimpleNamespace(goal_time=when) for when in (now - 0.1, now, 0.0))
    tools: Any = [left, right, silent]
    assert selected(tools, tools[0]) is left
    assert selected(tools, tools[1]) is right
    assert selected(tools, tools[2]) is right
    left.goal_time = now - 60.0
    assert selected(tools, tools[0]) is right
