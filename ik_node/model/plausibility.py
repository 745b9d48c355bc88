# SPDX-License-Identifier: Apache-2.0
"""Implausible values of an arm: degrees or millimetres, and joints that are off by a whole turn.

Every program asks the same questions, in these words. A number alone never proves a wrong unit, so that
limits and lengths are only questioned; what would move an arm is refused.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from ik_node.checks import Array
from ik_node.errors import quoted

FAR, FAR_LINEAR = 0.5, 0.1  # [rad], [m] outside its limits where a joint cannot be
TURN = 2.0 * math.pi
STEP, STEP_LINEAR = 0.3, 0.1  # [rad], [m] between two measurements that no speed has to explain
FASTEST, FASTEST_LINEAR = 5.0, 1.0  # [rad/s], [m/s] of a joint that a hand moves, or that falls
MAX_TURNS = 2.0 * TURN + 0.1  # [rad] wider limits are degrees, or a placeholder
MAX_DEGREES = 720.0  # in a measurement: more are ticks of an encoder
MAX_SPEED = 30.0  # [rad/s] the same for velocity limits: fast servos and robots have up to 13
LONGEST = 20.0  # [m] for an arm without its rails, and the travel of a rail
REACHES = 20.0  # distance of a goal, in reaches of the arm, from which its unit is questioned
NEAR = 0.15  # of the reach: where no task is, but where changes of poses are
LISTED = 8  # joints that a sentence names


@dataclass(frozen=True)
class Span:
    """Limits of a joint: lower, upper [rad or m], infinite for continuous joints, velocity [1/s]."""

    name: str
    lower: float
    upper: float
    velocity: float
    prismatic: bool

    @property
    def unit(self) -> str:
        """The unit of its position."""
        return 'm' if self.prismatic else 'rad'

    def outside(self, value: float) -> bool:
        """Whether a joint cannot be at a value: farther outside the limits than inaccuracy explains."""
        far = FAR_LINEAR if self.prismatic else FAR
        return not self.lower - far <= value <= self.upper + far

    def suspicions(self, value: float) -> tuple[str, ...]:
        """Return what a value that is outside may be, such as 'degrees' or 'a whole turn'."""
        if self.prismatic:
            return ('millimetres',) if not self.outside(1e-3 * value) else ()
        if abs(value) > MAX_DEGREES:
            return ('encoder ticks',)
        found = []
        # A driver in degrees may be outside in degrees, too; no encoder is off by several turns.
        if not self.outside(math.radians(value)) or abs(value) > MAX_TURNS:
            found.append('degrees')
        if any(self.lower <= value + turn <= self.upper for turn in (-TURN, TURN)):
            found.append('a whole turn')
        return tuple(found)

    def where(self, value: float) -> str:
        """Return a value and the limits, for a message."""
        return f'{value:.6g} {self.unit}, its limits are {self.lower:.4g} to {self.upper:.4g} {self.unit}'


def spans_of(names: Iterable[str], lower: Array, upper: Array, velocity: Array, prismatic: Array) -> list[Span]:
    """Return the spans of joints from their names and limits, each (n,)."""
    rows = (values.tolist() for values in (lower, upper, velocity, prismatic))
    return [Span(*row) for row in zip(names, *rows, strict=True)]


def measured_outside(span: Span, value: float) -> str:
    """Return a question if a joint cannot be where it is measured [rad or m], else ''."""
    if not span.outside(value):
        return ''
    questions = [
        {
            'degrees': 'does the driver publish degrees',
            'encoder ticks': 'does the driver publish encoder ticks',
            'millimetres': 'does the driver publish millimetres',
            'a whole turn': 'is its encoder off by a whole turn',
        }[one]
        for one in span.suspicions(value)
    ]
    question = ', or '.join(questions) or 'is its zero wrong, or its direction'
    return f'joint {quoted(span.name)} is measured at {span.where(value)} ({question}?)'


def measured_leap(span: Span, before: float, value: float, seconds: float) -> str:
    """Return a question if a joint cannot have moved from before to value [rad or m] in a time, else ''.

    Joints without limits are measured up to whole turns.
    """
    step, fastest = (STEP_LINEAR, FASTEST_LINEAR) if span.prismatic else (STEP, FASTEST)
    gap = value - before
    if math.isinf(span.lower):
        gap -= TURN * round(gap / TURN)
    if abs(gap) <= step + max(fastest, 2.0 * span.velocity) * max(seconds, 0.0):
        return ''
    units = 'millimetres' if span.prismatic else 'degrees'
    return (
        f'joint {quoted(span.name)} is measured at {before:.4g} {span.unit} and {max(seconds, 0.0):.3g} s '
        f'later at {value:.4g} {span.unit}, faster than it can move (a faulty measurement, swapped joints, '
        f'{units}, or two publishers?)'
    )


def given_outside(span: Span, value: float) -> str:
    """Return a question about a joint value [rad or m] that a user gave, '' if it may be meant.

    Angles of up to a turn may be meant: many count from 0 to 2 pi.
    """
    if not span.outside(value) or (not span.prismatic and abs(value) <= TURN + FAR):
        return ''
    units = [one for one in span.suspicions(value) if one != 'a whole turn']
    return f'joint {quoted(span.name)} at {span.where(value)}: are these {units[0]}?' if units else ''


def goal_too_far(distance: float, reach: float) -> str:
    """Return a question about a goal at a distance from an arm, both [m], '' if it may be meant."""
    if not distance > REACHES * reach > 0.0:
        return ''
    return f'{distance / reach:.0f} times the reach of the arm ({reach:.3g} m) away: are these millimetres?'


def doubtful_positions(positions: Array, reach: float) -> str:
    """Return a question about positions (N, 3) [m] that are all at the origin of the base, else ''."""
    farthest = float(np.linalg.norm(positions, axis=1).max(initial=0.0))
    if not len(positions) > 1 or not 0.0 < farthest < NEAR * reach:
        return ''
    return (
        f'all positions are within {farthest:.3g} m of the origin of the base frame, inside the '
        'base of the arm: are these pose changes (delta actions)? Absolute poses are needed'
    )


def doubtful_limits(spans: Iterable[Span], source: str = 'URDF') -> list[str]:
    """Return a question for each kind of limits that are probably in another unit."""
    spans = [span for span in spans if span.lower < span.upper]
    angles = [span for span in spans if not span.prismatic]
    wide = [span for span in angles if MAX_TURNS < _widest(span) < math.inf]
    fast = [span for span in angles if MAX_SPEED < span.velocity < math.inf]
    found = []
    if not _placeholders(map(_widest, wide)):
        found.append(
            f'{_joints(wide)} limits such as {wide[0].lower:g} to {wide[0].upper:g} rad: {source} limits are '
            'radians, are these degrees?'
        )
    elif not _placeholders(span.velocity for span in fast):
        found.append(
            f'{_joints(fast)} velocity limits such as {fast[0].velocity:g} rad/s: {source} limits are '
            'radians per second, are these degrees?'
        )
    long = [span for span in spans if span.prismatic and LONGEST < _widest(span) < math.inf]
    if not _placeholders(map(_widest, long)):
        found.append(
            f'{_joints(long)} limits such as {long[0].lower:g} to {long[0].upper:g} m: {source} limits are '
            'metres, are these millimetres?'
        )
    return found


def doubtful_lengths(lengths: Mapping[str, float]) -> list[str]:
    """Return a question if links, lengths [m] by what has them, are too long for an arm."""
    if not sum(lengths.values()) > LONGEST:
        return []
    most = max(lengths, key=lambda name: lengths[name])
    return [
        f'the links have a length of {sum(lengths.values()):.4g} m, {lengths[most]:.4g} m of it at {most}: '
        'URDF lengths are metres, are these millimetres?'
    ]


def doubtful_mesh(size: float) -> str:
    """Return a question if a mesh of a size [m] is too large for an arm, else ''."""
    if not size > LONGEST:
        return ''
    return (
        f'it is {size:.4g} m large: URDF meshes are in metres, is this one in millimetres (scale="0.001 0.001 0.001")?'
    )


def _widest(span: Span) -> float:
    return max(abs(span.lower), abs(span.upper))


def _placeholders(values: Iterable[float]) -> bool:
    """Whether all values are powers of ten, as people type who have no limits; also if there are none."""
    return all(math.log10(value).is_integer() for value in values)


def _joints(spans: list[Span]) -> str:
    names = ', '.join(quoted(span.name) for span in spans[:LISTED])
    more = f' and {len(spans) - LISTED} more' if len(spans) > LISTED else ''
    return f'joint{"s" if len(spans) > 1 else ""} {names}{more} {"have" if len(spans) > 1 else "has"}'
