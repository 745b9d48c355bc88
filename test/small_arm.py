# SPDX-License-Identifier: Apache-2.0
"""Small arms as URDF text: one with a gripper, one that folds, one with a spare joint, one to break."""

from __future__ import annotations

from ik_node.control.settings import ArmSettings


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
        f'<collision><origin xyz="{length / 2} 0 0"/><geometry><box size="{length} 0.03 0.03"/></geometry></collision>'
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


WITH_SPARE = (
    '<robot name="spare"><link name="base"/>'
    + ''.join(f'<link name="l{k}"/>' for k in range(6))
    + ''.join(
        f'<joint name="j{k}" type="revolute"><parent link="{"base" if k == 0 else f"l{k - 1}"}"/>'
        f'<child link="l{k}"/><origin xyz="{xyz}"/><axis xyz="{axis}"/>'
        '<limit lower="-2.8" upper="2.8" velocity="2" effort="1"/></joint>'
        for k, (xyz, axis) in enumerate(
            (
                ('0 0 0.1', '0 0 1'),
                ('0.02 0 0.1', '0 1 0'),
                ('0 0 0.3', '0 1 0'),
                ('0 0 0.25', '0 1 0'),
                ('0.03 0 0.05', '1 0 0'),
                ('0.08 0 0.01', '0 1 0'),
            )
        )
    )
    + '</robot>'
)


GOOD = """<robot name="arm">
  <link name="base"/>
  <link name="upper"/>
  <link name="tool"/>
  <link name="finger"/>
  <joint name="shoulder" type="revolute">
    <parent link="base"/>
    <child link="upper"/>
    <origin xyz="0 0 0.1" rpy="0 0 0"/>
    <axis xyz="0 0 1"/>
    <limit lower="-1" upper="1.5" velocity="2" effort="5"/>
  </joint>
  <joint name="wrist" type="revolute">
    <parent link="upper"/>
    <child link="tool"/>
    <origin xyz="0.2 0 0"/>
    <axis xyz="0 1 0"/>
    <limit lower="-2" upper="0.5" velocity="3" effort="5"/>
  </joint>
  <joint name="jaw" type="prismatic">
    <parent link="tool"/>
    <child link="finger"/>
    <axis xyz="1 0 0"/>
    <limit lower="-0.05" upper="0.05" velocity="0.2" effort="5"/>
    <mimic joint="wrist" multiplier="0.01"/>
  </joint>
</robot>
"""


def broken(*changes: tuple[str, str]) -> str:
    """Return GOOD with the first place of each old text replaced by the new one."""
    text = GOOD
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new, 1)
    return text
