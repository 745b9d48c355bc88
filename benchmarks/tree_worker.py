# SPDX-License-Identifier: Apache-2.0
"""One solver of several tools in its own environment: goals from stdin, answers to stdout, as JSON lines.

{"robot": ...} sets up, {"goals": [...], "seed": [...], "starts": k, "follow": bool} solves.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from time import process_time_ns
from typing import Any

import numpy as np


def solve(peer: Any, message: dict[str, Any]) -> dict[str, Any]:
    """Solve the goals one by one; where they follow tracks, each answer is the next seed."""
    times, answers, starts = [], [], []
    seed = np.array(message['seed'])
    for row in message['goals']:
        goals = {tool: np.array(goal) for tool, goal in row.items()}
        begin = process_time_ns()
        try:
            q, used = peer.call(goals, seed, message['starts'])
        except Exception as error:
            print(f'{type(error).__name__}: {error}', file=sys.stderr)
            q, used = seed, 0
        times.append(process_time_ns() - begin)
        answers.append(np.asarray(q, float).tolist())
        starts.append(used)
        if message['follow'] and np.isfinite(answers[-1]).all():
            seed = np.array(answers[-1])
    return {'times': times, 'answers': answers, 'starts': starts, 'seed': seed.tolist()}


def main() -> None:
    """Serve until stdin ends. Whatever a library prints goes to stderr."""
    replies = os.fdopen(os.dup(1), 'w')
    os.dup2(2, 1)
    module = importlib.import_module(f'benchmarks.peers.{sys.argv[1]}')
    peer = None
    for line in sys.stdin:
        message = json.loads(line)
        if 'robot' in message:
            peer = module.Peer(message['robot'])
            reply: dict[str, Any] = {'title': module.TITLE}
        else:
            reply = solve(peer, message)
        replies.write(json.dumps(reply) + '\n')
        replies.flush()


if __name__ == '__main__':
    main()
