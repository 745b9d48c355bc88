# SPDX-License-Identifier: Apache-2.0
"""What arm.launch.py starts for robots with several tools."""

from __future__ import annotations

import pytest
import yaml
from launch_file import ROOT, planned, starts

from ik_node import Goal, InputError, Tree, TreeSolver
from ik_node.model.urdf.reader import load_description
from ik_node.startup import launch_plan as planning
from ik_node.startup.arguments import SUFFIX, URDF, tools_file, tools_in
from ik_node.startup.launch_plan import MARKER, LaunchPlan, NodeSpec
from ik_node.tracks import Track

pytestmark = pytest.mark.slow

PAIRS = pytest.mark.parametrize('name', ['torso_arms', 'two_arms'])


def by_tool(found: LaunchPlan, program: str) -> dict[str, NodeSpec]:
    """The programs of a kind, by the tool that they are for."""
    return {start.namespace: start for start in found.programs if start.executable == program}


@PAIRS
def test_the_nodes_learn_the_tools_from_the_file_of_the_robot(name):
    found = starts(description_file=name, viewer='true')
    for node in ('ik_node', 'ik_viewer'):
        assert found[node].files[-1] == str(tools_file(name))
        assert not {'tip_link', 'tool_axis', 'tool_point'} & set(found[node].parameters)
        assert found[node].namespace == ''


@pytest.mark.parametrize(
    ('name', 'tracks'),
    [('torso_arms', 'circle figure_eight'), ('two_arms', 'spiral'), ('torso_arms', 'line none')],
)
def test_every_tool_gets_a_track_that_both_can_follow_at_once(name, tracks):
    goals = by_tool(planned(description_file=name, track=tracks), 'ik_goals')
    found = {side: start.parameters for side, start in goals.items()}
    left, right = tracks.split() * (2 if ' ' not in tracks else 1)
    wanted = {side: track for side, track in (('left', left), ('right', right)) if track != 'none'}
    assert {side: given['track'] for side, given in found.items()} == wanted
    tree = Tree.from_file(URDF / f'{name}{SUFFIX}', tools_in([tools_file(name)]))
    solver, q = TreeSolver(tree), tree.middle
    curves = {
        side: Track(given['track'], given['centre'], given['size'], 0.1, given['direction'])
        for side, given in found.items()
    }
    q = solver.solve({side: Goal(curve.position(0.0), (0, 0, -1)) for side, curve in curves.items()}, q).q
    for step in range(1, 40):
        at = {side: Goal(curve.position(0.2 * step), (0, 0, -1)) for side, curve in curves.items()}
        solution = solver.track(at, q)
        assert solution.solved
        assert abs(solution.q - q).max() < 0.3
        q = solution.q


@pytest.mark.parametrize('namespace', ['', 'lab', '/lab'])
def test_goals_listen_to_the_joints_of_the_whole_robot(namespace):
    found = by_tool(planned(description_file='two_arms', track='line', namespace=namespace), 'ik_goals')
    topic = '/lab/joint_states' if namespace else '/joint_states'
    assert {side: start.remappings for side, start in found.items()} == dict.fromkeys(
        ('left', 'right'), (('joint_states', topic),)
    )


def test_every_tool_has_its_own_displays_in_rviz():
    one, two = (yaml.safe_load(planned(description_file=name).rviz_config) for name in ('seed_arm', 'two_arms'))
    manager = two['Visualization Manager']
    entries = [*manager['Displays'], *manager['Tools']]
    assert [entry['Topic']['Value'] for entry in entries if 'Topic' in entry] == [
        f'{side}'.join(around)
        for around in (('ik_node/', '/markers'), ('', '/ik_goals/markers'), ('', '/goal_point'))
        for side in ('left', 'right')
    ]
    names = [entry['Name'] for entry in manager['Displays']]
    assert len(set(names)) == len(names)
    assert [panel['Class'] for panel in one['Panels']] == ['rviz_common/Displays']
    assert two['Panels'][1]['Class'] == 'rviz_common/Tool Properties'  # which Publish Point is for which
    assert two['Panels'][1]['Expanded'][:2] == ['/Publish Point1', '/Publish Point2']


def test_every_tool_has_its_own_marker_to_drag(monkeypatch):
    monkeypatch.setattr(planning, 'marker_possible', lambda: True)
    found = planned(description_file='two_arms', namespace='lab')
    markers = by_tool(found, 'ik_marker')
    assert list(markers) == ['left', 'right']
    assert markers['left'].parameters['tip_link'] == 'left_tool0'
    to = dict(markers['left'].remappings)
    for topic in ('joint_states', 'ik_node/set_parameters_atomically'):
        assert to[topic] == f'/lab/{topic}'
    for topic in ('stop', 'projected_pose'):
        assert to[f'ik_node/{topic}'] == f'/lab/ik_node/left/{topic}'
    assert 'goal_pose' not in to
    displays = yaml.safe_load(found.rviz_config)['Visualization Manager']['Displays']
    shown = [display[MARKER] for display in displays if MARKER in display]
    assert shown == ['left/ik_marker', 'right/ik_marker']


def test_one_tool_of_the_pair_by_its_tip_link():
    node = starts(description_file='two_arms', tip_link='left_tool0')['ik_node']
    assert node.parameters['tip_link'] == 'left_tool0'
    assert str(tools_file('two_arms')) not in node.files


def test_a_robot_of_ones_own_has_its_tools_in_the_parameter_file(tmp_path):
    mine, path = tmp_path / 'mine.yaml', tmp_path / 'mine.urdf'
    tools = '{tools: [a, b], a.tip_link: left_tool0, b: {tip_link: right_tool0}}'
    mine.write_text(f'ik_node: {{ros__parameters: {tools}}}')
    path.write_text(load_description(URDF / f'two_arms{SUFFIX}'))
    found = planned(description_file=str(path), params_file=str(mine), track='circle line')
    assert list(by_tool(found, 'ik_goals')) == ['a', 'b']
    assert found.programs[1].files == (str(mine),)
    shipped = planned(description_file='two_arms', params_file=str(mine))
    assert shipped.programs[1].files == (str(tools_file('two_arms')), str(mine)), 'the last one counts'


@pytest.mark.parametrize(
    ('text', 'said'),
    [
        ('{', r'bad\.yaml'),
        ('[1, 2]', r'bad\.yaml'),
        ('/**: {ros__parameters: {tools: [left]}}', 'left.tip_link'),
    ],
)
def test_files_without_usable_tools_are_named(tmp_path, text, said):
    (tmp_path / 'bad.yaml').write_text(text)
    with pytest.raises(InputError, match=said):
        tools_in([tmp_path / 'bad.yaml'])


def test_tools_have_the_defaults_of_all_and_none_has_an_empty_name(tmp_path):
    file = tmp_path / 'mine.yaml'
    file.write_text('/**: {ros__parameters: {tools: [a], tool_axis: [1, 0, 0], a: {tip_link: hand}}}')
    assert tools_in([file])['a'].axis == [1, 0, 0]
    file.write_text("/**: {ros__parameters: {tools: ['']}}")
    assert tools_in([file, ROOT / 'config' / 'ik_node.yaml']) == {}
