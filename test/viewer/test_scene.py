# SPDX-License-Identifier: Apache-2.0
"""What the viewer draws for a robot, the trail of its tool, and what a click hits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import trimesh
import viser
from shared_files import shared_path

from ik_node.model.urdf.reader import read_urdf
from ik_node.viewer.scene import Drawing, Trail, draw, hits

SKY = '<material name="sky"/>'


def kinds(drawing: Drawing, link: str) -> list[str]:
    return [shape.kind for shape in drawing.shapes if shape.link == link]


def visual(geometry: str, material: str = '', origin: str = '') -> str:
    return f'<visual>{origin}<geometry>{geometry}</geometry>{material}</visual>'


def mesh(name: object, more: str = '') -> str:
    return f'<mesh filename="{name}" {more}/>'


def drawn(first: str, second: str = '', folder: object = '') -> Drawing:
    """Two links with what is seen of them; folder: of the meshes."""
    text = (
        f'<robot name="two"><material name="sky"><color rgba="0 0.5 1 1"/></material>'
        f'<link name="a">{first}</link><link name="b">{second}</link>'
        '<joint name="j" type="revolute"><parent link="a"/><child link="b"/><origin xyz="0 0 0.5"/>'
        '<axis xyz="0 1 0"/><limit lower="-1" upper="1" velocity="1" effort="1"/></joint></robot>'
    )
    return draw(text, read_urdf(text), 'b', str(folder))


@pytest.mark.parametrize('name', ['so101', 'omx_f', 'magician_rail', 'dual_xarm5', 'ur5e'])
def test_a_real_arm_without_its_meshes_is_visible(name: str, arms_index: dict[str, Any]) -> None:
    text = shared_path('arms', f'{name}.urdf').read_text()
    robot = read_urdf(text)
    drawing = draw(text, robot, arms_index[name]['tips'][0]['tip_link'])
    poses = {link: robot.link_pose(link, {}) for link in robot.links}
    places = np.array([(poses[shape.link] @ shape.pose)[:3, 3] for shape in drawing.shapes])
    assert len(places) >= 5
    assert np.ptp(places, axis=0).max() > 0.2 * drawing.extent


@pytest.mark.parametrize(
    'geometry',
    [
        '<box size="0.1 0.2"/>',
        '<box size="1 1 1 1"/>',
        '<box size="1 1 inf"/>',
        '<sphere radius="-1"/>',
        '<cylinder radius="nan" length="1"/>',
    ],
)
def test_a_shape_that_cannot_be_drawn_is_told(geometry: str) -> None:
    drawing = drawn(visual(geometry), visual('<sphere radius="0.2"/>'))
    kind = geometry[1:].partition(' ')[0]
    assert any(f'a {kind} cannot' in warning for warning in drawing.warnings), drawing.warnings
    assert kinds(drawing, 'b') == ['sphere']


def test_primitives_keep_size_place_and_colour() -> None:
    origin = '<origin xyz="1 2 3" rpy="0 0 1.5707963267948966"/>'
    red = '<material name="x"><color rgba="1 0 0 1"/></material>'
    box, cylinder, sphere = drawn(
        visual('<box size="0.1 0.2 0.3"/>', SKY, origin) + visual('<cylinder radius="0.1" length="0.4"/>', red),
        visual('<sphere radius="0.2"/>'),
    ).shapes
    assert (box.kind, box.size, box.colour, box.link) == ('box', (0.1, 0.2, 0.3), (0, 128, 255), 'a')
    assert np.allclose(box.pose @ (1.0, 0.0, 0.0, 1.0), (1.0, 3.0, 3.0, 1.0))
    assert (cylinder.kind, cylinder.size, cylinder.colour) == ('cylinder', (0.1, 0.4), (255, 0, 0))
    assert (sphere.kind, sphere.size, sphere.link) == ('sphere', (0.2,), 'b')


def test_meshes_are_found_scaled_and_coloured(tmp_path: Path) -> None:
    trimesh.creation.box((1.0, 2.0, 3.0)).export(tmp_path / 'body.stl')
    seen = visual(mesh('package://some_arm/body.stl', 'scale="0.1 0.1 0.01"'), SKY)
    missing = drawn(seen)
    assert 'some_arm' in missing.warnings[0]
    assert kinds(missing, 'a') == ['cylinder', 'cylinder'], 'a stick and the mark of the joint'
    (shape,) = drawn(seen, folder=tmp_path).shapes
    assert shape.mesh is not None
    assert np.allclose(shape.mesh.extents, (0.1, 0.2, 0.03))
    assert shape.colour == (0, 128, 255)
    assert not shape.has_own_colours


@pytest.mark.parametrize(
    'name',
    [
        '{0}/secret.stl',
        'file://{0}/secret.stl',
        'file://{0}/meshes/../secret.stl',
        'package://x/../secret.stl',
    ],
)
def test_a_description_cannot_name_files_elsewhere(tmp_path: Path, name: str) -> None:
    trimesh.creation.box().export(tmp_path / 'secret.stl')
    (tmp_path / 'meshes').mkdir()
    drawing = drawn(visual(mesh(name.format(tmp_path))), folder=tmp_path / 'meshes')
    assert {shape.kind for shape in drawing.shapes} == {'cylinder'}, 'sticks'
    assert 'secret.stl' in drawing.warnings[0]


def test_missing_meshes_are_told_in_one_line() -> None:
    parts = [visual(mesh(f'package://some_arm/{name}.stl')) for name in ('body', 'hand', 'jaw')]
    (said,) = drawn(''.join(parts)).warnings
    assert said.startswith('mesh "package://some_arm/body.stl" not found and 2 more')


def test_a_mesh_with_its_own_colours_keeps_them(tmp_path: Path) -> None:
    box = trimesh.creation.box()
    box.visual.face_colors = [10, 20, 30, 255]
    box.export(tmp_path / 'box.ply')
    seen = mesh(f'file://{tmp_path}/box.ply')
    (own,) = drawn(visual(seen), folder=tmp_path).shapes
    assert own.has_own_colours
    (painted,) = drawn(visual(seen, SKY), folder=tmp_path).shapes
    assert (painted.has_own_colours, painted.colour) == (False, (0, 128, 255))


def test_a_mesh_in_centimetres_is_shown_in_metres(tmp_path: Path) -> None:
    text = trimesh.exchange.dae.export_collada(trimesh.creation.box((10.0, 20.0, 30.0))).decode()
    (tmp_path / 'box.dae').write_text(text.replace('</asset>', '<unit meter="0.01" name="cm"/></asset>'))
    (shape,) = drawn(visual(mesh(f'file://{tmp_path}/box.dae')), folder=tmp_path).shapes
    assert shape.mesh is not None
    assert np.allclose(shape.mesh.extents, (0.1, 0.2, 0.3))


def test_a_broken_mesh_costs_only_itself(tmp_path: Path) -> None:
    (tmp_path / 'broken.stl').write_bytes(b'solid nonsense\x00\xff')
    (tmp_path / 'broken.dae').write_text('<COLLADA><')
    broken = [visual(mesh(tmp_path / name)) for name in ('broken.stl', 'broken.dae')]
    drawing = drawn(''.join(broken), visual('<sphere radius="0.2"/>'), tmp_path)
    assert drawing.warnings
    assert set(kinds(drawing, 'a')) == {'cylinder'}
    assert kinds(drawing, 'b') == ['sphere']


@pytest.mark.slow
def test_the_tool_leaves_a_trail(server: viser.ViserServer) -> None:
    trail = Trail(server, '/trail', np.zeros(3), 0.01, (0, 0, 0))
    for step in range(3):
        trail.extend(np.array([0.1 * (step + 1), 0.0, 0.0]))
    beads = server.scene.get_handle_by_name('/trail')
    assert isinstance(beads, viser.BatchedMeshHandle)
    assert np.allclose(beads.batched_positions[:4, 0], (0.3, 0.2, 0.1, 0.0))
    assert not beads.batched_positions[4:].any()
    before = beads.batched_positions.copy()
    trail.extend(np.array([0.3 + 1e-9, 0.0, 0.0]))
    assert np.array_equal(beads.batched_positions, before), 'a tool at rest adds none'


@pytest.mark.slow
def test_a_ray_hits_a_ball_where_it_passes_its_middle_by_less_than_its_radius() -> None:
    ball, rng, seen = trimesh.creation.icosphere(subdivisions=3, radius=0.5), np.random.default_rng(0), set()
    for _ in range(400):
        origin, direction = rng.normal(size=3) * 2.0, rng.normal(size=3)
        direction /= np.linalg.norm(direction)
        ahead = -origin @ direction
        gap = np.linalg.norm(origin + ahead * direction)
        inside = np.linalg.norm(origin) < 0.48
        if 0.48 < gap < 0.51 or 0.47 < np.linalg.norm(origin) < 0.51:
            continue  # the mesh is a little smaller
        expected = bool(inside or (gap < 0.5 and ahead > 0.0))
        assert hits(origin, direction, np.asarray(ball.triangles)) == expected
        seen.add(expected)
    assert seen == {True, False}
