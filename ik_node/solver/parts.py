# SPDX-License-Identifier: Apache-2.0
"""SolverParts: what a solver for one arm is made of, by the geometry of the arm and its options."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from ik_node import kernels
from ik_node.checks import positive, whole
from ik_node.errors import InputError, KernelError
from ik_node.model.arm import Arm
from ik_node.solver.all_solutions import AllSolutions
from ik_node.solver.closed_form import recognise
from ik_node.solver.closest import ClosestByMethod, ClosestSearch
from ik_node.solver.elimination.elimination import Elimination, elimination_of
from ik_node.solver.infeasible import Infeasibility
from ik_node.solver.methods.registry import METHODS
from ik_node.solver.pipeline import ByFormula, Pipeline
from ik_node.solver.redundancy.locked_joints import LockedJoints
from ik_node.solver.redundancy.self_motions import SelfMotions, self_motions_of
from ik_node.solver.redundancy.spare_roll import SpareRoll
from ik_node.solver.restarts import RandomRestarts, kernels_of
from ik_node.solver.tracking import Tracker

COMPILE = ('background', 'wait')


class SolverParts:
    """The parts of IkSolver; see there for the arguments and errors."""

    def __init__(
        self,
        arm: Arm,
        *,
        method: str = 'lm',
        method_options: Mapping[str, bool] | None = None,
        schedule: str = 'greedy',
        closed_form: bool = True,
        position_tolerance: float = 1e-6,
        direction_tolerance: float = 1e-4,
        restarts: int = 1000,
        time_budget: float = math.inf,
        random_seed: int = 0,
        direction_weight: float | None = None,
        compile: str = 'background',  # noqa: A002 - the clearest name
    ) -> None:
        options = {
            name: value for name, value in locals().items() if name not in ('self', 'arm', '__class__')
        }
        _check_options(arm, method, closed_form, direction_weight, compile)
        self._options = options
        weight = None if direction_weight is None else positive('direction_weight', direction_weight)
        served = kernels.prepare(kernels_of(method), wait=compile == 'wait')
        self.arm = arm
        self.method = method
        self.closed_form = recognise(arm) if method == 'lm' and closed_form else None
        self._search = search = RandomRestarts(
            arm,
            method,
            positive('position_tolerance', position_tolerance),
            positive('direction_tolerance', direction_tolerance),
            whole('restarts', restarts, 0),
            positive('time_budget', time_budget, finite=False),
            whole('random_seed', random_seed, 0, 2**63 - 1),
            schedule,
            method_options,
        )
        self._closest_search = (
            ClosestSearch(search, self.closed_form, weight) if method == 'lm' else ClosestByMethod(search)
        )
        again: Callable[[Arm], Any] = partial(type(self), **options)
        self._locked = LockedJoints(arm, again)
        self.elimination, self.self_motions = self._algebra(closed_form)
        if self.self_motions is not None or self.elimination is not None:
            wanted = ('eliminated',) if self.self_motions is None else ('eliminated', 'find_families')
            served = kernels.prepare(wanted, wait=compile == 'wait')
        if compile == 'wait' and served.stage is not kernels.Stage.READY:
            raise KernelError(str(served))
        self._join()

    def _algebra(self, wanted: bool) -> tuple[Elimination | None, SelfMotions | None]:
        """Return what serves arms without an exact closed form, None where the geometry does not allow it."""
        if self.method != 'lm' or not wanted:
            return None, None
        exact = self.closed_form is not None and self.closed_form.exact
        options = self._search.options
        elimination = None if exact else elimination_of(self.arm, options)
        return elimination, self_motions_of(self.arm, self._locked, options)

    def _join(self) -> None:
        """Make what uses several parts."""
        arm, form, search = self.arm, self.closed_form, self._search
        self._infeasibility = Infeasibility(arm, form, self._closest_search, search.options)
        self._formula = ByFormula(arm, form, search.options)
        self._pipeline = Pipeline(
            self._formula, self.elimination, search, self._closest_search, self._infeasibility
        )
        self._all_solutions = AllSolutions(
            arm,
            form,
            self.elimination,
            self.self_motions,
            search.options,
            search.random_seed,
            search.restarts,
        )
        self._tracker = Tracker(arm, form, search.options)
        self._roll = SpareRoll(arm)

    def __reduce__(self) -> tuple[partial[SolverParts], tuple[Arm]]:
        """Copy and unpickle by the arguments of the constructor."""
        return partial(type(self), **self._options), (self.arm,)


def _check_options(
    arm: object, method: object, closed_form: object, direction_weight: object, wanted: object
) -> None:
    """Raise InputError for options of a wrong type, and for those that exclude each other."""
    if not isinstance(arm, Arm):
        raise InputError(f'arm must be an Arm, got {arm!r}')
    if not isinstance(wanted, str) or wanted not in COMPILE:
        raise InputError(f'compile must be one of {", ".join(COMPILE)}, got {wanted!r}')
    if not isinstance(method, str) or method not in METHODS:
        raise InputError(f'method must be one of {", ".join(METHODS)}, got {method!r}')
    if not isinstance(closed_form, (bool, np.bool_)):
        raise InputError(f'closed_form must be True or False, got {closed_form!r}')
    if direction_weight is not None and method != 'lm':
        raise InputError(
            f'direction_weight is supported by method lm only, got {method!r} with {direction_weight!r}'
        )
