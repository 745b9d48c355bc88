"""What xacro cannot expand is told with its file, its line and what would be right."""

from __future__ import annotations

from pathlib import Path

import pytest

from ik_node.errors import XacroError
from ik_node.model.urdf import load_description

HEAD = '<robot xmlns:xacro="http://www.ros.org/wiki/xacro" name="arm">\n'
BOMB = ''.join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10}">' for i in range(1, 12))
OTHERS = {
    'limb.xacro': HEAD
    + '<xacro:macro name="limb" params="a">\n\n  <link name="${bar}${a}"/>\n</xacro:macro></robot>',
    'again.xacro': f'{HEAD}<xacro:include filename="again.xacro"/></robot>',
    'bomb.xacro': f'<!DOCTYPE robot [<!ENTITY l0 "ha">{BOMB}]><robot name="&l11;"/>',
    'cut.xacro': f'{HEAD}<link name="a"/>\n',
}

# by what is between HEAD and </robot>: where it is told to be, and with what words
FAULTS: dict[str, tuple[str, list[str]]] = {
    '<link\n name="a${2 *  foo}"/>': (
        'arm.xacro: line 3, "name="a${2 *  foo}"/>"',
        ["'foo' is not defined", '<xacro:property name="foo" value="..."/>'],
    ),
    '<link name="${1/0}"/><link/>\n<link name="${1/0}"/>': (
        'arm.xacro: lines 2, 3',
        ['division by zero', 'a divisor other than zero'],
    ),
    '\n<link name="${1 &lt; foo}"/>': ('arm.xacro: line 3', ["'foo' is not defined"]),
    '<xacro:property name="q" value="${r}"/>\n<link name="${q}"/>': ('arm.xacro: line 2', ["'r' is not"]),
    '\n<link name="$(arg width)"/>': (
        'arm.xacro: line 3',
        ['substitution argument width', '<xacro:arg name="width" default="..."/>'],
    ),
    '<xacro:arg name="width"/>': ('arm.xacro: line 2', ['a default="..."']),
    '\n<xacro:include filename="$(find nopkg)/a.xacro"/>': (
        'arm.xacro: line 3',
        ['$(find nopkg) found nothing', 'source the ROS workspace', 'a path relative'],
    ),
    '<xacro:include filename="limb.xacro"/>\n<xacro:limb a="1"/>': (
        'limb.xacro: line 4, "<link name="${bar}${a}"/>"',
        ["'bar' is not defined"],
    ),
    '<xacro:include filename="limb.xacro"/>\n<xacro:limp a="1"/>': (
        'arm.xacro: line 3',
        ['xacro:limp', 'did you mean "limb"?'],
    ),
    '<xacro:include filename="limb.xacro"/>\n<xacro:limb/>': ('arm.xacro: line 3', ['parameters [a]']),
    '\n<xacro:include filename="none.xacro"/>': ('arm.xacro: line 3', ['No such file', 'none.xacro']),
    '<xacro:include filename="again.xacro"/>': (
        'again.xacro: line 2',
        ['includes itself without end', 'take'],
    ),
    '<xacro:include filename="bomb.xacro"/>': (
        'bomb.xacro: xacro cannot',
        ['amplification', 'remove <!DOCTYPE> from this file'],
    ),
    '<xacro:include filename="cut.xacro"/>': ('cut.xacro: xacro cannot', ['no element found: line 3']),
    '<xacro:macro name="limb"><link/>\n<xacro:limb/></xacro:macro>\n<xacro:limb/>': (
        'arm.xacro: line 2, "<xacro:macro name="limb">',
        ['macro "limb" calls itself without end', '<xacro:if value="...">'],
    ),
    '<link name="$(env NO_SUCH)"/>': ('arm.xacro: line 2', ["'NO_SUCH' is not set"]),
}


@pytest.mark.parametrize('body', FAULTS)
@pytest.mark.parametrize('prefix', ['', '/nowhere'])
def test_the_place_is_named(body: str, prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv('AMENT_PREFIX_PATH', prefix)
    for name, text in OTHERS.items():
        (tmp_path / name).write_text(text)
    (tmp_path / 'arm.xacro').write_text(f'{HEAD}{body}\n</robot>')
    with pytest.raises(XacroError) as caught:
        load_description(tmp_path / 'arm.xacro')
    where, words = FAULTS[body]
    said = str(caught.value)
    assert said.removeprefix(f'{tmp_path}/').removeprefix(f'{tmp_path}').startswith(where), said
    assert [word for word in words if word not in said] == [], said
    assert '\n' not in said
    assert '<class' not in said


def test_a_file_that_ends_too_early(tmp_path: Path) -> None:
    (tmp_path / 'arm.xacro').write_text(HEAD)
    with pytest.raises(XacroError, match=r'arm.xacro: .* no element found: line 2, column 0'):
        load_description(tmp_path / 'arm.xacro')
