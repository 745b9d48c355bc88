# SPDX-License-Identifier: Apache-2.0
"""Files of every encoding, and xacro."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hostile import GOOD

from ik_node.cli.arguments import arm_parser, read_arm
from ik_node.errors import (
    ElementError,
    FileError,
    InputError,
    XacroError,
    XmlError,
)
from ik_node.model.arm import Arm
from ik_node.model.urdf.reader import load_description, read_urdf

LIMIT = '<limit lower="-1" upper="1.5" velocity="2" effort="5"/>'
JAW_MIMIC = '<mimic joint="wrist" multiplier="0.01"/>'
JAW_LIMIT = '<limit lower="-0.03" upper="0.03" velocity="0.2" effort="5"/>'


def test_unexpanded_xacro_is_found_among_many_attributes():
    many = ' '.join(
        f'a{k}="{k}"' for k in range(100_000)
    )  # one lookup among all for each would take a minute
    with pytest.raises(XacroError, match='unexpanded'):
        read_urdf(f'<robot name="r"><link name="a" {many} last="${{x}}"/></robot>')


def test_xacro_arguments_are_names_and_values_and_those_that_a_file_lacks_are_named(tmp_path):
    file = tmp_path / 'arm.urdf.xacro'
    file.write_text(
        '<robot name="r" xmlns:xacro="http://www.ros.org/wiki/xacro"><xacro:arg name="dof" default="1"/>'
        '<link name="a"/><link name="b"/><joint name="$(arg joint)" type="continuous"><parent link="a"/>'
        '<child link="b"/></joint><xacro:if value="${\'$(arg dof)\' == \'2\'}"><link name="c"/>'
        '<joint name="k" type="continuous"><parent link="b"/><child link="c"/></joint></xacro:if></robot>'
    )
    for given in ({'dof': 2, 'joint': 'j'}, 'dof:=2 joint:=j'):
        assert Arm.from_file(file, xacro_args=given).joint_names == ('j', 'k')
    with pytest.raises(XacroError, match='joint:=VALUE'):
        Arm.from_file(file)
    with pytest.raises(XacroError, match=r'"joints"; it has "dof", "joint" \(did you mean "joint"'):
        Arm.from_file(file, xacro_args='joint:=j joints:=k')
    for words in (['dof:=2', 'joint:=j k', str(file)], [str(file), 'joint:=j k', 'dof:=2']):
        assert read_arm(arm_parser('').parse_args(words)).joint_names == ('j k', 'k')


def test_files(tmp_path: Path) -> None:
    (tmp_path / 'arm.urdf').write_text(GOOD)
    assert load_description(tmp_path / 'arm.urdf') == GOOD
    with pytest.raises(
        FileError, match=r'No such file.*descriptions in this folder: "arm.urdf" \(did you mean "arm.urdf"'
    ):
        load_description(str(tmp_path / 'arn.urdf'))
    with pytest.raises(FileError, match='directory'):
        load_description(tmp_path)
    with pytest.raises(FileError, match=r'^a\\x00b\\n\.urdf: .*null'):
        load_description('a\0b\n.urdf')
    with pytest.raises(InputError, match=r'not a \.xacro file, so it takes no xacro arguments, got "length"'):
        load_description(tmp_path / 'arm.urdf', {'length': '1'})


@pytest.mark.parametrize('name', ['arm.urdf', 'arm.xacro'])
def test_meshes_beside_the_file_are_named_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """RViz gets the text by topic: a name relative to the file would mean nothing to it."""
    folder = tmp_path / 'my arm & co'
    (folder / 'assets').mkdir(parents=True)
    mesh = folder / 'assets' / 'a part.stl'
    mesh.touch()
    monkeypatch.chdir(tmp_path)
    others = (
        'assets/none.stl',
        'long' * 1000,
        'assets',
        'package://none/a.stl',
        '/none/a.stl',
        'http://example.org/a.stl',
    )
    visuals = ''.join(
        f'<visual><geometry>\n<mesh scale="1 1 1" filename="{filename}"/></geometry></visual>'
        for filename in ('assets/a part.stl', *others)
    )
    (folder / name).write_text(GOOD.replace('<link name="tool"/>', f'<link name="tool">{visuals}</link>'))
    text = load_description(Path('my arm & co') / name)
    found, *rest = re.findall(r'filename="(.*?)"', text)
    assert found == mesh.as_uri()
    assert tuple(rest) == others
    assert not [
        warning for warning in read_urdf(text).warnings if 'a part' in warning or 'a%20part' in warning
    ]


def test_meshes_that_are_not_beside_the_file_are_a_warning(shared: Path, tmp_path: Path) -> None:
    """A bare copy of an arm: RViz would show errors and no arm."""
    copy = tmp_path / 'so101.urdf'
    copy.write_bytes((shared / 'arms' / 'so101.urdf').read_bytes())
    names = re.findall(r'<mesh filename="(.*?)"', copy.read_text())
    assert names[0].startswith('assets/')
    told = [warning for warning in read_urdf(load_description(copy)).warnings if 'meshes' in warning]
    assert len(told) == 1
    assert told[0].startswith(f'meshes are not found; kinematics does not need them: {names[0]} of link "')
    assert told[0].endswith(f' and {len(names) - 1} more')
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert not [warning for warning in read_urdf(load_description(copy)).warnings if 'meshes' in warning]


@pytest.mark.parametrize(
    'filename',
    [
        'package://arm/../../secret.stl',
        'package://arm/%2e%2e/a.stl',
        'file:///a%00b.stl',
        'package:///etc/passwd',
        '',
        'file://',
        '//',
        'a' * 5000,
    ],
)
def test_odd_names_of_meshes_are_missing_or_nothing(
    filename: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No package reaches beyond its own folder, and no name is an error."""
    (tmp_path / 'share' / 'arm').mkdir(parents=True)
    (tmp_path / 'secret.stl').touch()
    monkeypatch.setenv('AMENT_PREFIX_PATH', str(tmp_path))
    mesh = f'<visual><geometry><mesh filename="{filename}"/></geometry></visual>'
    robot = read_urdf(GOOD.replace('<link name="tool"/>', f'<link name="tool">{mesh}</link>'))
    assert len(robot.warnings) == (filename not in ('', 'file://', '//'))


@pytest.mark.parametrize('path', [None, 5, b'arm.urdf', ['arm.urdf']])
def test_what_is_not_a_path_is_rejected(path: object) -> None:
    for read in (load_description, Arm.from_file):
        with pytest.raises(InputError) as caught:
            read(path)
        assert str(caught.value).endswith(f'must be a str or os.PathLike, got {path!r}')


@pytest.mark.parametrize(
    ('declaration', 'encoding'),
    [
        ('', 'utf-8'),
        ('', 'utf-8-sig'),
        ('<?xml version="1.0" encoding="ISO-8859-1"?>', 'latin-1'),
        ("<?xml version='1.0' encoding='utf-16'?>", 'utf-16'),
    ],
)
def test_encodings(tmp_path: Path, declaration: str, encoding: str) -> None:
    file = tmp_path / 'arm.urdf'
    file.write_bytes((declaration + GOOD.replace('"arm"', '"Jan\u00e9"')).encode(encoding))
    assert read_urdf(load_description(file)).name == 'Jan\u00e9'


@pytest.mark.parametrize(
    ('data', 'words'),
    [
        (b'<robot name="\xff"/>', 'cannot be decoded as utf-8 .*save it as UTF-8'),
        (b'<?xml version="1.0" encoding="klingon"?><robot/>', 'cannot be decoded as klingon'),
        (b'\xff\xfe<', 'cannot be decoded as utf-16'),
    ],
)
def test_files_that_are_no_text(tmp_path: Path, data: bytes, words: str) -> None:
    file = tmp_path / 'arm.urdf'
    file.write_bytes(data)
    with pytest.raises(FileError, match=words):
        load_description(file)


XACRO = """<?xml version="1.0"?>
<robot xmlns:xacro="http://www.ros.org/wiki/xacro" name="grown">
  <xacro:arg name="length" default="0.25"/>
  <xacro:property name="l" value="$(arg length)"/>
  <xacro:macro name="bone" params="name"><link name="${name}"/></xacro:macro>
  <xacro:bone name="a"/>
  <xacro:bone name="b"/>
  <joint name="j" type="continuous">
    <parent link="a"/><child link="b"/><origin xyz="0 0 ${2 * l}"/><limit velocity="1" effort="1"/>
  </joint>
</robot>
"""


def test_xacro_is_expanded(tmp_path: Path) -> None:
    file = tmp_path / 'grown.urdf.xacro'
    file.write_text(XACRO)
    robot = read_urdf(load_description(file))
    assert (robot.name, robot.links, robot.warnings) == ('grown', ('a', 'b'), ())
    assert robot.joints['j'].origin[2, 3] == 0.5
    longer = read_urdf(load_description(file, {'length': '2'}))
    assert longer.joints['j'].origin[2, 3] == 4.0
    assert read_urdf(load_description(file)).joints['j'].origin[2, 3] == 0.5


def test_xacro_includes_what_lies_beside_it(tmp_path: Path) -> None:
    (tmp_path / 'grown.xacro').write_text(
        XACRO.replace('<xacro:bone name="b"/>', '<xacro:include filename="b.xml"/>')
    )
    (tmp_path / 'b.xml').write_text('<robot><link name="b"/></robot>')
    assert read_urdf(load_description(tmp_path / 'grown.xacro')).links == ('a', 'b')


def test_entities_in_xacro_are_rejected(tmp_path: Path) -> None:
    (tmp_path / 'arm.xacro').write_text('<!DOCTYPE robot [<!ENTITY arm "ha">]>\n<robot name="&arm;"/>')
    with pytest.raises(XmlError, match=r'<!DOCTYPE> \(line 1\)'):
        load_description(tmp_path / 'arm.xacro')


def test_errors_in_the_text_of_a_file_name_it(tmp_path: Path) -> None:
    (tmp_path / 'arm.urdf').write_text('<robot name="a">')
    (tmp_path / 'arm.xacro').write_text('<robot name="a"/>')
    with pytest.raises(XmlError, match=r'arm\.urdf: malformed XML at line 1'):
        Arm.from_file(tmp_path / 'arm.urdf')
    with pytest.raises(ElementError, match=r'arm\.xacro, expanded: <robot name="a"> .* has no <link>'):
        Arm.from_file(str(tmp_path / 'arm.xacro'))
