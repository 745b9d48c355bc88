# SPDX-License-Identifier: Apache-2.0
"""Arms and chains made up from axes and offsets, for geometry that no file has, and paths of their tools."""

from __future__ import annotations

import numpy as np

from ik_node import Arm, kernels


def urdf(axes, offsets, limits, kinds=None, mimics=()):
    """URDF text of a chain whose axes (n, 3) and offsets (n, 3) are those of the zero pose.

    limits (n, 2) [rad or m], kinds: joint types (default: revolute). mimics: of each the joint, which one it
    follows, both from 0, and the multiplier.
    """
    follows = {joint: f'<mimic joint="joint{driver + 1}" multiplier="{ratio!r}"/>' for joint, driver, ratio in mimics}
    lines = ['<robot name="made"><link name="base"/>']
    kinds = kinds or ['revolute'] * len(axes)
    parent = 'base'
    for i, (axis, offset, (low, high), kind) in enumerate(zip(axes, offsets, limits, kinds, strict=True)):
        child = f'link{i + 1}'
        lines.append(
            f'<link name="{child}"/><joint name="joint{i + 1}" type="{kind}">'
            f'<parent link="{parent}"/><child link="{child}"/>'
            f'<origin xyz="{_words(offset)}"/><axis xyz="{_words(axis)}"/>'
            f'<limit lower="{low!r}" upper="{high!r}" velocity="1" effort="1"/>'
            f'{follows.get(i, "")}</joint>'
        )
        parent = child
    return '\n'.join([*lines, '</robot>'])


def make_arm(axes, offsets, limits, kinds=None, tool_axis=(0, 0, 1), tool_point=(0, 0, 0), mimics=()) -> Arm:
    """The Arm of that chain, goals relative to its base."""
    limits = np.asarray(limits, dtype=float).tolist()
    text = urdf(axes, offsets, limits, kinds, mimics)
    return Arm.from_urdf(text, tool_axis=unit(tool_axis), tool_point=tool_point)


def _words(vector) -> str:
    return ' '.join(repr(float(value)) for value in vector)


def unit(vector):
    """The vector with length 1."""
    return np.asarray(vector, dtype=float) / np.linalg.norm(vector)


def random_unit(rng):
    """A direction, uniform over the sphere."""
    return unit(rng.normal(size=3))


def random_limits(rng, count):
    """Ranges (count, 2) of 2 to 10 rad, none of which need contain zero."""
    centre, half = rng.uniform(-2, 2, count), rng.uniform(1, 5, count)
    return np.column_stack([centre - half, centre + half])


def general_arm(seed: int, slides: tuple[int, ...] = (), limits=((-np.pi, np.pi),) * 5) -> Arm:
    """Five joints with axes in any direction; those in slides are prismatic."""
    rng = np.random.default_rng((seed, 10))
    axes = [random_unit(rng) for _ in range(5)]
    kinds = ['prismatic' if i in slides else 'revolute' for i in range(5)]
    bounds = [[-0.5, 0.5] if i in slides else limits[i] for i in range(5)]
    offsets = rng.uniform(-0.2, 0.2, (5, 3))
    return make_arm(axes, offsets, bounds, kinds, random_unit(rng), rng.uniform(-0.2, 0.2, 3))


def manseur_doty_arm() -> Arm:
    """The arm with up to 16 solutions, by DH parameters (after Manseur and Doty 1989)."""
    pose, axes, points = np.eye(4), [], []
    right, little = np.pi / 2, np.radians(1.0)
    twists = right, little, right, little, right
    for a, alpha, d in zip((0.3, 1, 0, 1.5, 0), twists, (0, 0, 0.2, 0, 0), strict=True):
        axes.append(pose[:3, 2])
        points.append(pose[:3, 3])
        c, s = np.cos(alpha), np.sin(alpha)
        pose = pose @ np.array([[1, 0, 0, a], [0, c, -s, 0], [0, s, c, d], [0, 0, 0, 1]])
    offsets = np.diff(np.vstack([np.zeros(3), points]), axis=0)
    limits = [[-np.pi, np.pi]] * 5
    return make_arm(axes, offsets, limits, None, pose[:3, 2], pose[:3, 3] - points[-1])


def parallel_arm(seed: int, tilt: float = 0.0, roll: bool = False) -> Arm:
    """A random arm with axes 2, 3, 4 parallel in either sense, each tilted by up to tilt [rad].

    roll: the tool lies on axis 5.
    """
    rng = np.random.default_rng(seed)
    u = random_unit(rng)
    across = np.cross(u, random_unit(rng))
    axes = [_aslant(rng, u), u, *(_tilted(rng, u, tilt) * rng.choice([-1.0, 1.0]) for _ in range(2))]
    axes.append(_aslant(rng, u))
    offsets = rng.uniform(-0.2, 0.2, (5, 3))
    for i in (2, 3):  # the planar links
        offsets[i] = _link(rng, u, across)
    axis, point = random_unit(rng), rng.uniform(-0.2, 0.2, 3)
    if roll:
        axis, point = axes[4] * rng.choice([-1.0, 1.0]), axes[4] * rng.uniform(-0.2, 0.2)
    return make_arm(axes, offsets, random_limits(rng, 5), _kinds(rng), axis, point)


def wrist_arm(seed: int, tilt: float = 0.0, miss: float = 0.0) -> Arm:
    """A random arm with axes 2, 3 parallel in either sense and axes 4, 5 and the tool axis through one point.

    tilt [rad] of axis 3, miss [m] of the tool axis.
    """
    rng = np.random.default_rng(seed)
    u = random_unit(rng)
    across = np.cross(u, random_unit(rng))
    axes = [_aslant(rng, u), u, _tilted(rng, u, tilt) * rng.choice([-1.0, 1.0]), random_unit(rng)]
    axes.append(_aslant(rng, axes[3]))
    tool = _aslant(rng, axes[4])
    offsets = rng.uniform(-0.2, 0.2, (5, 3))
    offsets[2] = _link(rng, u, across)
    wrist = _link(rng, u, across)  # from joint 3
    offsets[3] = wrist + axes[3] * rng.uniform(-0.1, 0.1)
    fifth = wrist + axes[4] * rng.uniform(-0.1, 0.1)
    offsets[4] = fifth - offsets[3]
    point = wrist + tool * rng.uniform(-0.2, 0.2) + miss * random_unit(rng) - fifth
    return make_arm(axes, offsets, random_limits(rng, 5), _kinds(rng), tool, point)


def _kinds(rng):
    """Revolute joints with a continuous one among them now and then."""
    return rng.choice(['revolute', 'revolute', 'revolute', 'continuous'], 5).tolist()


def _tilted(rng, axis, tilt):
    return unit(axis + rng.uniform(-1, 1) * tilt * unit(np.cross(axis, random_unit(rng))))


def _aslant(rng, axis):
    """A direction at least 0.3 rad from axis and from its opposite."""
    while True:
        other = random_unit(rng)
        if np.linalg.norm(np.cross(axis, other)) > 0.3:
            return other


def _link(rng, u, across):
    """An offset of 0.1 to 0.4 m across u and any way along it."""
    angle = rng.uniform(-np.pi, np.pi)
    flat = np.cos(angle) * unit(across) + np.sin(angle) * np.cross(u, unit(across))
    return flat * rng.uniform(0.1, 0.4) + u * rng.uniform(-0.2, 0.2)


def random_chain(seed):
    """Joints (m, 10), tool (9,) and the number of variables: hinges, slides and mimics in random order."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 8))
    variables = [*range(n), *rng.integers(0, n, int(rng.integers(0, 3)))]
    rng.shuffle(variables)
    seen, rows = set(), []
    for variable in variables:
        drive = [rng.uniform(-2, 2), rng.uniform(-1, 1)] if variable in seen else [1.0, 0.0]
        seen.add(variable)
        slides = float(rng.random() < 0.25)
        rows.append([*random_unit(rng), *rng.uniform(-0.3, 0.3, 3), slides, variable, *drive])
    axis = random_unit(rng)
    lateral = np.cross(axis, random_unit(rng))
    tool = np.concatenate([rng.uniform(-0.2, 0.2, 3), axis, lateral / np.linalg.norm(lateral)])
    return np.array(rows), tool, n


def frames_at(joints, tool, q):
    frames = np.full((2 * len(joints) + 3, 3), np.nan)
    kernels.forward(joints, tool, q, frames)
    return frames


def smooth_path(arm: Arm, seed: int, count: int) -> np.ndarray:
    """A joint path (count, n) within the limits, each joint the sum of two waves."""
    rng = np.random.default_rng(seed)
    low, high = np.where(arm.continuous, -np.pi, arm.lower), np.where(arm.continuous, np.pi, arm.upper)
    phase, rate = rng.uniform(0, 2 * np.pi, (2, arm.n)), rng.uniform(0.006, 0.012, (2, arm.n))
    waves = [np.sin(phase[k] + np.arange(count)[:, None] * rate[k]) for k in range(2)]
    return (low + high) / 2 + np.mean(waves, axis=0) * (high - low) / 2 * rng.uniform(0.3, 1, arm.n)


def tool_path(arm: Arm, joint_path):
    """Positions (N, 3) and directions (N, 3) along a joint path."""
    pairs = [arm.fk(q) for q in joint_path]
    return np.array([p for p, _ in pairs]), np.array([d for _, d in pairs])


AXES_OF_ARM = [(0, 0, 1), (0, 1, 0), (0, 1, 0), (0, 1, 0), (1, 0, 0)]
OFFSETS = [(0, 0, 0.1), (0.03, 0, 0.1), (0, 0, 0.3), (0.25, 0, 0), (0.1, 0, 0)]
TOOL = {'tool_axis': (0, 0.6, 0.8), 'tool_point': (0.05, 0, 0.02)}


def plain_arm(limits, kinds=None) -> Arm:
    """An arm with three parallel axes and a truly free direction."""
    return make_arm(AXES_OF_ARM, OFFSETS, limits, kinds, **TOOL)


def limits_of(value=3.0) -> np.ndarray:
    return np.full((5, 2), (-value, value))
