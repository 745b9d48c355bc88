# SPDX-License-Identifier: Apache-2.0
"""An arm that can fold onto itself and onto a post beside it, as URDF text."""

from __future__ import annotations

from ik_node.control.settings.arm import ArmSettings

FOLDING = ArmSettings(tip_link='hand', tool_axis=(1.0, 0.0, 0.0), tool_point=(0.05, 0.0, 0.0))
POST = '<collision><origin xyz="0.3 0 0.25"/><geometry><box size="0.04 0.04 0.5"/></geometry></collision>'


def hinge(name: str, parent: str, child: str, xyz: str, axis: str) -> str:
    return (
        f'<joint name="{name}" type="revolute"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="{xyz}"/><axis xyz="{axis}"/><limit lower="-3.1" upper="3.1" velocity="2" effort="1"/>'
        '</joint>'
    )


def bar(length: float) -> str:
    return (
        f'<collision><origin xyz="{length / 2} 0 0"/><geometry><box size="{length} 0.03 0.03"/></geometry>'
        '</collision>'
    )


def folding_urdf(base: str = '', fore: str = bar(0.2)) -> str:
    """Yaw, shoulder and elbow; links of 0.2 m. A post beside the arm belongs to the base link."""
    base = base or POST
    return (
        '<robot name="folding">'
        f'<link name="base">{base}</link><link name="turret"/><link name="upper">{bar(0.2)}</link>'
        f'<link name="fore">{fore}</link><link name="hand">{bar(0.05)}</link>'
        + hinge('yaw', 'base', 'turret', '0 0 0.1', '0 0 1')
        + hinge('shoulder', 'turret', 'upper', '0 0 0.1', '0 -1 0')
        + hinge('elbow', 'upper', 'fore', '0.2 0 0', '0 -1 0')
        + hinge('wrist', 'fore', 'hand', '0.2 0 0', '0 -1 0')
        + '</robot>'
    )
