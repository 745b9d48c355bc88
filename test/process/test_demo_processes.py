# SPDX-License-Identifier: Apache-2.0
"""ik_demo: starts all, says what goes on, and leaves nothing behind however it ends."""

from __future__ import annotations

import os
import pty
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml
from domains import new_domain
from processes import TIMEOUT, Running, nodes_of
from waiting import wait_for

GOING = 'solved: moving to the goal'
Start = Callable[..., Running]


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[Start]:
    """Starts demos, for which a busy machine is no failure; ends them all after the test."""
    running: list[Running] = []
    file = tmp_path / 'patient.yaml'
    patient = {'goal_timeout': 60.0, 'measured_timeout': 20.0}
    file.write_text(yaml.safe_dump({'/**': {'ros__parameters': patient}}))

    def start(*arguments: str) -> Running:
        running.append(Running('ik_demo', '--params-file', str(file), *arguments))
        return running[-1]

    yield start
    for one in running:
        one.end()


def alive(pid: int) -> bool:
    return Path(f'/proc/{pid}').exists()


def check_ended_well(running: Running, nodes: dict[str, int]) -> None:
    assert running.wait_ended() == 0, running.said
    assert running.said.rstrip().endswith('stopped')
    assert not {'Traceback', 'killed', 'killing'} & set(re.findall(r'\w+', running.said))
    assert not any(map(alive, nodes.values()))


def test_arms_follow_their_tracks_on_the_page_until_ctrl_c(demo):
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        port = probe.getsockname()[1]
    running = demo('--page-port', str(port), '--description-file', 'two_arms', '--track', 'circle', 'figure_eight')
    for tool, track in (('left', 'circle'), ('right', 'figure_eight')):
        running.wait_said(f'{tool}: {GOING}')
        running.wait_said(f'[{tool}.ik_goals]: track: {track}')
    running.wait_said(f'http://127.0.0.1:{port}/')
    url = re.findall(rf'http://127.0.0.1:{port}/\S*', running.said)[0]
    with urllib.request.urlopen(url, timeout=TIMEOUT) as page:
        assert b'<html' in page.read().lower()
    assert 'rejected' not in running.said
    nodes = running.children()
    assert sorted(nodes) == ['ik_goals', 'ik_node', 'ik_viewer']
    os.killpg(running.process.pid, signal.SIGINT)  # as a terminal does it: the whole group
    check_ended_well(running, nodes)


def test_ctrl_c_at_once(demo):
    running = demo('--no-viewer')
    running.wait_said('starting ik_node')
    running.process.send_signal(signal.SIGINT)
    running.process.send_signal(signal.SIGINT)  # the impatient do it twice
    check_ended_well(running, running.children())


def test_when_a_node_dies_the_others_are_stopped(demo):
    running = demo('--no-viewer')
    running.wait_said(GOING)
    nodes = running.children()
    os.kill(nodes['ik_goals'], signal.SIGKILL)
    assert running.wait_ended() == 1
    assert 'ik_goals ended with exit code -9' in running.said
    assert not any(map(alive, nodes.values()))


def test_keys_move_the_arm_and_a_terminal_that_closes_leaves_nothing_behind():
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, '-m', 'ik_node.start', 'ik_demo', '--no-viewer', '--teleop'],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        env={**os.environ, 'ROS_DOMAIN_ID': str(new_domain())},
    )
    os.close(theirs)
    os.set_blocking(ours, False)
    nodes: dict[str, int] = {}
    said = bytearray()

    def homes() -> bool:
        os.write(ours, b'h')  # again, until the keys have found the services of ik_node
        try:
            said.extend(os.read(ours, 1 << 16))
        except BlockingIOError:
            return False
        return b'arrived at the requested' in said

    try:
        wait_for(homes, 'the way home', TIMEOUT, context=lambda: said.decode())
        nodes = nodes_of(process.pid)
        assert sorted(nodes) == ['ik_node', 'ik_teleop']
        os.close(ours)
        process.send_signal(signal.SIGHUP)  # as the terminal does it; nothing can be printed from now on
        assert process.wait(TIMEOUT) == 0
        assert not any(map(alive, nodes.values()))
    finally:
        for pid in filter(alive, [*nodes.values(), process.pid]):
            os.kill(pid, signal.SIGKILL)
        process.wait()


def test_emulated_servos_reach_a_goal_and_hold_the_arm_at_the_end(demo):
    running = demo('--no-viewer', '--serial-port', 'emulated')
    running.wait_said('the arm is held where it is')
    running.wait_said('self-collision')  # ik_node is ready
    goto = Running('ik_goto', '0.25', '0.05', '0.15', domain=running.domain)
    try:
        assert goto.wait_ended() == 0, goto.said
    finally:
        goto.end()
    nodes = running.children()
    assert sorted(nodes) == ['ik_node', 'ik_servos']
    os.killpg(running.process.pid, signal.SIGINT)
    check_ended_well(running, nodes)
    assert 'the servos continue to hold the arm' in running.said


def test_a_simulated_arm_follows_the_circle(demo):
    pytest.importorskip('mujoco')
    running = demo('--no-viewer', '--sim')
    running.wait_said(GOING)
    running.wait_said('rad off)')
    assert 'rejected' not in running.said
    assert 'call ~/resume' not in running.said
    nodes = running.children()
    assert sorted(nodes) == ['ik_goals', 'ik_node', 'ik_plant']
    os.killpg(running.process.pid, signal.SIGINT)
    check_ended_well(running, nodes)
