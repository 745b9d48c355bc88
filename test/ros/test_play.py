# SPDX-License-Identifier: Apache-2.0
"""ik_play beside a node that is stepped: programs run, are rejected, stopped or disturbed."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from node_harness import Client, running
from small_arm import ARM_JOINTS, PARAMETERS, arm_urdf
from stepped import world

from ik_node.control.robot.arm_model import ArmModel
from ik_node.control.settings.arm import ArmSettings
from ik_node.ros.programs.play import main
from ik_node.teach.program import LINE, Point, Program

AT = {'yaw': 0.2, 'shoulder': 0.3, 'elbow': 0.9, 'roll': 0.1, 'wrist': 0.4}
Start = Callable[..., int]
Captured = pytest.CaptureFixture[str]


pytestmark = pytest.mark.usefixtures('terminal')


@pytest.fixture
def client() -> Iterator[Client]:
    with running(arm_urdf()) as client:
        client.statuses.clear()
        yield client


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
    """Ten points, five of them at the ends of lines, with waits, speeds and a gripper."""
    model = ArmModel.build(arm_urdf(), ArmSettings(**PARAMETERS))
    position, direction = model.arm.fk(np.array(list(AT.values())))
    points = [Point('ready', joints=AT)]
    for k in range(3):
        above = position + np.array([0.0, 0.04 * k, 0.0])
        low = above - np.array([0.0, 0.0, 0.03])
        tool = {'direction': tuple(direction), 'near': AT}
        points += [
            Point(f'above {k}', position=tuple(above), motion=LINE if k == 1 else 'joint', **tool),
            Point(f'pick {k}', position=tuple(low), motion=LINE, speed=0.5, gripper=0.01 * k, **tool),
            Point(f'lift {k}', position=tuple(above), motion=LINE, wait=0.1, **tool),
        ]
    return Program(tuple(points), gripper='finger')


def arrivals(client: Client) -> list[str]:
    """The topics of the goals at which the arm has arrived."""
    said = [client.said(k) for k in range(len(client.statuses))]
    return [one['goal'] for one in said if one['state'] == 'arrived']


def speed(client: Client) -> float:
    return float(client.served.get_parameter('speed_scaling').value)


def test_ten_points_with_lines_run_in_a_loop(
    client: Client, start: Start, program: Program, capsys: Captured
) -> None:
    slow_end = program.with_point(len(program.points) - 1, speed=0.5)
    assert start(slow_end, '--loops', '2') == 0
    said = capsys.readouterr().out
    assert '1: "ready"\n' in said
    assert '2: "lift 2"\nfinished\n' in said
    one_pass = ['goal_joints', *3 * ['goal_joints', 'goal_path', 'goal_joints', 'goal_path']]
    one_pass[5] = 'goal_path'
    assert arrivals(client) == 2 * one_pass
    q = np.array([client.position(name)[0] for name in ARM_JOINTS])
    position, direction = ArmModel.build(arm_urdf(), ArmSettings(**PARAMETERS)).arm.fk(q)
    last = program.points[-1]
    assert np.allclose(position, last.position, atol=2e-4)
    assert np.allclose(direction, last.direction, atol=2e-3)
    assert client.position('finger')[0] == pytest.approx(0.02)
    assert speed(client) == 0.5, 'as before, although the last point is slow'


def test_a_point_out_of_reach_is_rejected_before_anything_moves(
    client: Client, start: Start, program: Program, capsys: Captured
) -> None:
    before = client.position(*ARM_JOINTS)
    assert start(program.with_point(5, position=(3.0, 0.0, 0.2))) == 1
    said = capsys.readouterr().out
    assert f'"{program.names[5]}"' in said
    assert 'the program is rejected; the arm has not moved' in said
    assert not client.statuses
    assert client.position(*ARM_JOINTS) == pytest.approx(before)


def test_a_check_moves_nothing(client: Client, start: Start, program: Program, capsys: Captured) -> None:
    assert start(program, '--check', '--loops', '0') == 0
    assert 'the program can run' in capsys.readouterr().out
    assert not client.statuses


@pytest.mark.parametrize('how', [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_the_arm(
    client: Client, start: Start, program: Program, capsys: Captured, how: signal.Signals
) -> None:
    slow = replace(program, points=tuple(replace(point, speed=0.05) for point in program.points))
    moves = lambda: any('moving' in status.message for status in client.statuses)  # noqa: E731
    client.world.once(moves, lambda: signal.raise_signal(how))
    assert start(slow, '--loops', '0') == 130
    assert 'stopping; call ~/resume' in capsys.readouterr().out
    client.wait_said('stopped; call ~/resume')
    assert not arrivals(client)
    assert speed(client) == 0.5


@pytest.mark.parametrize(
    ('what', 'said'), [('stop', 'stopped'), ('goal', 'another goal moves the arm: goal_joints')]
)
def test_what_others_do_ends_the_run(
    client: Client, start: Start, program: Program, capsys: Captured, what: str, said: str
) -> None:
    def disturb() -> None:
        if what == 'stop':
            client.served._tools[0].stop()
        else:
            client.send('goal_joints', client.joints(yaw=-0.4))

    client.world.once(lambda: len(arrivals(client)) == 3, lambda: client.world.once(moving, disturb))

    def moving() -> bool:
        return client.said()['state'] == 'moving'

    assert start(program, '--loops', '0') == 1
    assert f'ended: {said}' in re.sub(
        '"[a-z]+ 0": goal_[a-z]+ ended before[^:]*: ', '', capsys.readouterr().out
    )
    q = client.wait_still()
    client.statuses.clear()
    assert client.wait_still() == pytest.approx(q)
    assert not [status for status in client.statuses if 'solved' in status.message]
    assert speed(client) == 0.5


def test_what_is_no_program_is_told_with_its_line(tmp_path: Path, capsys: Captured) -> None:
    path = tmp_path / 'wrong.yaml'
    path.write_text('version: 1\npoints:\n- name: a\n  joints: {x: up}\n')
    assert main([str(path)]) == 2
    assert 'wrong.yaml: line 3: point "a": joints x must be a number' in capsys.readouterr().err


def test_without_a_node_it_says_so(start: Start, program: Program, capsys: Captured) -> None:
    with world():
        assert start(program) == 2
    assert 'no robot_description is published' in capsys.readouterr().err


def test_it_ends_with_the_node(client: Client, start: Start, program: Program, capsys: Captured) -> None:
    client.world.once(lambda: arrivals(client), client.served.destroy_node)
    assert start(program) == 1
    assert re.search('ended: (ik_node has ended|.*ik_node has not responded)', capsys.readouterr().out)
