# SPDX-License-Identifier: Apache-2.0
"""ik_place: the placements that it finds beside the best of many random ones."""

from __future__ import annotations

from time import process_time

import numpy as np

from benchmarks.arms import Task
from benchmarks.chain import Array
from benchmarks.tables import Table, heading
from ik_node.placement.region import Region
from ik_node.placement.search import GRID, Judged, PlacementSearch

TASKS = 20
RANDOM = 100_000  # placements
GOALS = 6
ROOM = 0.8  # of the reach: how far the base may be moved to all sides
NOISE = 0.3  # of the reach, by which half of the goals are off, so that not all can be met
KINDS = ('directions', 'positions', 'mixed', 'free base')


def run(tasks: list[Task], scale: float) -> None:
    """Print both, task by task."""
    count, number = max(1000, round(RANDOM * scale)), max(len(KINDS), round(TASKS * min(scale, 1.0)))
    heading(
        'Placements',
        f"""{GOALS} goals per task that the arm takes from one placement; in every second task half of them
        are moved by about {NOISE:g} of the reach. Beside the placement that the search of `ik_place` finds,
        the best of {count} at random in the same region, judged alike: goals met, then distance to the joint
        limits.
        Goals have a direction, none, or every second one has (mixed); free base: any attitude. Seconds: CPU
        time.""",
    )
    table = Table(
        'arm'.ljust(16), 'goals', 'met', 'to limits', 'random', 'to limits', 's', 's random', 'worse'
    )
    lost = 0
    for index in range(number):
        arm, kind = tasks[(index // len(KINDS)) % len(tasks)].arm, KINDS[index % len(KINDS)]
        search = made(arm, kind, index)
        start = process_time()
        best = search.best(*search.coarse(GRID, lambda _: None))
        middle = process_time()
        rng = np.random.default_rng(index)
        region = search.region
        random = search.judged(rng.uniform(region.lower, region.upper, (count, 6)))
        random = random[random.order[:1]]
        end = process_time()
        worse = bool(random.better(best[np.arange(1)])[0])
        lost += worse
        table.row(
            arm.name, kind, *told(best), *told(random), f'{middle - start:.1f}', f'{end - middle:.1f}',
            'yes' if worse else '',
        )  # fmt: skip
    print(f'\n{lost} of {number} tasks have a better random placement.')


def made(arm, kind: str, seed: int) -> PlacementSearch:
    """Return a search for goals that arm takes from somewhere, or some of them."""
    rng = np.random.default_rng((seed, 1))
    room = ROOM * arm.reach
    lower, upper = np.array([-room, -room, 0, 0, 0, -np.pi]), np.array([room, room, 0, 0, 0, np.pi])
    if kind == 'free base':
        lower[2:5], upper[2:5] = (-room, -np.pi, -np.pi / 2), (room, np.pi, np.pi / 2)
    region = Region(lower, upper)
    base = rng.uniform(lower, upper)[None] * 0.7
    (place,), (R,) = region.poses(base)
    pairs = [arm.fk(q) for q in arm.sample(rng, GOALS)]
    positions, directions = (np.array(values) for values in zip(*pairs, strict=True))
    if seed % 2:
        positions[::2] += NOISE * arm.reach * rng.normal(size=positions[::2].shape) / np.sqrt(3.0)
    given: Array | None = directions @ R.T
    if kind == 'positions':
        given = None
    elif kind == 'mixed':
        given[::2] = np.nan
    return PlacementSearch(arm, positions @ R.T + place, given, region)


def told(judged: Judged) -> tuple[str, str]:
    """Return how many goals the first placement meets, and how far from the limits."""
    distance = judged.distances[0]
    return f'{GOALS - judged.unmet[0]}/{GOALS}', f'{distance:.3f}' if np.isfinite(distance) else ''
