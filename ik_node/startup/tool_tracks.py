# SPDX-License-Identifier: Apache-2.0
"""The tracks of a robot's tools: one for each, placed where the tool can follow it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ik_node.errors import InputError, join_names
from ik_node.model.arm import Arm
from ik_node.model.robot import Robot
from ik_node.model.tree import Tool, Tree
from ik_node.solver.solver import IkSolver
from ik_node.tracks.curves import TRACKS, plane_axes
from ik_node.tracks.placement import place_roll, place_track
from ik_node.tracks.settings import NO_TRACK

CHOICES = (NO_TRACK, *TRACKS)
RESTARTS = 20  # enough for placing a track


def check_tracks(tracks: Sequence[str], tools: Sequence[str]) -> None:
    """Raise InputError unless tracks are one for all tools or one for each. tools: empty for one tool."""
    for track in tracks:
        if track not in CHOICES:
            raise InputError(f'track must be one of {", ".join(CHOICES)}, got {track!r}')
    if len(tracks) not in (1, len(tools)):
        wanted = f'one track, or one for each of the tools {join_names(tools)}' if tools else 'one track'
        raise InputError(f'track must be {wanted}, got {len(tracks)}: {" ".join(tracks)}')


def placed(arm: Arm, track: str) -> dict[str, Any]:
    """Return the parameters of ik_goals for a track that the arm can follow; without one, no track."""
    if track == NO_TRACK:
        return {'track': NO_TRACK}
    solver = IkSolver(arm, restarts=RESTARTS)
    place = place_track(solver, track)
    if place is None:
        return {'track': NO_TRACK}
    centre, direction = list(place.centre), list(place.direction)
    roll = place_roll(solver, track, place)
    return {'track': track, 'centre': centre, 'size': place.size, 'direction': direction, 'roll': roll}


def placed_by_tool(
    robot: Robot, tools: Mapping[str, Tool], tracks: Sequence[str]
) -> dict[str, dict[str, Any]]:
    """Return the parameters of ik_goals by tool, in the frame of the root link.

    Each limb can follow its track while the joints that it shares with others are at mid-range. tracks: as
    check_tracks demands.
    """
    tree = Tree(robot, tools)
    shared = tree.shared(tuple(tools))
    rest = dict(zip(tree.joint_names, tree.middle.tolist(), strict=True))
    found = {}
    for number, (name, tool) in enumerate(tools.items()):
        track = tracks[number % len(tracks)]
        frame = {
            'frame': robot.root,
            'tool_axis': np.asarray(tool.axis, float).tolist(),
            'tool_point': np.asarray(tool.point, float).tolist(),
        }
        joints = tree.arms[name].joint_names[: shared[name]]
        link = robot.joints[joints[-1]].child if joints else robot.root
        own = placed(Arm(robot, tool.tip_link, tool.axis, tool.point, link), track)
        if own['track'] != NO_TRACK:
            T = robot.link_pose(link, rest)
            own['centre'] = (T[:3, :3] @ own['centre'] + T[:3, 3]).tolist()
            turned = T[:3, :3] @ np.column_stack((plane_axes(own['direction'])[0], own['direction']))
            own['direction'] = turned[:, 1].tolist()
            x, y = plane_axes(own['direction'])
            own['roll'] += math.atan2(turned[:, 0] @ y, turned[:, 0] @ x)
        found[name] = frame | own
    return found
