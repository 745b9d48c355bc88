"""arm.launch.py: what its arguments start, and with what."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from launch_file import ROOT, module_of_launch_file

from ik_node import InputError, UrdfError
from ik_node.model.urdf import load_description, read_urdf
from ik_node.tracks.curves import TRACKS

FLAGS = {
    'rviz': 'rviz2',
    'viewer': 'ik_viewer',
    'gui': 'joint_state_publisher_gui',
}


class Record(SimpleNamespace):
    """Anything of the launch packages: it remembers what it was given."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(given=given, **named)


@pytest.fixture
def arm_launch(monkeypatch) -> ModuleType:
    """The launch file, run with records in place of the launch packages, so that it is tested without ROS."""
    names = {
        'launch': ('LaunchContext', 'LaunchDescription'),
        'launch.actions': ('DeclareLaunchArgument', 'OpaqueFunction', 'Shutdown'),
        'launch_ros': (),
        'launch_ros.actions': ('Node',),
        'launch_ros.parameter_descriptions': ('ParameterValue',),
    }
    for package, classes in names.items():
        module = ModuleType(package)
        for name in classes:
            setattr(module, name, type(name, (Record,), {}))
        monkeypatch.setitem(sys.modules, package, module)
    return module_of_launch_file()


def started(module: ModuleType, **given: str) -> dict[str, Any]:
    """Return the nodes that arguments start, by executable."""
    values = {name: default for name, (default, _, _) in module.ARGUMENTS.items()}
    assert given.keys() <= values.keys()
    nodes = module.start(SimpleNamespace(launch_configurations=values | given))
    return {node.executable: node for node in nodes}


def parameters_of(node: Any) -> dict[str, Any]:
    """Return the parameters that a node is given besides those of its files."""
    merged: dict[str, Any] = {}
    for entry in node.parameters:
        if isinstance(entry, dict):
            merged |= {
                name: value.given[0] if isinstance(value, Record) else value for name, value in entry.items()
            }
    return merged


# What is started


def test_the_default_is_the_arm_its_node_and_rviz(arm_launch):
    nodes = started(arm_launch)
    assert set(nodes) == {'robot_state_publisher', 'ik_node', 'rviz2'}
    text = parameters_of(nodes['robot_state_publisher'])['robot_description']
    assert read_urdf(text).name == 'seed_arm'


@pytest.mark.parametrize('flag', FLAGS)
def test_each_flag_starts_one_more(arm_launch, flag):
    without, with_it = started(arm_launch, **{flag: 'false'}), started(arm_launch, **{flag: 'True'})
    assert set(with_it) - set(without) == {FLAGS[flag]}


def test_tracks_are_those_of_the_package(arm_launch):
    choices = arm_launch.ARGUMENTS['track'][2]
    assert set(choices) == {'none', *TRACKS}
    assert 'ik_goals' not in started(arm_launch, track='none')
    assert parameters_of(started(arm_launch, track='spiral')['ik_goals'])['track'] == 'spiral'


def test_all_that_is_started_is_installed(arm_launch):
    setup, package = (ROOT / 'setup.py').read_text(), (ROOT / 'package.xml').read_text()
    for node in started(arm_launch, viewer='true', gui='true', track='circle').values():
        if node.package == 'ik_node':
            assert f"'{node.executable} = ik_node." in setup
        else:
            assert f'<exec_depend>{node.package}</exec_depend>' in package


def test_the_end_of_ik_node_ends_everything(arm_launch):
    nodes = started(arm_launch, viewer='true')
    assert [name for name, node in nodes.items() if hasattr(node, 'on_exit')] == ['ik_node']


# With what


@pytest.mark.parametrize(
    ('node', 'module', 'settings', 'expected'),
    [
        ('ik_node', 'ik_node.control.settings', 'ArmSettings', {'tip_link': 'link5'}),
        ('ik_goals', 'ik_node.tracks.settings', 'TrackSettings', {'centre': (0.3, 0.0, 0.1), 'size': 0.05}),
        ('ik_viewer', 'ik_node.viewer.settings', 'ViewerSettings', {'tip_link': 'link5'}),
    ],
)
def test_parameters_exist_in_the_node_and_have_allowed_values(arm_launch, node, module, settings, expected):
    pytest.importorskip('rclpy', reason='the parameters are declared with rclpy')
    nodes = started(
        arm_launch,
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
    given = parameters_of(nodes[node])
    assert given.pop('use_sim_time') is True  # which rclpy declares for every node
    kind = getattr(importlib.import_module(module), settings)
    taken = kind(**given)  # which refuses unknown names and forbidden values
    expected |= {'tool_axis': (-1.0, 0.0, 0.0), 'tool_point': (0.083, 0.0, 0.01)}
    assert {name: getattr(taken, name) for name in expected} == expected


def test_what_is_not_given_is_left_to_the_parameter_file(arm_launch, tmp_path):
    file = tmp_path / 'mine.yaml'
    file.write_text('/**:\n  ros__parameters:\n    speed_scaling: 0.2\n')
    nodes = started(arm_launch, viewer='true', params_file=str(file))
    assert nodes['ik_node'].parameters[0] == str(file)
    assert set(parameters_of(nodes['ik_node'])) == {'use_sim_time'}
    assert set(parameters_of(nodes['ik_viewer'])) == {'use_sim_time'}


def test_a_link_whose_name_looks_like_a_number_stays_a_string(arm_launch, tmp_path):
    text = load_description(ROOT / 'urdf' / 'seed_arm.urdf.xacro').replace('tool0', '007')
    (tmp_path / 'arm.urdf').write_text(text)
    nodes = started(arm_launch, description_file=str(tmp_path / 'arm.urdf'), tip_link='007')
    tip = nodes['ik_node'].parameters[-1]['tip_link']
    assert (tip.given, tip.value_type) == (('007',), str)


def test_the_viewer_looks_for_meshes_around_the_description(arm_launch, tmp_path):
    (tmp_path / 'arm.urdf').write_text(load_description(ROOT / 'urdf' / 'seed_arm.urdf.xacro'))
    nodes = started(arm_launch, description_file=str(tmp_path / 'arm.urdf'), viewer='true')
    assert parameters_of(nodes['ik_viewer'])['mesh_path'] == str(tmp_path)


def test_the_track_lies_in_the_base_link(arm_launch):
    assert parameters_of(started(arm_launch, track='line')['ik_goals'])['frame'] == 'base_link'
    given = parameters_of(started(arm_launch, track='line', base_link='link1')['ik_goals'])
    assert given['frame'] == 'link1'


@pytest.mark.parametrize(
    ('text', 'axis'),
    [
        ('z', (0, 0, 1)),
        ('-y', (0, -1, 0)),
        ('x', (1, 0, 0)),
        ('0 0.6 -0.8', (0, 0.6, -0.8)),
        ('[1,0,0]', (1, 0, 0)),
    ],
)
def test_tool_axis(arm_launch, text, axis):
    nodes = started(arm_launch, tool_axis=text, track='line')
    assert parameters_of(nodes['ik_node'])['tool_axis'] == list(map(float, axis))
    assert parameters_of(nodes['ik_goals'])['tool_axis'] == list(map(float, axis))


@pytest.mark.parametrize('text', ['up', '0 0', '0 0 1 0', 'xx', '[a, b, c]'])
def test_a_bad_tool_axis_is_named(arm_launch, text):
    with pytest.raises(InputError, match='tool_axis must be') as caught:
        started(arm_launch, tool_axis=text)
    assert text in str(caught.value)


def test_bad_numbers_of_a_track_are_named(arm_launch):
    with pytest.raises(InputError, match='track_centre must be 3 numbers'):
        started(arm_launch, track='line', track_centre='0.2 0')
    with pytest.raises(InputError, match="track_size must be 1 number, got 'big'"):
        started(arm_launch, track='line', track_size='big')


def test_namespaces_hold_every_node_and_tf(arm_launch):
    nodes = started(arm_launch, namespace='left', viewer='true', gui='true', track='circle')
    assert {node.namespace for node in nodes.values()} == {'left'}
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
def test_any_path_to_a_description(arm_launch, folder, given):
    nodes = started(arm_launch, description_file=given)
    text = parameters_of(nodes['robot_state_publisher'])['robot_description']
    assert text == (folder / 'an arm.urdf').read_text()
    assert nodes['rviz2'].arguments[2:] == ['-f', 'table top']


def test_a_shipped_arm_by_name(arm_launch):
    nodes = started(arm_launch, description_file='xarm5_like')
    assert 'name="xarm5_like"' in parameters_of(nodes['robot_state_publisher'])['robot_description']


def test_xacro_arguments_reach_the_file(arm_launch, folder):
    (folder / 'two.xacro').write_text(
        '<robot name="r" xmlns:xacro="http://www.ros.org/wiki/xacro"><xacro:arg name="prefix" default=""/>'
        '<link name="$(arg prefix)base"/></robot>'
    )
    nodes = started(arm_launch, description_file='two.xacro', xacro_args="prefix:='left hand_'")
    assert nodes['rviz2'].arguments[-1] == 'left hand_base'
    with pytest.raises(InputError, match='xacro_args'):
        started(arm_launch, description_file='two.xacro', xacro_args='prefix=left_')


def test_a_wrong_description_is_said_in_one_sentence(arm_launch, folder):
    with pytest.raises(InputError, match=r'no file .*my arms/none\.urdf.*seed_arm') as caught:
        started(arm_launch, description_file='none.urdf')
    assert '\n' not in str(caught.value)
    (folder / 'bad.urdf').write_text('<robot name="r">')
    with pytest.raises(UrdfError, match=r'my arms/bad\.urdf: malformed XML'):
        started(arm_launch, description_file='bad.urdf')
    with pytest.raises(UrdfError, match=r'tip_link "tool" does not exist.*did you mean "tool0"'):
        started(arm_launch, tip_link='tool')
    with pytest.raises(UrdfError, match='base_link "tool0"'):
        started(arm_launch, tip_link='link3', base_link='tool0')
    with pytest.raises(InputError, match='params_file'):
        started(arm_launch, params_file='none.yaml')
