# SPDX-License-Identifier: Apache-2.0
"""Chains of random joints for kernels, and their frames."""

from __future__ import annotations

import numpy as np
from made_arms import random_unit

from ik_node import kernels


def random_chain(seed):
    """Joints (m, 10), tool (9,) and the number of variables: hinges, slides and mimics in random order."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 8))
    variables = [*range(n), *rng.integers(0, n, int(rng.integers(0, 3)))]
    rng.shuffle(variables)
    seen, rows = set(), []
    for variable in variables:
        drive = [rng.uniform(-2, 2), rng.uniform(-1, 1)] if variable in seen else [1.0, 0.0]
        seen.add(variable)
        slides = float(rng.random() < 0.25)
        rows.append([*random_unit(rng), *rng.uniform(-0.3, 0.3, 3), slides, variable, *drive])
    axis = random_unit(rng)
    lateral = np.cross(axis, random_unit(rng))
    tool = np.concatenate([rng.uniform(-0.2, 0.2, 3), axis, lateral / np.linalg.norm(lateral)])
    return np.array(rows), tool, n


def frames_at(joints, tool, q):
    frames = np.full((2 * len(joints) + 3, 3), np.nan)
    kernels.forward(joints, tool, q, frames)
    return frames
