# SPDX-License-Identifier: Apache-2.0
"""TreeSolver, with its own restarts."""

from __future__ import annotations

from typing import Any

from benchmarks.chain import Array
from ik_node import Goal, Tool, Tree, TreeSolver, kernels

TITLE, METHOD = 'ik_node', 'lm'
TOLERANCE = 1e-6  # m and rad
RESTARTS = 1000
KERNELS = ('search_tree', 'settle_tree', 'solve_outwards', 'advance_limbs', 'search_tree_transpose')


class Peer:
    """solve for goals apart from each other, track for goals that follow a track."""

    def __init__(self, robot: dict[str, Any], method: str = METHOD) -> None:
        self.tree = Tree.from_urdf(robot['xml'], {tool: Tool(tip) for tool, tip in robot['tips'].items()})
        kernels.prepare(KERNELS, wait=True)
        options = {'method': method, 'position_tolerance': TOLERANCE, 'direction_tolerance': TOLERANCE}
        self.solver = TreeSolver(self.tree, compile='wait', restarts=RESTARTS, **options)

    def call(self, goals: dict[str, Array], seed: Array, starts: int) -> tuple[Array, int]:
        """Return the configuration that meets goals (or the closest one), and the number of starts."""
        wanted = {tool: Goal(goal[:3], goal[3:]) for tool, goal in goals.items()}
        if starts == 1:
            found = self.solver.track(wanted, seed)
        else:
            found = self.solver.solve(wanted, seed)
        return found.q, 1 + max(part.restarts for part in found.tools.values())
