# SPDX-License-Identifier: Apache-2.0
"""Many goals by formula and by a few descents each."""

from math import isnan

import numpy as np

from ..arrays.copies import copy
from ..arrays.layout import DIRECTION, FAMILY, KIND, POSITION_TOLERANCE
from ..closed_form.candidates import nearest_solution
from ..methods.lm import search_lm
from ..runtime.compiled import compiled
from .reachability import out_of_reach


@compiled
def solve_many(
    joints, tool, limits, form, trusted, goals, shells, options, table, descents, random_seed, seeds, q,
    errors, solved,
):  # fmt: skip
    """Solve goals (N, 9) one after the other, each by formula if form has one, then by a few descents.

    trusted: no descents where the formula finds nothing. shells: as in out_of_reach, goals out of
    reach are left alone. seeds (N, n), or (1, n) for all. Writes solved (N,) bool and, where that is so,
    q (N, n) and errors (N, 2) [m, rad].
    """
    state = np.empty(1, np.uint64)
    now = np.empty(q.shape[1])
    for k in range(goals.shape[0]):
        seed = seeds[min(k, seeds.shape[0] - 1)]
        solved[k] = False
        if out_of_reach(shells, goals[k], options[POSITION_TOLERANCE]) != 0:
            continue
        regular = False
        if form[KIND, FAMILY] != 0.0 and not isnan(goals[k, DIRECTION]):
            solved[k], errors[k, 0], errors[k, 1], regular = nearest_solution(
                joints, tool, limits, form, goals[k], options, seed, q[k]
            )
        if not solved[k] and not (trusted and regular):
            state[0] = random_seed
            copy(seed, q[k])
            _, errors[k, 0], errors[k, 1], solved[k] = search_lm(
                joints, tool, limits, goals[k], options, table, 0, descents, state, now, q[k]
            )
