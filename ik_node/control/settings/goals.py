# SPDX-License-Identifier: Apache-2.0
"""The parameters of ik_node that decide how the tool moves to goals and along paths."""

from __future__ import annotations

from dataclasses import dataclass

from ik_node.settings import parameter


@dataclass(frozen=True)
class GoalSettings:
    """Goals that cannot be met, goals that move, corners of paths, and how old a goal may be."""

    on_unreachable: str = parameter(
        'auto',
        'response to a goal that cannot be met: move to the closest configuration, or hold the position; '
        'auto: hold if the joints are measured and the position cannot be met, else closest',
        choices=('auto', 'closest', 'hold'),
    )
    follow_goals: bool = parameter(
        True, 'follow a stream of goals as one moving goal; false: the arm stops at every goal'
    )
    smoothing: float = parameter(
        0.04,
        'time constant of following a moving goal [s]; larger values are smoother and lag more',
        low=0.01,
        high=2.0,
    )
    path_corners: str = parameter(
        'stop',
        'corners of goal_path: stop at each pose, or blend one line into the next',
        choices=('stop', 'blend'),
    )
    path_blend: float = parameter(
        0.02,
        'distance from a corner within which a blended path may leave the lines [m]',
        low=1e-4,
        high=10.0,
    )
    path_direction: str = parameter(
        'keep',
        'tool direction along goal_path: that of the poses, or free',
        choices=('keep', 'free'),
    )
    path_partial: bool = parameter(
        False, 'execute the feasible part of a goal_path instead of rejecting the path'
    )
    path_speed: float = parameter(
        0.0, 'speed limit of the tool point along goal_path [m/s]; 0: none', low=0.0, high=100.0
    )
    goal_timeout: float = parameter(
        1.0,
        'maximum age of the stamp of a goal, and how far it may be in the future [s]; a zero stamp is '
        'always accepted',
        low=1e-3,
    )
