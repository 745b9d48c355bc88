# SPDX-License-Identifier: Apache-2.0
"""The kernels of ik_node's batch alone, in lanes where the processor has them."""

from __future__ import annotations

from typing import Any

import numpy as np
from oracles.chain import Array

from benchmarks.peers import own_batch
from ik_node.solver.batch import BATCH_PART
from ik_node.solver.closed_form import NO_FORM
from ik_node.solver.goal import pack_goals

TITLE = 'ik_node kernels'


class Peer(own_batch.Peer):
    """RandomRestarts.search_many on goals that are packed already; what it leaves counts as not solved."""

    def prepare_batch(self, positions: Array, directions: Array, seed: Array) -> tuple[Any, ...]:
        """Return goals, seeds, and arrays for the results."""
        n, count = len(seed), len(positions)
        return (
            pack_goals(positions, directions),
            seed[None],
            np.zeros((count, n)),
            np.zeros((count, 2)),
            np.ones(count, bool),
        )

    def call_batch(self, goals: Array, seeds: Array, q: Array, errors: Array, solved: Any) -> Any:
        """Solve all goals in the parts that solve_batch takes."""
        pipeline = self.solver._pipeline
        form = NO_FORM if pipeline.form is None else pipeline.form.constants
        restarts = pipeline.restarts_before_algebra(goals[0])
        for first in range(0, len(goals), BATCH_PART):
            part = slice(first, first + BATCH_PART)
            out = q[part], errors[part], solved[part]
            pipeline.search.search_many(form, pipeline.trusted, goals[part], pipeline.shells, restarts, seeds, *out)
        return q, solved

    def batch_answers(self, found: Any) -> list[list[list[float]]]:
        """Return one configuration per goal, or none."""
        return [[q] if is_solved else [] for q, is_solved in zip(found[0].tolist(), found[1].tolist(), strict=True)]
