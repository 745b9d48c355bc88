"""What make compare measures and reports: the answers of a method to goals."""

from __future__ import annotations

from dataclasses import dataclass, field

from benchmarks.arms import Task
from benchmarks.chain import Array

RESTARTS = 100  # at most, for each goal


@dataclass
class Answers:
    """What a method made of Goals: per goal errors [m], [rad] by the benchmark's FK, whether the first
    descent did it, whether it claims success, and processor time [s]."""

    position: Array
    direction: Array
    first: Array
    claimed: Array
    seconds: Array

    def solved(self, tolerance: float) -> Array:
        """Whether both errors are within tolerance (N,)."""
        return (self.position <= tolerance) & (self.direction <= tolerance)


@dataclass
class Result:
    """All answers of one method on one arm, by kind of goal."""

    task: Task
    method: str
    answers: dict[str, Answers] = field(default_factory=dict)
