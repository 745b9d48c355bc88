# SPDX-License-Identifier: Apache-2.0
"""ik_goto as a process, against a real node over DDS: what it prints, and how it ends."""

import signal

import pytest
import rclpy
from diagnostic_msgs.msg import DiagnosticStatus, KeyValue
from domains import new_domain
from node_harness import client_in
from processes import SHORT_LEASE, Running, start_node

from ik_node.ros.programs.goto import Goto

GOAL = ('0.45', '0.1', '1.2')  # in the base link, here the root: "world", 1 m below the link "base_link"


@pytest.fixture(scope='module')
def arm(tmp_path_factory):
    """A running node, and a client of it."""
    running = start_node(tmp_path_factory.mktemp('arm'))
    try:
        with client_in(running.domain) as client:
            yield running, client
    finally:
        running.end()


@pytest.fixture
def goto(arm):
    """Starts ik_goto; ends all of them after the test."""
    started = []

    def start(*arguments: str) -> Running:
        started.append(Running('ik_goto', *arguments, domain=arm[0].domain))
        return started[-1]

    yield start
    for one in started:
        one.end()


@pytest.mark.parametrize(
    ('arguments', 'code', 'words'),
    [
        (GOAL, 0, ('solved: moving to the goal', 'arrived at the goal')),
        ((*GOAL, '--direction', '1', '0', '-1'), 0, ('arrived at the goal',)),
        (('0.45', '-0.1', '1.2', '--direction', '1', '0', '-1', '--line'), 0, ('arrived',)),
        (('4', '0', '0.2'), 1, ('unreachable', 'arrived at the closest configuration')),
        (('0.45', '0.1', '0.2', '--frame', 'base_link'), 0, ('arrived at the goal',)),
        ((*GOAL, '--frame', 'nowhere'), 1, ('goal_point rejected: frame "nowhere" is not a link',)),
        ((*GOAL, '--line'), 2, ('--line needs a --direction',)),
    ],
)
def test_it_waits_for_the_end_and_gives_the_reason(goto, arguments, code, words):
    sent = goto(*arguments)
    assert sent.wait_ended() == code, sent.said
    assert all(word in sent.said for word in words), sent.said
    assert 'Traceback' not in sent.said


def test_ctrl_c_stops_the_arm(arm, goto):
    _, client = arm
    client.call('ik_node/home')
    client.wait_still()
    client.set_parameters(speed_scaling=0.05)
    sent = goto('-0.45', '0.0', '1.2')
    sent.wait_said('solved: moving')
    sent.process.send_signal(signal.SIGINT)
    assert sent.wait_ended() == 130
    assert 'stopping; call ~/resume' in sent.said
    client.wait_said('stopped; call ~/resume')
    client.set_parameters(speed_scaling=0.5)
    assert client.call('ik_node/resume').success


def test_it_ends_when_another_goal_replaces_its_own(arm, goto):
    _, client = arm
    client.call('ik_node/home')
    client.wait_still()
    client.set_parameters(speed_scaling=0.05)
    sent = goto('-0.45', '0.0', '1.2')
    sent.wait_said('solved: moving')
    client.answer('goal_joints', client.joints(yaw=0.1))
    assert sent.wait_ended() == 1
    assert 'another goal has replaced this one' in sent.said
    client.set_parameters(speed_scaling=0.5)


def test_without_a_node_it_says_so():
    alone = Running('ik_goto', *GOAL)
    try:
        assert alone.wait_ended() == 2
        assert 'ik_node is not running' in alone.said
    finally:
        alone.end()


@pytest.mark.parametrize('again', [False, True])
def test_it_ends_when_the_node_is_killed(tmp_path, again):
    """Also when another one is started at once: that one does not know the goal."""
    started = [start_node(tmp_path, 'speed_scaling:=0.001', **SHORT_LEASE)]
    try:
        started[0].wait_said('effective DoF')
        sent = Running('ik_goto', '-0.45', '0.0', '1.2', domain=started[0].domain)
        started.append(sent)
        sent.wait_said('solved: moving')
        started[0].process.kill()
        if again:
            started.append(start_node(tmp_path, domain=started[0].domain))
        assert sent.process.wait(timeout=40.0) == 2
        assert sent.wait_ended() == 2
        assert 'ik_node has ended or cannot be reached' in sent.said
        assert 'Traceback' not in sent.said
    finally:
        for one in started:
            one.end()


def test_it_keeps_no_reports_on_goals_of_others():
    rclpy.init(domain_id=new_domain())
    goto = Goto()
    try:
        sizes = []
        for number in range(100):
            said = {'goal_number': number, 'goal_stamp': f'{number}.5', 'state': 'moving', 'status': 'solved'}
            values = [KeyValue(key=key, value=str(value)) for key, value in said.items()]
            goto._hear(DiagnosticStatus(message='solved', values=values))
            sizes.append(sum(len(kept) for kept in vars(goto).values() if hasattr(kept, 'clear')))
        assert set(sizes) == {0}
        assert (goto._other, goto._latest) == (99, 99.5)
    finally:
        goto.close()
        rclpy.shutdown()
