# SPDX-License-Identifier: Apache-2.0
"""Clicks hit what their ray meets."""

from __future__ import annotations

import numpy as np
import trimesh

from ik_node.viewer.scene.rays import hits

BALL = trimesh.creation.icosphere(subdivisions=3, radius=0.5)


def test_a_ray_hits_a_ball_where_it_passes_its_middle_by_less_than_its_radius() -> None:
    rng = np.random.default_rng(0)
    seen = set()
    for _ in range(400):
        origin, direction = rng.normal(size=3) * 2.0, rng.normal(size=3)
        direction /= np.linalg.norm(direction)
        ahead = -origin @ direction
        gap = np.linalg.norm(origin + ahead * direction)
        inside = np.linalg.norm(origin) < 0.48
        if 0.48 < gap < 0.51 or 0.47 < np.linalg.norm(origin) < 0.51:
            continue  # the mesh is a little smaller
        expected = bool(inside or (gap < 0.5 and ahead > 0.0))
        assert hits(origin, direction, np.asarray(BALL.triangles)) == expected
        seen.add(expected)
    assert seen == {True, False}
