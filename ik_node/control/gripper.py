# SPDX-License-Identifier: Apache-2.0
"""GripperWatch: whether a gripper moves, holds an object or has closed on nothing."""

from __future__ import annotations

import enum
import math
from collections import deque
from dataclasses import dataclass

from .requests import Level

NEAR = 0.03  # share of the stroke within which a gripper has reached its target
STILL = 0.3  # [s] for which it must stay within CALM to be at rest
CALM = 0.01  # share of the stroke
FIRM = 1.1  # times the effort at which a gripper holds something: from there on it is relieved
KEPT = 0.5  # share of the effort at which it begins to hold something, down to which it holds that
SAME = 1e-6  # share of the stroke within which two targets are one: positions of a joint are rounded


class Grip(enum.Enum):
    """What a gripper does; the value is for programs."""

    IDLE = 'idle'  # never commanded
    MOVING = 'moving'
    REACHED = 'reached'
    HOLDING = 'holding'  # kept from closing further: by an object, or by its own stop
    EMPTY = 'empty'  # closed, with nothing between the jaws
    BLOCKED = 'blocked'  # kept from opening further
    LOST = 'lost'  # it was holding, and what it held is gone
    UNMEASURED = 'unmeasured'  # commanded, but where it is is not known


SENTENCES = {
    Grip.IDLE: 'the gripper has not been commanded yet',
    Grip.MOVING: 'the gripper moves',
    Grip.REACHED: 'the gripper has arrived',
    Grip.HOLDING: 'the gripper holds something',
    Grip.EMPTY: 'the gripper has closed on nothing',
    Grip.BLOCKED: 'something keeps the gripper from opening',
    Grip.LOST: 'the gripper has lost what it held',
    Grip.UNMEASURED: 'the gripper has been commanded, but its position is not measured',
}


@dataclass(frozen=True)
class GripperState:
    """opening and target: from 0, closed, to 1, open; NaN while unknown. target: as the user gave it."""

    grip: Grip
    opening: float
    target: float

    @property
    def level(self) -> Level:
        """WARN for what a user did not ask for."""
        return Level.WARN if self.grip in (Grip.BLOCKED, Grip.LOST) else Level.OK

    def describe(self) -> str:
        """Return one sentence."""
        where = '' if math.isnan(self.opening) else f' at {100.0 * self.opening:.0f} %'
        return f'{SENTENCES[self.grip]}{where}'


class GripperWatch:
    """Judges a gripper by its commands and measurements. Openings are shares of the stroke; times are seconds."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, float, float]] = deque()  # time, opening, push; for STILL at least
        self._target = self._relief = math.nan
        self._held = math.nan  # the opening at which the effort told of an object
        self._relieved = -math.inf  # when the command was on its way to a relief: later efforts are due to that
        self.state = GripperState(Grip.IDLE, math.nan, math.nan)

    def update(
        self,
        time: float,
        opening: float | None,
        command: tuple[float, float] | None,
        squeeze: float,
        push: float = 0.0,
    ) -> float | None:
        """Take what is measured and commanded at a time; return an opening to command instead, else None.

        opening: measured, None without. command: its target and where the command is now; None before the first.
        squeeze: how far beyond an object the gripper may be commanded. A motor that pushes farther burns out.
        push: the measured effort, as a share of the one at which the gripper holds something.
        """
        now = math.nan if opening is None else opening
        if command is None:
            self._settle(Grip.IDLE, now)
            return None
        target, commanded = command
        if not (_same(target, self._target) or _same(target, self._relief)):  # a new command
            self._target = target
            self._relief = self._held = math.nan
            self._relieved = -math.inf
            self._seen.clear()
        if opening is None:
            self._seen.clear()
            self._settle(Grip.UNMEASURED if _same(commanded, target) else Grip.MOVING, now)
            return None
        if self._seen and time < self._seen[-1][0]:  # the clock was set back
            self._seen.clear()
            self._relieved = -math.inf
        self._seen.append((time, opening, push if push > 0.0 else 0.0))  # NaN: not measured
        if _same(target, self._relief) and not _same(commanded, target):
            self._relieved = time
        while len(self._seen) > 1 and time - self._seen[1][0] >= STILL:
            self._seen.popleft()
        openings, pushes = [seen[1] for seen in self._seen], [seen[2] for seen in self._seen]
        still = time - self._seen[0][0] >= STILL and max(openings) - min(openings) <= CALM
        gripped = still and push >= 1.0 and max(commanded, target) < opening
        if gripped:
            self._held = opening
        elif max(pushes) < KEPT:
            self._held = math.nan
        if not gripped and not (still and _same(commanded, target)):
            kept = self.state.grip is Grip.HOLDING and _same(target, self._relief) and self._holds(opening, target)
            self._settle(Grip.HOLDING if kept else Grip.MOVING, now)
            return None
        self._settle(self._at_rest(opening, target), now)
        if self.state.grip is not Grip.HOLDING:
            return None
        if time < self._relieved + 2.0 * STILL:  # until all efforts seen are later ones
            return None
        push = max(1.0, sum(pushes) / len(pushes))
        if gripped and (push > FIRM or not _same(commanded, target)):  # the effort of a servo grows with its error
            self._relief, self._relieved = opening - min(squeeze, (opening - commanded) / push), time
            return self._relief
        if opening - target > squeeze + CALM:
            self._relief = opening - squeeze
            return self._relief
        return None

    def _holds(self, opening: float, target: float) -> bool:
        return opening > target + NEAR or abs(opening - self._held) <= CALM

    def _at_rest(self, opening: float, target: float) -> Grip:
        if self._holds(opening, target):
            return Grip.HOLDING
        if opening < target - NEAR:
            return Grip.BLOCKED
        if _same(target, self._relief):
            return Grip.LOST
        return Grip.EMPTY if target <= NEAR else Grip.REACHED

    def _settle(self, grip: Grip, opening: float) -> None:
        self.state = GripperState(grip, opening, self._target)


def _same(first: float, second: float) -> bool:
    return abs(first - second) <= SAME
