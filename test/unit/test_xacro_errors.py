# SPDX-License-Identifier: Apache-2.0
"""What xacro cannot expand is reported with its file, xacro's own words and a remedy, in one line."""

from __future__ import annotations

from pathlib import Path

import pytest
import xacro

from ik_node.errors import XacroError
from ik_node.model.urdf.description import load_description
from ik_node.model.urdf.xacro_errors import explain

HEAD = '<robot xmlns:xacro="http://www.ros.org/wiki/xacro" name="arm">\n'
BOMB = ''.join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10}">' for i in range(1, 12))
OTHERS = {
    'limb.xacro': HEAD
    + '<xacro:macro name="limb" params="a">\n\n  <link name="${bar}${a}"/>\n</xacro:macro></robot>',
    'again.xacro': f'{HEAD}<xacro:include filename="again.xacro"/></robot>',
    'bomb.xacro': f'<!DOCTYPE robot [<!ENTITY l0 "ha">{BOMB}]><robot name="&l11;"/>',
    'cut.xacro': f'{HEAD}<link name="a"/>\n',
}

# by what is between HEAD and </robot>: the file that is named, and with what words
FAULTS: dict[str, tuple[str, list[str]]] = {
    '<link\n name="a${2 *  foo}"/>': (
        'arm.xacro',
        [
            "'foo' is not defined",
            "when evaluating expression '2 * foo'",
            '<xacro:property name="foo" value="..."/>',
        ],
    ),
    '<link name="${1/0}"/>': ('arm.xacro', ['division by zero', "'1/0'"]),
    '<xacro:property name="q" value="${r}"/>\n<link name="${q}"/>': ('arm.xacro', ["'r' is not defined"]),
    '\n<link name="$(arg width)"/>': (
        'arm.xacro',
        ['substitution argument width', '<xacro:arg name="width" default="..."/>'],
    ),
    '<xacro:arg name="width"/>': ('arm.xacro', ["missing attribute 'default'"]),
    '\n<xacro:include filename="$(find nopkg)/a.xacro"/>': (
        'arm.xacro',
        ['source the ROS workspace that has the package of $(find PACKAGE)', 'a path relative'],
    ),
    '<xacro:include filename="limb.xacro"/>\n<xacro:limb a="1"/>': ('arm.xacro', ["'bar' is not defined"]),
    '<xacro:include filename="limb.xacro"/>\n<xacro:limp a="1"/>': (
        'arm.xacro',
        ['unknown macro name: xacro:limp', '<xacro:macro name="limp"> above'],
    ),
    '<xacro:include filename="limb.xacro"/>\n<xacro:limb/>': ('arm.xacro', ['parameters [a]']),
    '\n<xacro:include filename="none.xacro"/>': ('arm.xacro', ['No such file', 'none.xacro']),
    '<xacro:include filename="again.xacro"/>': ('again.xacro', ['recurse without end']),
    '<xacro:include filename="bomb.xacro"/>': ('bomb.xacro', ['amplification']),
    '<xacro:include filename="cut.xacro"/>': ('cut.xacro', ['no element found: line 3']),
    '<xacro:macro name="limb"><link/>\n<xacro:limb/></xacro:macro>\n<xacro:limb/>': (
        'arm.xacro',
        ['recurse without end'],
    ),
    '<link name="$(env NO_SUCH)"/>': ('arm.xacro', ["'NO_SUCH' is not set"]),
    '<property name="foo" value="1"/>\n<link name="${foo}"/>': (
        'arm.xacro',
        ['<property name="foo">', 'arm.xacro, line 2, lacks the prefix: write <xacro:property ...>'],
    ),
    '<macro\n name="leg" params="a"><link name="b"/></macro><xacro:leg a="1"/>': (
        'arm.xacro',
        ['<macro name="leg">', 'line 2, lacks the prefix: write <xacro:macro ...>'],
    ),
    f'<link name="${{{"9" * 5000} + foo}}"/>': ('arm.xacro', ['... (', 'characters)']),
}


@pytest.mark.parametrize('body', FAULTS)
@pytest.mark.parametrize('prefix', ['', '/nowhere'])
def test_the_file_is_named_with_what_is_wrong(
    body: str, prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv('AMENT_PREFIX_PATH', prefix)
    for name, text in OTHERS.items():
        (tmp_path / name).write_text(text)
    (tmp_path / 'arm.xacro').write_text(f'{HEAD}{body}\n</robot>')
    with pytest.raises(XacroError) as caught:
        load_description(tmp_path / 'arm.xacro')
    where, words = FAULTS[body]
    said = str(caught.value)
    assert said.startswith(f'{tmp_path / where}: xacro cannot expand it: '), said
    assert [word for word in words if word not in said] == [], said
    assert said.isprintable()
    assert len(said) < 1500
    assert '<class' not in said


def test_a_file_that_ends_too_early(tmp_path: Path) -> None:
    (tmp_path / 'arm.xacro').write_text(HEAD)
    with pytest.raises(XacroError, match=r'arm.xacro: .* no element found: line 2, column 0'):
        load_description(tmp_path / 'arm.xacro')


def test_a_xacro_that_keeps_no_file_stack_still_gets_its_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing but process_file is needed of xacro."""
    (tmp_path / 'arm.xacro').write_text(f'{HEAD}<link name="${{foo}}"/></robot>')
    with pytest.raises(xacro.XacroException) as raised:
        xacro.process_file(str(tmp_path / 'arm.xacro'))
    monkeypatch.delattr(xacro, 'filestack')
    said = explain(tmp_path / 'arm.xacro', raised.value)
    assert said.startswith(f"{tmp_path / 'arm.xacro'}: xacro cannot expand it: name 'foo' is not defined")
