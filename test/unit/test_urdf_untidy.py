# SPDX-License-Identifier: Apache-2.0
"""What is merely untidy is read, with one sentence for each matter; what is harmless, without a word."""

from __future__ import annotations

import logging

import pytest
from hostile import broken

from ik_node.errors import (
    ChainError,
)
from ik_node.model.urdf.reader import TRUE_LIMITS, read_urdf

LIMIT = '<limit lower="-1" upper="1.5" velocity="2" effort="5"/>'
JAW_MIMIC = '<mimic joint="wrist" multiplier="0.01"/>'
JAW_LIMIT = '<limit lower="-0.05" upper="0.05" velocity="0.2" effort="5"/>'

VELOCITY = 'the velocity limit is missing, not positive or a placeholder, '
PLACEHOLDER = 'position limits of 1000 rad and more are placeholders, '
MESHES = 'meshes are not found; kinematics does not need them: '

# by what is untidy: changes to GOOD and the one sentence that they get
UNTIDY: dict[str, tuple[list[tuple[str, str]], str]] = {
    'velocity missing on two': (
        [(' velocity="2"', ''), (' velocity="3"', '')],
        VELOCITY + '1 rad/s is assumed: joint "shoulder" (line 6), joint "wrist" (line 13)',
    ),
    'velocity zero': (
        [('velocity="0.2"', 'velocity="0"')],
        VELOCITY + '0.1 m/s is assumed: joint "jaw" (line 20)',
    ),
    'velocity NaN': (
        [('velocity="0.2"', 'velocity="nan"')],
        VELOCITY + '0.1 m/s is assumed: joint "jaw" (line 20)',
    ),
    'limit element missing': (
        [(JAW_LIMIT, '<limit velocity="0.2"/>')],
        f'position limits are missing, -1 to 1 m are assumed; {TRUE_LIMITS}: joint "jaw" (line 20)',
    ),
    'lower missing': (
        [('lower="-2" ', '')],
        'one position limit is missing, it is 0 by the URDF specification: joint "wrist" (line 13)',
    ),
    'placeholder': (
        [('upper="0.5"', 'upper="1e16"')],
        PLACEHOLDER + f'3.14159 rad is assumed; {TRUE_LIMITS}: joint "wrist" (line 13)',
    ),
    'locked': (
        [('lower="-2" upper="0.5"', 'lower="0" upper="0"')],
        'lower equals upper, so the joint cannot move: joint "wrist" (line 13)',
    ),
    'crossed off the arm': (
        [('upper="0.05"', 'upper="-0.06"')],
        'lower is above upper (an error on the arm), limits swapped: joint "jaw" (line 20)',
    ),
    'continuous with limits': (
        [('"wrist" type="revolute"', '"wrist" type="continuous"'), (JAW_MIMIC, '')],
        'position limits of a continuous joint are ignored: joint "wrist" (line 13)',
    ),
    'axis of length 2': (
        [('xyz="0 1 0"', 'xyz="0 2 0"')],
        'the axis is not of unit length, only its direction is used: joint "wrist" (line 13)',
    ),
    'origin twice': (
        [('<origin xyz="0.2 0 0"/>', '<origin xyz="0.2 0 0"/><origin xyz="9 9 9"/>')],
        '<origin> is given more than once, the first is used: joint "wrist" (line 13)',
    ),
    'blocks for others': (
        [
            (
                '</robot>',
                '<gazebo/><transmission><joint name="wrist"/></transmission><ros2_control/><gazebo/></robot>',
            )
        ],
        'ignored, not needed for kinematics: 2 <gazebo>, 1 <transmission>, 1 <ros2_control>',
    ),
    'prefix nowhere declared': (
        [('</robot>', '<sensor:camera><origin xyz="nonsense"/></sensor:camera></robot>')],
        'ignored, not needed for kinematics: 1 <sensor:camera>',
    ),
    'xacro definition': (
        [
            ('<robot ', '<robot xmlns:xacro="http://ros.org/wiki/xacro" '),
            ('</robot>', '<xacro:property name="width" value=".2"/></robot>'),
        ],
        'left-over xacro definitions are ignored: <xacro:property name="width"> (line 27)',
    ),
    'mesh of a package': (
        [
            (
                '<link name="tool"/>',
                '<link name="tool"><visual><geometry><mesh filename="package://none_such/a.stl"/>'
                '</geometry></visual><collision><geometry><mesh filename="package://none_such/b.stl"/></geometry>'
                '</collision></link>',
            )
        ],
        MESHES + 'package://none_such/a.stl of link "tool" and 1 more',
    ),
    'xacro in the name of a mesh': (
        [
            (
                '<link name="tool"/>',
                '<link name="tool"><visual><geometry><mesh filename="$(find arm)/a.stl"/></geometry></visual>'
                '<collision><geometry><mesh filename="${meshes}/b.stl"/></geometry></collision></link>',
            )
        ],
        MESHES + '$(find arm)/a.stl of link "tool" and 1 more',
    ),
    'mesh with a relative name': (
        [
            (
                '<link name="tool"/>',
                '<link name="tool"><visual><geometry><mesh filename="assets/a.stl"/></geometry></visual>'
                '</link>',
            )
        ],
        MESHES + 'assets/a.stl of link "tool"',
    ),
    'no robot name': ([(' name="arm"', '')], '<robot> needs a name, "robot" is assumed: <robot> (line 1)'),
    'mimic on a fixed joint': (
        [('"jaw" type="prismatic"', '"jaw" type="fixed"')],
        '<mimic> on a joint without a position is ignored: joint "jaw" (line 20)',
    ),
    'declaration misspelt': (
        [('<robot ', '<?xml verison="1.0"?><robot ')],
        'the XML declaration is misspelt, it should be <?xml version="1.0"?>: line 1',
    ),
}


@pytest.mark.parametrize('case', UNTIDY)
def test_untidy_is_read_with_one_warning(case: str) -> None:
    changes, sentence = UNTIDY[case]
    robot = read_urdf(broken(*changes))
    assert robot.warnings == (sentence,)
    for joint in robot.chain('tool'):
        assert 0 < joint.velocity < 1000
        assert abs(joint.axis @ joint.axis - 1) < 1e-12


@pytest.mark.parametrize(
    'changes',
    [
        [],
        [('<robot ', '<robot xmlns:xacro="http://www.ros.org/wiki/xacro" ')],
        [('<robot ', '<robot xmlns="http://www.ros.org" ')],
        [('<robot ', '\ufeff\n <?xml version="1.0" encoding="latin-1"?>\n<!-- $(find x) --><robot ')],
        [('"tool"', '"tool \u00e9 / 1"'), ('"tool"', '"tool \u00e9 / 1"'), ('"tool"', '"tool \u00e9 / 1"')],
        [('xyz="0 0 1"', 'xyz=" 0  0\t1\n"')],
        [('effort="5"', 'effort="strong" unknown="1"')],
        [('<link name="tool"/>', '<link name="tool"><visual><geometry/></visual><inertial/></link>')],
        [('<link name="tool"/>', '<link name="tool"><visual><geometry><blob/></geometry></visual></link>')],
        [('<link name="tool"/>', '<link name="tool"><visual><geometry><mesh/></geometry></visual></link>')],
    ],
)
def test_harmless_is_read_without_a_word(
    changes: list[tuple[str, str]], caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    robot = read_urdf(broken(*changes))
    assert robot.warnings == ()
    assert len(robot.joints) == 3
    assert caplog.records == []
    assert capfd.readouterr() == ('', '')


def test_many_places_are_told_in_one_sentence_of_bounded_length() -> None:
    links = ''.join(f'<link name="l{i}"/>' for i in range(300))
    joints = ''.join(
        f'<joint name="j{i}" type="continuous"><parent link="l{i}"/><child link="l{i + 1}"/></joint>'
        for i in range(299)
    )
    robot = read_urdf(f'<robot name="long">{links}{joints}</robot>')
    assert len(robot.warnings) == 1
    assert robot.warnings[0].endswith('joint "j19" (line 1) and 279 more')
    with pytest.raises(ChainError, match='"l49" and 250 more'):
        robot.chain('nowhere')
