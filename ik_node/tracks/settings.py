# SPDX-License-Identifier: Apache-2.0
"""The parameters of ik_goals."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ik_node.checks import unit_vector
from ik_node.errors import InputError
from ik_node.settings import check, parameter
from ik_node.tracks.curves import TRACKS

NO_TRACK = 'none'  # the goal is at rest


@dataclass(frozen=True)
class TrackSettings:
    """The parameters of ik_goals."""

    track: str = parameter('circle', 'curve along which the goal moves', choices=(NO_TRACK, *TRACKS))
    centre: tuple[float, ...] = parameter((0.4, 0.0, 0.2), 'centre of the track in frame [m]', size=3)
    size: float = parameter(
        0.08, 'radius, or half the length of a line or an eight [m]', low=1e-4, high=100.0
    )
    speed: float = parameter(0.1, 'speed of the goal along the track [m/s]', low=1e-4, high=100.0)
    direction: tuple[float, ...] = parameter(
        (0.0, 0.0, -1.0), 'tool direction, unit length, and normal of the plane of the track', size=3
    )
    roll: float = parameter(
        0.0, 'roll of the tool about its axis along the track [rad]', low=-2.0 * math.pi, high=2.0 * math.pi
    )
    frame: str = parameter('base_link', 'frame of centre and direction')
    tool_axis: tuple[float, ...] = parameter(
        (0.0, 0.0, 1.0), 'tool axis in the tip frame, unit length, as in ik_node', size=3
    )
    tool_point: tuple[float, ...] = parameter(
        (0.0, 0.0, 0.0), 'tool point in the tip frame [m], as in ik_node', size=3
    )
    goal_rate: float = parameter(50.0, 'goals per second [Hz]', low=0.1, high=1000.0)

    def __post_init__(self) -> None:
        check(self)
        unit_vector('parameter direction', self.direction)
        unit_vector('parameter tool_axis', self.tool_axis)
        if not self.frame:
            raise InputError('parameter frame must be the name of a frame, got an empty string')
