# SPDX-License-Identifier: Apache-2.0
"""What an ArmController makes of streams of goals, on its own clock; follow.py runs this with any commit.

One JSON list of cases on stdin: description, parameters, start and direction of the goals, and the goals as
(arrival, stamp, position) [s, s, m]; the joints of all samples (k, n) of each case on stdout.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np

from ik_node import Goal
from ik_node.control.controller.controller import ArmController
from ik_node.control.robot.arm_model import ArmModel
from ik_node.control.settings.arm import ArmSettings
from ik_node.control.state.states import State

AFTER = 1e9  # [s]: later than all stops of a benchmark


@dataclass(frozen=True)
class Asked:
    """A goal at a time [s]; a moving one has a stamp."""

    goal: Goal
    received: float
    goal_time: float | None = None
    tool: str = ''
    source: str = 'bench'
    moves: bool = True
    stamp: str = ''
    frame: str = ''

    @property
    def arrival(self) -> float:
        """When it arrived, for an ArmController, which compares that with the clock of this computer [s]."""
        return AFTER + self.received

    def wanted(self, _: Any) -> Goal:
        """Return the goal."""
        return self.goal


def joints_of(case: dict[str, Any]) -> list[list[float]]:
    """Return the joints (k, n) of the samples of a case, the first one period after the arm has rested."""
    settings = ArmSettings(**case['parameters'])
    model = ArmModel.build(case['xml'], settings)
    controller, direction = ArmController(lambda _: None), case['direction']
    controller.activate()
    controller.configure(model, settings)
    period, begin = case['period'], 0.0
    controller.submit(Asked(Goal(case['start'], direction), 0.0))
    for _ in range(3000):
        begin += period
        controller.tick(begin)
        if begin > 1.0 and controller.state is State.HOLDING:
            break
    goals, k, joints = case['goals'], 0, []
    for sample in range(1, case['samples'] + 1):
        time = begin + sample * period
        while k < len(goals) and begin + goals[k][0] <= time:
            arrival, stamp, position = goals[k]
            goal_time = None if stamp is None else begin + stamp
            controller.submit(Asked(Goal(position, direction), begin + arrival, goal_time))
            k += 1
        controller.tick(time)
        snapshot = controller.snapshot()
        assert snapshot is not None
        joints.append(np.asarray(snapshot.position).tolist())
    return joints


if __name__ == '__main__':
    json.dump([joints_of(case) for case in json.load(sys.stdin)], sys.stdout)
