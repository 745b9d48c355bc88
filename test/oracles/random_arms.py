# SPDX-License-Identifier: Apache-2.0
"""Arms made from random numbers: geometry and limits that no file in urdf/ or ../shared has."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from oracles.arms import Task
from oracles.chain import Array

MAX_JOINTS = 9
WIDTHS = ((0.3, 0.8), (0.8, 1.6), (1.3, 2.6), (2.6, math.pi), (math.pi, 4.5))  # half of a range [rad]


@dataclass(frozen=True)
class RandomTask(Task):
    """An arm whose URDF text is made here."""

    text: str = ''

    @property
    def xml(self) -> str:
        """The URDF text."""
        return self.text


def random_task(seed: int) -> Task:
    """Return the arm number seed: every other one with axes 2, 3, 4 parallel, the others any chain."""
    rng = np.random.default_rng((seed, 7))
    if seed % 2 == 0:
        return yaw_and_pitches(rng, f'pitches{seed}', roll=seed % 10 == 0)
    return any_chain(rng, f'chain{seed}')


def yaw_and_pitches(rng: np.random.Generator, name: str, roll: bool) -> Task:
    """Return a yaw, three parallel pitches and a skew fifth axis; roll: the tool lies on axis 5."""
    pitch = np.array([0.0, rng.choice([-1.0, 1.0]), 0.0])
    axes = np.array([[0.0, 0.0, 1.0], pitch, pitch, pitch, unit(rng)])
    offsets = rng.normal(size=(5, 3)) * rng.choice([0.1, 0.3], (5, 1))
    if roll:
        tool, point = axes[4], axes[4] * rng.uniform(-0.2, 0.2)
    else:
        tool, point = unit(rng), rng.normal(size=3) * rng.choice([0.01, 0.1])
    return task(name, axes, offsets, np.zeros(5, bool), limits(rng, 5, 0.3, 2.6), tool, point)


def any_chain(rng: np.random.Generator, name: str) -> Task:
    """Return 1 to MAX_JOINTS joints, one in six of them prismatic, axes often along x, y or z."""
    n = int(rng.integers(1, MAX_JOINTS + 1))
    axes = np.array([unit(rng) if rng.random() < 0.5 else np.eye(3)[rng.integers(3)] for _ in range(n)])
    offsets = rng.normal(size=(n, 3)) * rng.choice([0.0, 0.1, 0.3], (n, 1))
    slides = rng.random(n) < 1 / 6
    bounds = limits(rng, n, 0.1, math.pi)
    bounds[slides] *= 0.1
    return task(name, axes, offsets, slides, bounds, unit(rng), rng.normal(size=3) * 0.1)


def general_arm(seed: int) -> Task:
    """Return the arm number seed with five revolute joints of any geometry."""
    rng = np.random.default_rng((seed, 13))
    axes = np.array([unit(rng) for _ in range(5)])
    offsets = rng.normal(size=(5, 3)) * rng.choice([0.05, 0.2], (5, 1))
    bounds = limits(rng, 5, *WIDTHS[seed % len(WIDTHS)])
    return task(f'general{seed}', axes, offsets, np.zeros(5, bool), bounds, unit(rng), rng.normal(size=3) * 0.1)


def limits(rng: np.random.Generator, count: int, least: float, most: float) -> Array:
    """Return ranges (count, 2) with half widths from least to most [rad], around centers of up to 1 rad."""
    center, half = rng.uniform(-1.0, 1.0, count), rng.uniform(least, most, count)
    return np.column_stack([center - half, center + half])


def task(
    name: str,
    axes: Array,
    offsets: Array,
    slides: Array,
    bounds: Array,
    tool: Array,
    point: Array,
    position_only: bool = False,
) -> Task:
    """Return the chain with these axes (n, 3), offsets (n, 3) and limits (n, 2) at its zero pose."""
    lines = [f'<robot name="{name}"><link name="l0"/>']
    for i, (axis, offset, slide, (low, high)) in enumerate(zip(axes, offsets, slides, bounds, strict=True)):
        lines.append(
            f'<link name="l{i + 1}"/><joint name="j{i + 1}" type="{"prismatic" if slide else "revolute"}">'
            f'<parent link="l{i}"/><child link="l{i + 1}"/><origin xyz="{words(offset)}"/>'
            f'<axis xyz="{words(axis)}"/><limit lower="{float(low)!r}" upper="{float(high)!r}" velocity="1" '
            'effort="1"/></joint>'
        )
    text = '\n'.join([*lines, '</robot>'])
    tip = f'l{len(axes)}'
    return RandomTask(name, Path(name), 'l0', tip, tuple(tool), tuple(point), False, position_only, text)


def unit(rng: np.random.Generator) -> Array:
    """Return a direction, uniform over the sphere."""
    vector = rng.normal(size=3)
    return vector / np.linalg.norm(vector)


def words(vector: Array) -> str:
    """Return the numbers with blanks between them."""
    return ' '.join(repr(float(value)) for value in vector)
