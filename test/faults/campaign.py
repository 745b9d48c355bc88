# SPDX-License-Identifier: Apache-2.0
"""The whole campaign: runs in several processes, and the table of what was found."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed

from faults.judge import HARD, INFINITE, POSITION, RATE, SNAP
from faults.kinds import KINDS
from faults.run import ABRUPT, CRASH, RUNS, STANDSTILL, Result, Session

COLUMNS = (POSITION, RATE, HARD, INFINITE, SNAP, STANDSTILL, CRASH, ABRUPT)
SHOWN = 5  # violations of a run


def session(seed: int, number: int, runs: tuple[int, ...], more: bool = False) -> list[Result]:
    """Do some runs of one session."""
    arena = Session(seed, number, more)
    try:
        results = [arena.run(run) for run in runs]
    finally:
        ending = arena.close()
    if ending is not None:
        results[-1].violations.append(ending)
    return results


def sessions(first: int, runs: int) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Yield sessions, each with its runs."""
    for number in range(first // RUNS, (first + runs - 1) // RUNS + 1):
        mine = range(max(first, number * RUNS), min(first + runs, (number + 1) * RUNS))
        yield number, tuple(mine)


def campaign(seed: int, first: int, runs: int, workers: int, more: bool = False) -> int:
    """Do the runs, print what was wrong and a table; return 1 if anything was wrong.

    more: with the action and tf2, where they are installed.
    """
    signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # background jobs ignore it, and nodes inherit that
    os.environ['ROS_AUTOMATIC_DISCOVERY_RANGE'] = 'LOCALHOST'
    begin, results = time.monotonic(), []
    spawn = multiprocessing.get_context('spawn')
    with ProcessPoolExecutor(workers, mp_context=spawn) as pool:
        futures = [pool.submit(session, seed, number, mine, more) for number, mine in sessions(first, runs)]
        for future in as_completed(futures):
            for result in future.result():
                results.append(result)
                show(result, f'--seed {seed}{" --more" if more else ""}')
            print(f'{len(results)} of {runs} runs, {time.monotonic() - begin:.0f} s', flush=True)
    print(table(results))
    wrong = sum(bool(result.violations) for result in results)
    samples = sum(result.samples for result in results)
    print(f'{len(results)} runs with seed {seed}, {samples} samples judged, {wrong} runs with violations')
    return int(wrong > 0)


def show(result: Result, options: str) -> None:
    """Print what was wrong in a run, and how to repeat it."""
    if not result.violations:
        return
    print(f'run {result.number} ({result.setup}; {result.activity}; {", ".join(result.faults)}):')
    counts = Counter(violation.kind for violation in result.violations)
    print('  ' + ', '.join(f'{count} {kind}' for kind, count in counts.items()))
    for violation in result.violations[:SHOWN]:
        print(f'  {violation.kind}: {shortened(violation.what)}')
    before = result.number % RUNS
    again = f"make faults FAULTS='{options} --first {result.number} --runs 1'"
    more = f'; with the runs before: --first {result.number - before} --runs {before + 1}' if before else ''
    print(f'  alone: {again}{more}')


def shortened(text: str, most: int = 6000) -> str:
    """Return a text of most characters: its beginning and its end."""
    return text if len(text) <= most else f'{text[: most // 2]} ... {text[-most // 2 :]}'


def table(results: list[Result]) -> str:
    """Return a Markdown table: a run counts in the row of each of its faults."""
    lines = ['| fault | runs | samples | ' + ' | '.join(COLUMNS) + ' |', '|---' * (3 + len(COLUMNS)) + '|']
    rows = {name: [result for result in results if name in result.faults] for name in KINDS}
    for name, mine in {**rows, 'all': results}.items():
        counts = Counter(violation.kind for result in mine for violation in result.violations)
        cells = [name, len(mine), sum(result.samples for result in mine), *(counts[c] for c in COLUMNS)]
        lines.append('| ' + ' | '.join(map(str, cells)) + ' |')
    return '\n'.join(lines)
