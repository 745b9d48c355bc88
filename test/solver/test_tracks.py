# SPDX-License-Identifier: Apache-2.0
"""Tracks: continuous, closed, at the speed asked for, in the plane asked for."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ik_node.errors import InputError
from ik_node.tracks.curves import TRACKS, Track, plane_axes, tip_pose

CENTRE = (0.3, -0.1, 0.2)
SLANTED = (0.6, 0.0, -0.8)


def sample(track: Track, count: int = 6_000) -> tuple[np.ndarray, float]:
    """One lap and a bit, and the time between samples."""
    times = np.linspace(0.0, 1.1 * track.lap, count)
    return np.array([track.position(t) for t in times]), times[1]


@pytest.mark.parametrize('name', TRACKS)
def test_the_speed_is_the_one_asked_for(name):
    places, dt = sample(Track(name, CENTRE, 0.07, 0.05, SLANTED))
    speed = np.linalg.norm(np.diff(places, axis=0), axis=1) / dt
    assert speed.max() <= 0.05 * 1.002
    if name == 'line':
        assert np.quantile(speed, 0.25) == pytest.approx(0.05, rel=1e-3)  # all but the soft ends
    else:
        assert speed.min() >= 0.05 * 0.998


@pytest.mark.parametrize('name', TRACKS)
def test_the_velocity_has_no_jump(name):
    places, dt = sample(Track(name, CENTRE, 0.07, 0.05, SLANTED))
    turn = np.diff(places, n=2, axis=0) / dt**2
    # Curvature at most that of the spiral's centre, 2 * turns / size; the line brakes within 5 % of a lap.
    assert np.linalg.norm(turn, axis=1).max() < 13 / 0.07 * 0.05**2


@pytest.mark.parametrize('name', TRACKS)
def test_a_lap_is_closed_and_of_the_size_asked_for(name):
    track = Track(name, CENTRE, 0.07, 0.05, SLANTED)
    assert track.position(0.3 + 5 * track.lap) == pytest.approx(track.position(0.3), abs=1e-12)
    places, _ = sample(track)
    away = places - CENTRE
    assert np.linalg.norm(away, axis=1).max() == pytest.approx(0.07, rel=1e-4)
    assert np.abs(away @ SLANTED).max() < 1e-15


def test_the_curves_differ():
    shapes = {name: sample(Track(name, CENTRE, 0.07, 0.05, SLANTED))[0] for name in TRACKS}
    radii = {name: np.linalg.norm(shape - CENTRE, axis=1) for name, shape in shapes.items()}
    assert np.ptp(radii['circle']) < 1e-12
    assert all(radii[name].min() < 1e-4 for name in ('figure_eight', 'spiral', 'line'))
    assert np.linalg.matrix_rank(shapes['line'] - CENTRE, tol=1e-9) == 1
    assert np.linalg.matrix_rank(shapes['spiral'] - CENTRE, tol=1e-9) == 2


@settings(max_examples=200)
@given(st.floats(-math.pi, math.pi), st.floats(-math.pi / 2, math.pi / 2))
def test_plane_axes_are_right_handed(yaw, pitch):
    normal = np.array([math.cos(pitch) * math.cos(yaw), math.cos(pitch) * math.sin(yaw), math.sin(pitch)])
    frame = np.column_stack((*plane_axes(normal), normal))
    assert np.abs(frame.T @ frame - np.eye(3)).max() < 1e-14
    assert np.linalg.det(frame) == pytest.approx(1.0)


@pytest.mark.parametrize('tool_axis', [(0, 0, 1), (1, 0, 0), (0, -1, 0), (0, 0.6, -0.8)])
@pytest.mark.parametrize('direction', [(0, 0, -1), (0, 0, 1), (1, 0, 0), (0.6, -0.8, 0)])
def test_tip_pose_puts_the_tool_where_it_is_wanted(tool_axis, direction):
    T = tip_pose((0.1, 0.2, 0.3), direction, tool_axis, (0.01, 0.02, 0.03))
    assert np.abs(T[:3, :3].T @ T[:3, :3] - np.eye(3)).max() < 1e-14
    assert np.linalg.det(T[:3, :3]) == pytest.approx(1.0)
    assert T[:3, :3] @ tool_axis == pytest.approx(direction)
    assert (T @ [0.01, 0.02, 0.03, 1.0])[:3] == pytest.approx([0.1, 0.2, 0.3])


@pytest.mark.parametrize(
    ('change', 'says'),
    [
        ({'name': 'square'}, "circle, figure_eight, spiral, line, got 'square'"),
        ({'centre': (0, 0)}, 'centre'),
        ({'centre': (0, 0, math.nan)}, 'centre'),
        ({'size': 0.0}, 'size must be finite and greater than 0'),
        ({'speed': -1.0}, 'speed must be finite and greater than 0'),
        ({'speed': math.nan}, 'speed'),
        ({'direction': (0, 0, 0)}, 'direction must be a unit vector'),
    ],
)
def test_nonsense_is_rejected(change, says):
    good = {'name': 'circle', 'centre': CENTRE, 'size': 0.1, 'speed': 0.1, 'direction': (0, 0, 1)}
    with pytest.raises(InputError, match=says):
        Track(**{**good, **change})
