# SPDX-License-Identifier: Apache-2.0
"""Configurations within both tolerances of goals that none meets exactly."""

from math import inf, sqrt

import numpy as np

from ..arrays.copies import copy, copy_column
from ..arrays.distance import largest_difference
from ..arrays.layout import POSITION_TOLERANCE, WEIGHT
from ..chain.forward import goal_errors
from ..methods.lm import FIRST_DAMPING, descend_lm
from ..runtime.compiled import compiled
from .general import SAME_BASIN, penalty
from .newton import descend_newton

WEIGHINGS = 40  # most descents that weigh one error against the other
FIRST_FACTOR = 16.0  # from one weight to the next, until both errors have been the smaller one
LAST_FACTOR = 1.0 + 1e-3
CROOKED = 5.0
SLACK = 1e-9  # share by which rounding may miss the ceiling


@compiled
def weigh(joints, tool, limits, goal, distance, angle, usual, q, frames, work):
    """Descend from q (n,), in place, to errors within distance [m] and angle [rad]; whether that is reached.

    A minimum of position^2 + w^2 direction^2 with both errors too large excludes that there is such a
    configuration around, as there the sum would be less. With one error too large, w changes in its favour.
    usual [m/rad]: weights far above that make descents too crooked to be given up before their end, and to
    begin with.
    """
    weight, low, high = min(distance / angle, usual), 0.0, inf
    for _ in range(WEIGHINGS):
        ceiling = (1.0 + SLACK) * penalty(distance, angle, weight)
        promised = ceiling if weight < CROOKED * usual else inf
        descend_newton(joints, tool, limits, goal, weight, 1e-8, promised, q, frames, work)
        position, direction = goal_errors(joints, frames, goal)
        if position <= distance and direction <= angle:
            return True
        if penalty(position, direction, weight) > ceiling:
            return False
        if position > distance:
            high = weight
        else:
            low = weight
        if low > 0.0 and high < inf:
            if high < LAST_FACTOR * low:
                return False
            weight = sqrt(low * high)
        elif position > distance:
            weight /= FIRST_FACTOR
        else:
            weight *= FIRST_FACTOR
    return False


@compiled
def meet_tolerances(
    joints, tool, limits, goal, options, angle, given, known, ranked, first, last, marks, q
):  # fmt: skip
    """Descents number first to last - 1 to within both tolerances, from given (k, n), then columns ranked.

    Of known (n + 6, K). options: of the first steps of each; angle [rad]: the tolerance of the direction.
    A start is dropped where these lead to where another one was led (marks (k, n) holds these places).
    Returns whether q (n,) is within the tolerances.
    """
    n, m = limits.shape[1], joints.shape[0]
    frames = np.empty((2 * m + 3, 3))
    work = np.empty((3 * n + 6 + m, max(n, 13)))
    for start in range(first, last):
        if start < given.shape[0]:
            copy(given[start], q)
        else:
            copy_column(known, ranked[start - given.shape[0]], q)
        descend_lm(joints, tool, limits, goal, options, FIRST_DAMPING, q, frames, work)
        copy(q, marks[start])
        seen = False
        for k in range(start):
            seen = seen or largest_difference(marks[k], q) < SAME_BASIN
        if not seen and weigh(
            joints, tool, limits, goal, options[POSITION_TOLERANCE], angle, options[WEIGHT], q, frames, work
        ):
            return True
    return False
