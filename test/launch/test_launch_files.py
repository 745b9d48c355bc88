# SPDX-License-Identifier: Apache-2.0
"""The launch files with the launch packages of ROS 2 or their stand-in, and real runs where ROS 2 is."""

from __future__ import annotations

import ast
import importlib
import os
import shutil
import signal
import subprocess
from types import SimpleNamespace

import numpy as np
import pytest
from domains import new_domain
from launch_file import LAUNCH_FILE, ROOT, module_of_launch_file, starts
from launch_stand_in import stand_in
from node_harness import client_in

from ik_node import Arm, InputError
from ik_node.startup.arguments import ARGUMENTS
from ik_node.tracks import TRACKS


@pytest.fixture
def launch_context(monkeypatch) -> type:
    stand_in(monkeypatch)
    return importlib.import_module('launch').LaunchContext


@pytest.mark.usefixtures('launch_context')
def test_every_argument_says_what_it_is_for():
    description = module_of_launch_file().generate_launch_description()
    arguments = {argument.name: argument for argument in description.get_launch_arguments()}
    assert arguments.keys() == ARGUMENTS.keys()
    for argument in arguments.values():
        assert argument.description
        assert argument.default_value is not None
    assert all(track in arguments['track'].description for track in TRACKS)
    assert {'true', 'false'} <= set(arguments['use_sim_time'].choices)


@pytest.mark.slow
def test_launch_itself_takes_the_arguments(launch_context, tmp_path, monkeypatch):
    node = importlib.import_module('launch_ros.actions').Node
    index = tmp_path / 'share' / 'ament_index' / 'resource_index' / 'packages'
    index.mkdir(parents=True)
    for package in ('ik_node', 'robot_state_publisher', 'rviz2', 'joint_state_publisher_gui'):
        (index / package).touch()
    monkeypatch.setenv('AMENT_PREFIX_PATH', str(tmp_path))

    def nodes(**given: str) -> list[str]:
        context = launch_context()
        context.launch_configurations.update(given)
        found = []
        for entity in module_of_launch_file().generate_launch_description().entities:
            found += entity.visit(context) or []
        return [entity.node_executable for entity in found if isinstance(entity, node)]

    assert nodes() == ['robot_state_publisher', 'ik_node', 'rviz2']
    more = nodes(rviz='false', viewer='true', gui='true', track='circle', tool_axis='-x', namespace='a/b')
    assert more[2:] == ['ik_viewer', 'joint_state_publisher_gui', 'ik_goals']
    with pytest.raises(InputError, match='square'):
        nodes(track='square')
    (index / 'rviz2').unlink()
    with pytest.raises(InputError, match='rviz:=true'):
        nodes()


def test_a_node_that_ends_ends_all_and_one_that_failed_is_an_error(launch_context):
    end, context = module_of_launch_file().end, launch_context()
    ended = SimpleNamespace(process_name='ik_node-1', returncode=0)
    end(ended, context)
    ended.returncode = 1
    with pytest.raises(RuntimeError, match='ik_node-1'):
        end(ended, context)


def test_two_arms_are_launched_as_one_robot_or_as_two(launch_context):
    """Both ways include arm.launch.py, once or twice, with a namespace for each of two robots."""
    include = importlib.import_module('launch.actions').IncludeLaunchDescription

    def included(**given: str) -> list[tuple[str, str]]:
        context, found = launch_context(), []
        context.launch_configurations.update({'rviz': 'false', **given})
        waiting = list(module_of_launch_file('two_arms').generate_launch_description().entities)
        while waiting:
            entity = waiting.pop(0)
            if isinstance(entity, include):
                arguments = dict(entity.launch_arguments)
                assert arguments['rviz'] == 'false'
                found.append((arguments['description_file'], arguments.get('namespace', '')))
            else:
                waiting = [*(entity.visit(context) or []), *waiting]
        return found

    assert included() == [('two_arms', '')]
    assert included(description_file='torso_arms') == [('torso_arms', '')]
    assert included(nodes='two') == [('seed_arm', 'left'), ('seed_arm', 'right')]
    pair = included(nodes='two', description_file='so101_like')
    assert pair == [('so101_like', 'left'), ('so101_like', 'right')]
    with pytest.raises(RuntimeError, match='three'):
        included(nodes='three')


def test_an_so101_has_its_driver_and_goes_slowly(launch_context):
    text = LAUNCH_FILE.with_name('so101.launch.py').read_text(encoding='utf-8')
    (defaults,) = [
        ast.literal_eval(node.value)
        for node in ast.parse(text).body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == 'DEFAULTS'
    ]
    programs = starts(**defaults | {'serial_port': 'emulated'})
    servos = programs['ik_servos'].parameters
    assert (servos['profile'], servos['torque_at_start']) == ('so101', True)
    assert servos['description'].endswith('so101_like.urdf.xacro')
    assert programs['ik_node'].parameters['speed_scaling'] == 0.2
    context = launch_context()
    for entity in module_of_launch_file('so101').generate_launch_description().entities:
        entity.visit(context)
    assert defaults.items() <= context.launch_configurations.items()


def test_without_arguments_both_arms_of_a_leader_are_emulated(launch_context):
    context = launch_context()
    for entity in module_of_launch_file('leader').generate_launch_description().entities:
        if type(entity).__name__ == 'DeclareLaunchArgument':
            entity.visit(context)
    given = {name: value for name, value in context.launch_configurations.items() if name in ARGUMENTS}
    nodes = starts(**given)
    assert {'ik_node', 'ik_servos', 'ik_leader'} <= nodes.keys()
    assert given['leader'] == given['serial_port'] == 'emulated'


# Where ROS 2 is installed


@pytest.fixture
def ros2_launch():
    """A function that starts the launch file in a session of its own, so that SIGINT can go to it alone."""
    if shutil.which('ros2') is None:
        pytest.skip('the command ros2 is not installed here')
    packages = pytest.importorskip('ament_index_python.packages')
    for package in ('robot_state_publisher', 'ik_node'):
        try:
            packages.get_package_prefix(package)
        except packages.PackageNotFoundError:
            pytest.skip(f'the ROS package {package} is not installed here')
    running = []

    def start(*arguments: str, domain: int) -> subprocess.Popen[str]:
        environment = os.environ | {'ROS_DOMAIN_ID': str(domain), 'PYTHONUNBUFFERED': '1'}
        process = subprocess.Popen(
            ['ros2', 'launch', str(LAUNCH_FILE), 'rviz:=false', *arguments],
            env=environment,
            start_new_session=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        running.append(process)
        return process

    yield start
    for process in running:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@pytest.mark.parametrize('namespace', ['', 'left/arm'])
def test_a_launched_arm_goes_to_its_goal_and_stops_on_ctrl_c(ros2_launch, namespace):
    number = new_domain()
    process = ros2_launch(f'namespace:={namespace}' if namespace else 'gui:=false', domain=number)
    try:
        with client_in(number, namespace) as client:
            arm = Arm.from_file(ROOT / 'urdf' / 'seed_arm.urdf.xacro')
            q = np.array([0.4, 0.5, -0.9, -0.6, 0.8])
            goal = arm.robot.link_pose('tool0', dict(zip(arm.joint_names, q, strict=True)))
            position, direction = arm.fk(q)

            def arrived() -> bool:
                place, along = arm.fk(client.position(*arm.joint_names))
                return bool(np.linalg.norm(place - position) < 1e-4 and along @ direction > 1 - 1e-6)

            assert not arrived()
            client.send('goal_pose', client.pose(goal))
            client.wait(arrived, 'the arm to arrive')
    finally:
        process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 0, output
    assert 'Traceback' not in output
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)  # nothing of it is left


@pytest.mark.parametrize('started', [False, True])
def test_what_cannot_start_ends_the_launch_with_exit_code_1(ros2_launch, tmp_path, started):
    file = tmp_path / 'bad.yaml'
    file.write_text('/**:\n  ros__parameters:\n    tool_axis: [0.0, 0.0, 0.0]\n')
    given = f'params_file:={file}' if started else 'tool_axis:=up'
    process = ros2_launch(given, domain=new_domain())
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 1
    assert 'tool_axis' in output
    assert ('process started' in output) is started
    assert 'Traceback' not in output
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)  # nothing of it is left
