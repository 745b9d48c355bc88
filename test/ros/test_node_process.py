# SPDX-License-Identifier: Apache-2.0
"""ik_node as a process: how it ends, and with which exit code."""

import itertools
import signal
import time
from pathlib import Path

import pytest
from node_harness import Client, client_in, running
from processes import PATIENT, Running, with_parameters
from small_arm import arm_urdf

from ik_node.errors import IkError

READY = 'effective DoF'


@pytest.fixture
def node(tmp_path):
    running = []

    def start(*parameters: str, urdf: str | None = arm_urdf(), **variables: str) -> Running:
        if urdf is not None:
            path = tmp_path / 'arm.urdf'
            path.write_text(urdf)
            parameters += (f'urdf_file:={path}',)
        running.append(Running('ik_node', *with_parameters(PATIENT, *parameters), **variables))
        return running[-1]

    yield start
    for one in running:
        one.end()


@pytest.mark.parametrize(('number', 'pause'), [(signal.SIGINT, None), (signal.SIGTERM, 0.05)])
def test_signals_end_it_with_exit_code_0_and_without_a_word(node, number, pause):
    running = node('tip_link:=tool0')
    running.wait_said(READY)
    time.sleep(0.5)  # that line goes to /rosout too, which takes a moment on a busy machine
    said = running.said
    running.process.send_signal(number)
    if pause is not None:  # the others come while it stops, or later; handlers interrupt one another
        time.sleep(pause)
        for _ in range(1000):
            running.process.send_signal(number)
    assert running.wait_ended() == 0
    assert running.said == said


def speed(client: Client) -> float:
    sample = client.samples[-1]
    return sample.velocity[sample.name.index('yaw')]


@pytest.mark.parametrize(
    ('number', 'again'),
    [(signal.SIGINT, False), (signal.SIGINT, True), (signal.SIGTERM, True), (signal.SIGHUP, False)],
)
def test_a_signal_in_motion_brings_the_arm_to_rest_first(node, number, again):
    running = node('tip_link:=tool0', 'max_acceleration:=2.0')
    with client_in(running.domain) as client:
        client.answer('goal_joints', client.joints(yaw=2.0))
        client.wait(lambda: speed(client) > 0.5, 'speed')
        before = len(client.samples)
        running.process.send_signal(number)
        if again:
            time.sleep(0.05)
            running.process.send_signal(number)
        assert running.wait_ended() == 0
        client.wait(lambda: speed(client) == 0.0, 'the last sample')
        yaw = [sample.velocity[sample.name.index('yaw')] for sample in client.samples[before:]]
        steps = [abs(b - a) for a, b in itertools.pairwise(yaw)]
        assert max(steps) < 2.1 * 0.01 * 2  # acceleration times two periods
        assert client.position('yaw') < 1.9
    assert 'ended while' not in running.said


def test_a_signal_counts_that_comes_while_the_process_stands(node):
    """Then any thread may take it, not only the one that waits for it."""
    running = node('tip_link:=tool0')
    running.wait_said(READY)
    for number in (signal.SIGSTOP, signal.SIGINT, signal.SIGCONT):
        time.sleep(0.1)
        running.process.send_signal(number)
    assert running.process.wait(timeout=20.0) == 0


def test_its_last_words_are_not_lost_in_a_buffer(node):
    """The log of ROS goes through a buffer of C where it is sent to stdout."""
    running = node(urdf='<robot/>', RCUTILS_LOGGING_USE_STDOUT='1', RCUTILS_LOGGING_BUFFERED_STREAM='1')
    assert running.wait_ended() == 1
    assert 'no <link>' in running.said


@pytest.mark.parametrize('delay', [0.0, 0.4])
def test_ctrl_c_while_it_starts_ends_it_quietly(node, delay):
    running = node('tip_link:=tool0')
    maps = Path(f'/proc/{running.process.pid}/maps')
    running.wait(lambda: 'llvmlite' in maps.read_text(), 'the first modules')
    time.sleep(delay)
    running.process.send_signal(signal.SIGINT)
    assert running.wait_ended() == 0
    assert 'Traceback' not in running.said


def test_a_signal_while_it_waits_for_an_arm_ends_it_too(node):
    running = node(urdf=None)
    running.wait_said('waiting for robot_description')
    running.process.send_signal(signal.SIGINT)
    assert running.wait_ended() == 0
    assert 'Traceback' not in running.said


def test_with_nothing_compiled_goals_are_served_at_once(node, tmp_path):
    running = node('tip_link:=tool0', NUMBA_CACHE_DIR=str(tmp_path))
    with client_in(running.domain) as client:
        assert client.answer('goal_point', client.point((0.4, 0.1, 0.3))).message.startswith('solved')
        client.wait(lambda: 'compiling fast kernels' in running.said, 'the compiler')
        client.wait(lambda: client.said()['state'] == 'arrived', 'the arrival')
        assert client.set_parameters(solver='dls')[0].successful
        assert client.answer('goal_point', client.point((0.3, 0.1, 0.3))).message.startswith('solved')
        assert client.call('ik_node/stop').success


@pytest.mark.parametrize(
    ('urdf', 'parameters', 'says'),
    [
        ('<robot name="x"><link name="a"></robot>', {}, 'arm.urdf: malformed XML at line 1'),
        (arm_urdf(), {'tip_link': 'hand'}, 'tip_link "hand" does not exist'),
        (arm_urdf(), {'home': [0.0, 1.0]}, 'home must be one number'),
        (arm_urdf(), {'speed_scaling': 5.0}, 'speed_scaling'),
        (None, {'urdf_file': '/no/such/arm.urdf'}, '/no/such/arm.urdf'),
        (arm_urdf(), {'robot_description': '<robot/>'}, 'robot_description and urdf_file are both set'),
    ],
)
def test_it_does_not_start_with_nonsense(tmp_path, urdf, parameters, says):
    if urdf is not None:
        path = tmp_path / 'arm.urdf'
        path.write_text(urdf)
        parameters = {'urdf_file': str(path), **parameters}
    given = {'base_link': '', 'tip_link': '', **parameters}
    with pytest.raises(IkError, match=says), running(None, ready=False, **given):
        pass


def test_arguments_that_ros_cannot_read_have_an_exit_code_of_their_own(node):
    said = node('nonsense', urdf=None)
    assert said.wait_ended() == 2
    assert 'nonsense' in said.said
    assert 'Traceback' not in said.said


def test_commands_are_never_taken_for_measurements():
    remapped = ['--ros-args', '-r', 'measured_joint_states:=joint_states']
    said = 'joint_states and measured_joint_states are both /joint_states'
    with pytest.raises(IkError, match=said), running(None, ready=False, cli_args=remapped):
        pass


def test_a_parameter_that_does_not_exist_is_named(node):
    running = node('tip_link:=tool0', 'max_folowing_error:=0.1')
    running.wait_said(READY)
    assert 'no parameter "max_folowing_error"' in running.said
    assert 'did you mean "max_following_error"?' in running.said


def test_it_starts_though_the_log_folder_is_not_writable(node, tmp_path):
    blocked = tmp_path / 'blocked'
    blocked.write_text('')  # no folder can be made below a file, not even by root
    running = node('tip_link:=tool0', ROS_HOME=str(blocked))
    running.wait_said(READY)
    assert 'ROS logs to ' in running.said
