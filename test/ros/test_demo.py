# SPDX-License-Identifier: Apache-2.0
"""ik_demo: what it would start, and what it says of wrong arguments before it starts anything."""

from __future__ import annotations

import shlex
import socket
import subprocess
from pathlib import Path

import pytest
from programs import check_rejected, ran
from shared_files import shared_path

from ik_node.startup import demo as ik_demo
from ik_node.startup.arguments import DEMO, PARAMS_FILE, ROBOTS, given_options, tools_file

PRESETS = [(name, track) for name in ROBOTS for track in ('circle', 'figure_eight', 'spiral')]


def make(*given: str) -> subprocess.CompletedProcess[str]:
    """Ask make what it would do."""
    command = ['make', '--no-print-directory', '-n', *given]
    return subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True)


def test_make_arm_gives_what_the_driver_of_servos_and_the_viewer_take():
    given = 'SERIAL_PORT=emulated', 'ON_EXIT=release', 'TORQUE_LIMIT=0.5', 'PAGE_PORT=8081', 'LEADER=emulated'
    made = make('arm', *given)
    line = made.stdout.replace('\\\n', ' ').strip().splitlines()[-1]
    options = ik_demo.parse(shlex.split(line)[1:])
    nodes = {f'{one.namespace}/{one.executable}': one.parameters for one in ik_demo.programs(options)[1]}
    assert nodes['leader/ik_servos']['serial_port'] == 'emulated'
    assert '/ik_leader' in nodes
    servos = nodes['/ik_servos']
    assert (servos['serial_port'], servos['on_exit'], servos['torque_limit']) == ('emulated', 'release', 0.5)
    assert nodes['/ik_viewer']['page_port'] == 8081


def test_every_option_of_ik_demo_is_a_variable_of_make():
    given = {
        **dict.fromkeys(DEMO, '1'),
        'description_file': 'my arm.urdf',
        'track': 'line spiral',
        'tool_axis': '-x',
        'tool_point': '-1 0 0',
        'sim': 'mujoco',
        'on_exit': 'release',
        'zero_from': 'homing',
        'torque': 'false',
        'shadows': 'false',
    }
    made = make('demo', *(f'{name.upper()}={value}' for name, value in given.items()))
    options = ik_demo.parse(shlex.split(made.stdout.replace('\\\n', ' ').strip().splitlines()[-1])[1:])
    read = given_options(options)
    assert {name: read[name].strip() for name in DEMO} == given


@pytest.mark.parametrize(
    ('given', 'says'),
    [
        (('demo', 'PORT=8081'), 'PORT is now PAGE_PORT: make demo PAGE_PORT=8081'),
        (('arm', 'PORT=emulated'), 'PORT is now SERIAL_PORT: make arm SERIAL_PORT=emulated'),
        (('arm', 'PAGE=8081'), 'PAGE is now PAGE_PORT: make arm PAGE_PORT=8081'),
        (('demo', 'ARM=two_arms'), 'ARM is now DESCRIPTION_FILE: make demo DESCRIPTION_FILE=two_arms'),
        (('demo', 'TRACKS=line spiral'), 'TRACKS is now TRACK: make demo TRACK=line spiral'),
        (('arm', 'SPEED=0.5'), 'SPEED is now SPEED_SCALING: make arm SPEED_SCALING=0.5'),
        (('demo', 'SIM=1'), 'SIM=1 is now SIM=mujoco: make demo SIM=mujoco'),
    ],
)
def test_make_starts_nothing_for_the_names_of_earlier_versions(given, says):
    made = make(*given)
    assert (made.returncode, made.stdout) == (2, '')
    assert says in made.stderr


def test_the_option_of_earlier_versions_is_told_as_the_one_of_now():
    check_rejected(ran(ik_demo, '--port', '8081'), 'argument --port: renamed to --page-port')
    check_rejected(ran(ik_demo, '--servos', 'auto'), 'argument --servos: renamed to --serial-port')


@pytest.mark.slow
@pytest.mark.parametrize(
    ('arguments', 'says'),
    [
        (['--description-file', 'nowhere.urdf'], 'nowhere.urdf'),
        (['--tip-link', 'hand'], 'tip_link "hand" does not exist'),
        (['--tool-axis', '0', '0', '0'], 'tool_axis must not be zero'),
        (['--description-file', 'nowhere'], '"prismatic_arm", "seed_arm"'),
        (['--track', 'zigzag'], 'track must be one of none, circle'),
        (['--track', 'line', 'line'], 'track must be one track, got 2: line line'),
        (['--description-file', 'two_arms', '--teleop'], '--teleop is for robots with one tool'),
        (['--params-file', 'README.md'], 'cannot read ROS parameter file'),
        (['--serial-port', 'emulated', '--profile', 'omx_f'], 'give the URDF of the arm as description_file'),
        (
            ['--serial-port', 'emulated', '--description-file', 'seed_arm'],
            'none of the joints of profile',
        ),
        (['--page-port', '99999'], '--page-port must be a whole number from 1 to 65535'),
    ],
)
def test_wrong_arguments_are_told_in_one_line(arguments, says):
    ended = ran(ik_demo, *([] if '--page-port' in arguments else ['--no-viewer']), *arguments)
    assert ended.code == 1
    assert ended.out == ''
    assert len(ended.err.splitlines()) == 1
    assert says in ended.err


def test_a_port_that_is_taken_is_told_before_anything_starts():
    with socket.socket() as taken:
        taken.bind(('127.0.0.1', 0))
        taken.listen()
        port = taken.getsockname()[1]
        ended = ran(ik_demo, '--page-port', port)
    assert (ended.code, ended.out) == (1, '')
    assert f'--page-port {port + 1}' in ended.err


def test_an_arm_of_ones_own_gets_a_circle_that_it_can_follow():
    file = str(shared_path('arms', 'so101.urdf'))
    _, starts = ik_demo.programs(ik_demo.parse(['--description-file', file, '--tip-link', 'gripper_frame_link']))
    given = {one.executable: one.parameters for one in starts}
    assert given['ik_goals']['track'] == 'circle'
    assert 0.01 < given['ik_goals']['size'] < 0.3
    assert given['ik_node']['tip_link'] == 'gripper_frame_link'


@pytest.mark.slow
@pytest.mark.parametrize(('name', 'track'), PRESETS)
def test_every_robot_has_a_place_for_every_track(name, track):
    options = ik_demo.parse(['--description-file', name, '--track', track])
    planned, starts = ik_demo.programs(options)
    goals = {start.namespace: start.parameters for start in starts if start.executable == 'ik_goals'}
    assert list(goals) == (['left', 'right'] if tools_file(name) else [''])
    assert {given['track'] for given in goals.values()} == {track}
    (node,) = [start for start in starts if start.executable == 'ik_node']
    more = ik_demo.extra_parameters(planned)['ik_node']
    assert f'name="{name}"' in more['robot_description']
    assert list(node.files) == [str(file) for file in (PARAMS_FILE, tools_file(name)) if file]
