# SPDX-License-Identifier: Apache-2.0
"""The shapes that the viewer draws for a robot."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import trimesh
from shared_files import shared_names, shared_path

from ik_node.model.urdf.reader import read_urdf
from ik_node.viewer.scene.visuals import Drawing, draw


def kinds(drawing: Drawing, link: str) -> list[str]:
    return [shape.kind for shape in drawing.shapes if shape.link == link]


def visual(geometry: str, material: str = '', origin: str = '') -> str:
    return f'<visual>{origin}<geometry>{geometry}</geometry>{material}</visual>'


def two_links(first: str, second: str = '') -> str:
    return (
        f'<robot name="two"><material name="sky"><color rgba="0 0.5 1 1"/></material>'
        f'<link name="a">{first}</link><link name="b">{second}</link>'
        '<joint name="j" type="revolute"><parent link="a"/><child link="b"/><origin xyz="0 0 0.5"/>'
        '<axis xyz="0 1 0"/><limit lower="-1" upper="1" velocity="1" effort="1"/></joint></robot>'
    )


def drawn(text: str, mesh_path: str = '') -> Drawing:
    return draw(text, read_urdf(text), 'b', mesh_path)


@pytest.mark.parametrize('name', shared_names('arms'))
def test_every_real_arm_is_visible(name: str, arms_index: dict[str, Any]) -> None:
    text = shared_path('arms', name).read_text()
    robot = read_urdf(text)
    tip = arms_index[Path(name).stem]['tips'][0]['tip_link']
    drawing = draw(text, robot, tip)
    poses = {link: robot.link_pose(link, {}) for link in robot.links}
    places = np.array([(poses[shape.link] @ shape.pose)[:3, 3] for shape in drawing.shapes])
    assert len(places) >= 5
    assert np.ptp(places, axis=0).max() > 0.2 * drawing.extent


@pytest.mark.parametrize(
    ('geometry', 'said'),
    [
        ('<box size="0.1 0.2"/>', 'a box cannot have the size'),
        ('<box size="1 1 1 1"/>', 'a box cannot have the size'),
        ('<box size="1 1 inf"/>', 'a box cannot have the size'),
        ('<sphere radius="-1"/>', 'a sphere cannot have the size'),
        ('<cylinder radius="nan" length="1"/>', 'a cylinder cannot have the size'),
    ],
)
def test_a_shape_that_cannot_be_drawn_is_told(geometry: str, said: str) -> None:
    drawing = drawn(two_links(visual(geometry), visual('<sphere radius="0.2"/>')))
    assert any(said in warning for warning in drawing.warnings), drawing.warnings
    assert kinds(drawing, 'b') == ['sphere']


def test_primitives_keep_size_place_and_colour() -> None:
    origin = '<origin xyz="1 2 3" rpy="0 0 1.5707963267948966"/>'
    text = two_links(
        visual('<box size="0.1 0.2 0.3"/>', '<material name="sky"/>', origin)
        + visual(
            '<cylinder radius="0.1" length="0.4"/>', '<material name="x"><color rgba="1 0 0 1"/></material>'
        ),
        visual('<sphere radius="0.2"/>'),
    )
    box, cylinder, sphere = drawn(text).shapes
    assert (box.kind, box.size, box.colour, box.link) == ('box', (0.1, 0.2, 0.3), (0, 128, 255), 'a')
    assert np.allclose(box.pose @ (1.0, 0.0, 0.0, 1.0), (1.0, 3.0, 3.0, 1.0))
    assert (cylinder.kind, cylinder.size, cylinder.colour) == ('cylinder', (0.1, 0.4), (255, 0, 0))
    assert (sphere.kind, sphere.size, sphere.link) == ('sphere', (0.2,), 'b')


def test_meshes_are_found_scaled_and_coloured(tmp_path: Path) -> None:
    trimesh.creation.box((1.0, 2.0, 3.0)).export(tmp_path / 'body.stl')
    mesh = '<mesh filename="package://some_arm/body.stl" scale="0.1 0.1 0.01"/>'
    text = two_links(visual(mesh, '<material name="sky"/>'))
    missing = drawn(text)
    assert 'some_arm' in missing.warnings[0]
    assert kinds(missing, 'a') == ['cylinder', 'cylinder'], 'a stick and the mark of the joint'
    (shape,) = drawn(text, str(tmp_path)).shapes
    assert shape.mesh is not None
    assert np.allclose(shape.mesh.extents, (0.1, 0.2, 0.03))
    assert shape.colour == (0, 128, 255)
    assert not shape.has_own_colours


def test_a_description_cannot_name_files_elsewhere(tmp_path: Path) -> None:
    trimesh.creation.box().export(tmp_path / 'secret.stl')
    (tmp_path / 'meshes').mkdir()
    name = tmp_path / 'secret.stl'
    for given in (
        str(name),
        name.as_uri(),
        f'file://{tmp_path}/meshes/../secret.stl',
        'package://x/../secret.stl',
    ):
        drawing = drawn(two_links(visual(f'<mesh filename="{given}"/>')), str(tmp_path / 'meshes'))
        assert {shape.kind for shape in drawing.shapes} == {'cylinder'}, 'sticks'
        assert 'secret.stl' in drawing.warnings[0]


def test_missing_meshes_are_told_in_one_line() -> None:
    parts = [visual(f'<mesh filename="package://some_arm/{name}.stl"/>') for name in ('body', 'hand', 'jaw')]
    (said,) = drawn(two_links(''.join(parts))).warnings
    assert said.startswith('mesh "package://some_arm/body.stl" not found and 2 more; ik_demo')


def test_a_mesh_with_its_own_colours_keeps_them(tmp_path: Path) -> None:
    box = trimesh.creation.box()
    box.visual.face_colors = [10, 20, 30, 255]
    box.export(tmp_path / 'box.ply')
    mesh = f'<mesh filename="file://{tmp_path}/box.ply"/>'
    (own,) = drawn(two_links(visual(mesh)), str(tmp_path)).shapes
    assert own.has_own_colours
    (painted,) = drawn(two_links(visual(mesh, '<material name="sky"/>')), str(tmp_path)).shapes
    assert (painted.has_own_colours, painted.colour) == (False, (0, 128, 255))


def test_a_mesh_in_centimetres_is_shown_in_metres(tmp_path: Path) -> None:
    text = trimesh.exchange.dae.export_collada(trimesh.creation.box((10.0, 20.0, 30.0))).decode()
    (tmp_path / 'box.dae').write_text(text.replace('</asset>', '<unit meter="0.01" name="cm"/></asset>'))
    mesh = f'<mesh filename="file://{tmp_path}/box.dae"/>'
    (shape,) = drawn(two_links(visual(mesh)), str(tmp_path)).shapes
    assert shape.mesh is not None
    assert np.allclose(shape.mesh.extents, (0.1, 0.2, 0.3))


def test_a_broken_mesh_costs_only_itself(tmp_path: Path) -> None:
    (tmp_path / 'broken.stl').write_bytes(b'solid nonsense\x00\xff')
    (tmp_path / 'broken.dae').write_text('<COLLADA><')
    text = two_links(
        visual(f'<mesh filename="{tmp_path}/broken.stl"/>')
        + visual(f'<mesh filename="{tmp_path}/broken.dae"/>'),
        visual('<sphere radius="0.2"/>'),
    )
    drawing = drawn(text, str(tmp_path))
    assert len(drawing.warnings) >= 1
    assert 'broken' not in drawing.warnings[0] or 'mesh_path' not in drawing.warnings[0], 'it was not read'
    assert set(kinds(drawing, 'a')) == {'cylinder'}
    assert kinds(drawing, 'b') == ['sphere']
