"""Standstills: an arm that should move, does not, and nobody says why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from faults.record import Record, Seen, SeenTrajectory

PATIENCE = 2.0  # [s] within which an arm moves, or is said not to
MOVING = 1e-7  # [rad/s, m/s]
ON_ITS_WAY = ('moving', 'teleoperated')
CODES = (4, 9)  # of these states in ~/goal_state


@dataclass
class Motion:
    """When the arm moved: spans of time by the steady clock."""

    spans: list[tuple[float, float]]

    @classmethod
    def of(cls, samples: Sequence[Seen | SeenTrajectory]) -> Motion:
        """Find out from samples and trajectories."""
        spans: list[tuple[float, float]] = []
        last: dict[str, Sequence[float]] = {}
        for seen in samples:
            if isinstance(seen, SeenTrajectory):
                spans.append((seen.when, seen.when + seen.times[-1] if seen.times else seen.when))
                continue
            before, last[seen.topic] = last.get(seen.topic), list(seen.positions)
            if seen.velocities is None:
                moves = before is not None and before != last[seen.topic]
            else:
                moves = any(abs(velocity) > MOVING for velocity in seen.velocities)
            if moves:
                spans.append((seen.when, seen.when))
        return cls(spans)

    def moved(self, since: float, until: float) -> bool:
        """Whether the arm moved at any time between."""
        return any(begin <= until and end >= since for begin, end in self.spans)


def standstills(record: Record, since: float, until: float) -> list[str]:
    """Return when the node said between two times that the arm was on its way, but it was not."""
    motion = Motion.of([seen for seen in record.samples if seen.when >= since - PATIENCE])
    said = [(when, code in CODES) for when, code in record.states]
    # A report on a goal that is refused says nothing about the state.
    said += [(s.when, s.state in ON_ITS_WAY) for s in record.statuses if s.state != 'refused']
    said += [(s.when, s.state in ON_ITS_WAY and not s.level) for s in record.diagnostics]
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
