# SPDX-License-Identifier: Apache-2.0
"""A calibration as it goes on: which cross is next and how to hold the arm there, touches, and what they tell."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ik_node.checks import Array
from ik_node.errors import InputError, quoted

from .estimator import ON_OUTLINE, ZEROS, Calibration, TouchModel
from .files import Record, Touch
from .poses import Poses
from .sheet import MM

TOUCHES, CHECKS = 12, 3
LASTING = 0.3  # [s] of a touch
FEWEST = 5  # messages in it
STILL = 2.0 * 2.0 * math.pi / 4096.0  # [rad]: two ticks of a servo
STILL_SLIDE = 0.5e-3  # [m]
PLAY = 4e-3, 0.5  # [m] of the left-out miss, and share of it that is scatter, from which more touches do not help


class Next(NamedTuple):
    """A cross, from 1, joints (n,) in which to touch it, and whether the touch is only compared."""

    cross: int
    q: Array
    check: bool


class Session:
    """The touches of an arm, of which each is kept at once."""

    def __init__(self, model: TouchModel, record: Record) -> None:
        self.model, self.record = model, record
        self._poses = Poses(model)

    @property
    def done(self) -> bool:
        """Whether all touches and checks are there."""
        return len(self._touches()) >= TOUCHES and len(self._touches(check=True)) >= CHECKS

    def _touches(self, check: bool = False) -> list[Touch]:
        return [touch for touch in self.record.touches if touch.check == check]

    def next(self) -> Next:
        """Return the touch that tells most now."""
        check = len(self._touches()) >= TOUCHES
        row = self._poses.next(self.record.of(self.model.arm.joint_names))
        return Next(int(self._poses.crosses[row]) + 1, self._poses.q[row], check)

    def touch(self, cross: int, seen: Sequence[Array]) -> Touch:
        """Keep a touch of a cross, from 1, and return it. seen: see still. Raises InputError."""
        names = self.model.arm.joint_names
        q = still(self.model, seen)
        joints = {name: round(float(value), 6) for name, value in zip(names, q, strict=True)}
        kept = Touch(cross, joints, len(self._touches()) >= TOUCHES)
        self._keep([*self.record.touches, kept])
        return kept

    def undo(self) -> Touch | None:
        """Forget the last touch and return it, None if there is none."""
        if not self.record.touches:
            return None
        last = self.record.touches[-1]
        self._keep(self.record.touches[:-1])
        return last

    def _keep(self, touches: list[Touch]) -> None:
        replace(self.record, touches=touches).store()  # raises InputError, as for a full disk: then nothing is kept
        self.record.touches = touches


def still(model: TouchModel, seen: Sequence[Array]) -> Array:
    """Return the mean (n,) of joints (n,), those of all messages in LASTING.

    Raises InputError if they are too few, not numbers, far beyond the limits, or a joint has moved.
    """
    if len(seen) < FEWEST:
        raise InputError(
            f'{len(seen)} joint_states came in {LASTING} s, at least {FEWEST} are needed: does the arm run?'
        )
    rows = np.array(seen)
    if not np.isfinite(rows).all():
        raise InputError('joint_states hold what is not a number')
    moved = np.ptp(rows, axis=0) / np.where(model.slides, STILL_SLIDE, STILL)
    if moved.max() > 1.0:
        name = quoted(model.arm.joint_names[int(moved.argmax())])
        raise InputError(f'joint {name} moved: hold the arm still, and try again')
    mean = np.asarray(rows.mean(axis=0))
    model.check_limits(mean[None])
    return mean


def report(model: TouchModel, record: Record, found: Calibration) -> list[str]:
    """Return what a calibration has found, in sentences."""
    arm, fit = model.arm, found.fit
    touches, checks = (record.of(arm.joint_names, kind) for kind in (False, True))
    kinds = 'zeros and tool point' if found.model == ZEROS else 'the frames of all joints, zeros and tool point'
    lines = [
        f'{len(touches.q)} touches: the crosses were missed by {found.before / MM:.1f} mm, now by '
        f'{found.left_out / MM:.1f} mm (each cross by the estimate without it); estimated: {kinds}'
    ]
    if len(checks.q):
        misses = model.misses(checks, fit.parameters)
        lines.append(f'{len(misses)} checks: {np.sqrt((misses**2).sum(axis=1).mean()) / MM:.1f} mm')
    zeros, spread = fit.parameters[model.zeros], np.sqrt(np.diag(fit.covariance))[model.zeros]
    words = [
        f'{name} {math.degrees(zero):+.1f}'
        for name, zero, slides in zip(arm.joint_names, zeros, model.slides, strict=True)
        if not slides
    ]
    lines.append(f'zeros: {", ".join(words)} degrees (each +-{math.degrees(spread.max()):.1f})')
    tool = fit.parameters[model.tool] / MM
    lines.append(f'the tool point is {np.linalg.norm(tool):.1f} mm from where the description has it')
    for touch, far in found.wrong.items():
        lines.append(
            f'cross {touches.crosses[touch] + 1}, touch {touch + 1} is {far / MM:.0f} mm from where the others put it: '
            'it was probably another cross; it is ignored'
        )
    if found.left_out > PLAY[0] and found.scatter > PLAY[1] * found.left_out:
        lines.append(
            f'{found.scatter / MM:.1f} mm of the miss is scatter between touches of one cross: the arm has play; more '
            'touches will not help'
        )
    first, beside = quoted(arm.joint_names[0]), float(np.linalg.norm(fit.parameters[model.pose][:2]))
    if model.known[0] > ON_OUTLINE[0]:
        lines.append(f'the sheet has no outline of the base: the zero of {first} is that of the sheet as it lies')
    elif beside > 3.0 * ON_OUTLINE[0]:
        lines.append(
            f'the base stands {beside / MM:.0f} mm beside its outline: the zero of {first} is not known; the rest is'
        )
    return lines
