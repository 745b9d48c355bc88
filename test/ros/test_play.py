# SPDX-License-Identifier: Apache-2.0
"""ik_play as a process, against a real node over DDS: programs run, are rejected, stopped or disturbed."""

from __future__ import annotations

import contextlib
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from domains import new_domain
from node_harness import Client, client_in
from processes import SHORT_LEASE, Running, start_node
from small_arm import ARM_JOINTS, PARAMETERS, arm_urdf

from ik_node.control.robot.arm_model import ArmModel
from ik_node.control.settings.arm import ArmSettings
from ik_node.teach.program import LINE, Point, Program

AT = {'yaw': 0.2, 'shoulder': 0.3, 'elbow': 0.9, 'roll': 0.1, 'wrist': 0.4}
Start = Callable[..., Running]


@pytest.fixture(scope='module')
def arm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Running, Client]]:
    """A running node, and a client of it."""
    running = start_node(tmp_path_factory.mktemp('arm'), 'base_link:=base_link')
    try:
        with client_in(running.domain) as client:
            yield running, client
    finally:
        running.end()


@pytest.fixture
def client(arm: tuple[Running, Client]) -> Client:
    """The client of an arm at home, which accepts goals."""
    client = arm[1]
    client.call('ik_node/resume')
    client.set_parameters(speed_scaling=0.5)
    client.answer('goal_joints', client.joints(**dict.fromkeys((*ARM_JOINTS, 'finger'), 0.01)))
    client.wait_said('arrived')
    client.answer('goal_joints', client.joints(**dict.fromkeys((*ARM_JOINTS, 'finger'), 0.0)))
    client.wait_said('arrived')
    client.statuses.clear()
    return client


@pytest.fixture
def play(arm: tuple[Running, Client], tmp_path: Path) -> Iterator[Start]:
    """Starts ik_play with a program; ends all of them after the test."""
    started = []

    def start(program: Program, *arguments: str) -> Running:
        path = tmp_path / 'program.yaml'
        program.save(path)
        started.append(Running('ik_play', str(path), *arguments, domain=arm[0].domain))
        return started[-1]

    yield start
    for one in started:
        one.end()


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


def test_ten_points_with_lines_run_in_a_loop(client: Client, play: Start, program: Program) -> None:
    running = play(program, '--loops', '3')
    assert running.wait_ended() == 0, running.said
    assert '1: "ready"\n' in running.said
    assert '3: "lift 2"\nfinished\n' in running.said
    one_pass = ['goal_joints', *3 * ['goal_joints', 'goal_path', 'goal_joints', 'goal_path']]
    one_pass[5] = 'goal_path'
    assert arrivals(client) == 3 * one_pass
    q = np.array([client.position(name)[0] for name in ARM_JOINTS])
    model = ArmModel.build(arm_urdf(), ArmSettings(**PARAMETERS))
    position, direction = model.arm.fk(q)
    last = program.points[-1]
    assert np.allclose(position, last.position, atol=2e-4)
    assert np.allclose(direction, last.direction, atol=2e-3)
    assert client.position('finger')[0] == pytest.approx(0.02)
    assert client.parameter('speed_scaling') == 0.5


def test_a_point_out_of_reach_is_rejected_before_anything_moves(
    client: Client, play: Start, program: Program
) -> None:
    before = client.position(*ARM_JOINTS)
    far = program.with_point(5, position=(3.0, 0.0, 0.2))
    running = play(far)
    assert running.wait_ended() == 1, running.said
    assert f'"{program.names[5]}"' in running.said
    assert 'beyond the workspace' in running.said
    assert 'the program is rejected; the arm has not moved' in running.said
    assert not client.statuses
    assert client.position(*ARM_JOINTS) == pytest.approx(before)


def test_a_check_moves_nothing(client: Client, play: Start, program: Program) -> None:
    running = play(program, '--check', '--loops', '0')
    assert running.wait_ended() == 0, running.said
    assert 'the program can run' in running.said
    assert not client.statuses


@pytest.mark.parametrize('how', [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_the_arm(client: Client, play: Start, program: Program, how: signal.Signals) -> None:
    slow = replace(program, points=tuple(replace(point, speed=0.05) for point in program.points))
    running = play(slow, '--loops', '0')
    client.wait(lambda: any('moving' in status.message for status in client.statuses), 'the first motion')
    running.process.send_signal(how)
    assert running.wait_ended() == 130, running.said
    assert 'stopping; call ~/resume' in running.said
    client.wait_said('stopped; call ~/resume')
    assert not arrivals(client)
    assert client.parameter('speed_scaling') == 0.5


@pytest.mark.parametrize(
    ('what', 'said'), [('stop', 'stopped'), ('goal', 'another goal moves the arm: goal_joints')]
)
def test_what_others_do_ends_the_run(
    client: Client, play: Start, program: Program, what: str, said: str
) -> None:
    running = play(program, '--loops', '0')
    running.wait_said('"pick 0"')
    if what == 'stop':
        client.call('ik_node/stop')
    else:
        while running.process.poll() is None:  # a goal that arrives with one of the program is replaced by it
            client.send('goal_joints', client.joints(yaw=-0.4))
            with contextlib.suppress(subprocess.TimeoutExpired):
                running.process.wait(timeout=5.0)
    assert running.wait_ended() == 1, running.said
    assert f'ended: {said}' in running.said.replace('"pick 0": goal_path ended before the arm arrived: ', '')
    q = client.wait_still()
    client.statuses.clear()
    assert client.wait_still() == pytest.approx(q)
    assert not [status for status in client.statuses if 'solved' in status.message]
    assert client.parameter('speed_scaling') == 0.5


def test_what_is_no_program_is_told_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / 'wrong.yaml'
    path.write_text('version: 1\npoints:\n- name: a\n  joints: {x: up}\n')
    running = Running('ik_play', str(path))
    try:
        assert running.wait_ended() == 2
        assert 'wrong.yaml: line 3: point "a": joints x must be a number' in running.said
    finally:
        running.end()


def test_without_a_node_it_says_so(program: Program, tmp_path: Path) -> None:
    program.save(tmp_path / 'program.yaml')
    running = Running('ik_play', str(tmp_path / 'program.yaml'), domain=new_domain())
    try:
        assert running.wait_ended() == 2
        assert 'no robot_description is published' in running.said
    finally:
        running.end()


def test_it_ends_when_the_node_is_killed(tmp_path: Path, program: Program) -> None:
    program.save(tmp_path / 'program.yaml')
    slow = ('speed_scaling:=0.02', 'base_link:=base_link')
    node = start_node(tmp_path, *slow, **SHORT_LEASE)
    node.wait_said('effective DoF')
    running = Running('ik_play', str(tmp_path / 'program.yaml'), domain=node.domain)
    try:
        running.wait_said('"ready"')
        node.process.kill()
        assert running.wait_ended() == 1
        # The second, where the node had not yet reported on the goal.
        assert re.search('ended: (ik_node has ended|"ready": ik_node has not responded)', running.said)
        assert 'Traceback' not in running.said
    finally:
        running.end()
        node.end()
