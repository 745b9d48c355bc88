# SPDX-License-Identifier: Apache-2.0
"""What arm.launch.py starts for robots with several tools."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from launch_file import ROOT

from ik_node import Goal, InputError, Tree, TreeSolver
from ik_node.model.urdf.reader import load_description
from ik_node.startup import plan as planning
from ik_node.startup.arguments import ARGUMENTS
from ik_node.startup.plan import Plan, plan
from ik_node.startup.robots import SUFFIX, URDF, tools_file, tools_in
from ik_node.startup.rviz_config import MARKER
from ik_node.tracks.curves import Track

PAIRS = pytest.mark.parametrize('name', ['torso_arms', 'two_arms'])


def planned(name: str, **given: str) -> Plan:
    defaults = {argument: default for argument, (default, _, _) in ARGUMENTS.items()}
    return plan(defaults | {'description_file': name} | given)


def goals(plan: Plan) -> dict[str, dict]:
    """Return the parameters of every ik_goals by namespace."""
    return {start.namespace: start.parameters for start in plan.programs if start.executable == 'ik_goals'}


@PAIRS
def test_the_nodes_learn_the_tools_from_the_file_of_the_robot(name):
    starts = {start.executable: start for start in planned(name, viewer='true').programs}
    for node in ('ik_node', 'ik_viewer'):
        assert starts[node].files[-1] == str(tools_file(name))
        assert not {'tip_link', 'tool_axis', 'tool_point'} & set(starts[node].parameters)
        assert starts[node].namespace == ''


@PAIRS
@pytest.mark.parametrize('tracks', ['circle figure_eight', 'spiral', 'line none'])
def test_every_tool_gets_a_track_that_both_can_follow_at_once(name, tracks):
    found = goals(planned(name, track=tracks))
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


def test_goals_listen_to_the_joints_of_the_whole_robot():
    for namespace, topic in (
        ('', '/joint_states'),
        ('lab', '/lab/joint_states'),
        ('/lab', '/lab/joint_states'),
    ):
        starts = planned('two_arms', track='line', namespace=namespace).programs
        listening = {start.namespace: start.remappings for start in starts if start.executable == 'ik_goals'}
        assert listening == dict.fromkeys(('left', 'right'), (('joint_states', topic),))


def test_every_tool_has_its_own_displays_in_rviz():
    manager = yaml.safe_load(planned('two_arms').rviz_config)['Visualization Manager']
    topics = [
        entry['Topic']['Value']
        for kind in ('Displays', 'Tools')
        for entry in manager[kind]
        if 'Topic' in entry
    ]
    assert topics == [
        f'{side}'.join(around)
        for around in (('ik_node/', '/markers'), ('', '/ik_goals/markers'), ('', '/goal_point'))
        for side in ('left', 'right')
    ]
    names = [entry['Name'] for entry in manager['Displays']]
    assert len(set(names)) == len(names)


def test_rviz_shows_which_publish_point_is_for_which_tool():
    one, two = (yaml.safe_load(planned(name).rviz_config)['Panels'] for name in ('seed_arm', 'two_arms'))
    assert [panel['Class'] for panel in one] == ['rviz_common/Displays']
    assert [panel['Class'] for panel in two] == ['rviz_common/Displays', 'rviz_common/Tool Properties']
    assert two[1]['Expanded'][:2] == ['/Publish Point1', '/Publish Point2']


def test_every_tool_has_its_own_marker_to_drag(monkeypatch):
    monkeypatch.setattr(planning, 'marker_possible', lambda: True)
    found = planned('two_arms', namespace='lab')
    markers = [start for start in found.programs if start.executable == 'ik_marker']
    assert [start.namespace for start in markers] == ['left', 'right']
    assert markers[0].parameters['tip_link'] == 'left_tool0'
    to = dict(markers[0].remappings)
    assert to['joint_states'] == '/lab/joint_states'
    assert to['ik_node/stop'] == '/lab/ik_node/left/stop'
    assert to['ik_node/projected_pose'] == '/lab/ik_node/left/projected_pose'
    assert to['ik_node/set_parameters_atomically'] == '/lab/ik_node/set_parameters_atomically'
    assert 'goal_pose' not in to
    displays = yaml.safe_load(found.rviz_config)['Visualization Manager']['Displays']
    shown = [display[MARKER] for display in displays if MARKER in display]
    assert shown == ['left/ik_marker', 'right/ik_marker']


def test_one_tool_of_the_pair_by_its_tip_link():
    starts = {start.executable: start for start in planned('two_arms', tip_link='left_tool0').programs}
    assert starts['ik_node'].parameters['tip_link'] == 'left_tool0'
    assert str(tools_file('two_arms')) not in starts['ik_node'].files


def test_a_robot_of_ones_own_has_its_tools_in_the_parameter_file(tmp_path):
    mine = tmp_path / 'mine.yaml'
    mine.write_text(
        yaml.safe_dump(
            {
                'ik_node': {
                    'ros__parameters': {
                        'tools': ['a', 'b'],
                        'a.tip_link': 'left_tool0',
                        'b': {'tip_link': 'right_tool0'},
                    }
                }
            }
        )
    )
    path = tmp_path / 'mine.urdf'
    path.write_text(load_description(URDF / f'two_arms{SUFFIX}'))
    found = planned(str(path), params_file=str(mine), track='circle line')
    assert list(goals(found)) == ['a', 'b']
    assert found.programs[1].files == (str(mine),)
    # the file of the user overrides that of a shipped robot
    assert planned('two_arms', params_file=str(mine)).programs[1].files == (
        str(tools_file('two_arms')),
        str(mine),
    )


@pytest.mark.parametrize(
    ('given', 'says'),
    [
        ({'track': 'circle zigzag'}, "track must be one of none, circle, .*, got 'zigzag'"),
        ({'track': 'line line line'}, 'one for each of the tools "left", "right", got 3'),
        ({'tool_axis': 'x'}, 'tool_axis is for robots with one tool; .* "left", "right".* left.tool_axis'),
        ({'gui': 'true'}, 'gui is for robots with one tool'),
    ],
)
def test_what_does_not_fit_several_tools_is_named(given, says):
    with pytest.raises(InputError, match=says):
        planned('two_arms', **given)


def test_files_without_usable_tools_are_named(tmp_path: Path):
    for text, says in (
        ('{', 'bad.yaml as a ROS parameter file'),
        ('[1, 2]', 'bad.yaml as a ROS parameter file'),
        ('/**: {ros__parameters: {tools: [left]}}', 'left.tip_link is missing'),
    ):
        (tmp_path / 'bad.yaml').write_text(text)
        with pytest.raises(InputError, match=says):
            tools_in([tmp_path / 'bad.yaml'])
    (tmp_path / 'axis.yaml').write_text(
        '/**: {ros__parameters: {tools: [a], tool_axis: [1, 0, 0], a: {tip_link: hand}}}'
    )
    assert tools_in([tmp_path / 'axis.yaml'])['a'].axis == [1, 0, 0], 'the default of all tools'
    (tmp_path / 'bad.yaml').write_text("/**: {ros__parameters: {tools: ['']}}")
    assert tools_in([tmp_path / 'bad.yaml', ROOT / 'config' / 'ik_node.yaml']) == {}
