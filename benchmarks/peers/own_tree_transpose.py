# SPDX-License-Identifier: Apache-2.0
"""TreeSolver by the mean rule of transpose steps."""

from __future__ import annotations

from typing import Any

from benchmarks.peers import own_tree

TITLE = 'ik_node, transpose'


class Peer(own_tree.Peer):
    """As own_tree."""

    def __init__(self, robot: dict[str, Any]) -> None:
        super().__init__(robot, 'transpose')
