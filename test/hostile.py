# SPDX-License-Identifier: Apache-2.0
"""A small arm whose text the tests break in one place."""

from __future__ import annotations

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
