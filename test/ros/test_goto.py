# SPDX-License-Identifier: Apache-2.0
"""ik_goto beside a node that is stepped: what it prints, and how it ends."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest
from diagnostic_msgs.msg import DiagnosticStatus, KeyValue
from node_harness import Client, running
from small_arm import arm_urdf
from stepped import world

from ik_node.ros.programs import goto
from ik_node.ros.programs.goto import Goto

GOAL = ('0.45', '0.1', '1.2')  # in the base link, here the root: "world", 1 m below the link "base_link"
FAR = ('-0.45', '0.0', '1.2')

pytestmark = pytest.mark.usefixtures('terminal')


@pytest.fixture
def client() -> Iterator[Client]:
    with running(arm_urdf(), base_link='') as client:
        yield client


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
@pytest.mark.usefixtures('client')
def test_it_waits_for_the_end_and_gives_the_reason(capsys, arguments, code, words):
    if '--line' in arguments and code == 0:
        assert goto.main([*GOAL, '--direction', '1', '0', '-1']) == 0
    assert goto.main(list(arguments)) == code
    said = ''.join(capsys.readouterr())
    assert all(word in said for word in words), said


@pytest.mark.parametrize('how', [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_the_arm(client, capsys, how):
    client.world.once(lambda: abs(client.position('yaw')[0]) > 0.1, lambda: signal.raise_signal(how))
    assert goto.main(list(FAR)) == 130
    assert 'stopping; call ~/resume' in capsys.readouterr().out
    client.wait_said('stopped; call ~/resume')


def test_it_ends_when_another_goal_replaces_its_own(client, capsys):
    moves = lambda: abs(client.position('yaw')[0]) > 0.1  # noqa: E731
    client.world.once(moves, lambda: client.send('goal_joints', client.joints(yaw=0.1)))
    assert goto.main(list(FAR)) == 1
    assert 'another goal has replaced this one' in capsys.readouterr().out


def test_without_a_node_it_says_so(capsys):
    with world():
        assert goto.main(list(GOAL)) == 2
    assert 'ik_node is not running' in capsys.readouterr().err


def test_it_ends_with_the_node(client, capsys):
    client.world.once(lambda: abs(client.position('yaw')[0]) > 0.1, client.served.destroy_node)
    assert goto.main(list(FAR)) == 2
    assert 'ik_node has ended or cannot be reached' in capsys.readouterr().err


def test_it_keeps_no_reports_on_goals_of_others():
    with world():
        sent = Goto()
        sizes = []
        for number in range(100):
            said = {'goal_number': number, 'goal_stamp': f'{number}.5', 'state': 'moving', 'status': 'solved'}
            values = [KeyValue(key=key, value=str(value)) for key, value in said.items()]
            sent._hear(DiagnosticStatus(message='solved', values=values))
            sizes.append(sum(len(kept) for kept in vars(sent).values() if hasattr(kept, 'clear')))
        assert set(sizes) == {0}
        assert (sent._other, sent._latest) == (99, 99.5)
        sent.close()
