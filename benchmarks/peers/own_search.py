# SPDX-License-Identifier: Apache-2.0
"""ik_node: every solution by restarts alone, as for arms that nothing else is known of."""

from __future__ import annotations

from benchmarks.peers import own_all

TITLE = 'ik_node, every solution by search'


class Peer(own_all.Peer):
    """IkSolver(closed_form=False).solve_all."""

    search_only = True
