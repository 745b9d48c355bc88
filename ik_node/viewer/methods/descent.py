# SPDX-License-Identifier: Apache-2.0
"""Descent: the configurations of one descent by a method, computed ahead in a thread."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any, NamedTuple

from ik_node.checks import Array
from ik_node.errors import IkError
from ik_node.model.arm import Arm
from ik_node.solver.goal import Goal
from ik_node.solver.solver import IkSolver


class Step(NamedTuple):
    """A configuration (n,) of the descent, with its errors [m, rad]."""

    q: Array
    position_error: float
    direction_error: float


class Descent:
    """One descent from a seed towards a goal, as IkSolver.steps yields it.

    steps: those that are known already; the first is the seed. ended: there are no more. failure: why there
    are none.
    """

    def __init__(self, arm: Arm, goal: Goal, seed: Array, options: Mapping[str, Any]) -> None:
        """options: of IkSolver."""
        self.method = str(options['method'])
        self.steps: list[Step] = []
        self.ended = False
        self.failure = ''
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(arm, goal, seed, options), daemon=True)
        self._thread.start()

    def _run(self, arm: Arm, goal: Goal, seed: Array, options: Mapping[str, Any]) -> None:
        try:
            solver = IkSolver(arm, **options)
            for q in solver.steps(goal, seed):
                self.steps.append(Step(q.copy(), *solver.errors(goal, q)))
                if self._stopped.is_set():
                    break
        except IkError as error:
            self.failure = str(error)
        self.ended = True

    def stop(self) -> None:
        """Let the thread end."""
        self._stopped.set()

    def join(self) -> None:
        """Stop, and wait a moment for the end of the thread."""
        self.stop()
        self._thread.join(timeout=2.0)
