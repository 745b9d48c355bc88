# SPDX-License-Identifier: Apache-2.0
"""The viewer as a process: how it starts and ends, and what it does without a clock."""

from __future__ import annotations

import math
import signal
import socket
import time
from contextlib import closing

import numpy as np
import pytest
import rclpy
from geometry_msgs.msg import PoseStamped
from node_harness import new_domain
from page import Page
from rclpy.parameter import Parameter
from spinning import Spinning
from viewer_harness import SEED_ARM, Process, RobotSide, called, started, viewer
from waiting import wait_for

from ik_node.viewer.node import ViewerNode


@pytest.mark.parametrize('how', [signal.SIGINT, signal.SIGTERM])
def test_it_ends_without_a_traceback(how: signal.Signals) -> None:
    process = Process('ik_viewer', new_domain(), '--ros-args', '-p', 'port:=0')
    page = Page(process.url())
    page.wait(lambda: 'robot_description' in page.text(), 'the page')
    assert process.end(how) == 0
    assert 'Traceback' not in process.said
    page.close()


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
        process = Process('ik_viewer', new_domain(), '--ros-args', '-p', given)
        assert process.wait() == 1
    assert words in process.said
    assert 'Traceback' not in process.said


def test_goals_of_others_count_without_a_clock() -> None:
    mine, other = np.eye(4), np.eye(4)
    mine[:3, 3], other[:3, 3] = (0.3, 0.0, 0.4), (-0.3, 0.1, 0.4)
    with viewer(new_domain(), 'use_sim_time:=true') as (process, robot):
        page = Page(process.url())
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
    domain = new_domain()
    with started('ik_viewer', domain, 'port:=0') as process, closing(RobotSide(domain)) as robot:
        url = process.url()
        quiet = dict.fromkeys(robot.listeners(), 0) | {'/robot_description': 1}
        robot.wait(lambda: robot.listeners() == quiet, 'the description to be heard')
        robot.describe(SEED_ARM)
        robot.report('solved: moving to the goal', status='solved', state='moving')
        time.sleep(1.5)  # a second passes: a timer opens nothing
        assert robot.listeners() == quiet
        for angle in (0.1, 0.4):
            page = Page(url)
            robot.wait_connected()
            page.wait(lambda p=page: len(p.labels()) == 5, 'the arm from before the page')
            page.wait(lambda p=page: 'oving to the goal' in p.text(), 'the status from before the page')

            def follows(page: Page = page, angle: float = angle) -> bool:
                robot.move(joint1=angle)  # as an arm does, again and again
                return bool(page.control('joint1 [°]')['value'] == round(math.degrees(angle), 1))

            page.wait(follows, 'the joints')
            page.close()
            robot.wait(lambda: robot.listeners() == quiet, 'the end of all but the description')


def test_frames_are_shown_from_the_first_page_to_the_last(
    capsys: pytest.CaptureFixture[str],
) -> None:
    context = rclpy.Context()
    context.init(domain_id=new_domain())
    node = ViewerNode(context=context, parameter_overrides=[Parameter('port', value=0)])
    assert node._frames.is_canceled()
    spinning = Spinning(node)
    try:
        url = capsys.readouterr().out.split()[2]
        page, other = Page(url), Page(url)
        wait_for(lambda: not node._frames.is_canceled(), 'frames', 60.0)
        page.close()
        wait_for(lambda: len(node._server.get_clients()) == 1, 'the other page', 60.0)
        assert not node._frames.is_canceled()
        other.close()
        wait_for(node._frames.is_canceled, 'the end of frames', 60.0)
    finally:
        spinning.end()
        node.close()
        context.try_shutdown()


def test_the_stop_button_neither_waits_for_the_executor_nor_yields_to_a_resume_before_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    robot = RobotSide(new_domain())
    with called(robot) as names:
        node = ViewerNode(context=robot.context, parameter_overrides=[Parameter('port', value=0)])
        page = Page(capsys.readouterr().out.split()[2])
        try:
            robot.wait(node._buttons._services[''].ready, 'the service')
            page.press('Resume')
            robot.wait(node._pressed.waiting, 'the resume')
            page.press('Stop')
            robot.wait(lambda: names == ['stop'], 'the stop')
            spinning = Spinning(node)
            robot.wait(lambda: len(names) == 3, 'both')
            spinning.end()
            assert sorted(names) == ['resume', 'stop', 'stop']
        finally:
            page.close()
            node.close()
            robot.close()
