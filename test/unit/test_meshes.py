# SPDX-License-Identifier: Apache-2.0
"""Which files the meshes of a description are, and which a description may not name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ik_node.model.meshes import MeshError, check_mesh, find_mesh, mesh_folder
from ik_node.model.urdf.description import load_description

PACKAGE_MESH = 'package://some_arm/meshes/body.stl'


def bomb(kind: str) -> tuple[str, str]:
    """Return the suffix and the text of a small mesh that would take gigabytes or hours."""
    if kind == 'array':
        accessor = {'componentType': 5126, 'count': 300_000_000, 'type': 'VEC3'}
        return '.gltf', json.dumps({'asset': {'version': '2.0'}, 'accessors': [accessor]})
    if kind == 'nodes':
        nodes = [{'children': [k + 1, k + 1]} for k in range(40)] + [{'mesh': 0}]
        return '.gltf', json.dumps({'asset': {'version': '2.0'}, 'nodes': nodes})
    if kind == 'itself':
        return '.gltf', json.dumps({'asset': {'version': '2.0'}, 'nodes': [{'children': [0]}]})
    if kind == 'instances':
        twice = '<instance_node url="#n{0}"/>' * 2
        nodes = ''.join(f'<node id="n{k}">{twice.format(k + 1)}</node>' for k in range(40))
        return '.dae', f'<COLLADA><library_nodes>{nodes}<node id="n40"/></library_nodes></COLLADA>'
    return kind, 'PK'


@pytest.mark.parametrize('kind', ['array', 'nodes', 'itself', 'instances', '.zip', '.3mf'])
def test_a_mesh_that_would_take_much_more_than_its_size_is_left_out(tmp_path, kind):
    suffix, text = bomb(kind)
    (tmp_path / f'bomb{suffix}').write_text(text)
    with pytest.raises(MeshError, match=f'"bomb{suffix}"'):
        check_mesh(tmp_path / f'bomb{suffix}')


@pytest.fixture
def prefix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An ament prefix with the package some_arm and its mesh, in use."""
    prefix = tmp_path / 'prefix'
    meshes = prefix / 'share' / 'some_arm' / 'meshes'
    meshes.mkdir(parents=True)
    (meshes / 'body.stl').touch()
    index = prefix / 'share' / 'ament_index' / 'resource_index' / 'packages'
    index.mkdir(parents=True)
    (index / 'some_arm').touch()
    monkeypatch.setenv('AMENT_PREFIX_PATH', f'/nowhere:{prefix}')
    return prefix


@pytest.fixture
def body(prefix: Path) -> Path:
    return prefix / 'share' / 'some_arm' / 'meshes' / 'body.stl'


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """A file that no description may name."""
    (tmp_path / 'secret.stl').touch()
    return tmp_path / 'secret.stl'


def test_meshes_of_installed_packages_are_found_by_any_name(body: Path) -> None:
    assert find_mesh(PACKAGE_MESH) == body
    assert find_mesh(body.as_uri()) == body
    assert find_mesh(str(body)) == body
    assert find_mesh('package://some_arm/meshes/../meshes/body.stl') == body


def test_links_that_colcon_made_are_followed(prefix: Path, secret: Path) -> None:
    link = prefix / 'share' / 'some_arm' / 'meshes' / 'arm.stl'
    link.symlink_to(secret)  # as with colcon build --symlink-install
    assert find_mesh('package://some_arm/meshes/arm.stl') == link


def test_meshes_in_mesh_path_are_found(body: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv('AMENT_PREFIX_PATH')
    package = body.parents[1]
    assert find_mesh(PACKAGE_MESH, package).samefile(body)
    assert find_mesh(PACKAGE_MESH, package.parent).samefile(body)
    assert find_mesh('meshes/body.stl', package).samefile(body)
    assert find_mesh(str(body), package).samefile(body)
    spaced = package / 'a part.stl'
    spaced.touch()
    assert find_mesh(spaced.as_uri(), package).samefile(spaced)
    assert find_mesh(f'file://{package}/meshes/../a part.stl', package).samefile(spaced)
    (package / 'again.stl').symlink_to(body)
    assert find_mesh('again.stl', package).samefile(body)


@pytest.mark.usefixtures('prefix')
@pytest.mark.parametrize('mesh_path', ['', 'chosen'])
@pytest.mark.parametrize(
    'name',
    [
        '{secret}',
        'file://{secret}',
        'file://{chosen}/../secret.stl',
        '{chosen}/../secret.stl',
        '../secret.stl',
        'package://some_arm/../../../secret.stl',
        'package://../../secret.stl',
        'package://..//secret.stl',
        'package://chosen/../secret.stl',
        'package:///{secret}',
        'package://x/{secret}',
        'file://{share}/ament_index/../../../secret.stl',
        '{share}/some_arm/../../../secret.stl',
        'link.stl',
        'folder/secret.stl',
        'file://{chosen}/link.stl',
    ],
)
def test_a_description_cannot_leave_the_folders(
    tmp_path: Path, prefix: Path, secret: Path, mesh_path: str, name: str
) -> None:
    chosen = tmp_path / 'chosen'
    chosen.mkdir()
    (chosen / 'link.stl').symlink_to(secret)
    (chosen / 'folder').symlink_to(tmp_path)
    given = name.format(secret=secret, chosen=chosen, share=prefix / 'share')
    with pytest.raises(MeshError, match='mesh "') as error:
        find_mesh(given, chosen if mesh_path else '')
    if 'outside' in str(error.value):  # told is which folders are allowed
        assert str(error.value).endswith(f'ROS packages and {chosen}' if mesh_path else 'ROS packages')


@pytest.mark.parametrize(
    'name',
    [
        'http://localhost/body.stl',
        'file://',
        'package://',
        '',
        '/',
        f'file:///{"x" * 5000}',
        'a\0b',
        '/dev/zero',
    ],
)
def test_what_is_no_file_is_not_found(tmp_path: Path, name: str) -> None:
    with pytest.raises(FileNotFoundError):
        find_mesh(name, tmp_path)
    with pytest.raises(FileNotFoundError):
        find_mesh(name)


# The mesh_path for a file that the user named


def robot(*names: str) -> str:
    meshes = ''.join(f'<visual><geometry><mesh filename="{name}"/></geometry></visual>' for name in names)
    return f'<robot name="r"><link name="a">{meshes}</link></robot>'


@pytest.mark.parametrize(
    ('names', 'expected'),
    [
        (('body.stl',), 'ws/some_arm/urdf'),
        (('../meshes/body.stl',), 'ws/some_arm'),
        ((PACKAGE_MESH,), 'ws/some_arm'),
        (('package://other/meshes/hand.stl',), 'ws'),
        ((PACKAGE_MESH, 'body.stl', 'package://some_arm/missing.stl'), 'ws/some_arm'),
        (('package://some_arm/missing.stl',), None),
        ((), None),
    ],
)
def test_the_folder_of_the_meshes_of_a_description(tmp_path: Path, names, expected) -> None:
    for mesh in ('some_arm/urdf/body.stl', 'some_arm/meshes/body.stl', 'other/meshes/hand.stl'):
        (tmp_path / 'ws' / mesh).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / 'ws' / mesh).touch()
    file = tmp_path / 'ws' / 'some_arm' / 'urdf' / 'arm.urdf'
    file.write_text(robot(*names))
    text = load_description(file)  # which names relative meshes by where they are
    folder = mesh_folder(file, text)
    assert folder == (expected and tmp_path / expected)


def test_the_folder_of_the_meshes_is_not_the_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv('HOME', str(tmp_path))
    (tmp_path / 'arm').mkdir()
    (tmp_path / 'secret.stl').touch()
    file = tmp_path / 'arm' / 'arm.urdf'
    file.write_text(robot('../secret.stl'))
    assert mesh_folder(file, load_description(file)) is None
