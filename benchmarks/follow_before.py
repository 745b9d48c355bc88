"""What commit e81272e makes of a stream of goals; follow.py runs this with that commit on the path.

One JSON object on stdin: the description, the tool, and goals by time; joints of all samples on stdout.
"""

from __future__ import annotations

import json
import sys
import time

import numpy as np
from ik_node.kinematics.goal import Goal  # type: ignore[import-not-found]
from ik_node.ros.model import ArmModel  # type: ignore[import-not-found]
from ik_node.ros.moving_arm import MovingArm  # type: ignore[import-not-found]
from ik_node.ros.settings import ArmSettings  # type: ignore[import-not-found]


def main() -> None:
    """Answer one request, as the node of that commit would: solve from the present place, go there."""
    asked = json.load(sys.stdin)
    settings = ArmSettings(**asked['tool'])
    model = ArmModel.build(asked['xml'], settings)
    arm = MovingArm(settings)
    arm.replace(model, lambda: True)
    direction = np.array(asked['direction'])

    def go(position: list[float]) -> None:
        state = arm.state
        target = state.target
        target[model.index] = model.solver.solve(
            Goal(np.array(position), direction), state.position[model.index]
        ).q
        arm.go_to(target, model, time.perf_counter())

    go(asked['start'])
    for _ in range(3000):
        arm.step(asked['period'])
        if not arm.state.moving:
            break
    goals, rows, now = asked['goals'], [], 0.0
    for _ in range(asked['samples']):
        now += asked['period']
        while goals and goals[0][0] <= now:
            go(goals.pop(0)[1])
        arm.step(asked['period'])
        rows.append(arm.state.position[model.index].tolist())
    json.dump(rows, sys.stdout)


main()
