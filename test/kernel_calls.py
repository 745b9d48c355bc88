# SPDX-License-Identifier: Apache-2.0
"""Calls of every compiled kernel as the product makes them, kept to be made again by others."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any
from unittest.mock import patch

import numpy as np
from cases import shared_cases, shipped_cases
from made_arms import general_arm, make_arm, random_unit, wrist_arm

from ik_node import Arm, Goal, IkSolver, Tool, Tree, TreeSolver, kernels
from ik_node.control.motion import Limits, MotionState
from ik_node.control.pursuit import Pursuit
from ik_node.errors import IkError
from ik_node.model.urdf.reader import load_description
from ik_node.solver import redundancy
from ik_node.solver.limit_distances import LimitDistances
from ik_node.solver.reachable_directions import reachable_directions
from ik_node.startup.arguments import SUFFIX, URDF

Call = tuple[Any, ...]
Calls = dict[str, list[Call]]


def plain(name: str) -> Callable[..., Any]:
    """Return a kernel as Python."""
    return getattr(import_module(f'ik_node.kernels.{kernels.KERNELS[name]}'), name)


def outcome(kernel: Callable[..., Any], given: Call) -> list[np.ndarray]:
    """Return the results of a call, then the arrays after it."""
    arguments = [x.copy() if isinstance(x, np.ndarray) else x for x in given]
    with np.errstate(all='ignore'):
        results = _flat(kernel(*arguments))
    return [np.asarray(x) for x in (*results, *(x for x in arguments if isinstance(x, np.ndarray)))]


def _flat(value: Any) -> list[Any]:
    return [x for part in value for x in _flat(part)] if isinstance(value, tuple) else [value]


def differences(expected: Sequence[np.ndarray], got: Sequence[np.ndarray]) -> list[int]:
    """Return the numbers of the results and arrays that differ in a bit; NaN is NaN."""
    assert len(expected) == len(got)
    return [number for number, (x, y) in enumerate(zip(expected, got, strict=True)) if _differ(x, y)]


def _differ(x: np.ndarray, y: np.ndarray) -> bool:
    x = x.astype(y.dtype) if x.dtype != y.dtype else x  # Python's 0 is the 0.0 of C
    if x.shape != y.shape or x.dtype.kind != 'f':
        return x.shape != y.shape or x.tobytes() != y.tobytes()
    nowhere = np.isnan(x)
    return not np.array_equal(nowhere, np.isnan(y)) or x[~nowhere].tobytes() != y[~nowhere].tobytes()


@contextmanager
def recording(most: int) -> Iterator[Calls]:
    """Keep the arguments of up to most calls of each kernel; more of those that differ in shapes."""
    kept: Calls = defaultdict(list)
    shapes: dict[Any, int] = defaultdict(int)
    used = {name: getattr(kernels, name) for name in kernels.KERNELS}

    def wrapped(name: str, kernel: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any) -> Any:
            key = name, tuple(x.shape if isinstance(x, np.ndarray) else type(x) for x in given)
            shapes[key] += 1
            if shapes[key] <= most and not isinstance(given[0], (list, tuple)):  # Python takes arrays alone
                kept[name].append(tuple(x.copy() if isinstance(x, np.ndarray) else x for x in given))
            return kernel(*given)

        return call

    try:
        for name, kernel in used.items():
            setattr(kernels, name, wrapped(name, kernel))
        yield kept
    finally:
        for name, kernel in used.items():
            setattr(kernels, name, kernel)


def use(arm: Arm, rng: np.random.Generator) -> None:
    """Solve goals of an arm in every way."""
    solver = IkSolver(arm, restarts=20)
    rows = arm.sample(rng, 8)
    goals = [Goal(*arm.fk(q)) for q in rows]
    for goal in goals[:3]:
        solver.solve(goal, seed=rows[7])
        solver.solve(Goal(goal.position), seed=rows[7])
        solver.solve(Goal(goal.position, goal.direction, lateral=random_unit(rng)), seed=rows[7])
        solver.solve(Goal(goal.position, goal.direction, cone=0.3), seed=rows[7])
        solver.track(Goal(goal.position, goal.direction, cone=0.1), rows[7])
        solver.evaluate(goal, rows[7])
        solver.solve_all(goal, time_budget=0.1)
        solver.solve_all(Goal(goal.position), time_budget=0.1)
    position, direction = arm.fk(rows[3])
    for scale, turn in ((1.6, 1.0), (0.9, -1.0), (1.0, -1.0), (0.05, 1.0)):
        solver.solve(Goal(scale * position, turn * direction), time_budget=0.1)
        solver.solve(Goal(scale * position), time_budget=0.1)
        IkSolver(arm, restarts=20, direction_weight=0.1).solve(Goal(scale * position, turn * direction))
    for loose in (IkSolver(arm, restarts=20, closed_form=False), IkSolver(arm, direction_tolerance=0.5)):
        loose.solve(goals[4], seed=rows[7])
        loose.solve(Goal(0.9 * position, -direction), time_budget=0.1)
    for method in ('dls', 'ccd', 'fabrik', 'transpose'):
        IkSolver(arm, method=method, restarts=5).solve(goals[4], seed=rows[7], time_budget=0.02)
        next(iter(IkSolver(arm, method=method).steps(goals[4], rows[7])), None)
    points, axes = (np.array(x) for x in zip(*map(arm.fk, rows), strict=True))
    solver.solve_batch(points, axes)
    solver.solve_batch(points)
    way = [arm.fk(rows[5] + share * (rows[6] - rows[5])) for share in np.linspace(0.0, 0.2, 12)]
    solver.solve_path(np.array([p for p, _ in way]), np.array([d for _, d in way]), rows[5])
    q = rows[5]
    for p, d in way:
        q = solver.track(Goal(p, d), q).q
        solver.solve_nearby(Goal(p, d), q)
    if arm.effective_dof < np.count_nonzero(~arm.idle):
        spare = arm.joint_names[int(np.flatnonzero(~arm.idle)[0])]
        solver.solve_all(goals[2], rows[2], locked_joints=[spare], time_budget=0.2)
    near = LimitDistances(arm)
    packed = np.array([goal.packed for goal in goals])
    _, found, _ = near.find(packed, starts=4)
    near.misses(packed * 1.5, np.full_like(found, -np.inf))


def use_reach(arm: Arm) -> None:
    """Survey a few positions."""
    directions = np.array([[0.0, 0, 1], [0, 1, 0], [1, 0, 0], [0, 0, -1]])
    places = np.array([arm.fk(q)[0] for q in arm.sample(np.random.default_rng(3), 3)])
    for _ in reachable_directions(arm, places, directions, 0.1, 1):
        pass


def use_tree(rng: np.random.Generator) -> None:
    """Solve goals of several tools that share joints, and that do not."""
    for name in ('torso_arms', 'two_arms'):
        text = load_description(str(URDF / f'{name}{SUFFIX}'))
        tree = Tree.from_urdf(text, {side: Tool(f'{side}_tool0') for side in ('left', 'right')})
        for method in ('lm', 'transpose'):
            solver = TreeSolver(tree, method=method, restarts=3)
            for scale in (1.0, 2.0):
                q = tree.sample(rng, 1)[0]
                goals = {tool: Goal(scale * p, d) for tool, (p, d) in tree.fk(q).items()}
                solver.solve(goals, seed=tree.middle, time_budget=0.3)
                solver.track(goals, q)
                solver.solve({'left': goals['left']}, seed=tree.middle, time_budget=0.3)


def use_pursuit() -> None:
    """Follow targets that are slow, fast, and that jump."""
    n, dt = 5, 0.01
    limits = Limits((np.full(n, 1.0), np.full(n, 5.0), np.full(n, 50.0)))
    for speed, size in ((0.5, 0.3), (3.0, 0.5), (9.0, 0.4)):
        pursuit, now = Pursuit(n), MotionState(*np.zeros((3, n)))
        for step in range(400):
            t = speed * dt * step * (1.0 if step % 200 < 150 else 0.5)
            wave = size * np.array([np.sin(t + k) for k in range(n)]), size * speed * np.cos(t + np.arange(n))
            now = pursuit.step(now, MotionState(*wave, -(speed**2) * wave[0]), limits, 0.04, dt)


def arms() -> Iterator[Arm]:
    """Return arms of every kind: shipped, of ../shared, without a form, with joints to spare, with rails."""
    for case in itertools.chain(shipped_cases(), shared_cases()[::3]):
        if case.path:
            yield case.arm()
    yield from (general_arm(1), general_arm(2, (0,)), wrist_arm(1), wrist_arm(2, 0.3))
    rng = np.random.default_rng(9)
    for n in (4, 6, 7):
        limits = np.column_stack((-rng.uniform(1.0, 3.0, n), rng.uniform(1.0, 3.0, n)))
        yield make_arm([random_unit(rng) for _ in range(n)], rng.uniform(-0.2, 0.2, (n, 3)), limits)


def recorded(most: int) -> Calls:
    """Return up to most calls of each kernel with arguments of the same shapes."""
    rng = np.random.default_rng(5)
    # However slow the computer is, curves of self-motions are followed: find_families is not called without them.
    with recording(most) as calls, patch.object(redundancy, 'steady', return_value=0.0):
        for arm in arms():
            try:
                use(arm, rng)
            except IkError as error:
                print(arm, error)
            use_reach(arm)
        use_tree(rng)
        use_pursuit()
    for method in ('ccd', 'dls', 'fabrik', 'lm', 'transpose'):
        calls[f'local_{method}'] = [_descent(call) for call in calls[f'search_{method}']]
    calls['follow'] = [(*call[:5], *_descent(call)[5:6], np.zeros((40, 20))) for call in calls['search_lm']]
    for count in (2, 3, 8):  # two of them allow no parabola
        times = np.sort(rng.uniform(0.0, 1.0, count))
        calls['fit_parabola'].append((times, rng.normal(size=(count, 3)), np.zeros((3, 3))))
    # Vectors have functions of math of their own: test_lanes.py compares these.
    calls['nearest_in_lanes'] = [(1, *given[1:]) for given in calls['nearest_in_lanes']]
    return dict(calls)


def _descent(search: Call) -> Call:
    """Return arguments of a single descent from those of a search."""
    joints, _, limits = search[:3]
    n, m = limits.shape[1], joints.shape[0]
    return *search[:5], np.full(n, 0.2), np.zeros((2 * m + 3, 3)), np.zeros((3 * n + 20, max(n, 6)))
