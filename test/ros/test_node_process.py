"""ik_node as a process: how it ends, and with which exit code."""

import signal
import time
from pathlib import Path

import pytest
import rclpy
from node_harness import Client
from processes import Running
from small_arm import arm_urdf

READY = 'effective DoF'


@pytest.fixture
def node(tmp_path):
    running = []

    def start(*parameters: str, urdf: str | None = arm_urdf(), **variables: str) -> Running:
        arguments = [argument for parameter in parameters for argument in ('-p', parameter)]
        if urdf is not None:
            path = tmp_path / 'arm.urdf'
            path.write_text(urdf)
            arguments += ['-p', f'urdf_file:={path}']
        running.append(Running('ik_node', '--ros-args', *arguments, **variables))
        return running[-1]

    yield start
    for one in running:
        one.end()


@pytest.mark.parametrize('pause', [None, 0.0, 0.05, 0.2, 0.6])
@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM])
def test_signals_end_it_with_exit_code_0_and_without_a_word(node, number, pause):
    running = node('tip_link:=tool0')
    running.wait_said(READY)
    said = running.said
    running.process.send_signal(number)
    if pause is not None:  # the second one comes while it stops, or later
        time.sleep(pause)
        running.process.send_signal(number)
    assert running.wait_ended() == 0
    assert running.said == said


def test_its_last_words_are_not_lost_in_a_buffer(node):
    """The log of ROS goes through a buffer of C where it is sent to stdout."""
    running = node(urdf='<robot/>', RCUTILS_LOGGING_USE_STDOUT='1', RCUTILS_LOGGING_BUFFERED_STREAM='1')
    assert running.wait_ended() == 1
    assert 'no <link>' in running.said


@pytest.mark.parametrize('delay', [0.0, 0.2, 0.4, 0.8, 1.2])
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


def test_a_solver_that_has_to_be_compiled_holds_up_nothing_but_goals(node, tmp_path):
    running = node('tip_link:=tool0', 'solver:=scipy', NUMBA_CACHE_DIR=str(tmp_path))
    context = rclpy.Context()
    context.init(domain_id=running.domain)
    client = Client(context)
    try:
        client.wait_ready()
        assert client.set_parameters(solver='lm')[0].successful
        client.wait_said('preparing')
        mark = len(client.samples)
        assert client.call('ik_node/stop').success
        client.wait(lambda: len(client.samples) > mark + 20, 'joint_states')
        assert client.set_parameters(speed_scaling=0.1)[0].successful
        assert 'preparing' in client.statuses[-1].message
    finally:
        client.close()
        context.try_shutdown()


@pytest.mark.parametrize(
    ('urdf', 'parameters', 'says'),
    [
        ('<robot name="x"><link name="a"></robot>', [], 'arm.urdf: malformed XML at line 1'),
        (arm_urdf(), ['tip_link:=hand'], 'tip_link "hand" does not exist'),
        (arm_urdf(), ['home:=[0.0, 1.0]'], 'home must be one number'),
        (arm_urdf(), ['speed_scaling:=5.0'], 'speed_scaling'),
        (None, ['urdf_file:=/no/such/arm.urdf'], '/no/such/arm.urdf'),
        (arm_urdf(), ['robot_description:=<robot/>'], 'robot_description and urdf_file are both set'),
        (None, ['nonsense'], 'nonsense'),
    ],
)
def test_it_does_not_start_with_nonsense(node, urdf, parameters, says):
    running = node(*parameters, urdf=urdf)
    assert running.wait_ended() == 1
    assert says in running.said
    assert 'Traceback' not in running.said
