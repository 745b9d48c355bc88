# SPDX-License-Identifier: Apache-2.0
"""The parameters of ik_node that decide how goals are solved."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from ik_node.errors import InputError
from ik_node.settings import parameter
from ik_node.solver.methods.registry import METHODS
from ik_node.solver.restarts import SCHEDULES


@dataclass(frozen=True)
class SearchSettings:
    """Local method, restarts and tolerances."""

    solver: str = parameter('lm', 'local method', choices=tuple(METHODS))
    solver_switches_off: str = parameter(
        '',
        "switches of the local method that are off, such as 'hinges, limits' of ccd; switches of "
        'other methods are ignored',
    )
    schedule: str = parameter('greedy', 'annealing schedule of the random restarts', choices=tuple(SCHEDULES))
    position_tolerance: float = parameter(
        1e-4, 'position error below which a goal is solved [m]', low=1e-12, high=1.0
    )
    direction_tolerance: float = parameter(
        1e-3, 'direction error below which a goal is solved [rad]', low=1e-12, high=math.pi
    )
    restarts: int = parameter(1000, 'maximum number of random restarts', low=0, high=1_000_000)
    time_budget: float = parameter(0.05, 'maximum search time per goal [s]', low=1e-4, high=10.0)
    random_seed: int = parameter(0, 'seed of the random restarts', low=0, high=2**31 - 1)
    direction_weight: float = parameter(
        0.0,
        'weight of the direction error for unreachable goals [m/rad]; 0: position has strict priority',
        low=0.0,
    )

    def check_search(self) -> None:
        """Raise InputError for switches that no method has, and a weight that the method does not support."""
        self._switches_off()
        if self.direction_weight and self.solver != 'lm':
            raise InputError(
                f'parameter direction_weight must be 0 for solver {self.solver}: it is supported by lm only'
            )

    def _switches_off(self) -> list[str]:
        """Return the names in solver_switches_off. Raises InputError."""
        names = self.solver_switches_off.replace(',', ' ').split()
        known = sorted({switch for method in METHODS.values() for switch in method.switches})
        if not set(names) <= set(known):
            raise InputError(
                f'parameter solver_switches_off must be any of {", ".join(known)}, '
                f'got {self.solver_switches_off!r}'
            )
        return names

    def search(self) -> dict[str, Any]:
        """Return the arguments of IkSolver besides the arm."""
        return {
            'method': self.solver,
            'method_options': dict.fromkeys(
                (name for name in METHODS[self.solver].switches if name in self._switches_off()), False
            ),
            'schedule': self.schedule,
            'position_tolerance': self.position_tolerance,
            'direction_tolerance': self.direction_tolerance,
            'restarts': self.restarts,
            'time_budget': self.time_budget,
            'random_seed': self.random_seed,
            'direction_weight': self.direction_weight or None,
        }
