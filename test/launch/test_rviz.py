"""The RViz configuration: what it listens to, sends and stands on."""

from __future__ import annotations

from typing import Any

import pytest
from launch_file import ROOT
from lxml import etree

from ik_node.model.urdf import load_description, read_urdf


@pytest.fixture
def rviz() -> dict[str, Any]:
    yaml = pytest.importorskip('yaml')
    return yaml.safe_load((ROOT / 'config' / 'ik_node.rviz').read_text())['Visualization Manager']


def named(entries: list[dict[str, Any]], kind: str, name: str = '') -> dict[str, Any]:
    (found,) = [
        entry
        for entry in entries
        if entry['Class'] == f'rviz_default_plugins/{kind}' and name in ('', entry.get('Name'))
    ]
    return found


def test_rviz_listens_and_speaks_to_the_node_in_any_namespace(rviz):
    displays, tools = rviz['Displays'], rviz['Tools']
    topics = {
        'robot_description': named(displays, 'RobotModel')['Description Topic'],
        'ik_node/markers': named(displays, 'MarkerArray', 'Goal and errors')['Topic'],
        'ik_goals/markers': named(displays, 'MarkerArray', 'Track')['Topic'],
        'goal_point': named(tools, 'PublishPoint')['Topic'],
    }
    assert {name: topic['Value'] for name, topic in topics.items()} == {name: name for name in topics}
    assert named(displays, 'InteractiveMarkers')['Interactive Markers Namespace'] == 'ik_marker'
    assert {topic['Reliability Policy'] for topic in topics.values()} == {'Reliable'}
    # What is sent once must reach an RViz that starts later; the goal of yesterday must not move an arm.
    durable = {name for name, topic in topics.items() if topic['Durability Policy'] == 'Transient Local'}
    assert durable == {'robot_description', 'ik_node/markers', 'ik_goals/markers'}


def test_no_tool_sends_goals_below_the_floor(rviz):
    assert 'rviz_default_plugins/SetGoal' not in [tool['Class'] for tool in rviz['Tools']]


def test_rviz_stands_on_the_root_of_every_shipped_arm(rviz):
    frame = rviz['Global Options']['Fixed Frame']
    roots = {read_urdf(load_description(path)).root for path in (ROOT / 'urdf').glob('*.urdf.xacro')}
    assert roots == {frame}
    assert named(rviz['Displays'], 'RobotModel')['Enabled']
    assert named(rviz['Displays'], 'Grid')['Reference Frame'] == '<Fixed Frame>'


@pytest.mark.parametrize('path', sorted((ROOT / 'urdf').glob('*_*.urdf.xacro')), ids=lambda path: path.name)
def test_rviz_shows_every_arm_in_its_colours(rviz, path):
    # RViz paints all primitive visuals of a link in the material of the first one.
    root = etree.fromstring(load_description(path).encode())
    colours = {
        material.get('name'): [float(part) for part in material.find('color').get('rgba').split()]
        for material in root.iterfind('material')
    }
    firsts = [
        link.find('visual/material') for link in root.iterfind('link') if link.find('visual') is not None
    ]
    names = [material.get('name') for material in firsts]
    assert names.count('graphite') <= 1, 'links that are nearly black'
    assert len(set(names)) > 1, 'links that nothing sets apart'
    ground = [int(part) / 255 for part in rviz['Global Options']['Background Color'].split(';')]
    for name in names:
        apart = max(abs(a - b) for a, b in zip(colours[name], ground, strict=False))
        assert apart > 0.12, f'{name} on the background'
