# SPDX-License-Identifier: Apache-2.0
"""What the arguments of arm.launch.py start, and with what; test_launch_run.py runs it where ROS 2 is."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest
import trimesh
import yaml
from launch_file import ROOT
from shared_files import shared_path

from ik_node import InputError, UrdfError
from ik_node.checks import AXES
from ik_node.model.urdf.reader import load_description, read_urdf
from ik_node.ros.servos.settings import ServoSettings
from ik_node.startup import plan as planning
from ik_node.startup.arguments import ARGUMENTS
from ik_node.startup.plan import Program, check_installed, plan
from ik_node.startup.robots import ARMS
from ik_node.tracks.curves import TRACKS

FLAGS = {
    'rviz': 'rviz2',
    'viewer': 'ik_viewer',
    'gui': 'joint_state_publisher_gui',
}


def starts(**given: str) -> dict[str, Program]:
    """Return the nodes that arguments start, by executable."""
    values = {name: default for name, (default, _, _) in ARGUMENTS.items()}
    assert given.keys() <= values.keys()
    return {start.executable: start for start in plan(values | given).programs}


def rviz(**given: str) -> dict[str, Any]:
    """Return what the configuration of RViz says."""
    values = {name: default for name, (default, _, _) in ARGUMENTS.items()}
    return yaml.safe_load(plan(values | given).rviz_config)['Visualization Manager']


# What is started


def test_the_default_is_the_arm_its_node_and_rviz():
    nodes = starts(marker='false')
    assert set(nodes) == {'robot_state_publisher', 'ik_node', 'rviz2'}
    text = nodes['robot_state_publisher'].parameters['robot_description']
    assert read_urdf(text).name == 'seed_arm'


def test_the_goal_can_be_dragged_in_rviz_where_that_is_installed(monkeypatch):
    def display(**given: str) -> dict[str, Any]:
        (found,) = [d for d in rviz(**given)['Displays'] if d['Class'].endswith('/InteractiveMarkers')]
        return found

    monkeypatch.setattr(planning, 'marker_possible', lambda: True)
    assert 'ik_marker' in starts()
    assert display()['Enabled']
    assert 'ik_marker' not in starts(marker='false')
    assert not display(marker='false')['Enabled']
    assert 'ik_marker' not in starts(rviz='false')
    assert 'ik_marker' in starts(rviz='false', marker='true')
    monkeypatch.setattr(planning, 'marker_possible', lambda: False)
    assert 'ik_marker' not in starts()
    with pytest.raises(InputError, match='marker:=true needs the ROS package interactive_markers'):
        starts(marker='true')


def test_a_real_arm_has_the_names_swapped():
    remappings = dict(starts(real='true')['ik_node'].remappings)
    assert remappings['joint_states'] == 'joint_commands'
    assert remappings['measured_joint_states'] == 'joint_states'
    assert 'joint_states' not in dict(starts()['ik_node'].remappings)
    with pytest.raises(InputError, match='real:=true and sim:=mujoco exclude each other'):
        starts(real='true', sim='mujoco')


def test_a_simulated_arm_takes_trajectories():
    pytest.importorskip('mujoco')
    assert 'ik_plant' not in starts()
    nodes = starts(sim='mujoco')
    assert 'ik_plant' in nodes
    assert nodes['ik_node'].parameters['output'] == 'joint_trajectory'
    assert 'output' not in starts(sim='none')['ik_node'].parameters


def test_an_arm_with_servos_has_its_driver():
    assert 'ik_servos' not in starts()
    nodes = starts(port='emulated', profile='so100', speed_scaling='0.1', torque='false')
    servos = nodes['ik_servos'].parameters
    assert (servos['port'], servos['profile'], servos['torque_at_start']) == ('emulated', 'so100', False)
    assert servos['description'].endswith('so101_like.urdf.xacro')
    assert nodes['ik_node'].parameters['speed_scaling'] == 0.1
    assert dict(nodes['ik_node'].remappings)['joint_states'] == 'joint_commands'
    with pytest.raises(InputError, match='port:=emulated and sim:=mujoco exclude each other'):
        starts(port='emulated', sim='mujoco')


def test_servos_have_the_description_of_their_profile_or_one_that_is_given():
    with pytest.raises(InputError, match=r'no description for profile "omx_f": .* ARM=path.urdf to make arm'):
        starts(port='emulated', profile='omx_f')
    for robot, profile in (('so101_like', 'omx_f'), ('seed_arm', 'so101')):
        with pytest.raises(InputError, match=f'none of the joints of profile "{profile}"'):
            starts(port='emulated', profile=profile, description_file=robot)


def test_servos_whose_profile_names_no_description_take_that_of_their_maker():
    omx = str(shared_path('arms', 'omx_f.urdf'))
    servos = starts(port='emulated', profile='omx_f', description_file=omx)['ik_servos'].parameters
    assert (servos['profile'], servos['description']) == ('omx_f', omx)


def test_the_driver_of_servos_takes_its_parameters_from_arguments():
    given = {
        'on_exit': 'release',
        'calibration': 'lerobot',
        'zero_from': 'homing',
        'zeros': 'elbow_flex=2126',
        'torque_limit': '0.5',
    }
    arm = {'port': 'emulated', 'description_file': 'so101_like'}
    servos = starts(**arm, **given)['ik_servos'].parameters
    assert {name: servos[name] for name in given} == {**given, 'torque_limit': 0.5}
    checked = ServoSettings(**{name: servos[name] for name in given})
    assert checked.on_exit == 'release'
    assert not given.keys() & starts(**arm)['ik_servos'].parameters.keys()  # they would override params_file
    with pytest.raises(InputError, match="torque_limit must be 1 number, got 'half'"):
        starts(**arm, torque_limit='half')


@pytest.mark.parametrize('flag', FLAGS)
def test_each_flag_starts_one_more(flag):
    without, with_it = starts(**{flag: 'false'}), starts(**{flag: 'True'})
    assert set(with_it) - set(without) == {FLAGS[flag]}


def test_tracks_are_those_of_the_package():
    assert all(name in ARGUMENTS['track'][1] for name in TRACKS)
    assert 'ik_goals' not in starts(track='none')
    with pytest.raises(InputError, match=r"track must be one of none, circle, .*, got 'zigzag'"):
        starts(track='zigzag')
    with pytest.raises(InputError, match='track must be one track, got 2: circle line'):
        starts(track='circle line')
    assert starts(track='spiral')['ik_goals'].parameters['track'] == 'spiral'


def test_all_that_is_started_is_installed():
    setup, package = (ROOT / 'setup.py').read_text(), (ROOT / 'package.xml').read_text()
    for node in starts(viewer='true', gui='true', track='circle', port='emulated').values():
        if node.package == 'ik_node':
            assert f"'{node.executable} = ik_node." in setup
        else:
            assert f'>{node.package}</exec_depend>' in package


def test_the_end_of_ik_node_ends_everything():
    nodes = starts(viewer='true')
    assert [name for name, node in nodes.items() if node.ends_all] == ['ik_node']


@pytest.mark.parametrize('flag', ['rviz', 'gui'])
def test_a_package_that_is_missing_is_told_before_anything_starts(flag, tmp_path, monkeypatch):
    index = tmp_path / 'share' / 'ament_index' / 'resource_index' / 'packages'
    index.mkdir(parents=True)
    for package in ('ik_node', 'robot_state_publisher'):
        (index / package).touch()
    monkeypatch.setenv('AMENT_PREFIX_PATH', str(tmp_path))
    monkeypatch.setenv('ROS_DISTRO', 'jazzy')
    check_installed(starts(rviz='false', viewer='true', track='circle').values())
    with pytest.raises(InputError) as caught:
        check_installed(starts(**{'rviz': 'false', flag: 'true'}).values())
    package = FLAGS[flag]
    debian = f'ros-jazzy-{package.replace("_", "-")}'
    assert str(caught.value) == (
        f'{flag}:=true needs the ROS package {package}, which is not installed: sudo apt install {debian}'
    )
    monkeypatch.delenv('AMENT_PREFIX_PATH')
    with pytest.raises(InputError, match='the launch file needs the ROS package robot_state_publisher'):
        check_installed(starts().values())


# With what


@pytest.mark.parametrize(
    ('node', 'module', 'settings', 'expected'),
    [
        ('ik_node', 'ik_node.control.settings.arm', 'ArmSettings', {'tip_link': 'link5'}),
        ('ik_goals', 'ik_node.tracks.settings', 'TrackSettings', {'centre': (0.3, 0.0, 0.1), 'size': 0.05}),
        ('ik_viewer', 'ik_node.viewer.settings', 'ViewerSettings', {'tip_link': 'link5'}),
        ('ik_marker', 'ik_node.ros.tool_settings', 'ToolSettings', {'tip_link': 'link5'}),
    ],
)
def test_parameters_exist_in_the_node_and_have_allowed_values(node, module, settings, expected, monkeypatch):
    pytest.importorskip('rclpy', reason='the parameters are declared with rclpy')
    monkeypatch.setattr(planning, 'marker_possible', lambda: True)
    nodes = starts(
        base_link='base_link',
        tip_link='link5',
        tool_axis='-x',
        tool_point='[0.083, 0, 0.01]',
        viewer='true',
        track='figure_eight',
        track_centre='0.3 0 0.1',
        track_size='0.05',
        namespace='left',
        use_sim_time='true',
    )
    given = dict(nodes[node].parameters)
    assert given.pop('use_sim_time') is True  # which rclpy declares for every node
    kind = getattr(importlib.import_module(module), settings)
    taken = kind(**given)  # which rejects unknown names and forbidden values
    expected |= {'tool_axis': (-1.0, 0.0, 0.0), 'tool_point': (0.083, 0.0, 0.01)}
    assert {name: getattr(taken, name) for name in expected} == expected


def test_what_is_not_given_is_left_to_the_parameter_file(tmp_path):
    file = tmp_path / 'mine.yaml'
    file.write_text('/**:\n  ros__parameters:\n    speed_scaling: 0.2\n')
    nodes = starts(viewer='true', params_file=str(file))
    assert nodes['ik_node'].files == (str(file),)
    assert set(nodes['ik_node'].parameters) == {'use_sim_time'}
    assert set(nodes['ik_viewer'].parameters) == {'use_sim_time', 'description_file', 'xacro_args'}


def test_only_a_shipped_arm_that_is_not_real_has_link_lengths_to_change(tmp_path):
    arguments = {'viewer': 'true', 'xacro_args': 'hand_length:=0.1'}
    page = starts(**arguments)['ik_viewer'].parameters
    assert load_description(page['description_file'], {'hand_length': '0.1'})
    assert page['xacro_args'] == 'hand_length:=0.1'
    file = tmp_path / 'mine.urdf.xacro'
    text = load_description(ROOT / 'urdf' / 'seed_arm.urdf.xacro')
    own = '<xacro:arg xmlns:xacro="http://www.ros.org/wiki/xacro" name="hand_length" default="0"/></robot>'
    file.write_text(text.replace('</robot>', own))
    for given in ({'real': 'true'}, {'sim': 'mujoco'}, {'description_file': str(file)}):
        assert 'description_file' not in starts(**arguments, **given)['ik_viewer'].parameters


def test_the_viewer_may_show_the_meshes_of_the_description_and_no_others(tmp_path):
    folder = tmp_path / 'arm' / 'urdf'
    folder.mkdir(parents=True)
    (tmp_path / 'arm' / 'meshes').mkdir()
    text = load_description(ROOT / 'urdf' / 'seed_arm.urdf.xacro')
    (folder / 'arm.urdf').write_text(text)
    given = {'description_file': str(folder / 'arm.urdf'), 'viewer': 'true'}
    assert 'mesh_path' not in starts(**given)['ik_viewer'].parameters, 'it has none'
    trimesh.creation.box().export(tmp_path / 'arm' / 'meshes' / 'box.stl')
    text = text.replace('<sphere radius="0.036"/>', '<mesh filename="../meshes/box.stl"/>')
    assert '../meshes/box.stl' in text
    (folder / 'arm.urdf').write_text(text)
    assert starts(**given)['ik_viewer'].parameters['mesh_path'] == str(tmp_path / 'arm')


@pytest.mark.parametrize('name', ARMS)
def test_a_track_without_a_centre_is_where_the_arm_can_follow_it(name):
    given = starts(description_file=name, track='spiral')['ik_goals'].parameters
    assert ('centre' in given) == (name != 'seed_arm'), 'which the defaults of ik_goals suit'
    there = starts(description_file=name, track='spiral', track_centre='0.3 0 0.1')['ik_goals'].parameters
    assert there['centre'] == [0.3, 0.0, 0.1]
    assert 'direction' not in there


def test_the_track_lies_in_the_base_link():
    assert starts(track='line')['ik_goals'].parameters['frame'] == 'base_link'
    given = starts(track='line', base_link='link1')['ik_goals'].parameters
    assert given['frame'] == 'link1'


@pytest.mark.parametrize(
    ('text', 'axis'),
    [*AXES.items(), ('0 0.6 -0.8', (0, 0.6, -0.8)), ('0,0.6,-0.8', (0, 0.6, -0.8)), ('[1, 0, 0]', (1, 0, 0))],
)
def test_tool_axis(text, axis):
    nodes = starts(tool_axis=text, track='line')
    assert nodes['ik_node'].parameters['tool_axis'] == pytest.approx(axis)
    assert nodes['ik_goals'].parameters['tool_axis'] == pytest.approx(axis)


@pytest.mark.parametrize('text', ['up', '0 0', '0 0 1 0', 'xx', '[a, b, c]', '0,0,0', '0 0 2', 'nan 0 0'])
def test_a_bad_tool_axis_is_named(text):
    with pytest.raises(InputError, match='tool_axis must be'):
        starts(tool_axis=text)


def test_bad_numbers_of_a_track_are_named():
    with pytest.raises(InputError, match='track_centre must be 3 numbers'):
        starts(track='line', track_centre='0.2 0')
    with pytest.raises(InputError, match="track_size must be 1 number, got 'big'"):
        starts(track='line', track_size='big')


def test_namespaces_hold_every_node_and_tf():
    nodes = starts(namespace='left', viewer='true', gui='true', track='circle')
    assert {name for name, node in nodes.items() if ('/tf', 'tf') in getattr(node, 'remappings', [])} == {
        'robot_state_publisher',
        'ik_node',
        'rviz2',
    }
    targets = [target for node in nodes.values() for _, target in getattr(node, 'remappings', [])]
    assert not [target for target in targets if target.startswith('/')]


# Which description


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """A folder whose name has spaces, as home and working directory, with one .urdf of another root."""
    folder = tmp_path / 'my arms'
    folder.mkdir()
    text = load_description(ROOT / 'urdf' / 'moveo_like.urdf.xacro').replace('base_link', 'table top')
    (folder / 'an arm.urdf').write_text(text)
    monkeypatch.chdir(folder)
    monkeypatch.setenv('HOME', str(folder))
    return folder


@pytest.mark.parametrize('given', ['an arm.urdf', './an arm.urdf', '~/an arm.urdf', '../my arms/an arm.urdf'])
def test_any_path_to_a_description(folder, given):
    nodes = starts(description_file=given)
    text = nodes['robot_state_publisher'].parameters['robot_description']
    assert text == (folder / 'an arm.urdf').read_text()
    assert rviz(description_file=given)['Global Options']['Fixed Frame'] == 'table top'


def test_a_shipped_arm_by_name():
    nodes = starts(description_file='xarm5_like')
    assert 'name="xarm5_like"' in nodes['robot_state_publisher'].parameters['robot_description']


def test_xacro_arguments_reach_the_file(folder):
    (folder / 'two.xacro').write_text(
        '<robot name="r" xmlns:xacro="http://www.ros.org/wiki/xacro"><xacro:arg name="prefix" default=""/>'
        '<link name="$(arg prefix)base"/></robot>'
    )
    given = {'description_file': 'two.xacro', 'params_file': 'mine.yaml'}
    (folder / 'mine.yaml').touch()
    found = rviz(**given, xacro_args="prefix:='left hand_'")
    assert found['Global Options']['Fixed Frame'] == 'left hand_base'
    with pytest.raises(InputError, match='xacro_args'):
        starts(**given, xacro_args='prefix=left_')
    with pytest.raises(InputError, match='xacro_args'):
        starts(**given, xacro_args="prefix:='left")


def test_a_wrong_description_is_said_in_one_sentence(folder):
    with pytest.raises(InputError, match=r'the file .*my arms/none\.urdf does not exist.*seed_arm') as caught:
        starts(description_file='none.urdf')
    assert '\n' not in str(caught.value)
    (folder / 'bad.urdf').write_text('<robot name="r">')
    with pytest.raises(UrdfError, match=r'my arms/bad\.urdf: malformed XML'):
        starts(description_file='bad.urdf')
    with pytest.raises(UrdfError, match=r'tip_link "tool" does not exist.*did you mean "tool0"'):
        starts(tip_link='tool')
    with pytest.raises(UrdfError, match='base_link "tool0"'):
        starts(tip_link='link3', base_link='tool0')
    with pytest.raises(UrdfError, match=r'base_link "nolink" does not exist'):
        starts(base_link='nolink')
    with pytest.raises(InputError, match='params_file'):
        starts(params_file='none.yaml')


def test_a_parameter_file_of_ones_own_may_know_the_links(folder):
    (folder / 'mine.yaml').touch()
    (folder / 'one.urdf').write_text('<robot name="one"><link name="a"/></robot>')
    with pytest.raises(UrdfError):
        starts(description_file='one.urdf')
    starts(description_file='one.urdf', params_file='mine.yaml')
    with pytest.raises(InputError, match=r'base_link "nolink" does not exist'):
        starts(description_file='one.urdf', params_file='mine.yaml', base_link='nolink')
