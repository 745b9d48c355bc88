# SPDX-License-Identifier: Apache-2.0
"""What the arguments of arm.launch.py start, and with what."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest
import trimesh
import yaml
from launch_file import ROOT, planned, starts
from shared_files import shared_path

from ik_node import IkError, InputError, UrdfError
from ik_node.checks import AXES
from ik_node.control.leading import LeaderSettings
from ik_node.model.urdf.reader import load_description, read_urdf
from ik_node.servos.settings import ServoSettings
from ik_node.startup import launch_plan as planning
from ik_node.startup.arguments import ARGUMENTS, ARMS
from ik_node.startup.launch_plan import check_installed
from ik_node.tracks import TRACKS

pytestmark = pytest.mark.slow

SEED = ROOT / 'urdf' / 'seed_arm.urdf.xacro'
SERVOS = {'serial_port': 'emulated', 'description_file': 'so101_like'}


def rviz(**given: str) -> dict[str, Any]:
    """What the configuration of RViz says."""
    return yaml.safe_load(planned(**given).rviz_config)['Visualization Manager']


# What is started


@pytest.mark.parametrize(
    ('given', 'more'),
    [
        ({}, set()),
        ({'rviz': 'True'}, {'rviz2'}),
        ({'viewer': 'true'}, {'ik_viewer'}),
        ({'gui': 'true'}, {'joint_state_publisher_gui'}),
        ({'track': 'none'}, set()),
        ({'track': 'spiral'}, {'ik_goals'}),
        ({'sim': 'mujoco'}, {'ik_plant'}),
        ({'serial_port': 'emulated', 'profile': 'so101'}, {'ik_servos'}),
        ({'leader': 'topic'}, {'ik_leader'}),
    ],
)
def test_each_argument_starts_its_program(given: dict[str, str], more: set[str]) -> None:
    if 'sim' in given:
        pytest.importorskip('mujoco')
    programs = starts(**{'rviz': 'false', 'marker': 'false', **given})
    assert set(programs) == {'robot_state_publisher', 'ik_node', *more}
    assert [name for name, one in programs.items() if one.ends_all] == ['ik_node']


def test_the_default_shows_the_seed_arm_in_rviz():
    programs = starts()
    assert 'rviz2' in programs
    assert read_urdf(programs['robot_state_publisher'].parameters['robot_description']).name == 'seed_arm'


def test_the_goal_can_be_dragged_in_rviz_where_that_is_installed(monkeypatch):
    def enabled(**given: str) -> bool:
        (found,) = [d for d in rviz(**given)['Displays'] if d['Class'].endswith('/InteractiveMarkers')]
        return found['Enabled']

    monkeypatch.setattr(planning, 'marker_possible', lambda: True)
    for given, there in (
        ({}, True),
        ({'marker': 'false'}, False),
        ({'rviz': 'false'}, False),
        ({'rviz': 'false', 'marker': 'true'}, True),
    ):
        assert ('ik_marker' in starts(**given)) is there, given
    assert enabled()
    assert not enabled(marker='false')
    monkeypatch.setattr(planning, 'marker_possible', lambda: False)
    assert 'ik_marker' not in starts()
    with pytest.raises(InputError, match='interactive_markers'):
        starts(marker='true')


@pytest.mark.parametrize('given', [{'real': 'true'}, SERVOS])
def test_a_real_arm_has_the_names_swapped(given):
    remappings = dict(starts(**given)['ik_node'].remappings)
    assert remappings['joint_states'] == 'joint_commands'
    assert remappings['measured_joint_states'] == 'joint_states'
    assert 'joint_states' not in dict(starts()['ik_node'].remappings)


def test_a_simulated_arm_takes_trajectories():
    pytest.importorskip('mujoco')
    assert starts(sim='mujoco')['ik_node'].parameters['output'] == 'joint_trajectory'
    assert 'output' not in starts(sim='none')['ik_node'].parameters


def test_servos_have_what_is_given_and_the_description_of_their_profile():
    nodes = starts(serial_port='emulated', profile='so100', speed_scaling='0.1', torque='false')
    servos = nodes['ik_servos'].parameters
    assert (servos['serial_port'], servos['profile'], servos['torque_at_start']) == (
        'emulated',
        'so100',
        False,
    )
    assert servos['description'].endswith('so101_like.urdf.xacro')
    assert nodes['ik_node'].parameters['speed_scaling'] == 0.1
    given = {
        'on_exit': 'release',
        'calibration': 'lerobot',
        'zero_from': 'homing',
        'zeros': 'elbow_flex=2126',
        'torque_limit': '0.5',
    }
    servos = starts(**SERVOS, **given)['ik_servos'].parameters
    taken = {name: servos[name] for name in given}
    assert taken == {**given, 'torque_limit': 0.5}
    ServoSettings(**taken)  # which rejects unknown names and forbidden values
    assert not given.keys() & starts(**SERVOS)['ik_servos'].parameters.keys(), 'they override params_file'
    omx = str(shared_path('arms', 'omx_f.urdf'))
    servos = starts(serial_port='emulated', profile='omx_f', description_file=omx)['ik_servos'].parameters
    assert (servos['profile'], servos['description']) == ('omx_f', omx)


@pytest.mark.parametrize(
    ('given', 'torque', 'driver', 'description'),
    [
        ({**SERVOS, 'leader': '/dev/ttyACM1'}, False, 'so101_like', ''),  # the same arm
        ({**SERVOS, 'leader': 'emulated'}, True, 'so101_like', ''),
        ({**SERVOS, 'leader': '/dev/ttyACM1', 'leader_profile': 'so100'}, False, 'so101_like', 'so101_like'),
        ({'real': 'true', 'leader': '/dev/ttyACM1'}, False, 'so101_like', 'so101_like'),  # of the profile
        ({**SERVOS, 'leader': 'topic', 'leader_description': 'moveo_like'}, None, '', 'moveo_like'),
        ({**SERVOS, 'leader': 'topic'}, None, '', ''),
    ],
)
def test_a_leader_has_a_driver_of_its_own_without_torque(given, torque, driver, description):
    programs = planned(**given).programs
    (leader,) = [one for one in programs if one.executable == 'ik_leader']
    assert not leader.namespace
    own = leader.parameters['leader_description']
    assert own.endswith(f'{description}.urdf.xacro') if description else not own
    assert LeaderSettings(leader_description=own).leader_description == own
    servos = [one.parameters for one in programs if one.namespace == 'leader']
    assert bool(servos) == (torque is not None)
    if torque is not None:
        assert servos[0]['torque_at_start'] is torque
        assert servos[0]['serial_port'] == given['leader']
        assert servos[0]['profile'] == given.get('leader_profile', 'so101')
        assert servos[0]['description'].endswith(f'{driver}.urdf.xacro')
        ServoSettings(**{name: value for name, value in servos[0].items() if name != 'use_sim_time'})


def test_a_leader_of_a_robot_with_several_tools_is_refused():
    with pytest.raises(InputError, match='start ik_leader with its parameter tool'):
        planned(description_file='two_arms', leader='topic')


@pytest.mark.parametrize(
    ('given', 'said'),
    [
        ({'real': 'true', 'sim': 'mujoco'}, r'real and sim \(mujoco\) exclude'),
        (
            {'serial_port': 'emulated', 'sim': 'mujoco'},
            r'serial_port \(emulated\) and sim \(mujoco\) exclude',
        ),
        ({'serial_port': 'emulated', 'profile': 'omx_f'}, 'omx_f'),
        (
            {'serial_port': 'emulated', 'profile': 'omx_f', 'description_file': 'so101_like'},
            'joints of profile',
        ),
        (
            {'serial_port': 'emulated', 'profile': 'so101', 'description_file': 'seed_arm'},
            'joints of profile',
        ),
        ({**SERVOS, 'torque_limit': 'half'}, 'torque_limit'),
        ({'port': '/dev/ttyACM0'}, 'port:=/dev/ttyACM0 is now serial_port:=/dev/ttyACM0'),
        ({'viewer': 'true', 'page_port': 'any'}, "page_port must be a whole number, got 'any'"),
        ({'track': 'zigzag'}, 'zigzag'),
        ({'track': 'circle line'}, 'track'),
        ({'track': 'line', 'track_centre': '0.2 0'}, 'track_centre'),
        ({'track': 'line', 'track_size': 'big'}, 'track_size'),
        *(({'tool_axis': axis}, 'tool_axis') for axis in ('up', '0 0', '0,0,0', 'nan 0 0')),
        ({'description_file': 'none.urdf'}, r'none\.urdf.*seed_arm'),
        ({'description_file': str(ROOT / 'setup.py')}, r'setup\.py'),
        ({'tip_link': 'tool'}, r'"tool".*"tool0"'),
        ({'tip_link': 'link3', 'base_link': 'tool0'}, 'base_link "tool0"'),
        ({'base_link': 'nolink'}, 'base_link "nolink"'),
        ({'params_file': 'none.yaml'}, 'params_file'),
        ({'xacro_args': 'prefix=left_'}, 'xacro_args'),
        ({'xacro_args': "prefix:='left"}, 'xacro_args'),
        ({'description_file': 'two_arms', 'track': 'circle zigzag'}, 'zigzag'),
        ({'description_file': 'two_arms', 'track': 'line line line'}, '"left", "right", got 3'),
        ({'description_file': 'two_arms', 'tool_axis': 'x'}, 'left.tool_axis'),
        ({'description_file': 'two_arms', 'gui': 'true'}, 'gui'),
    ],
)
def test_what_cannot_be_is_told_in_one_line(given: dict[str, str], said: str) -> None:
    with pytest.raises(IkError, match=said) as caught:
        starts(**given)
    assert '\n' not in str(caught.value)


def test_the_page_has_its_port_and_a_launch_file_around_may_name_a_port_as_it_likes():
    assert starts(viewer='true', page_port='8081')['ik_viewer'].parameters['page_port'] == 8081
    assert 'page_port' not in starts(viewer='true')['ik_viewer'].parameters, 'it would override params_file'
    page = starts(viewer='true', host='0.0.0.0', mesh_path='/meshes', shadows='false')['ik_viewer'].parameters
    assert (page['host'], page['mesh_path'], page['shadows']) == ('0.0.0.0', '/meshes', False)
    assert starts(viewer='true', shadows='true')['ik_viewer'].parameters['shadows'] is True
    assert 'ik_servos' in starts(port='emulated', serial_port='emulated')
    assert 'ik_viewer' in starts(port='8081', page_port='8081', viewer='true')


def test_all_that_is_started_is_installed():
    setup, package = (ROOT / 'setup.py').read_text(), (ROOT / 'package.xml').read_text()
    for node in starts(viewer='true', gui='true', track='circle', serial_port='emulated').values():
        if node.package == 'ik_node':
            assert f"'{node.executable} = ik_node." in setup
        else:
            assert f'>{node.package}</exec_depend>' in package


@pytest.mark.parametrize(('flag', 'package'), [('rviz', 'rviz2'), ('gui', 'joint_state_publisher_gui')])
def test_a_package_that_is_missing_is_told_before_anything_starts(flag, package, tmp_path, monkeypatch):
    index = tmp_path / 'share' / 'ament_index' / 'resource_index' / 'packages'
    index.mkdir(parents=True)
    for name in ('ik_node', 'robot_state_publisher'):
        (index / name).touch()
    monkeypatch.setenv('AMENT_PREFIX_PATH', str(tmp_path))
    monkeypatch.setenv('ROS_DISTRO', 'jazzy')
    check_installed(starts(rviz='false', viewer='true', track='circle').values())
    debian = f'ros-jazzy-{package.replace("_", "-")}'
    with pytest.raises(InputError, match=f'{flag}:=true .* {package}.* sudo apt install {debian}'):
        check_installed(starts(**{'rviz': 'false', flag: 'true'}).values())
    monkeypatch.delenv('AMENT_PREFIX_PATH')
    with pytest.raises(InputError, match='robot_state_publisher'):
        check_installed(starts().values())


# With what


@pytest.mark.parametrize(
    ('node', 'module', 'settings', 'expected'),
    [
        ('ik_node', 'ik_node.control.settings', 'ArmSettings', {'tip_link': 'link5'}),
        ('ik_goals', 'ik_node.tracks', 'TrackSettings', {'centre': (0.3, 0.0, 0.1), 'size': 0.05}),
        ('ik_viewer', 'ik_node.viewer.node', 'ViewerSettings', {'tip_link': 'link5'}),
        ('ik_marker', 'ik_node.ros.parameters', 'ToolSettings', {'tip_link': 'link5'}),
    ],
)
def test_parameters_exist_in_the_node_and_have_allowed_values(node, module, settings, expected, monkeypatch):
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
    own = '<xacro:arg xmlns:xacro="http://www.ros.org/wiki/xacro" name="hand_length" default="0"/></robot>'
    file.write_text(load_description(SEED).replace('</robot>', own))
    for given in ({'real': 'true'}, {'sim': 'mujoco'}, {'description_file': str(file)}):
        assert 'description_file' not in starts(**arguments, **given)['ik_viewer'].parameters


def test_the_viewer_may_show_the_meshes_of_the_description_and_no_others(tmp_path):
    folder = tmp_path / 'arm' / 'urdf'
    folder.mkdir(parents=True)
    (tmp_path / 'arm' / 'meshes').mkdir()
    text = load_description(SEED)
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


def test_tracks_are_those_of_the_package_and_lie_in_the_base_link():
    assert all(name in ARGUMENTS['track'].text for name in TRACKS)
    assert starts(track='line')['ik_goals'].parameters['frame'] == 'base_link'
    given = starts(track='spiral', base_link='link1')['ik_goals'].parameters
    assert (given['track'], given['frame']) == ('spiral', 'link1')


@pytest.mark.parametrize(
    ('text', 'axis'),
    [*AXES.items(), ('0 0.6 -0.8', (0, 0.6, -0.8)), ('0,0.6,-0.8', (0, 0.6, -0.8)), ('[1, 0, 0]', (1, 0, 0))],
)
def test_tool_axis(text, axis):
    nodes = starts(tool_axis=text, track='line')
    for name in ('ik_node', 'ik_goals'):
        assert nodes[name].parameters['tool_axis'] == pytest.approx(axis)


def test_namespaces_hold_every_node_and_tf():
    nodes = starts(namespace='left', viewer='true', gui='true', track='circle')
    remappings = {name: getattr(node, 'remappings', []) for name, node in nodes.items()}
    with_tf = {name for name, pairs in remappings.items() if ('/tf', 'tf') in pairs}
    assert with_tf == {'robot_state_publisher', 'ik_node', 'rviz2'}
    assert not [to for pairs in remappings.values() for _, to in pairs if to.startswith('/')]


# Which description


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """A folder whose name has spaces, as home and working directory, with one .urdf of another root."""
    folder = tmp_path / 'my arms'
    folder.mkdir()
    text = load_description(ROOT / 'urdf' / 'moveo_like.urdf.xacro').replace('base_link', 'table top')
    (folder / 'an arm.urdf').write_text(text)
    (folder / 'mine.yaml').touch()
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
    found = rviz(**given, xacro_args="prefix:='left hand_'")
    assert found['Global Options']['Fixed Frame'] == 'left hand_base'


@pytest.mark.usefixtures('folder')
def test_a_parameter_file_of_ones_own_may_know_the_links():
    Path('one.urdf').write_text('<robot name="one"><link name="a"/></robot>')
    with pytest.raises(UrdfError):
        starts(description_file='one.urdf')
    starts(description_file='one.urdf', params_file='mine.yaml')
    with pytest.raises(InputError, match='base_link "nolink"'):
        starts(description_file='one.urdf', params_file='mine.yaml', base_link='nolink')
