# SPDX-License-Identifier: Apache-2.0
"""A small arm with a gripper, as URDF text: what tests of control and of the node move."""

from __future__ import annotations


def link(name: str) -> str:
    return f'<link name="{name}"/>'


def joint(name, kind, parent, child, xyz, axis, lower=-2.5, upper=2.5, extra='') -> str:
    limit = '' if kind == 'fixed' else f'<limit lower="{lower}" upper="{upper}" velocity="2" effort="1"/>'
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="{xyz}" rpy="0 {1.5707963267948966 if name == "tool" else 0} 0"/>'
        f'<axis xyz="{axis}"/>{limit}{extra}</joint>'
    )


def arm_urdf(yaw: str = 'revolute', lower: float = -2.5, upper: float = 2.5) -> str:
    """A yaw-pitch-pitch-roll-pitch arm with a gripper of two fingers, one of which mimics the other."""
    links = ['world', 'base_link', 'l1', 'l2', 'l3', 'l4', 'l5', 'tool0', 'left', 'right']
    return (
        '<robot name="little">'
        + ''.join(map(link, links))
        + joint('stand', 'fixed', 'world', 'base_link', '0 0 1', '0 0 1')
        + joint('yaw', yaw, 'base_link', 'l1', '0 0 0.1', '0 0 1', lower, upper)
        + joint('shoulder', 'revolute', 'l1', 'l2', '0 0 0.1', '0 1 0')
        + joint('elbow', 'revolute', 'l2', 'l3', '0.3 0 0', '0 1 0')
        + joint('roll', 'revolute', 'l3', 'l4', '0.15 0 0', '1 0 0')
        + joint('wrist', 'revolute', 'l4', 'l5', '0.15 0 0', '0 1 0')
        + joint('tool', 'fixed', 'l5', 'tool0', '0.1 0 0', '0 0 1')
        + joint('finger', 'prismatic', 'l5', 'left', '0.1 0.01 0', '0 1 0', 0.0, 0.04)
        + joint(
            'other_finger',
            'prismatic',
            'l5',
            'right',
            '0.1 -0.01 0',
            '0 1 0',
            -0.04,
            0.0,
            '<mimic joint="finger" multiplier="-1"/>',
        )
        + '</robot>'
    )


ARM_JOINTS = ('yaw', 'shoulder', 'elbow', 'roll', 'wrist')
ALL_JOINTS = (*ARM_JOINTS, 'finger', 'other_finger')
PARAMETERS = {'base_link': 'base_link', 'tip_link': 'tool0'}
