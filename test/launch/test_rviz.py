"""The RViz configuration: what it listens to, sends and stands on."""

from __future__ import annotations

from typing import Any

import pytest
from launch_file import ROOT

from ik_node.model.urdf import load_description, read_urdf


@pytest.fixture
def rviz() -> dict[str, Any]:
    yaml = pytest.importorskip('yaml')
    return yaml.safe_load((ROOT / 'config' / 'ik_node.rviz').read_text())['Visualization Manager']


def named(entries: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    (found,) = [entry for entry in entries if entry['Class'] == f'rviz_default_plugins/{kind}']
    return found


def test_rviz_listens_and_speaks_to_the_node_in_any_namespace(rviz):
    displays, tools = rviz['Displays'], rviz['Tools']
    topics = {
        'robot_description': named(displays, 'RobotModel')['Description Topic'],
        'ik_node/markers': named(displays, 'MarkerArray')['Topic'],
        'goal_pose': named(tools, 'SetGoal')['Topic'],
        'goal_point': named(tools, 'PublishPoint')['Topic'],
    }
    assert {name: topic['Value'] for name, topic in topics.items()} == {name: name for name in topics}
    assert {topic['Reliability Policy'] for topic in topics.values()} == {'Reliable'}
    # What is sent once must reach an RViz that starts later; the goal of yesterday must not move an arm.
    durable = {name for name, topic in topics.items() if topic['Durability Policy'] == 'Transient Local'}
    assert durable == {'robot_description', 'ik_node/markers'}


def test_rviz_stands_on_the_root_of_every_shipped_arm(rviz):
    frame = rviz['Global Options']['Fixed Frame']
    roots = {read_urdf(load_description(path)).root for path in (ROOT / 'urdf').glob('*.urdf.xacro')}
    assert roots == {frame}
    assert named(rviz['Displays'], 'RobotModel')['Enabled']
    assert named(rviz['Displays'], 'Grid')['Reference Frame'] == '<Fixed Frame>'
