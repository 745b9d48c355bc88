# SPDX-License-Identifier: Apache-2.0
"""Arms of special geometry, or nearly so: parallel and meeting axes, slides, fewer than five joints."""

from __future__ import annotations

import itertools
import math

import numpy as np

from oracles.arms import Task
from oracles.chain import Array, rotations
from oracles.random_arms import WIDTHS, general_arm, limits, task, unit

VARIANTS = 6  # of each kind; the odd ones have their other axes along x, y or z
OFFSETS = (1e-3, 1e-6, 1e-9)  # rad, and share of the length, by which near-degenerate arms are off
SIZE = 0.2  # [m] of a link
TOOL = 5  # place of the tool axis, after the joints 0 to 4
TRIPLES = ((0, 1, 2), (1, 2, 3), (2, 3, 4))
MEETING = (*TRIPLES, (3, 4, TOOL))


def manseur_doty() -> Task:
    """Return an arm after Manseur and Doty (1989): some goals have 16 real solutions."""
    lengths, twists, shifts = (0.3, 1.0, 0.0, 1.5, 0.0), np.radians([90, 1, 90, 1, 90]), (0, 0, 0.2, 0, 0)
    turn, place, axes, points = np.eye(3), np.zeros(3), [], []
    for length, twist, shift in zip(lengths, twists, shifts, strict=True):
        axes.append(turn[:, 2])
        points.append(place)
        place = place + turn @ np.array([length, 0.0, shift])
        turn = turn @ rotations(np.array([1.0, 0.0, 0.0]), np.array([twist]))[0]
    bounds = np.tile([-math.pi, math.pi], (5, 1))
    return task(
        'manseur_doty',
        np.array(axes),
        np.diff(points, axis=0, prepend=np.zeros((1, 3))),
        np.zeros(5, bool),
        bounds,
        turn[:, 2],
        place - points[-1],
    )


def kinds() -> dict[str, list[Task]]:
    """Return the arms that are exactly special, by kind."""
    arms = {'manseur_doty': [manseur_doty()]}
    for place in range(5):
        arms[f'slide at {place + 1}'] = variants(f'slide{place + 1}', slides=(place,))
    pairs = list(itertools.combinations(range(5), 2))
    arms['two slides'] = [made(f'slides{a + 1}{b + 1}', k, slides=(a, b)) for k, (a, b) in enumerate(pairs)]
    for places in TRIPLES:
        text = numbered(places)
        arms[f'parallel {text}'] = variants(f'parallel{text}', parallel=places)
        for slide in places:
            kind = f'parallel {text}, slides'
            arms[kind] = arms.get(kind, []) + [
                made(f'parallel{text}slide{slide + 1}_{k}', k, parallel=places, slides=(slide,)) for k in (0, 1)
            ]
    for places in MEETING:
        text = numbered(places)
        arms[f'meet {text}'] = variants(f'meet{text}', meet=places)
    arms['meet 45t, slide'] = [made(f'meet45tslide{k + 1}', k, meet=(3, 4, TOOL), slides=(k,)) for k in range(3)]
    arms['meet 345, slide'] = [made(f'meet345slide{k + 1}', k, meet=(2, 3, 4), slides=(k,)) for k in range(2)]
    return arms


def fewer() -> dict[str, list[Task]]:
    """Return arms with one to four joints, and with three for positions only, by kind."""
    arms = {}
    for count in range(1, 5):
        arms[f'{count} joints'] = [few(f'joints{count}_{k}', count, k) for k in range(2 * VARIANTS)]
    arms['3 joints, position'] = [few(f'position3_{k}', 3, k, position_only=True) for k in range(3 * VARIANTS)]
    return arms


def near() -> dict[str, list[Task]]:
    """Return the arms that are special but for a small angle or distance, by kind."""
    arms = {}
    for off in OFFSETS:
        for places in MEETING:
            text = numbered(places)
            arms[f'meet {text} to {off:g}'] = variants(f'meet{text}_{off:g}', meet=places, off=off)
    return arms


def made_arm(name: str) -> Task:
    """Return the arm of this name of this module, or the general one. Raises KeyError."""
    if name.startswith('general'):
        return general_arm(int(name.removeprefix('general')))
    groups = itertools.chain(*(part.values() for part in (kinds(), fewer(), near())))
    return {task.name: task for group in groups for task in group}[name]


def numbered(places: tuple[int, ...]) -> str:
    """Return places as joint numbers, t for the tool axis."""
    return ''.join('t' if place == TOOL else str(place + 1) for place in places)


def variants(name: str, **geometry: object) -> list[Task]:
    """Return VARIANTS arms of the same kind."""
    return [made(f'{name}_{k}', k, **geometry) for k in range(VARIANTS)]


def made(
    name: str,
    variant: int,
    parallel: tuple[int, ...] = (),
    meet: tuple[int, ...] = (),
    slides: tuple[int, ...] = (),
    off: float = 0.0,
) -> Task:
    """Return five joints of which some are parallel (slides among them perpendicular) or meet in a point.

    Up to off [rad, share of SIZE]. Other axes and lengths are random; in odd variants along x, y or z.
    """
    rng = np.random.default_rng((variant, 17, *parallel, 9, *meet, 9, *slides))
    sliding = np.isin(np.arange(5), slides)
    bounds = limits(rng, 5, *WIDTHS[variant % len(WIDTHS)])
    while True:
        axes, points = skeleton(rng, 5, neat=variant % 2 == 1)
        for place in parallel:
            if place in slides:
                across = np.cross(axes[parallel[0]], unit(rng))
                axes[place] = across / np.linalg.norm(across)
            elif place != parallel[0]:
                axes[place] = axes[parallel[0]] * rng.choice([-1.0, 1.0])
        for place in meet:
            points[place] = points[meet[0]] + axes[place] * rng.uniform(0.2, 1.0) * SIZE
        if full(assembled(name, axes, points, sliding, bounds)):
            break
    if off:
        noise = np.random.default_rng((variant, 19))
        axes += off * noise.normal(size=axes.shape)
        axes /= np.linalg.norm(axes, axis=1, keepdims=True)
        points += off * SIZE * noise.normal(size=points.shape)
    return assembled(name, axes, points, sliding, bounds)


def few(name: str, count: int, variant: int, position_only: bool = False) -> Task:
    """Return an arm with few joints: any, neat, yaw and pitches; every other round with slides."""
    rng = np.random.default_rng((variant, 23, count))
    bounds = limits(rng, count, *WIDTHS[variant % len(WIDTHS)])
    while True:
        axes, points = skeleton(rng, count, neat=variant % 3 == 1)
        if variant % 3 == 2:
            axes[0], axes[1:count] = np.eye(3)[2], np.eye(3)[1]
        slides = rng.random(count) < 0.4 if variant // 3 % 2 else np.zeros(count, bool)
        arm = assembled(name, axes, points, slides, bounds, position_only)
        if full(arm):
            return arm


def full(task: Task) -> bool:
    """Whether the solutions of a goal are isolated: every joint counts."""
    return task.arm.n == (task.arm.position_dof if task.position_only else task.arm.effective_dof)


def skeleton(rng: np.random.Generator, count: int, neat: bool) -> tuple[Array, Array]:
    """Return axes and points (count + 1, 3) at the zero pose, the tool last."""
    if not neat:
        axes = np.array([unit(rng) for _ in range(count + 1)])
        return axes, np.cumsum(rng.normal(size=(count + 1, 3)) * SIZE, axis=0)
    axes = np.eye(3)[rng.integers(3, size=count + 1)] * rng.choice([-1.0, 1.0], (count + 1, 1))
    for place in range(1, count + 1):  # no two in a row parallel, as in the arms that are built
        if abs(axes[place] @ axes[place - 1]) > 0.5:
            axes[place] = np.roll(axes[place], 1)
    steps = np.eye(3)[rng.integers(3, size=count + 1)] * rng.uniform(0.3, 1.5, (count + 1, 1)) * SIZE
    return axes, np.cumsum(steps + 0.25 * np.roll(steps, 1, axis=1) * rng.integers(2), axis=0)


def assembled(name: str, axes: Array, points: Array, slides: Array, bounds: Array, position_only: bool = False) -> Task:
    """Return the arm with these axes and points (n + 1, 3) at its zero pose, the tool last."""
    bounds = np.where(slides[:, None], 0.15 * bounds, bounds)
    offsets = np.diff(points, axis=0, prepend=np.zeros((1, 3)))
    return task(name, axes[:-1], offsets[:-1], slides, bounds, axes[-1], offsets[-1], position_only)
