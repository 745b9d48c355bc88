# SPDX-License-Identifier: Apache-2.0
"""The outcome of runs, and how outcomes add up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from ik_node.servos.bus.models import model_named
from ik_node.servos.calibration.profile import ArmProfile


@dataclass
class Outcome:
    """wrong: violations by seed. counts: what has happened, by what. hits: packets that faults have hit, by
    (request, kind)."""

    runs: int = 0
    wrong: dict[int, list[str]] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    hits: Counter[tuple[str, str]] = field(default_factory=Counter)

    def add(self, other: Outcome) -> None:
        """Add the outcome of other runs."""
        self.runs += other.runs
        self.wrong.update(other.wrong)
        self.counts += other.counts
        self.hits += other.hits

    def met(self, hits: Iterable[list[object]], profile: ArmProfile) -> None:
        """Add packets that were hit, as (request, kind, count); addresses become names of registers."""
        names = {
            register.address: name
            for joint in reversed(profile.joints)
            for name, register in model_named(joint.model).registers.items()
        }
        for request, kind, count in hits:
            code, address = str(request).split()
            self.hits[f'{code} {names.get(int(address), address)}', str(kind)] += int(str(count))

    def report(self) -> str:
        """Return all but the violations as text."""
        lines = [f'{self.runs} runs, {len(self.wrong)} with violations']
        lines += [f'  {count:9} {what}' for what, count in sorted(self.counts.items())]
        for title, place in (('request', 0), ('kind', 1)):
            sums: Counter[str] = Counter()
            for key, count in self.hits.items():
                sums[key[place]] += count
            if sums:
                lines.append(f'packets hit by {title}: ' + ', '.join(f'{k} {n}' for k, n in sums.most_common()))
        return '\n'.join(lines)
