# SPDX-License-Identifier: Apache-2.0
"""Several tools on one robot: success, times, and steps along tracks."""

from __future__ import annotations

from itertools import product
from time import process_time

import numpy as np
from oracles.arms import Task
from oracles.chain import ROUNDING, Array, Chain
from oracles.torsos import TOOLS, goals_at, pair, random_goals, torso, torso_text

from benchmarks.tables import Table, heading, microseconds, percent
from ik_node import Goal, IkSolver, Tool, Tree, TreeSolver, kernels
from ik_node.tracks import Track

PAIRS, POINTS = 10_000, 200_000
TOLERANCE = 1e-6  # [m and rad]
DOWN = (0.0, 0.0, -1.0)
TRACKS = {
    'left': Track('circle', (0.0, 0.6, 0.6), 0.1, 0.1, DOWN),
    'right': Track('figure_eight', (0.0, -0.6, 0.6), 0.1, 0.1, DOWN),
}
TREE_RESTARTS = 1000  # of TreeSolver
SLOWER = 100  # times fewer pairs for transpose
PERIOD = 0.01  # [s] between points
TRUNKS = 29  # places of the trunk for which the best branch is looked for


def run(tasks: list[Task], scale: float) -> None:
    """Print all tables."""
    kernels.prepare(wait=True)
    _apart(tasks, max(10, round(PAIRS * scale)))
    _together(max(10, round(PAIRS * scale)))
    _tracks(max(100, round(POINTS * scale)))


def _apart(tasks: list[Task], count: int) -> None:
    heading(
        'Tools that share no joint',
        f"""{count} pairs of goals, half of them reachable, from random seeds: how many answers of TreeSolver
        are those of an IkSolver per tool, bit for bit, and median and mean processor time of both [us].""",
    )
    trees = {'two seed_arm': pair()}
    for task in tasks:
        if task.name == 'dual_xarm5#1':
            trees['dual_xarm5'] = Tree.from_urdf(task.xml, {'left': Tool('L_link_eef'), 'right': Tool('R_link_eef')})
    table = Table('robot'.ljust(14) + '  ', 'the same', 'median', 'mean', 'p99', 'alone', 'mean', 'p99')
    for name, tree in trees.items():
        solver, alone = TreeSolver(tree), {tool: IkSolver(arm) for tool, arm in tree.arms.items()}
        rng, same, times, others = np.random.default_rng(0), [], [], []
        for number in range(count):
            seed, q = tree.sample(rng, 2)
            goals = goals_at(tree, q) if number % 2 else random_goals(rng, tree)
            begin = process_time()
            found = solver.solve(goals, seed)
            middle = process_time()
            parts = {tool: alone[tool].solve(goal, seed[tree.columns[tool]]) for tool, goal in goals.items()}
            others.append(process_time() - middle)
            times.append(middle - begin)
            same.append(all((found.q[tree.columns[tool]] == part.q).all() for tool, part in parts.items()))
        table.row(name, percent(np.array(same)), *microseconds(np.array(times)), *microseconds(np.array(others)))


def _together(count: int) -> None:
    heading(
        'A trunk with two arms',
        f"""{count} pairs of goals that two arms on a chest that turns can meet, by FK at random joints, seed
        mid-range. Solved: both tools within {TOLERANCE:g} m and rad by an FK of its own, limits kept. Search:
        share for which the formulas, or the descent from the seed where there are none, found nothing. In
        vain: share for which the restarts found nothing, but the search for the closest configuration did.
        transpose: of {count // SLOWER} pairs. Processor time [us].""",
    )
    table = Table('arms'.ljust(13), 'method'.ljust(9), 'solved', 'search', 'in vain', 'median', 'mean', 'p99')
    for method, arm in product(('lm', 'transpose'), ('seed_arm', 'so101_like', 'moveo_like', 'prismatic_arm')):
        tree = torso(arm)
        chains = chains_of(tree, arm)
        tolerances = {'position_tolerance': TOLERANCE, 'direction_tolerance': TOLERANCE}
        solver = TreeSolver(tree, method=method, **tolerances)
        pairs = count if method == 'lm' else max(10, count // SLOWER)
        solved, restarts, times = [], [], []
        for q in tree.sample(np.random.default_rng(1), pairs):
            goals = goals_at(tree, q)
            begin = process_time()
            found = solver.solve(goals)
            times.append(process_time() - begin)
            solved.append(_met(tree, chains, goals, found.q))
            restarts.append(max(part.restarts for part in found.tools.values()))
        searched, vain = np.array(restarts) > 0, np.array(restarts) >= TREE_RESTARTS
        shares = map(percent, (np.array(solved), searched, vain))
        table.row(arm, method, *shares, *microseconds(np.array(times)))


def _tracks(count: int) -> None:
    heading(
        'Two tracks at once',
        f"""{count} points of a circle and a figure eight at the same time, seed arms on a chest that turns.
        Largest step: of any joint [rad]; best branch: the same of the best continuous one, by solve_path of
        each limb for {TRUNKS} places of the trunk. Jumps: answers that were solved with a step of more than
        1.2 times that. Processor time [us].""",
    )
    table = Table('points', 'solved', 'largest step', 'best branch', 'jumps', 'median', 'mean', 'p99')
    tree = torso()
    solver = TreeSolver(tree)
    q = before = solver.solve(_on_tracks(0.0)).q
    solved, steps, times = [], [], []
    for k in range(1, count + 1):
        goals = _on_tracks(PERIOD * k)
        begin = process_time()
        found = solver.track(goals, q, before)
        times.append(process_time() - begin)
        solved.append(found.solved)
        steps.append(np.abs(found.q - q).max())
        before, q = q, found.q
    lap = max(track.lap / 0.1 for track in TRACKS.values())
    best = best_branch(tree, np.arange(0.0, min(PERIOD * count, lap), PERIOD))
    jumps = np.count_nonzero(np.array(steps) > 1.2 * best)
    table.row(
        count,
        percent(np.array(solved)),
        f'{max(steps):.5f}',
        f'{best:.5f}',
        jumps,
        *microseconds(np.array(times)),
    )


def best_branch(tree: Tree, times: Array) -> float:
    """Return the least largest joint step of two tracks, the trunk at rest anywhere."""
    best = np.inf
    for yaw in np.linspace(tree.lower[0], tree.upper[0], TRUNKS):
        turn = np.array([[np.cos(yaw), np.sin(yaw), 0.0], [-np.sin(yaw), np.cos(yaw), 0.0], [0.0, 0.0, 1.0]])
        largest = 0.0
        for name, track in TRACKS.items():
            arm = tree.arms[name]
            limb = IkSolver(type(arm)(tree.robot, arm.tip_link, base_link='chest'))
            points = (np.array([track.position(t) for t in times]) - [0.0, 0.0, 0.3]) @ turn.T
            path = limb.solve_path(points, np.tile(DOWN, (len(times), 1)))
            whole = path.solved.all() and not path.breaks
            largest = max(largest, path.largest_move if whole else np.inf)
        best = min(best, largest)
    return best


def chains_of(tree: Tree, arm: str) -> dict[str, Chain]:
    text = torso_text(arm)
    return {
        name: Chain(text, 'base_link', tool.tip_link, np.array([0.0, 0.0, 1.0]), np.zeros(3))
        for name, tool in TOOLS.items()
        if name in tree.arms
    }


def _met(tree: Tree, chains: dict[str, Chain], goals: dict[str, Goal], q: Array) -> bool:
    if (q < tree.lower).any() or (q > tree.upper).any():
        return False
    for name, goal in goals.items():
        points, axes = chains[name].fk(q[tree.columns[name]])
        off = np.linalg.norm(points[0] - goal.position)
        turned = np.linalg.norm(np.cross(axes[0], goal.direction))
        if max(off, turned) > TOLERANCE + ROUNDING or axes[0] @ goal.direction < 0.0:
            return False
    return True


def _on_tracks(time: float) -> dict[str, Goal]:
    return {name: Goal(track.position(time), DOWN) for name, track in TRACKS.items()}
