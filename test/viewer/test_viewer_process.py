# SPDX-License-Identifier: Apache-2.0
"""How the viewer starts, and what it does without a clock and without a page."""

from __future__ import annotations

import math
import socket

import numpy as np
import pytest
from desk import SEED_ARM, Page, called, desk, viewer
from geometry_msgs.msg import PoseStamped

from ik_node.errors import IkError


@pytest.mark.parametrize(
    ('parameter', 'words'),
    [
        ('port:={taken}', 'already in use'),
        ('host:=no.such.host.invalid', 'no.such.host.invalid'),
        ('port:=70000', 'port'),
        ('tool_axis:=[0.0,0.0,2.0]', 'tool_axis'),
    ],
)
def test_it_says_why_it_cannot_start(parameter: str, words: str) -> None:
    with socket.create_server(('127.0.0.1', 0)) as taken:
        given = parameter.format(taken=taken.getsockname()[1])
        with desk() as table, pytest.raises(IkError, match=words):
            table.make('ik_viewer', given)


def test_goals_of_others_count_without_a_clock() -> None:
    mine, other = np.eye(4), np.eye(4)
    mine[:3, 3], other[:3, 3] = (0.3, 0.0, 0.4), (-0.3, 0.1, 0.4)
    with viewer('use_sim_time:=true') as (table, robot):
        page = Page(table)
        heard: list[PoseStamped] = []
        robot.node.create_subscription(PoseStamped, 'goal_pose', heard.append, 10)
        robot.describe(SEED_ARM)
        page.wait(lambda: len(page.labels()) == 5, 'the seed arm')
        robot.move(joint1=0.1)
        page.wait(lambda: page.nodes['/base/goal']['visible'], 'the gizmo')
        page.drag(mine)
        robot.wait(lambda: heard, 'the goal')
        assert not heard[0].header.stamp.sec + heard[0].header.stamp.nanosec

        def shown() -> bool:
            robot.want(other)
            return np.allclose(page.nodes['/base/goal'].get('position'), other[:3, 3])

        page.wait(shown, 'the goal of another')
        page.close()


def test_it_hears_and_draws_only_while_a_page_is_open() -> None:
    with viewer(page=False) as (table, robot):
        quiet = dict.fromkeys(robot.listeners(), 0) | {'/robot_description': 1}
        robot.wait(lambda: robot.listeners() == quiet, 'the description to be heard')
        robot.describe(SEED_ARM)
        robot.report('solved: moving to the goal', status='solved', state='moving')
        robot.run(1.5)  # a second passes: a timer opens nothing
        assert robot.listeners() == quiet
        for angle in (0.1, 0.4):
            page = Page(table)
            robot.wait_connected()
            page.wait(lambda p=page: len(p.labels()) == 5, 'the arm from before the page')
            page.wait(lambda p=page: 'oving to the goal' in p.text(), 'the status from before the page')

            def follows(page: Page = page, angle: float = angle) -> bool:
                robot.move(joint1=angle)  # as an arm does, again and again
                return bool(page.control('joint1 [°]')['value'] == round(math.degrees(angle), 1))

            page.wait(follows, 'the joints')
            page.close()
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
    with viewer() as (table, robot), called(robot) as names:
        page = Page(table)
        page.run(2.0)  # the viewer looks for services
        table.world.busy.add(table.viewer)
        page.press('Resume')
        page.press('Stop')
        assert names == ['stop']
        table.world.busy.clear()
        robot.wait(lambda: len(names) == 3, 'both')
        assert sorted(names) == ['resume', 'stop', 'stop']
        page.close()
