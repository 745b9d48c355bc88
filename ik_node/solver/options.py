# SPDX-License-Identifier: Apache-2.0
"""SolverOptions: the options of IkSolver."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from ik_node.checks import positive, whole
from ik_node.errors import InputError, safe_repr
from ik_node.solver.methods.registry import METHODS

COMPILE = ('background', 'wait')


class SolverOptions(NamedTuple):
    """The options of IkSolver; see there."""

    method: str
    method_options: Mapping[str, bool] | None
    schedule: str
    closed_form: bool
    position_tolerance: float
    direction_tolerance: float
    restarts: int
    time_budget: float
    random_seed: int
    direction_weight: float | None
    compile: str

    def checked(self) -> SolverOptions:
        """Return them with plain floats and integers. Raises InputError.

        method_options and schedule are left to RandomRestarts.
        """
        method, weight = self.method, self.direction_weight
        if not isinstance(self.compile, str) or self.compile not in COMPILE:
            raise InputError(f'compile must be one of {", ".join(COMPILE)}, got {safe_repr(self.compile)}')
        if not isinstance(method, str) or method not in METHODS:
            raise InputError(f'method must be one of {", ".join(METHODS)}, got {safe_repr(method)}')
        if not isinstance(self.closed_form, (bool, np.bool_)):
            raise InputError(f'closed_form must be True or False, got {safe_repr(self.closed_form)}')
        if weight is not None:
            weight = positive('direction_weight', weight)
            if method != 'lm':
                raise InputError(
                    'direction_weight is supported by method lm only, '
                    f'got {safe_repr(method)} with {weight!r}'
                )
        return self._replace(
            position_tolerance=positive('position_tolerance', self.position_tolerance),
            direction_tolerance=positive('direction_tolerance', self.direction_tolerance),
            restarts=whole('restarts', self.restarts, 0),
            time_budget=positive('time_budget', self.time_budget, finite=False),
            random_seed=whole('random_seed', self.random_seed, 0, 2**63 - 1),
            direction_weight=weight,
        )
