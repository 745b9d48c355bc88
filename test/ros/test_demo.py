# SPDX-License-Identifier: Apache-2.0
"""ik_demo: starts all, says what goes on, and leaves nothing behind however it ends."""

import os
import pty
import shlex
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from domains import new_domain
from processes import TIMEOUT, Running, nodes_of
from shared_files import shared_path

from ik_node.share import PACKAGE
from ik_node.startup import demo as ik_demo
from ik_node.startup.arguments import PARAMS_FILE
from ik_node.startup.plan import Program
from ik_node.startup.processes import Child
from ik_node.startup.robots import ROBOTS, tools_file

PRESETS = [(name, track) for name in ROBOTS for track in ('circle', 'figure_eight', 'spiral')]
GOING = 'solved: moving to the goal'


@pytest.fixture
def demo():
    """Starts demos; ends them all after the test."""
    running = []

    def start(*arguments: str) -> Running:
        running.append(Running('ik_demo', *arguments))
        return running[-1]

    yield start
    for one in running:
        one.end()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        return probe.getsockname()[1]


def alive(pid: int) -> bool:
    return Path(f'/proc/{pid}').exists()


def ended_well(running: Running, nodes: dict[str, int]) -> None:
    assert running.wait_ended() == 0, running.said
    assert running.said.count('stopping') == 1, running.said
    assert running.said.rstrip().endswith('stopped')
    assert 'Traceback' not in running.said
    assert 'killed' not in running.said
    assert not any(map(alive, nodes.values()))


def test_an_arm_follows_a_circle_until_ctrl_c(demo):
    port = free_port()
    running = demo('--port', str(port))
    running.wait_said(GOING)
    running.wait_said(f'open http://127.0.0.1:{port}/')
    assert 'rejected' not in running.said
    nodes = running.children()
    assert sorted(nodes) == ['ik_goals', 'ik_node', 'ik_viewer']
    assert all(map(alive, nodes.values()))
    os.killpg(running.process.pid, signal.SIGINT)  # as a terminal does it: the whole group
    ended_well(running, nodes)


@pytest.mark.parametrize('name', [name for name in ROBOTS if tools_file(name)])
def test_each_tool_follows_a_track_of_its_own(demo, name):
    running = demo('--no-viewer', '--description-file', name, '--track', 'circle', 'figure_eight')
    for tool, track in (('left', 'circle'), ('right', 'figure_eight')):
        running.wait_said(f'{tool}: {GOING}')
        running.wait_said(f'[{tool}.ik_goals]: track: {track}')
    # The second report: both have followed their goals for seconds.
    running.wait(
        lambda: all(running.said.count(f'{tool}: {GOING}') > 1 for tool in ('left', 'right')), 'goals met'
    )
    assert not [line for line in running.said.splitlines() if 'rejected' in line]
    nodes = running.children()
    assert sorted(nodes) == ['ik_goals', 'ik_node'], 'of the same name: the last one'
    running.process.send_signal(signal.SIGINT)
    ended_well(running, nodes)


def test_sigterm_ends_it_as_well(demo):
    running = demo('--no-viewer')
    running.wait_said(GOING)
    nodes = running.children()
    running.process.send_signal(signal.SIGTERM)
    ended_well(running, nodes)


def test_a_terminal_that_closes_leaves_nothing_behind():
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, '-m', 'ik_node.start', 'ik_demo', '--no-viewer'],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        env={**os.environ, 'ROS_DOMAIN_ID': str(new_domain())},
    )
    os.close(theirs)
    nodes = {}
    try:
        said = b''
        while GOING.encode() not in said:
            said += os.read(ours, 1 << 16)
        nodes = nodes_of(process.pid)
        assert sorted(nodes) == ['ik_goals', 'ik_node']
        os.close(ours)
        process.send_signal(signal.SIGHUP)  # as the terminal does it; nothing can be printed from now on
        assert process.wait(TIMEOUT) == 0
        assert not any(map(alive, nodes.values()))
    finally:
        for pid in filter(alive, [*nodes.values(), process.pid]):
            os.kill(pid, signal.SIGKILL)
        process.wait()


def test_ctrl_c_at_once(demo):
    running = demo('--no-viewer')
    running.wait_said('starting ik_node')
    running.process.send_signal(signal.SIGINT)
    running.process.send_signal(signal.SIGINT)  # the impatient do it twice
    assert running.wait_ended() == 0
    assert 'Traceback' not in running.said
    assert 'killed' not in running.said
    assert not running.children()


@pytest.mark.parametrize('delay', [0.0, 0.01, 0.02, 0.04])
def test_a_node_that_is_stopped_while_its_interpreter_begins_ends_well(tmp_path, capfd, delay):
    child = Child(Program(PACKAGE, 'ik_goals', {}), {}, tmp_path)
    time.sleep(delay)
    child.stop()
    child.wait(time.monotonic() + TIMEOUT, pytest.fail)
    assert child.exit_code == 0
    assert capfd.readouterr() == ('', '')


def test_when_a_node_dies_the_others_are_stopped(demo):
    running = demo('--no-viewer')
    running.wait_said(GOING)
    nodes = running.children()
    os.kill(nodes['ik_goals'], signal.SIGKILL)
    assert running.wait_ended() == 1
    assert 'ik_goals ended with exit code -9; stopping the others' in running.said
    assert not any(map(alive, nodes.values()))


def test_a_node_that_does_not_end_is_killed(demo):
    running = demo('--no-viewer')
    running.wait_said(GOING)
    nodes = running.children()
    os.kill(nodes['ik_node'], signal.SIGSTOP)
    running.process.send_signal(signal.SIGINT)
    assert running.wait_ended() == 1
    assert 'ik_node did not shut down within' in running.said
    assert 'ik_node -9' in running.said
    assert not any(map(alive, nodes.values()))


def test_keys_move_the_arm_instead_and_q_ends_all():
    ours, theirs = pty.openpty()
    running = Running('ik_demo', '--no-viewer', '--teleop', stdin=theirs)
    try:
        running.wait_said('Move the tool')
        running.wait_said('workspace of the tool point')  # ik_node is ready
        nodes = running.children()
        assert sorted(nodes) == ['ik_node', 'ik_teleop']

        def homes() -> bool:
            os.write(ours, b'h')  # again, until the keys have found the services of ik_node
            time.sleep(0.3)
            return 'home: moving to the home position' in running.said

        running.wait(homes, 'the way home')
        running.wait_said('arrived at the requested joint positions')
        assert 'nan' not in running.said
        os.write(ours, b'q')
        ended_well(running, nodes)
    finally:
        running.end()
        os.close(ours)
        os.close(theirs)


def test_emulated_servos_reach_a_goal_and_hold_the_arm_at_the_end(demo):
    running = demo('--no-viewer', '--servos', 'emulated')
    running.wait_said('the arm is held where it is')
    running.wait_said('self-collision')  # ik_node is ready
    goto = Running('ik_goto', '0.25', '0.05', '0.15', domain=running.domain)
    try:
        assert goto.wait_ended() == 0, goto.said
    finally:
        goto.end()
    assert 'arrived at the goal' in goto.said
    nodes = running.children()
    assert sorted(nodes) == ['ik_node', 'ik_servos']
    os.killpg(running.process.pid, signal.SIGINT)
    ended_well(running, nodes)
    assert 'the servos continue to hold the arm' in running.said


def test_make_arm_gives_what_the_driver_of_servos_takes():
    make = subprocess.run(
        ['make', '--no-print-directory', '-n', 'arm', 'PORT=emulated', 'ON_EXIT=release', 'TORQUE_LIMIT=0.5'],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
    )
    line = make.stdout.replace('\\\n', ' ').strip().splitlines()[-1]
    options = ik_demo.parse(shlex.split(line)[1:])
    servos = {one.executable: one.parameters for one in ik_demo.programs(options)[1]}['ik_servos']
    assert (servos['port'], servos['on_exit'], servos['torque_limit']) == ('emulated', 'release', 0.5)


def test_a_port_that_is_taken_is_told_before_anything_starts(demo):
    with socket.socket() as taken:
        taken.bind(('127.0.0.1', 0))
        taken.listen()
        port = taken.getsockname()[1]
        running = demo('--port', str(port))
        assert running.wait_ended() == 1
    assert f'port {port} is not available' in running.said
    assert f'--port {port + 1}' in running.said
    assert 'starting' not in running.said


def test_a_simulated_arm_follows_the_circle(demo):
    pytest.importorskip('mujoco')
    running = demo('--no-viewer', '--sim')
    running.wait_said(GOING)
    running.wait(lambda: running.said.count('goals so far') > 1, 'hundreds of goals')
    rejected = [line for line in running.said.splitlines() if 'rejected' in line]
    late = ('goal_timeout', 'must not end in the past')  # on a busy computer
    assert not [line for line in rejected if not any(reason in line for reason in late)]
    assert 'call ~/resume' not in running.said
    nodes = running.children()
    assert sorted(nodes) == ['ik_goals', 'ik_node', 'ik_plant']
    os.killpg(running.process.pid, signal.SIGINT)
    ended_well(running, nodes)


@pytest.mark.parametrize(
    ('arguments', 'says'),
    [
        (['--description-file', 'nowhere.urdf'], 'nowhere.urdf'),
        (['--tip-link', 'hand'], 'tip_link "hand" does not exist'),
        (['--tool-axis', '0', '0', '2'], 'tool_axis must be a unit vector'),
        (['--description-file', 'nowhere'], '"prismatic_arm", "seed_arm"'),
        (['--track', 'zigzag'], 'track must be one of none, circle'),
        (['--track', 'line', 'line'], 'track must be one track, got 2: line line'),
        (['--description-file', 'two_arms', '--teleop'], '--teleop is for robots with one tool'),
        (['--params-file', 'README.md'], 'README.md as a ROS parameter file'),
        (['--servos', 'emulated', '--profile', 'omx_f'], 'ARM=path.urdf to make arm'),
        (['--servos', 'emulated', '--description-file', 'seed_arm'], 'none of the joints of profile "so101"'),
        (['--port', '99999'], '--port must be from 1 to 65535'),
    ],
)
def test_wrong_arguments_are_told_in_one_line(demo, arguments, says):
    running = demo(*([] if '--port' in arguments else ['--no-viewer']), *arguments)
    assert running.wait_ended() == 1
    assert says in running.said
    assert 'Traceback' not in running.said
    assert len(running.said.strip().splitlines()) == 1


def test_an_arm_of_ones_own_gets_a_circle_that_it_can_follow(demo):
    running = demo(
        '--no-viewer',
        '--description-file',
        str(shared_path('arms', 'so101.urdf')),
        '--tip-link',
        'gripper_frame_link',
    )
    running.wait_said(GOING)
    assert 'so101' in running.said
    running.process.send_signal(signal.SIGINT)
    ended_well(running, running.children())


@pytest.mark.parametrize(('name', 'track'), PRESETS)
def test_every_robot_has_a_place_for_every_track(name, track):
    options = ik_demo.parse(['--description-file', name, '--track', track])
    planned, starts = ik_demo.programs(options)
    goals = {start.namespace: start.parameters for start in starts if start.executable == 'ik_goals'}
    assert list(goals) == (['left', 'right'] if tools_file(name) else [''])
    assert {given['track'] for given in goals.values()} == {track}
    (node,) = [start for start in starts if start.executable == 'ik_node']
    more = ik_demo.extra_parameters(options, planned)['ik_node']
    assert f'name="{name}"' in more['robot_description']
    assert list(node.files) == [str(file) for file in (PARAMS_FILE, tools_file(name)) if file]
