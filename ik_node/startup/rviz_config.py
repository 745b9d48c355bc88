# SPDX-License-Identifier: Apache-2.0
"""The configuration of RViz for a robot: displays and tools for its arms, and a camera that shows them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import yaml

from ik_node.checks import Array
from ik_node.model.arm import Arm
from ik_node.model.robot import Robot
from ik_node.share import share_path

FILE = share_path('config') / 'ik_node.rviz'
MARKER = 'Interactive Markers Namespace'  # of the display that shows markers to drag
# topics of a robot with one tool, and what they are for a tool of several
TOOL_TOPICS = {
    'ik_node/markers': 'ik_node/{}/markers',
    'ik_goals/markers': '{}/ik_goals/markers',
    'goal_point': '{}/goal_point',
}
PLAIN_REACH = 0.85  # [m], of an arm that is not known
# What the camera has to show at the start, as spheres with these radii in reaches of the arm.
AROUND_SHOULDER, AROUND_TOOL, AROUND_LINK = 0.7, 0.35, 0.1
# Tangents of half the angles of view: RViz has 45 degrees vertically, and of its window of 1280 x 860 the
# scene gets at least 840 x 720.
TAN_UP = float(np.tan(np.radians(22.5)))
TAN_RIGHT = TAN_UP * 840.0 / 720.0


class Sphere(NamedTuple):
    """A centre (3,) in the root link and a radius [m]."""

    centre: Array
    radius: float


def rviz_config(robot: Robot, arms: Mapping[str, Arm], marker: bool) -> str:
    """Return the configuration as text.

    arms: by tool; an empty name: the only one; none: not known. Topics of one tool are replaced by those of
    each. marker: goals can be dragged.
    """
    config = yaml.safe_load(FILE.read_text(encoding='utf-8'))
    manager = config['Visualization Manager']
    tools = [name for name in arms if name]
    if tools:
        for kind in ('Displays', 'Tools'):
            manager[kind] = [copy for entry in manager[kind] for copy in for_tools(entry, tools)]
        config['Panels'].append(tool_properties(tools))
    manager['Global Options']['Fixed Frame'] = robot.root
    for display in manager['Displays']:
        if MARKER in display:
            display['Enabled'] = display['Value'] = marker
    view = manager['Views']['Current']
    focus, distance = framed(shown(robot, arms), view['Yaw'], view['Pitch'])
    view['Distance'] = round(distance, 3)
    view['Focal Point'] = dict(zip('XYZ', np.round(focus, 3).tolist(), strict=True))
    return str(yaml.safe_dump(config, sort_keys=False))


def for_tools(entry: dict[str, Any], tools: list[str]) -> list[dict[str, Any]]:
    """Return an entry of RViz, or one for each tool of the robot if its topic is that of a tool."""
    topic = entry.get('Topic', {})
    if MARKER in entry:
        named = [{**entry, MARKER: f'{tool}/{entry[MARKER]}'} for tool in tools]
    elif topic.get('Value') in TOOL_TOPICS:
        pattern = TOOL_TOPICS[topic['Value']]
        named = [{**entry, 'Topic': {**topic, 'Value': pattern.format(tool)}} for tool in tools]
    else:
        return [entry]
    for copy, tool in zip(named, tools, strict=True):
        if 'Name' in entry:
            copy['Name'] = f'{entry["Name"]} ({tool})'
    return named


def tool_properties(tools: list[str]) -> dict[str, Any]:
    """Return the panel that shows the topic of each Publish Point: RViz gives all these buttons one name."""
    opened = [f'/Publish Point{number}' for number in range(1, len(tools) + 1)]
    return {
        'Class': 'rviz_common/Tool Properties',
        'Name': 'Tool Properties',
        'Expanded': [*opened, *(f'{each}/Topic1' for each in opened)],
        'Splitter Ratio': 0.5,
    }


def shown(robot: Robot, arms: Mapping[str, Arm]) -> list[Sphere]:
    """Return what the camera has to show: where arms begin, and links and tools at the start."""
    movable = [joint for joint in robot.joints.values() if joint.movable and joint.mimic is None]
    start = {joint.name: min(max(0.0, joint.lower), joint.upper) for joint in movable}
    poses = robot.link_poses(start)
    reach = max((arm.reach for arm in arms.values()), default=PLAIN_REACH)
    spheres = [Sphere(pose[:3, 3], AROUND_LINK * reach) for pose in poses.values()]
    if not arms:
        spheres.append(Sphere(np.zeros(3), AROUND_SHOULDER * reach))
    for arm in arms.values():
        shoulder = poses[robot.joints[arm.joint_names[0]].child][:3, 3]
        tip = poses[arm.tip_link]
        spheres.append(Sphere(shoulder, AROUND_SHOULDER * reach))
        for point in (np.zeros(3), arm.tool_point):
            spheres.append(Sphere(tip[:3, 3] + tip[:3, :3] @ point, AROUND_TOOL * arm.reach))
    return spheres


def framed(spheres: list[Sphere], yaw: float, pitch: float) -> tuple[Array, float]:
    """Return focal point (3,) and distance [m] of RViz's orbiting camera that just show all spheres.

    yaw, pitch: where it looks from [rad].
    """
    back = np.array([np.cos(yaw) * np.cos(pitch), np.sin(yaw) * np.cos(pitch), np.sin(pitch)])
    right = np.array([-np.sin(yaw), np.cos(yaw), 0.0])
    up = np.cross(back, right)
    centres = np.array([sphere.centre for sphere in spheres])
    radii = np.array([sphere.radius for sphere in spheres])
    depth = -centres @ back
    # Each side of the view is a plane through the camera: how far the spheres push it out, and how far back
    # the camera has to be for both sides of a pair.
    place, nearest = [], np.inf
    for axis, tangent in ((right, TAN_RIGHT), (up, TAN_UP)):
        margin = radii * np.hypot(1.0, tangent)
        most = float((centres @ axis - tangent * depth + margin).max())
        least = float((centres @ axis + tangent * depth - margin).min())
        place.append(0.5 * (most + least))
        nearest = min(nearest, (least - most) / (2.0 * tangent))
    middle = float(depth.mean())
    return place[0] * right + place[1] * up - middle * back, middle - nearest
