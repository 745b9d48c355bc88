# SPDX-License-Identifier: Apache-2.0
"""The parameters of ik_node that decide how the tool moves to goals and along paths."""

from __future__ import annotations

from dataclasses import dataclass

from ik_node.settings import parameter


@dataclass(frozen=True)
class GoalSettings:
    """Goals that cannot be met, goals that move, corners of paths, and how old a goal may be."""

    on_unreachable: str = parameter(
        'closest',
        'for a goal that cannot be met: go as near as possible, or stay',
        choices=('closest', 'hold'),
    )
    follow_goals: bool = parameter(
        True, 'follow a stream of goals as one moving goal; false: the arm stops at every goal'
    )
    smoothing: float = parameter(
        0.04,
        'time constant with which the arm catches up with a moving goal [s]: larger is calmer and later',
        low=0.01,
        high=2.0,
    )
    path_corners: str = parameter(
        'stop',
        'at the poses of goal_path: stop, or blend one line into the next',
        choices=('stop', 'blend'),
    )
    path_blend: float = parameter(
        0.02,
        'distance from a blended corner within which the tool may leave the lines [m]',
        low=1e-4,
        high=10.0,
    )
    path_direction: str = parameter(
        'keep',
        'direction of the tool along goal_path: that of the poses, or free',
        choices=('keep', 'free'),
    )
    path_partial: bool = parameter(
        False, 'follow a goal_path that ends early as far as possible, instead of rejecting it'
    )
    path_speed: float = parameter(
        0.0, 'speed limit of the tool point along goal_path [m/s]; 0: none', low=0.0, high=100.0
    )
    goal_timeout: float = parameter(
        1.0,
        'largest difference between the stamp of a goal and the clock [s]; a zero stamp is always accepted',
        low=1e-3,
    )
