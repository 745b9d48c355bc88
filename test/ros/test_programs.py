# SPDX-License-Identifier: Apache-2.0
"""ik_goto and ik_play beside a node that is stepped: what they do, print, and how they end."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from control_harness import arm_model
from diagnostic_msgs.msg import DiagnosticStatus, KeyValue
from node_harness import Client, running
from small_arm import ARM_JOINTS, PARAMETERS, arm_urdf
from stepped import world

from ik_node import client as goto
from ik_node.client import ArmClient
from ik_node.control.settings import ArmSettings
from ik_node.ros.programs import services
from ik_node.ros.programs.play import main
from ik_node.ros.programs.track_player import GoalsNode
from ik_node.teach.program import LINE, Point, Program
from ik_node.tracks import NO_TRACK

pytestmark = pytest.mark.slow

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
        (GOAL, 0, 'arrived'),
        (('0.45', '-0.1', '1.2', '--direction', '1', '0', '-1', '--line'), 0, 'arrived'),
        (('4', '0', '0.2'), 1, 'unreachable'),
        (('0.45', '0.1', '0.2', '--frame', 'base_link'), 0, 'arrived'),
        ((*GOAL, '--frame', 'nowhere'), 1, '"nowhere"'),
        ((*GOAL, '--line'), 2, '--direction'),
    ],
)
@pytest.mark.usefixtures('client')
def test_it_waits_for_the_end_and_gives_the_reason(capsys, arguments, code, words):
    if '--line' in arguments and code == 0:
        assert goto.main([*GOAL, '--direction', '1', '0', '-1']) == 0
    assert goto.main(list(arguments)) == code
    assert words in ''.join(capsys.readouterr())


@pytest.mark.parametrize('how', [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_the_arm(client, how):
    client.world.once(lambda: abs(client.position('yaw')[0]) > 0.1, lambda: signal.raise_signal(how))
    assert goto.main(list(FAR)) == 130
    client.wait_said('stopped; run ik_resume or call ~/resume')


def test_it_ends_a_track_before_it_sends_a_goal(client, capsys):
    with closing(GoalsNode(context=client.world.context, cli_args=['--ros-args', '-p', 'track:=circle'])) as goals:
        assert goto.main(list(GOAL)) == 0
        assert goals.get_parameter('track').value == NO_TRACK
    assert 'the goal no longer moves along the circle' in capsys.readouterr().out


def test_an_arm_is_stopped_resumed_and_watched_without_ros2(client, capsys):
    assert services.status([]) == 0
    assert 'effective DoF' in capsys.readouterr().out
    assert services.stop([]) == 0
    client.wait_said('stopped; run ik_resume')
    assert services.status([]) == 1
    assert 'stopped; run ik_resume' in capsys.readouterr().out
    assert goto.main(list(GOAL)) == 1
    assert services.status([]) == 1, 'a goal that was rejected does not hide the stop'
    assert services.resume([]) == 0
    assert goto.main(list(GOAL)) == 0
    assert services.status([]) == 0
    out = capsys.readouterr().out
    assert 'the arm accepts goals again' in out
    assert 'arrived' in out
    assert 'the solution misses the goal by 0.000 mm' in out
    assert services.stop(['--tool', 'nowhere']) == 2
    assert 'there is no service' in capsys.readouterr().err


def test_it_ends_when_another_goal_replaces_its_own(client, capsys):
    moves = lambda: abs(client.position('yaw')[0]) > 0.1  # noqa: E731
    client.world.once(moves, lambda: client.send('goal_joints', client.joints(yaw=0.1)))
    assert goto.main(list(FAR)) == 1
    assert 'another goal' in capsys.readouterr().out


def test_without_a_node_it_says_so(capsys):
    with world():
        assert goto.main(list(GOAL)) == 2
    assert 'ik_node' in capsys.readouterr().err


def test_it_ends_with_the_node(client, capsys):
    client.world.once(lambda: abs(client.position('yaw')[0]) > 0.1, client.served.destroy_node)
    assert goto.main(list(FAR)) == 2
    assert 'ik_node has ended' in capsys.readouterr().err


def test_it_keeps_no_reports_on_goals_of_others():
    with world():
        sent = ArmClient()
        sizes = []
        for number in range(100):
            said = {'goal_number': number, 'goal_stamp': f'{number}.5', 'state': 'moving', 'status': 'solved'}
            values = [KeyValue(key=key, value=str(value)) for key, value in said.items()]
            sent._on_status(DiagnosticStatus(message='solved', values=values))
            sizes.append(len(sent._unread))
        assert set(sizes) == {0}
        assert (sent._other_number, sent._other_stamp) == (99, 99.5)
        sent.close()


AT = {'yaw': 0.2, 'shoulder': 0.3, 'elbow': 0.9, 'roll': 0.1, 'wrist': 0.4}
Start = Callable[..., int]
Captured = pytest.CaptureFixture[str]


@pytest.fixture
def played() -> Iterator[Client]:
    with running(arm_urdf()) as played:
        played.statuses.clear()
        yield played


@pytest.fixture
def start(tmp_path: Path) -> Callable[..., int]:
    """Runs ik_play with a program; returns its exit code."""

    def play(program: Program, *arguments: str) -> int:
        path = tmp_path / 'program.yaml'
        program.save(path)
        return main([str(path), *arguments])

    return play


@pytest.fixture(scope='module')
def program() -> Program:
    """Seven points, most of them at the ends of lines, with waits, speeds and a gripper."""
    model = arm_model(arm_urdf(), ArmSettings(**PARAMETERS))
    position, direction = model.first.arm.fk(np.array(list(AT.values())))
    points = [Point('ready', joints=AT)]
    for k in range(2):
        above = position + np.array([0.0, 0.04 * k, 0.0])
        low = above - np.array([0.0, 0.0, 0.03])
        tool = {'direction': tuple(direction), 'near': AT}
        points += [
            Point(f'above {k}', position=tuple(above), motion=LINE if k == 1 else 'joint', **tool),
            Point(f'pick {k}', position=tuple(low), motion=LINE, speed=0.5, gripper=0.01 * k, **tool),
            Point(f'lift {k}', position=tuple(above), motion=LINE, wait=0.1, **tool),
        ]
    return Program(tuple(points), gripper='finger')


def arrivals(played: Client) -> list[str]:
    """The topics of the goals at which the arm has arrived."""
    said = [played.said(k) for k in range(len(played.statuses))]
    return [one['goal'] for one in said if one['state'] == 'arrived']


def speed(played: Client) -> float:
    return float(played.served.get_parameter('goal_speed').value)


def test_points_with_lines_run_in_a_loop(played: Client, start: Start, program: Program, capsys: Captured) -> None:
    slow_end = program.with_point(len(program.points) - 1, speed=0.5)
    assert start(slow_end, '--loops', '2') == 0
    said = capsys.readouterr().out
    assert '1: "ready"\n' in said
    assert '2: "lift 1"\nfinished\n' in said
    one_pass = ['goal_joints', *2 * ['goal_joints', 'goal_path', 'goal_joints', 'goal_path']]
    one_pass[5] = 'goal_path'
    assert arrivals(played) == 2 * one_pass
    q = np.array([played.position(name)[0] for name in ARM_JOINTS])
    position, direction = arm_model(arm_urdf(), ArmSettings(**PARAMETERS)).first.arm.fk(q)
    last = program.points[-1]
    assert np.allclose(position, last.position, atol=2e-4)
    assert np.allclose(direction, last.direction, atol=2e-3)
    assert played.position('finger')[0] == pytest.approx(0.01)
    assert speed(played) == 0.5
    played.wait(lambda: speed(played) == 1.0, 'the whole speed, although the last point is slow')


def test_a_point_out_of_reach_is_rejected_before_anything_moves(
    played: Client, start: Start, program: Program, capsys: Captured
) -> None:
    before = played.position(*ARM_JOINTS)
    assert start(program.with_point(5, position=(3.0, 0.0, 0.2))) == 1
    said = capsys.readouterr().out
    assert f'"{program.names[5]}"' in said
    assert 'the program is rejected; the arm has not moved' in said
    assert not played.statuses
    assert played.position(*ARM_JOINTS) == pytest.approx(before)


def test_a_check_moves_nothing(played: Client, start: Start, program: Program, capsys: Captured) -> None:
    assert start(program, '--check', '--loops', '0') == 0
    assert 'the program can run' in capsys.readouterr().out
    assert not played.statuses


def test_a_signal_stops_a_program(played: Client, start: Start, program: Program) -> None:
    slow = replace(program, points=tuple(replace(point, speed=0.05) for point in program.points))
    moves = lambda: any('moving' in status.message for status in played.statuses)  # noqa: E731
    played.world.once(moves, lambda: signal.raise_signal(signal.SIGINT))
    assert start(slow, '--loops', '0') == 130
    played.wait_said('stopped; run ik_resume or call ~/resume')
    assert not arrivals(played)
    played.wait(lambda: speed(played) == 1.0, 'the whole speed')


@pytest.mark.parametrize(('what', 'said'), [('stop', 'stopped'), ('goal', 'another goal moves the arm: goal_joints')])
def test_what_others_do_ends_the_run(
    played: Client, start: Start, program: Program, capsys: Captured, what: str, said: str
) -> None:
    def disturb() -> None:
        if what == 'stop':
            played.served._tools[0].stop()
        else:
            played.send('goal_joints', played.joints(yaw=-0.4))

    played.world.once(lambda: len(arrivals(played)) == 3, lambda: played.world.once(moving, disturb))

    def moving() -> bool:
        return played.said()['state'] == 'moving'

    assert start(program, '--loops', '0') == 1
    assert f'ended: {said}' in re.sub('"[a-z]+ 0": goal_[a-z]+ ended before[^:]*: ', '', capsys.readouterr().out)
    q = played.wait_still()
    played.statuses.clear()
    assert played.wait_still() == pytest.approx(q)
    assert not [status for status in played.statuses if 'solved' in status.message]
    played.wait(lambda: speed(played) == 1.0, 'the whole speed')


def test_what_is_no_program_is_told_with_its_line(tmp_path: Path, capsys: Captured) -> None:
    path = tmp_path / 'wrong.yaml'
    path.write_text('version: 1\npoints:\n- name: a\n  joints: {x: up}\n')
    assert main([str(path)]) == 2
    assert 'wrong.yaml: line 3: point "a": joints x must be a number' in capsys.readouterr().err


def test_without_a_node_no_program_runs(start: Start, program: Program, capsys: Captured) -> None:
    with world():
        assert start(program) == 2
    assert 'no robot_description is published' in capsys.readouterr().err


def test_a_program_ends_with_its_node(played: Client, start: Start, program: Program, capsys: Captured) -> None:
    played.world.once(lambda: arrivals(played), played.served.destroy_node)
    assert start(program) == 1
    assert re.search('ended: (ik_node has ended|.*ik_node has not responded)', capsys.readouterr().out)
