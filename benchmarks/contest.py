# SPDX-License-Identifier: Apache-2.0
"""Several solvers on the same goals at the same time: one process each, fed in turns of a few goals."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
import venv
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from oracles.arms import ROOT, Task
from oracles.chain import Array

ENVIRONMENTS = ROOT / '.venv-bench'
PEERS = ROOT / 'benchmarks' / 'peers'
TURN = 50  # goals per turn
ROUNDS = 3  # per goal; its time is the median
WARM_UP, WARM_UP_SEED = 20, 99


class MissingError(Exception):
    """A solver that cannot take part; the text says why."""


@dataclass
class Record:
    """What one solver did: per goal its time [s] in each round, and the answers of the first.

    announced: whether the solver says that the answer is on another branch than the seed.
    """

    rounds: list[list[float]] = field(default_factory=lambda: [[]])
    answers: list[list[list[float]]] = field(default_factory=list)
    announced: list[bool] = field(default_factory=list)

    @property
    def times(self) -> Array:
        """Time per goal [s] (N,): the median of its rounds, so that what else the machine did stays out."""
        return np.median(self.rounds, axis=0)

    def add(self, number: int, reply: dict[str, Any]) -> None:
        """Take in what a worker did in a turn of round number."""
        if number == 0:
            self.answers += reply['answers']
            self.announced += reply['announced']
        elif number == len(self.rounds):
            self.rounds.append([])
        self.rounds[number] += [nanoseconds * 1e-9 for nanoseconds in reply['times']]

    def solved(self, task: Task, positions: Array, directions: Array) -> Array:
        """Whether any answer meets its goal (N,), by the independent FK."""
        goal = np.repeat(np.arange(len(self.answers)), [len(answers) for answers in self.answers])
        q = np.array([q for answers in self.answers for q in answers]).reshape(-1, task.arm.n)
        solved = np.zeros(len(self.answers), bool)
        solved[goal[task.good(q, positions[goal], directions[goal])]] = True
        return solved


@functools.cache
def python_for(peer: str) -> str:
    """Return the interpreter of a peer's environment, filled from PyPI at first. Raises MissingError."""
    package = peer.split('_')[0]
    wanted = PEERS / f'{package}.txt'
    if not wanted.exists():
        return sys.executable
    text = wanted.read_text()
    folder = ENVIRONMENTS / f'{package}-{sys.version_info[0]}.{sys.version_info[1]}'
    python, stamp = folder / 'bin' / 'python', folder / 'installed.txt'
    if stamp.exists() and stamp.read_text() == text:
        return str(python)
    print(f'installing {package} into {folder.relative_to(ROOT)}', file=sys.stderr, flush=True)
    venv.create(folder, clear=True, symlinks=True, with_pip=True)
    pip = [str(python), '-m', 'pip', 'install', '--quiet', '--disable-pip-version-check']
    done = subprocess.run([*pip, '-r', str(wanted)], capture_output=True, text=True, check=False)
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() if line.startswith('ERROR')]
        raise MissingError(f'cannot be installed: {(errors or ["pip failed"])[-1]}')
    stamp.write_text(text)
    return str(python)


class Contestant:
    """A solver's process."""

    def __init__(self, peer: str, checkout: Path = ROOT) -> None:
        """Start it in a checkout of this repository; raises MissingError where it cannot be installed."""
        self.peer = peer
        settings = {**os.environ, 'OMP_NUM_THREADS': '1', 'OPENBLAS_NUM_THREADS': '1'}
        self.process = subprocess.Popen(
            [python_for(peer), '-m', 'benchmarks.worker', peer],
            cwd=checkout,
            env=settings,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log_file(peer),
        )

    def ask(self, message: dict[str, Any]) -> dict[str, Any]:
        """Send a message and return the reply. Raises MissingError if the process has ended."""
        try:
            self.process.stdin.write(json.dumps(message) + '\n')
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ''
        if not line:
            log = log_path(self.peer).relative_to(ROOT)
            raise MissingError(f'ended with code {self.process.wait()}, see {log}')
        return json.loads(line)

    def close(self) -> None:
        """End the process."""
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


def log_path(peer: str) -> Path:
    """Where a peer's stderr goes."""
    return ENVIRONMENTS / f'{peer}.log'


def log_file(peer: str) -> Any:
    """Open a peer's log."""
    ENVIRONMENTS.mkdir(exist_ok=True)
    return log_path(peer).open('a')


class Contest:
    """The solvers of a table; a context manager. missing says who could not come and why."""

    def __init__(self, peers: list[str]) -> None:
        self.contestants: dict[str, Contestant] = {}
        self.missing: dict[str, str] = {}
        for peer in peers:
            self.start(peer)

    def start(self, peer: str) -> None:
        """Start a contestant, or note why that cannot be."""
        try:
            self.contestants[peer] = Contestant(peer)
        except MissingError as reason:
            self.missing[peer] = str(reason)

    def __enter__(self) -> Contest:
        return self

    def __exit__(self, *_: object) -> None:
        for contestant in self.contestants.values():
            contestant.close()

    def run(
        self,
        task: Task,
        positions: Array,
        directions: Array,
        counts: dict[str, int] | None = None,
        seed: Array | None = None,
        follow: bool = False,
        rounds: int = ROUNDS,
        turn: int = TURN,
    ) -> tuple[dict[str, Record], dict[str, str]]:
        """Let everyone solve the goals (N, 3), (N, 3); return the records, and who was left out and why.

        counts: goals for a peer that is not to do all. seed: default mid-range. follow: the goals
        are a path, so each answer is the seed of the next goal. rounds: how often all is done. turn: goals
        per turn.
        """
        records, left_out = {}, dict(self.missing)
        for peer in list(self.contestants):
            reply = self.ask(peer, {'arm': description(task)}, left_out)
            if 'unsupported' in reply:
                left_out[peer] = reply['unsupported']
            elif peer not in left_out:
                records[peer] = Record()
        for number in range(rounds):
            seeds = dict.fromkeys(records, (task.arm.middle if seed is None else seed).tolist())
            for first in range(0, len(positions), turn):
                for peer, record in list(records.items()):
                    last = min(first + turn, (counts or {}).get(peer, len(positions)))
                    if first >= last:
                        continue
                    goals = {
                        'positions': positions[first:last].tolist(),
                        'directions': directions[first:last].tolist(),
                        'seed': seeds[peer],
                        'follow': follow,
                    }
                    reply = self.ask(peer, {'goals': goals}, left_out)
                    if peer in left_out:
                        del records[peer]
                        continue
                    record.add(number, reply)
                    seeds[peer] = reply['seed']
        return records, left_out

    def ask(self, peer: str, message: dict[str, Any], left_out: dict[str, str]) -> dict[str, Any]:
        """Ask a contestant; one whose process ends is out for this arm and started again for the next."""
        try:
            return self.contestants[peer].ask(message)
        except MissingError as reason:
            left_out[peer] = str(reason)
            self.start(peer)
            return {}


def description(task: Task) -> dict[str, Any]:
    """What a worker needs to know of an arm."""
    positions, directions, _ = task.goals(WARM_UP, WARM_UP_SEED)
    return {
        'xml': task.xml,
        'base': task.arm.base_link,
        'tip': task.arm.tip_link,
        'axis': task.arm.tool_axis.tolist(),
        'point': task.arm.tool_point.tolist(),
        'lower': task.arm.lower.tolist(),
        'upper': task.arm.upper.tolist(),
        'slides': task.arm.prismatic.tolist(),
        'middle': task.arm.middle.tolist(),
        'warm_up': (positions.tolist(), directions.tolist()),
    }


def title_of(peer: str) -> str:
    """Return the peer's name for tables, read from its module's TITLE without importing it."""
    source = (PEERS / f'{peer}.py').read_text()
    return next(line.split("'")[1] for line in source.splitlines() if line.startswith('TITLE'))
