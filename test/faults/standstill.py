# SPDX-License-Identifier: Apache-2.0
"""Standstills: an arm that should move, does not, and nobody says why."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from faults.record import Record, Seen, SeenTrajectory

PATIENCE = 2.0  # [s] within which an arm moves, or is said not to
MOVING = 1e-7  # [rad/s, m/s]
ON_ITS_WAY = ('moving', 'teleoperated')
CODES = (4, 9)  # of these states in ~/goal_state
WAITING = 'late'  # the arm waits for measurements until the next report


@dataclass
class Motion:
    """When the arm moved: spans of time by the steady clock."""

    spans: list[tuple[float, float]]

    @classmethod
    def of(cls, samples: Sequence[Seen | SeenTrajectory], joints: Collection[str] | None = None) -> Motion:
        """Find out from samples and trajectories; joints: that count, None: all."""
        spans: list[tuple[float, float]] = []
        last: dict[str, Sequence[float]] = {}
        for seen in samples:
            if isinstance(seen, SeenTrajectory):
                if joints is not None and not set(joints) & set(seen.names):
                    continue
                spans.append((seen.when, seen.when + seen.times[-1] if seen.times else seen.when))
                continue
            mine = [i for i, name in enumerate(seen.names) if joints is None or name in joints]
            before, last[seen.topic] = last.get(seen.topic), [seen.positions[i] for i in mine]
            if seen.velocities is None:
                moves = before is not None and before != last[seen.topic]
            else:
                moves = any(abs(seen.velocities[i]) > MOVING for i in mine)
            if moves:
                spans.append((seen.when, seen.when))
        return cls(spans)

    def moved(self, since: float, until: float) -> bool:
        """Whether the arm moved at any time between."""
        return any(begin <= until and end >= since for begin, end in self.spans)


def standstills(
    record: Record, since: float, until: float, tool: str = '', joints: Collection[str] | None = None
) -> list[str]:
    """Return when the node said between two times that the arm of a tool was on its way, but it was not.

    joints: of that arm, None: all.
    """
    motion = Motion.of([seen for seen in record.samples if seen.when >= since - PATIENCE], joints)
    # A report on a goal that is rejected says nothing about the state.
    reports = [s for s in record.statuses if s.tool == tool and s.state != 'rejected']
    ends = [*(s.when for s in reports[1:]), until]
    waits = [(s.when, end) for s, end in zip(reports, ends, strict=False) if s.state == WAITING]
    said = [(s.when, s.state in ON_ITS_WAY) for s in reports]
    said += [
        (when, code in CODES and not any(begin <= when <= end for begin, end in waits))
        for when, of, code in record.states
        if of == tool
    ]
    said += [(s.when, s.state in ON_ITS_WAY and not s.level) for s in record.diagnostics if s.tool == tool]
    said += [(life, False) for life in record.lives]
    events = [event for event in sorted(said) if since - PATIENCE <= event[0] <= until]
    found, begin = [], None
    for when, way in [*events, (until, False)]:
        if begin is not None and when - begin > PATIENCE and not motion.moved(begin, when):
            found.append(f'said to be on its way for {when - begin:.1f} s, without any motion')
            begin = None
        if not way:
            begin = None
        elif begin is None or motion.moved(begin, when):
            begin = when
    return found
