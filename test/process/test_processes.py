# SPDX-License-Identifier: Apache-2.0
"""Each program of ROS once as a process: it starts, acts, ends at a signal with its exit code."""

from __future__ import annotations

import itertools
import os
import pty
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import rclpy
from builtin_interfaces.msg import Time
from node_harness import Client, client_in
from processes import Running, start_node, with_parameters
from rosgraph_msgs.msg import Clock
from waiting import wait_for

from ik_node.startup import demo
from ik_node.startup.demo import Child, stop_all
from ik_node.startup.launch_plan import PACKAGE, NodeSpec
from ik_node.teach.program import Point, Program

Start = Callable[..., Running]
READY = 'effective DoF'
AT = {'yaw': 0.2, 'shoulder': 0.3, 'elbow': 0.9, 'roll': 0.1, 'wrist': 0.4}


@pytest.fixture(scope='module')
def arm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A client of one ik_node, for programs beside it."""
    node = start_node(tmp_path_factory.mktemp('arm'), 'home:=[0.3, 0.4, 0.5, 0.2, 0.3]')
    try:
        with client_in(node.domain) as client:
            client.domain = node.domain
            yield client
    finally:
        node.end()
    assert 'Traceback' not in node.said


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts programs; ends them all after the test."""
    with ExitStack() as ends:

        def run(*arguments: Any, **options: Any) -> Running:
            running = Running(*arguments, **options)
            ends.callback(running.end)
            return running

        yield run


def ended_quietly(running: Running, code: int = 0) -> None:
    assert running.wait_ended() == code, running.said
    assert 'Traceback' not in running.said


def test_a_client_that_comes_late_hears_the_last_status_and_is_served(arm):
    with client_in(arm.domain) as late:
        late.wait(lambda: late.statuses, 'a latched status')
        assert late.parameter('home') == pytest.approx([0.3, 0.4, 0.5, 0.2, 0.3])
        assert late.call('ik_node/stop').success
        assert late.call('ik_node/resume').success


def test_goto_ends_once_the_arm_is_there(arm, start):
    before = arm.wait_still()
    goto = start('ik_goto', '0.45', '0.1', '0.2', '--frame', 'base_link', domain=arm.domain)
    ended_quietly(goto)
    assert abs(arm.wait_still() - before).max() > 0.1


def test_ctrl_c_ends_a_program_and_the_motion(arm, start, tmp_path):
    file = tmp_path / 'program.yaml'
    Program((Point('a', joints=AT), Point('b', joints={**AT, 'yaw': -2.0}))).save(file)
    play = start('ik_play', str(file), '--loops', '0', domain=arm.domain)
    arm.wait(lambda: arm.position('yaw')[0] < -0.5, 'the way to b')
    play.process.send_signal(signal.SIGINT)
    assert play.wait_ended() != 0
    assert 'Traceback' not in play.said
    assert arm.wait_still()[0] > -2.0
    assert arm.call('ik_node/resume').success


def test_a_killed_program_leaves_the_node_serving_others(arm, start):
    goto = start('ik_goto', '-0.45', '0.0', '0.2', '--frame', 'base_link', domain=arm.domain)
    arm.wait(lambda: any(arm.samples[-1].velocity), 'a motion')
    goto.process.kill()
    assert goto.wait_ended() == -signal.SIGKILL
    assert arm.answer('goal_joints', arm.joints(**AT)).message.startswith('solved')
    arm.wait(lambda: arm.position() == pytest.approx(list(AT.values())), 'the other goal')


def test_keys_of_a_terminal_move_the_tool(arm, start):
    ours, theirs = pty.openpty()
    try:
        keys = start('ik_teleop', stdin=theirs, domain=arm.domain)
        keys.wait_said('quit')
        before = arm.wait_still()
        arm.wait(lambda: (os.write(ours, b's'), abs(arm.position() - before).max() > 0.02)[1], 'the motion')
        arm.wait_still()
        os.write(ours, b'q')
        ended_quietly(keys)
    finally:
        os.close(ours)
        os.close(theirs)


def test_signals_in_motion_bring_the_arm_to_rest_first(tmp_path):
    node = start_node(tmp_path, 'max_acceleration:=2.0')
    try:
        with client_in(node.domain) as client:
            yaw = client.samples[-1].name.index('yaw')
            client.answer('goal_joints', client.joints(yaw=2.0))
            client.wait(lambda: client.samples[-1].velocity[yaw] > 0.5, 'speed')
            before = len(client.samples)
            for _ in range(1000):  # handlers interrupt one another
                node.process.send_signal(signal.SIGINT)
            ended_quietly(node)
            gone = lambda: not {'ik_node', 'ik_node_stop'} & set(client.node.get_node_names())  # noqa: E731
            wait_for(gone, 'the graph without the node', 10.0)  # that of a process that was killed has it for 20 s
            client.wait(lambda: client.samples[-1].velocity[yaw] == 0.0, 'the last sample')
            speeds = [sample.velocity[yaw] for sample in client.samples[before:]]
            assert max(abs(b - a) for a, b in itertools.pairwise(speeds)) < 2.1 * 0.01 * 2  # two periods
            assert client.position('yaw') < 1.9
    finally:
        node.end()


def test_a_signal_counts_that_comes_while_the_process_stands(start, tmp_path):
    blocked = tmp_path / 'blocked'
    blocked.write_text('')  # no folder for the log can be made below a file, not even by root
    node = start('ik_node', ROS_HOME=str(blocked))
    node.wait_said('waiting for robot_description')
    assert f'{blocked} is not writable' in node.said
    for number in (signal.SIGSTOP, signal.SIGTERM, signal.SIGCONT):  # then any thread may take it
        time.sleep(0.1)
        node.process.send_signal(number)
    ended_quietly(node)


def test_ctrl_c_while_it_starts_ends_it_quietly(start):
    node = start('ik_node')
    maps = Path(f'/proc/{node.process.pid}/maps')
    node.wait(lambda: '_rclpy' in maps.read_text(), 'the first modules')
    node.process.send_signal(signal.SIGINT)
    ended_quietly(node)


def test_its_last_words_are_not_lost_in_a_buffer_and_the_exit_code_tells_why(start, tmp_path):
    (tmp_path / 'arm.urdf').write_text('<robot/>')
    stdout = {'RCUTILS_LOGGING_USE_STDOUT': '1', 'RCUTILS_LOGGING_BUFFERED_STREAM': '1'}
    node = start('ik_node', *with_parameters(f'urdf_file:={tmp_path}/arm.urdf'), **stdout)
    wrong = start('ik_node', *with_parameters('nonsense'))
    ended_quietly(node, 1)
    assert '<link>' in node.said
    ended_quietly(wrong, 2)
    assert 'nonsense' in wrong.said


def test_a_time_that_rclpy_cannot_read_does_not_end_the_node(tmp_path):
    node = start_node(tmp_path, 'use_sim_time:=true')
    context = rclpy.Context()
    context.init(domain_id=node.domain)
    client = Client(context)
    clock = client.node.create_publisher(Clock, '/clock', 10)
    hundredths = itertools.count()

    def tick(bad: bool) -> None:
        sec, part = divmod(next(hundredths), 100)
        clock.publish(Clock(clock=Time(sec=-5 if bad else sec, nanosec=part * 10_000_000)))
        time.sleep(0.01)

    try:
        client.wait(lambda: (tick(False), client.samples)[1], 'joint_states')
        client.wait(lambda: (tick(True), 'rclpy cannot read it' in node.said)[1], 'a line about the time')
        seen = len(client.samples)
        client.wait(lambda: (tick(False), len(client.samples) > seen + 10)[1], 'more joint_states')
        node.process.send_signal(signal.SIGINT)
        ended_quietly(node)
    finally:
        client.close()
        context.try_shutdown()
        node.end()


@pytest.mark.parametrize('delay', [0.0, 0.02])
def test_a_child_that_is_stopped_while_its_interpreter_begins_ends_well(tmp_path, capfd, delay):
    child = Child(NodeSpec(PACKAGE, 'ik_goals', {}), {}, tmp_path)
    time.sleep(delay)
    assert stop_all([child], pytest.fail)
    assert capfd.readouterr() == ('', '')


def test_a_child_that_does_not_end_is_killed(tmp_path, monkeypatch):
    monkeypatch.setattr(demo, 'PATIENCE', 0.1)
    child, said = Child(NodeSpec(PACKAGE, 'ik_goals', {}), {}, tmp_path), []
    os.kill(child._process.pid, signal.SIGSTOP)
    assert not stop_all([child], said.append)
    assert child.exit_code == -signal.SIGKILL
    assert len(said) == 1
