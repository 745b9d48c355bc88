# SPDX-License-Identifier: Apache-2.0
"""SolverParts: what a solver for one arm is made of, by the geometry of the arm and its options."""

from __future__ import annotations

from collections.abc import Callable

from ik_node import kernels
from ik_node.errors import KernelError
from ik_node.model.arm import Arm
from ik_node.solver.all_solutions import AllSolutions
from ik_node.solver.closed_form import recognise, recognise_without_roll
from ik_node.solver.closest import ClosestByMethod, ClosestSearch
from ik_node.solver.elimination.elimination import elimination_of
from ik_node.solver.options import SolverOptions
from ik_node.solver.pipeline import ByFormula, Pipeline
from ik_node.solver.redundancy.locked_joints import LockedJoints, Solver
from ik_node.solver.redundancy.self_motions import self_motions_of
from ik_node.solver.redundancy.spare_roll import SpareRoll
from ik_node.solver.restarts import RandomRestarts, kernels_of
from ik_node.solver.tracking import Tracker
from ik_node.solver.unreachable import UnreachableGoals


class SolverParts:
    """The parts of IkSolver. closed_form, elimination, self_motions: None where the geometry has none."""

    def __init__(self, arm: Arm, options: SolverOptions, solver_of: Callable[[Arm], Solver]) -> None:
        """options: checked. solver_of: makes the solver of a smaller arm. Raises InputError, KernelError."""
        method, wait = options.method, options.compile == 'wait'
        served = kernels.prepare(kernels_of(method), wait=wait)
        algebra = method == 'lm' and options.closed_form
        self.closed_form = form = recognise(arm) if algebra else None
        self.search = search = RandomRestarts(
            arm,
            method,
            options.position_tolerance,
            options.direction_tolerance,
            options.restarts,
            options.time_budget,
            options.random_seed,
            options.schedule,
            options.method_options,
        )
        place_form = recognise_without_roll(arm) if form is None and algebra else form
        closest = (
            ClosestSearch(search, place_form, options.direction_weight)
            if method == 'lm'
            else ClosestByMethod(search)
        )
        self.locked = LockedJoints(arm, solver_of)
        exact = form is not None and form.exact
        self.elimination = elimination_of(arm, search.options) if algebra and not exact else None
        self.self_motions = self_motions_of(arm, self.locked, search.options) if algebra else None
        if self.self_motions is not None:
            served = kernels.prepare(('eliminated', 'find_families'), wait=wait)
        elif self.elimination is not None:
            served = kernels.prepare(('eliminated',), wait=wait)
        if wait and served.stage is not kernels.Stage.READY:
            raise KernelError(str(served))
        self.unreachable = UnreachableGoals(arm, form, closest, search.options)
        self.formula = ByFormula(arm, form, search.options)
        self.pipeline = Pipeline(self.formula, self.elimination, search, closest, self.unreachable)
        self.all_solutions = AllSolutions(
            arm, form, self.elimination, self.self_motions, search, self.unreachable
        )
        self.tracker = Tracker(arm, form, search.options)
        self.roll = SpareRoll(arm, search.met)
