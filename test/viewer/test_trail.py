# SPDX-License-Identifier: Apache-2.0
"""The trail of the tool in the scene."""

from __future__ import annotations

import numpy as np
import viser

from ik_node.viewer.guard import Guard
from ik_node.viewer.scene.trail import Trail
from ik_node.viewer.server import start_server, stop_server


def test_the_tool_leaves_a_trail() -> None:
    server = start_server('127.0.0.1', 0, Guard('127.0.0.1'))
    try:
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
    finally:
        stop_server(server)
