# SPDX-License-Identifier: Apache-2.0
"""One solver in its own environment: takes goals from stdin, times the bare calls, writes answers to stdout.

Messages are one line of JSON each. {"arm": ...} sets up, {"goals": ...} solves.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from time import perf_counter_ns, process_time_ns
from typing import Any

import numpy as np
from oracles.chain import into_limits

from benchmarks.peers.virtual_roll import UnsupportedError


def set_up(module: Any, arm: dict[str, Any]) -> Any:
    """Build the peer and solve a few goals that do not count."""
    peer = module.Peer(arm)
    positions, directions = arm['warm_up']
    goals = {'positions': positions, 'directions': directions, 'seed': arm['middle'], 'follow': False}
    solve(peer, goals, None, None)
    return peer


def solve(peer: Any, goals: dict[str, Any], limits: Any, slides: Any) -> dict[str, Any]:
    """Solve the goals one by one; where they follow a path, each answer is the next seed."""
    positions, directions = np.array(goals['positions']), np.array(goals['directions'])
    seed = np.array(goals['seed'])
    if hasattr(peer, 'call_batch'):
        return solve_batch(peer, positions, directions, seed)
    times, answers, announced = [], [], []
    if not goals['follow']:  # what the other solvers pushed out of the caches is no part of a solve
        run(peer, peer.prepare(positions[0], directions[0], seed))
    for position, direction in zip(positions, directions, strict=True):
        arguments = peer.prepare(position, direction, seed)
        found, time, change = run(peer, arguments)
        times.append(time)
        announced.append(change)
        answers.append(found)
        if goals['follow'] and found:
            q, inside = into_limits(np.array(found), limits, slides)
            moves = np.abs(q - seed).max(-1) + np.where(inside, 0.0, np.inf)
            if np.isfinite(moves.min()):
                seed = q[moves.argmin()]
    return {'times': times, 'answers': answers, 'announced': announced, 'seed': seed.tolist()}


def run(peer: Any, arguments: Any) -> tuple[list[list[float]], int, bool]:
    """Return what the bare call finds, its time [ns], and whether it announces a change of branch.

    Whatever it raises counts as not solved.
    """
    start = perf_counter_ns()
    try:
        solution = peer.call(*arguments)
        time = perf_counter_ns() - start
        announced = hasattr(peer, 'announced') and peer.announced(solution)
        return peer.answers(solution), time, announced
    except Exception as error:
        time = perf_counter_ns() - start
        print(f'{type(error).__name__}: {error}', file=sys.stderr)
        return [], time, False


def solve_batch(peer: Any, positions: Any, directions: Any, seed: Any) -> dict[str, Any]:
    """Solve the goals in one call; each goal's time is its share of the processor time.

    A batch is too long for its wall time to stay clear of whatever else the machine does.
    """
    arguments = peer.prepare_batch(positions, directions, seed)
    start = process_time_ns()
    solution = peer.call_batch(*arguments)
    share = (process_time_ns() - start) / len(positions)
    answers = peer.batch_answers(solution)
    times, announced = [share] * len(answers), [False] * len(answers)
    return {'times': times, 'answers': answers, 'announced': announced, 'seed': seed.tolist()}


def main() -> None:
    """Serve until stdin ends. Whatever a library prints goes to stderr."""
    replies = os.fdopen(os.dup(1), 'w')
    os.dup2(2, 1)
    module = importlib.import_module(f'benchmarks.peers.{sys.argv[1]}')
    peer, limits, slides = None, None, None
    for line in sys.stdin:
        message = json.loads(line)
        reply: dict[str, Any] = {}
        if 'arm' in message:
            arm = message['arm']
            limits, slides = np.array([arm['lower'], arm['upper']]), np.array(arm['slides'])
            try:
                peer = set_up(module, arm)
            except UnsupportedError as reason:
                reply['unsupported'] = str(reason)
        else:
            reply = solve(peer, message['goals'], limits, slides)
        replies.write(json.dumps(reply) + '\n')
        replies.flush()


if __name__ == '__main__':
    main()
