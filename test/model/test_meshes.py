# SPDX-License-Identifier: Apache-2.0
"""Which files the meshes of a description are, and which a description may not name."""

from __future__ import annotations

import json

import numpy as np
import pytest

from ik_node.model.collision import _hull
from ik_node.model.meshes import MeshError, check_mesh, find_mesh, mesh_folder
from ik_node.model.urdf.description import load_description
from ik_node.solver.reachable_directions import fibonacci_sphere

PACKAGE_MESH = 'package://some_arm/meshes/body.stl'
GLTF = '{"asset": {"version": "2.0"}, '
DOUBLED = [{'children': [k + 1, k + 1]} for k in range(40)] + [{'mesh': 0}]
INSTANCES = ''.join(
    f'<node id="n{k}"><instance_node url="#n{k + 1}"/><instance_node url="#n{k + 1}"/></node>' for k in range(40)
)
# Small meshes that would take gigabytes or hours.
BOMBS = {
    'array.gltf': GLTF + '"accessors": [{"componentType": 5126, "count": 300000000, "type": "VEC3"}]}',
    'nodes.gltf': f'{GLTF}"nodes": {json.dumps(DOUBLED)}}}',
    'itself.gltf': GLTF + '"nodes": [{"children": [0]}]}',
    'instances.dae': f'<COLLADA><library_nodes>{INSTANCES}<node id="n40"/></library_nodes></COLLADA>',
    'a.zip': 'PK',
    'a.3mf': 'PK',
}


@pytest.mark.parametrize('name', BOMBS)
def test_a_mesh_that_would_take_much_more_than_its_size_is_left_out(tmp_path, name):
    (tmp_path / name).write_text(BOMBS[name])
    with pytest.raises(MeshError, match=f'"{name}"'):
        check_mesh(tmp_path / name)


@pytest.fixture
def share(tmp_path, monkeypatch):
    """The share folder of an ament prefix with the package some_arm and its mesh; beside it a secret."""
    share = tmp_path / 'prefix' / 'share'
    for file in ('some_arm/meshes/body.stl', 'ament_index/resource_index/packages/some_arm'):
        (share / file).parent.mkdir(parents=True)
        (share / file).touch()
    (tmp_path / 'secret.stl').touch()
    monkeypatch.setenv('AMENT_PREFIX_PATH', f'/nowhere:{share.parent}')
    return share


def test_meshes_are_found_by_any_name(share, tmp_path, monkeypatch):
    package, body = share / 'some_arm', share / 'some_arm' / 'meshes' / 'body.stl'
    link = body.parent / 'arm.stl'
    link.symlink_to(tmp_path / 'secret.stl')  # as with colcon build --symlink-install
    for name in (PACKAGE_MESH, body.as_uri(), str(body), 'package://some_arm/meshes/../meshes/body.stl'):
        assert find_mesh(name) == body
    assert find_mesh('package://some_arm/meshes/arm.stl') == link
    monkeypatch.delenv('AMENT_PREFIX_PATH')
    for name, mesh_path in (
        (PACKAGE_MESH, package),
        (PACKAGE_MESH, share),
        ('meshes/body.stl', package),
        (str(body), package),
    ):
        assert find_mesh(name, mesh_path).samefile(body)
    spaced = package / 'a part.stl'
    spaced.touch()
    for name in (spaced.as_uri(), f'file://{package}/meshes/../a part.stl'):
        assert find_mesh(name, package).samefile(spaced)
    (package / 'again.stl').symlink_to(body)
    assert find_mesh('again.stl', package).samefile(body)


@pytest.mark.slow
@pytest.mark.parametrize('mesh_path', ['', 'chosen'])
@pytest.mark.parametrize(
    'name',
    [
        *('{secret}', 'file://{secret}', 'package:///{secret}', 'package://x/{secret}'),
        *('file://{chosen}/../secret.stl', '{chosen}/../secret.stl', '../secret.stl'),
        *('package://some_arm/../../../secret.stl', 'package://../../secret.stl', 'package://..//secret.stl'),
        *('package://chosen/../secret.stl', 'file://{share}/ament_index/../../../secret.stl'),
        *(
            '{share}/some_arm/../../../secret.stl',
            'link.stl',
            'folder/secret.stl',
            'file://{chosen}/link.stl',
        ),
    ],
)
def test_a_description_cannot_leave_the_folders(tmp_path, share, mesh_path, name):
    chosen, secret = tmp_path / 'chosen', tmp_path / 'secret.stl'
    chosen.mkdir()
    (chosen / 'link.stl').symlink_to(secret)
    (chosen / 'folder').symlink_to(tmp_path)
    given = name.format(secret=secret, chosen=chosen, share=share)
    with pytest.raises(MeshError, match='mesh "') as error:
        find_mesh(given, chosen if mesh_path else '')
    if 'outside' in str(error.value):  # told is which folders are allowed
        assert (str(chosen) in str(error.value).partition('outside')[2]) == bool(mesh_path)


@pytest.mark.parametrize(
    'name',
    [
        'http://localhost/a.stl',
        'file://',
        'package://',
        '',
        '/',
        f'file:///{"x" * 5000}',
        'a\0b',
        '/dev/zero',
    ],
)
def test_what_is_no_file_is_not_found(tmp_path, name):
    for mesh_path in ((), (tmp_path,)):
        with pytest.raises(FileNotFoundError):
            find_mesh(name, *mesh_path)


@pytest.mark.parametrize(
    ('names', 'expected'),
    [
        (('body.stl',), 'ws/some_arm/urdf'),
        (('../meshes/body.stl',), 'ws/some_arm'),
        ((PACKAGE_MESH,), 'ws/some_arm'),
        (('package://other/meshes/hand.stl',), 'ws'),
        ((PACKAGE_MESH, 'body.stl', 'package://some_arm/missing.stl'), 'ws/some_arm'),
        (('package://some_arm/missing.stl',), None),
        (('../../../secret.stl',), None),  # its folder is the home
        ((), None),
    ],
)
def test_the_folder_of_the_meshes_of_a_description(tmp_path, monkeypatch, names, expected):
    monkeypatch.setenv('HOME', str(tmp_path))
    for mesh in ('some_arm/urdf/body.stl', 'some_arm/meshes/body.stl', 'other/meshes/hand.stl'):
        (tmp_path / 'ws' / mesh).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / 'ws' / mesh).touch()
    (tmp_path / 'secret.stl').touch()
    meshes = ''.join(f'<visual><geometry><mesh filename="{name}"/></geometry></visual>' for name in names)
    file = tmp_path / 'ws' / 'some_arm' / 'urdf' / 'arm.urdf'
    file.write_text(f'<robot name="r"><link name="a">{meshes}</link></robot>')
    text = load_description(file)  # which names relative meshes by where they are
    assert mesh_folder(file, text) == (expected and tmp_path / expected)


@pytest.mark.slow
def test_the_hull_of_a_mesh_is_as_far_away_as_the_mesh(tmp_path):
    coal, trimesh = pytest.importorskip('coal'), pytest.importorskip('trimesh')
    trimesh.creation.icosphere(subdivisions=3, radius=0.1).export(tmp_path / 'ball.stl')
    hull = _hull(coal, 'ball.stl', [1.0, 2.0, 1.0], str(tmp_path))
    assert hull.num_polygons > 1000
    for direction in np.random.default_rng(0).normal(size=(50, 3)):
        at = direction / np.linalg.norm(direction) * np.array([1.0, 2.0, 1.0])
        far = coal.Transform3s(np.eye(3), 3.0 * at)
        result = coal.DistanceResult()
        coal.distance(hull, coal.Transform3s(), coal.Sphere(0.01), far, coal.DistanceRequest(), result)
        # Within 1 % of a fine sampling of the ellipsoid's surface.
        surface = 0.1 * fibonacci_sphere(20_000) * np.array([1.0, 2.0, 1.0])
        assert result.min_distance == pytest.approx(np.linalg.norm(surface - 3.0 * at, axis=1).min() - 0.01, rel=0.01)
