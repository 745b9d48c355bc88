# SPDX-License-Identifier: Apache-2.0
"""Each fault of a description gets the error that names element, attribute, line and remedy."""

from __future__ import annotations

import pytest
from hostile import GOOD, broken

from ik_node.errors import (
    ChainError,
    ElementError,
    InputError,
    TreeError,
    UrdfError,
    XacroError,
    XmlError,
)
from ik_node.model.urdf.reader import read_urdf

LIMIT = '<limit lower="-1" upper="1.5" velocity="2" effort="5"/>'
JAW_MIMIC = '<mimic joint="wrist" multiplier="0.01"/>'
JAW_LIMIT = '<limit lower="-0.05" upper="0.05" velocity="0.2" effort="5"/>'

# by what is wrong: changes to GOOD, the error, what it must say
UNREADABLE: dict[str, tuple[list[tuple[str, str]], type[UrdfError], list[str]]] = {
    'end tag missing': (
        [('  </joint>\n  <joint name="wrist"', '  <joint name="wrist"')],
        XmlError,
        ['line 26', 'column', '</robot>', 'close every element'],
    ),
    'text cut off': ([('</robot>', '')], XmlError, ['line 28', 'close every element']),
    'attribute twice': (
        [('<link name="tool"/>', '<link name="tool" name="x"/>')],
        XmlError,
        ['line 4', 'Attribute name redefined', 'give each attribute once'],
    ),
    'ampersand': (
        [('"upper"', '"upper & arm"')],
        XmlError,
        ['line 3', '<link name="upper & arm"/>'],
    ),
    'unknown entity': ([('"upper"', '"&arm;"')], XmlError, ['line 3', "Entity 'arm' not defined", '"&amp;"']),
    'merge conflict': (
        [('  <link name="tool"/>', '<<<<<<< HEAD\n  <link name="tool"/>')],
        XmlError,
        ['line 4', '<<<<<<< HEAD', 'contains a merge conflict'],
    ),
    'two roots': ([('</robot>', '</robot><robot/>')], XmlError, ['line 27', 'inside one <robot>']),
    'zero byte': ([('"tool"', '"to\0ol"')], XmlError, ['line 4']),
    'not a robot': (
        [('<robot name="arm">', '<sdf><robot name="arm">'), ('</robot>', '</robot></sdf>')],
        ElementError,
        ['the root element is <sdf> (line 1), not <robot>', 'use the <robot> of line 1'],
    ),
    'link without name': (
        [('<link name="tool"/>', '<link/>')],
        ElementError,
        ['<link> (line 4)', 'name="..."'],
    ),
    'joint without name': (
        [('<joint name="wrist" ', '<joint ')],
        ElementError,
        ['<joint> (line 13) needs the attribute name'],
    ),
    'empty name': (
        [('<link name="tool"/>', '<link name=""/>')],
        ElementError,
        ['<link> (line 4)', 'name="..."'],
    ),
    'duplicate link': (
        [('<link name="tool"/>', '<link name="base"/>')],
        ElementError,
        ['<link name="base"> (line 4)', 'already used by the link of line 2', 'a unique name'],
    ),
    'duplicate joint': (
        [('"wrist"', '"shoulder"')],
        ElementError,
        ['<joint name="shoulder"> (line 13)', 'already used by the joint of line 6', 'a unique name'],
    ),
    'type missing': (
        [('name="wrist" type="revolute"', 'name="wrist"')],
        ElementError,
        ['joint "wrist" (line 13) needs the attribute type'],
    ),
    'unknown type': (
        [('"wrist" type="revolute"', '"wrist" type="Revolut"')],
        ElementError,
        [
            '<joint type="Revolut"> (line 13)',
            '"revolute", "continuous", "prismatic"',
            'did you mean "revolute"?',
        ],
    ),
    'parent missing': (
        [('<parent link="upper"/>', '')],
        ElementError,
        ['joint "wrist" (line 13) needs <parent link="...">'],
    ),
    'child without link': (
        [('<child link="tool"/>', '<child/>')],
        ElementError,
        ['<child> of joint "wrist" (line 15) needs the attribute link'],
    ),
    'unknown parent': (
        [('<parent link="upper"/>', '<parent link="uper"/>')],
        ElementError,
        [
            '<parent link="uper"> of joint "wrist" (line 14)',
            'unknown link',
            '"base", "upper", "tool", "finger" (did you mean "upper"?)',
        ],
    ),
    'unknown child': (
        [('<child link="tool"/>', '<child link="hand"/>')],
        ElementError,
        ['<child link="hand"> of joint "wrist" (line 15)', '"base", "upper", "tool", "finger"'],
    ),
    'joined to itself': (
        [('<child link="tool"/>', '<child link="upper"/>')],
        ElementError,
        ['joint "wrist" (line 13) joins link "upper" to itself', 'different links'],
    ),
    'two parents': (
        [('<child link="finger"/>', '<child link="upper"/>')],
        TreeError,
        [
            'link "upper" has two parents',
            'joint "shoulder" (line 6)',
            'joint "jaw" (line 20)',
            'one joint only',
        ],
    ),
    'circle beside the tree': (
        [('<parent link="upper"/>', '<parent link="finger"/>')],
        TreeError,
        ['loop', 'joint "wrist" (line 13)', 'joint "jaw" (line 20)', 'remove one'],
    ),
    'circle without root': (
        [('<link name="base"/>', ''), ('<parent link="base"/>', '<parent link="finger"/>')],
        TreeError,
        ['loop', 'joint "shoulder" (line 6)', 'joint "wrist" (line 13)', 'joint "jaw" (line 20)'],
    ),
    'unconnected link': (
        [('<link name="tool"/>', '<link name="tool"/><link name="lost"/>')],
        TreeError,
        ['2 trees', 'link "base" (line 2)', 'link "lost" (line 4)', 'connect them'],
    ),
    'no number': (
        [('xyz="0.2 0 0"', 'xyz="0.2 0 }"')],
        ElementError,
        [
            '<origin xyz="0.2 0 }"> of joint "wrist" (line 16)',
            '"}" is not a number',
            '3 numbers separated by blanks',
        ],
    ),
    'commas': (
        [('xyz="0.2 0 0"', 'xyz="0.2, 0, 0"')],
        ElementError,
        ['(line 16)', '"0.2," is not a number', 'blanks'],
    ),
    'two numbers': (
        [('rpy="0 0 0"', 'rpy="0 0"')],
        ElementError,
        ['<origin rpy="0 0"> of joint "shoulder" (line 9)', 'got 2 numbers; give 3'],
    ),
    'NaN origin': (
        [('xyz="0.2 0 0"', 'xyz="0.2 nan 0"')],
        ElementError,
        ['<origin xyz=', '(line 16)', 'finite'],
    ),
    'huge origin': (
        [('xyz="0.2 0 0"', 'xyz="1e200 0 0"')],
        ElementError,
        ['<origin xyz=', '(line 16)', '1e+09'],
    ),
    'axis of two numbers': (
        [('xyz="0 1 0"', 'xyz="0 1"')],
        ElementError,
        ['<axis xyz="0 1"> of joint "wrist" (line 17)', 'give 3 numbers', 'such as xyz="0 0 1"'],
    ),
    'nested without end': (
        [('<link name="tool"/>', f'<link name="tool">{"<x>" * 300}{"</x>" * 300}</link>')],
        XmlError,
        ['line 4', 'nested more than 250 deep', 'remove elements that are nested by mistake'],
    ),
    'zero axis': (
        [('xyz="0 1 0"', 'xyz="0 0 0"')],
        ElementError,
        ['<axis xyz="0 0 0"> of joint "wrist" (line 17)', 'length zero', 'xyz="0 0 1"'],
    ),
    'NaN axis': (
        [('xyz="0 1 0"', 'xyz="0 NaN 0"')],
        ElementError,
        ['<axis xyz="0 NaN 0"> of joint "wrist" (line 17)', 'NaN', '3 numbers', 'finite'],
    ),
    'zero axis off the arm': ([('xyz="1 0 0"', 'xyz="0 0 0"')], ElementError, ['joint "jaw" (line 23)']),
    'limit is a word': (
        [('upper="0.5"', 'upper="half"')],
        ElementError,
        ['<limit upper="half"> of joint "wrist" (line 18)', '"half" is not a number', 'upper="1.5"'],
    ),
    'velocity is a word': (
        [('velocity="3"', 'velocity=""')],
        ElementError,
        ['<limit velocity=""> of joint "wrist" (line 18)', 'give one number'],
    ),
    'mimic of nothing': (
        [(JAW_MIMIC, '<mimic/>')],
        ElementError,
        ['<mimic> of joint "jaw" (line 25) needs the attribute joint'],
    ),
    'mimic multiplier NaN': (
        [('multiplier="0.01"', 'multiplier="nan"')],
        ElementError,
        ['<mimic multiplier="nan"> of joint "jaw" (line 25)', 'finite'],
    ),
    'xacro include': (
        [('<link name="tool"/>', '<xacro:include filename="tool.xacro"/>')],
        XacroError,
        ['<xacro:include> (line 4)', 'unexpanded xacro', 'xacro FILE.xacro > FILE.urdf'],
    ),
    'xacro macro call': (
        [
            ('<robot ', '<robot xmlns:xacro="http://www.ros.org/wiki/xacro" '),
            ('<link name="tool"/>', '<xacro:tool/>'),
        ],
        XacroError,
        ['<xacro:tool> (line 4)', 'expand it first'],
    ),
    'xacro expression': (
        [('xyz="0.2 0 0"', 'xyz="${length} 0 0"')],
        XacroError,
        [
            '<origin xyz="${length} 0 0"> of joint "wrist" (line 16)',
            'unexpanded xacro',
            'the .xacro file itself',
        ],
    ),
    'xacro without its prefix': (
        [
            ('<link name="tool"/>', '<property name="length" value="0.2"/><link name="tool"/>'),
            ('xyz="0.2 0 0"', 'xyz="${length} 0 0"'),
        ],
        XacroError,
        [
            '<origin xyz="${length} 0 0"> of joint "wrist" (line 16) is unexpanded xacro',
            '<property name="length"> (line 4) lacks the prefix: write <xacro:property ...>',
        ],
    ),
    'xacro argument': (
        [('name="arm"', 'name="$(arg name)"')],
        XacroError,
        ['<robot name="$(arg name)"> (line 1)'],
    ),
}


@pytest.mark.parametrize('case', UNREADABLE)
def test_unreadable(case: str) -> None:
    changes, kind, words = UNREADABLE[case]
    with pytest.raises(kind) as caught:
        read_urdf(broken(*changes))
    assert type(caught.value) is kind
    assert caught.value.__cause__ is None
    assert [word for word in words if word not in str(caught.value)] == [], str(caught.value)


# faults that only an arm must not have: read with a warning, an error in the chain to the tool
FAULTS: dict[str, tuple[list[tuple[str, str]], list[str]]] = {
    'crossed limits': (
        [('lower="-1" upper="1.5"', 'lower="1.5" upper="-1"')],
        ['"shoulder"', '<limit>', '(line 11)', 'lower="1.5" above upper="-1"', 'lower must not exceed upper'],
    ),
    'NaN lower limit': (
        [('lower="-1"', 'lower="nan"')],
        ['<limit lower="nan"> of joint "shoulder" (line 11)', 'must be a number in rad'],
    ),
    'NaN upper limit': (
        [('upper="1.5"', 'upper="NaN"')],
        ['<limit upper="NaN"> of joint "shoulder" (line 11)'],
    ),
    'planar': (
        [('"shoulder" type="revolute"', '"shoulder" type="planar"')],
        ['"shoulder"', '<joint type="planar"> (line 6)', 'prismatic and fixed', 'two prismatic joints and a'],
    ),
    'floating': (
        [('"shoulder" type="revolute"', '"shoulder" type="floating"')],
        ['"shoulder"', '<joint type="floating"> (line 6)', 'a ball joint as three revolute joints in one'],
    ),
    'following a fixed joint': (
        [
            ('"shoulder" type="revolute"', '"shoulder" type="fixed"'),
            ('velocity="3" effort="5"/>', 'velocity="3" effort="5"/><mimic joint="shoulder"/>'),
        ],
        ['"wrist"', '<mimic joint="shoulder"> of joint "wrist" (line 18)', 'mimics a fixed joint'],
    ),
}


@pytest.mark.parametrize('case', FAULTS)
def test_faults_count_on_the_arm_only(case: str) -> None:
    changes, words = FAULTS[case]
    robot = read_urdf(broken(*changes))
    assert len(robot.warnings) == 1
    with pytest.raises(ChainError) as caught:
        robot.chain('tool')
    assert [word for word in words if word not in str(caught.value)] == [], str(caught.value)
    assert all(joint.lower <= joint.upper for joint in robot.joints.values())
    if case != 'following a fixed joint':
        assert [joint.name for joint in robot.chain('tool', 'upper')] == ['wrist']


def test_a_fault_of_the_driver_is_a_fault_of_the_arm() -> None:
    robot = read_urdf(broken(('lower="-2" upper="0.5"', 'lower="2" upper="0.5"')))
    with pytest.raises(ChainError, match='needs joint "wrist": <limit> of joint "wrist" \\(line 18\\)'):
        robot.chain('finger', 'tool')


LAUGHS = ''.join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10}">' for i in range(1, 12))


@pytest.mark.parametrize('end', ['&l11;', ''])
@pytest.mark.parametrize(
    'doctype',
    [
        f'<!DOCTYPE robot [<!ENTITY l0 "ha">{LAUGHS}]>',
        '<!DOCTYPE robot [<!ENTITY l11 SYSTEM "file:///etc/passwd">]>',
        '<!DOCTYPE robot SYSTEM "http://127.0.0.1:9/robot.dtd">',
        '<!-- a > b --><?xml-model href="x"?>\n<!DOCTYPE robot [<!ENTITY l11 "x">]>',
    ],
)
def test_document_types_are_rejected(doctype: str, end: str) -> None:
    with pytest.raises(XmlError, match=r'<!DOCTYPE> \(line [23]\): .* or entities; remove it'):
        read_urdf(f'<?xml version="1.0"?>\n{doctype}\n{GOOD.replace("arm", end or "arm")}')


def test_a_document_type_in_a_comment_is_none() -> None:
    assert read_urdf(f'<!-- <!DOCTYPE robot> -->{GOOD}').name == 'arm'


@pytest.mark.parametrize(
    ('text', 'words'),
    [
        ('', 'the description is empty: a URDF starts with <robot name="...">'),
        (' \n', 'the description is empty'),
        ('my_arm.urdf', 'line 1: "my_arm.urdf" is not XML: .* Arm.from_file'),
        ('<?xml version="1.0"?>', 'line 1.*a URDF starts with <robot'),
        ('<robot name="a"/>', r'<robot name="a"> \(line 1\) has no <link>'),
        ('<robot name="\ud800"/>', 'malformed XML'),
        ('<' * 100_000, 'malformed XML'),
        ('<a>' * 100_000, 'malformed XML'),
    ],
)
def test_text_that_is_no_urdf(text: str, words: str) -> None:
    with pytest.raises(UrdfError, match=words):
        read_urdf(text)


def test_another_type_than_text() -> None:
    with pytest.raises(InputError, match=r'must be text \(str\), got bytes'):
        read_urdf(GOOD.encode())  # type: ignore[arg-type]
