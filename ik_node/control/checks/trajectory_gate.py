# SPDX-License-Identifier: Apache-2.0
"""The final check of a trajectory that is sent as a whole, by the gates that check every setpoint.

A controller interpolates the plan to the same setpoints, so all limits hold. Before that it repeats the last
setpoints, which were checked; where it continues a plan that it did not receive, joint_gate.JOINED applies.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from ik_node.checks import Array
from ik_node.control.checks.joint_gate import Gate
from ik_node.control.outputs.joint_trajectory import JointTrajectory

SPACING = 0.005  # [s] between two checks
Rejection = tuple[int, str] | None  # which of several setpoints is rejected, and why


def reject_trajectory(
    trajectory: JointTrajectory,
    gates: Sequence[Gate],
    checks: Sequence[Callable[[Mapping[str, Array]], Rejection]],
) -> str | None:
    """Return why a trajectory must not be sent, else None.

    checks: further ones, of positions, velocities and accelerations (3, k) by joint name.
    """
    motion, join = trajectory.motion, trajectory.joined
    if not all(np.isfinite(row).all() for row in (motion.times, *trajectory.rows)):
        return f'its points are not finite: {trajectory.positions.tolist()}'
    times = _looks(join, trajectory.duration)
    states = motion.sampled(times)[:3]
    by_name = dict(zip(trajectory.names, np.moveaxis(states, 2, 0), strict=True))
    known = {name for gate in gates for name in gate.names}
    found: list[tuple[int, str]] = []
    for name in by_name.keys() - known:
        if by_name[name][1].any():
            found.append((int(by_name[name][1].argmax()), f'joint "{name}" must not move'))
    for gate in gates:
        rows = [by_name[name] for name in gate.names if name in by_name]
        if len(rows) == len(gate.names):
            rejection = gate.reject_ahead(times, np.moveaxis(np.array(rows), 0, 2), join)
            found += [rejection] if rejection is not None else []
    for check in checks:
        rejection = check(by_name)
        found += [rejection] if rejection is not None else []
    if not found:
        return None
    k, why = min(found)
    pairs = zip(trajectory.names, states[0, k].tolist(), strict=True)
    places = ', '.join(f'{name} {value:.6g}' for name, value in pairs)
    return f'{times[k]:.3f} s after its start, {why}; positions there: {places}'


def _looks(join: float, end: float) -> Array:
    """Return times [s] from 0 to end, SPACING apart or less; the join and the end are among them."""
    spans = ((0.0, join), (join, end)) if end > join else ((0.0, end),)
    rows = [np.linspace(a, b, math.ceil((b - a) / SPACING) + 1)[:-1] for a, b in spans]
    return np.concatenate([*rows, [end]])
