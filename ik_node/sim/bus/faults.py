# SPDX-License-Identifier: Apache-2.0
"""Faults of a bus on demand."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass
from enum import Enum


class Kind(str, Enum):
    """What can be wrong; all but the last three concern answers, of one servo or of all."""

    MISSING = 'missing'  # no answer
    LATE = 'late'  # delay [s]
    CORRUPT = 'corrupt'  # a bit is wrong
    SHORT = 'short'  # the answer is valid, but has too few data
    SPLIT = 'split'  # in two pieces, delay [s] between them
    JUNK = 'junk'  # random bytes before the answer
    STATUS = 'status'  # bits of the error byte
    FOREIGN = 'foreign'  # the answer is valid, but bears the id that follows that of the servo
    WRONG = 'wrong'  # the answer is valid, but the position in it is off by ticks
    LOST = 'lost'  # an instruction that no servo hears
    ECHO = 'echo'  # the adapter sends back what it gets
    SILENCE = 'silence'  # of a sync read: no answers after that of a missing servo


@dataclass
class Fault:
    """A fault of the servo with that id, None: of all.

    share: of the packets that it hits. count: how many it hits at most, None: any number. delay [s], bits,
    ticks: see Kind.
    """

    kind: Kind
    id: int | None = None
    share: float = 1.0
    count: int | None = None
    delay: float = 0.0
    bits: int = 0
    ticks: int = 0


class Faults:
    """active: the faults in force; the same seed gives the same ones.

    request: what is carried out, such as 'read 56'. hits: packets that were hit, by (request, kind).
    """

    def __init__(self, seed: int = 0) -> None:
        self._random = random.Random(seed)
        self.active: list[Fault] = []
        self.request = ''
        self.hits: Counter[tuple[str, str]] = Counter()

    def hit(self, kind: Kind, id: int | None = None) -> Fault | None:
        """Return the fault of a kind that hits the next packet of a servo, None if none does."""
        for fault in self.active:
            if fault.kind is not kind or (fault.id is not None and id is not None and fault.id != id):
                continue
            if fault.count == 0 or self._random.random() >= fault.share:
                continue
            if fault.count is not None:
                fault.count -= 1
            self.hits[self.request, kind.value] += 1
            return fault
        return None

    def junk(self) -> bytes:
        """Return some random bytes."""
        return self._random.randbytes(self._random.randint(1, 12))

    def damaged(self, frame: bytes) -> bytes:
        """Return a frame with one wrong bit."""
        bit = self._random.randrange(8 * len(frame))
        changed = bytearray(frame)
        changed[bit // 8] ^= 1 << bit % 8
        return bytes(changed)
