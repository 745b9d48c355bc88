# SPDX-License-Identifier: Apache-2.0
"""The RViz configuration: what it listens to, sends and stands on."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import yaml
from launch_file import ROOT, planned
from lxml import etree

from ik_node import Arm, Tree
from ik_node.model.urdf.reader import load_description, read_urdf
from ik_node.ros.conversions import matrix_pose, point_array, pose_matrix
from ik_node.ros.marker_node import wish
from ik_node.startup.arguments import ROBOTS, SUFFIX, URDF, tools_file, tools_in

pytestmark = pytest.mark.slow

SCENE = 900, 740  # pixels of the scene in a window of 1280 x 860, less than RViz has


@pytest.fixture
def rviz() -> dict[str, Any]:
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


def test_rviz_stands_on_the_root_of_every_shipped_arm_and_drags_its_marker_at_once(rviz):
    frame = rviz['Global Options']['Fixed Frame']
    roots = {read_urdf(load_description(path)).root for path in (ROOT / 'urdf').glob('*.urdf.xacro')}
    assert roots == {frame}
    assert named(rviz['Displays'], 'RobotModel')['Enabled']
    assert named(rviz['Displays'], 'Grid')['Reference Frame'] == '<Fixed Frame>'
    kinds = [tool['Class'].partition('/')[2] for tool in rviz['Tools']]
    assert kinds[0] == 'Interact', 'the first tool is the default'
    assert 'SetGoal' not in kinds, 'it sends goals below the floor'


def pixels(view: dict[str, Any], points: np.ndarray) -> np.ndarray:
    """Return where RViz shows points (k, 3): (k, 2) in heights of the scene, from its centre."""
    yaw, pitch = view['Yaw'], view['Pitch']
    focus = np.array([view['Focal Point'][axis] for axis in 'XYZ'])
    away = [math.cos(yaw) * math.cos(pitch), math.sin(yaw) * math.cos(pitch), math.sin(pitch)]
    eye = focus + view['Distance'] * np.array(away)
    ahead = (focus - eye) / np.linalg.norm(focus - eye)
    right = np.cross(ahead, [0.0, 0.0, 1.0])
    right /= np.linalg.norm(right)
    seen = points - eye
    depth = seen @ ahead
    assert (depth > 0.0).all(), 'behind the camera'
    screen = np.column_stack([seen @ right, seen @ np.cross(right, ahead)]) / depth[:, None]
    return screen / (2.0 * math.tan(math.pi / 8.0))  # Ogre shows 45 degrees from top to bottom


def handles(arm: Arm, T_root_base: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Return the ends (k, 3) of the marker's handles, its ball and its arrow."""
    T_base_tip = np.linalg.inv(T_root_base) @ arm.robot.link_pose(
        arm.tip_link, dict(zip(arm.joint_names, q.tolist(), strict=True))
    )
    marker = wish(arm, 'goal', matrix_pose(T_base_tip))
    T = T_root_base @ pose_matrix(marker.pose)
    ends = [end * 0.9 * marker.scale * axis for axis in np.eye(3) for end in (-1.0, 1.0)]
    ends += [point_array(point) for point in marker.controls[-1].markers[1].points]
    return np.array(ends) @ T[:3, :3].T + T[:3, 3]


@pytest.mark.parametrize('name', ['seed_arm', 'so101_like', 'two_arms', 'torso_arms'])
def test_the_first_view_shows_the_arm_and_its_marker(name):
    view = yaml.safe_load(planned(description_file=name).rviz_config)['Visualization Manager']['Views']['Current']
    robot = read_urdf(load_description(URDF / f'{name}{SUFFIX}'))
    file = tools_file(name)
    arms = list(Tree(robot, tools_in([file])).arms.values()) if file else [Arm(robot)]
    places = {n: float(v) for arm in arms for n, v in zip(arm.joint_names, home_of(arm), strict=True)}
    body = np.array([pose[:3, 3] for pose in robot.link_poses(places).values()])
    marks = np.vstack([handles(arm, robot.link_pose(arm.base_link, places), home_of(arm)) for arm in arms])
    shown = pixels(view, np.vstack([body, marks]))
    wide, high = np.abs(shown).max(axis=0)
    assert high < 0.5
    assert wide < 0.5 * SCENE[0] / SCENE[1]
    assert max(np.ptp(shown, axis=0)) > 0.4, 'too small to see'
    rng = np.random.default_rng(0)
    reached = np.vstack([[arm.fk(q)[0] for q in arm.sample(rng, 200)] for arm in arms])
    in_root = np.vstack([robot.link_pose(arm.base_link, places)[:3, 3] for arm in arms])
    assert np.ptp(in_root, axis=0).max() < 1e-9, 'points of all arms are relative to one link'
    at = np.abs(pixels(view, reached + in_root[0]))
    inside = (at[:, 0] < 0.5 * SCENE[0] / SCENE[1]) & (at[:, 1] < 0.5)
    assert inside.mean() > 0.8, 'where the tool may go'


def home_of(arm: Arm) -> np.ndarray:
    return np.clip(0.0, arm.lower, arm.upper)


@pytest.mark.parametrize('name', ROBOTS)
def test_rviz_shows_every_arm_in_its_colours(rviz, name):
    # RViz paints all primitive visuals of a link in the material of the first one.
    root = etree.fromstring(load_description(URDF / f'{name}{SUFFIX}').encode())
    colours = {
        material.get('name'): np.array(material.find('color').get('rgba').split(), dtype=float)[:3]
        for material in root.iterfind('material')
    }
    names = [link.find('visual/material').get('name') for link in root.iterfind('link[visual]')]
    assert names.count('graphite') <= 1, 'links that are nearly black'
    assert len(set(names)) > 1, 'links that nothing sets apart'
    ground = np.array(rviz['Global Options']['Background Color'].split(';'), dtype=float) / 255
    assert all(np.abs(colours[one] - ground).max() > 0.12 for one in names), 'hardly seen'
