# SPDX-License-Identifier: Apache-2.0
"""Solvers of several tools at once on the same pairs of goals, and along the same two tracks."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from benchmarks.arms import Task
from benchmarks.chain import ROUNDING, Array, Chain
from benchmarks.contest import Contestant, MissingError, title_of
from benchmarks.tables import Table, heading, percent
from benchmarks.torsos import TOOLS, torso, torso_text
from benchmarks.trees import DOWN, PERIOD, TRACKS, best_branch, chains_of
from ik_node import Goal, Tree, TreeSolver

PEERS = (
    'own_tree',
    'own_tree_transpose',
    'placo_tree',
    'placo_tree_masked',
    'pink_tree',
    'mink_tree',
    'pyroki_tree',
)
PAIRS, POINTS, WARM_UP = 1_000, 1_300, 5
STARTS = 10  # the seed and random ones
TURN = 10  # pairs in turn
FINE, COARSE = 1e-6, 1e-3  # [m and rad]
JUMP = 1.2  # times the largest step of the best branch


@dataclass
class Record:
    """What a solver did: times [s], answers (n,) and starts used, by goal."""

    times: list[float] = field(default_factory=list)
    answers: list[list[float]] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)


def run(_: list[Task], scale: float) -> None:
    """Print both tables."""
    tree = torso()
    chains = chains_of(tree, 'seed_arm')
    contestants, missing = {}, {}
    for peer in PEERS:
        try:
            contestants[peer] = Contestant(peer, worker='tree_worker')
            contestants[peer].ask({'robot': described(tree)})
        except MissingError as reason:
            missing[peer] = str(reason)
            contestants.pop(peer, None)
    _pairs(tree, chains, contestants, missing, max(10, round(PAIRS * scale)))
    _tracks(tree, chains, contestants, max(50, round(POINTS * scale)))
    for peer, reason in missing.items():
        print(f'\n{title_of(peer)}: {reason}')
    for contestant in contestants.values():
        contestant.close()


def _pairs(
    tree: Tree,
    chains: dict[str, Chain],
    contestants: dict[str, Contestant],
    missing: dict[str, str],
    count: int,
) -> None:
    heading(
        'Several tools, beside other solvers',
        f"""{count} pairs of goals that two seed arms on a chest that turns can meet, by FK at random joints,
        seed mid-range; position and one axis of each tool. Solved within {FINE:g} and {COARSE:g} m and rad by
        an FK of its own, limits kept; at once: at {FINE:g}, from the seed. Others: up to 200 steps from
        each of {STARTS} starts; ik_node: its own restarts. Processor time, all goals [us].""",
    )
    goals = goals_of(tree, chains, tree.sample(np.random.default_rng(1), count))
    records = in_turns(contestants, goals, tree.middle, STARTS, follow=False, missing=missing)
    table = Table('solver'.ljust(20) + '  ', '1e-6', '1e-3', 'at once', 'median', 'mean', 'p99')
    for peer, record in records.items():
        q = np.array(record.answers)
        fine, coarse = (met(tree, chains, goals, q, tolerance) for tolerance in (FINE, COARSE))
        first = np.array(record.starts) == 1
        times = 1e6 * np.array(record.times)
        figures = (np.median(times), times.mean(), np.quantile(times, 0.99))
        table.row(
            title_of(peer),
            percent(fine),
            percent(coarse),
            percent(fine & first),
            *(f'{x:.0f}' for x in figures),
        )


def _tracks(tree: Tree, chains: dict[str, Chain], contestants: dict[str, Contestant], count: int) -> None:
    times = PERIOD * np.arange(count)
    best = best_branch(tree, times)
    heading(
        'Two tracks at once, beside other solvers',
        f"""{count} points of a circle and a figure eight at the same time, {PERIOD:g} s apart. All begin at
        the same configuration, each answer is the seed of the next, no restarts. Solved: within {FINE:g} and
        {COARSE:g} m and rad. Largest step: of any joint [rad]; that of the best continuous branch is
        {best:.5f}. Jumps: steps of more than {JUMP:g} times that. Processor time [us].""",
    )
    goals = [{tool: [*track.position(t), *DOWN] for tool, track in TRACKS.items()} for t in times]
    beginning = {tool: Goal(goal[:3], goal[3:]) for tool, goal in goals[0].items()}
    start = TreeSolver(tree).solve(beginning).q
    records = in_turns(contestants, goals, start, 1, follow=True, missing={})
    table = Table('solver'.ljust(20) + '  ', '1e-6', '1e-3', 'largest step', 'jumps', 'median', 'mean')
    for peer, record in records.items():
        q = np.array(record.answers)
        fine, coarse = (met(tree, chains, goals, q, tolerance) for tolerance in (FINE, COARSE))
        steps = np.abs(np.diff(q, axis=0)).max(axis=1)
        spent = 1e6 * np.array(record.times)
        table.row(
            title_of(peer),
            percent(fine),
            percent(coarse),
            f'{steps.max():.5f}',
            np.count_nonzero(steps > JUMP * best),
            f'{np.median(spent):.0f}',
            f'{spent.mean():.0f}',
        )


def described(tree: Tree) -> dict[str, object]:
    """Return what a worker needs to know of the robot."""
    return {
        'xml': torso_text(),
        'tips': {name: tool.tip_link for name, tool in TOOLS.items()},
        'joints': list(tree.joint_names),
        'lower': tree.lower.tolist(),
        'upper': tree.upper.tolist(),
    }


def in_turns(
    contestants: dict[str, Contestant],
    goals: list[dict[str, list[float]]],
    seed: Array,
    starts: int,
    follow: bool,
    missing: dict[str, str],
) -> dict[str, Record]:
    """Let all solve the goals, a few in turn, so that what else the machine does falls on all alike."""
    records = {peer: Record() for peer in contestants}
    seeds = dict.fromkeys(contestants, seed.tolist())
    for peer in list(contestants):  # does not count
        message = {'goals': goals[:WARM_UP], 'seed': seeds[peer], 'starts': starts, 'follow': False}
        contestants[peer].ask(message)
    for first in range(0, len(goals), TURN):
        for peer, record in list(records.items()):
            message = {
                'goals': goals[first : first + TURN],
                'seed': seeds[peer],
                'starts': starts,
                'follow': follow,
            }
            try:
                reply = contestants[peer].ask(message)
            except MissingError as reason:
                missing[peer] = str(reason)
                del records[peer], contestants[peer]
                continue
            record.times += [1e-9 * time for time in reply['times']]
            record.answers += reply['answers']
            record.starts += reply['starts']
            seeds[peer] = reply['seed']
    return records


def goals_of(tree: Tree, chains: dict[str, Chain], q: Array) -> list[dict[str, list[float]]]:
    """Return the goals that the tools meet at configurations q (N, n): position and direction by tool."""
    placed = {name: np.hstack(chain.fk(q[:, tree.columns[name]])) for name, chain in chains.items()}
    return [{name: rows[k].tolist() for name, rows in placed.items()} for k in range(len(q))]


def met(
    tree: Tree, chains: dict[str, Chain], goals: list[dict[str, list[float]]], q: Array, tolerance: float
) -> Array:
    """Whether answers q (N, n) meet their goals within the limits (N,), by an FK of its own."""
    slack = 1e-9  # what a solver may be past a limit by rounding
    good = ((q >= tree.lower - slack) & (q <= tree.upper + slack)).all(axis=1)
    for name, chain in chains.items():
        wanted = np.array([goal[name] for goal in goals])
        points, axes = chain.fk(q[:, tree.columns[name]])
        off = np.linalg.norm(points - wanted[:, :3], axis=1)
        turned = np.linalg.norm(axes - wanted[:, 3:], axis=1)
        good &= np.maximum(off, turned) <= tolerance + ROUNDING
    return good
