"""A ghost that stands still costs nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
from page import Page
from viewer_harness import SEED_ARM, SEED_JOINTS

from ik_node.model.arm import Arm
from ik_node.viewer.guard import Guard
from ik_node.viewer.scene.ghost import Ghost
from ik_node.viewer.scene.visuals import draw
from ik_node.viewer.server import page_url, start_server, stop_server

Q = dict(zip(SEED_JOINTS, (0.3, 0.5, 0.9, 0.6, 0.4), strict=True))


class CountingPage(Page):
    """Counts what it is told of the ghost."""

    told = 0

    def _take(self, message: dict[str, Any]) -> None:
        self.told += str(message.get('name', '')).startswith('/ghost')
        super()._take(message)


def test_a_ghost_is_sent_only_where_it_moves() -> None:
    arm = Arm.from_urdf(SEED_ARM)
    guard = Guard('127.0.0.1')
    server = start_server('127.0.0.1', 0, guard)
    page = CountingPage(page_url('127.0.0.1', server.get_port(), guard.token))
    try:
        ghost = Ghost(server, '/ghost', (arm,), draw(SEED_ARM, arm.robot, 'tool0'), (1, 2, 3), 1.0)
        mark = server.scene.add_frame('/mark')
        ghost.place(Q)
        page.wait(lambda: page.nodes['/ghost']['visible'] and '/mark' in page.nodes, 'the ghost')

        def settled(number: float) -> bool:
            """Whether everything before this call has been told."""
            mark.position = np.array([number, 0.0, 0.0])
            return page.wait(lambda: abs(page.nodes['/mark']['position'][0] - number) < 1e-6, 'the mark')

        assert settled(1.0)
        told = page.told
        for _ in range(30):
            ghost.place({**Q, 'of another robot': 1.0})
        assert settled(2.0)
        assert page.told == told
        ghost.place({**Q, 'joint1': 0.5})
        assert settled(3.0)
        assert page.told > told
    finally:
        page.close()
        stop_server(server)
