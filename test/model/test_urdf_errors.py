# SPDX-License-Identifier: Apache-2.0
"""What is wrong with a description is named with its line; what is merely untidy is read with one warning."""

from __future__ import annotations

import json
import logging
import re
import subprocess
import sys

import numpy as np
import pytest
import xacro
from oracles.plain import PlainArm, random_values
from shared_files import shared_names
from small_arm import GOOD, broken

from ik_node import errors
from ik_node.errors import ChainError, InputError, UrdfError, XacroError, XmlError
from ik_node.model.arm import default_tip
from ik_node.model.urdf.description import explain, load_description
from ik_node.model.urdf.elements import MAX_CHARACTERS
from ik_node.model.urdf.reader import read_urdf


def rows_of(table: str) -> list[list[str]]:
    """Return the cells of each line of a table, in which \\n is a new line."""
    lines = [line.split(' | ') for line in table.splitlines() if line]
    return [[cell.replace(r'\n', '\n') for cell in row] for row in lines]


def changed(changes: str) -> str:
    """Return GOOD with changes such as `old -> new ;; old -> new`."""
    text = changes.replace(r'\0', '\0').replace(r'\x07', '\x07')
    return broken(*(tuple(change.split(' -> ')) for change in text.split(' ;; ')))


# The error, changes to GOOD, and what the error must name.
UNREADABLE = r"""
Xml |   </joint>\n  <joint name="wrist" ->   <joint name="wrist" | line 26 | </robot>
Xml | </robot> ->  | line 28
Xml | <link name="tool"/> -> <link name="tool" name="x"/> | line 4
Xml | "upper" -> "upper & arm" | line 3 | <link name="upper & arm"/>
Xml | "upper" -> "&arm;" | line 3 | "&amp;"
Xml |   <link name="tool"/> -> <<<<<<< HEAD\n  <link name="tool"/> | line 4 | <<<<<<< HEAD
Xml | </robot> -> </robot><robot/> | line 27
Xml | "tool" -> "to\0ol" | line 4 | to\x00ol
Xml | "tool" -> "to\x07ol" | line 4 | to\x07ol
Xml | "tool" -> tool | line 4 | name="value"
Xml | name="tool" -> name | line 4 | name="value"
Xml | <link name="tool"/> -> <!--  | "-->"
Xml | <link name="base"/> -> <!-- a -- b --><link name="base"/> | line 2 | "--"
Xml | <link name="base"/> -> <!------><link name="base"/> | line 2 | "--"
Xml | <link name="base"/> -> <!-- a ---><link name="base"/><!-- b --> | line 2 | "--->"
Element | <robot name="arm"> -> <sdf><robot name="arm"> ;; </robot> -> </robot></sdf> | line 1 | <sdf>
Element | <link name="tool"/> -> <link/> | line 4 | <link> | "..."
Element | <joint name="wrist"  -> <joint  | line 13 | <joint>
Element | <link name="tool"/> -> <link name=""/> | line 4 | <link> | "..."
Element | <link name="tool"/> -> <link name="base"/> | line 4 | line 2 | <link name="base">
Element | "wrist" -> "shoulder" | line 13 | line 6 | <joint name="shoulder">
Element | name="wrist" type="revolute" -> name="wrist" | line 13 | "wrist"
Element | "wrist" type="revolute" -> "wrist" type="Revolut" | line 13 | did you mean "revolute"
Element | <parent link="upper"/> ->  | line 13 | "wrist" | <parent link="...">
Element | <child link="tool"/> -> <child/> | line 15 | <child> | "wrist"
Element | <parent link="upper"/> -> <parent link="uper"/> | line 14 | "wrist" | did you mean "upper"
Element | <child link="tool"/> -> <child link="hand"/> | line 15 | <child link="hand"> | "wrist"
Element | <child link="tool"/> -> <child link="upper"/> | line 13 | "wrist" | "upper"
Tree | <child link="finger"/> -> <child link="upper"/> | line 6 | line 20 | "upper"
Tree | <parent link="upper"/> -> <parent link="finger"/> | line 13 | line 20 | "wrist"
Tree | <link name="base"/> ->  ;; <parent link="base"/> -> <parent link="finger"/> | line 6 | line 13
Tree | <link name="tool"/> -> <link name="tool"/><link name="lost"/> | line 2 | line 4 | "base"
Element | xyz="0.2 0 0" -> xyz="0.2 0 }" | line 16 | <origin xyz="0.2 0 }"> | "wrist"
Element | xyz="0.2 0 0" -> xyz="0.2, 0, 0" | line 16 | "0.2,"
Element | rpy="0 0 0" -> rpy="0 0" | line 9 | <origin rpy="0 0"> | "shoulder"
Element | xyz="0.2 0 0" -> xyz="0.2 nan 0" | line 16
Element | xyz="0.2 0 0" -> xyz="1e200 0 0" | line 16
Element | xyz="0 1 0" -> xyz="0 1" | line 17 | <axis xyz="0 1"> | "wrist"
Element | xyz="0 1 0" -> xyz="0 0 0" | line 17 | <axis xyz="0 0 0"> | "wrist"
Element | xyz="0 1 0" -> xyz="0 NaN 0" | line 17 | <axis xyz="0 NaN 0"> | "wrist"
Element | xyz="1 0 0" -> xyz="0 0 0" | line 23 | "jaw"
Element | upper="0.5" -> upper="half" | line 18 | <limit upper="half"> | "wrist"
Element | velocity="3" -> velocity="" | line 18 | <limit velocity=""> | "wrist"
Element | <mimic joint="wrist" multiplier="0.01"/> -> <mimic/> | line 25 | <mimic> | "jaw"
Element | multiplier="0.01" -> multiplier="nan" | line 25 | <mimic multiplier="nan"> | "jaw"
Xacro | <link name="tool"/> -> <xacro:include filename="tool.xacro"/> | line 4 | <xacro:include>
Xacro | <link name="tool"/> -> <xacro:tool/> | line 4 | <xacro:tool>
Xacro | xyz="0.2 0 0" -> xyz="${length} 0 0" | line 16 | <origin xyz="${length} 0 0"> | "wrist"
Xacro | <link name="tool"/> -> <property name="l"/><link name="tool"/> ;; xyz="0.2 -> xyz="${l} | line 4
Xacro | name="arm" -> name="$(arg name)" | line 1 | <robot name="$(arg name)">
"""
# The tip, changes that only an arm with this tip must not have, and what its error must name.
FAULTS = r"""
tool | lower="-1" upper="1.5" -> lower="1.5" upper="-1" | line 11 | "shoulder" | <limit>
tool | lower="-1" -> lower="nan" | line 11 | <limit lower="nan"> | "shoulder"
tool | upper="1.5" -> upper="NaN" | line 11 | <limit upper="NaN"> | "shoulder"
tool | "shoulder" type="revolute" -> "shoulder" type="planar" | line 6 | "shoulder" | <joint type="planar">
tool | "shoulder" type="revolute" -> "shoulder" type="floating" | line 6 | <joint type="floating">
tool | "revolute -> "fixed ;; "0 1 0"/> -> "0 1 0"/><mimic joint="shoulder"/> | 17
finger | <mimic joint="wrist" -> <mimic joint="wirst" | line 25 | <mimic joint="wirst"> | "jaw"
finger | <mimic joint="wrist" -> <mimic joint="jaw" | line 25 | <mimic joint="jaw"> | "jaw"
finger | "wrist" type="revolute" -> "wrist" type="planar" | line 25 | <mimic joint="wrist"> | "jaw"
"""


@pytest.mark.parametrize(('kind', 'changes', 'named'), [(*row[:2], row[2:]) for row in rows_of(UNREADABLE)])
def test_unreadable(kind, changes, named):
    with pytest.raises(UrdfError) as caught:
        read_urdf(changed(changes))
    assert type(caught.value) is getattr(errors, f'{kind}Error')
    assert caught.value.__cause__ is None
    said = str(caught.value)
    assert [word for word in named if word not in said] == [], said
    assert said.isprintable()
    assert len(said) < 600


@pytest.mark.parametrize(('tip', 'changes', 'named'), [(*row[:2], row[2:]) for row in rows_of(FAULTS)])
def test_faults_count_on_the_arm_only(tip, changes, named):
    robot = read_urdf(changed(changes))
    base = 'base' if tip == 'tool' else 'tool'
    assert robot.warnings
    with pytest.raises(ChainError) as caught:
        robot.chain(tip, base)
    assert [word for word in named if word not in str(caught.value)] == [], str(caught.value)
    assert all(joint.lower <= joint.upper for joint in robot.joints.values())
    if tip == 'finger':
        assert robot.driver('jaw') == ('jaw', 1.0, 0.0)


def test_a_fault_of_the_driver_is_a_fault_of_the_arm():
    robot = read_urdf(broken(('lower="-2" upper="0.5"', 'lower="2" upper="0.5"')))
    with pytest.raises(ChainError, match=r'"wrist".*line 18'):
        robot.chain('finger', 'tool')


def wheels(masters: list[str], more: str = '') -> str:
    """Return wheels off the arm, each of which follows another joint."""
    return ''.join(
        f'\n<link name="w{i}"/><joint name="wheel{i}" type="continuous"><parent link="base"/>'
        f'<child link="w{i}"/><limit velocity="1"/><mimic joint="{master}"{more}/></joint>'
        for i, master in enumerate(masters)
    )


def test_multipliers_that_overflow():
    many = wheels(['wrist', *(f'wheel{i}' for i in range(33))], ' multiplier="1e9"')
    last = 'joint="wrist" multiplier="0.01"', 'joint="wheel33" multiplier="1e9"'
    robot = read_urdf(broken(last, ('</robot>', many + '</robot>')))
    with pytest.raises(ChainError, match=r'"jaw" \(line 25\).*overflow'):
        robot.chain('finger', 'tool')


def test_mimics_in_a_circle_are_ignored_off_the_arm():
    """Another joint follows the circle: it stays a follower."""
    robot = read_urdf(broken(('</robot>', wheels(['wheel1', 'wheel2', 'wheel0', 'wheel0']) + '</robot>')))
    assert [joint.name for joint in robot.chain('tool')] == ['shoulder', 'wrist']
    assert len(robot.warnings) == 1
    assert [robot.driver(f'wheel{i}').joint for i in range(4)] == ['wheel0', 'wheel1', 'wheel2', 'wheel0']
    for link in ('w1', 'w3'):
        with pytest.raises(ChainError, match=r'"wheel0" \(line 28\).*"wheel2" \(line 30\)'):
            robot.chain(link)


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
def test_document_types_are_rejected(doctype, end):
    with pytest.raises(XmlError, match=r'<!DOCTYPE> \(line [23]\)'):
        read_urdf(f'<?xml version="1.0"?>\n{doctype}\n{GOOD.replace("arm", end or "arm")}')


@pytest.mark.parametrize('before', ['\ufeff', '\ufeff\ufeff', '\ufeff \ufeff\n', ' \ufeff<!-- -->\ufeff'])
def test_byte_order_marks_hide_no_document_type(before):
    text = broken(('name="arm"', 'name="&e;"'))
    with pytest.raises(XmlError, match='<!DOCTYPE>'):
        read_urdf(f'{before}<!DOCTYPE robot [<!ENTITY e "hidden">]>{text}')
    assert read_urdf(f'\ufeff\ufeff<!-- <!DOCTYPE robot> -->{GOOD}').name == 'arm'


LONG = 'n' * 10_000


@pytest.mark.parametrize(
    ('text', 'named'),
    [
        ('', 'empty'),
        (' \n', 'empty'),
        ('my_arm.urdf', 'line 1: "my_arm.urdf" .* Arm.from_file'),
        ('<?xml version="1.0"?>', 'line 1'),
        ('<robot name="a"/>', r'line 1.*<link>'),
        ('<robot name="\ud800"/>', 'malformed XML'),
        ('<' * 100_000, 'malformed XML'),
        ('<a>' * 100_000, 'malformed XML'),
        (f'<robot name="a"><{LONG}></robot>', 'line 1'),
        ('\x1b[31m' + LONG, r'"\\x1b\[31mnnn'),
        (GOOD.replace('"tool"', f'"{LONG}" name="x"'), r'line 4.*10024 characters'),
        (GOOD.replace('"tool"/>', f'"tool">{"<x>" * 300}{"</x>" * 300}</link>'), '250 deep'),
        (GOOD + ' ' * MAX_CHARACTERS, f'{len(GOOD) + MAX_CHARACTERS:,} .* 8,000,000'),
        (GOOD.encode(), 'bytes'),
    ],
    ids=range(14),
)
def test_text_that_is_no_urdf(text, named):
    with pytest.raises((UrdfError, InputError), match=named) as caught:
        read_urdf(text)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 600


def test_a_text_may_be_as_long_as_allowed_and_a_file_no_longer(tmp_path):
    text = GOOD + ' ' * MAX_CHARACTERS
    assert read_urdf(text[:MAX_CHARACTERS]).name == 'arm'
    (tmp_path / 'arm.urdf').write_text(text)
    with pytest.raises(XmlError, match=r'arm\.urdf: .* 8,000,000'):
        load_description(tmp_path / 'arm.urdf')


MEMORY = 700_000_000  # bytes of address space that a reader may take, of which Python and numpy take half
READER = f"""
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, ({MEMORY}, {MEMORY}))
from ik_node.errors import UrdfError
from ik_node.model.urdf.reader import read_urdf
for text in sys.argv[1:]:
    try:
        print(read_urdf(eval(text)).name)
    except UrdfError as error:
        print(type(error).__name__)
"""
SMALL = '\'<robot name="small"><link name="a"/>%s</robot>\''
LARGE = [
    (f"'<?a?>' * 1_000_000 + {SMALL} % ''", 'small'),
    (f"{SMALL} % ('<a:b/>' * 1_300_000)", 'small'),
    (f"'\\n' * 7_900_000 + {SMALL} % '<'", 'XmlError'),
    (f"{SMALL} % ('<gazebo/>' * 5_000_000)", 'XmlError'),
]


@pytest.mark.slow
def test_no_text_takes_much_memory():
    texts, outcomes = zip(*LARGE, strict=True)
    command = [sys.executable, '-c', READER, *texts]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert (tuple(result.stdout.split()), result.stderr) == (outcomes, '')


@pytest.mark.parametrize('name', [LONG, 'a&#10;b', '\u202e\u2028', '&quot;&amp;&lt;'])
def test_every_sentence_is_one_short_line(name):
    """Names may be of any length and hold any character that XML allows: errors and warnings quote them."""
    for given in (
        *('name="shoulder"', 'type="revolute"', 'link="base"', 'link="tool"', 'xyz="0 0 0.1"', 'lower="-1"'),
        *('xyz="0 1 0"', 'joint="wrist"', 'multiplier="0.01"', 'name="finger"', 'name="arm"'),
    ):
        sentences = []
        try:
            robot = read_urdf(broken((given, f'{given.partition("=")[0]}="{name}"')))
        except UrdfError as error:
            sentences.append(str(error))
        else:
            sentences += [*robot.warnings, default_tip(robot).note or '']
            for link in robot.links:
                try:
                    robot.chain(link, 'upper')
                except ChainError as error:
                    sentences.append(str(error))
        for sentence in sentences:
            assert sentence == '' or sentence.isprintable(), sentence
            assert len(sentence) < 1500, sentence


# Changes to GOOD, of which a name in braces is one of a mesh, and what the one warning names.
UNTIDY = r"""
 velocity="2" ->  ;;  velocity="3" ->  | the velocity limit | 1 rad/s | "shoulder" | "wrist"
velocity="0.2" -> velocity="0" | the velocity limit | 0.1 m/s | "jaw" (line 20)
velocity="0.2" -> velocity="nan" | the velocity limit | 0.1 m/s | "jaw" (line 20)
lower="-0.05" upper="0.05" ->  | position limits are missing | -1 to 1 m | "jaw" (line 20)
lower="-2"  ->  | one position limit is missing | 0 by | "wrist" (line 13)
upper="0.5" -> upper="1e16" | placeholders | 3.14159 rad | "wrist" (line 13)
lower="-2" upper="0.5" -> lower="0" upper="0" | lower equals upper | "wrist" (line 13)
upper="0.05" -> upper="-0.06" | swapped | "jaw" (line 20)
wrist" type="revolute -> wrist" type="continuous ;; c joint="wrist -> c joint="shoulder | continuous joint are
xyz="0 1 0" -> xyz="0 2 0" | not of unit length | "wrist" (line 13)
xyz="0.2 0 0"/> -> xyz="0.2 0 0"/><origin xyz="9 9 9"/> | <origin> | the first is used | "wrist" (line 13)
</robot> -> <gazebo/><transmission><joint name="a"/></transmission><gazebo/></robot> | 2 <gazebo>, 1 <tra
</robot> -> <sensor:camera><origin xyz="nonsense"/></sensor:camera></robot> | ignored | 1 <sensor:camera>
</robot> -> <xacro:property name="width" value=".2"/></robot> | xacro definitions are ignored | "width"
"tool"/> -> "tool">{package://no/a.stl}{package://no/b.stl}</link> | package://no/a.stl | 1 more
<link name="tool"/> -> <link name="tool">{$(find arm)/a.stl}</link> | $(find arm)/a.stl | "tool"
<link name="tool"/> -> <link name="tool">{assets/a.stl}</link> | assets/a.stl | "tool"
 name="arm" ->  | needs a name, "robot"
"jaw" type="prismatic" -> "jaw" type="fixed" | <mimic> | "jaw" (line 20)
<robot  -> <?xml verison="1.0"?><robot  | misspelt | line 1
"""


@pytest.mark.parametrize(('changes', 'named'), [(row[0], row[1:]) for row in rows_of(UNTIDY)])
def test_untidy_is_read_with_one_warning(changes, named):
    mesh = r'<visual><geometry><mesh filename="\1"/></geometry></visual>'
    robot = read_urdf(changed(re.sub(r'\{(.*?)\}', mesh, changes)))
    (warning,) = robot.warnings
    assert [word for word in named if word not in warning] == [], warning
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
        [('<link name="tool"/>', '<link name="tool"><visual><geometry><mesh/></geometry></visual></link>')],
    ],
)
def test_harmless_is_read_without_a_word(changes, caplog, capfd):
    caplog.set_level(logging.DEBUG)
    robot = read_urdf(broken(*changes))
    assert robot.warnings == ()
    assert len(robot.joints) == 3
    assert caplog.records == []
    assert capfd.readouterr() == ('', '')


def test_many_places_are_told_in_one_sentence_of_bounded_length():
    links = ''.join(f'<link name="l{i}"/>' for i in range(300))
    joints = ''.join(
        f'<joint name="j{i}" type="continuous"><parent link="l{i}"/><child link="l{i + 1}"/></joint>'
        for i in range(299)
    )
    robot = read_urdf(f'<robot name="long">{links}{joints}</robot>')
    (warning,) = robot.warnings
    assert warning.endswith('joint "j19" (line 1) and 279 more')
    with pytest.raises(ChainError, match='"l49" and 250 more'):
        robot.chain('nowhere')


# --- xacro ---------------------------------------------------------------------------------------------

HEAD = '<robot xmlns:xacro="http://www.ros.org/wiki/xacro" name="arm">\n'
OTHERS = {
    'limb.xacro': HEAD + '<xacro:macro name="limb" params="a">\n\n  <link name="${bar}${a}"/>\n</xacro:macro></robot>',
    'again.xacro': f'{HEAD}<xacro:include filename="again.xacro"/></robot>',
    'bomb.xacro': f'<!DOCTYPE robot [<!ENTITY l0 "ha">{LAUGHS}]><robot name="&l11;"/>',
    'cut.xacro': f'{HEAD}<link name="a"/>\n',
}
# What is between HEAD and </robot>, the file that is named, and with what.
XACRO = r"""
<link\n name="a${2 *  foo}"/> | arm | 'foo' | '2 * foo' | <xacro:property name="foo" value="..."/>
<link name="${1/0}"/> | arm | division by zero | '1/0'
\n<link name="$(arg width)"/> | arm | <xacro:arg name="width" default="..."/>
<xacro:arg name="width"/> | arm | 'default'
\n<xacro:include filename="$(find nopkg)/a.xacro"/> | arm | source the ROS workspace
<xacro:include filename="limb.xacro"/>\n<xacro:limb a="1"/> | arm | 'bar'
<xacro:include filename="limb.xacro"/>\n<xacro:limp a="1"/> | arm | <xacro:macro name="limp">
<xacro:include filename="limb.xacro"/>\n<xacro:limb/> | arm | parameters [a]
\n<xacro:include filename="none.xacro"/> | arm | No such file | none.xacro
<xacro:include filename="again.xacro"/> | again | recurse
<xacro:include filename="bomb.xacro"/> | bomb | amplification
<xacro:include filename="cut.xacro"/> | cut | line 3
<xacro:macro name="limb"><link/>\n<xacro:limb/></xacro:macro>\n<xacro:limb/> | arm | recurse
<link name="$(env NO_SUCH)"/> | arm | 'NO_SUCH'
<property name="foo" value="1"/>\n<link name="${foo}"/> | arm | <property name="foo"> | line 2
<macro\n name="leg" params="a"><link name="b"/></macro><xacro:leg a="1"/> | arm | <macro name="leg"> | line 2
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ('body', 'where', 'named'),
    [(*row[:2], row[2:]) for row in rows_of(XACRO)]
    + [(f'<link name="${{{"9" * 5000} + foo}}"/>', 'arm', ['characters'])],
)
def test_the_file_is_named_with_what_xacro_cannot_expand(body, where, named, tmp_path, monkeypatch):
    monkeypatch.setenv('AMENT_PREFIX_PATH', '')
    for name, text in OTHERS.items():
        (tmp_path / name).write_text(text)
    (tmp_path / 'arm.xacro').write_text(f'{HEAD}{body}\n</robot>')
    with pytest.raises(XacroError) as caught:
        load_description(tmp_path / 'arm.xacro')
    said = str(caught.value)
    assert said.startswith(f'{tmp_path / where}.xacro: '), said
    assert [word for word in named if word not in said] == [], said
    assert said.isprintable()
    assert len(said) < 1500
    assert '<class' not in said


def test_a_xacro_that_keeps_no_file_stack_still_gets_its_message(tmp_path, monkeypatch):
    """Nothing but process_file is needed of xacro."""
    (tmp_path / 'arm.xacro').write_text(f'{HEAD}<link name="${{foo}}"/></robot>')
    with pytest.raises(xacro.XacroException) as raised:
        xacro.process_file(str(tmp_path / 'arm.xacro'))
    monkeypatch.delattr(xacro, 'filestack')
    said = explain(tmp_path / 'arm.xacro', raised.value)
    assert said.startswith(f'{tmp_path / "arm.xacro"}: ')
    assert "'foo'" in said


# --- the files of ../shared/broken_urdf ----------------------------------------------------------------

# The file, and the error with what it names; or root link, links, movable joints and what warnings are about.
BROKEN = r"""
braccio_moveit_gazebo_noetic__braccio_model.urdf | Xml | line 23, column 5
ikpy__poppy_ergo.URDF | base_link | 7 | 6 | velocity | position limits are missing | meshes
ikpy__prismatic_robot.URDF | baseLink | 2 | 1 | velocity
joint_state_publisher__64_joint_robot.urdf | Element | line 2 | line 3 | <urdf>
joint_state_publisher__mimic_cycle.urdf | Element | line 2 | line 3 | <urdf>
joint_state_publisher__multi_joint_robot.urdf | Element | line 2 | line 3 | <urdf>
joint_state_publisher__slash_fiction.urdf | Element | line 2 | line 3 | <urdf>
joint_state_publisher__zero_joint_robot.urdf | Element | line 2 | line 3 | <urdf>
kdl_parser__test.urdf | base_link | 11 | 8 | position limits of a continuous joint | velocity | meshes
low_cost_robot__low-cost-arm.urdf | base_link | 6 | 5 | ignored | velocity | meshes
magician_ros2__clean_model_no_macros.urdf | magician_root_link | 10 | 8 | lower is above | meshes
mycobot_ros__myarm_c650.urdf | base | 9 | 8 | xacro | velocity | velocity | meshes
mycobot_ros__myarm_m.urdf | base | 9 | 8 | xacro | velocity | velocity | meshes
mycobot_ros__mycobot_pro_600_moveit.urdf | Xml | line 11, column 2 | "<<<<<<< HEAD"
mycobot_ros__mycobot_pro_force_gripper.urdf | gripper_base | 7 | 6 | xacro | vel | above | narrows | meshes
mycobot_ros__mycobot_with_vision_copy.urdf | Xacro | line 5 | <xacro:include>
mycobot_ros__pro_320_m5_2022_moveit_force_gripper.urdf | base | 15 | 12 | xacro | vel | above | narrow | mesh
pink__omnidirectional_wheeled_robot.urdf | base | 4 | 3 | position limits are missing
robot_state_publisher__mimic_joint.urdf | base_link | 3 | 0 | <mimic> on a joint without a position
robot_state_publisher__two_links_moving_joint.urdf | link1 | 2 | 1 | velocity
robotics-toolbox-python__test.urdf | Xml | line 1 | "hello"
ros2_documentation__my_robot_python.urdf | Element | line 2 | <robot name="My robot">
rviz__test.urdf | test_robot_link | 4 | 1 | <origin> is given more than once | velocity | meshes
scara_tutorial_ros2__materials.urdf | Xacro | line 24 | <color rgba="${255/255} ${108/255} ${10/255} 1.0">
ssik__kuka_iiwa14.urdf | base | 11 | 7 | meshes
ssik__puma560.urdf | base_link | 7 | 6
ssik__ur5.urdf | world | 11 | 6 | meshes
urdf__fail_pr2_desc_bracket.urdf | Element | line 10 | <parent link="base_link">
urdf__fail_pr2_desc_double.urdf | Element | line 31 | line 14 | <link name="fl_caster_rotation_link">
urdf__fail_pr2_desc_loop.urdf | Tree
urdf__fail_pr2_desc_no_joint2.urdf | Xml | line 10, column 29 | "<parent link="
urdf__fail_pr2_desc_parent_itself.urdf | Element | line 4 | "fl_caster_rotation_joint"
urdf__fail_pr2_desc_two_trees.urdf | Element | line 10 | <parent link="base_link">
urdf__fail_three_links_one_joint.urdf | Xml | line 24, column 10 | line 21 | "</link>"
urdf__one_link.urdf | link1 | 1 | 0 | the XML declaration is misspelt
urdf__test_robot.urdf | dummy_link | 17 | 8 | velocity | meshes
urdf__two_links_one_joint.urdf | link1 | 2 | 0 | the XML declaration is misspelt
urdf_files_dataset__model.urdf | base | 13 | 12 | velocity | meshes
urdf_files_dataset__r2_left_gripper.urdf | Element | line 61 | line 18 | <link name="r2/left_leg/ati">
urdf_files_dataset__rethink_pneumatic_gripper.urdf | Element | line 33 | <parent link="left_hand">
"""
BROKEN_FILES = {row[0]: row[1:] for row in rows_of(BROKEN)}


@pytest.mark.slow
@pytest.mark.parametrize('name', shared_names('broken_urdf'))
def test_broken_file(name, shared, capfd, monkeypatch):
    monkeypatch.delenv('AMENT_PREFIX_PATH', raising=False)  # no package is installed that has a mesh
    monkeypatch.delenv('ROS_PACKAGE_PATH', raising=False)
    text = load_description(shared / 'broken_urdf' / name)
    kind, *named = BROKEN_FILES[name]
    if error := getattr(errors, f'{kind}Error', None):
        with pytest.raises(error) as caught:
            read_urdf(text)
        assert [word for word in named if word not in str(caught.value)] == [], str(caught.value)
    else:
        robot = read_urdf(text)
        assert [kind, str(len(robot.links)), str(len(robot.movable))] == [robot.root, *named[:2]]
        for warning, about in zip(robot.warnings, named[2:], strict=True):
            assert about in warning
        values = random_values(robot, np.random.default_rng(3))
        for link, pose in robot.link_poses(values).items():
            np.testing.assert_allclose(pose, PlainArm(text, link).pose(values), rtol=0, atol=1e-9)
    assert capfd.readouterr() == ('', '')  # libxml2 keeps quiet


def test_what_ros_reads_is_read(shared):
    """Whatever urdfdom accepts, this package reads too."""
    others = json.loads((shared / 'broken_urdf' / 'EXPECT.json').read_text())
    assert BROKEN_FILES.keys() == others.keys()
    for name, verdict in others.items():
        if verdict['urdfdom_check_urdf']['rc'] == 0:
            read_urdf(load_description(shared / 'broken_urdf' / name))
