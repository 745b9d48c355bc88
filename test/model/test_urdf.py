# SPDX-License-Identifier: Apache-2.0
"""Reading descriptions: files and xacro, real arms against other forward kinematics, what a Robot answers."""

from __future__ import annotations

import logging
import math
import re

import numpy as np
import pytest
from oracles.plain import PlainArm, random_values
from shared_files import shared_names
from small_arm import GOOD, broken

from ik_node.arguments import arm_parser, read_arm
from ik_node.errors import ChainError, ElementError, FileError, InputError, XacroError, XmlError
from ik_node.model.arm import Arm, default_tip
from ik_node.model.urdf.reader import load_description, read_urdf

# --- files ---------------------------------------------------------------------------------------------


def test_files(tmp_path):
    (tmp_path / 'arm.urdf').write_text(GOOD)
    assert load_description(tmp_path / 'arm.urdf') == GOOD
    for path, named in (
        (str(tmp_path / 'arn.urdf'), r'No such file.*did you mean "arm\.urdf"'),
        (tmp_path, 'directory'),
        ('a\0b\n.urdf', r'^a\\x00b\\n\.urdf: '),
    ):
        with pytest.raises(FileError, match=named):
            load_description(path)
    with pytest.raises(InputError, match='"length"'):
        load_description(tmp_path / 'arm.urdf', {'length': '1'})
    for path in (None, 5, b'arm.urdf', ['arm.urdf']):
        for read in (load_description, Arm.from_file):
            with pytest.raises(InputError, match=re.escape(repr(path))):
                read(path)


@pytest.mark.parametrize(
    ('declaration', 'encoding'),
    [
        ('', 'utf-8'),
        ('', 'utf-8-sig'),
        ('<?xml version="1.0" encoding="ISO-8859-1"?>', 'latin-1'),
        ("<?xml version='1.0' encoding='utf-16'?>", 'utf-16'),
    ],
)
def test_encodings(tmp_path, declaration, encoding):
    file = tmp_path / 'arm.urdf'
    file.write_bytes((declaration + GOOD.replace('"arm"', '"Jan\u00e9"')).encode(encoding))
    assert read_urdf(load_description(file)).name == 'Jan\u00e9'


@pytest.mark.parametrize(
    ('data', 'named'),
    [
        (b'<robot name="\xff"/>', 'utf-8 .*UTF-8'),
        (b'<?xml version="1.0" encoding="klingon"?><robot/>', 'klingon'),
        (b'\xff\xfe<', 'utf-16'),
    ],
)
def test_files_that_are_no_text(tmp_path, data, named):
    (tmp_path / 'arm.urdf').write_bytes(data)
    with pytest.raises(FileError, match=named):
        load_description(tmp_path / 'arm.urdf')


@pytest.mark.parametrize('name', ['arm.urdf', 'arm.xacro'])
def test_meshes_beside_the_file_are_named_whole(tmp_path, monkeypatch, name):
    """RViz gets the text by topic: a name relative to the file would mean nothing to it."""
    folder = tmp_path / 'my arm & co'
    (folder / 'assets').mkdir(parents=True)
    mesh = folder / 'assets' / 'a part.stl'
    mesh.touch()
    monkeypatch.chdir(tmp_path)
    others = ['assets/none.stl', 'long' * 1000, 'assets', 'package://none/a.stl', '/none/a.stl', 'http://a/b']
    visuals = ''.join(
        f'<visual><geometry>\n<mesh scale="1 1 1" filename="{filename}"/></geometry></visual>'
        for filename in ('assets/a part.stl', *others)
    )
    (folder / name).write_text(GOOD.replace('<link name="tool"/>', f'<link name="tool">{visuals}</link>'))
    text = load_description(f'my arm & co/{name}')
    assert re.findall(r'filename="(.*?)"', text) == [mesh.as_uri(), *others]
    assert not [one for one in read_urdf(text).warnings if 'a part' in one or 'a%20part' in one]


def test_meshes_that_are_not_beside_the_file_are_one_warning(shared, tmp_path):
    copy = tmp_path / 'so101.urdf'
    copy.write_bytes((shared / 'arms' / 'so101.urdf').read_bytes())
    names = re.findall(r'<mesh filename="(.*?)"', copy.read_text())
    (told,) = [one for one in read_urdf(load_description(copy)).warnings if 'meshes' in one]
    assert names[0] in told
    assert f'{len(names) - 1} more' in told
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert not [one for one in read_urdf(load_description(copy)).warnings if 'meshes' in one]


@pytest.mark.parametrize(
    ('filename', 'told'),
    [
        ('package://arm/../../secret.stl', 1),
        ('package://arm/%2e%2e/a.stl', 1),
        ('file:///a%00b.stl', 1),
        ('package:///etc/passwd', 1),
        ('a' * 5000, 1),
        ('', 0),
        ('file://', 0),
        ('//', 0),
    ],
)
def test_odd_names_of_meshes_are_missing_or_nothing(filename, told, tmp_path, monkeypatch):
    (tmp_path / 'share' / 'arm').mkdir(parents=True)
    (tmp_path / 'secret.stl').touch()
    monkeypatch.setenv('AMENT_PREFIX_PATH', str(tmp_path))
    mesh = f'<visual><geometry><mesh filename="{filename}"/></geometry></visual>'
    robot = read_urdf(GOOD.replace('<link name="tool"/>', f'<link name="tool">{mesh}</link>'))
    assert len(robot.warnings) == told


# --- xacro ---------------------------------------------------------------------------------------------

XACRO = """<?xml version="1.0"?>
<robot xmlns:xacro="http://www.ros.org/wiki/xacro" name="grown">
  <xacro:arg name="length" default="0.25"/>
  <xacro:property name="l" value="$(arg length)"/>
  <xacro:macro name="bone" params="name"><link name="${name}"/></xacro:macro>
  <xacro:bone name="a"/>
  <xacro:bone name="b"/>
  <joint name="$(arg joint)" type="continuous">
    <parent link="a"/><child link="b"/><origin xyz="0 0 ${2 * l}"/><limit velocity="1" effort="1"/>
  </joint>
</robot>
"""


def test_xacro_is_expanded(tmp_path):
    """Arguments are a dictionary or words; what lies beside the file is included."""
    file = tmp_path / 'grown.urdf.xacro'
    file.write_text(XACRO.replace('<xacro:bone name="b"/>', '<xacro:include filename="b.xml"/>'))
    (tmp_path / 'b.xml').write_text('<robot><link name="b"/></robot>')
    robot = read_urdf(load_description(file, {'joint': 'j'}))
    assert (robot.name, robot.links, robot.warnings) == ('grown', ('a', 'b'), ())
    for given, length in ({'joint': 'j', 'length': 2}, 4.0), ('joint:=j length:=2', 4.0), ('joint:=j', 0.5):
        assert Arm.from_file(file, xacro_args=given).robot.joints['j'].origin[2, 3] == length
    for given, named in (None, 'joint:=VALUE'), ('joint:=j joints:=k', '"joints".*did you mean "joint"'):
        with pytest.raises(XacroError, match=named):
            Arm.from_file(file, xacro_args=given)
    for words in (['length:=2', 'joint:=j k', str(file)], [str(file), 'joint:=j k', 'length:=2']):
        assert read_arm(arm_parser('').parse_args(words)).joint_names == ('j k',)


def test_errors_in_the_text_of_a_file_name_it(tmp_path):
    for name, text, error, named in (
        ('arm.urdf', '<robot name="a">', XmlError, r'arm\.urdf: .*line 1'),
        ('arm.xacro', '<robot name="a"/>', ElementError, r'arm\.xacro, expanded: .*<link>'),
        ('bomb.xacro', '<!DOCTYPE robot [<!ENTITY a "ha">]>\n<robot name="&a;"/>', XmlError, 'DOCTYPE'),
    ):
        (tmp_path / name).write_text(text)
        with pytest.raises(error, match=named):
            Arm.from_file(tmp_path / name)


@pytest.mark.slow
def test_unexpanded_xacro_is_found_among_many_attributes():
    many = ' '.join(f'a{k}="{k}"' for k in range(100_000))  # a lookup among all for each would take a minute
    with pytest.raises(XacroError):
        read_urdf(f'<robot name="r"><link name="a" {many} last="${{x}}"/></robot>')


# --- robots --------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize('name', shared_names('arms'))
def test_real_arms_agree_with_yourdfpy_and_with_fk_from_the_text(name, shared, arms_index):
    import yourdfpy  # here: tests without it need not wait for it

    file = shared / 'arms' / name
    text = load_description(file)
    robot = read_urdf(text)
    logging.disable(logging.ERROR)
    other = yourdfpy.URDF.load(str(file), load_meshes=False, load_collision_meshes=False)
    logging.disable(logging.NOTSET)
    entry = arms_index[file.stem]
    rng = np.random.default_rng(1)
    for number in range(5):
        values = random_values(robot, rng)
        other.update_cfg(values)
        poses = robot.link_poses(values)
        assert poses.keys() == set(robot.links)
        for tip in entry['tips']:
            for base in (entry['base_link'], robot.root):
                expected = other.get_transform(tip['tip_link'], base)
                ours = np.linalg.solve(poses[base], poses[tip['tip_link']])
                np.testing.assert_allclose(ours, expected, rtol=0, atol=1e-9)
        for link, pose in poses.items() if number == 0 else ():
            np.testing.assert_allclose(pose, PlainArm(text, link).pose(values), rtol=0, atol=1e-9)
            np.testing.assert_allclose(pose, robot.link_pose(link, values), rtol=0, atol=1e-12)
    for tip in entry['tips']:
        chain = robot.chain(tip['tip_link'], entry['base_link'])
        drivers = dict.fromkeys(robot.driver(joint.name).joint for joint in chain if joint.movable)
        assert list(drivers) == tip['joints']


@pytest.mark.parametrize(
    ('tip', 'base', 'named'),
    [
        ('tol', None, ['tip_link "tol"', '"base", "upper", "tool", "finger"', 'did you mean "tool"?']),
        ('tool', 'bse', ['base_link "bse"', 'did you mean "base"?']),
        ('upper', 'finger', ['base_link "finger"', 'tip_link "upper"', '"base", "upper"']),
        ('base', None, ['base_link "base"', 'tip_link "base"', '"finger" (3)']),
    ],
)
def test_links_that_make_no_chain(tip, base, named):
    with pytest.raises(ChainError) as caught:
        read_urdf(GOOD).chain(tip, base)
    assert [word for word in named if word not in str(caught.value)] == [], str(caught.value)


def test_robots_that_nothing_moves_have_no_tip():
    fixed = broken(('"shoulder" type="revolute"', '"shoulder" type="fixed"'))
    with pytest.raises(ChainError, match=r'"base".*"upper"'):
        read_urdf(fixed).chain('upper')
    with pytest.raises(ChainError, match='no movable joint'):
        default_tip(read_urdf(GOOD.replace('"revolute"', '"fixed"').replace('"prismatic"', '"fixed"')))
    floating = broken(('"jaw" type="prismatic"', '"jaw" type="floating"'))
    assert default_tip(read_urdf(floating)).link == 'finger'


def test_joints_come_parents_first_however_they_are_written():
    start, end = GOOD.index('  <joint name="shoulder"'), GOOD.index('  <joint name="jaw"')
    text = GOOD[:start] + GOOD[end:].replace('</robot>', GOOD[start:end] + '</robot>')
    robot = read_urdf(text)
    assert list(robot.joints) == ['shoulder', 'wrist', 'jaw']
    assert [joint.name for joint in robot.chain('finger')] == ['shoulder', 'wrist', 'jaw']
    assert [joint.name for joint in robot.chain('tool', 'upper')] == ['wrist']
    assert robot.root == 'base'


def test_defaults_that_are_stated():
    robot = read_urdf(
        broken(
            ('<limit lower="-1" upper="1.5" velocity="2" effort="5"/>', ''),
            ('"wrist" type="revolute"', '"wrist" type="continuous"'),
            ('<limit lower="-2" upper="0.5" velocity="3" effort="5"/>', ''),
            ('<limit lower="-0.05" upper="0.05" velocity="0.2" effort="5"/>', ''),
        )
    )
    assert {joint.name: (joint.lower, joint.upper, joint.velocity) for joint in robot.movable} == {
        'shoulder': (-math.pi, math.pi, 1.0),
        'wrist': (-math.inf, math.inf, 1.0),
        'jaw': (-1.0, 1.0, 0.1),
    }


@pytest.mark.parametrize(
    ('lower', 'upper', 'expected'),
    [
        ('-0.5', '1e16', (-0.5, math.pi)),
        ('-inf', 'inf', (-math.pi, math.pi)),
        ('-1.7e308', '0.5', (-math.pi, 0.5)),
        ('5', '1e16', (5.0, 5.0 + math.pi)),
        ('-1e16', '-5', (-5.0 - math.pi, -5.0)),
        ('1e16', '1e17', (-math.pi, math.pi)),
        ('-6.2831853', '6.2831853', (-6.2831853, 6.2831853)),
    ],
)
def test_placeholders_give_way_side_by_side(lower, upper, expected):
    robot = read_urdf(broken(('lower="-1" upper="1.5"', f'lower="{lower}" upper="{upper}"')))
    shoulder = robot.chain('tool')[0]
    assert (shoulder.lower, shoulder.upper) == pytest.approx(expected, abs=1e-15)


def test_crossed_limits_off_the_arm_are_read_the_other_way_round():
    jaw = read_urdf(broken(('upper="0.05"', 'upper="-0.06"'))).joints['jaw']
    assert (jaw.lower, jaw.upper) == (-0.06, -0.05)


def test_a_mimic_of_a_mimic_follows_the_first():
    limit, mimic = 'velocity="3" effort="5"/>', '<mimic joint="wrist" multiplier="0.01"/>'
    follows = f'{limit}<mimic joint="shoulder" multiplier="-2" offset="0.5"/>'
    robot = read_urdf(broken((limit, follows), (mimic, f'{mimic[:-2]} offset="0.001"/>')))
    assert robot.driver('shoulder') == ('shoulder', 1.0, 0.0)
    assert robot.driver('wrist') == ('shoulder', -2.0, 0.5)
    assert robot.driver('jaw').joint == 'shoulder'
    assert robot.driver('jaw')[1:] == pytest.approx((-0.02, 0.006))
    values = robot.joint_values({'shoulder': 0.4, 'wrist': 9.0})
    assert values == pytest.approx({'shoulder': 0.4, 'wrist': -0.3, 'jaw': -0.002})
    assert list(values) == ['shoulder', 'wrist', 'jaw']
    expected = read_urdf(broken((mimic, ''))).link_pose('finger', values)
    np.testing.assert_allclose(robot.link_pose('finger', {'shoulder': 0.4}), expected, rtol=0, atol=1e-15)


def test_joints_without_a_value_rest_within_their_limits():
    robot = read_urdf(broken(('lower="-2" upper="0.5"', 'lower="0.1" upper="0.5"')))
    rest = robot.joint_values({})
    assert rest == pytest.approx({'shoulder': 0.0, 'wrist': 0.3, 'jaw': 0.003})
    np.testing.assert_array_equal(robot.link_pose('finger', {}), robot.link_pose('finger', rest))
    fixed = '"wrist" type="revolute"', '"wrist" type="fixed"'
    robot = read_urdf(broken(fixed, ('multiplier="0.01"', 'multiplier="0.01" offset="0.02"')))
    assert robot.joint_values({'wrist': 3.0}) == {'shoulder': 0.0, 'jaw': 0.02}


@pytest.mark.parametrize('kind', ['planar', 'floating'])
def test_planar_and_floating_joints_stay_at_their_origin(kind):
    robot = read_urdf(broken(('"shoulder" type="revolute"', f'"shoulder" type="{kind}"')))
    assert [joint.name for joint in robot.movable] == ['wrist', 'jaw']
    assert [joint.name for joint in robot.chain('tool', 'upper')] == ['wrist']
    place = robot.link_pose('upper', {'shoulder': 1.0})
    np.testing.assert_array_equal(place, np.eye(4) + 0.1 * np.eye(4)[2][:, None] * np.eye(4)[3])


def test_wrong_values_are_rejected():
    robot = read_urdf(GOOD)
    with pytest.raises(ChainError, match=r'"tol".*did you mean "tool"'):
        robot.link_pose('tol', {})
    for ask in (robot.joint_values, robot.link_poses, lambda values: robot.link_pose('base', values)):
        with pytest.raises(InputError, match=r'"elbow".*"shoulder", "wrist", "jaw"'):
            ask({'elbow': 1.0})
        for value in (math.nan, math.inf, 'much', None):
            with pytest.raises(InputError, match='"wrist"'):
                ask({'wrist': value})
    with pytest.raises(InputError, match='"elbow"'):
        robot.driver('elbow')


def test_what_is_read_cannot_be_changed():
    robot = read_urdf(GOOD)
    assert not robot.joints['wrist'].origin.flags.writeable
    assert not robot.joints['wrist'].axis.flags.writeable
    with pytest.raises(TypeError):
        robot.joints['wrist'] = robot.joints['jaw']
    robot.link_pose('base', {})[...] = 7.0
    robot.link_poses({})['base'][...] = 7.0
    np.testing.assert_array_equal(robot.link_pose('base', {}), np.eye(4))


@pytest.mark.slow
def test_ten_thousand_lines_are_read():
    """A chain of 2,500 joints, each on four lines: nothing recurses, and every pose is finite."""
    count = 2500
    links = '\n'.join(f'<link name="l{i}"/>' for i in range(count + 1))
    joints = '\n'.join(
        f'<joint name="j{i}" type="revolute">\n<parent link="l{i}"/><child link="l{i + 1}"/>\n'
        f'<origin xyz="0.01 0 0"/><axis xyz="0 0 1"/><limit lower="-1" upper="1" velocity="1"/>\n</joint>'
        for i in range(count)
    )
    robot = read_urdf(f'<robot name="snake">\n{links}\n{joints}\n</robot>')
    assert default_tip(robot).link == f'l{count}'
    assert len(robot.chain(f'l{count}')) == count
    turn = [[math.cos(5), -math.sin(5)], [math.sin(5), math.cos(5)]]
    poses = robot.link_poses({f'j{i}': 0.002 for i in range(count)})
    np.testing.assert_allclose(poses[f'l{count}'][:2, :2], turn, rtol=0, atol=1e-9)
