# SPDX-License-Identifier: Apache-2.0
"""Contents of /diagnostics: goal, measurements, margins, and the reason why an arm does not move."""

from __future__ import annotations

import math

from ik_node.control.state.report import Report
from ik_node.control.state.snapshot import Snapshot
from ik_node.control.state.states import State
from ik_node.steady import steady


def arm_values(arm: Snapshot, report: Report | None, condition: str) -> dict[str, str]:
    """Return values by key, as text.

    report: the newest one on a goal, None before the first. condition: of the arm, as a sentence.
    """
    margin, joint = arm.margin
    values = {
        'state': arm.state.value,
        'standing still because': _why_still(arm, report, condition),
        'least distance to a joint limit [rad or m]': f'{margin:.4f} ({joint})',
    }
    if report is not None and report.request is not None:
        age = steady() - report.request.arrival
        values['newest goal'] = f'{report.number} ({report.request.source}): {report.phase}'
        values['age of the newest goal [s]'] = f'{age:.3f}'
    if arm.moving and not math.isnan(arm.remaining):
        values['share of the motion done'] = f'{arm.share:.3f}'
        values['time left [s]'] = f'{arm.remaining:.3f}'
    if not math.isnan(arm.measured_age):
        values['age of the oldest measurement [s]'] = f'{arm.measured_age:.3f}'
    if arm.model.notes:  # such as that a shape is left out
        values['self-collision'] = '; '.join(arm.model.notes)
    if arm.model.collision is not None:
        distance, pair = arm.model.collision.distance(arm.values)
        values['distance to self-collision [m]'] = f'{distance:.4f} ({pair[0]} with {pair[1]})'
    return values


def _why_still(arm: Snapshot, report: Report | None, condition: str) -> str:
    """Return why an arm does not move; empty if it does."""
    if arm.moving:
        return ''
    if arm.state is not State.HOLDING:
        return condition
    return 'there was no goal yet' if report is None else report.message
