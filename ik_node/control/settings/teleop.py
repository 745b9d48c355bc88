# SPDX-License-Identifier: Apache-2.0
"""The parameters of ik_node for teleoperation."""

from __future__ import annotations

from dataclasses import dataclass

from ik_node.settings import parameter

NO_CLUTCH = 'none'


@dataclass(frozen=True)
class TeleopSettings:
    """Scales of twists and joint velocities, and the clutch."""

    command_in_type: str = parameter(
        'unitless',
        'unit of twists and joint velocities: -1 to 1 times the scales, or m/s and rad/s',
        choices=('unitless', 'speed_units'),
    )
    scale_linear: float = parameter(0.4, 'tool speed of a unitless twist of 1 [m/s]', low=0.0, high=10.0)
    scale_rotational: float = parameter(
        0.8, 'turn rate of a unitless twist of 1 [rad/s]', low=0.0, high=100.0
    )
    scale_joint: float = parameter(
        0.5, 'joint speed of a unitless joint velocity of 1 [rad/s or m/s]', low=0.0, high=100.0
    )
    position_scale: float = parameter(
        1.0, 'ratio of tool motion to operator motion while the clutch is closed', low=1e-3, high=100.0
    )
    incoming_command_timeout: float = parameter(
        0.1,
        'time without teleoperation commands after which the arm comes to rest [s]',
        low=1e-3,
        high=10.0,
    )
    clutch: str = parameter(
        'required',
        'required: teleoperation poses move the tool only while ~/enable holds the clutch closed; none: they '
        'are absolute, from the first one near the tool until the first message on ~/enable',
        choices=('required', NO_CLUTCH),
    )
    clutch_timeout: float = parameter(
        0.5, 'time without a true on ~/enable after which the clutch opens [s]', low=0.01, high=10.0
    )
